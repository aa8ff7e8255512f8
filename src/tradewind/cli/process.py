"""Entry of the long-lived processes below the supervisor: `python -m tradewind.cli.process KIND PARENT_PID`.

KIND is scheduler, host, parser or api; examples makes the shipped examples known and ends. When the parent dies, TERM comes (and
KILL for those that have nothing to put in order).

stderr is the process's log file. Where TRADEWIND_TELL names a descriptor, warnings and errors go there too, a record a line, and
`tell` says what the supervisor waits for. It never blocks: a supervisor that does not listen misses lines and stops nobody.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable

import tradewind.platform.light_imports  # noqa: F401 (before msgspec)
from tradewind.cli import compose
from tradewind.model.errors import StoreBusy, StoreFull, StoreUnwritable, TradewindError
from tradewind.observe.log import LineFormatter, Log
from tradewind.platform import HAVE_LINUX
from tradewind.settings import Settings, load

CANNOT_START = 78
"""Exit code: the configuration or the database forbids the start; starting again would not help (sysexits' EX_CONFIG)."""
TRY_AGAIN = 75
"""Exit code: the database is locked or the disk is full; that passes (sysexits' EX_TEMPFAIL)."""

TELL = "TRADEWIND_TELL"
"""Environment variable: the descriptor of the pipe to the supervisor."""
SIGN = "!"
"""Lines that begin with it are for the supervisor, all others for people."""
ALIVE = f"{SIGN}alive"
"""The loop of the process that says so turns."""
PASSES_DONE = f"{SIGN}passes-done"
"""The parser has read every DAG file so many times as PASSES says, and the scheduler has the outcome."""
DISPATCHED = f"{SIGN}dispatched"
"""The scheduler's answer to SIGUSR1: a worker host has started all that was due."""
PASSES = "TRADEWIND_NUM_RUNS"
"""Environment variable of the parser: how many passes over all DAG files it counts."""
_LINE_MAX = 4000
"""Below PIPE_BUF: a line is written whole or not at all."""

_pipe = -1


def tell(line: str) -> None:
    """Say something to the supervisor, if there is one that listens."""
    if _pipe >= 0:
        try:
            os.write(_pipe, line.encode()[:_LINE_MAX] + b"\n")
        except OSError:
            pass  # full, or nobody there


class _Teller(logging.Handler):
    """Warnings and errors, for whoever sits at the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(self.format(record))


def _open_pipe(kind: str) -> None:
    global _pipe
    text = os.environ.pop(TELL, "")
    if text:
        _pipe = int(text)
        os.set_inheritable(_pipe, False)
        teller = _Teller(logging.WARNING)
        teller.setFormatter(LineFormatter(kind))
        logging.getLogger().addHandler(teller)


def main() -> int:
    kind, parent = sys.argv[1], int(sys.argv[2])
    os.umask(0o077)
    if HAVE_LINUX and parent:
        from tradewind.platform import linux  # lazy door: Linux only

        # a worker host stops its tasks at once then: the next supervisor's host has to wait for its end
        linux.die_with_parent(parent, {"host": signal.SIGINT, "scheduler": signal.SIGTERM}.get(kind, signal.SIGKILL))
    _open_pipe(kind)
    try:
        settings = load()
        compose.start_log(settings, kind)
        settings.paths.prepare()
        _run(kind, settings)
    except (StoreBusy, StoreFull, StoreUnwritable) as error:
        Log(kind).error("it cannot go on now", error=str(error))
        return TRY_AGAIN
    except TradewindError as error:
        Log(kind).error("it cannot go on", error=str(error))
        return CANNOT_START
    return 0


def _run(kind: str, settings: Settings) -> None:
    """Be this process; with TRADEWIND_PROFILE=FOLDER a profile of its whole life goes to FOLDER/KIND.prof."""
    folder = os.environ.pop("TRADEWIND_PROFILE", None)
    if folder is None:
        KINDS[kind](settings)
        return
    import cProfile  # lazy door: only for `python -m benchmarks.profile_hotpath`

    profile = cProfile.Profile()
    try:
        profile.runcall(KINDS[kind], settings)
    finally:
        profile.dump_stats(os.path.join(folder, f"{kind}.prof"))


def _alive() -> None:
    """The loop of this process turns."""
    tell(ALIVE)


def _api(settings: Settings) -> None:
    compose.run_api(settings, lambda address: tell(f"{SIGN}address {address}"), _alive)


def _scheduler(settings: Settings) -> None:
    compose.run_scheduler(settings, alive=_alive, dispatched=lambda: tell(DISPATCHED))


def _parser(settings: Settings) -> None:
    passes = int(os.environ.pop(PASSES, "0"))
    compose.run_parser(settings, _alive, passes, lambda: tell(PASSES_DONE))


KINDS: dict[str, Callable[[Settings], None]] = {
    "scheduler": _scheduler,
    "host": lambda settings: compose.run_host(settings, _alive),
    "parser": _parser,
    "examples": compose.register_examples,
    "api": _api,
}

if __name__ == "__main__":
    raise SystemExit(main())
