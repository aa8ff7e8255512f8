"""Opens the command handlers of the scheduler in this process, for commands while no scheduler runs."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from tradewind.cli.compose.bundles import DAGS_BUNDLE
from tradewind.cli.compose.database import open_prepared
from tradewind.cli.compose.parser import parser_config
from tradewind.cli.compose.scheduler_settings import scheduler_config
from tradewind.platform.clock import SystemClock

if TYPE_CHECKING:
    from tradewind.scheduler.commands.handler import Commands
    from tradewind.settings import Settings
    from tradewind.store.port import FullStore
    from tradewind.wire.messages import TimetableAnswer, TimetableQuestion


def open_commands(settings: Settings) -> tuple[FullStore, Commands]:
    """Open the store and the command handlers without a scheduler. The caller holds the writer lock and closes the store."""
    from tradewind.scheduler.commands.handler import Commands
    from tradewind.store import factory

    def ask(question: TimetableQuestion) -> TimetableAnswer:
        from tradewind.cli.lookups import from_database
        from tradewind.parser.parse_once import ask_once

        config = parser_config(settings, settings.paths.dags, DAGS_BUNDLE)
        return ask_once(config, question, lambda asked: from_database(settings, asked))

    holder = os.urandom(8).hex()
    store, vault = open_prepared(settings, holder=holder)
    try:
        lease = factory.open_lease(settings.store, store, holder, socket.gethostname(), os.getpid())
        if lease is not None:
            lease.acquire(0)
    except BaseException:
        store.close()
        raise
    return store, Commands(store, SystemClock(), scheduler_config(settings), lambda text: vault.encrypt(text).encode(), ask)
