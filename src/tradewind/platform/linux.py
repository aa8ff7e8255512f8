"""prctl, pidfds and /proc. Import only where `processes.HAVE_LINUX`.

Linux semantics that matter here: a parent-death signal fires when the *thread* that forked the child ends, so only
single-threaded processes fork; it is cleared by exec of a set-uid program; it is missed if the parent died before it was
set, hence the check of the parent afterwards. Orphans go to the nearest living ancestor that is a subreaper.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

_F_SETSIG = 10
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


def die_with_parent(parent: int, how: int = 9) -> None:
    """Get `how` (SIGKILL unless told) when the parent dies; exit at once when it is dead already.

    Args:
        parent: pid the caller believes to be its parent.
    """
    global _parent
    if _prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0) != 0:
        raise _failure()
    _parent = parent
    if os.getppid() != parent:
        os._exit(111)


_parent = 0
"""With whom this process dies by a parent-death signal; 0: with nobody, or by `die_with_writer`."""


def die_with_writer(pipe: int) -> int:
    """Get SIGKILL when the only process that holds the writing end of this pipe ends, whoever the parent is by then.

    The pipe is opened anew: the process that a file's signals go to belongs to the open file, which forks share. A writer that has
    ended before this call is not noticed.

    Args:
        pipe: descriptor of the reading end. Nothing is ever written into it.

    Returns:
        The descriptor that does this; closed, it does not any more.
    """
    global _parent
    own = _open(f"/proc/self/fd/{pipe}", _CLOSE_ON_EXEC)
    _fcntl(own, _F_SETOWN, _getpid())
    _fcntl(own, _F_SETSIG, 9)
    _fcntl(own, _F_SETFL, _ASYNC)
    _parent = 0
    return own


# every fork that becomes a task calls this: plain names, which it need not look up in modules
_open, _getpid, _fcntl = os.open, os.getpid, fcntl.fcntl
_CLOSE_ON_EXEC, _ASYNC, _F_SETOWN, _F_SETFL = os.O_RDONLY | os.O_CLOEXEC, os.O_ASYNC, fcntl.F_SETOWN, fcntl.F_SETFL


def changed_user() -> None:
    """After a change of user, which takes away the parent-death signal and the right to look at one's own /proc."""
    _prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    if _parent:
        die_with_parent(_parent)


def become_subreaper() -> None:
    """Orphans below this process become its children."""
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise _failure()


def set_name(name: str) -> None:
    """The short name that ps and top show (15 bytes)."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _prctl(_PR_SET_NAME, ctypes.addressof(buffer), 0, 0, 0)


_task_name = ctypes.create_string_buffer(b"tw-task")
_TASK_NAME = ctypes.addressof(_task_name)


def become_task() -> None:
    """`become_subreaper` and the name of a task's process, touching as little as a fresh fork can."""
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise _failure()
    _prctl(_PR_SET_NAME, _TASK_NAME, 0, 0, 0)


_title_at = _title_size = 0


def find_title() -> None:
    """Where the arguments of this process lie; children have them in the same place. Before the first fork."""
    global _title_at, _title_size
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5), counted from the state
    if 0 < begin < end:
        _title_at, _title_size = begin, end - begin


def set_title(title: str) -> None:
    """What ps shows as this process's command, as far as there is room. The environment stays readable."""
    if _title_size:
        text = title.encode()[: _title_size - 1]
        ctypes.memmove(_title_at, text.ljust(_title_size, b"\0"), _title_size)


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


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


def fill_holes() -> int:
    """Take, for ever, the free memory that lies between living objects; the bytes taken.

    For a process that is forked many times: what a fork allocates lies together at the end of the heap then, instead of in a
    hundred holes on as many pages, each of which the fork would have to copy. (glibc's allocator; elsewhere nothing happens.)
    """
    if not hasattr(_libc, "malloc_trim"):
        return 0
    malloc, free = _libc.malloc, _libc.free
    malloc.restype, malloc.argtypes, free.argtypes, free.restype = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p], None
    taken = 0
    for size in (*range(64 * 1024, 2048, -2048), *range(2048, 8, -16)):
        end = malloc(_NO_HOLE)
        while (piece := malloc(size)) is not None and piece < end:
            taken += size
        free(piece)
        free(end)
    return taken


_NO_HOLE = 100 * 1024
"""Bytes: more than any hole worth filling, less than the allocator takes from the system directly."""


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
    return _state(pid) == b"Z"


def is_stopped(pid: int) -> bool:
    """Was it stopped by a signal? (One that a debugger holds is not meant.)"""
    return _state(pid) == b"T"


def _state(pid: int) -> bytes:
    """The letter that ps shows; empty when it is gone."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
    return data[data.rindex(b")") + 2 : data.rindex(b")") + 3]


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


def reap_and_kill_orphans(
    registered: frozenset[int] | set[int], at_most: int = 10_000, ask: Callable[[], set[int]] | None = None
) -> list[int]:
    """Kill every child of this process that is not registered, and whatever that brings up; the pids killed.

    `ask` is called when there is such a child: which others, besides `registered`, are to live.

    For a subreaper: what lands on it without being registered belonged to something that has ended. A process that does not die of
    SIGKILL for a while (it waits for a disk, or somebody traces it) holds nobody up: it is reaped by a later call.
    """
    killed: list[int] = []
    while len(killed) < at_most:
        strays = [pid for pid in own_children() if pid not in registered and not _is_dying(pid)]
        if strays and ask is not None:
            spared = ask()
            strays = [pid for pid in strays if pid not in spared]
        if not strays:
            return killed
        for pid in strays:
            if kill_quietly(pid):
                killed.append(pid)
        deadline = time.monotonic() + DYING_SECONDS
        for pid in strays:
            _reap(pid, deadline)
    return killed


DYING_SECONDS = 2.0
"""So long killed processes are waited for."""
_dying: set[int] = set()
"""Killed children that had not died in time."""


def _reap(pid: int, deadline: float) -> None:
    """Wait for a child that was killed, at most until then."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        pass  # no descriptor is free: it is looked at once
    else:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        os.close(handle)
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == 0:
            _dying.add(pid)
    except ChildProcessError:
        pass


def _is_dying(pid: int) -> bool:
    """Was it killed before and is still there? It is reaped here when it has died at last."""
    if pid not in _dying:
        return False
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == 0:
            return True
    except ChildProcessError:
        pass
    _dying.discard(pid)
    return True


def oom_kills(path: str = "/proc/vmstat") -> int | None:
    """Processes that the kernel has killed for want of memory since the machine started; None: the kernel does not say."""
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return None
