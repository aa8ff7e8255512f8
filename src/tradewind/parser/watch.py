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
from collections.abc import Callable, Iterable, Iterator

from tradewind.observe.log import Log
from tradewind.parser.ignore import IGNORE_FILES
from tradewind.platform.loop import Loop

log = Log("watch")

_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ATTRIB = 0x400, 0x800, 0x4
_ONLYDIR = 0x01000000
_MASK_ADD = 0x20000000
_ISDIR, _OVERFLOW, _IGNORED = 0x40000000, 0x4000, 0x8000
_MASK = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ATTRIB | _ONLYDIR
_LINK_MASK = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLYDIR
"""For a folder that only holds a symbolic link on the way to a watched folder."""
_LINKS_MAX = 40
"""So many symbolic links the kernel follows in one path."""
_EVENT = struct.Struct("iIII")
_READ = 1 << 16


class FolderWatch:
    """Watches folders, not below them, and the symbolic links that lead to them.

    A watch belongs to the folder that a path led to. When a link in the path is replaced (git-sync does so), the watched folder
    itself hears nothing. So the folders that hold these links are watched, too, for the names of the links alone.

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
        self._links: dict[str, set[str]] = {}
        """Folder → names in it that are links on the way to a watched folder."""
        self._link_numbers: dict[str, int] = {}
        self._fresh: set[str] = set()
        self._fresh_links: dict[str, set[str]] = {}
        self.complete = True
        """False: the kernel grants no more watches; whoever needs to know must look by himself."""
        loop.watch(self._file, selectors.EVENT_READ, lambda events: self._hear())

    def add(self, path: str) -> None:
        """Watch a folder. Watching it again is right and cheap: it may have been replaced by another one."""
        if self._watch(path, _MASK, self._numbers):
            self._fresh.add(path)

    def add_links(self, path: str) -> None:
        """Watch every symbolic link on the way to this folder (absolute path): each may be replaced by another one."""
        for folder, name in links_on_the_way(path):
            self._fresh_links.setdefault(folder, set()).add(name)
            if folder in self._links:
                self._links[folder].add(name)
            else:
                self._links[folder] = {name}
            self._watch(folder, _LINK_MASK | _MASK_ADD, self._link_numbers)

    def _watch(self, path: str, mask: int, numbers: dict[str, int]) -> bool:
        number = self._libc.inotify_add_watch(self._file, os.fsencode(path), mask)
        if number >= 0:
            before = numbers.get(path, number)
            numbers[path] = number
            if before != number:
                self._drop(before)
            return True
        code = ctypes.get_errno()
        if code == errno.ENOSPC and self.complete:
            self.complete = False
            log.warning("the kernel grants no more watches (sysctl fs.inotify.max_user_watches); looking instead", folder=path)
        return False

    def settle(self) -> None:
        """Drop the watches of folders, and of links, that were not added since the last call."""
        for path in [path for path in self._numbers if path not in self._fresh]:
            self._drop(self._numbers.pop(path))
        for path in [path for path in self._link_numbers if path not in self._fresh_links]:
            self._drop(self._link_numbers.pop(path))
        self._links, self._fresh_links = self._fresh_links, {}
        self._fresh.clear()

    def _drop(self, number: int) -> None:
        """Remove a watch, unless the same folder is watched under another path. The kernel may have done so already."""
        if number not in self._numbers.values() and number not in self._link_numbers.values():
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
            wanted = any(self._concerns(*event) for event in _events(data)) or wanted
        if wanted:
            self._ring()

    def _concerns(self, number: int, mask: int, name: str) -> bool:
        """May this event of one watch change what a look finds?"""
        if any(name in self._links[folder] for folder, one in self._link_numbers.items() if one == number):
            return True
        folder = next((path for path, one in self._numbers.items() if one == number), None)
        if folder is None:
            return bool(mask & _OVERFLOW)
        return _matters(mask, name) or (bool(mask & (_MOVED_TO | _CREATE)) and os.path.islink(os.path.join(folder, name)))


def links_on_the_way(path: str) -> Iterator[tuple[str, str]]:
    """(real folder, name) of every symbolic link that the kernel follows to reach an absolute path.

    The last one is the first name that does not exist, if there is one: whatever comes there leads on.
    """
    here, names, links = "/", [name for name in reversed(path.split("/")) if name], 0
    while names:
        name = names.pop()
        if name in (".", ".."):
            here = os.path.dirname(here) if name == ".." else here
            continue
        there = os.path.join(here, name)
        try:
            target = os.readlink(there)
        except OSError as error:
            if error.errno != errno.EINVAL:  # that it is no link
                yield here, name
                return
            here = there
            continue
        yield here, name
        links += 1
        if links > _LINKS_MAX:
            return
        here = "/" if target.startswith("/") else here
        names += [part for part in reversed(target.split("/")) if part]


def _events(data: bytes) -> Iterable[tuple[int, int, str]]:
    """(number of the watch, mask, name)."""
    position = 0
    while position < len(data):
        number, mask, _, length = _EVENT.unpack_from(data, position)
        position += _EVENT.size
        yield number, mask, os.fsdecode(data[position : position + length].rstrip(b"\0"))
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
