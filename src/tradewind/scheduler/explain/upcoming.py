"""The forecast: scheduled runs, queued runs that wait for a moment, and tasks that wait for their next try, of all DAGs.

It is computed from the same `DagEntry` objects from which the scheduler creates runs, and from the timers of the run machines.
Later runs of a schedule are forecast as if each were created when it is due; limits that may delay them are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple

from tradewind.model.counts import counted
from tradewind.model.definition import ContinuousSchedule, CustomSchedule
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import SECOND, from_micros, iso
from tradewind.model.states import RunState, TaskState
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.dags.dag_registry import SCHEDULE
from tradewind.scheduler.dags.schedule import DagEntry, plan_next, schedule_of, scheduled_run_id
from tradewind.scheduler.explain.why_run import of_run
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.store.port import RowReader
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.timetables.zones import zone as zone_of
from tradewind.wire.explanations import UpcomingList, UpcomingView

COUNT_MAX = 1000
"""Maximum number of entries in a forecast."""


class Forecast(NamedTuple):
    """Something that will start. Sorts by time."""

    at: int
    dag_id: str
    kind: str
    """`run`: a run to be created; `queued`: a run that waits for its moment or a run slot; `retry`, `reschedule`: a task."""
    run_id: str
    times: tuple[int | None, int | None, int | None]
    """Logical date and data interval."""
    task_id: str = ""
    map_index: int = -1
    held_by: str = ""
    """The reason why it does not start although its time has come."""


def upcoming(
    store: RowReader, scheduler: Scheduler | None, now: int, count: int, dag_ids: Iterable[str] = ()
) -> list[Forecast]:
    """Return the next `count` starts, the soonest first. Paused and inactive DAGs have none.

    Args:
        scheduler: the running scheduler; None: everything is read from the store.
        now: the current moment.
        dag_ids: only these DAGs; empty: all.
    """
    entries = scheduler.dags if scheduler is not None else _entries(store, now)
    active_runs_by_id = scheduler.active_runs_by_id if scheduler is not None else {}
    chosen = set(dag_ids)
    parts: list[Iterator[Forecast]] = []
    for dag_id, entry in entries.items():
        if entry.is_open and (not chosen or dag_id in chosen):
            parts.append(_scheduled(entry, now, scheduler))
            if entry.waiting:
                parts.append(iter(_queued(entry, scheduler, now)))
    parts += [
        iter(_tasks(active_run))
        for active_run in active_runs_by_id.values()
        if active_run.machine.due and (not chosen or active_run.row.dag_id in chosen)
    ]
    return list(islice(merge(*parts), min(count, COUNT_MAX)))


def answer(
    store: RowReader,
    scheduler: Scheduler | None,
    now: int,
    count: int,
    dag_ids: Iterable[str] = (),
    timezone: str | None = None,
) -> UpcomingList:
    """Return `upcoming` for people and programs, and how many DAGs have no forecast because they are paused.

    Args:
        timezone: name of the time zone of `local`; None: UTC.

    Raises:
        ScheduleError: there is no such time zone; the message has the nearest name.
    """
    zone = zone_of(timezone or "UTC")
    wanted = set(dag_ids)
    rows = [
        UpcomingView(
            at=iso(one.at) or "",
            local=from_micros(one.at // SECOND * SECOND).astimezone(zone.tz).isoformat(" "),
            kind=one.kind,
            dag_id=one.dag_id,
            run_id=one.run_id,
            task_id=one.task_id or None,
            map_index=one.map_index,
            logical_date=iso(one.times[0]),
            data_interval_start=iso(one.times[1]),
            data_interval_end=iso(one.times[2]),
            held_by=one.held_by or None,
        )
        for one in upcoming(store, scheduler, now, count, wanted)
    ]
    paused = sum(
        plan.is_paused and plan.is_active and (not wanted or plan.dag_id in wanted)
        for plan in ((entry.plan for entry in scheduler.dags.values()) if scheduler is not None else store.plans())
    )
    return UpcomingList(rows, timezone or "UTC", paused)


def _entries(store: RowReader, now: int) -> dict[str, DagEntry]:
    """Read the entries of all DAGs from the store, as the scheduler does."""
    entries = {plan.dag_id: DagEntry(plan) for plan in store.plans()}
    for row in store.active_runs():
        entry = entries.get(row.dag_id)
        if entry is not None and row.state is RunState.QUEUED:
            entry.enqueue(row)
        elif entry is not None:
            entry.remember_backfill(row)
            entry.running.add(row.id)
    for entry in entries.values():
        plan_next(entry, now)
    return entries


def _scheduled(entry: DagEntry, now: int, scheduler: Scheduler | None) -> Iterator[Forecast]:
    """Yield the next runs of the schedule; for a custom timetable only the first one is known."""
    plan, times = entry.plan, entry.next
    full = entry.unfinished >= plan.max_active_runs
    while times is not None:
        held = ""
        if times.run_after <= now and full:
            active = f"{counted(entry.unfinished, 'run')} {'has' if entry.unfinished == 1 else 'have'} not ended"
            held = f"{active}; max_active_runs is {plan.max_active_runs}"
        elif times.run_after <= now and scheduler is not None:
            refused = scheduler.quarantine.held_back((SCHEDULE, plan.dag_id), now)
            held = f"it cannot be created: {refused.why}" if refused is not None else ""
        yield Forecast(times.run_after, plan.dag_id, "run", scheduled_run_id(times), times[:3], held_by=held)
        times = _after(entry, times, now)


def _after(entry: DagEntry, times: RunTimes, now: int) -> RunTimes | None:
    plan = entry.plan
    try:
        schedule = schedule_of(plan)
        if isinstance(schedule, ContinuousSchedule | CustomSchedule):
            return None
        bounds = Bounds(plan.start_date, plan.end_date, plan.catchup)
        found = next_run(schedule, times, bounds, max(now, times.run_after))
    except (ScheduleError, ValueError, OverflowError):
        return None
    return None if found is None or found.run_after < times.run_after or found == times else found


def _queued(entry: DagEntry, scheduler: Scheduler | None, now: int) -> list[Forecast]:
    """Return the queued runs, ordered by time."""
    found = []
    for row in entry.waiting.values():
        blockers = of_run(entry.plan, row, scheduler)
        held = next((one.sentence for one in blockers if one.rule != "run_after"), "")
        times = row.logical_date, row.interval_start, row.interval_end
        found.append(Forecast(max(row.run_after, now), row.dag_id, "queued", row.run_id, times, held_by=held))
    return sorted(found)


def _tasks(active_run: ActiveRun) -> list[Forecast]:
    """Return the task instances of a run that wait for a moment."""
    row, machine = active_run.row, active_run.machine
    kinds = {TaskState.UP_FOR_RETRY: "retry", TaskState.UP_FOR_RESCHEDULE: "reschedule"}
    found = []
    for slot, due in machine.due.items():
        kind = kinds.get(machine.task_state(slot))
        if kind is not None:
            times = row.logical_date, row.interval_start, row.interval_end
            found.append(Forecast(due, row.dag_id, kind, row.run_id, times, *active_run.where(slot)))
    return sorted(found)
