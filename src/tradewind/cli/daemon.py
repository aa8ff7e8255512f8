"""How a process of ours is to run: in the background, with a pid file, its output in files, for a while only (`scheduler -D …`)."""

from __future__ import annotations

import functools
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, TypeVar

import click

from tradewind.model.errors import Conflict
from tradewind.settings import load

_EARLY_SECONDS = 2.0
"""Whoever starts a process in the background is told when it dies within this time."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Background(NamedTuple):
    """What was asked for; paths are None where nothing was said."""

    daemon: bool = False
    pid: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    run_duration: float | None = None


def background_options(command: _Command) -> _Command:
    """Airflow's options of long-lived processes, handed over as `how` and `subdir`."""

    @functools.wraps(command)
    def called(*words: Any, **given: Any) -> Any:
        log_file = given.pop("log_file")
        for name in ("verbose", "skip_serve_logs", "dev"):
            given.pop(name)
        how = Background(**{name: given.pop(name) for name in Background._fields})
        if log_file is not None:
            how = how._replace(stderr=how.stderr or log_file)
        return command(*words, how=how, **given)

    path = click.Path(dir_okay=False)
    wrapped: Any = called
    for option in (
        click.option("-d", "--dev", is_flag=True, hidden=True),
        click.option("-s", "--skip-serve-logs", is_flag=True, hidden=True),
        click.option("-v", "--verbose", is_flag=True, hidden=True),
        click.option("--run-duration", type=click.FloatRange(0, min_open=True), help="End in order after so many seconds."),
        click.option(
            "-S", "--subdir", type=click.Path(file_okay=False), help="Folder of the DAG files. [setting: core.dags_folder]"
        ),
        click.option("-l", "--log-file", type=path, help="File for its log; the same as --stderr."),
        click.option("--stderr", type=path, help="File for what it says, its log included."),
        click.option("--stdout", type=path, help="File for its output."),
        click.option("--pid", type=path, help="File for its process id; gone when it ends."),
        click.option("-D", "--daemon", is_flag=True, help="Run in the background; files go into the home folder unless told."),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def without_rounds(command: _Command) -> _Command:
    """`-n` of those that have no turns to be counted."""

    @functools.wraps(command)
    def called(*words: Any, num_runs: int | None, **given: Any) -> Any:
        if num_runs is not None and num_runs > 0:
            raise click.UsageError(
                "there are no rounds to be counted here: work is done when something happens. Give --run-duration SECONDS, "
                "or read the DAG files once with: tradewind dags reserialize"
            )
        return command(*words, **given)

    return click.option("-n", "--num-runs", type=int, hidden=True)(called)  # type: ignore[return-value]


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
    """Output goes to the files, the pid file stands, and a timer ends it in order."""
    for path, number in ((files.stdout, 1), (files.stderr, 2)):
        if path is not None:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, number)
            os.close(file)
    if files.run_duration is not None:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        signal.setitimer(signal.ITIMER_REAL, files.run_duration)
    if files.pid is not None:
        with open(files.pid, "w", encoding="ascii") as pid_file:
            pid_file.write(f"{os.getpid()}\n")
    try:
        yield
    finally:
        if files.pid is not None:
            os.unlink(files.pid)


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
    with open(read, "rb", buffering=0) as pipe:
        pid = pipe.readline().strip().decode()
        ready, _, _ = select.select([pipe], [], [], _EARLY_SECONDS)
        if ready:  # the other end is closed: it is gone
            last = ""
            if files.stderr is not None and os.path.exists(files.stderr):
                with open(files.stderr, encoding="utf-8", errors="replace") as said:
                    last = said.read().strip().rpartition("\n")[2]
            raise click.ClickException(f"{name} ended at once: {last or 'it said nothing'} (see {files.stderr})")
    click.echo(f"{name} runs in the background as process {pid} (pid file {files.pid}, log {files.stderr}).")
