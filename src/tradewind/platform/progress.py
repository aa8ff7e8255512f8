"""Progress files: the event loop of each process writes a small file every few seconds, so that others see that it makes progress.

The time in the file is monotonic. The monotonic clock stops while the machine sleeps, so a laptop that wakes up shows no stall. The
loop itself writes the file; a separate thread would also write it while the loop is stuck.
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
"""Signature, boot, pid, wall-clock time of the start, monotonic time of the last stamp."""
_SIGN = b"TWp1"

STAMPS_PER_LIMIT = 12
"""Number of stamps within `core.stall_limit`."""
WITHOUT_LIMIT = 60_000_000
"""Microseconds: replaces the limit if it is switched off."""
SHORTEST_INTERVAL = 50_000


def stamp_interval(limit: int) -> int:
    """Microseconds between two stamps."""
    return max(SHORTEST_INTERVAL, (limit or WITHOUT_LIMIT) // STAMPS_PER_LIMIT)


def unhealthy_after(limit: int) -> int:
    """Microseconds without a stamp after which the process is shown as unhealthy; it is killed only after `limit`."""
    return (limit or WITHOUT_LIMIT) // 2


class Progress(NamedTuple):
    """The last stamp of a process."""

    pid: int
    started: int
    """Wall clock, microseconds."""
    age: int
    """Microseconds since the stamp, without the time in which the machine slept."""
    alive: bool
    """Whether the process exists."""


def read_progress(path: str, clock: Clock) -> Progress | None:
    """Read the last stamp; None: there is no such process, or it ended normally, or the machine was restarted."""
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
        pass  # it belongs to another user, so it exists
    return Progress(pid, started, max(0, clock.monotonic() - stamped), alive)


class Stamp:
    """Writes the progress file of this process.

    Args:
        path: the file; its folder exists.
        also: called with each stamp, to report progress in another way too.
    """

    def __init__(self, path: str, clock: Clock, also: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._clock = clock
        self._also = also
        self._started = clock.wall()

    def stamp(self) -> None:
        """Write a stamp. An error of the disk is ignored."""
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
        """Stamp in the loop's first turn, and then every `interval` microseconds."""

        def turn() -> None:
            self.stamp()
            loop.call_later(interval, turn)

        loop.call_later(0, turn)

    def end(self) -> None:
        """Remove the file, because the process ends normally."""
        try:
            os.unlink(self._path)
        except OSError:
            pass


def _this_boot() -> int:
    return zlib.crc32(boot_id().encode())
