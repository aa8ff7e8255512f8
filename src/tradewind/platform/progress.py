"""Does a process of ours make progress? Its own loop says so every few seconds, in a small file that others read.

The moment is one of the monotonic clock, which stands still while the machine sleeps: a laptop that wakes has not stood still for a
night. A thread could say that a process is well whose loop is stuck, so none does.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

from tradewind.platform.boot import boot_id
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop

_LAYOUT = struct.Struct("=4sIqqq")
"""Sign, boot, pid, wall-clock moment of the start, monotonic moment of the last turn."""
_SIGN = b"TWp1"

STAMPS_PER_LIMIT = 12
"""A loop stamps so often within `core.stall_limit`."""
WITHOUT_LIMIT = 60_000_000
"""Microseconds: what counts as the limit where it is switched off."""
SHORTEST_INTERVAL = 50_000


def stamp_interval(limit: int) -> int:
    """Microseconds between two stamps."""
    return max(SHORTEST_INTERVAL, (limit or WITHOUT_LIMIT) // STAMPS_PER_LIMIT)


def unhealthy_after(limit: int) -> int:
    """Microseconds without a stamp after which the process is shown as unhealthy; it is ended only after `limit`."""
    return (limit or WITHOUT_LIMIT) // 2


class Progress(NamedTuple):
    """What a process said last."""

    pid: int
    started: int
    """Wall clock, microseconds."""
    age: int
    """Microseconds since its loop last turned, without the time in which the machine slept."""
    alive: bool
    """Is there such a process?"""


def read_progress(path: str, clock: Clock) -> Progress | None:
    """What the process that stamps this file said last; None: there is none, or it ended in order, or the machine was restarted."""
    try:
        with open(path, "rb") as file:
            sign, boot, pid, started, stamped = _LAYOUT.unpack(file.read(_LAYOUT.size))
    except (OSError, struct.error):
        return None
    if sign != _SIGN or boot != _this_boot():
        return None
    alive = True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        alive = False
    except PermissionError:
        pass  # it is somebody else's, and it lives
    return Progress(pid, started, max(0, clock.monotonic() - stamped), alive)


class Stamp:
    """A process's own side.

    Args:
        path: its file; the folder exists.
        also: called with each stamp, for whoever listens in another way.
    """

    def __init__(self, path: str, clock: Clock, also: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._clock = clock
        self._also = also
        self._started = clock.wall()

    def stamp(self) -> None:
        """The loop turns. A disk that takes nothing is no reason to stop."""
        self._also()
        data = _LAYOUT.pack(_SIGN, _this_boot(), os.getpid(), self._started, self._clock.monotonic())
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(file, data, 0)
            finally:
                os.close(file)
        except OSError:
            pass

    def keep(self, loop: Loop, interval: int) -> None:
        """Stamp in the loop's first turn, and then whenever `interval` microseconds have gone by."""

        def turn() -> None:
            self.stamp()
            loop.call_later(interval, turn)

        loop.call_later(0, turn)

    def end(self) -> None:
        """The process ends in order: nobody need miss it."""
        try:
            os.unlink(self._path)
        except OSError:
            pass


def _this_boot() -> int:
    return zlib.crc32(boot_id().encode())
