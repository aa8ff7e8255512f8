"""A page of memory that the triggerer and the worker host share: which trigger's code runs, and when the event loop last ran.

The page survives the triggerer. So if the code of a trigger ends the process or blocks it forever, the host knows which trigger
it was.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile

from tradewind.wire.messages import AttemptKey

_LAYOUT = struct.Struct("=qqqd")
"""Run, slot and fence (all 0: no trigger), then seconds on the monotonic clock."""
_KEY = struct.Struct("=qqq")
_RAN_AT = struct.Struct("=d")
_NO_TRIGGER = bytes(_KEY.size)


def make_page() -> int:
    """Return the descriptor of a new page. Both processes use this descriptor."""
    if hasattr(os, "memfd_create"):
        found = os.memfd_create("triggers", os.MFD_CLOEXEC)
    else:
        found, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(found, mmap.PAGESIZE)
    return found


def read_page(descriptor: int) -> tuple[AttemptKey | None, float]:
    """Return (the trigger whose code runs, the time when the event loop last ran: 0 before its first turn)."""
    run, slot, fence, ran_at = _LAYOUT.unpack(os.pread(descriptor, _LAYOUT.size, 0))
    return ((run, slot, fence) if run or slot or fence else None), ran_at


class Page:
    """The page as the triggerer uses it: for writing."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)
        os.close(descriptor)

    def code_started(self, key: AttemptKey) -> None:
        self._memory[: _KEY.size] = _KEY.pack(*key)

    def code_ended(self) -> None:
        self._memory[: _KEY.size] = _NO_TRIGGER

    def loop_ran(self, at: float) -> None:
        self._memory[_KEY.size : _LAYOUT.size] = _RAN_AT.pack(at)
