"""The run dates of a DAG, computed from its schedule without running anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tradewind import timetables
from tradewind.model.definition import CustomSchedule, NoSchedule
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import duration_micros, from_micros, to_micros
from tradewind.sdk.definition import to_definition
from tradewind.testing.dag_test import configured_defaults
from tradewind.timetables.custom import compute_manual_interval, compute_next_run

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG


class PlannedRun(NamedTuple):
    """One future run. Times are in UTC; a run without a logical date or interval has None there."""

    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    run_after: datetime


def upcoming_runs(dag: DAG, *, now: datetime, count: int = 10, look_again_after: timedelta | None = None) -> list[PlannedRun]:
    """The first runs of a DAG that has no runs yet, by its schedule, dates and catchup.

    Args:
        now: the current time.
        count: the number of runs; fewer if the schedule ends.
        look_again_after: with a value, the clock moves: each further run is computed this long after the run before became due.
            Without it, the clock does not move, and the further runs follow each other directly.

    Raises:
        ScheduleError: the schedule is invalid, or does not fit the dates; for example with catchup and without a start date, where
            Airflow 3.3.2 raises an error too.
    """
    definition = to_definition(dag, dag.fileloc, configured_defaults(dag.fileloc, dag.generation))
    if (
        isinstance(definition.schedule, NoSchedule) and dag.given("schedule") is not None
    ):  # the DAG is valid, but has no first run
        raise ScheduleError(f"DAG {dag.dag_id!r} has catchup and no start date, so it has no first run; give it a start_date")
    bounds = timetables.Bounds(definition.start_date, definition.end_date, definition.catchup)
    clock, last, found = _micros(now), None, list[PlannedRun]()
    while len(found) < count:
        if isinstance(definition.schedule, CustomSchedule):
            last = compute_next_run(dag.time_schedule, last, bounds)
        else:
            last = timetables.next_run(definition.schedule, last, bounds, clock)
        if last is None:
            break
        date, start, end = (None if one is None else from_micros(one) for one in last[:3])
        found.append(PlannedRun(date, start, end, from_micros(last.run_after)))
        if look_again_after is not None:
            clock = max(clock, last.run_after) + duration_micros(look_again_after)
    return found


def manual_interval(dag: DAG, date: datetime, *, now: datetime) -> tuple[datetime, datetime] | None:
    """The data interval of a run that is triggered for a date; None if the schedule has no intervals. Raises ScheduleError."""
    definition = to_definition(dag, dag.fileloc, configured_defaults(dag.fileloc, dag.generation))
    if isinstance(definition.schedule, CustomSchedule):
        found = compute_manual_interval(dag.time_schedule, _micros(date))
    else:
        found = timetables.manual_interval(definition.schedule, _micros(date), _micros(now))
    return None if found is None else (from_micros(found[0]), from_micros(found[1]))


def _micros(moment: datetime) -> int:
    return to_micros(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
