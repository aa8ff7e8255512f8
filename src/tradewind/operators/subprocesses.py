"""Child programs of a task: they run in their own session, their output goes to the task log, and a stop ends the whole session."""

from __future__ import annotations

import codecs
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from tradewind.model.errors import DefinitionError
from tradewind.sdk.exceptions import AirflowException

TERM_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL when a task is stopped."""

ATTEMPT_VARIABLES = ("TRADEWIND_TASKS_OF", "TRADEWIND_ATTEMPT")
"""Environment variables that identify processes of an attempt, so that the worker can find and end those that are left over."""

_CHUNK = 1 << 16
_LATE_MAX = 1 << 20
"""Maximum number of bytes kept of the output that a program writes while it is being stopped."""


def attempt_environment() -> dict[str, str]:
    """The variables of this attempt: the minimum environment of every child program."""
    return {name: os.environ[name] for name in ATTEMPT_VARIABLES if name in os.environ}


def exit_codes(given: int | Iterable[int] | None) -> frozenset[int]:
    """The argument `skip_on_exit_code` as a set."""
    if given is None:
        return frozenset()
    return frozenset((given,) if isinstance(given, int) else given)


def check_encoding(task: str, encoding: str) -> None:
    """Raise DefinitionError if `output_encoding` is not an encoding that Python supports. `task`: its name in the message."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise DefinitionError(f"{task}: output_encoding is {encoding!r}, which Python does not support") from None


def describe_exit(code: int) -> str:
    """How a program ended, for messages. A negative `code` is a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "an unknown signal"
    return f"was killed by signal {-code} ({name})"


class Command:
    """Runs programs, one at a time.

    Args:
        log: logger for messages about stopping a program.
        encoding: encoding of the output.
        keep_last_line: return the last line of the output.
    """

    def __init__(self, log: logging.Logger, *, encoding: str = "utf-8", keep_last_line: bool = True) -> None:
        self._log = log
        self._encoding = encoding
        self._keep_last_line = keep_last_line
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._reader: int | None = None
        """Id of the thread that copies the output."""
        self._late = bytearray()
        """Output that arrived while this thread was stopping the program."""

    def run(self, arguments: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run a program until it ends. Returns its exit code (negative: a signal) and the last line of its output.

        Raises:
            AirflowException: `stop` was called.
            OSError: the program cannot be started.
        """
        sys.stdout.flush()
        if self._stopped:
            raise AirflowException("the command was stopped before it started")
        self._reader = threading.get_ident()
        try:
            with _signals_delayed():
                self._process = process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env=env,
                    start_new_session=True,  # so that stop() also reaches all processes that the program starts
                )
            if self._stopped:  # stop() was called during the start, when it did not know the process yet
                self.stop()
            assert process.stdout is not None
            last_line = self._stream(process.stdout)
            code = _wait(process)
        except BaseException:
            self.stop()
            if self._process is not None:
                self._process.wait()
            raise
        finally:
            started, self._process = self._process, None
            if started is not None and started.stdout is not None:
                started.stdout.close()
            self._write_late_output()
        if self._stopped:
            raise AirflowException("the command was stopped")
        return code, last_line

    def _stream(self, output: IO[bytes]) -> str:
        """Copy the output to stdout until all writers have closed the pipe. Returns the last line.

        Only text that may belong to the last line is kept, so long output needs little memory.
        """
        decoder = codecs.getincrementaldecoder(self._encoding)(errors="backslashreplace")
        complete = ""
        partial: list[str] = []
        ended = True
        at_end = False
        while not at_end:
            _await_readable(output.fileno())
            chunk = output.read1(_CHUNK)  # type: ignore[attr-defined]  # a BufferedReader
            at_end = not chunk
            text = decoder.decode(chunk, final=at_end)
            if not text:
                continue
            sys.stdout.write(text)
            sys.stdout.flush()
            *lines, rest = text.split("\n")
            if lines:
                complete = lines[-1] if len(lines) > 1 else "".join((*partial, lines[0]))
                partial.clear()
            ended = not rest
            if rest and self._keep_last_line:
                partial.append(rest)
        if not ended:
            sys.stdout.write("\n")
            sys.stdout.flush()
            return "".join(partial).rstrip()
        return complete.rstrip()

    def stop(self) -> None:
        """End the program and its whole session: SIGTERM, after a few seconds SIGKILL.

        A signal handler calls this, possibly during `Popen.wait`, so it must not wait for the lock of the Popen object. Output that
        the program writes during this time is copied when `run` ends.
        """
        self._stopped = True  # set first, so that `run` stops a program that is just being started
        process = self._process
        if process is None:
            return
        group = process.pid
        if not _signal_group(group, signal.SIGTERM):
            return
        self._log.info("Sent SIGTERM to the process group of the command")
        deadline = time.monotonic() + TERM_GRACE
        while _is_alive(group) and time.monotonic() < deadline:
            self._drain_output(process)
            time.sleep(0.02)
        if _is_alive(group):
            self._log.warning("The command ignored SIGTERM for %g seconds; sending SIGKILL", TERM_GRACE)
            _signal_group(group, signal.SIGKILL)
        self._drain_output(process)

    def _drain_output(self, process: subprocess.Popen[bytes]) -> None:
        """Read what the program writes while it cleans up. Otherwise it could block on a full pipe until SIGKILL.

        The output is written later, because this may interrupt a write to stdout.
        """
        if process.stdout is None or threading.get_ident() != self._reader:
            return  # the thread that copies the output continues to do so
        poll = select.poll()
        poll.register(process.stdout.fileno(), select.POLLIN)
        while poll.poll(0):
            data = os.read(process.stdout.fileno(), _CHUNK)
            if not data:
                return
            self._late += data[: _LATE_MAX - len(self._late)]

    def _write_late_output(self) -> None:
        if self._late:
            text = self._late.decode(self._encoding, errors="backslashreplace")
            self._late.clear()
            sys.stdout.write(text if text.endswith("\n") else text + "\n")
            sys.stdout.flush()


@contextmanager
def _signals_delayed() -> Iterator[None]:
    """Delay the handlers of signals that end a task until after this block.

    The handlers raise exceptions. During `Popen()`, an exception would leave a running program that no object refers to.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: handler for number in _TASK_SIGNALS if callable(handler := signal.getsignal(number))}
    received: list[signal.Signals] = []
    try:
        for number in handlers:
            signal.signal(number, lambda signum, _: received.append(signal.Signals(signum)))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in received:
            handlers[number](number, None)


_TASK_SIGNALS = (signal.SIGTERM, signal.SIGXCPU, signal.SIGINT)

_POLL_MS = 500
"""Python runs the handler of a signal that arrives just before a blocking call only after the call, so no call blocks longer."""


def _await_readable(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(_POLL_MS):
        pass


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        process_fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not on Linux, or out of descriptors
        pass
    else:
        try:
            _await_readable(process_fd)
        finally:
            os.close(process_fd)
    while True:
        try:
            return process.wait(_POLL_MS / 1000)
        except subprocess.TimeoutExpired:
            pass


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group. Returns False if the group has no process."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # some processes run as another user; the others got the signal
    return True


def _is_alive(group: int) -> bool:
    """True if a process of the group is alive. Reaps ended children first, because they would count as alive."""
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return _signal_group(group, 0)
