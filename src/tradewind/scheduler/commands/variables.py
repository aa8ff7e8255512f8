"""Commands on variables."""

from __future__ import annotations

from tradewind.model.errors import Conflict, NotFound
from tradewind.model.rows import VariableRow
from tradewind.scheduler.commands.context import CommandContext
from tradewind.wire import commands as c


def set_variable(context: CommandContext, command: c.SetVariable) -> None:
    if not command.key:
        raise Conflict("a variable needs a key")
    if command.value is not None:
        row = VariableRow(command.key, context.encrypt(command.value), command.description, True)
    else:
        found = context.store.variable(command.key)
        if found is None:
            raise NotFound(f"There is no variable {command.key!r}, so it has no value that could stay")
        row = found._replace(description=command.description)
    context.store.set_variable(row, context.actor, context.clock.wall())
    context.effects.lookups.add(f"variable {row.key}")


def delete_variable(context: CommandContext, command: c.DeleteVariable) -> None:
    context.store.delete_variable(command.key, context.actor, context.clock.wall())
    context.effects.lookups.add(f"variable {command.key}")
