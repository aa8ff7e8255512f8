"""The root cause of a chain of runs that wait for each other by `depends_on_past` or `wait_for_downstream`, for `why`.

A task may be blocked by the same task in the previous run, which is blocked by the run before that, and so on. The blocker
names the first run of the chain, and the command that removes the cause. Computed only when somebody asks.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import NamedTuple

from tradewind.kernel.causes import clear_command, root_causes
from tradewind.kernel.explain import Blocker, dependencies
from tradewind.model.phrases import Phrase, phrase, then
from tradewind.model.rows import RunRow
from tradewind.model.states import FINISHED, RunState, TaskState
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker
from tradewind.store.port import RowReader

RUNS_EXAMINED_MAX = 200
"""Maximum number of runs that a chain is followed back."""

_GOOD = (TaskState.SUCCESS, TaskState.SKIPPED, TaskState.REMOVED)

Read = Callable[[RowReader, RunRow], ActiveRun]


class _Cause(NamedTuple):
    """The first task instance of the chain."""

    runs: int
    """How many runs it is before the run in question."""
    active_run: ActiveRun
    slot: int


def with_cause(
    store: RowReader, scheduler: Scheduler | None, active_run: ActiveRun, slot: int, blocker: Blocker, read: Read
) -> Blocker:
    """Return the blocker `past` of a task instance with the root cause of its chain.

    Args:
        read: reads a run that is not in the scheduler's memory.
    """
    cause = _first(store, scheduler, active_run, active_run.machine.instances.task(slot), read)
    if cause is None:
        return blocker
    machine, run_id, where = cause.active_run.machine, cause.active_run.row.run_id, cause.slot
    state, name, reason = machine.task_state(where), machine.name(where), blocker.reason
    if cause.runs > 1:
        reason = then(reason, _cause(cause.runs, run_id, name, state))
    if state not in FINISHED:
        task_id, index = cause.active_run.where(where)
        one = f" --map-index {index}" if index >= 0 else ""
        see = f"tradewind why {active_run.row.dag_id} {task_id} --run-id {shlex.quote(run_id)}{one}"
        ends = phrase("ends_task_ends_in_run", task=name, run=run_id)
        return blocker._replace(reason=then(reason, phrase("past_see", command=see)), ends=ends)
    causes = root_causes(machine, where)
    if causes != [where]:
        named = phrase("task_in_state", task=machine.name(causes[0]), state=machine.task_state(causes[0]).value)
        first = phrase("and_others", items=[named]) if len(causes) > 1 else named
        reason = then(reason, phrase("root_cause", tasks=first))
    ends = phrase("ends_good_in_run", task=name, run=run_id)
    return blocker._replace(reason=reason, ends=ends, command=clear_command(machine, where, run_id), by_hand=True)


def _cause(runs: int, run_id: str, name: str, state: TaskState) -> Phrase:
    if state is TaskState.NONE:
        return phrase("past_cause_not_started", runs=runs, run=run_id, task=name)
    return phrase("past_cause", runs=runs, run=run_id, task=name, state=state.value)


def _first(store: RowReader, scheduler: Scheduler | None, active_run: ActiveRun, task: int, read: Read) -> _Cause | None:
    """Go back from run to run as long as only the previous run blocks the task; None: nothing blocks it."""
    active_runs_by_id, past = (
        (scheduler.active_runs_by_id, scheduler.previous_runs) if scheduler is not None else ({}, PreviousRunTracker(store))
    )
    now = scheduler.clock.wall() if scheduler is not None else 0
    found: _Cause | None = None
    for count in range(1, RUNS_EXAMINED_MAX + 1):
        previous = past.run_before(active_run.row, active_run.topology)
        if previous is None:
            break
        before = active_runs_by_id.get(previous.id) or read(store, previous)
        slot = _blocking_slot(active_run, task, before)
        if slot is None:
            break
        found = _Cause(count, before, slot)
        only_past = before.machine.task_state(slot) is TaskState.NONE and {
            one.rule for one in dependencies(before.machine, slot, now)
        } == {"past"}
        if previous.state not in (RunState.RUNNING, RunState.QUEUED) or not only_past:
            break
        active_run, task = before, before.machine.instances.task(slot)
    return found


def _blocking_slot(active_run: ActiveRun, task: int, before: ActiveRun) -> int | None:
    """Return the first task instance of the previous run that blocks `task`."""
    definition, index = active_run.topology.tasks[task], before.topology.index
    names = [definition.task_id]
    if definition.wait_for_downstream:
        names += [active_run.topology.ids[child] for child in active_run.topology.downstream(task)]
    for name in names:
        for slot in before.machine.instances.slots(index[name]) if name in index else ():
            if before.machine.task_state(slot) not in _GOOD:
                return slot
    return None
