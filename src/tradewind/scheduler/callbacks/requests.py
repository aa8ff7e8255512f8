"""What is posted with a step: the callbacks and mails that `kernel.callbacks` asks for, with all that is needed to call them.

A post's payload is a `Workload` whose `call` says what to call, as it was at that moment: what becomes of the run afterwards
does not matter to it. Its identity names the attempt (run, slot, fence) or the life of the run (run, clear number), so the same
step posts it once, however often it is decided.
"""

from __future__ import annotations

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
"""Kinds of posts."""

_replace = msgspec.structs.replace


def of_attempt(active_run: ActiveRun, move: Move, calls_back: bool) -> list[NewCallbackRequest]:
    """What a step of a task instance calls for. `calls_back`: its own process calls its callbacks."""
    task = active_run.topology.tasks[active_run.machine.instances.task(move.slot)]
    return [_of_step(active_run, move, wanted) for wanted in callbacks.of_attempt(task, move.before, move.after, calls_back)]


OWN_CALLS = 60 * SECOND
"""So long a process has to call the callbacks of its task; then they are called elsewhere. Its worker says sooner that it ended."""


def of_own_process(active_run: ActiveRun, move: Move) -> list[NewCallbackRequest]:
    """What the process of the attempt calls itself: held back until it has said that it did, or ended without a word."""
    task = active_run.topology.tasks[active_run.machine.instances.task(move.slot)]
    wanted = callbacks.of_own_process(task, move.after)
    return [_of_step(active_run, move, one)._replace(due=move.at + OWN_CALLS) for one in wanted]


def of_attempts_own(attempt: AttemptKey) -> str:
    """How the identities of an attempt's posts begin."""
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
    return _post(f"{of_attempts_own(work.key)}{move.after.value}/{wanted.argument}/{wanted.position}", work, move.at, slot)


def of_run(active_run: ActiveRun, end: RunEnds) -> list[NewCallbackRequest]:
    """What the end of a run calls for."""
    state = RunState.SUCCESS if end.success else RunState.FAILED
    posts = []
    for wanted in callbacks.of_run(active_run.topology.definition, end.success):
        slot = telling(active_run, end.success)
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
            word=end.reason,
        )
        work = _replace(for_run(active_run, slot), call=call)
        name = f"run/{work.run}/{active_run.row.clear_number}/{wanted.argument}/{wanted.position}"
        posts.append(_post(name, work, end.at, -1))
    return posts


def telling(active_run: ActiveRun, success: bool) -> int | None:
    """The task instance whose context the callback of a run is given: the first that failed, else the one that ended last.

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
    """What a process needs to know to call something for the whole run."""
    row = active_run.row
    if slot is not None:
        return _replace(active_run.workload(slot, "", None), log=callbacks_log_path(row.dag_id, row.run_id))
    return of_row(row, active_run.topology.definition)


def of_row(row: RunRow, definition: DagDefinition) -> Workload:
    """What a process needs to know of a run, without any task of it."""
    return Workload(
        run=row.id,
        slot=-1,
        fence=0,
        dag_id=row.dag_id,
        task_id="",
        run_id=row.run_id,
        file=definition.fileloc,
        run_type=row.run_type,
        logical_date=row.logical_date,
        interval_start=row.interval_start,
        interval_end=row.interval_end,
        run_after=row.run_after,
        run_started=row.started_at,
        queued_at=row.queued_at,
        conf=msgspec.json.decode(row.conf) if row.conf else {},
        triggering_user=row.triggering_user,
        log=callbacks_log_path(row.dag_id, row.run_id),
    )


def _post(name: str, work: Workload, at: int, slot: int) -> NewCallbackRequest:
    assert work.call is not None
    kind = MAIL if work.call.argument == callbacks.EMAIL else CALLBACK
    return NewCallbackRequest(kind, name, encode(work), at, None, slot)
