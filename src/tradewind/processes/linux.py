"""prctl, pidfds and /proc. Import only where `processes.HAVE_LINUX`.

Linux semantics that matter here: a parent-death signal fires when the *thread* that forked the child ends, so only
single-threaded processes fork; it is cleared by exec of a set-uid program; it is missed if the parent died before it was
set, hence the check of the parent afterwards. Orphans go to the nearest living ancestor that is a subreaper.
"""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


def _prctl(option: int, argument: int) -> None:
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(parent: int, how: int = signal.SIGKILL) -> None:
    """Get `how` when the parent dies; exit at once when it is dead already.

    Args:
        parent: pid the caller believes to be its parent.
    """
    _prctl(_PR_SET_PDEATHSIG, how)
    if os.getppid() != parent:
        os._exit(111)


def become_subreaper() -> None:
    """Orphans below this process become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def prepared_name(name: str) -> ctypes.Array[ctypes.c_char]:
    """A name for `set_name`, made before a fork so that the child need not."""
    return ctypes.create_string_buffer(name.encode()[:15])


def set_name(name: str | ctypes.Array[ctypes.c_char]) -> None:
    """The short name that ps and top show (15 bytes)."""
    buffer = prepared_name(name) if isinstance(name, str) else name
    _libc.prctl(_PR_SET_NAME, ctypes.addressof(buffer), 0, 0, 0)


def own_children() -> list[int]:
    """Pids of the direct children of this process, which has one thread."""
    me = os.getpid()
    file = os.open(f"/proc/self/task/{me}/children", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = b""
        while piece := os.read(file, 65536):
            found += piece
    finally:
        os.close(file)
    return [int(word) for word in found.split()]


def give_back_memory() -> None:
    """Return freed memory to the system (glibc; elsewhere nothing happens): after a burst of work, before a long rest."""
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


def children(pid: int | None = None) -> list[int]:
    """Pids of the direct children of a process (default: this one)."""
    me = os.getpid() if pid is None else pid
    try:
        found = []
        for thread in os.listdir(f"/proc/{me}/task"):
            with open(f"/proc/{me}/task/{thread}/children", "rb") as file:
                found += [int(word) for word in file.read().split()]
        return found
    except (FileNotFoundError, ProcessLookupError):
        return []


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which the process began: with the pid, its identity. None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(data[data.rindex(b")") + 2 :].split()[19])


def is_zombie(pid: int) -> bool:
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return data[data.rindex(b")") + 2 : data.rindex(b")") + 3] == b"Z"


def marked(name: str, value: str) -> list[int]:
    """Pids of living processes whose environment, as it was when they were started, holds `name=value`."""
    needle = f"{name}={value}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    environment = file.read()
            except OSError:
                continue
            if needle in environment and needle in environment.split(b"\0"):
                found.append(int(entry))
    return found


def kill_quietly(pid: int, number: int = signal.SIGKILL) -> bool:
    """Send a signal; False when the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def descendants(pid: int) -> list[int]:
    """Pids below `pid`, parents before children."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def reap_and_kill_orphans(registered: frozenset[int] | set[int], at_most: int = 10_000) -> list[int]:
    """Kill every child of this process that is not registered, and whatever that brings up; the pids killed.

    For a subreaper: what lands on it without being registered belonged to something that has ended.
    """
    killed: list[int] = []
    while len(killed) < at_most:
        strays = [pid for pid in own_children() if pid not in registered]
        if not strays:
            return killed
        for pid in strays:
            if kill_quietly(pid):
                killed.append(pid)
        for pid in strays:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass
    return killed
