"""What people command, as a scheduler carries it out: once, however often it is said, and answered when it is committed.

Whoever looks at commits is told here which command a commit belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.handler import Commands
from tradewind.wire.messages import Command, CommandResult

WRITES = frozenset({"create_asset_event", "drop_queued_events"})
"""Commands that write something whenever they succeed."""
REPEATABLE = frozenset({"register_file"})
"""What a file says is what it says, however often."""

Judge = Callable[[Command, CommandResult], None]
"""Is told what became of a command."""


class CommandChecks:
    """See the module.

    Args:
        violated: called with the name of the rule and a sentence.
    """

    def __init__(self, violated: Callable[[str, str], None]) -> None:
        self._violated = violated
        self.current: Command | None = None
        """What is being carried out."""
        self.judges: list[Judge] = []
        self._done: set[str] = set()
        """Those that are committed."""

    def committed(self) -> None:
        """50: something was committed; a command is carried out once."""
        command = self.current
        if command is None:
            return
        if command.op in self._done and command.name not in REPEATABLE:
            self._violated("50 commands", f"the command {command.op}, {command.name}, is carried out once more")
        self._done.add(command.op)

    def ended(self, command: Command, result: CommandResult) -> None:
        """A scheduler answers it, unless it dies before."""
        if result.error is None and command.name in WRITES and command.op not in self._done:
            self._violated("50 commands", f"the command {command.op}, {command.name}, has succeeded, but nothing was committed")
        for judge in self.judges:
            judge(command, result)


class WatchedCommands(Commands):
    """The production commands; the world knows which of them is being carried out."""

    def __init__(self, checks: CommandChecks, *args: Any) -> None:
        super().__init__(*args)
        self._checks = checks

    def run(self, command: Command) -> tuple[CommandResult, Effects]:
        checks = self._checks
        checks.current = command
        try:
            result, effects = super().run(command)
        finally:
            checks.current = None
        checks.ended(command, result)
        return result, effects
