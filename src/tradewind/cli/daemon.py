"""How a process of ours is to run: in the background, with a pid file, its output in files, for a while only (`scheduler -D …`)."""

from __future__ import annotations

import functools
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import RawIOBase
from typing import Any, NamedTuple, NoReturn, TypeVar

import click
import psutil

from tradewind.cli.compose import LOG_FILE
from tradewind.cli.process_logs import RotatingFiles
from tradewind.model.errors import Conflict
from tradewind.settings import load

_EARLY_SECONDS = 2.0
"""Whoever starts a process in the background is told when it dies within this time."""

_RETRY_SECONDS = 0.05
_LONGEST_START_SECONDS = 30.0
"""A stop request waits so long for the service to start; then the process is killed."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Background(NamedTuple):
    """What was asked for; paths are None where nothing was said."""

    daemon: bool = False
    pid: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    run_duration: float | None = None
    log_file: str | None = None


class Seconds(click.ParamType[float]):
    """A duration above 0, or -1 for no end, as Airflow writes it."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not (seconds > 0 or seconds == -1):
            self.fail(f"{value!r} is no number of seconds above 0, nor -1 for no end", param, ctx)
        return seconds


def subdir_option(command: _Command) -> _Command:
    """`--subdir` of those that look after a folder of DAG files."""
    option = click.option(
        "-sd",
        "-S",
        "--subdir",
        type=click.Path(exists=True),
        help="Only the DAG files of this folder, or this file; DAGs of other folders stay as they are. [setting: core.dags_folder]",
    )
    return option(command)


def background_options(command: _Command) -> _Command:
    """Airflow's options of long-lived processes, handed over as `how`."""

    @functools.wraps(command)
    def called(*words: Any, **given: Any) -> Any:
        for name in ("verbose", "skip_serve_logs", "dev"):
            given.pop(name)
        how = Background(**{name: given.pop(name) for name in Background._fields})
        if how.run_duration is not None and how.run_duration < 0:
            how = how._replace(run_duration=None)
        return command(*words, how=how, **given)

    path = click.Path(dir_okay=False)
    wrapped: Any = called
    for option in (
        click.option("--dev", is_flag=True, hidden=True),
        click.option("-s", "--skip-serve-logs", is_flag=True, hidden=True),
        click.option("-v", "--verbose", is_flag=True, hidden=True),
        click.option(
            "-r", "--run-duration", type=Seconds(), help="End in order after so many seconds; -1: never.", metavar="SECONDS"
        ),
        click.option("-l", "--log-file", type=path, help="File for its log; without it the log goes to stderr."),
        click.option("--stderr", type=path, help="File for what it writes to stderr."),
        click.option("--stdout", type=path, help="File for its output."),
        click.option("--pid", type=path, help="File for its process id; gone when it ends."),
        click.option("-D", "--daemon", is_flag=True, help="Run in the background; files go into the home folder unless told."),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def without_rounds(command: _Command) -> _Command:
    """`-n` of those that have no passes to be counted; and `-d`, short for `--dev`, which is the scheduler's `--dag-id`."""

    @functools.wraps(command)
    def called(*words: Any, num_runs: int | None, dev_mode: bool, **given: Any) -> Any:
        if num_runs is not None and num_runs > 0:
            raise click.UsageError(
                "there are no rounds to be counted here: work is done when something happens. Give --run-duration SECONDS, "
                "or read the DAG files once with: tradewind dags reserialize"
            )
        return command(*words, **given)

    wrapped = click.option("-d", "dev_mode", is_flag=True, hidden=True)(called)
    return click.option("-n", "--num-runs", type=int, hidden=True)(wrapped)  # type: ignore[return-value]


def run_as_asked(name: str, how: Background, work: Callable[[], None]) -> None:
    """Do the work in this process or in one in the background, which this one outlives not long.

    Raises:
        Conflict: the pid file names a process that lives.
    """
    files = _in_home(name, how) if how.daemon else how
    if files.pid is not None:
        _refuse_living(files.pid)
    if not how.daemon:
        with _arranged(files):
            work()
        return
    sys.stdout.flush()
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        os.waitpid(child, 0)
        _tell_start(name, files, read)
        return
    os.close(read)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(write, f"{os.getpid()}\n".encode())
    _leave(files, work)


def _leave(files: Background, work: Callable[[], None]) -> NoReturn:
    """The process in the background: nothing of the caller's terminal is left in it."""
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        with _arranged(files):
            work()
        code = 0
    except BaseException as error:  # there is no caller to raise it to
        click.echo(f"tradewind: {error}", err=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _in_home(name: str, how: Background) -> Background:
    settings = load()
    settings.paths.prepare()
    base = os.path.join(settings.home, f"tradewind-{name}")
    return how._replace(pid=how.pid or f"{base}.pid", stdout=how.stdout or f"{base}.out", stderr=how.stderr or f"{base}.err")


@contextmanager
def _arranged(files: Background) -> Iterator[None]:
    """Redirect the output, write the pid file, and start the timer of `--run-duration`.

    A SIGTERM that comes while the service still starts waits until the service has installed its own handler.
    """
    early = _EarlyStop()
    signal.signal(signal.SIGTERM, early.requested)
    signal.signal(signal.SIGALRM, early.deliver)
    if files.log_file is not None:
        os.close(os.open(files.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        os.environ[LOG_FILE] = os.path.abspath(files.log_file)
    for path, number in ((files.stdout, 1), (files.stderr, 2)):
        if path is not None:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, number)
            os.close(file)
    if files.run_duration is not None:
        signal.setitimer(signal.ITIMER_REAL, files.run_duration)
    if files.pid is not None:
        with open(files.pid, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as pid_file:
            pid_file.write(f"{os.getpid()}\n")
    keeper = RotatingFiles(path for path in (files.stdout, files.stderr, files.log_file) if path is not None)
    logging.getLogger().addHandler(keeper)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(keeper)
        if files.pid is not None:
            os.unlink(files.pid)


class _EarlyStop:
    """Keep a stop request that comes before the service can take it, and deliver it as soon as the service can.

    An exception raised from a signal handler would not do: Python drops one that meets a finaliser or an import lock's callback.
    """

    def __init__(self) -> None:
        self._attempts_left = int(_LONGEST_START_SECONDS / _RETRY_SECONDS)

    def requested(self, _number: int, _frame: object) -> None:
        """Handle SIGTERM until the service installs its own handler."""
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)

    def deliver(self, _number: int, _frame: object) -> None:
        """Handle SIGALRM: send SIGTERM once somebody else handles SIGTERM; after the longest start, kill the process."""
        if signal.getsignal(signal.SIGTERM) == self.requested:
            self._attempts_left -= 1
            if self._attempts_left > 0:
                signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
                return
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def _refuse_living(path: str) -> None:
    try:
        with open(path, encoding="ascii") as file:
            pid = int(file.read())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return
    raise Conflict(f"process {pid} lives, as {path} says; stop it first (kill {pid}), or give another --pid file")


def _tell_start(name: str, files: Background, read: int) -> None:
    """Its pid; or, when it dies at once, that and its last words."""
    log = files.log_file or files.stderr
    with open(read, "rb", buffering=0) as pipe:
        pid = pipe.readline().strip().decode()
        if _ends_early(pipe, int(pid)):
            last = next(filter(None, (_last_words(path) for path in (files.log_file, files.stderr))), "it said nothing")
            raise click.ClickException(f"{name} ended at once: {last} (see {log})")
    click.echo(f"{name} runs in the background as process {pid} (pid file {files.pid}, log {log}).")


def _ends_early(pipe: RawIOBase, pid: int) -> bool:
    """Wait until the process in the background has ended or has had time to start. True: it has ended.

    A process that still computes after `_EARLY_SECONDS` is starting slowly on a busy machine: it gets more time, up to
    `_LONGEST_START_SECONDS`. A service that has started waits for events.
    """
    deadline = time.monotonic() + _LONGEST_START_SECONDS
    wait = _EARLY_SECONDS
    while True:
        closed, _, _ = select.select([pipe], [], [], wait)
        if closed:  # the process held the other end until it ended
            return True
        if time.monotonic() > deadline or not _is_computing(pid):
            return False
        wait = _RETRY_SECONDS


def _is_computing(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    except psutil.NoSuchProcess:
        return True  # the closed pipe tells its end in a moment


def _last_words(path: str | None) -> str:
    """The last error in a file, else its last line."""
    if path is None or not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as said:
        lines = [line for line in said.read().splitlines() if line.strip()]
    return next((line for line in reversed(lines) if " it cannot go on" in line), lines[-1] if lines else "")
