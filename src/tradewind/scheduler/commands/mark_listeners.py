"""Queues calls of the listeners of plugins after a person has set a state, as Airflow's API does.

The calls go through the outbox, in the transaction of the command: a process like that of a callback makes them, at least once.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradewind.kernel.callbacks import LISTENED_MARKS, LISTENED_RUN_MARKS
from tradewind.kernel.topology import Topology
from tradewind.model.rows import RunRow
from tradewind.model.states import RunState, TaskState
from tradewind.scheduler.callbacks.requests import CALLBACK, of_row
from tradewind.scheduler.commands.context import CommandContext
from tradewind.store.views import listened_events
from tradewind.wire.messages import Call, encode

_replace = msgspec.structs.replace


def queue_task_listeners(
    context: CommandContext, row: RunRow, topology: Topology, slots: Iterable[int], state: TaskState
) -> None:
    """Queue the calls of listeners for task instances that a person has marked. Call it after the mark was written.

    Args:
        slots: the slots of the task instances.
    """
    event = LISTENED_MARKS.get(state)
    wanted = set(slots)
    if event is None or not wanted or event not in listened_events(context.store.plugins()):
        return
    store, now = context.store, context.clock.wall()
    snapshot = store.snapshot(row.id)
    names = {slot: (task_id, index) for slot, task_id, index, _ in store.task_instances_of(row, None)}
    base = of_row(row, topology.definition)
    for one in snapshot.rows if snapshot is not None else ():
        if one.slot not in wanted:
            continue
        task_id, index = names[one.slot]
        reason = f"TaskInstance's state was manually set to `{state.value}`."
        started, ended = one.started_at or now, one.ended_at or now
        call = Call(event, state=state.value, reason=reason, started=started, ended=ended, by_hand=True)
        work = _replace(
            base,
            slot=one.slot,
            fence=one.fence,
            task_id=task_id,
            map_index=index,
            try_number=one.try_number,
            max_tries=one.max_tries,
            call=call,
        )
        identity = f"marked/{row.id}/{one.slot}/{one.fence}/{event}"
        store.add_outbox_item(CALLBACK, identity, encode(work), now, run=row.id, slot=one.slot)
    context.effects.callbacks = True


def queue_run_listeners(context: CommandContext, row: RunRow, topology: Topology, state: RunState) -> None:
    """Queue the calls of listeners for a run that a person has set to success or failed."""
    event = LISTENED_RUN_MARKS.get(state)
    if event is None or event not in listened_events(context.store.plugins()):
        return
    now = context.clock.wall()
    message = f"Dag Run's state was manually set to `{state.value}`."
    call = Call(event, of_run=True, run_state=state.value, run_ended=now, end_reason=message, by_hand=True)
    work = _replace(of_row(row, topology.definition), call=call)
    context.store.add_outbox_item(CALLBACK, f"marked/{row.id}/{now}/{event}", encode(work), now, run=row.id)
    context.effects.callbacks = True
