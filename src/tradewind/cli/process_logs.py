"""Log files of Tradewind's own processes, with rotation, and the pipes through which child processes report to the supervisor."""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections.abc import Callable, Iterable

from tradewind.platform.loop import Loop
from tradewind.platform.private_file import private_folder

ROTATE_AT = 5 * 1024 * 1024
ROTATED_FILES_KEPT = 3
"""Number of rotated files of one process that are kept; name.log.1 is the newest."""
CHECK_SECONDS = 5.0
"""Time between two checks of the sizes of the log files."""
_COPY = 1024 * 1024
_READ = 64 * 1024
_LINE_MAX = 64 * 1024


def logs_folder(home: str) -> str:
    return os.path.join(home, "logs", "processes")


def log_file(home: str, name: str) -> str:
    return os.path.join(logs_folder(home), f"{name}.log")


def open_log(home: str, name: str) -> int:
    """Open the log of the process `name` for appending and return the descriptor. A log that is too large is rotated first.

    Raises:
        OSError: the folder or file cannot be created.
    """
    private_folder(logs_folder(home))
    path = log_file(home, name)
    rotate(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def rotate(path: str, at: int = 0) -> bool:
    """Rotate a log that has at least `at` bytes (0: `ROTATE_AT`), also while processes write to it. True: it was rotated.

    The file itself stays, because its writers and their child processes have it open in append mode. It is copied and then
    truncated, so a line that is written between the last read and the truncation is lost.

    Raises:
        OSError: the file cannot be copied.
    """
    try:
        if os.stat(path).st_size < (at or ROTATE_AT):
            return False
    except FileNotFoundError:
        return False
    for age in range(ROTATED_FILES_KEPT - 1, 0, -1):
        if os.path.exists(f"{path}.{age}"):
            os.replace(f"{path}.{age}", f"{path}.{age + 1}")
    aside = os.open(f"{path}.1", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(path, "rb", buffering=0) as grown, os.fdopen(aside, "wb") as copy:
        while data := grown.read(_COPY):
            copy.write(data)
        os.truncate(path, 0)
    return True


class RotatingFiles(logging.Handler):
    """Rotates the files that this process writes to: checks their sizes from time to time, when a record is logged."""

    def __init__(self, paths: Iterable[str]) -> None:
        super().__init__()
        self._paths = sorted(set(paths))
        self._next = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        self.rotate_if_due()

    def rotate_if_due(self) -> None:
        """Rotate the files that are too large, if the last check was at least `CHECK_SECONDS` ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + CHECK_SECONDS
        for path in self._paths:
            try:
                rotate(path)
            except OSError:
                pass  # the next check tries again


def rotate_own_files() -> None:
    """Rotate the files that this process and its children write to (see `RotatingFiles`)."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, RotatingFiles):
            handler.rotate_if_due()


class ChildPipe:
    """The pipe through which one child process sends lines to this process. Writing to it never blocks.

    Args:
        on_line: called with each line, without its newline.
    """

    def __init__(self, loop: Loop, on_line: Callable[[str], None]) -> None:
        self._read, self.write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._on_line = on_line
        self._rest = b""
        loop.watch(self._read, selectors.EVENT_READ, self._ready)

    def _ready(self, events: int) -> None:
        try:
            data = os.read(self._read, _READ)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_LINE_MAX:]
        for line in lines:
            self._on_line(line.decode(errors="replace"))
