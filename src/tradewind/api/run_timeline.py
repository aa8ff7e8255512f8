"""The rows of one run, and its Gantt chart: spans of waiting and running, the critical path, and the usual times. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tradewind.api.grid_structure import GridShape
from tradewind.kernel.run_summary import ABSENT, worst
from tradewind.model.definition import DagDefinition
from tradewind.model.states import TASK_STATES, TaskState
from tradewind.store.port.run_page import FormerRun, InstanceSummary, TaskTime

_S = TaskState
MILLISECOND = 1_000

PHASES = ("upstream", "limit", "queued", "running", "retry", "reschedule", "deferred", "restarting")
"""The phase of a task instance in each span: it waits for upstream tasks; waits for a pool or another limit; waits for its
process; runs; waits for its next try; waits for its next check; waits for an event or a person; waits for the end of its
cleared attempt.
"""

_PHASE_OF = {
    _S.NONE.code: 0,
    _S.SCHEDULED.code: 1,
    _S.QUEUED.code: 2,
    _S.RUNNING.code: 3,
    _S.UP_FOR_RETRY.code: 4,
    _S.UP_FOR_RESCHEDULE.code: 5,
    _S.DEFERRED.code: 6,
    _S.AWAITING_INPUT.code: 6,
    _S.RESTARTING.code: 7,
}
"""State → phase; a finished state has none."""

_WAITING = frozenset({_S.NONE.code, _S.REMOVED.code})


class RowTimes(NamedTuple):
    """One entry for each row of the structure. Times are milliseconds after the start of the run; −1: none."""

    states: list[int]
    """−1: the run has no instance of the task."""
    starts: list[int]
    durations: list[int]
    """−1 while it has not ended, too."""
    tries: list[int]
    instances: list[int]


def row_times(shape: GridShape, origin: int, rows: Sequence[InstanceSummary]) -> RowTimes:
    """The times of each row of a run. The row of a group, or of a task with several instances, covers all its task instances.

    Args:
        origin: the start of the run, microseconds.
    """
    codes: list[bytearray] = [bytearray() for _ in range(shape.size)]
    starts: list[int] = [-1] * shape.size
    ends: list[int] = [-1] * shape.size
    running = bytearray(shape.size)
    tries = [0] * shape.size
    for one in rows:
        number = shape.tasks.get(one.task_id)
        if number is None:
            continue
        row = shape.row_of[number]
        codes[row].append(one.state)
        tries[row] = max(tries[row], one.try_number)
        if one.started_at is not None:
            starts[row] = one.started_at if starts[row] < 0 else min(starts[row], one.started_at)
            if one.ended_at is None:
                running[row] = 1
            else:
                ends[row] = max(ends[row], one.ended_at)
    for group, end in reversed(shape.groups):
        inside = [row for row in range(group + 1, end) if shape.order[row] >= 0]
        codes[group] = bytearray(worst(codes[row]) for row in inside if codes[row])
        started = [starts[row] for row in inside if starts[row] >= 0]
        starts[group] = min(started, default=-1)
        ends[group] = max((ends[row] for row in inside), default=-1)
        running[group] = any(running[row] for row in inside)
        tries[group] = max((tries[row] for row in inside), default=0)
    return RowTimes(
        [-1 if not found or worst(found) == ABSENT else worst(found) for found in codes],
        [-1 if start < 0 else (start - origin) // MILLISECOND for start in starts],
        [
            -1 if start < 0 or end < 0 or running[row] else max(0, end - start) // MILLISECOND
            for row, (start, end) in enumerate(zip(starts, ends, strict=True))
        ],
        tries,
        [len(found) for found in codes],
    )


def spans(steps: Sequence[tuple[int, int, int, int]], slots: set[int], origin: int, now: int) -> dict[int, list[int]]:
    """The spans of task instances from the journal: slot → phase, start, length, phase, start, length, …

    Args:
        steps: (slot, state before, state after, moment), in order.
        slots: only these.
        origin: the start of the run, microseconds. A span before it begins there.
        now: spans that have not ended last until now.
    """
    found: dict[int, list[int]] = {slot: [] for slot in slots}
    open_at: dict[int, tuple[int, int]] = dict.fromkeys(slots, (_S.NONE.code, origin))

    def close(slot: int, at: int) -> None:
        state, since = open_at[slot]
        phase = _PHASE_OF.get(state)
        if phase is None or at <= since:
            return
        start, length = (since - origin) // MILLISECOND, (at - since) // MILLISECOND
        before = found[slot]
        if before and before[-3] == phase and before[-2] + before[-1] >= start:
            before[-1] = start + length - before[-2]
        else:
            before += (phase, start, length)

    for slot, _, after, at in steps:
        if slot in slots:
            close(slot, at)
            open_at[slot] = (after, max(at, origin))
    for slot, (state, _) in open_at.items():
        if state not in _WAITING or found[slot]:
            close(slot, now)
    return found


def critical_path(definition: DagDefinition, ends: dict[str, int]) -> list[str]:
    """The critical path: the tasks that decided when the run ended, in order. Each waited for the task before it, which was
    its last upstream task to end.

    Args:
        ends: task id → when its last instance ended; only tasks that ran.
    """
    tasks = {task.task_id: task for task in definition.tasks}
    path: list[str] = []
    last = max(ends, key=lambda task_id: ends[task_id], default=None)
    while last is not None and last not in path:
        path.append(last)
        upstream = [one for one in tasks[last].upstream if one in ends] if last in tasks else []
        last = max(upstream, key=lambda task_id: ends[task_id], default=None)
    return path[::-1]


def usual_times(runs: Sequence[FormerRun], times: Sequence[TaskTime]) -> dict[str, tuple[int, int]]:
    """Task → the medians of its start after the start of the run, and of its duration, milliseconds."""
    starts = {run.run: run.started_at for run in runs}
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for one in times:  # the instances of a mapped task count as one
        first, last = found.setdefault(one.task_id, {}).get(one.run, (one.started_at, one.ended_at))
        found[one.task_id][one.run] = (min(first, one.started_at), max(last, one.ended_at))
    return {
        task_id: (
            round(median((first - starts[run]) // MILLISECOND for run, (first, _) in by_run.items())),
            round(median((last - first) // MILLISECOND for first, last in by_run.values())),
        )
        for task_id, by_run in found.items()
    }


STATE_NAMES = [state.value for state in TASK_STATES]
