"""The storage port: where task logs and large XComs are kept.

A log and a large XCom (a spill) are addressed by a name, not by a path of this machine. Logs and large XComs are in a local folder
(`local_logs`, `local_spills`). Logs may also be uploaded to a remote file system (`remote_logs`). A worker always writes the
log of a running attempt into the local folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, Protocol


class LogEntry(NamedTuple):
    """One stored log."""

    run: str
    """The folder of its run (`wire.log_paths.run_folder`)."""
    name: str
    """Its name in the storage: folders and file name, separated by slashes."""
    size: int
    """Bytes."""
    changed: float
    """Time of the last change, seconds since the epoch."""


class Removal(NamedTuple):
    """The result of one step of a deletion."""

    files: int
    bytes: int
    done: bool
    """Nothing is left to delete."""


class LogStorage(Protocol):
    """Task logs by name."""

    def open(self, name: str) -> BinaryIO:
        """Open a log for reading.

        Raises:
            FileNotFoundError: there is no such log.
        """
        ...

    def shown(self, name: str) -> str:
        """Where the log is stored, for people."""
        ...

    def problem(self) -> str | None:
        """Why no log can be written, as a sentence; None: no problem is known."""
        ...

    def entries(self) -> Iterator[LogEntry]:
        """Yields every log, without reading all names at once. Logs that are deleted meanwhile are left out."""
        ...

    def remove(self, entry: LogEntry) -> None:
        """Delete one log; nothing happens if it is gone.

        Raises:
            OSError: the log cannot be deleted.
        """

    def remove_run(self, run: str, older_than: float | None, at_most: int) -> Removal:
        """Delete the logs of a run, at most this number of files.

        Args:
            run: the folder of the run.
            older_than: seconds since the epoch: what was written since stays; None: all of them go.

        Raises:
            OSError: a log cannot be deleted.
        """
        ...


class SpillStorage(Protocol):
    """Large XComs, named by their content."""

    def write(self, data: bytes) -> str:
        """Write a value durably and return its name. The same bytes have the same name.

        Raises:
            OSError: there is no space, or the file is too large for a limit.
        """
        ...

    def read(self, name: str) -> bytes:
        """Return a value.

        Raises:
            FileNotFoundError: there is no such value.
        """
        ...

    def entries(self) -> Iterator[tuple[str, float]]:
        """(name, seconds since the epoch of its last use) of every value."""
        ...

    def remove(self, name: str, older_than: float) -> bool:
        """Delete a value that nothing refers to, unless somebody wrote it or counted on it since; return whether it is gone.

        Args:
            older_than: seconds since the epoch, by the clock of the storage.
        """
        ...

    def remove_unused(self, names: Iterable[str]) -> None:
        """Delete values to which no row refers, if they are old enough that no report on its way can name them."""
