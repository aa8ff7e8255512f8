"""The wait of one task instance, computed from the wait plan in its definition and from its run."""

from __future__ import annotations

from datetime import datetime, time

from tradewind.model.moments import SECOND, from_micros, to_micros
from tradewind.model.rows import DeferralRow, RunRow
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan
from tradewind.model.waits import Deferral, MomentWait, TasksWait, Wait
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.timetables.zones import zone


def planned_row(active_run: ActiveRun, slot: int, fence: int, begun: int) -> DeferralRow:
    """Return the wait of a task instance that became `deferred` without an attempt."""
    plan = active_run.topology.tasks[active_run.machine.instances.task(slot)].wait
    assert plan is not None
    started = active_run.machine.started_at[slot] or begun
    return DeferralRow(slot, fence, begun, deferral(plan, active_run.row, started, active_run.topology.definition.timezone))


def deferral(plan: WaitPlan, run: RunRow, started: int, timezone: str) -> Deferral:
    """Return the wait that follows from a plan in one run.

    Args:
        started: when the try began, microseconds.
        timezone: name of the DAG's time zone.
    """
    return Deferral(_wait(plan.until, run, started, timezone), timeout_at=started + plan.timeout, soft_fail=plan.soft_fail)


def _wait(until: MomentPlan | TasksPlan, run: RunRow, started: int, timezone: str) -> Wait:
    if isinstance(until, MomentPlan):
        return MomentWait(_moment(until, run, started, timezone))
    assert run.logical_date is not None, "without a logical date the kernel schedules an attempt"
    return TasksWait(
        until.dag_id,
        (run.logical_date - until.earlier,),
        task_ids=until.task_ids,
        group=until.group,
        allowed=until.allowed,
        skipped=until.skipped,
        failed=until.failed,
        soft_fail=until.failing_skips,
    )


def _moment(until: MomentPlan, run: RunRow, started: int, timezone: str) -> int:
    if until.counted_from == "epoch":
        return until.micros
    if until.counted_from == "start":
        return started + until.micros
    if until.counted_from == "interval_end":
        return (run.interval_end if run.interval_end is not None else run.run_after) + until.micros
    info = zone(until.timezone or timezone).tz
    day = from_micros(started).astimezone(info).date()
    seconds, micros = divmod(until.micros, SECOND)
    clock = time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros, tzinfo=info)
    return to_micros(datetime.combine(day, clock))
