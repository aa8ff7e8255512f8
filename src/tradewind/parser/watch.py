"""A bell that rings when something in the watched folders changes: inotify, straight in the loop.

What changed does not matter: whoever hears the bell looks at the folder. So a lost event, an overflow of the kernel's queue or a
folder that is renamed need no care of their own. (watchfiles would do, too, but waits in a thread that wakes twenty times a
second; this costs nothing while nothing happens.)
"""

from __future__ import annotations

import ctypes
import errno
import os
import selectors
import struct
import sys
from collections.abc import Callable, Iterable

from tradewind.observe.log import Log
from tradewind.parser.ignore import IGNORE_FILES
from tradewind.service.loop import Loop

log = Log("watch")

_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ATTRIB = 0x400, 0x800, 0x4
_ONLYDIR = 0x01000000
_ISDIR, _OVERFLOW, _IGNORED = 0x40000000, 0x4000, 0x8000
_MASK = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ATTRIB | _ONLYDIR
_EVENT = struct.Struct("iIII")
_READ = 1 << 16


class FolderWatch:
    """Watches folders, not below them.

    Args:
        ring: called from the loop when something may have changed.
    """

    def __init__(self, loop: Loop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._numbers: dict[str, int] = {}
        self._fresh: set[str] = set()
        self.complete = True
        """False: the kernel grants no more watches; whoever needs to know must look by himself."""
        loop.watch(self._file, selectors.EVENT_READ, lambda events: self._hear())

    def add(self, path: str) -> None:
        """Watch a folder. Watching it again is right and cheap: it may have been replaced by another one."""
        number = self._libc.inotify_add_watch(self._file, os.fsencode(path), _MASK)
        if number >= 0:
            before = self._numbers.get(path, number)
            self._numbers[path] = number
            self._fresh.add(path)
            if before != number:
                self._drop(before)
            return
        code = ctypes.get_errno()
        if code == errno.ENOSPC and self.complete:
            self.complete = False
            log.warning("the kernel grants no more watches (sysctl fs.inotify.max_user_watches); looking instead", folder=path)

    def settle(self) -> None:
        """Drop the watches of folders that were not added since the last call."""
        for path in [path for path in self._numbers if path not in self._fresh]:
            self._drop(self._numbers.pop(path))
        self._fresh.clear()

    def _drop(self, number: int) -> None:
        """Remove a watch, unless the same folder is watched under another path. The kernel may have done so already."""
        if number not in self._numbers.values():
            self._libc.inotify_rm_watch(self._file, number)

    def close(self) -> None:
        if self._file >= 0:
            self._loop.unwatch(self._file)
            os.close(self._file)
            self._file = -1

    def _hear(self) -> None:
        wanted = False
        while self._file >= 0:
            try:
                data = os.read(self._file, _READ)
            except BlockingIOError:
                break
            wanted = any(_matters(mask, name) for mask, name in _events(data)) or wanted
        if wanted:
            self._ring()


def _events(data: bytes) -> Iterable[tuple[int, str]]:
    position = 0
    while position < len(data):
        _, mask, _, length = _EVENT.unpack_from(data, position)
        position += _EVENT.size
        yield mask, os.fsdecode(data[position : position + length].rstrip(b"\0"))
        position += length


def _matters(mask: int, name: str) -> bool:
    """May this event change what a look at the folder finds?"""
    if mask & _OVERFLOW:
        return True
    if mask & _IGNORED or name == "__pycache__" or name.endswith(("~", ".swp", ".swx", ".tmp", ".pyc")):
        return False
    if mask & _ISDIR or not name:
        return True
    if name.endswith(".py") or name in IGNORE_FILES:
        return True
    # a link that is renamed may lead elsewhere (`..data` of a mounted volume); what is written into other files is not ours
    return bool(mask & (_MOVED_TO | _CREATE | _DELETE)) and "." not in name.lstrip(".")


def open_watch(loop: Loop, ring: Callable[[], None]) -> FolderWatch | None:
    """A watch, where this system has one."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return FolderWatch(loop, ring)
    except OSError as error:
        log.warning(
            "the DAG folder cannot be watched (sysctl fs.inotify.max_user_instances); looking instead", why=error.strerror
        )
        return None
