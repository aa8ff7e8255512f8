"""Starts a service as a child process of the supervisor.

On Linux the supervisor forks: the child has the modules that the supervisor has imported, and shares the memory that holds them.
Elsewhere a new interpreter is started, because a fork without exec is not safe with the system libraries of macOS.

A forked child keeps nothing else of the supervisor: it has its own session, environment, output, signal handlers and descriptors.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import NoReturn, Protocol

from tradewind.platform import HAVE_LINUX


class ServiceProcess(Protocol):
    """The part of `subprocess.Popen` that the supervisor uses."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Return the exit code, or the negative number of the signal that ended the process; None while it runs."""

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...

    def kill(self) -> None: ...


class ForkedProcess:
    """A child process that was forked, with the methods of `subprocess.Popen` that the supervisor uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code; None: the process runs."""
        return self._wait(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended. There is no timeout."""
        code = self._wait(0)
        assert code is not None
        return code

    def send_signal(self, sig: int, /) -> None:
        """Send a signal, unless the process has ended: its pid may belong to another process then."""
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # reaped elsewhere: its status is unknown, as with subprocess.Popen
                self.returncode = 0
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


Entry = Callable[[str, int], int]
"""Runs a service: (its name, the pid of the supervisor) -> exit code."""


def start_service(
    entry: Entry, name: str, environment: Mapping[str, str], output: int | None, inherits: tuple[int, ...]
) -> ServiceProcess:
    """Start `entry(name, own pid)` in a child process of this process, which must have one thread.

    Args:
        entry: on systems other than Linux, `python -m` of its module is started with the same arguments.
        output: descriptor for stdout and stderr; None: those of this process.
        inherits: descriptors that stay open in the child, with the same numbers.

    Raises:
        OSError: the process cannot be created.
    """
    if not HAVE_LINUX:
        return subprocess.Popen(
            [sys.executable, "-m", entry.__module__, name, str(os.getpid())],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=inherits,
            start_new_session=True,
        )
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    # a signal for the child must not reach the handlers that it inherits: they belong to the loop of the supervisor
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _run_and_exit(entry, name, parent, environment, output, inherits, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ForkedProcess(pid)


def _run_and_exit(
    entry: Entry,
    name: str,
    parent: int,
    environment: Mapping[str, str],
    output: int | None,
    inherits: tuple[int, ...],
    signals_blocked: set[int | signal.Signals],
) -> NoReturn:
    code = 1
    try:
        gc.freeze()  # a collection would write into the shared pages
        os.setsid()
        _reset_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, signals_blocked)
        _replace_files(output, inherits)
        os.environ.clear()
        os.environ.update(environment)
        logging.getLogger().handlers.clear()
        _rename(name)
        code = entry(name, parent)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            logging.shutdown()
            sys.stdout.flush()
        finally:
            os._exit(code)  # the callers and the exit functions of the supervisor must not continue here


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)


def _replace_files(output: int | None, inherits: tuple[int, ...]) -> None:
    """Give this process its own stdin, stdout and stderr, and none of the supervisor's files but the inherited ones.

    The other descriptors become /dev/null. They are not closed, because objects of the supervisor still own these numbers, and
    close them when they are destroyed: that must not hit a file that this process has opened since.
    """
    null, copy = os.open(os.devnull, os.O_RDWR), None if output is None else os.dup(output)
    keep = {1, 2, null, *inherits, *(() if copy is None else (copy,))}
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in keep and _is_open(descriptor):
            os.dup2(null, descriptor, inheritable=descriptor == 0)
    os.close(null)
    if copy is not None:
        os.dup2(copy, 1)
        os.dup2(copy, 2)
        os.close(copy)
    for descriptor in inherits:
        os.set_inheritable(descriptor, True)
    # new objects: the supervisor may have replaced its own, or filled their buffers
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (open as long as the process lives)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False  # the listing's own descriptor
    return True


def _rename(name: str) -> None:
    """Set the name and the command line that ps and top show."""
    from tradewind.platform import linux  # lazy import: Linux only

    linux.set_name(f"tw-{name}")
    linux.find_title()
    linux.set_title(f"tradewind: {name}")
