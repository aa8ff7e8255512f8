"""Notification when something in the watched folders changes: inotify, in the event loop.

The notification does not say what changed: the receiver scans the folder. So lost events, an overflow of the kernel's queue and
renamed folders need no special handling. (The library watchfiles would also work, but its thread wakes up twenty times a
second; this costs nothing while nothing changes.)
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
from tradewind.platform.loop import Loop
from tradewind.sdk.ignore_files import IGNORE_FILES

log = Log("watch")

_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ATTRIB = 0x400, 0x800, 0x4
_ONLYDIR = 0x01000000
_MASK_ADD = 0x20000000
_ISDIR, _OVERFLOW, _IGNORED = 0x40000000, 0x4000, 0x8000
_MASK = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ATTRIB | _ONLYDIR
_LINK_MASK = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLYDIR
"""For a folder that is watched only because it contains a symbolic link on the path to a watched folder."""
_LINKS_MAX = 40
"""Maximum number of symbolic links that the kernel follows in one path."""
_EVENT = struct.Struct("iIII")
_READ = 1 << 16


class FolderWatch:
    """Watches folders (not their subfolders), and the symbolic links in their paths.

    A watch belongs to the folder that a path led to. If a link in the path is replaced (git-sync does this), the watched folder
    gets no event. So the folders that contain these links are watched, too, but only for changes of the links.

    Args:
        on_change: called from the loop when something may have changed.
    """

    def __init__(self, loop: Loop, on_change: Callable[[], None]) -> None:
        self._loop = loop
        self._on_change = on_change
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._numbers: dict[str, int] = {}
        self._links: dict[str, set[str]] = {}
        """Folder → names in it that are links on the path to a watched folder."""
        self._link_numbers: dict[str, int] = {}
        self._added: set[str] = set()
        self._added_links: dict[str, set[str]] = {}
        self.complete = True
        """False: the kernel's limit on watches is reached, so the owner has to scan regularly."""
        loop.watch(self._file, selectors.EVENT_READ, lambda events: self._read_events())

    def add(self, path: str) -> None:
        """Watch a folder. Adding it again is correct and cheap; the folder may have been replaced by another one."""
        if self._watch(path, _MASK, self._numbers):
            self._added.add(path)

    def add_links(self, path: str) -> None:
        """Watch every symbolic link in the path of this folder (absolute path), because each may be replaced."""
        for folder, name in symlinks_in_path(path):
            self._added_links.setdefault(folder, set()).add(name)
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
            log.warning(
                "the limit on inotify watches is reached (sysctl fs.inotify.max_user_watches); scanning instead", folder=path
            )
        return False

    def remove_stale(self) -> None:
        """Remove the watches of folders and links that were not added since the last call."""
        for path in [path for path in self._numbers if path not in self._added]:
            self._drop(self._numbers.pop(path))
        for path in [path for path in self._link_numbers if path not in self._added_links]:
            self._drop(self._link_numbers.pop(path))
        self._links, self._added_links = self._added_links, {}
        self._added.clear()

    def _drop(self, number: int) -> None:
        """Remove a watch, unless the same folder is watched under another path. The kernel may have removed it already."""
        if number not in self._numbers.values() and number not in self._link_numbers.values():
            self._libc.inotify_rm_watch(self._file, number)

    def close(self) -> None:
        if self._file >= 0:
            self._loop.unwatch(self._file)
            os.close(self._file)
            self._file = -1

    def _read_events(self) -> None:
        wanted = False
        while self._file >= 0:
            try:
                data = os.read(self._file, _READ)
            except BlockingIOError:
                break
            wanted = any(self._is_relevant(*event) for event in _events(data)) or wanted
        if wanted:
            self._on_change()

    def _is_relevant(self, number: int, mask: int, name: str) -> bool:
        """True if this event of one watch may change the result of a scan."""
        if any(name in self._links[folder] for folder, one in self._link_numbers.items() if one == number):
            return True
        folder = next((path for path, one in self._numbers.items() if one == number), None)
        if folder is None:
            return bool(mask & _OVERFLOW)
        return _may_change_scan(mask, name) or (
            bool(mask & (_MOVED_TO | _CREATE)) and os.path.islink(os.path.join(folder, name))
        )


def symlinks_in_path(path: str) -> Iterator[tuple[str, str]]:
    """(real folder, name) of every symbolic link that the kernel follows on the way to an absolute path.

    The last item is the first name that does not exist, if there is one, because it may be created later.
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
            if error.errno != errno.EINVAL:  # EINVAL: the name exists and is not a link
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


def _may_change_scan(mask: int, name: str) -> bool:
    """True if this event may change the result of a scan of the folder."""
    if mask & _OVERFLOW:
        return True
    if mask & _IGNORED or name == "__pycache__" or name.endswith(("~", ".swp", ".swx", ".tmp", ".pyc")):
        return False
    if mask & _ISDIR or not name:
        return True
    if name.endswith((".py", ".zip")) or name in IGNORE_FILES:
        return True
    # a renamed link may lead to another folder (`..data` of a mounted volume); changes of other files do not matter
    return bool(mask & (_MOVED_TO | _CREATE | _DELETE)) and "." not in name.lstrip(".")


def open_watch(loop: Loop, on_change: Callable[[], None]) -> FolderWatch | None:
    """A watch, if this operating system supports it."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return FolderWatch(loop, on_change)
    except OSError as error:
        log.warning("cannot watch the DAG folder (sysctl fs.inotify.max_user_instances); scanning instead", why=error.strerror)
        return None
