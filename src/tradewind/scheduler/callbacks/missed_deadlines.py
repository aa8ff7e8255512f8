"""Deadlines that are due: each miss is recorded once, and its callbacks and mails are requested.

Future deadlines are entries of the outbox, which the store creates together with the run. So they survive a restart and cost
nothing until they are due. A miss and the callbacks that follow from it are written in the transaction that deletes the entry.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tradewind.kernel import callbacks, deadlines
from tradewind.model.definition import DagDefinition
from tradewind.model.errors import NotFound, Stale, StoreError, StoreRefused
from tradewind.model.rows import DEADLINE, DeadlineMiss, OutboxItem, RunRow
from tradewind.model.states import TASK_STATES
from tradewind.observe.log import Log
from tradewind.scheduler.callbacks import requests
from tradewind.scheduler.epoch import must_be_newest
from tradewind.store.port import Store
from tradewind.wire.messages import Call, encode

log = Log("deadlines")

AT_A_TIME = 50
"""Maximum number of deadlines that one call handles."""


OnMiss = Callable[[str, str], None]
"""Called with the DAG id and the run id of a run that has missed a deadline."""


def record_missed(store: Store, now: int, epoch: int, on_miss: OnMiss | None = None) -> bool:
    """Handle deadlines that are due, and return whether more may be due.

    Args:
        on_miss: called for each deadline of a run that was missed.

    Raises:
        Stale: a scheduler with a newer epoch has started.
        StoreError: the store cannot be used; deadlines that were handled before stay handled.
    """
    due = store.due_outbox_items(now, AT_A_TIME, only=DEADLINE)
    for item in due:
        try:
            with store.transaction():
                must_be_newest(store, epoch)
                missed = _record(store, item, now)
            if missed is not None and on_miss is not None:
                on_miss(missed.dag_id, missed.run_id)
        except Exception as error:  # a deadline that fails must not stop the others
            if isinstance(error, Stale | StoreError) and not isinstance(error, StoreRefused):
                raise
            log.exception("a deadline cannot be handled; it is parked", callback=item.identity)
            store.postpone_outbox_item(item.id, now, f"it cannot be handled: {error}", str(error))
    return len(due) == AT_A_TIME


def _record(store: Store, item: OutboxItem, now: int) -> RunRow | None:
    """Handle one deadline. Returns the run if it has missed a deadline of its own."""
    store.delete_outbox_item(item.id)
    row = store.run(item.run) if item.run is not None else None
    if row is None:
        return None
    try:
        definition = store.definition(row.version)
    except NotFound:
        return None
    kind, number = deadlines.read_name(item.payload.decode())
    if kind == deadlines.SLA:
        _sla(store, row, definition, number, item, now)
    elif deadlines.run_missed(row.state, row.ended_at, item.due_at) and _alert(store, row, definition, number, item, now):
        return row
    return None


def _alert(store: Store, row: RunRow, definition: DagDefinition, number: int, item: OutboxItem, now: int) -> bool:
    """Record the miss of a deadline. False: the DAG does not have it any more, or it was recorded before."""
    if number >= len(definition.deadlines):
        return False  # the deadline and its callback were removed from the DAG
    alert = definition.deadlines[number]
    name = item.payload.decode()
    if not store.record_deadline_miss(DeadlineMiss(row.id, row.dag_id, row.run_id, None, name, alert.name, item.due_at, now)):
        return False
    log.warning("a run missed its deadline", dag_id=row.dag_id, run_id=row.run_id, deadline=alert.name or name)
    _post(store, row, definition, item, Call("deadline", number, of_run=True, due=item.due_at, run_state=row.state.value), now)
    return True


def _sla(store: Store, row: RunRow, definition: DagDefinition, sla: int, item: OutboxItem, now: int) -> None:
    snapshot = store.snapshot(row.id)
    rows = snapshot.rows if snapshot is not None else []
    instances = [deadlines.InstanceState(one.task_id, TASK_STATES[one.state], one.ended_at) for one in rows]
    name = item.payload.decode()
    late = tuple(
        task_id
        for task_id in deadlines.late_tasks(definition, sla, item.due_at, instances)
        if store.record_deadline_miss(DeadlineMiss(row.id, row.dag_id, row.run_id, task_id, name, None, item.due_at, now))
    )
    if not late:
        return
    log.warning("tasks missed their SLA", dag_id=row.dag_id, run_id=row.run_id, tasks=list(late[:10]))
    blocking = tuple(deadlines.blocking_tasks(instances))
    call = Call("sla_miss_callback", of_run=True, due=item.due_at, late=late, blocking=blocking, run_state=row.state.value)
    for place in range(len(definition.callbacks.get("sla_miss_callback", ()))):
        _post(store, row, definition, item, msgspec.structs.replace(call, index=place), now)
    wanted = set(late)
    to = sorted({address for task in definition.tasks if task.task_id in wanted for address in task.email})
    if to:
        _post(store, row, definition, item, msgspec.structs.replace(call, argument=callbacks.EMAIL, to=tuple(to)), now)


def _post(store: Store, row: RunRow, definition: DagDefinition, item: OutboxItem, call: Call, now: int) -> None:
    work = msgspec.structs.replace(requests.of_row(row, definition), call=call)
    kind = requests.MAIL if call.argument == callbacks.EMAIL else requests.CALLBACK
    store.add_outbox_item(kind, f"missed/{item.identity}/{call.argument}/{call.index}", encode(work), now, run=row.id)
