"""Sets up the log and the progress reports of a service process."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from tradewind.observe import log as observe_log
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.platform.progress import Stamp, stamp_interval

if TYPE_CHECKING:
    from tradewind.settings import Settings

from tradewind.cli.compose.user_code import use_secret_names

LOG_FILE = "TRADEWIND_LOG_FILE"
"""Environment variable with the file of `--log-file`, for the log of a service and its child processes."""


def do_nothing() -> None:
    """Callback `alive` of a process that has no supervisor."""


@contextmanager
def reporting_progress(settings: Settings, kind: str, loop: Loop, alive: Callable[[], None]) -> Iterator[None]:
    """While the context is open, the loop of this process reports progress to a file and to its supervisor (`alive`).

    On SIGQUIT the process writes the stacks of all its threads to its log and continues.
    """
    faulthandler.register(signal.SIGQUIT, log_stream())
    stamp = Stamp(settings.paths.progress(kind), SystemClock(), alive)
    stamp.keep(loop, stamp_interval(settings.core.stall_limit_us))
    try:
        yield
    finally:
        stamp.end()


_log_stream: TextIO | None = None
"""The opened file of `--log-file`; None: the log goes to stderr."""


def log_stream() -> TextIO:
    """The stream for the log of this process."""
    return _log_stream or sys.stderr


def start_log(settings: Settings, component: str) -> None:
    from tradewind.model.secret_mask import SecretMask, secrets_of_environment

    use_secret_names(settings)
    mask = SecretMask(secrets_of_environment(os.environ))
    global _log_stream
    path = os.environ.get(LOG_FILE)
    _log_stream = open(path, "a", encoding="utf-8", buffering=1, opener=_private) if path else None  # noqa: SIM115 (open until the process ends)
    observe_log.configure(component, settings.logging.level, _log_stream, mask=mask.text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
