"""Why is it not running? The scheduler's own memory, asked through `kernel.explain`."""

from __future__ import annotations

from typing import Any

from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Admission
from tradewind.kernel.events import Event
from tradewind.kernel.explain import Blocker, Surroundings, explain
from tradewind.kernel.topology import Topology
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.states import FINISHED, RunState, RunType
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.past_watch import PastWatch
from tradewind.scheduler.run_box import RunBox
from tradewind.scheduler.schedule_book import DagEntry
from tradewind.store.nouns import DagPlan, RunRow
from tradewind.store.port import Store


def why(
    store: Store, scheduler: Scheduler | None, dag_id: str, task_id: str, run_id: str | None, map_index: int | None = None
) -> dict[str, Any]:
    """Everything that is in the way of a task instance.

    Args:
        scheduler: the live one; None answers from the store alone (what admission would say is not known then).
        run_id: None is the newest run.
        map_index: of a mapped task; None: its first instance that has not ended.

    Returns:
        dag_id, run_id, task_id, state, and `blockers`: a list of {rule, sentence}; empty when the next step starts it.

    Raises:
        NotFound: no such DAG, run or task, with the nearest one.
    """
    plan = store.need_dag(dag_id)
    trouble = scheduler.desk.why(scheduler.dags.get(dag_id)) if scheduler is not None else None
    row = _newest(store, dag_id, trouble) if run_id is None else store.need_run(dag_id, run_id)
    definition = store.definition(row.version)
    slot = next((i for i, task in enumerate(definition.tasks) if task.task_id == task_id), None)
    if slot is None:
        names = [task.task_id for task in definition.tasks]
        raise NotFound(f"DAG {dag_id} has no task {task_id!r}.{did_you_mean(task_id, names)}")
    box = scheduler.boxes.get(row.id) if scheduler is not None else None
    blockers = _of_run(plan, row, scheduler)
    if box is None:
        box = _read(store, row)
    elif scheduler is not None and slot in box.topology.past_tasks:
        # the machine was told when it mattered; a person wants to know how it stands now
        for _, verdict in scheduler.past.verdicts(box, scheduler.boxes, (slot,)):
            box.machine.past_why[slot] = verdict.why
    admission = scheduler.admission if scheduler is not None else _limits(store, plan, box)
    around = Surroundings(
        paused=plan.is_paused,
        executor_ready=scheduler is not None and scheduler.executor.ready,
        requested_at=scheduler.clock.wall() if scheduler is not None else 0,
        trouble=scheduler.trouble if scheduler is not None else None,
    )
    if scheduler is None:
        blockers.append(Blocker("no_scheduler", "No scheduler is running: start one with tradewind standalone."))
    if trouble is not None:
        blockers.append(Blocker("timetable", f"No further run is planned: {trouble}"))
    slot = _instance(box, slot, map_index)
    blockers += explain(box.machine, slot, box.needs(slot), admission, around)
    return {
        "dag_id": dag_id,
        "run_id": row.run_id,
        "task_id": task_id,
        "map_index": box.machine.instances.index(slot),
        "state": box.machine.task_state(slot).shown,
        "blockers": [blocker._asdict() for blocker in _distinct(blockers)],
    }


def _instance(box: RunBox, task: int, map_index: int | None) -> int:
    """The slot that is asked about."""
    slots = box.machine.instances.of.get(task)
    if slots is None:
        if map_index not in (None, -1):
            raise NotFound(f"{box.topology.ids[task]} has no map index {map_index}: it is not mapped, or not expanded yet.")
        return task
    if map_index is None:
        return next((slot for slot in slots if box.machine.task_state(slot) not in FINISHED), slots[0])
    if not 0 <= map_index < len(slots):
        raise NotFound(f"{box.topology.ids[task]} has no map index {map_index}; it has 0 to {len(slots) - 1}.")
    return slots[map_index]


def _newest(store: Store, dag_id: str, trouble: str | None) -> RunRow:
    rows = store.active_runs(dag_id) or store.runs_between(dag_id, None, None)
    if not rows and trouble is not None:
        raise NotFound(f"DAG {dag_id} has no runs. {trouble}")
    if not rows:
        raise NotFound(f"DAG {dag_id} has no runs. Trigger one: tradewind dags trigger {dag_id}")
    return rows[-1]


def _set_aside(what: str, run: int, scheduler: Scheduler) -> Blocker:
    times = scheduler.quarantine.failures(run)
    often = "" if times < 2 else f" {times} times in a row"
    again = iso(scheduler.quarantine.until(run))
    return Blocker("set_aside", f"{what} its run failed{often} (see the scheduler's log); it is tried again at {again}.")


def _of_run(plan: DagPlan, row: RunRow, scheduler: Scheduler | None) -> list[Blocker]:
    """What keeps the whole run from going on."""
    if row.state is RunState.RUNNING:
        if scheduler is not None and scheduler.is_set_aside(row.id):
            return [_set_aside("Deciding", row.id, scheduler)]
        return []
    if row.state is not RunState.QUEUED:
        return [Blocker("run_finished", f"Its run is {row.state.value} since {iso(row.ended_at)}: {row.reason}.")]
    found = [Blocker("run_queued", "Its run has not started.")]
    if plan.is_paused:
        found.append(Blocker("paused", "Its DAG is paused: unpause it."))
    if not plan.is_active:
        found.append(Blocker("inactive", f"Its DAG is gone from the DAG folder (it was in {plan.file})."))
    if scheduler is None:
        return found
    if scheduler.is_set_aside(row.id):
        found.append(_set_aside("Starting", row.id, scheduler))
    if row.rows_created < row.task_count:
        found.append(Blocker("rows", f"{row.rows_created} of its run's {row.task_count} task instances are written so far."))
    if row.run_after > scheduler.clock.wall():
        found.append(Blocker("run_after", f"Its run starts at {iso(row.run_after)}, not before."))
    entry = scheduler.dags.get(row.dag_id)
    if entry is not None and row.run_type is RunType.BACKFILL:
        found += _backfill_blockers(entry)
    elif entry is not None and entry.full:
        running = len(entry.running) - entry.backfilling
        text = f"{running} runs of the DAG are running; its max_active_runs is {plan.max_active_runs}."
        found.append(Blocker("max_active_runs", text))
    return found


def _backfill_blockers(entry: DagEntry) -> list[Blocker]:
    """Why a queued run of a backfill waits."""
    found = []
    backfill = entry.backfill
    if backfill is not None and backfill.is_paused:
        word = f"tradewind backfill unpause {backfill.id}"
        found.append(Blocker("backfill_paused", f"Its backfill is paused. Let it go on: {word}"))
    if entry.backfill_full:
        places = entry.plan.max_active_runs if backfill is None else backfill.max_active_runs
        text = f"{entry.backfilling} runs of backfills of the DAG are running; {places} may."
        found.append(Blocker("backfill_max_active_runs", text))
    return found


def _limits(store: Store, plan: DagPlan, box: RunBox) -> Admission:
    """What is known of the limits without a scheduler: how high they are, not who holds what."""
    admission = Admission()
    admission.set_capacity(PARALLELISM, UNLIMITED)
    admission.set_capacity(("dag", plan.dag_id, 0), 0 if plan.is_paused else UNLIMITED)
    for pool in store.pools():
        admission.set_capacity(("pool", pool.name, 0), pool.slots)
    for resource, capacity in box.limits():
        admission.set_capacity(resource, capacity)
    return admission


def _read(store: Store, row: RunRow) -> RunBox:
    """A run that is not in the scheduler's memory, with what its past says."""
    from_store = store.snapshot(row.id)
    if from_store is None:
        raise NotFound(f"run {row.run_id!r} was deleted")
    box = RunBox.restore(from_store, Topology(store.definition(row.version)), 0, 0)

    def tell(run: int, event: Event) -> None:
        box.machine.apply(event, settle=False)

    PastWatch(store).adopt(box, {}, tell)
    return box


def _distinct(blockers: list[Blocker]) -> list[Blocker]:
    return list(dict.fromkeys(blockers))
