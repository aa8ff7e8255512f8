"""Why a task instance or a run is not running: answers from the scheduler's memory, by `kernel.explain` and `why_run`.

An answer is computed only when somebody asks, and costs running tasks nothing. It is a struct (`wire.explanations.Explanation`),
the same for the command line (`tradewind why -o json`), the API and programs.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import nsmallest
from typing import NamedTuple

from msgspec.structs import replace

from tradewind.executors.port import Executor
from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Admission, Candidate, Resource, executor_slots
from tradewind.kernel.codes import NO_TASK
from tradewind.kernel.events import Event
from tradewind.kernel.explain import Blocker, SchedulerFacts, explain, outside_its_dates
from tradewind.kernel.topology import Topology
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.phrases import Phrase, english, phrase
from tradewind.model.rows import DagPlan, RunRow
from tradewind.model.states import FINISHED, FINISHED_RUNS, OCCUPYING, WAITING, RunState, RunType, TaskState
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.explain import why_run
from tradewind.scheduler.explain.why_past import with_cause
from tradewind.scheduler.explain.why_waits import of_wait
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker
from tradewind.scheduler.runs.run_shape import fitted
from tradewind.store.callback_view import failure, shown
from tradewind.store.port import RowReader
from tradewind.wire.explanations import (
    BlockerView,
    Explanation,
    FirstInQueue,
    NextEvent,
    NextRunView,
    OpenTasks,
    Position,
    SlotHolder,
    Workers,
)

HOLDERS_MAX = 5
"""Maximum number of holders of a limit that are named, those that have held it the longest first."""

_FAR = 2**62
"""A moment after every possible date."""


def why(
    store: RowReader, scheduler: Scheduler | None, dag_id: str, task_id: str, run_id: str | None, map_index: int | None = None
) -> Explanation:
    """Return everything that keeps a task instance from running.

    Args:
        scheduler: the running scheduler; None: answer from the store alone (then limits in use are not known).
        run_id: None: the newest run; if there is none, the next one.
        map_index: map index of a mapped task; None: its first instance that has not ended.

    Returns:
        `blockers` is empty if the next step of the scheduler starts the task instance.

    Raises:
        NotFound: no such DAG, run or task; the message has the nearest name.
    """
    plan = _need_dag(store, dag_id)
    row = _newest(store, dag_id) if run_id is None else store.need_run(dag_id, run_id)
    if row is None:
        definition = store.current_definition(dag_id)
        if definition.task(task_id) is None:
            names = [task.task_id for task in definition.tasks]
            raise NotFound(english(phrase("error_no_task", dag=dag_id, task=task_id)) + did_you_mean(task_id, names))
        answer = why_no_run(store, scheduler, dag_id)
        return replace(answer, task_id=task_id, map_index=-1 if map_index is None else map_index)
    active_run = scheduler.active_runs_by_id.get(row.id) if scheduler is not None else None
    known = active_run is not None
    if active_run is None:
        active_run = _read(store, row, scheduler)
    number = active_run.topology.index.get(task_id)
    gone = _deleted_instance(active_run, task_id, map_index, number)
    if number is None and gone is None:
        raise NotFound(
            english(phrase("error_no_task", dag=dag_id, task=task_id)) + did_you_mean(task_id, active_run.topology.index)
        )
    if known and scheduler is not None and number in active_run.topology.past_tasks:
        # the machine has the verdict of the last change; a person wants the current one
        for _, verdict in scheduler.previous_runs.verdicts(active_run, scheduler.active_runs_by_id, (number,)):
            active_run.machine.past_reason[number] = verdict.why
    slot = gone if gone is not None or number is None else _instance(active_run, number, map_index)
    assert slot is not None
    blockers, candidate, admission = blockers_of(store, scheduler, plan, row, active_run, slot)
    state = active_run.machine.task_state(slot)
    subject = Subject(dag_id, row.run_id, row.state.value, task_id, active_run.machine.instances.index(slot), state.shown)
    answer = _with_callbacks(_explanation(scheduler, blockers, subject), store, row, slot)
    if scheduler is None:
        return answer
    answer = replace(answer, workers=_workers_of(scheduler, active_run, slot))
    if candidate is not None and state not in FINISHED | OCCUPYING and row.state is RunState.RUNNING:
        wanted = [one.resource for one in blockers if one.resource is not None]
        answer = replace(answer, position=_position(scheduler, admission, candidate, wanted))
    elif row.state is RunState.QUEUED:
        answer = _of_queued_run(answer, scheduler, store, row)
    no_plan = scheduler.timetables.why(scheduler.dags.get(dag_id)) is not None
    if no_plan or (row.state in FINISHED_RUNS and run_id is None):
        answer = replace(answer, next_run=_next_run(store, scheduler, plan, scheduler.clock.wall()))
    return answer


def why_no_run(
    store: RowReader, scheduler: Scheduler | None, dag_id: str, date: int | None = None, now: int | None = None
) -> Explanation:
    """Return why the next run of a DAG has not started, or why there is no run of a logical date.

    Returns:
        As `why`, with the fields of the run in `next_run`; `run_id`, `task_id` and `state` are null. For a date that has a run
        see `why_run_of`.

    Raises:
        NotFound: no such DAG.
    """
    plan = _need_dag(store, dag_id)
    if now is None:
        now = scheduler.clock.wall() if scheduler is not None else 0
    coming = why_run.next_of(store, plan, scheduler, now)
    blockers = _scheduler_blockers(scheduler)
    if date is None:
        blockers += coming.blockers
    else:
        of_date = why_run.of_date(plan, date, now, store.skipped(dag_id, 1000))
        if not of_date or of_date[0].rule == "not_due":
            # a future run: what blocks the next run blocks this one, too
            blockers += [one for one in coming.blockers if one.rule != "not_due"]
        blockers += of_date
    answer = replace(_explanation(scheduler, blockers, Subject(dag_id)), next_run=_next_run(store, scheduler, plan, now))
    return _with_run_holders(answer, scheduler, store, frozenset(RunState) - FINISHED_RUNS)


def why_run_of(store: RowReader, scheduler: Scheduler | None, dag_id: str, run_id: str) -> Explanation:
    """Return what keeps a run from starting or from ending: as `why`, without a task."""
    plan = _need_dag(store, dag_id)
    row = store.need_run(dag_id, run_id)
    blockers = _scheduler_blockers(scheduler) + why_run.of_run(plan, row, scheduler)
    answer = _explanation(scheduler, blockers, Subject(dag_id, row.run_id, row.state.value))
    answer = _with_callbacks(answer, store, row, NO_TASK)
    if row.state is RunState.QUEUED and scheduler is not None:
        answer = _of_queued_run(answer, scheduler, store, row)
    active_run = scheduler.active_runs_by_id.get(row.id) if scheduler is not None else None
    return answer if active_run is None else replace(answer, open=_open_tasks(active_run))


def blockers_of(
    store: RowReader, scheduler: Scheduler | None, plan: DagPlan, row: RunRow, active_run: ActiveRun, slot: int
) -> tuple[list[Blocker], Candidate | None, Admission]:
    """Return the blockers of one task instance, its candidate, and the limits.

    The candidate is None for a quarantined run: computing it may be what fails.
    """
    admission = scheduler.admission if scheduler is not None else _limits(store, plan, active_run)
    facts = SchedulerFacts(
        paused=plan.is_paused,
        no_worker=_NO_WORKER if scheduler is None else why_no_worker(scheduler.executor, active_run, slot),
        requested_at=scheduler.clock.wall() if scheduler is not None else 0,
        run_id=row.run_id,
        executor=active_run.executor(slot) if scheduler is not None else "",
        waits_for=_waits_for(scheduler, active_run, slot),
    )
    found, ended = _scheduler_blockers(scheduler), active_run.machine.task_state(slot) in FINISHED
    if not ended:
        found += why_run.of_run(plan, row, scheduler)
    if scheduler is not None and scheduler.is_quarantined(row.id):
        return found, None, admission
    candidate = active_run.candidate(slot)
    own = {} if scheduler is not None and row.id in scheduler.active_runs_by_id else dict(active_run.limits())
    if row.state is RunState.QUEUED and active_run.machine.task_state(slot) is TaskState.NONE:
        found += outside_its_dates(active_run.machine, slot)
    if active_run.machine.task_state(slot) in WAITING:
        found += of_wait(store, scheduler, active_run, slot)
    else:
        found += explain(active_run.machine, slot, candidate, admission, facts, own)
        found = [with_cause(store, scheduler, active_run, slot, one, _read) if one.rule == "past" else one for one in found]
    if ended and row.state in FINISHED_RUNS:  # the command that clears the task instance restarts its run, too
        found += [one._replace(command=None) for one in why_run.of_run(plan, row, scheduler)]
    return list({one.rule + one.sentence: one for one in found}.values()), candidate, admission


def _waits_for(scheduler: Scheduler | None, active_run: ActiveRun, slot: int) -> str:
    """Return what the executor knows about a queued attempt; empty: nothing."""
    if scheduler is None or active_run.machine.task_state(slot) is not TaskState.QUEUED:
        return ""
    return scheduler.executor.waits_for((active_run.row.id, slot, active_run.machine.fence[slot]))


_NO_WORKER = phrase("no_worker")


def why_no_worker(executor: Executor, active_run: ActiveRun, slot: int) -> Phrase | None:
    """Return a sentence if no connected worker host takes the attempts of this task instance; otherwise None."""
    if not executor.ready:
        return _NO_WORKER
    name, queue = active_run.executor(slot), active_run.topology.tasks[active_run.machine.instances.task(slot)].queue
    return None if executor.serves(name, queue) else phrase("no_worker_of_queue", executor=name, queue=queue)


def missing_executor(active_run: ActiveRun, slot: int) -> Phrase | None:
    """Return a sentence if the task names an executor that the deployment does not have; otherwise None."""
    wanted = active_run.topology.tasks[active_run.machine.instances.task(slot)].executor
    registry = active_run.executors
    if wanted is None or registry.has(wanted):
        return None
    return phrase("executor_missing", executor=wanted, executors=[*registry.names], default=registry.default)


# --- the answer -----------------------------------------------------------------------------------------------------------


class Subject(NamedTuple):
    """The subject of an answer: a task instance, a run (`task_id` None) or the next run of a DAG (`run_id` None)."""

    dag_id: str
    run_id: str | None = None
    run_state: str | None = None
    task_id: str | None = None
    map_index: int = -1
    state: str | None = None


def _explanation(scheduler: Scheduler | None, blockers: list[Blocker], subject: Subject) -> Explanation:
    """Return the answer with the fields that follow from the blockers."""
    now = scheduler.clock.wall() if scheduler is not None else None
    return Explanation(
        **subject._asdict(),
        blockers=[_shown(one, scheduler) for one in blockers],
        position=None,
        workers=_workers(scheduler),
        next_event=_next_event(blockers),
        earliest_start=_earliest(blockers, subject.state, now),
        next_run=None,
        callbacks=[],
        callback_phrases=[],
    )


def _shown(blocker: Blocker, scheduler: Scheduler | None) -> BlockerView:
    found, count = list[SlotHolder](), 0
    if scheduler is not None and blocker.resource is not None:
        found, count = holders(scheduler, blocker.resource)
    return BlockerView(
        rule=blocker.rule,
        sentence=blocker.sentence,
        reason=blocker.reason,
        ends_with=blocker.ends_with or None,
        ends=blocker.ends,
        not_before=iso(blocker.not_before),
        command=blocker.command,
        by_hand=blocker.by_hand,
        holders=found,
        holder_count=count,
    )


def holders(scheduler: Scheduler, resource: Resource) -> tuple[list[SlotHolder], int]:
    """Return the holders of a limit, the longest first, at most `HOLDERS_MAX`; and their total number."""
    keys = scheduler.admission.holders(resource)

    def since(key: tuple[int, int]) -> int:
        active_run = scheduler.active_runs_by_id.get(key[0])
        return UNLIMITED if active_run is None else active_run.machine.queued_at[key[1]]

    longest = nsmallest(HOLDERS_MAX, keys, key=lambda key: (since(key), key))
    return [_holder(scheduler, *key) for key in longest], len(keys)


def _holder(scheduler: Scheduler, run: int, slot: int) -> SlotHolder:
    active_run = scheduler.active_runs_by_id.get(run)
    if active_run is None:  # its run is quarantined: only the slots that it holds are known
        row = scheduler.store.run(run)
        dag_id, run_id = (row.dag_id, row.run_id) if row is not None else (None, None)
        return SlotHolder(dag_id, run_id, task_id=None, map_index=-1, state=None, since=None, started_at=None)
    task_id, index = active_run.where(slot)
    machine = active_run.machine
    state = machine.task_state(slot)
    return SlotHolder(
        dag_id=active_run.row.dag_id,
        run_id=active_run.row.run_id,
        task_id=task_id,
        map_index=index,
        state=state.shown,
        since=iso(machine.queued_at[slot]),
        started_at=iso(machine.started_at[slot] or None) if state is not TaskState.QUEUED else None,
    )


def _of_queued_run(answer: Explanation, scheduler: Scheduler, store: RowReader, row: RunRow) -> Explanation:
    """Add the position of a queued run, and the runs that hold the run slots."""
    answer = replace(answer, position=_position_of_run(scheduler, row))
    return _with_run_holders(answer, scheduler, store, {RunState.RUNNING})


def _with_run_holders(
    answer: Explanation, scheduler: Scheduler | None, store: RowReader, states: Collection[RunState]
) -> Explanation:
    """Add the runs that hold the run slots which another run needs."""
    if scheduler is None:
        return answer
    return replace(answer, blockers=[_named(one, store, answer.dag_id, states) for one in answer.blockers])


def _named(blocker: BlockerView, store: RowReader, dag_id: str, states: Collection[RunState]) -> BlockerView:
    if blocker.rule not in why_run.RUN_SLOT_RULES:
        return blocker
    backfill = blocker.rule == "backfill_max_active_runs"
    rows = [row for row in store.active_runs(dag_id) if row.state in states and (row.run_type is RunType.BACKFILL) is backfill]
    rows.sort(key=lambda row: (row.started_at or UNLIMITED, row.id))
    found = [
        SlotHolder(
            dag_id=row.dag_id,
            run_id=row.run_id,
            task_id=None,
            map_index=-1,
            state=row.state.value,
            since=iso(row.started_at if row.started_at is not None else row.queued_at),
            started_at=iso(row.started_at),
        )
        for row in rows[:HOLDERS_MAX]
    ]
    return replace(blocker, holder_count=len(rows), holders=found)


def _position(scheduler: Scheduler, admission: Admission, candidate: Candidate, wanted: list[Resource]) -> Position | None:
    if not wanted:
        return None
    count, first = admission.ahead_of(candidate, frozenset(wanted))
    if first is None:
        return Position(0, None)
    active_run = scheduler.active_runs_by_id[first.run]
    task_id, index = active_run.where(first.slot)
    return Position(count, FirstInQueue(active_run.row.dag_id, active_run.row.run_id, task_id, index, -first.rank))


def _position_of_run(scheduler: Scheduler, row: RunRow) -> Position | None:
    entry = scheduler.dags.get(row.dag_id)
    if entry is None:
        return None
    count, first = why_run.ahead(scheduler, entry, row)
    return Position(count, None if first is None else FirstInQueue(first.dag_id, first.run_id))


def _workers(scheduler: Scheduler | None) -> Workers | None:
    """Return the state of the default executor and of all attempts."""
    if scheduler is None:
        return None
    admission = scheduler.admission
    limit = _limit(admission.capacity(PARALLELISM))
    return Workers(scheduler.executors.default, scheduler.executor.ready, admission.used(PARALLELISM), limit)


def _workers_of(scheduler: Scheduler, active_run: ActiveRun, slot: int) -> Workers:
    """Return the state of the executor that runs a task instance."""
    name, note = active_run.executor(slot), missing_executor(active_run, slot)
    slots = executor_slots(name) if scheduler.executors.has_several else PARALLELISM
    return Workers(
        executor=name,
        attached=not why_no_worker(scheduler.executor, active_run, slot),
        live=scheduler.admission.used(slots),
        parallelism=_limit(scheduler.admission.capacity(slots)),
        note=english(note) if note is not None else None,
        note_phrase=note,
    )


def _limit(capacity: int | None) -> int | None:
    """Return a capacity for people: None if there is no limit."""
    return None if capacity is None or capacity >= UNLIMITED else capacity


_MOMENTS = frozenset({"due", "run_after", "not_due", "schedule_ended", "deferred_until"})
"""Rules of blockers that end exactly at their `not_before`."""


def _next_event(blockers: list[Blocker]) -> NextEvent | None:
    """Return the next event that can change the answer: a person's act, else the first moment, else the first blocker's end."""
    by_hand = [one for one in blockers if one.by_hand and one.ends is not None]
    timed = [one for one in blockers if one.rule in _MOMENTS and one.not_before is not None]
    if timed and not by_hand:
        first = min(timed, key=lambda one: one.not_before or 0)
        return NextEvent(first.ends_with, iso(first.not_before), first.rule, first.ends)
    found = next((one for one in by_hand or blockers if one.ends is not None), None)
    return None if found is None else NextEvent(found.ends_with, None, found.rule, found.ends)


def _earliest(blockers: list[Blocker], state: str | None, now: int | None) -> str | None:
    if now is None or any(one.by_hand for one in blockers) or (state is not None and TaskState(state) in FINISHED | OCCUPYING):
        return None
    return iso(max([now, *(one.not_before for one in blockers if one.not_before is not None)]))


def _next_run(store: RowReader, scheduler: Scheduler | None, plan: DagPlan, now: int) -> NextRunView:
    """Return when the next scheduled run of a DAG is due, and what keeps it from being created now."""
    times, blockers, notes = why_run.next_of(store, plan, scheduler, now)
    return NextRunView(
        run_after=iso(times.run_after) if times is not None else None,
        logical_date=iso(times.logical_date) if times is not None else None,
        data_interval_start=iso(times.start) if times is not None else None,
        data_interval_end=iso(times.end) if times is not None else None,
        blockers=[_shown(one, scheduler) for one in blockers],
        notes=list(notes),
    )


def _open_tasks(active_run: ActiveRun) -> dict[str, OpenTasks]:
    """Return, for each unfinished state, how many task instances of the run have it, and the names of the first few."""
    counts: dict[str, int] = {}
    first: dict[str, list[str]] = {}
    machine = active_run.machine
    for slot in range(machine.instances.total):
        state = machine.task_state(slot)
        if state not in FINISHED:
            counts[state.value] = counts.get(state.value, 0) + 1
            if len(named := first.setdefault(state.value, [])) < HOLDERS_MAX:
                named.append(machine.name(slot))
    return {state: OpenTasks(counts[state], first[state]) for state in counts}


def _scheduler_blockers(scheduler: Scheduler | None) -> list[Blocker]:
    if scheduler is None:
        reason, ends = phrase("no_scheduler"), phrase("ends_scheduler")
        return [Blocker("no_scheduler", reason, ends, command="tradewind standalone", by_hand=True)]
    if scheduler.trouble is not None:
        return [Blocker("store", phrase("store", problem=str(scheduler.trouble).rstrip(".")), phrase("ends_store"))]
    return []


# --- finding the subject --------------------------------------------------------------------------------------------------


def _need_dag(store: RowReader, dag_id: str) -> DagPlan:
    """Return a DAG.

    Raises:
        NotFound: there is none; the message lists files with import errors, because the DAG may be in one of these files.
        NotReadYet: there is none, and DAG files are still being read.
    """
    plan = store.dag(dag_id)
    if plan is not None:
        return plan
    if store.unread_files() is not None:
        return store.need_dag(dag_id)
    broken = [f"{file} ({problem.message})" for (_, file), problem in store.import_problems().items()]
    text = f"There is no DAG {dag_id!r}.{did_you_mean(dag_id, store.dag_ids())}"
    if broken:
        more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
        text += f" Files that cannot be read: {'; '.join(broken[:3])}{more}. See: tradewind dags list-import-errors"
    raise NotFound(text)


def _deleted_instance(active_run: ActiveRun, task_id: str, map_index: int | None, number: int | None) -> int | None:
    """Return the slot of an instance that the DAG does not have any more, if it is the subject; an unfinished one first."""
    machine = active_run.machine
    slots = [slot for slot, name in machine.gone.items() if name == task_id]
    if map_index is not None:
        slots = [slot for slot in slots if machine.instances.index(slot) == map_index]
    elif number is not None:
        slots = []
    if number is not None and map_index is not None and _has_instance(active_run, number, map_index):
        return None
    return min(slots, key=lambda slot: (machine.task_state(slot) in FINISHED, slot), default=None)


def _has_instance(active_run: ActiveRun, number: int, map_index: int) -> bool:
    instances = active_run.machine.instances
    return any(instances.index(slot) == map_index for slot in instances.slots(number))


def _instance(active_run: ActiveRun, task: int, map_index: int | None) -> int:
    """Return the slot of the instance that is the subject."""
    slots = active_run.machine.instances.expanded.get(task)
    if slots is None:
        if map_index not in (None, -1):
            raise NotFound(
                f"{active_run.topology.ids[task]} has no map index {map_index}: it is not mapped, or not expanded yet."
            )
        return task
    if map_index is None:
        return next((slot for slot in slots if active_run.machine.task_state(slot) not in FINISHED), slots[0])
    if not 0 <= map_index < len(slots):
        raise NotFound(f"{active_run.topology.ids[task]} has no map index {map_index}; it has 0 to {len(slots) - 1}.")
    return slots[map_index]


def _newest(store: RowReader, dag_id: str) -> RunRow | None:
    """Return the newest unfinished run, otherwise the run of the latest logical date."""
    rows = store.active_runs(dag_id)
    if rows:
        return rows[-1]
    latest = store.previous_run(dag_id, _FAR, scheduled_only=False)
    if latest is not None:
        return latest
    without_date = store.runs_between(dag_id, None, None)
    return without_date[-1] if without_date else None


def _limits(store: RowReader, plan: DagPlan, active_run: ActiveRun) -> Admission:
    """Return the limits as they are known without a scheduler: their capacities, but not the amounts in use."""
    admission = Admission()
    admission.set_capacity(PARALLELISM, UNLIMITED)
    admission.set_capacity(("dag", plan.dag_id, 0), 0 if plan.is_paused else UNLIMITED)
    for pool in store.pools():
        admission.set_capacity(("pool", pool.name, 0), pool.slots)
    for resource, capacity in active_run.limits():
        admission.set_capacity(resource, capacity)
    return admission


def _read(store: RowReader, row: RunRow, scheduler: Scheduler | None = None) -> ActiveRun:
    """Read a run that is not in the scheduler's memory, with the verdicts of its previous run."""
    from_store = store.snapshot(row.id)
    if from_store is None:
        raise NotFound(f"run {row.run_id!r} was deleted")
    topology = fitted(Topology(store.definition(row.version)), from_store)
    executors = scheduler.executors if scheduler is not None else None
    active_run = ActiveRun.restore(from_store, topology, 0, 0, executors=executors)

    def apply(run: int, event: Event) -> None:
        active_run.machine.apply(event, settle=False)

    PreviousRunTracker(store).adopt(active_run, {}, apply)
    return active_run


def _with_callbacks(answer: Explanation, store: RowReader, row: RunRow, slot: int) -> Explanation:
    """Add sentences about failed callbacks of the task instance and of its run."""
    items = [item for item in store.outbox_items(run=row.id) if item.slot in (slot, NO_TASK) and item.problem]
    phrases = [failure(shown(item)) for item in items]
    return replace(answer, callbacks=[english(one) for one in phrases], callback_phrases=phrases)
