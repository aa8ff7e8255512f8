"""The state of a bundle as sentences for people: the version in use, a failure with its time and reason, and what to do."""

from __future__ import annotations

from tradewind.bundles.fetch_messages import BundleState, state_of
from tradewind.bundles.specs import VersionedBundle
from tradewind.model.moments import iso

_ADVICE = (
    (("took longer than",), "check the network, or raise bundles.fetch_timeout"),
    (("no branch, tag or commit",), "name a branch, tag or commit that exists"),
    (("is not installed", "needs the package", "pip install"), "install it on this machine, and restart the parser"),
    (("there is no connection",), ""),
    (
        ("resolve host", "Connection refused", "Failed to connect", "EndpointConnectionError"),
        "check the address and the network",
    ),
    (
        (
            "Authentication failed",
            "could not read Username",
            "Permission denied",
            "Forbidden",
            "credentials",
            "error: 401",
            "error: 403",
            "AccessDenied",
        ),
        "check the credentials",
    ),
    (("No space left",), "free some disk space, or lower bundles.max_mb"),
)
"""(texts in the reason of a failure, what to do)."""


def advice(problem: str, conn_id: str) -> str:
    """What to do after a failed fetch; empty: the reason says enough."""
    for texts, helps in _ADVICE:
        if any(text in problem for text in texts):
            if helps == "check the credentials":
                where = f"in the connection {conn_id!r}" if conn_id else "in the environment, or name a connection (#conn=ID)"
                return f"{helps} {where}"
            return helps
    return ""


def failing_since(bundle: VersionedBundle) -> str | None:
    """The time since which every fetch of a bundle has failed; None: the last one succeeded."""
    state = state_of(bundle.folder)
    return iso(state.failing_since or state.failed_at) if state.problem else None


def sentence_of(bundle: VersionedBundle) -> str:
    """The state of a bundle in one line."""
    return _sentence(bundle, state_of(bundle.folder))


def _sentence(bundle: VersionedBundle, state: BundleState) -> str:
    version = bundle.newest_version()
    if not state.problem:
        if not version:
            return "was not fetched yet"
        return f"version {version[:12]}, fetched at {iso(state.refreshed_at)}"
    since = iso(state.failing_since or state.failed_at)
    kept = f"the version {version[:12]} stays in use" if version else "it has no DAGs yet"
    helps = advice(state.problem, bundle.spec.conn_id)
    return f"cannot be fetched since {since}: {state.problem}; {kept}" + (f". To do: {helps}" if helps else "")
