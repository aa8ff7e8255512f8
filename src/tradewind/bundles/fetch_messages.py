"""What a fetch of a bundle is asked and answers, and its result for people, which is kept in `state.json`.

Apart from `fetch_child`, so that the parser and the worker host do not load the code that fetches.
"""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec

from tradewind.bundles.specs import BundleSpec
from tradewind.platform.private_file import private_folder


class FetchRequest(msgspec.Struct, frozen=True):
    """What is to be fetched."""

    folder: str
    """The folder of the bundle, absolute."""
    spec: BundleSpec
    version: str = ""
    """The version whose folder is to be made from files on this machine; empty: the newest version is fetched."""
    connection: dict[str, Any] = {}
    """Host, login, password and `extra` of the connection, from the scheduler; empty: there is none."""
    used: list[str] | None = None
    """Delete old versions now, but not these; None: nothing is deleted."""
    looks_only: bool = False
    """Only say which version is the newest one. Nothing is written."""
    bytes_max: int | None = None
    """With `used`: the limit for the disk space of the bundle; None: there is none."""


class FetchAnswer(msgspec.Struct, frozen=True):
    """The result. If there is no problem, the folder of the version exists."""

    version: str = ""
    problem: str = ""
    warnings: list[str] = []


class BundleState(msgspec.Struct, frozen=True):
    """The result of the last fetches of a bundle, for people."""

    version: str = ""
    refreshed_at: int = 0
    """When the last successful fetch ended, microseconds; 0: never."""
    problem: str = ""
    """Why the last fetch failed; empty: it succeeded."""
    failed_at: int = 0
    failing_since: int = 0
    """When the first of the last failed fetches in a row ended, microseconds; 0: the last fetch succeeded."""
    warnings: list[str] = []


def state_of(folder: str) -> BundleState:
    """Read the state of a bundle. If the file is missing or damaged, the state is empty."""
    try:
        with open(os.path.join(folder, "state.json"), "rb") as file:
            return msgspec.json.decode(file.read(), type=BundleState)
    except (OSError, msgspec.DecodeError):
        return BundleState()


def write_state(folder: str, answer: FetchAnswer) -> None:
    """Record the result of a fetch. Raises OSError."""
    now, state = time.time_ns() // 1000, state_of(folder)
    if answer.problem:
        since = state.failing_since or now
        state = msgspec.structs.replace(state, problem=answer.problem, failed_at=now, failing_since=since)
    else:
        state = BundleState(answer.version, now, warnings=answer.warnings)
    path = os.path.join(private_folder(folder), "state.json")
    with open(f"{path}.{os.getpid()}.new", "wb") as file:
        file.write(msgspec.json.encode(state))
    os.replace(file.name, path)
