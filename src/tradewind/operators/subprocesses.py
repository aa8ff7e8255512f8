"""Programs that tasks start: in a session of their own, their output copied to the task's log, stopped with all they started."""

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
"""Seconds between TERM and KILL when the task is stopped."""

MARKS = ("TRADEWIND_TASKS_OF", "TRADEWIND_ATTEMPT")
"""By these a program that outlived everything else is known for what it is, so it has them whatever environment it is given."""

_CHUNK = 1 << 16
_LATE_MAX = 1 << 20
"""Bytes that are kept of what a program says while it is being stopped."""


def marks() -> dict[str, str]:
    """The marks of this attempt: the least that the environment of a program must have."""
    return {name: os.environ[name] for name in MARKS if name in os.environ}


def exit_codes(given: int | Iterable[int] | None) -> frozenset[int]:
    """`skip_on_exit_code` as a set."""
    if given is None:
        return frozenset()
    return frozenset((given,) if isinstance(given, int) else given)


def check_encoding(task: str, encoding: str) -> None:
    """Raise DefinitionError where `output_encoding` of this task is none that Python knows."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise DefinitionError(f"{task}: output_encoding is {encoding!r}, which is unknown") from None


def ending(code: int) -> str:
    """How a program ended, in words; `code` is negative for a signal."""
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
        log: where the end of a stopped program is told.
        encoding: of the output.
        keep_last_line: the last line of output is wanted.
    """

    def __init__(self, log: logging.Logger, *, encoding: str = "utf-8", keep_last_line: bool = True) -> None:
        self._log = log
        self._encoding = encoding
        self._keep_last_line = keep_last_line
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._reader: int | None = None
        """The thread that copies the output."""
        self._late = bytearray()
        """Output that came while that thread was busy with stopping the program."""

    def run(self, arguments: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run a program to its end; returns its exit code (negative: the signal) and the last line of its output.

        Raises:
            AirflowException: it was stopped, now or before.
            OSError: it cannot be started.
        """
        sys.stdout.flush()
        if self._stopped:
            raise AirflowException("the command was stopped before it started")
        self._reader = threading.get_ident()
        try:
            with _no_signal_between():
                self._process = process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env=env,
                    start_new_session=True,  # so that stop() reaches everything it starts
                )
            if self._stopped:  # while it was being started: stop() did not know it yet
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
            self._tell_late()
        if self._stopped:
            raise AirflowException("the command was stopped")
        return code, last_line

    def _stream(self, output: IO[bytes]) -> str:
        """Copy the output to stdout as it comes, until nobody can write any more; returns its last line.

        A line is kept only while it may be the last one, so that output of any length needs little memory.
        """
        decoder = codecs.getincrementaldecoder(self._encoding)(errors="backslashreplace")
        complete = ""
        begun: list[str] = []
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
                complete = lines[-1] if len(lines) > 1 else "".join((*begun, lines[0]))
                begun.clear()
            ended = not rest
            if rest and self._keep_last_line:
                begun.append(rest)
        if not ended:
            sys.stdout.write("\n")
            sys.stdout.flush()
            return "".join(begun).rstrip()
        return complete.rstrip()

    def stop(self) -> None:
        """End the command and everything in its session: TERM, and KILL for what is left after a few seconds.

        Called from a signal handler, maybe in the middle of `Popen.wait`: it must not wait for that object's lock. What the
        program says meanwhile is told when `run` ends.
        """
        self._stopped = True  # first: a program that is just being started is stopped by who starts it
        process = self._process
        if process is None:
            return
        group = process.pid
        if not _signal_group(group, signal.SIGTERM):
            return
        self._log.info("Sent SIGTERM to the process group of the command")
        deadline = time.monotonic() + TERM_GRACE
        while _is_alive(group) and time.monotonic() < deadline:
            self._hear(process)
            time.sleep(0.02)
        if _is_alive(group):
            self._log.warning("The command ignored SIGTERM for %g seconds: sending SIGKILL", TERM_GRACE)
            _signal_group(group, signal.SIGKILL)
        self._hear(process)

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """What the program says while it cleans up. Unheard, one that says much would stand still at a full pipe and be killed.

        It is told later: this may run in the middle of the very write that would tell it.
        """
        if process.stdout is None or threading.get_ident() != self._reader:
            return  # the thread that copies the output goes on with it
        poll = select.poll()
        poll.register(process.stdout.fileno(), select.POLLIN)
        while poll.poll(0):
            said = os.read(process.stdout.fileno(), _CHUNK)
            if not said:
                return
            self._late += said[: _LATE_MAX - len(self._late)]

    def _tell_late(self) -> None:
        if self._late:
            said = self._late.decode(self._encoding, errors="backslashreplace")
            self._late.clear()
            sys.stdout.write(said if said.endswith("\n") else said + "\n")
            sys.stdout.flush()


@contextmanager
def _no_signal_between() -> Iterator[None]:
    """Handlers of signals that end a task run after this block, not in it.

    They raise. In the middle of `Popen()` that would leave behind a program that runs already and that nobody knows.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: handler for number in _ENDING if callable(handler := signal.getsignal(number))}
    came: list[signal.Signals] = []
    try:
        for number in kept:
            signal.signal(number, lambda came_now, _: came.append(signal.Signals(came_now)))
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for number in came:
            kept[number](number, None)


_ENDING = (signal.SIGTERM, signal.SIGXCPU, signal.SIGINT)

_LOOK_MS = 500
"""A signal that comes just before a call that blocks is seen only after it: no call here blocks for longer than this."""


def _await_readable(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(_LOOK_MS):
        pass


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        end = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not on Linux, or out of descriptors
        pass
    else:
        try:
            _await_readable(end)
        finally:
            os.close(end)
    while True:
        try:
            return process.wait(_LOOK_MS / 1000)
        except subprocess.TimeoutExpired:
            pass


def _signal_group(group: int, number: int) -> bool:
    """False: nobody is there any more."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # some of them changed their user; the others got it
    return True


def _is_alive(group: int) -> bool:
    """Does a process of the group live? The dead are taken away first: they would count."""
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return _signal_group(group, 0)
