"""What will start when: scheduled runs, queued runs that wait for a moment, and tasks that wait for their next try, of all DAGs.

Worked out from the book by which the scheduler makes runs, and from the moments for which its machines wait. Later runs of a
schedule are foretold as if each were made when it is due; nobody knows today which limits they will meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from tradewind.model.definition import ContinuousSchedule, CustomSchedule
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import SECOND, from_micros, iso
from tradewind.model.states import RunState, TaskState
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.dags.dag_registry import SCHEDULE
from tradewind.scheduler.dags.schedule import DagEntry, plan_next, schedule_of, scheduled_run_id
from tradewind.scheduler.explain.why_run import of_run
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.store.port import Store
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.timetables.zones import zone as zone_of

COUNT_MAX = 1000
"""So many are told at most."""


class Coming(NamedTuple):
    """Something that will start. Sorts by time."""

    at: int
    dag_id: str
    kind: str
    """`run`: the schedule makes it; `queued`: a run that exists waits for its moment or a place; `retry`, `reschedule`: a task."""
    run_id: str
    times: tuple[int | None, int | None, int | None]
    """Logical date and data interval."""
    task_id: str = ""
    map_index: int = -1
    held_by: str = ""
    """What keeps it although its moment has come."""


def upcoming(store: Store, scheduler: Scheduler | None, now: int, count: int, dag_ids: Iterable[str] = ()) -> list[Coming]:
    """The next `count` things that start, the soonest first. DAGs that are paused or gone have none.

    Args:
        scheduler: the live one; None reads the book from the store.
        now: the present moment.
        dag_ids: only these; none: all.
    """
    entries = scheduler.dags if scheduler is not None else _book(store, now)
    active_runs_by_id = scheduler.active_runs_by_id if scheduler is not None else {}
    chosen = set(dag_ids)
    parts: list[Iterator[Coming]] = []
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
    store: Store, scheduler: Scheduler | None, now: int, count: int, dag_ids: Iterable[str] = (), timezone: str | None = None
) -> dict[str, Any]:
    """`upcoming` as plain data, and how many DAGs have none because they are paused.

    Args:
        timezone: name of the zone in which `local` is told; None: UTC.

    Raises:
        ScheduleError: there is no such zone, with the nearest one.
    """
    zone = zone_of(timezone or "UTC")
    wanted = set(dag_ids)
    rows = [
        {
            "at": iso(one.at),
            "local": from_micros(one.at // SECOND * SECOND).astimezone(zone.tz).isoformat(" "),
            "kind": one.kind,
            "dag_id": one.dag_id,
            "run_id": one.run_id,
            "task_id": one.task_id or None,
            "map_index": one.map_index,
            "logical_date": iso(one.times[0]),
            "data_interval_start": iso(one.times[1]),
            "data_interval_end": iso(one.times[2]),
            "held_by": one.held_by or None,
        }
        for one in upcoming(store, scheduler, now, count, wanted)
    ]
    paused = sum(
        plan.is_paused and plan.is_active and (not wanted or plan.dag_id in wanted)
        for plan in ((entry.plan for entry in scheduler.dags.values()) if scheduler is not None else store.plans())
    )
    return {"upcoming": rows, "timezone": timezone or "UTC", "paused_dags": paused}


def _book(store: Store, now: int) -> dict[str, DagEntry]:
    """The scheduler's book, as it would read it."""
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


def _scheduled(entry: DagEntry, now: int, scheduler: Scheduler | None) -> Iterator[Coming]:
    """The next run of the schedule, and those after it; of an author's own timetable only the next one is known."""
    plan, times = entry.plan, entry.next
    full = entry.unfinished >= plan.max_active_runs
    while times is not None:
        held = ""
        if times.run_after <= now and full:
            held = f"{entry.unfinished} runs have not ended; max_active_runs is {plan.max_active_runs}"
        elif times.run_after <= now and scheduler is not None:
            refused = scheduler.quarantine.held_back((SCHEDULE, plan.dag_id), now)
            held = f"it cannot be written: {refused.why}" if refused is not None else ""
        yield Coming(times.run_after, plan.dag_id, "run", scheduled_run_id(times), times[:3], held_by=held)
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


def _queued(entry: DagEntry, scheduler: Scheduler | None, now: int) -> list[Coming]:
    """Runs that exist and have not started, in their order."""
    found = []
    for row in entry.waiting.values():
        blockers = of_run(entry.plan, row, scheduler)
        held = next((one.sentence for one in blockers if one.rule != "run_after"), "")
        times = row.logical_date, row.interval_start, row.interval_end
        found.append(Coming(max(row.run_after, now), row.dag_id, "queued", row.run_id, times, held_by=held))
    return sorted(found)


def _tasks(active_run: ActiveRun) -> list[Coming]:
    """Task instances that wait for a moment."""
    row, machine = active_run.row, active_run.machine
    kinds = {TaskState.UP_FOR_RETRY: "retry", TaskState.UP_FOR_RESCHEDULE: "reschedule"}
    found = []
    for slot, due in machine.due.items():
        kind = kinds.get(machine.task_state(slot))
        if kind is not None:
            times = row.logical_date, row.interval_start, row.interval_end
            found.append(Coming(due, row.dag_id, kind, row.run_id, times, *active_run.where(slot)))
    return sorted(found)
