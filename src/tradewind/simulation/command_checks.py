"""Invariants of commands: each is executed once, even if it is sent several times, and answered after its commit.

This module also tells the other checks to which command a commit belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.handler import Commands
from tradewind.wire import commands as c
from tradewind.wire.messages import CommandResult, TimetableAnswer

WRITES = (c.CreateAssetEvent, c.DropQueuedEvents)
"""Commands that write something whenever they succeed."""
REPEATABLE = (c.RegisterFile,)
"""Commands that may be executed repeatedly: the registration of a file has the same result each time."""

Judge = Callable[[c.IncomingCommand, CommandResult], None]
"""Called with the result of a command."""


class CommandChecks:
    """See the module.

    Args:
        violated: called with the name of the rule and a sentence.
    """

    def __init__(self, violated: Callable[[str, str], None]) -> None:
        self._violated = violated
        self.current: c.IncomingCommand | None = None
        """The command that is being executed."""
        self.judges: list[Judge] = []
        self._done: set[str] = set()
        """Commands that are committed."""

    def committed(self) -> None:
        """50: a command is executed once. Called after a commit."""
        if self.current is None:
            return
        op, command, _ = self.current
        if op in self._done and not isinstance(command, REPEATABLE):
            self._violated("50 commands", f"the command {op}, {c.name_of(command)}, is carried out once more")
        self._done.add(op)

    def ended(self, incoming: c.IncomingCommand, result: CommandResult) -> None:
        """Check the answer of a scheduler to a command."""
        op, command, _ = incoming
        if result.error is None and isinstance(command, WRITES) and op not in self._done:
            name = c.name_of(command)
            self._violated("50 commands", f"the command {op}, {name}, has succeeded, but nothing was committed")
        for judge in self.judges:
            judge(incoming, result)


class ObservedCommands(Commands):
    """The commands of production. They tell the checks which command is being executed."""

    def __init__(self, checks: CommandChecks, *args: Any) -> None:
        super().__init__(*args)
        self._checks = checks

    def run(
        self, incoming: c.IncomingCommand, timetable_answer: TimetableAnswer | None = None
    ) -> tuple[CommandResult, Effects]:
        checks = self._checks
        checks.current = incoming
        try:
            result, effects = super().run(incoming, timetable_answer)
        finally:
            checks.current = None
        checks.ended(incoming, result)
        return result, effects
