"""The context of a command, for its handler."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.config import SchedulerConfig
from tradewind.store.port import Store
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

AskTimetable = Callable[[TimetableQuestion], TimetableAnswer]
"""Asks a custom timetable and waits for its answer."""


class CommandContext(msgspec.Struct):
    """One execution of one command, in its own transaction.

    Args:
        encrypt: turns a text into the bytes that the store keeps (variables, passwords).
        actor: the person or program that requests the command, for the audit log.
        ask_timetable: None: a timetable cannot be asked now.
        timetable_answer: the answer of the custom timetable, if it was asked before the command began.
    """

    store: Store
    clock: Clock
    config: SchedulerConfig
    encrypt: Callable[[str], bytes]
    actor: str
    ask_timetable: AskTimetable | None = None
    timetable_answer: TimetableAnswer | None = None
    effects: Effects = msgspec.field(default_factory=Effects)
    """The changes that a live scheduler has to apply to its memory. Handlers add to it."""
