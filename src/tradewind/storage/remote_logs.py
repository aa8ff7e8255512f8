"""Task logs in an object store or another remote file system, through fsspec: `s3://bucket/logs`, `gs://…`, `abfs://…`.

Workers always write logs into the local folder. `LogUploads` copies them to the remote file system when they have not changed
for some seconds; `RemoteLogs` reads a log from there if this machine does not have it. A log has the same name in both places.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, cast

import fsspec
from fsspec.core import split_protocol

from tradewind.model.errors import ConfigError
from tradewind.observe.log import Log
from tradewind.storage.port import LogEntry, LogStorage, Removal

log = Log("logs")

QUIET_SECONDS = 4.0
"""A log that has not changed for this time is uploaded."""
GROWING_SECONDS = 60.0
"""Interval between uploads of a log that is still changing."""
FORGET_SECONDS = 10 * GROWING_SECONDS
OVERLAP_SECONDS = 2.0
"""A pass checks again logs that changed shortly before the previous pass, because the times of files are coarse."""
SMALL_BYTES = 1024
"""A smaller log may contain only the last lines, which were written after the machine of the worker was lost."""
WHOLE_MAX = 128 * 1024 * 1024
"""Maximum size of a log of another machine that is read in order to append to it, bytes."""


class RemoteFolder:
    """A folder in a remote file system.

    Args:
        url: with a scheme that fsspec knows; without one it is a local folder.
        options: JSON object of the arguments for the file system of fsspec.

    Raises:
        ConfigError: fsspec does not know the scheme, its package is not installed, or the options are no JSON object.
    """

    def __init__(self, url: str, options: str | None = None) -> None:
        self.url = url.rstrip("/")
        scheme = split_protocol(url)[0] or "file"
        try:
            given = json.loads(options) if options else {}
            if not isinstance(given, dict):
                raise ValueError("it is not an object")
        except ValueError as error:
            raise ConfigError(f"logging.remote_storage_options is not a JSON object: {error}") from None
        try:
            self.files: Any = fsspec.filesystem(scheme, **{"use_listings_cache": False, **given})
        except (ImportError, ValueError) as error:
            raise ConfigError(f"logging.remote_base_log_folder = {url}: {error}") from None
        self._base: str = self.files._strip_protocol(self.url)

    def path(self, name: str) -> str:
        return f"{self._base}/{name}"

    def size(self, name: str) -> int | None:
        """Size of a file in bytes; None: there is no such file."""
        try:
            return int(self.files.info(self.path(name))["size"])
        except FileNotFoundError:
            return None


class RemoteLogs:
    """See the module and `storage.port.LogStorage`: the logs of this machine, and the uploaded logs of all machines.

    Only the logs of this machine are listed and deleted.
    """

    def __init__(self, local: LogStorage, folder: RemoteFolder) -> None:
        self._local = local
        self._folder = folder

    def open(self, name: str) -> BinaryIO:
        try:
            here = self._local.open(name)
        except FileNotFoundError:
            return self._open_remote(name)
        size = here.seek(0, 2)
        here.seek(0)
        if size >= SMALL_BYTES:
            return here
        try:
            there = self._folder.size(name) or 0
            if there > size:
                found = self._open_remote(name)
                here.close()
                return found
        except Exception as error:  # each file system has its own errors; the local log can be shown
            log.debug("the uploaded log cannot be read", name=name, error=str(error))
        return here

    def _open_remote(self, name: str) -> BinaryIO:
        try:
            return cast(BinaryIO, self._folder.files.open(self._folder.path(name), "rb"))
        except FileNotFoundError:
            raise
        except Exception as error:  # each file system has its own errors
            raise FileNotFoundError(f"no log at {name}: {self._folder.url} cannot be read: {error}") from None

    def shown(self, name: str) -> str:
        return f"{self._local.shown(name)} or {self._folder.url}/{name}"

    def problem(self) -> str | None:
        return self._local.problem()

    def entries(self) -> Iterator[LogEntry]:
        return self._local.entries()

    def remove(self, entry: LogEntry) -> None:
        self._local.remove(entry)

    def remove_run(self, run: str, older_than: float | None, at_most: int) -> Removal:
        return self._local.remove_run(run, older_than, at_most)


class _Uploaded(NamedTuple):
    """The part of a log that this process has uploaded."""

    size: int
    changed: float
    at: float
    """The time when it was uploaded, or first seen."""
    before: int
    """Number of bytes of another machine before this part; -1: unknown, because nothing was uploaded yet."""


class LogUploads:
    """Uploads the logs of this machine, pass by pass. Used by one thread.

    Args:
        since: seconds since the epoch. Logs that have not changed since then were uploaded by an earlier process.
        wall: returns the time, seconds since the epoch.
        working: called before each log.
    """

    def __init__(
        self,
        logs: LogStorage,
        folder: RemoteFolder,
        since: float,
        wall: Callable[[], float],
        working: Callable[[], None] = lambda: None,
    ) -> None:
        self.since = since
        self._logs = logs
        self._folder = folder
        self._wall = wall
        self._working = working
        self._done: dict[str, _Uploaded] = {}

    def run_pass(self, *, everything: bool = False) -> int:
        """Upload all due logs. Returns their number.

        Args:
            everything: upload also logs that are still growing.

        Raises:
            OSError or an error of the file system: the remaining logs are due in the next pass.
        """
        began, count = self._wall(), 0
        oldest = began
        for entry in self._logs.entries():
            if entry.changed < self.since - OVERLAP_SECONDS:
                continue
            known = self._done.get(entry.name)
            if known is not None and (known.size, known.changed) == (entry.size, entry.changed):
                continue
            if not everything and not is_due(entry, known, began):
                self._done.setdefault(entry.name, _Uploaded(-1, 0.0, began, -1))
                oldest = min(oldest, entry.changed)
                continue
            self._working()
            self._upload(entry, known)
            count += 1
        self.since = oldest
        self._done = {name: one for name, one in self._done.items() if one.at >= began - FORGET_SECONDS}
        return count

    def _upload(self, entry: LogEntry, known: _Uploaded | None) -> None:
        """Upload one log. A part that another machine has uploaded stays in front of it."""
        folder, path = self._folder, self._folder.path(entry.name)
        try:
            source = self._logs.open(entry.name)
        except FileNotFoundError:
            return  # the log was deleted
        with source:
            if known is None or known.before < 0:
                before = self._others(entry.name, source)
            else:
                before = self._begin(path, known.before)
            with suppress(NotImplementedError, OSError):
                folder.files.makedirs(path.rpartition("/")[0], exist_ok=True)
            with folder.files.open(path, "wb") as target:
                target.write(before)
                shutil.copyfileobj(source, target, 1024 * 1024)
        self._done[entry.name] = _Uploaded(entry.size, entry.changed, self._wall(), len(before))

    def _begin(self, path: str, size: int) -> bytes:
        return bytes(self._folder.files.cat_file(path, start=0, end=size)) if size else b""

    def _others(self, name: str, source: BinaryIO) -> bytes:
        """Return the part of this log that another machine has uploaded."""
        there = self._folder.size(name)
        if not there or there > WHOLE_MAX:
            return b""
        data = bytes(self._folder.files.cat_file(self._folder.path(name)))
        here = source.read(WHOLE_MAX)
        source.seek(0)
        return part_of_others(data, here)


def part_of_others(there: bytes, here: bytes) -> bytes:
    """Return the part of an uploaded log that another machine wrote. Each line contains its time, so no two lines are equal.

    Args:
        there: the uploaded log, perhaps with an earlier state of `here` at its end.
    """
    begin = there.rfind(here.partition(b"\n")[0]) if here else -1
    return there[:begin] if begin >= 0 and here.startswith(there[begin:]) else there


def is_due(entry: LogEntry, known: _Uploaded | None, now: float) -> bool:
    """Whether this changed log is uploaded now. A growing log is uploaded from time to time."""
    if now - entry.changed >= QUIET_SECONDS:
        return True
    return known is not None and now - known.at >= GROWING_SECONDS
