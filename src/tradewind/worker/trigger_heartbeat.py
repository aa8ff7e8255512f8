"""A page of memory that the triggerer and its host share: whose code runs at this moment, and when the event loop last turned.

What the page says outlives its writer. So a trigger whose code ends the process, or never gives the interpreter back, can be
named by the host.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile

from tradewind.wire.messages import AttemptKey

_LAYOUT = struct.Struct("=qqqd")
"""Run, slot and fence (all 0: nobody's), seconds on the monotonic clock."""
_KEY = struct.Struct("=qqq")
_TURN = struct.Struct("=d")
_NOBODY = bytes(_KEY.size)


def make_page() -> int:
    """A descriptor for both sides."""
    if hasattr(os, "memfd_create"):
        found = os.memfd_create("triggers", os.MFD_CLOEXEC)
    else:
        found, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(found, mmap.PAGESIZE)
    return found


def read_page(descriptor: int) -> tuple[AttemptKey | None, float]:
    """(whose code runs, when the loop last turned: 0 before its first turn)."""
    run, slot, fence, turned = _LAYOUT.unpack(os.pread(descriptor, _LAYOUT.size, 0))
    return ((run, slot, fence) if run or slot or fence else None), turned


class Page:
    """The triggerer's side."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)
        os.close(descriptor)

    def begins(self, key: AttemptKey) -> None:
        self._memory[: _KEY.size] = _KEY.pack(*key)

    def rests(self) -> None:
        self._memory[: _KEY.size] = _NOBODY

    def turned(self, at: float) -> None:
        self._memory[_KEY.size : _LAYOUT.size] = _TURN.pack(at)
