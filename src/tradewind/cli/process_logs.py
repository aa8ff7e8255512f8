"""The logs of our own processes, and the pipes on which they tell the supervisor what people should see."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable

from tradewind.service.loop import Loop
from tradewind.service.private_file import private_folder

ROTATE_AT = 5 * 1024 * 1024
KEPT = 3
"""Older files of one process: name.log.1 is the youngest."""
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
    try:
        if os.stat(path).st_size >= ROTATE_AT:
            for age in range(KEPT - 1, 0, -1):
                if os.path.exists(f"{path}.{age}"):
                    os.replace(f"{path}.{age}", f"{path}.{age + 1}")
            os.replace(path, f"{path}.1")
    except FileNotFoundError:
        pass
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


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
