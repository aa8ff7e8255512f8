"""The process that fetches a bundle: `python -m tradewind.bundles.fetch_child`, with a request on its standard input.

It is a process of its own so that a fetch which hangs can be killed with everything that it started, and so that credentials never
enter a process that forks user code. The answer on its standard output is one JSON document.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from typing import Any

import msgspec

from tradewind.bundles.git_repository import FetchFailed, GitRepository
from tradewind.bundles.specs import BundleSpec
from tradewind.observe.failpoints import fp
from tradewind.platform.private_file import private_folder


class FetchRequest(msgspec.Struct, frozen=True):
    """What to fetch."""

    folder: str
    """The folder of the bundle, absolute."""
    spec: BundleSpec
    version: str = ""
    """Make the folder of this version from the copy on this machine; empty: fetch the newest one."""
    connection: dict[str, Any] = {}
    used: list[str] = []
    """Versions whose folders stay."""


class FetchAnswer(msgspec.Struct, frozen=True):
    """The result. Without a problem, the folder of the version exists."""

    version: str = ""
    problem: str = ""
    warnings: list[str] = []


class BundleState(msgspec.Struct, frozen=True):
    """What the last fetches of a bundle gave, for people."""

    version: str = ""
    refreshed_at: int = 0
    """When the last successful fetch ended, microseconds; 0: never."""
    problem: str = ""
    """Why the last fetch failed; empty: it did not."""
    failed_at: int = 0
    warnings: list[str] = []


def state_of(folder: str) -> BundleState:
    """Read the state of a bundle. A file that is missing or damaged is an empty state."""
    try:
        with open(os.path.join(folder, "state.json"), "rb") as file:
            return msgspec.json.decode(file.read(), type=BundleState)
    except (OSError, msgspec.DecodeError):
        return BundleState()


def write_state(folder: str, answer: FetchAnswer) -> None:
    """Record the result of a fetch. Raises OSError."""
    now, state = time.time_ns() // 1000, state_of(folder)
    if answer.problem:
        state = msgspec.structs.replace(state, problem=answer.problem, failed_at=now)
    else:
        state = BundleState(answer.version, now, warnings=answer.warnings)
    path = os.path.join(private_folder(folder), "state.json")
    with open(f"{path}.{os.getpid()}.new", "wb") as file:
        file.write(msgspec.json.encode(state))
    os.replace(file.name, path)


def fetch(request: FetchRequest) -> FetchAnswer:
    """Carry out a request. Fetches of one bundle wait for each other."""
    try:
        lock = os.open(os.path.join(private_folder(request.folder), "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the parent of this process sets the deadline
            return _fetch_alone(request)
        finally:
            os.close(lock)
    except FetchFailed as failed:
        return FetchAnswer(problem=str(failed))
    except OSError as error:
        return FetchAnswer(problem=f"{error.filename or request.folder}: {error.strerror}")


def _fetch_alone(request: FetchRequest) -> FetchAnswer:
    repository = GitRepository(request.folder, request.spec, request.connection)
    version = request.version or repository.refresh()
    fp("bundles.before_version")
    repository.make(version)
    fp("bundles.after_version")
    answer = FetchAnswer(version, warnings=repository.warnings(version))
    if not request.version:
        repository.point_to(version)
        write_state(request.folder, answer)
        repository.clean({*request.used, version})
    return answer


if __name__ == "__main__":
    answer = fetch(msgspec.json.decode(sys.stdin.buffer.read(), type=FetchRequest))
    sys.stdout.buffer.write(msgspec.json.encode(answer))
