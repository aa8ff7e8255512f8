"""The times by which a run, or some of its tasks, should have succeeded, and which of them have not.

A scheduled run has a deadline for every `sla` of its tasks, counted from the moment at which the run was due, as in Airflow 1
and 2. Every run has the deadlines of its DAG (`deadline=`), as in Airflow 3. Deadlines are computed when the run is created,
and again when it is cleared. A clear does not create an sla whose time has passed: if a run of last month is cleared today, it
misses no sla.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tradewind.model.definition import DagDefinition, DeadlineDefinition
from tradewind.model.states import RunState, RunType, TaskState

SLA, ALERT = "sla", "alert"

Average = Callable[[int], Sequence[int]]
"""(number) → durations of at most this number of the latest finished runs of the DAG, microseconds."""

_DONE = frozenset({TaskState.SUCCESS, TaskState.SKIPPED})


class Deadline(NamedTuple):
    """One deadline of a run."""

    kind: str
    """`sla` or `alert`."""
    number: int
    """For an sla: its length in microseconds. For an alert: its index in the DAG's list of deadlines."""
    due: int

    @property
    def name(self) -> str:
        """A name that is unique in the run: `sla/3600000000`, `alert/0`."""
        return f"{self.kind}/{self.number}"


class RunDates(NamedTuple):
    """The type and the moments of a run from which its deadlines are computed."""

    run_type: RunType
    logical_date: int | None
    run_after: int
    queued_at: int
    cleared: bool = False
    """Whether the run existed before and is cleared at `queued_at`."""


def of_run(definition: DagDefinition, dates: RunDates, average: Average) -> Iterator[Deadline]:
    """Yield the deadlines of a run."""
    if dates.run_type is RunType.SCHEDULED:
        for sla in definition.slas:
            if not dates.cleared or dates.run_after + sla > dates.queued_at:
                yield Deadline(SLA, sla, dates.run_after + sla)
    for number, alert in enumerate(definition.deadlines):
        begin = _begin(alert, dates, average)
        if begin is not None:
            yield Deadline(ALERT, number, begin + alert.interval)


def _begin(alert: DeadlineDefinition, dates: RunDates, average: Average) -> int | None:
    """Return the moment from which the deadline counts; None: this run has no such deadline."""
    match alert.reference:
        case "logical_date":
            return dates.logical_date
        case "queued_at":
            return dates.queued_at
        case "fixed":
            return alert.at
        case "average":
            took = average(alert.max_runs)
            return dates.queued_at + sum(took) // len(took) if took and len(took) >= alert.min_runs else None
    return None


def read_name(name: str) -> tuple[str, int]:
    """Return the kind and number of a `Deadline.name`."""
    kind, _, number = name.partition("/")
    return kind, int(number)


def run_missed(state: RunState, ended_at: int | None, due: int) -> bool:
    """Return whether the run had not succeeded at `due`."""
    return state is not RunState.SUCCESS or ended_at is None or ended_at > due


class InstanceState(NamedTuple):
    """The state of a task instance."""

    task_id: str
    state: TaskState
    ended_at: int
    """0: it has not ended."""


def late_tasks(definition: DagDefinition, sla: int, due: int, instances: Sequence[InstanceState]) -> list[str]:
    """Return the ids of tasks with this sla of which an instance had not succeeded (or been skipped) at `due`, in the DAG's order.

    Instances that were removed because a list became shorter do not count.
    """
    late = {
        one.task_id
        for one in instances
        if one.state is not TaskState.REMOVED and (one.state not in _DONE or one.ended_at > due)
    }
    known = {one.task_id for one in instances}
    return [
        task.task_id for task in definition.tasks if task.sla == sla and (task.task_id in late or task.task_id not in known)
    ]


def blocking_tasks(instances: Sequence[InstanceState]) -> list[tuple[str, str]]:
    """Return (task id, state) of all task instances that have not succeeded now, each pair once."""
    return list(
        dict.fromkeys((one.task_id, one.state.value) for one in instances if one.state not in (*_DONE, TaskState.REMOVED))
    )
