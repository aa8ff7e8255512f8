"""Callback requests: entries of the outbox for the callbacks and mails that `kernel.callbacks` requires.

The payload of a request is a `Workload` whose `call` describes the call, with the state at that moment: later changes of the run
have no effect. The identity of a request names the attempt (run, slot, fence) or the run and its clear number, so that a step
which is decided twice requests it once.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tradewind.kernel import callbacks
from tradewind.kernel.events import Move, RunEnds
from tradewind.model.definition import DagDefinition
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewCallbackRequest, RunRow
from tradewind.model.states import FINISHED, RunState, TaskState
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.wire.log_paths import callbacks_log_path
from tradewind.wire.messages import AttemptKey, Call, Workload, encode

CALLBACK, MAIL = "callback", "mail"
"""Kinds of requests."""

_replace = msgspec.structs.replace


def of_attempt(active_run: ActiveRun, move: Move, calls_back: bool, listened: Collection[str] = ()) -> list[NewCallbackRequest]:
    """Return the requests for a step of a task instance.

    Args:
        calls_back: the process of the task calls its callbacks itself.
        listened: the events for which plugins have listeners.
    """
    task = active_run.topology.tasks[active_run.machine.instances.task(move.slot)]
    required = callbacks.of_attempt(task, move.before, move.after, calls_back, listened)
    return [_of_step(active_run, move, wanted) for wanted in required]


OWN_CALLS = 60 * SECOND
"""If a process has not called its callbacks within this time, they are sent to a worker host."""


def of_own_process(active_run: ActiveRun, move: Move) -> list[NewCallbackRequest]:
    """Return the requests for callbacks that the process of the attempt calls itself: due if it does not report the calls."""
    task = active_run.topology.tasks[active_run.machine.instances.task(move.slot)]
    wanted = callbacks.of_own_process(task, move.after)
    return [_of_step(active_run, move, one)._replace(due=move.at + OWN_CALLS) for one in wanted]


def identity_prefix(attempt: AttemptKey) -> str:
    """Return the common prefix of the identities of an attempt's requests."""
    return "attempt/{}/{}/{}/".format(*attempt)


def _of_step(active_run: ActiveRun, move: Move, wanted: callbacks.CallbackRef) -> NewCallbackRequest:
    machine, slot = active_run.machine, move.slot
    task = active_run.topology.tasks[machine.instances.task(slot)]
    call = Call(
        wanted.argument,
        wanted.position,
        state=move.after.value,
        reason=machine.reasons.get(slot) or move.cause,
        started=machine.started_at[slot] or machine.queued_at[slot] or move.at,
        ended=machine.ended_at.get(slot, move.at) if move.after in FINISHED else move.at,
        to=task.email if wanted.argument == callbacks.EMAIL else (),
    )
    work = _replace(active_run.workload(slot, "", None), call=call)
    return _request(f"{identity_prefix(work.key)}{move.after.value}/{wanted.argument}/{wanted.position}", work, move.at, slot)


def of_run_start(active_run: ActiveRun, listened: Collection[str], at: int) -> list[NewCallbackRequest]:
    """Return the requests for the start of a run. `listened`: the events for which plugins have listeners."""
    found = []
    for wanted in callbacks.of_run_start(listened):
        work = of_row(active_run.row, active_run.topology.definition)
        work = _replace(work, run_started=work.run_started or at, call=Call(wanted.argument, of_run=True))
        name = f"run/{work.run}/{active_run.row.clear_number}/{wanted.argument}"
        found.append(_request(name, work, at, -1))
    return found


def of_run(active_run: ActiveRun, end: RunEnds, listened: Collection[str] = ()) -> list[NewCallbackRequest]:
    """Return the requests for the end of a run. `listened`: the events for which plugins have listeners."""
    state = RunState.SUCCESS if end.success else RunState.FAILED
    found = []
    for wanted in callbacks.of_run(active_run.topology.definition, end.success, listened):
        slot = context_slot(active_run, end.success)
        call = Call(
            wanted.argument,
            wanted.position,
            of_run=True,
            state=active_run.machine.task_state(slot).value if slot is not None else "",
            reason=end.cause,
            started=active_run.machine.started_at[slot] or None if slot is not None else None,
            ended=active_run.machine.ended_at.get(slot, end.at) if slot is not None else None,
            run_state=state.value,
            run_ended=end.at,
            end_reason=end.reason,
        )
        work = _replace(for_run(active_run, slot), call=call)
        name = f"run/{work.run}/{active_run.row.clear_number}/{wanted.argument}/{wanted.position}"
        found.append(_request(name, work, end.at, -1))
    return found


def context_slot(active_run: ActiveRun, success: bool) -> int | None:
    """Return the task instance whose context the callback of a run gets: the first that failed, otherwise the one that ended last.

    None for a DAG without tasks.
    """
    machine = active_run.machine
    slots = range(machine.instances.total)
    if not success:
        failed = next((slot for slot in slots if machine.task_state(slot) is TaskState.FAILED), None)
        if failed is not None:
            return failed
    ended = [slot for slot in slots if machine.task_state(slot) in FINISHED]
    return max(ended, key=lambda slot: (machine.ended_at.get(slot, 0), slot), default=next(iter(slots), None))


def for_run(active_run: ActiveRun, slot: int | None) -> Workload:
    """Return the workload with which a process calls a callback of the run."""
    row = active_run.row
    if slot is not None:
        return _replace(active_run.workload(slot, "", None), log=callbacks_log_path(row.dag_id, row.run_id))
    return of_row(row, active_run.topology.definition)


def of_row(row: RunRow, definition: DagDefinition) -> Workload:
    """Return a workload with the fields of a run and without a task."""
    return Workload(
        run=row.id,
        slot=-1,
        fence=0,
        dag_id=row.dag_id,
        task_id="",
        run_id=row.run_id,
        bundle_version=row.bundle_version,
        file=definition.fileloc,
        run_type=row.run_type,
        logical_date=row.logical_date,
        interval_start=row.interval_start,
        interval_end=row.interval_end,
        run_after=row.run_after,
        partition_key=row.partition_key,
        partition_date=row.partition_date,
        run_started=row.started_at,
        queued_at=row.queued_at,
        conf=msgspec.json.decode(row.conf) if row.conf else {},
        triggering_user=row.triggering_user,
        log=callbacks_log_path(row.dag_id, row.run_id),
    )


def _request(name: str, work: Workload, at: int, slot: int) -> NewCallbackRequest:
    assert work.call is not None
    kind = MAIL if work.call.argument == callbacks.EMAIL else CALLBACK
    return NewCallbackRequest(kind, name, encode(work), at, None, slot)
