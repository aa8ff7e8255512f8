"""Commands on connections."""

from __future__ import annotations

from tradewind.model.rows import ConnectionRow
from tradewind.scheduler.commands.context import CommandContext
from tradewind.wire import commands as c


def set_connection(context: CommandContext, command: c.SetConnection) -> None:
    row = ConnectionRow(
        command.conn_id,
        command.conn_type,
        command.description,
        command.host,
        command.login,
        command.port,
        command.schema,
        context.encrypt(command.password) if command.password else None,
        context.encrypt(command.extra) if command.extra else None,
    )
    context.store.set_connection(row, context.actor, context.clock.wall(), replace=command.replace)
    context.effects.lookups.add(f"connection {row.conn_id}")


def delete_connection(context: CommandContext, command: c.DeleteConnection) -> None:
    context.store.delete_connection(command.conn_id, context.actor, context.clock.wall())
    context.effects.lookups.add(f"connection {command.conn_id}")
