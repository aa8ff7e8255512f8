"""How a service runs: in the background, with a pid file, with its output in files, for a limited time (`scheduler -D …`)."""

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

from tradewind.cli.compose.service_process import LOG_FILE
from tradewind.cli.process_logs import RotatingFiles
from tradewind.model.errors import Conflict
from tradewind.settings import Settings, load

_EARLY_SECONDS = 2.0
"""If a process in the background ends within this time, the command that started it reports the error."""

_RETRY_SECONDS = 0.05
_LONGEST_START_SECONDS = 30.0
"""How long a stop request waits for the service to start, before the process is killed."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Background(NamedTuple):
    """The values of the background options; None if an option was not given."""

    daemon: bool = False
    pid: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    run_duration: float | None = None
    log_file: str | None = None


class Seconds(click.ParamType[float]):
    """A duration above 0, or -1 for unlimited, as in Airflow."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not (seconds > 0 or seconds == -1):
            self.fail(f"{value!r} is not a number of seconds above 0, or -1 for unlimited", param, ctx)
        return seconds


def subdir_option(command: _Command) -> _Command:
    """Add `--subdir`, for services that handle a folder of DAG files."""
    option = click.option(
        "-sd",
        "-S",
        "--subdir",
        type=click.Path(exists=True),
        help="Handle only DAG files in this folder, or this file. Other DAGs are not changed. [setting: core.dags_folder]",
    )
    return option(command)


def background_options(command: _Command) -> _Command:
    """Add Airflow's options of services. The command gets their values as `background`."""

    @functools.wraps(command)
    def called(*words: Any, **given: Any) -> Any:
        for name in ("verbose", "skip_serve_logs", "dev"):
            given.pop(name)
        background = Background(**{name: given.pop(name) for name in Background._fields})
        if background.run_duration is not None and background.run_duration < 0:
            background = background._replace(run_duration=None)
        return command(*words, background=background, **given)

    path = click.Path(dir_okay=False)
    wrapped: Any = called
    for option in (
        click.option("--dev", is_flag=True, hidden=True),
        click.option("-s", "--skip-serve-logs", is_flag=True, hidden=True),
        click.option("-v", "--verbose", is_flag=True, hidden=True),
        click.option(
            "-r",
            "--run-duration",
            type=Seconds(),
            help="Stop after this many seconds, as at SIGTERM; -1: never.",
            metavar="SECONDS",
        ),
        click.option("-l", "--log-file", type=path, help="File for the log. Default: stderr."),
        click.option("--stderr", type=path, help="File for stderr."),
        click.option("--stdout", type=path, help="File for stdout."),
        click.option("--pid", type=path, help="File for the process id; deleted when the service ends."),
        click.option("-D", "--daemon", is_flag=True, help="Run in the background. The files go to the home folder by default."),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def without_num_runs(command: _Command) -> _Command:
    """Add `-n`, for services that have no passes to count, and `-d`, short for `--dev` (the scheduler uses it for `--dag-id`)."""

    @functools.wraps(command)
    def called(*words: Any, num_runs: int | None, dev_mode: bool, **given: Any) -> Any:
        if num_runs is not None and num_runs > 0:
            raise click.UsageError(
                "this service has no passes to count: it works when an event happens. Give --run-duration SECONDS, "
                "or parse the DAG files once with: tradewind dags reserialize"
            )
        return command(*words, **given)

    wrapped = click.option("-d", "dev_mode", is_flag=True, hidden=True)(called)
    return click.option("-n", "--num-runs", type=int, hidden=True)(wrapped)  # type: ignore[return-value]


def run_service(
    component: str,
    work: Callable[[Settings], None],
    background: Background,
    changes: dict[str, str] | None = None,
    subdir: str | None = None,
) -> None:
    """Run a service with its background options; `changes` are settings from the command line (`SECTION__OPTION` → value)."""
    from tradewind.cli.compose.bundles import SUBDIR
    from tradewind.cli.compose.service_process import start_log

    for name, value in (changes or {}).items():
        os.environ[f"TRADEWIND__{name}"] = value
    if subdir is not None:
        os.environ[SUBDIR] = os.path.abspath(subdir)
    settings = load()

    def start() -> None:
        os.umask(0o077)
        start_log(settings, component)
        settings.paths.prepare()
        work(settings)

    _run_here_or_detached(component, background, start)


def _run_here_or_detached(name: str, background: Background, work: Callable[[], None]) -> None:
    """Run the service in this process, or in a new process in the background.

    Raises:
        Conflict: the pid file names a running process.
    """
    files = _in_home(name, background) if background.daemon else background
    if files.pid is not None:
        _check_pid_file(files.pid)
    if not background.daemon:
        with _prepared(files):
            work()
        return
    sys.stdout.flush()
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        os.waitpid(child, 0)
        _report_start(name, files, read)
        return
    os.close(read)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(write, f"{os.getpid()}\n".encode())
    _run_detached(files, work)


def _run_detached(files: Background, work: Callable[[], None]) -> NoReturn:
    """Run the service in the background process, detached from the caller's terminal, and exit."""
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        with _prepared(files):
            work()
        code = 0
    except BaseException as error:  # no caller is left to handle the error
        click.echo(f"tradewind: {error}", err=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _in_home(name: str, background: Background) -> Background:
    settings = load()
    settings.paths.prepare()
    base = os.path.join(settings.home, f"tradewind-{name}")
    return background._replace(
        pid=background.pid or f"{base}.pid",
        stdout=background.stdout or f"{base}.out",
        stderr=background.stderr or f"{base}.err",
    )


@contextmanager
def _prepared(files: Background) -> Iterator[None]:
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
    rotation = RotatingFiles(path for path in (files.stdout, files.stderr, files.log_file) if path is not None)
    logging.getLogger().addHandler(rotation)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(rotation)
        if files.pid is not None:
            os.unlink(files.pid)


class _EarlyStop:
    """Keeps a stop request that comes before the service can handle it, and delivers it as soon as the service can.

    Raising an exception from the signal handler would not work: Python drops it inside a finaliser or an import lock's callback.
    """

    def __init__(self) -> None:
        self._attempts_left = int(_LONGEST_START_SECONDS / _RETRY_SECONDS)

    def requested(self, _number: int, _frame: object) -> None:
        """Handle SIGTERM until the service installs its own handler: try again soon."""
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)

    def deliver(self, _number: int, _frame: object) -> None:
        """Handle SIGALRM: send SIGTERM as soon as the service handles SIGTERM; after the longest start, kill the process."""
        if signal.getsignal(signal.SIGTERM) == self.requested:
            self._attempts_left -= 1
            if self._attempts_left > 0:
                signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
                return
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def _check_pid_file(path: str) -> None:
    try:
        with open(path, encoding="ascii") as file:
            pid = int(file.read())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return
    raise Conflict(f"process {pid} is running ({path}); stop it first (kill {pid}), or give another --pid file")


def _report_start(name: str, files: Background, read: int) -> None:
    """Print the pid of the background process.

    Raises:
        click.ClickException: the process ended at once; the message has its last error.
    """
    log = files.log_file or files.stderr
    with open(read, "rb", buffering=0) as pipe:
        pid = pipe.readline().strip().decode()
        if _ends_early(pipe, int(pid)):
            last = next(filter(None, (_last_error(path) for path in (files.log_file, files.stderr))), "it wrote no message")
            raise click.ClickException(f"{name} ended at once: {last} (see {log})")
    click.echo(f"{name} runs in the background as process {pid} (pid file {files.pid}, log {log}).")


def _ends_early(pipe: RawIOBase, pid: int) -> bool:
    """Wait until the background process has ended or has had time to start. Returns True if it has ended.

    A process that still computes after `_EARLY_SECONDS` is starting slowly on a busy machine: it gets more time, up to
    `_LONGEST_START_SECONDS`. A service that has started waits for events and does not compute.
    """
    deadline = time.monotonic() + _LONGEST_START_SECONDS
    wait = _EARLY_SECONDS
    while True:
        closed, _, _ = select.select([pipe], [], [], wait)
        if closed:  # the process held the other end open until it ended
            return True
        if time.monotonic() > deadline or not _is_computing(pid):
            return False
        wait = _RETRY_SECONDS


def _is_computing(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    except psutil.NoSuchProcess:
        return True  # it has ended: the pipe will be closed in a moment


def _last_error(path: str | None) -> str:
    """The last error in a log file, otherwise its last line."""
    if path is None or not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file.read().splitlines() if line.strip()]
    return next((line for line in reversed(lines) if " the process cannot continue" in line), lines[-1] if lines else "")
