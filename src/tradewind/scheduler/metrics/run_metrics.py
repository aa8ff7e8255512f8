"""The metrics of a committed batch of one run. Pure: computed from the run and its changes.

Call `of_batch` after the commit and before the run begins its next batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator

from tradewind.metrics.measurement import Measurement
from tradewind.model.operator_classes import class_name
from tradewind.model.rows import AttemptEnd, AttemptStart
from tradewind.model.states import FINISHED_RUNS, Outcome, RunState, RunType, TaskState
from tradewind.scheduler.runs.active_run import ActiveRun

_MS = 1000
"""Microseconds in a millisecond."""
_SCHEDULED, _QUEUED, _RUNNING = TaskState.SCHEDULED.code, TaskState.QUEUED.code, TaskState.RUNNING.code
_REMOVED = TaskState.REMOVED.code
_FAILED_TRY = {TaskState.FAILED.code: TaskState.FAILED, TaskState.UP_FOR_RETRY.code: TaskState.UP_FOR_RETRY}
_FINISH_STATES = {
    Outcome.SUCCESS.value: TaskState.SUCCESS,
    Outcome.SKIPPED.value: TaskState.SKIPPED,
    Outcome.RESCHEDULE.value: TaskState.UP_FOR_RESCHEDULE,
    Outcome.DEFERRED.value: TaskState.DEFERRED,
    Outcome.AWAITING_INPUT.value: TaskState.AWAITING_INPUT,
}
"""Outcome of an attempt → the state in which Airflow reports its end. The state after a failure depends on the tries left."""
_FAILURES = frozenset({Outcome.FAILED.value, Outcome.FAILED_FINAL.value, Outcome.LOST.value})
_HAVE_DURATION = frozenset({TaskState.SUCCESS, TaskState.SKIPPED, TaskState.FAILED, TaskState.UP_FOR_RETRY})
_HAVE_SCHEDULE = frozenset({RunType.SCHEDULED, RunType.BACKFILL})


class RunMetrics:
    """See the module."""

    def __init__(self) -> None:
        self._scheduled_at: dict[int, dict[int, int]] = {}
        """Run → slot → since when the first try of the task instance is scheduled. Unknown after a restart of the scheduler."""
        self.queued = 0
        """Task instances that were set to queued since this was last set to 0."""

    def of_batch(self, active_run: ActiveRun, at: int) -> list[Measurement]:
        """The metrics of what the batch has changed.

        Args:
            at: moment of the commit, microseconds.
        """
        found = [
            *self._steps(active_run),
            *_starts(active_run),
            *_ends(active_run),
            *_created(active_run),
            *_run(active_run, at),
        ]
        if active_run.state in FINISHED_RUNS:
            self._scheduled_at.pop(active_run.row.id, None)
        return found

    def keep_only(self, runs: Container[int]) -> None:
        """Forget what is remembered of other runs: those that were deleted, or that a person has ended."""
        for run in [run for run in self._scheduled_at if run not in runs]:
            del self._scheduled_at[run]

    def _steps(self, active_run: ActiveRun) -> Iterator[Measurement]:
        scheduled_at = self._scheduled_at.setdefault(active_run.row.id, {})
        for entry in active_run.journal:
            if entry.after == _SCHEDULED and active_run.machine.tries[entry.slot] == 1:
                scheduled_at.setdefault(entry.slot, entry.at)
            elif entry.before == _SCHEDULED:
                since = scheduled_at.pop(entry.slot, None)
                if entry.after == _QUEUED:
                    self.queued += 1
                    if since is not None:
                        tags = _task_tags(active_run, entry.slot) | {"queue": _queue(active_run, entry.slot)}
                        yield Measurement("timing", "task.scheduled_duration", (entry.at - since) / _MS, tags)
            if entry.after == _REMOVED:
                yield Measurement("count", "task_removed_from_dag", 1, _run_tags(active_run))
            elif entry.before == _REMOVED:
                yield Measurement("count", "task_restored_to_dag", 1, _run_tags(active_run))


def _starts(active_run: ActiveRun) -> Iterator[Measurement]:
    for start in active_run.starts:
        tags = _task_tags(active_run, start.slot)
        yield Measurement("count", "ti.start", 1, tags)
        if _is_first(active_run, start):
            tags = tags | {"queue": _queue(active_run, start.slot)}
            yield Measurement("timing", "task.queued_duration", (start.started_at - start.queued_at) / _MS, tags)


def _is_first(active_run: ActiveRun, start: AttemptStart) -> bool:
    return start.try_number == 1 and not active_run.reschedules.get(start.slot)


def _ends(active_run: ActiveRun) -> Iterator[Measurement]:
    started = {(one.slot, one.fence): one.after for one in reversed(active_run.journal) if one.before == _RUNNING}
    for end in active_run.ends:
        tags = _task_tags(active_run, end.slot)
        after = started.get((end.slot, end.fence))
        if end.outcome == Outcome.LOST.value:
            yield Measurement("count", "scheduler.tasks.killed_externally", 1, tags)
            if after is not None:
                yield Measurement("count", "task_instances_without_heartbeats_killed", 1, tags)
        if after is not None:
            yield from _end(active_run, end, after, tags)


def _end(active_run: ActiveRun, end: AttemptEnd, after: int, tags: dict[str, object]) -> Iterator[Measurement]:
    """The metrics of an attempt that had started."""
    state = _FAILED_TRY.get(after) if end.outcome in _FAILURES else _FINISH_STATES.get(end.outcome)
    if state is None:
        return  # it was stopped, or its try goes on
    if end.outcome != Outcome.LOST.value:
        yield Measurement("count", "ti.finish", 1, tags | {"state": state.value})
    operator = tags | {"operator_name": _operator(active_run, end.slot)}
    if state is TaskState.SUCCESS:
        yield Measurement("count", "operator_successes", 1, operator)
        yield Measurement("count", "ti_successes", 1, tags)
    elif end.outcome in _FAILURES:
        yield Measurement("count", "operator_failures", 1, operator)
        yield Measurement("count", "ti_failures", 1, tags)
    started_at = active_run.machine.started_at[end.slot]
    if started_at and state in _HAVE_DURATION:
        yield Measurement("timing", "task.duration", max(0, end.ended_at - started_at) / _MS, tags)


def _created(active_run: ActiveRun) -> Iterator[Measurement]:
    row = active_run.row
    operators = Counter(_operator(active_run, new.slot) for new in active_run.new_rows)
    if _starts_now(active_run) and not row.clear_number:
        operators += Counter(_operator(active_run, slot) for slot in range(row.task_count))
        alerts = len(active_run.topology.definition.deadlines)
        if alerts:
            yield Measurement("count", "deadline_alerts.deadline_created", alerts, {"dag_id": row.dag_id})
    for operator, count in operators.items():
        yield Measurement("count", "task_instance_created", count, _run_tags(active_run) | {"task_type": operator})
    if active_run.asset_events:
        yield Measurement("count", "asset.updates", len(active_run.asset_events))


def _starts_now(active_run: ActiveRun) -> bool:
    return active_run.row.state is RunState.QUEUED and active_run.state is not RunState.QUEUED


def _run(active_run: ActiveRun, at: int) -> Iterator[Measurement]:
    row, state = active_run.row, active_run.state
    if state is row.state:
        return
    if _starts_now(active_run) and not row.clear_number:
        if row.run_type in _HAVE_SCHEDULE:
            tags = {"dag_id": row.dag_id}
            yield Measurement("timing", "dagrun.schedule_delay", max(0, at - row.run_after) / _MS, tags)
        elif row.run_type is RunType.ASSET_TRIGGERED:
            yield Measurement("count", "asset.triggered_dagruns", 1)
    if state in FINISHED_RUNS:
        started = at if row.started_at is None else row.started_at
        yield Measurement("timing", f"dagrun.duration.{state.value}", (at - started) / _MS, _run_tags(active_run))
        if row.run_type is RunType.SCHEDULED and not row.clear_number:
            yield from _first_task(active_run)


def _first_task(active_run: ActiveRun) -> Iterator[Measurement]:
    row = active_run.row
    first = min((moment for moment in active_run.machine.started_at if moment), default=None)
    if first is None:
        return
    for name, since in (("scheduling", row.run_after), ("start", row.queued_at)):
        if first > since:
            yield Measurement("timing", f"dagrun.first_task_{name}_delay", (first - since) / _MS, _run_tags(active_run))


def _run_tags(active_run: ActiveRun) -> dict[str, object]:
    return {"dag_id": active_run.row.dag_id, "run_type": active_run.row.run_type.value}


def _task_tags(active_run: ActiveRun, slot: int) -> dict[str, object]:
    return {"dag_id": active_run.row.dag_id, "task_id": active_run.machine.task_id(slot)}


def _operator(active_run: ActiveRun, slot: int) -> str:
    """The class of the operator, as Airflow names it."""
    return class_name(active_run.topology.tasks[active_run.machine.instances.task(slot)].operator)


def _queue(active_run: ActiveRun, slot: int) -> str:
    return active_run.topology.tasks[active_run.machine.instances.task(slot)].queue
