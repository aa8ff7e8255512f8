"""prctl, pidfds and /proc. Import this module only if `platform.HAVE_LINUX`.

Rules of Linux that matter here: the parent-death signal is sent when the *thread* that forked the child ends, so only
single-threaded processes fork. Exec of a set-uid program clears it. It is not sent if the parent died before it was set, so the
parent is checked afterwards. Orphans become children of the nearest living ancestor that is a subreaper.
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
    """Get the signal `how` (default: SIGKILL) when the parent dies; exit at once if it has died already.

    Args:
        parent: the expected pid of the parent.
    """
    global _parent
    if _prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0) != 0:
        raise _failure()
    _parent = parent
    if os.getppid() != parent:
        os._exit(111)


_parent = 0
"""The parent whose death kills this process; 0: none, or `die_with_writer` is used."""


def die_with_writer(pipe: int) -> int:
    """Get SIGKILL when the only process that holds the writing end of this pipe ends, even if it is no longer the parent.

    The pipe is opened again, because the owner of a file's signals belongs to the open file description, which forks share. The end
    of the writer is not noticed if it happened before this call.

    Args:
        pipe: descriptor of the reading end. Nothing is ever written to the pipe.

    Returns:
        The descriptor that causes the signal; when it is closed, there is no signal.
    """
    global _parent
    own = _open(f"/proc/self/fd/{pipe}", _CLOSE_ON_EXEC)
    _fcntl(own, _F_SETOWN, _getpid())
    _fcntl(own, _F_SETSIG, 9)
    _fcntl(own, _F_SETFL, _ASYNC)
    _parent = 0
    return own


# every forked task process calls this; module-level names avoid lookups in other modules
_open, _getpid, _fcntl = os.open, os.getpid, fcntl.fcntl
_CLOSE_ON_EXEC, _ASYNC, _F_SETOWN, _F_SETFL = os.O_RDONLY | os.O_CLOEXEC, os.O_ASYNC, fcntl.F_SETOWN, fcntl.F_SETFL


def changed_user() -> None:
    """Restore the parent-death signal and the access to the process's own /proc, which a change of user removes."""
    _prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    if _parent:
        die_with_parent(_parent)


def become_subreaper() -> None:
    """Let orphaned descendants of this process become its children."""
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise _failure()


class ProcessName:
    """The short name that ps and top show (15 bytes). A process that forks prepares the name of its children, because setting a
    prepared name writes to few memory pages, which the child has to copy.
    """

    __slots__ = ("_address", "_buffer")

    def __init__(self, name: str) -> None:
        self._buffer = ctypes.create_string_buffer(name.encode()[:15])
        self._address = ctypes.addressof(self._buffer)

    def set(self) -> None:
        """Give this process the name."""
        _prctl(_PR_SET_NAME, self._address, 0, 0, 0)


def set_name(name: str) -> None:
    """Set the short name of this process."""
    ProcessName(name).set()


_TASK_NAME = ProcessName("tw-task")


def become_task() -> None:
    """Become a subreaper and set the name of a task process. It touches few memory pages, because it runs after each fork."""
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise _failure()
    _TASK_NAME.set()


_title_at = _title_size = 0


def find_title() -> None:
    """Find the memory of this process's arguments, which is at the same address in its children. Call it before the first fork."""
    global _title_at, _title_size
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5), counted from the state
    if 0 < begin < end:
        _title_at, _title_size = begin, end - begin


def set_title(title: str) -> None:
    """Set the command line that ps shows, as far as there is space. The environment stays readable."""
    if _title_size:
        text = title.encode()[: _title_size - 1]
        ctypes.memmove(_title_at, text.ljust(_title_size, b"\0"), _title_size)


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def own_children() -> list[int]:
    """Pids of the direct children of this single-threaded process."""
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
    """Return freed memory to the system, after much work and before a long idle time. Only with glibc."""
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


def fill_holes() -> int:
    """Allocate, for ever, the free memory between living objects. Returns the number of allocated bytes.

    This is for a process that is forked many times: the allocations of a fork are then together at the end of the heap, instead of
    in a hundred gaps on as many pages, each of which the fork would have to copy. Only with glibc's allocator.
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
"""Bytes: more than any gap worth filling, and less than an allocation that glibc requests directly from the system."""


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
    """Start of a process in clock ticks since boot; with the pid it identifies the process. None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(data[data.rindex(b")") + 2 :].split()[19])


TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def ticks_since_boot() -> int:
    """The present moment in the unit of `start_time`."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)


def is_zombie(pid: int) -> bool:
    return _state(pid) == b"Z"


def is_stopped(pid: int) -> bool:
    """Whether the process was stopped by a signal (not by a debugger)."""
    return _state(pid) == b"T"


def _state(pid: int) -> bytes:
    """The state letter that ps shows; empty if there is no such process."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
    return data[data.rindex(b")") + 2 : data.rindex(b")") + 3]


def marked(name: str, value: str) -> list[int]:
    """Pids of processes whose environment contained `name=value` when they were started."""
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
    """Send a signal. Returns False if there is no such process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def descendants(pid: int) -> list[int]:
    """Pids of the descendants of `pid`, parents before children."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def reap_and_kill_orphans(
    registered: frozenset[int] | set[int], at_most: int = 10_000, ask: Callable[[], set[int]] | None = None
) -> list[int]:
    """Kill every child of this process that is not registered, and the orphans that this produces. Returns the killed pids.

    `ask` is called if there is such a child; it returns pids that must live in addition to `registered`.

    This is for a subreaper: an unregistered child belonged to a process that has ended. A process that does not die of SIGKILL soon
    (it waits for a disk, or is traced) does not block: a later call reaps it.
    """
    killed: list[int] = []
    while len(killed) < at_most:
        orphans = [pid for pid in own_children() if pid not in registered and not _is_dying(pid)]
        if orphans and ask is not None:
            spared = ask()
            orphans = [pid for pid in orphans if pid not in spared]
        if not orphans:
            return killed
        for pid in orphans:
            if kill_quietly(pid):
                killed.append(pid)
        deadline = time.monotonic() + DYING_SECONDS
        for pid in orphans:
            _reap(pid, deadline)
    return killed


DYING_SECONDS = 2.0
"""How long to wait for killed processes to end."""
_dying: set[int] = set()
"""Killed children that have not ended in this time."""


def _reap(pid: int, deadline: float) -> None:
    """Wait for a killed child until the deadline."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        pass  # there is no free descriptor: check only once, without waiting
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
    """Whether the child was killed by an earlier call. If it has ended now, it is reaped."""
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
    """Number of processes that the kernel has killed because of too little memory since boot; None: unknown."""
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return None
