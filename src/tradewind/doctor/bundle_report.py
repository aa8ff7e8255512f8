"""What `tradewind doctor` says of the bundles in the settings: whether each one can be read, and which version it has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.bundles.fetches import Fetch
from tradewind.bundles.report import advice
from tradewind.bundles.specs import BundleSpec, hidden
from tradewind.model.moments import SECOND
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop

LOOK_SECONDS = 30
"""Deadline for the answer of a repository or an object store."""
READABLE, UNREADABLE = "readable", "cannot be read"
Look = Callable[[BundleSpec], FetchAnswer]
"""Returns the newest version of a bundle, or the problem."""


class BundleReport(NamedTuple):
    """One bundle."""

    name: str
    kind: str
    address: str
    verdict: str
    version: str
    """The newest version of the repository or the store; empty: a folder has no versions."""
    here: str
    """The version that was fetched last to this machine; empty: none yet."""
    text: str
    """What follows, or what to do."""


def look(request: FetchRequest, seconds: float = LOOK_SECONDS) -> FetchAnswer:
    """Ask for the newest version in a process of its own, which is killed at the deadline."""
    loop, answers = Loop(SystemClock()), list[FetchAnswer]()
    Fetch(loop, request, round(seconds * SECOND), answers.append)
    while not answers:
        loop.turn(SECOND)
    return answers[0]


def report_on_bundles(
    specs: Iterable[BundleSpec], look: Look, here: Callable[[BundleSpec], str], folder: Callable[[BundleSpec], str]
) -> Iterator[BundleReport]:
    """Report on each bundle.

    Args:
        here: returns the version of a bundle that was fetched last to this machine; empty: none yet.
        folder: returns the folder of a bundle without versions, absolute.
    """
    for spec in specs:
        if not spec.has_versions:
            path = folder(spec)
            good = os.path.isdir(path)
            text = "its files are read as they are; runs keep no version" if good else "the folder does not exist"
            yield BundleReport(spec.name, spec.kind, path, READABLE if good else UNREADABLE, "", "", text)
            continue
        address = hidden(spec.place) if spec.place else f"the host of the connection {spec.conn_id}"
        present, answer = here(spec), look(spec)
        if answer.problem:
            to_do = advice(answer.problem, spec.conn_id)
            text = f"{answer.problem}. {to_do[0].upper()}{to_do[1:]}" if to_do else answer.problem
            if present:
                text += f". Until then, the DAG files of the version {_short(present)} are used"
            yield BundleReport(spec.name, spec.kind, address, UNREADABLE, "", present, text)
        else:
            yield BundleReport(
                spec.name, spec.kind, address, READABLE, answer.version, present, _what_follows(spec, answer.version, present)
            )


def _what_follows(spec: BundleSpec, version: str, present: str) -> str:
    if not present:
        return "it is fetched when Tradewind starts; each run keeps its version"
    if present == version:
        return "this machine has this version"
    return f"this machine has the version {_short(present)}, and fetches the new one at the next refresh"


def _short(version: str) -> str:
    return version[:12]


def what_happens_to(path: str, dags_folder: str, folders: Sequence[tuple[str, str]]) -> str:
    """Return what the settings do with a folder of DAG files.

    Args:
        path: the folder or the file that is examined, absolute.
        folders: (bundle, its folder) of the bundles in the settings.
    """
    for name, folder in folders:
        if path == folder or path.startswith(os.path.join(folder, "")):
            return f"{path} is read as the bundle {name}."
    names = ", ".join(name for name, _ in folders)
    if path == dags_folder or path.startswith(os.path.join(dags_folder, "")):
        return f"{path} is in the DAG folder, which bundles.list does not name: it is not read. It names {names}."
    return f"{path} is in none of the bundles of the settings ({names}): it is not read there. It was examined here only."


def bundle_lines(reports: Sequence[BundleReport]) -> Iterator[str]:
    """The report for people."""
    bad = sum(one.verdict == UNREADABLE for one in reports)
    yield f"{len(reports)} bundle{'' if len(reports) == 1 else 's'} in bundles.list" + (
        f", {bad} cannot be read" if bad else ""
    )
    for one in reports:
        at = f" at {_short(one.version)}" if one.version else ""
        yield f"  {one.name} ({one.kind}, {one.address}): {one.verdict}{at}; {one.text}"
