"""Checks that `why` is exact: its blockers are compared with what the scheduler then does, in copies of the world.

    check_why(scheduler, chance)        # after any step of any test that runs a Scheduler over a MemoryStore

When the scheduler has nothing left to decide, every task instance that is neither active nor finished must have a blocker:
otherwise it would have been dispatched. For some task instances, drawn at random, it also checks:

- a new scheduler over the same store does not dispatch the task instance either;
- if all blockers are removed, and also those that `why` names afterwards, the task instance is dispatched;
- if all blockers except one are removed, the task instance is not dispatched, because this one blocks it.

The test's own world is not changed: everything happens in copies of the store, each with its own scheduler and clock. Under
faults the simulation checks `why`, too, by the rows: `tradewind.simulation.why_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import Any, NamedTuple, cast

from tests.unit.scheduler.bench import StubExecutor
from tradewind.kernel.admission import UNLIMITED
from tradewind.kernel.expansion import relevant
from tradewind.kernel.explain import Blocker
from tradewind.model.moments import DAY
from tradewind.model.rows import Batch, PoolRow, RunRow, RunWrite, TaskRow, TaskWrite
from tradewind.model.states import FINISHED, OCCUPYING, RunState, TaskState, TriggerRule
from tradewind.platform.clock import ManualClock
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.dags.schedule import scheduled_run_id
from tradewind.scheduler.explain.why import _read
from tradewind.scheduler.explain.why_run import next_of
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.simulation.why_checks import blockers_at, is_quiet
from tradewind.store.memory import MemoryStore

ROUNDS = 12
"""How often newly named blockers are removed again, because a started run may add competing task instances."""

TOO_FAR = 60 * DAY
"""Maximum virtual time for which a copy of the world runs until a run is created: other hourly schedules create their runs
meanwhile.
"""

UNDER_WAY = frozenset({"queued", "running", "restarting", "no_worker"})
OUT_OF_REACH = frozenset(
    {"store", "no_scheduler", "quarantined", "not_loaded", "dates", "timetable", "deferred", "deferred_until", "input"}
)
"""Rules of blockers that no remover can remove; task instances with these are not checked."""


class NotExact(AssertionError):
    """`why` and the scheduler disagree."""


class Checked(NamedTuple):
    """Counts of the checks, so that a test can verify that checks were made."""

    instances: int
    removed: dict[str, int]
    """Rule → how often all blockers were removed and the task instance was dispatched."""
    held: dict[str, int]
    """Rule → how often only this blocker was left, and blocked the task instance."""


class Twin:
    """A copy of a scheduler's world."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.store = memory_of(scheduler.store).copy()
        self.clock = ManualClock(scheduler.clock.wall())
        epoch = self.store.begin_epoch("twin", 1, "twin", self.clock.wall())
        self.scheduler = Scheduler(self.store, self.clock, scheduler.config, StubExecutor(), epoch, lambda notice: None)
        self.scheduler.load()
        self.scheduler.process()

    def row(self, run: int) -> RunRow:
        found = self.store.run(run)
        assert found is not None
        return found

    def active_run(self, run: int) -> ActiveRun:
        return self.scheduler.active_runs_by_id.get(run) or _read(self.store, self.row(run))

    def blockers(self, run: int, slot: int) -> list[Blocker]:
        return blockers_at(self.scheduler, self.row(run), slot, self.active_run(run))

    def state(self, run: int, slot: int) -> TaskState:
        return self.active_run(run).machine.task_state(slot)

    def dispatched(self, run: int, slot: int) -> bool:
        active_run = self.active_run(run)
        state = active_run.machine.task_state(slot)
        return state in OCCUPYING or (
            state is TaskState.SUCCESS and active_run.topology.tasks[active_run.machine.instances.task(slot)].empty
        )

    def is_open(self, run: int, slot: int) -> bool:
        """Return whether the task instance can still be dispatched."""
        return self.row(run).state in (RunState.QUEUED, RunState.RUNNING) and self.state(run, slot) not in FINISHED

    def write(self, run: int, change: Callable[[TaskRow], TaskRow]) -> None:
        """Overwrite rows of a run, regardless of the rules."""
        snapshot = self.store.snapshot(run)
        assert snapshot is not None
        row = snapshot.run
        tasks = [TaskWrite(new, old.state, old.fence) for old in snapshot.rows if (new := change(old)) != old]
        if tasks:
            write = RunWrite(run, row.revision, row.state, row.started_at, row.ended_at, row.reason, row.journal_seq, tasks)
            assert not self.store.commit(Batch(self.scheduler.epoch, self.clock.wall(), [write])).stale
            self.scheduler.runs.refresh(run)


def check_why(scheduler: Scheduler, chance: Random | None = None, at_most: int = 2, *, wanted: Collection[str] = ()) -> Checked:
    """See the module. Does nothing while the scheduler has something to decide.

    Args:
        scheduler: a scheduler over a `MemoryStore`, or over a wrapper whose `inner` is one.
        chance: draws the task instances; None: take the first ones.
        at_most: how many task instances are checked in copies of the world.
        wanted: task instances with a blocker of one of these rules come first.

    Raises:
        NotExact: the message names the blockers and what the scheduler did.
    """
    checked = Checked(0, {}, {})
    if not is_quiet(scheduler):
        return checked
    waiting: list[tuple[RunRow, int, list[Blocker]]] = []
    count = 0
    for row in scheduler.store.active_runs():
        if scheduler.is_quarantined(row.id):
            continue
        active_run = scheduler.active_runs_by_id.get(row.id) or _read(scheduler.store, row)
        for slot in range(active_run.machine.instances.total):
            count += 1
            found = blockers_at(scheduler, row, slot, active_run)
            state = active_run.machine.task_state(slot)
            rules = {one.rule for one in found}
            if state in OCCUPYING and not rules & UNDER_WAY:
                raise NotExact(f"{_name(row, active_run, slot)} is {state.value}, but why does not say this: {sorted(rules)}")
            if state in FINISHED and not rules & {"finished", "dates"}:
                raise NotExact(f"{_name(row, active_run, slot)} is {state.value}, but why does not say this: {sorted(rules)}")
            if not found:
                raise NotExact(
                    f"why names no blocker of {_name(row, active_run, slot)}, which is {state.value} and stays in this state"
                )
            if state not in FINISHED | OCCUPYING and not rules & OUT_OF_REACH:
                waiting.append((row, slot, found))
    if chance is not None:
        chance.shuffle(waiting)
    waiting.sort(key=lambda one: not any(blocker.rule in wanted for blocker in one[2]))
    for row, slot, found in waiting[:at_most]:
        _check_stillness(scheduler, row, slot)
        _check_all_removed(scheduler, row, slot, found, checked)
        one = found[0] if chance is None else chance.choice(found)
        _check_left_alone(scheduler, row, slot, one, checked)
    return checked._replace(instances=count)


def memory_of(store: object) -> MemoryStore:
    """Return the store in memory behind the wrappers of a test."""
    while not isinstance(store, MemoryStore):
        store = cast("Any", store).inner
    return store


def _name(row: RunRow, active_run: ActiveRun, slot: int) -> str:
    return f"{row.dag_id}.{active_run.machine.name(slot)} in {row.run_id}"


# --- the three questions --------------------------------------------------------------------------------------------------


def _check_stillness(scheduler: Scheduler, row: RunRow, slot: int) -> None:
    twin = Twin(scheduler)
    if twin.dispatched(row.id, slot):
        named = [blocker.sentence for blocker in blockers_at(scheduler, row, slot, twin.active_run(row.id))]
        raise NotExact(
            f"{_name(row, twin.active_run(row.id), slot)} is dispatched by a new scheduler, although why names: {named}"
        )


def _check_all_removed(scheduler: Scheduler, row: RunRow, slot: int, found: list[Blocker], checked: Checked) -> None:
    twin = Twin(scheduler)
    history: list[list[str]] = []
    for _ in range(ROUNDS):
        if twin.dispatched(row.id, slot):
            for blocker in found:
                checked.removed[blocker.rule] = checked.removed.get(blocker.rule, 0) + 1
            return
        if not twin.is_open(row.id, slot):
            return  # removing the blockers has ended the task instance
        named = twin.blockers(row.id, slot)
        if not named:
            raise NotExact(f"{_name(row, twin.active_run(row.id), slot)} has no blocker, but is not dispatched; {history}")
        if any(blocker.rule in OUT_OF_REACH or _impossible(twin, row, slot, blocker) for blocker in named):
            return
        history.append([blocker.sentence for blocker in named])
        for blocker in named:
            remove(twin, row.id, slot, blocker)
        twin.scheduler.readmit()
        twin.scheduler.process()
    raise NotExact(
        f"{_name(row, twin.active_run(row.id), slot)} is not dispatched, although all named blockers were removed: {history[-3:]}"
    )


def _check_left_alone(scheduler: Scheduler, row: RunRow, slot: int, alone: Blocker, checked: Checked) -> None:
    twin = Twin(scheduler)
    for _ in range(ROUNDS):
        named = twin.blockers(row.id, slot)
        others = [blocker for blocker in named if blocker.rule != alone.rule]
        if alone.rule not in {blocker.rule for blocker in named} or not twin.is_open(row.id, slot):
            return  # removing the other blockers has also removed this one
        if any(blocker.rule in OUT_OF_REACH for blocker in others):
            return
        for blocker in others:
            remove(twin, row.id, slot, blocker)
        kept = next((one for one in twin.blockers(row.id, slot) if one.rule == alone.rule), None)
        if kept is None:
            return
        before = _signature(twin, row, slot, kept)
        twin.scheduler.readmit()
        twin.scheduler.process()
        if twin.dispatched(row.id, slot):
            if before is not None and before == _signature(twin, row, slot, kept):
                raise NotExact(f"{_name(row, twin.active_run(row.id), slot)} is dispatched, although why says: {kept.sentence}")
            return
        if not others:
            checked.held[alone.rule] = checked.held.get(alone.rule, 0) + 1
            return


def _signature(twin: Twin, row: RunRow, slot: int, blocker: Blocker) -> object:
    """Return the state that a blocker describes, to detect a change; None if the state is not known."""
    active_run = twin.active_run(row.id)
    machine = active_run.machine
    if blocker.resource is not None:
        admission, resource = twin.scheduler.admission, blocker.resource
        own = dict(active_run.needs(slot)).get(resource, 1) if twin.dispatched(row.id, slot) else 0
        return admission.capacity(resource), admission.used(resource) - own
    if blocker.rule in ("trigger_rule", "setup", "teardown", "list"):
        return [machine.state[one] for one in _above(twin, row, slot)], machine.instances.total
    if blocker.rule == "past":
        return _past_states(twin, row, slot)
    if blocker.rule in ("paused", "inactive"):
        plan = twin.store.need_dag(row.dag_id)
        return plan.is_paused, plan.is_active
    if blocker.rule in ("due", "run_after"):
        return twin.clock.wall()
    return None


def _above(twin: Twin, row: RunRow, slot: int) -> list[int]:
    """Return the slots of the task instances on whose states the dependency rules of a task instance depend."""
    machine = twin.active_run(row.id).machine
    topology, task = machine.topology, machine.instances.task(slot)
    tasks = {*topology.upstream(task), *topology.setups_of.get(task, ()), *topology.teardown_scope.get(task, ())}
    if task in topology.domain_of:
        tasks |= set(topology.domains[topology.domain_of[task]].providers)
    return sorted(one for other in tasks for one in machine.instances.slots(other))


def _past_states(twin: Twin, row: RunRow, slot: int) -> object:
    active_run = twin.active_run(row.id)
    if row.logical_date is None:
        return None
    before = twin.store.previous_run(row.dag_id, row.logical_date, scheduled_only=active_run.topology.definition.catchup)
    if before is None:
        return None
    return before.id, twin.store.states_of(before.id, active_run.topology.ids)


# --- runs that do not exist yet ------------------------------------------------------------------------------------------


def check_next_runs(scheduler: Scheduler, chance: Random | None = None, at_most: int = 1) -> dict[str, int]:
    """Check the next scheduled runs of DAGs: with a named blocker the run is not created, without any it is created.

    Returns:
        Rule → how often it was removed and the run was created.

    Raises:
        NotExact: the message names the blockers and what the scheduler did.
    """
    made: dict[str, int] = {}
    now = scheduler.clock.wall()
    if not is_quiet(scheduler):
        return made
    open_ones = []
    for dag_id, entry in sorted(scheduler.dags.items()):
        coming = next_of(scheduler.store, entry.plan, scheduler, now)
        if coming.times is not None and not coming.blockers:
            raise NotExact(f"why names no blocker of the next run of {dag_id}, but the run is not created")
        if coming.times is not None:
            open_ones.append(dag_id)
    if chance is not None:
        chance.shuffle(open_ones)
    for dag_id in open_ones[:at_most]:
        for rule in _make_next(Twin(scheduler), dag_id):
            made[rule] = made.get(rule, 0) + 1
    return made


def _make_next(twin: Twin, dag_id: str) -> set[str]:
    """Remove named blockers until a run is created, and return the removed rules."""
    store, scheduler = twin.store, twin.scheduler
    before = {row.id for row in store.runs_between(dag_id, None, None)}
    removed: set[str] = set()
    history: list[list[str]] = []
    for _ in range(ROUNDS):
        coming = next_of(store, store.need_dag(dag_id), scheduler, twin.clock.wall())
        if coming.times is None:
            return set()  # its schedule has ended during the check
        rules = {blocker.rule for blocker in coming.blockers}
        if coming.times.run_after > twin.clock.wall() + TOO_FAR:
            return set()
        if not rules <= {"paused", "inactive", "not_due", "max_active_runs"}:
            return set()
        foretold = scheduled_run_id(coming.times) if rules == {"not_due"} else None
        removed |= rules
        history.append([blocker.sentence for blocker in coming.blockers])
        for blocker in coming.blockers:
            if blocker.rule == "not_due":
                twin.clock.advance(max(0, (blocker.not_before or 0) - twin.clock.wall()))
            elif blocker.rule == "paused":
                store.set_paused(dag_id, False, "twin", twin.clock.wall())
            else:
                _replan(twin, dag_id, **({"is_active": True} if blocker.rule == "inactive" else {"max_active_runs": 10**6}))
        scheduler.schedules.refresh(dag_id)
        scheduler.process()
        new = [row for row in store.runs_between(dag_id, None, None) if row.id not in before]
        if foretold is not None and foretold not in {row.run_id for row in new}:
            raise NotExact(f"{dag_id}: {foretold} was predicted, but these runs were created: {[row.run_id for row in new]}")
        if new:
            return removed
    raise NotExact(f"{dag_id} creates no run, although all named blockers were removed: {history}")


# --- removers -------------------------------------------------------------------------------------------------------------

_WANTED = {
    TriggerRule.ALL_FAILED: TaskState.FAILED,
    TriggerRule.ONE_FAILED: TaskState.FAILED,
    TriggerRule.ALL_SKIPPED: TaskState.SKIPPED,
}
"""Trigger rule → the states in which upstream tasks have to end, if not success."""


def _impossible(twin: Twin, row: RunRow, slot: int, blocker: Blocker) -> bool:
    """Return whether a task's rule needs its upstream tasks to fail or be skipped, while it also needs them to succeed."""
    machine = twin.active_run(row.id).machine
    topology, task = machine.topology, machine.instances.task(slot)
    if blocker.rule == "past":
        states = _past_states(twin, row, slot)
        return not isinstance(states, tuple) or not states[1].get(topology.ids[task])
    if blocker.rule not in ("trigger_rule", "setup", "list") or topology.tasks[task].trigger_rule not in _WANTED:
        return False
    above = set(topology.upstream(task))
    if task in topology.domain_of and above & set(topology.domains[topology.domain_of[task]].providers):
        return True
    return bool(above & set(topology.setups_of.get(task, ()))) or any(topology.tasks[one].is_setup for one in above)


def remove(twin: Twin, run: int, slot: int, blocker: Blocker) -> None:
    """Remove one blocker, as a person or an outside event would remove it."""
    scheduler, store = twin.scheduler, twin.store
    row = twin.row(run)
    dag_id = row.dag_id
    if blocker.rule in ("trigger_rule", "setup", "teardown", "list", "branch"):
        _change_above(twin, row, slot, blocker.rule)
    elif blocker.rule == "past":
        _change_past(twin, row, slot)
    elif blocker.rule in ("due", "run_after", "not_due"):
        assert blocker.not_before is not None
        twin.clock.advance(max(0, blocker.not_before - twin.clock.wall()))
    elif blocker.rule == "paused":
        store.set_paused(dag_id, False, "twin", twin.clock.wall())
        scheduler.schedules.refresh(dag_id)
    elif blocker.rule == "pool":
        name = _pool(twin, row, slot)
        store.set_pool(PoolRow(name, -1, None, False), "twin", twin.clock.wall())
        scheduler.refresh_pools()
    elif blocker.rule == "inactive":
        _replan(twin, dag_id, is_active=True)
    elif blocker.rule == "max_active_runs":
        _replan(twin, dag_id, max_active_runs=10**6)
    elif blocker.rule == "backfill_paused":
        for backfill in store.backfills(dag_id):
            store.pause_backfill(backfill.id, False, "twin", twin.clock.wall())
        scheduler.schedules.refresh(dag_id)
    elif blocker.rule == "backfill_max_active_runs":
        for backfill in store.backfills(dag_id):
            store.engine.run("UPDATE backfill SET max_active_runs = ? WHERE id = ?", (10**6, backfill.id))
        _replan(twin, dag_id, max_active_runs=10**6)
    elif blocker.resource is not None:
        scheduler.admission.set_capacity(blocker.resource, UNLIMITED)
    # the others ("rows", "expanding", "run_order", "position") disappear by themselves when the scheduler continues


def _pool(twin: Twin, row: RunRow, slot: int) -> str:
    active_run = twin.active_run(row.id)
    return active_run.topology.tasks[active_run.machine.instances.task(slot)].pool


def _replan(twin: Twin, dag_id: str, **changes: int) -> None:
    for column, value in changes.items():
        assert twin.store.engine.run(f"UPDATE dag SET {column} = ? WHERE dag_id = ?", (value, dag_id)) == 1
    twin.scheduler.schedules.refresh(dag_id)


def _ended(row: TaskRow, state: TaskState, length: int) -> TaskRow:
    known = row.length if row.length is not None else length
    return row._replace(state=state.code, due_at=0, resume=False, length=known if state is TaskState.SUCCESS else None)


def _change_above(twin: Twin, row: RunRow, slot: int, rule: str) -> None:
    """Let the upstream tasks end so that the task instance can continue."""
    machine = twin.active_run(row.id).machine
    topology, instances, task = machine.topology, machine.instances, machine.instances.task(slot)
    wanted: dict[int, TaskState] = {}
    if rule == "branch":
        decided = machine.skipped_by.get(task, set()) | machine.skipped_by_index.get((task, instances.index(slot)), set())
        twin.write(row.id, lambda one: one._replace(branch=None) if one.slot in decided else one)
        return
    if rule == "trigger_rule":
        state = _WANTED.get(topology.tasks[task].trigger_rule, TaskState.SUCCESS)
        above = [one for up in topology.upstream(task) for one in relevant(machine, slot, up)]
        present = [one for one in above if machine.task_state(one) is not TaskState.REMOVED]
        for one in above if state is TaskState.SKIPPED or not present else present:
            wanted[one] = state
    tasks = {"setup": topology.setups_of, "teardown": topology.teardown_scope}.get(rule, {}).get(task, ())
    wanted.update((one, TaskState.SUCCESS) for other in tasks for one in relevant(machine, slot, other))
    if rule == "list":
        providers = topology.domains[topology.domain_of[task]].providers
        wanted.update((one, TaskState.SUCCESS) for other in providers for one in instances.slots(other))
    length = len(instances.slots(task))
    twin.write(row.id, lambda one: _ended(one, wanted[one.slot], length) if one.slot in wanted else one)


def _change_past(twin: Twin, row: RunRow, slot: int) -> None:
    """Make the previous run a success."""
    active_run = twin.active_run(row.id)
    date, before = row.logical_date, None
    if date is not None:
        before = twin.store.previous_run(row.dag_id, date, scheduled_only=active_run.topology.definition.catchup)
    if before is None:
        raise NotExact(f"{_name(row, active_run, slot)} waits for the previous run, although there is none")
    task = active_run.machine.instances.task(slot)
    names = {active_run.topology.ids[one] for one in (task, *active_run.topology.downstream(task))}
    good = {TaskState.SUCCESS.code, TaskState.SKIPPED.code, TaskState.REMOVED.code}
    twin.write(
        before.id, lambda one: _ended(one, TaskState.SUCCESS, 1) if one.task_id in names and one.state not in good else one
    )


__all__ = ["Checked", "NotExact", "Twin", "check_next_runs", "check_why", "remove"]
