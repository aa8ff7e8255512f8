"""The logical dates of the runs before and after a run, for Airflow 1 and 2's variables (`prev_ds`, `next_execution_date`).

For a manual run both are its own logical date, as in Airflow 2. The result is None if the schedule has no such date.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tradewind import timetables
from tradewind.model.definition import CronSchedule, CustomSchedule, DeltaSchedule, EventsSchedule, Schedule
from tradewind.model.states import RunType
from tradewind.sdk.conf import conf
from tradewind.sdk.params import NOTSET
from tradewind.timetables.custom import compute_next_run
from tradewind.timetables.runs import Bounds, RunTimes, manual_interval, next_run
from tradewind.timetables.steps import shift
from tradewind.timetables.ticks import ticks
from tradewind.wire.messages import Workload

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

_BY_SCHEDULE = (RunType.SCHEDULED, RunType.BACKFILL)


def _schedule(dag: DAG, workload: Workload) -> Schedule:
    """The schedule that created this run.

    The worker does not know whether cron expressions and timedeltas mean points in time (Airflow 3) or the data intervals before
    them (Airflow 1 and 2). The run's own data interval shows which.
    """
    schedule = timedelta(days=1) if dag.given("schedule") is NOTSET else dag.time_schedule
    return timetables.parse_schedule(
        schedule,
        timezone=dag.timezone_name or str(conf.get("core", "default_timezone", fallback="UTC")),
        defaults="trigger" if workload.interval_start == workload.interval_end else "data",
    )


def _following(dag: DAG, workload: Workload, this: RunTimes, now: int) -> RunTimes | None:
    """The scheduled run after this one."""
    schedule, bounds = _schedule(dag, workload), Bounds(None, None, catchup=True)
    if isinstance(schedule, CustomSchedule):
        return compute_next_run(dag.time_schedule, this, bounds)  # user code may run here, because this is a task process
    return next_run(schedule, this, bounds, now)


def next_logical_date(dag: DAG, workload: Workload) -> int | None:
    """The logical date of the scheduled run after this one."""
    at = workload.logical_date
    if at is None or workload.run_type not in _BY_SCHEDULE:
        return at
    start = at if workload.interval_start is None else workload.interval_start
    end = at if workload.interval_end is None else workload.interval_end
    this = RunTimes(at, start, end, workload.run_after or end)
    found = _following(dag, workload, this, this.run_after)
    return None if found is None else found.logical_date


def previous_logical_date(dag: DAG, workload: Workload) -> int | None:
    """The logical date of the scheduled run before this one. It can be before the DAG's start date."""
    at = workload.logical_date
    if at is None or workload.run_type not in _BY_SCHEDULE:
        return at
    schedule = _schedule(dag, workload)
    match schedule:
        case CronSchedule(interval_kind="data"):
            found = manual_interval(schedule, at, at)  # the data interval that ends at `at`
            return None if found is None else found[0]
        case CronSchedule():
            before = (ticks(expression, schedule.timezone).before(at) for expression in schedule.expressions)
            return max((moment for moment in before if moment is not None), default=None)
        case DeltaSchedule():
            return shift(at, schedule.delta, -1)
        case EventsSchedule():
            return max((moment for moment in schedule.dates if moment < at), default=None)
        case _:
            return None


def time_until_next_run(dag: DAG, workload: Workload, now: int) -> int | None:
    """Microseconds until the scheduled run after this one is due; negative if it is due already; None if there is no next run."""
    at = workload.logical_date
    if at is None or workload.run_type not in _BY_SCHEDULE:
        return None
    start = at if workload.interval_start is None else workload.interval_start
    end = at if workload.interval_end is None else workload.interval_end
    found = _following(dag, workload, RunTimes(at, start, end, workload.run_after or end), now)
    return None if found is None else found.run_after - now
