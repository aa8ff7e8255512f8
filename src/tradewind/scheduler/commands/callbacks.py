"""Commands on callbacks that were not acknowledged yet: call them again, or give them up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tradewind.model.errors import NotFound
from tradewind.model.rows import DEADLINE, OutboxItem
from tradewind.scheduler.commands.context import CommandContext
from tradewind.store.callback_view import shown
from tradewind.store.port import Store
from tradewind.wire import commands as c

AT_MOST = 1000
"""Maximum number of callbacks that one command retries or gives up."""


def retry_callbacks(context: CommandContext, command: c.RetryCallbacks) -> c.CallbackIds:
    now = context.clock.wall()
    chosen = list(_chosen(context.store, command.ids, waiting=True))
    for item in chosen:
        context.store.retry_outbox_item(item.id, now)
        _audit(context, "retry callback", item)
    context.effects.callbacks = True
    return c.CallbackIds([item.id for item in chosen])


def drop_callbacks(context: CommandContext, command: c.DropCallbacks) -> c.CallbackIds:
    chosen = list(_chosen(context.store, command.ids))
    for item in chosen:
        context.store.delete_outbox_item(item.id)
        _audit(context, "drop callback", item)
    return c.CallbackIds([item.id for item in chosen])


def _chosen(store: Store, ids: Sequence[int] | None, *, waiting: bool = False) -> Iterable[OutboxItem]:
    """Return the named callbacks. `ids` None: all parked ones; with `waiting` also failed ones that wait for their next try."""
    if ids is None:
        yield from store.outbox_items(parked=True, at_most=AT_MOST)
        if waiting:  # not the callbacks that the process of the task itself still has to call
            yield from [item for item in store.outbox_items(parked=False, at_most=AT_MOST) if item.tries]
        return
    for number in ids:
        item = store.outbox_item(number)
        if item is None or item.kind == DEADLINE:
            raise NotFound(f"there is no callback {number}: it was called or given up; see tradewind callbacks list")
        yield item


def _audit(context: CommandContext, event: str, item: OutboxItem) -> None:
    view = shown(item)
    detail = {"what": view.what, "task_id": view.task_id, "problem": view.problem}
    now = context.clock.wall()
    context.store.write_audit(event, context.actor, now, dag_id=view.dag_id, run_id=view.run_id, detail=detail)
