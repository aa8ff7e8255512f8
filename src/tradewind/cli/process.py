"""Entry of the long-lived processes below the supervisor: `python -m tradewind.cli.process KIND PARENT_PID`.

KIND is scheduler, host, parser or api. When the parent dies, TERM comes (and KILL for those that have nothing to put in order).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from tradewind.cli import compose
from tradewind.model.errors import TradewindError
from tradewind.observe.log import Log
from tradewind.processes import HAVE_LINUX
from tradewind.settings import Settings, load

CANNOT_START = 78
"""Exit code: the configuration or the database forbids the start; starting again would not help (sysexits' EX_CONFIG)."""


def main() -> int:
    kind, parent = sys.argv[1], int(sys.argv[2])
    os.umask(0o077)
    if HAVE_LINUX and parent:
        from tradewind.processes import linux  # lazy door: Linux only

        linux.die_with_parent(parent, signal.SIGTERM if kind in ("host", "scheduler") else signal.SIGKILL)
    try:
        settings = load()
        compose.start_log(settings, kind)
        settings.paths.prepare()
        KINDS[kind](settings)
    except TradewindError as error:
        Log(kind).error("it cannot go on", error=str(error))
        return CANNOT_START
    return 0


def _parser(settings: Settings) -> None:
    compose.run_parser(settings)


def _api(settings: Settings) -> None:
    compose.run_api(settings)


KINDS: dict[str, Callable[[Settings], None]] = {
    "scheduler": compose.run_scheduler,
    "host": compose.run_host,
    "parser": _parser,
    "api": _api,
}

if __name__ == "__main__":
    raise SystemExit(main())
