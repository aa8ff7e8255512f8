"""The logs of our own processes, and the pipes on which they tell the supervisor what people should see."""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections.abc import Callable, Iterable

from tradewind.platform.loop import Loop
from tradewind.platform.private_file import private_folder

ROTATE_AT = 5 * 1024 * 1024
KEPT = 3
"""Older files of one process: name.log.1 is the youngest."""
LOOK_SECONDS = 5.0
"""Between two looks at the sizes of logs that are written into."""
_COPY = 1024 * 1024
_READ = 64 * 1024
_LINE_MAX = 64 * 1024


def logs_folder(home: str) -> str:
    return os.path.join(home, "logs", "processes")


def log_file(home: str, name: str) -> str:
    return os.path.join(logs_folder(home), f"{name}.log")


def open_log(home: str, name: str) -> int:
    """A descriptor that appends to the log of the process called `name`; a file grown too large is put aside first.

    Raises:
        OSError: the folder or file cannot be made.
    """
    private_folder(logs_folder(home))
    path = log_file(home, name)
    rotate(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def rotate(path: str, at: int = 0) -> bool:
    """Put the contents of a log aside when it has grown to `at` bytes (0: `ROTATE_AT`), while processes write into it.

    The file stays the same one, because its writers, and the children that inherited it, hold it open; they have to append.
    It is copied and then cut, so a line that comes between the last read and the cut is lost.

    Raises:
        OSError: it cannot be copied.
    """
    try:
        if os.stat(path).st_size < (at or ROTATE_AT):
            return False
    except FileNotFoundError:
        return False
    for age in range(KEPT - 1, 0, -1):
        if os.path.exists(f"{path}.{age}"):
            os.replace(f"{path}.{age}", f"{path}.{age + 1}")
    aside = os.open(f"{path}.1", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(path, "rb", buffering=0) as grown, os.fdopen(aside, "wb") as copy:
        while data := grown.read(_COPY):
            copy.write(data)
        os.truncate(path, 0)
    return True


class RotatingFiles(logging.Handler):
    """Keeps the files bounded that this process itself writes into: looks at their sizes now and then, when something is logged."""

    def __init__(self, paths: Iterable[str]) -> None:
        super().__init__()
        self._paths = sorted(set(paths))
        self._next = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        self.look()

    def look(self) -> None:
        """Put aside what has grown too large, if the last look was long enough ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_SECONDS
        for path in self._paths:
            try:
                rotate(path)
            except OSError:
                pass  # it grows on; the next look tries again


def rotate_own_files() -> None:
    """One look at the files that this process and its children write into (see `RotatingFiles`)."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, RotatingFiles):
            handler.look()


class TellPipe:
    """One process's line to us. Its end never blocks the process that writes.

    Args:
        heard: called with each line, without its end.
    """

    def __init__(self, loop: Loop, heard: Callable[[str], None]) -> None:
        self._read, self.write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._heard = heard
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
            self._heard(line.decode(errors="replace"))
