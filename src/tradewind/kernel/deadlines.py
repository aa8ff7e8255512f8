"""By when a run, or tasks of it, should have succeeded; and who did not.

A scheduled run has a deadline for every `sla` that its tasks have: so long after the run became due, as in Airflow 1 and 2.
Every run has those that its DAG names (`deadline=`), as in Airflow 3. They are worked out when the run is made, and anew when it
is cleared; but an sla whose moment is past by then was judged in its time: who runs last month again is late for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tradewind.model.definition import DagDefinition, DeadlineDefinition
from tradewind.model.states import RunState, RunType, TaskState

SLA, ALERT = "sla", "alert"

Average = Callable[[int], Sequence[int]]
"""(how many) → how long so many of the latest runs of the DAG took that have ended, microseconds."""

_DONE = frozenset({TaskState.SUCCESS, TaskState.SKIPPED})


class Deadline(NamedTuple):
    """One deadline of a run."""

    kind: str
    """`sla` or `alert`."""
    number: int
    """The sla in microseconds; the place of the alert in its DAG."""
    due: int

    @property
    def name(self) -> str:
        """`sla/3600000000`, `alert/0`."""
        return f"{self.kind}/{self.number}"


class RunDates(NamedTuple):
    """What deadlines count from."""

    run_type: RunType
    logical_date: int | None
    run_after: int
    queued_at: int
    cleared: bool = False
    """It was made before, and is cleared at `queued_at`."""


def of_run(definition: DagDefinition, dates: RunDates, average: Average) -> Iterator[Deadline]:
    """The deadlines of a run."""
    if dates.run_type is RunType.SCHEDULED:
        for sla in definition.slas:
            if not dates.cleared or dates.run_after + sla > dates.queued_at:
                yield Deadline(SLA, sla, dates.run_after + sla)
    for number, alert in enumerate(definition.deadlines):
        begin = _begin(alert, dates, average)
        if begin is not None:
            yield Deadline(ALERT, number, begin + alert.interval)


def _begin(alert: DeadlineDefinition, dates: RunDates, average: Average) -> int | None:
    """From where it counts; None: this run has no such deadline."""
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
    """The kind and number of a `Deadline.name`."""
    kind, _, number = name.partition("/")
    return kind, int(number)


def run_missed(state: RunState, ended_at: int | None, due: int) -> bool:
    """Has the run not succeeded by then?"""
    return state is not RunState.SUCCESS or ended_at is None or ended_at > due


class Standing(NamedTuple):
    """How a task instance stands."""

    task_id: str
    state: TaskState
    ended_at: int
    """0: it has not ended."""


def late_tasks(definition: DagDefinition, sla: int, due: int, standing: Sequence[Standing]) -> list[str]:
    """Tasks with this sla of which an instance had not succeeded by then (or been skipped), in the DAG's order.

    Instances that were removed, because a list is shorter now, are not to run, so they are not late.
    """
    late = {
        one.task_id for one in standing if one.state is not TaskState.REMOVED and (one.state not in _DONE or one.ended_at > due)
    }
    known = {one.task_id for one in standing}
    return [
        task.task_id for task in definition.tasks if task.sla == sla and (task.task_id in late or task.task_id not in known)
    ]


def blocking_tasks(standing: Sequence[Standing]) -> list[tuple[str, str]]:
    """What has not succeeded now: (task id, state)."""
    return list(
        dict.fromkeys((one.task_id, one.state.value) for one in standing if one.state not in (*_DONE, TaskState.REMOVED))
    )
