"""Task logs in a local folder: reads them, and deletes logs of deleted runs, old logs, and logs beyond a total size.

Only files that our workers wrote are deleted (`log_paths.is_log`), never a link, and a limited number at a time. A folder
is deleted when it is empty. Tasks run with our own uid and can write into the folder, so every folder on the way to a log is opened
without following links, and only regular files are read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from tradewind.storage.port import LogEntry, Removal
from tradewind.wire.log_paths import is_log

_DEEPEST = 2
"""Number of folder levels below the folder of a run, in the layout of earlier releases: task, map index."""


class LocalLogs:
    """See the module and `storage.port.LogStorage`.

    Args:
        root: absolute path of the log folder.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def open(self, name: str) -> BinaryIO:
        root, path = self._root, name
        try:
            folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise FileNotFoundError(f"no log folder at {root}: {error.strerror}") from None
        try:
            *folders, last = path.split("/")
            for part in folders:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            raise FileNotFoundError(f"no log at {path}: {error.strerror}") from None
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise FileNotFoundError(f"no log at {path}: not a regular file")
        return os.fdopen(file, "rb")

    def shown(self, name: str) -> str:
        return os.path.join(self._root, name)

    def problem(self) -> str | None:
        if os.path.exists(self._root) and not os.access(self._root, os.W_OK | os.X_OK):
            return f"the log folder {self._root} cannot be written. Check its owner, its permissions and its disk."
        return None

    def entries(self) -> Iterator[LogEntry]:
        for dag in _folders(self._root):
            for run in _folders(os.path.join(self._root, dag)):
                yield from self.entries_of(f"{dag}/{run}")

    def entries_of(self, run: str) -> Iterator[LogEntry]:
        """The logs of one run. `run` is the folder of the run."""
        return self._walk(run, run, 0)

    def _walk(self, run: str, folder: str, depth: int) -> Iterator[LogEntry]:
        try:
            with os.scandir(os.path.join(self._root, folder)) as entries:
                for entry in entries:
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            if depth < _DEEPEST:
                                yield from self._walk(run, f"{folder}/{entry.name}", depth + 1)
                        elif entry.is_file(follow_symlinks=False) and is_log(entry.name):
                            facts = entry.stat(follow_symlinks=False)
                            yield LogEntry(run, f"{folder}/{entry.name}", facts.st_size, facts.st_mtime)
                    except FileNotFoundError:
                        continue
        except (FileNotFoundError, NotADirectoryError):
            return

    def remove(self, entry: LogEntry) -> None:
        path = os.path.join(self._root, entry.name)
        with suppress(FileNotFoundError):
            os.unlink(path)
        self._remove_empty(os.path.dirname(path))

    def remove_run(self, run: str, older_than: float | None, at_most: int) -> Removal:
        files = taken = 0
        for found in list(_first(self.entries_of(run), older_than, at_most)):
            self.remove(found)
            files, taken = files + 1, taken + found.size
        if files < at_most:
            self._remove_empty(os.path.join(self._root, run))
        return Removal(files, taken, files < at_most)

    def _remove_empty(self, folder: str) -> None:
        """Delete a folder if it is empty, then each folder above it that has become empty, but not the log folder itself."""
        while len(folder) > len(self._root):
            try:
                os.rmdir(folder)
            except OSError:
                return
            folder = os.path.dirname(folder)


def _first(logs: Iterator[LogEntry], older_than: float | None, at_most: int) -> Iterator[LogEntry]:
    for found in logs:
        if at_most <= 0:
            return
        if older_than is None or found.changed < older_than:
            at_most -= 1
            yield found


def _folders(path: str) -> list[str]:
    """Names of the folders in a folder, without links."""
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
