"""Commands on pools."""

from __future__ import annotations

from tradewind.model.rows import PoolRow
from tradewind.scheduler.commands.context import CommandContext
from tradewind.wire import commands as c


def set_pool(context: CommandContext, command: c.SetPool) -> None:
    pool = PoolRow(command.name, command.slots, command.description, command.include_deferred)
    context.store.set_pool(pool, context.actor, context.clock.wall())
    context.effects.pools = True


def delete_pool(context: CommandContext, command: c.DeletePool) -> None:
    context.store.delete_pool(command.name, context.actor, context.clock.wall())
    context.effects.gone_pools.add(command.name)
