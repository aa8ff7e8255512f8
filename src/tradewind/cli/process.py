"""Entry point of the supervisor's child processes: `main(KIND, PARENT_PID)`, or `python -m tradewind.cli.process KIND PARENT_PID`.

KIND is scheduler, host (host-NAME for a further worker host), parser or api; examples registers the shipped examples and ends.
When the parent dies, a child gets a signal: SIGTERM, SIGINT, or SIGKILL if it has nothing to clean up.

stderr is the process's log file. If TRADEWIND_SUPERVISOR_PIPE has the number of a descriptor, warnings and errors are also written
there, one record a line, and so are the messages of `send_to_supervisor`. A write never blocks: if the supervisor does not read,
lines are lost and the process continues.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable

import tradewind.platform.light_imports  # noqa: F401 (before msgspec)
from tradewind.cli.compose.api_server import run_api
from tradewind.cli.compose.gateway import run_gateway
from tradewind.cli.compose.log_uploads import run_uploads
from tradewind.cli.compose.parser import register_examples, run_parser
from tradewind.cli.compose.scheduler import run_scheduler
from tradewind.cli.compose.service_process import start_log
from tradewind.cli.compose.worker_host import run_host
from tradewind.cli.worker_hosts import worker_of_kind
from tradewind.model.errors import StoreBusy, StoreFull, StoreUnreachable, StoreUnwritable, TradewindError
from tradewind.observe.log import LineFormatter, Log
from tradewind.platform import HAVE_LINUX
from tradewind.settings import Settings, load

CANNOT_START = 78
"""Exit code: the configuration or the database prevents the start, so a restart would not help (EX_CONFIG of sysexits)."""
TRY_AGAIN = 75
"""Exit code: the database is locked or the disk is full, so a restart may help (EX_TEMPFAIL of sysexits)."""

SUPERVISOR_PIPE = "TRADEWIND_SUPERVISOR_PIPE"
"""Environment variable with the descriptor of the pipe to the supervisor."""
PREFIX = "!"
"""Start of a line that is a message for the supervisor; all other lines are for the user."""
ALIVE = f"{PREFIX}alive"
"""The event loop of this process makes progress."""
PASSES_DONE = f"{PREFIX}passes-done"
"""The parser has read every DAG file PASSES times, and the scheduler has stored the results."""
DISPATCHED = f"{PREFIX}dispatched"
"""The scheduler's answer to SIGUSR1: the worker hosts have started all tasks that were due."""
PASSES = "TRADEWIND_NUM_RUNS"
"""Environment variable of the parser with the number of passes over all DAG files after which it reports PASSES_DONE."""
_LINE_MAX = 4000
"""Bytes of the longest line. It is less than PIPE_BUF, so a line is written completely or not at all."""

_pipe = -1


def send_to_supervisor(line: str) -> None:
    """Write a line to the supervisor's pipe, if there is one. The line is lost if the pipe is full or closed."""
    if _pipe >= 0:
        try:
            os.write(_pipe, line.encode()[:_LINE_MAX] + b"\n")
        except OSError:
            pass  # the pipe is full or closed


class _SupervisorHandler(logging.Handler):
    """Sends warnings and errors to the supervisor, which shows them on the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        send_to_supervisor(self.format(record))


def _open_pipe(kind: str) -> None:
    global _pipe
    text = os.environ.pop(SUPERVISOR_PIPE, "")
    if text:
        _pipe = int(text)
        os.set_inheritable(_pipe, False)
        handler = _SupervisorHandler(logging.WARNING)
        handler.setFormatter(LineFormatter(kind))
        logging.getLogger().addHandler(handler)


def main(kind: str, parent: int) -> int:
    """Run the service until it stops, and return the exit code of this process."""
    os.umask(0o077)
    if HAVE_LINUX and parent:
        from tradewind.platform import linux  # lazy import: Linux only

        # at SIGINT a worker host stops its tasks at once: the next supervisor's host must wait until it has ended
        ends = {"host": signal.SIGINT, "scheduler": signal.SIGTERM}
        linux.die_with_parent(parent, ends.get(kind.partition("-")[0], signal.SIGKILL))
    _open_pipe(kind)
    try:
        settings = load()
        start_log(settings, kind)
        settings.paths.prepare()
        _run(kind, settings)
    except (StoreBusy, StoreFull, StoreUnwritable, StoreUnreachable) as error:
        Log(kind).error("the process cannot continue now and will be restarted", error=str(error))
        return TRY_AGAIN
    except TradewindError as error:
        Log(kind).error("the process cannot continue", error=str(error))
        return CANNOT_START
    return 0


def _run(kind: str, settings: Settings) -> None:
    """Run the process of this kind. With TRADEWIND_PROFILE=FOLDER its profile is written to FOLDER/KIND.prof."""
    work = KINDS.get(kind) or (lambda settings: run_host(settings, _alive, worker_of_kind(kind)))
    folder = os.environ.pop("TRADEWIND_PROFILE", None)
    if folder is None:
        work(settings)
        return
    import cProfile  # lazy import: only for `python -m benchmarks.profile_hotpath`

    profile = cProfile.Profile()
    try:
        profile.runcall(work, settings)
    finally:
        profile.dump_stats(os.path.join(folder, f"{kind}.prof"))


def _alive() -> None:
    """Report progress of the event loop to the supervisor."""
    send_to_supervisor(ALIVE)


def _api(settings: Settings) -> None:
    run_api(settings, lambda address: send_to_supervisor(f"{PREFIX}address {address}"), _alive)


def _gateway(settings: Settings) -> None:
    run_gateway(settings, lambda address: send_to_supervisor(f"{PREFIX}address {address}"), _alive)


def _scheduler(settings: Settings) -> None:
    run_scheduler(settings, alive=_alive, dispatched=lambda: send_to_supervisor(DISPATCHED))


def _parser(settings: Settings) -> None:
    passes = int(os.environ.pop(PASSES, "0"))
    run_parser(settings, _alive, passes, lambda: send_to_supervisor(PASSES_DONE))


KINDS: dict[str, Callable[[Settings], None]] = {
    "scheduler": _scheduler,
    "host": lambda settings: run_host(settings, _alive),
    "parser": _parser,
    "examples": register_examples,
    "api": _api,
    "gateway": _gateway,
    "uploads": lambda settings: run_uploads(settings, _alive),
}

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], int(sys.argv[2])))
