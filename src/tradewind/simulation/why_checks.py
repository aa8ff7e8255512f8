"""Checks that `why` is exact: asks the running scheduler at quiet times, and compares its answers with the committed rows.

A time is quiet if the scheduler has nothing left to decide. Then every waiting task instance must have a blocker; without one, it
would have been dispatched. Each named blocker must exist, and each existing blocker must be named, as far as the rows show it: the
rules are implemented a second time here, over the shadow. And a task instance must not be dispatched while all its named blockers
exist.

Questions change nothing: they use their own random stream, schedule no event, have no faults, and leave nothing in the memory of
the scheduler. The same seed has the same history with and without questions.

The answer may differ from the rows after a message to the scheduler was lost (a drawn fault): until its next check, answers are not
compared. After a run was deleted, dependencies on earlier runs are not compared until then either, because no message reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tradewind.kernel.explain import Blocker
from tradewind.model.definition import MapXCom, TaskDefinition
from tradewind.model.executor_names import CELERY
from tradewind.model.moments import HOUR
from tradewind.model.rows import RunRow
from tradewind.model.waits import tasks_waits
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.explain.why import blockers_of, why, why_run_of
from tradewind.scheduler.explain.why_waits import NOTICED
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.simulation.checks import (
    DEFERRED,
    FAILED,
    HOLDING,
    NAMES,
    NONE,
    OVER,
    QUEUED,
    R_FAILED,
    R_QUEUED,
    R_RUNNING,
    R_SUCCESS,
    REMOVED,
    RESCHEDULE,
    RESTARTING,
    RETRY,
    RUNNING,
    SCHEDULED,
    SKIPPED,
    SUCCESS,
    UPSTREAM_FAILED,
    Checks,
    Limit,
    rule_holds,
)
from tradewind.simulation.shadow import Change, Run, Task
from tradewind.wire.explanations import Explanation

if TYPE_CHECKING:
    from tradewind.simulation.world import SchedulerProcess, World

AN_HOUR, AN_HOUR_OF_RECOVERY = 8, 30
"""Interval between two questions, in addition to the questions after faults and commands."""
AFTER_A_FAULT = 0.3
RUNS, QUEUED_RUNS = 2, 1
"""Number of runs with a question about one task instance, and number of queued runs with a question."""


def is_quiet(scheduler: Scheduler) -> bool:
    """Whether the scheduler has nothing left to decide now."""
    if scheduler.busy or scheduler.paused or scheduler.superseded:
        return False
    due = scheduler.timers.next_due()
    return due is None or due > scheduler.clock.wall()


def blockers_at(scheduler: Scheduler, row: RunRow, slot: int, active_run: ActiveRun) -> list[Blocker]:
    """Return the blockers that `why` names for one task instance."""
    plan = scheduler.store.need_dag(row.dag_id)
    return blockers_of(scheduler.store, scheduler, plan, row, active_run, slot)[0]


@contextmanager
def undo_changes(scheduler: Scheduler) -> Iterator[None]:
    """Undo the changes of a question in memory: caches, and numbers of queues that are cleaned up when they are read."""
    topologies = dict(scheduler.runs._topologies)
    store = cast("Any", scheduler.store)
    definitions = store._definitions.copy()
    queues = [
        (entry, list(entry.due_queue), list(entry.backfill_queue), list(entry.dates)) for entry in scheduler.dags.values()
    ]
    sentences = [
        (active_run.machine, dict(active_run.machine.past_reason))
        for active_run in scheduler.active_runs_by_id.values()
        if active_run.topology.has_past
    ]
    try:
        yield
    finally:
        scheduler.runs._topologies.clear()
        scheduler.runs._topologies.update(topologies)
        store._definitions = definitions
        for entry, due, backfill, dates in queues:
            entry.due_queue, entry.backfill_queue, entry.dates = due, backfill, dates
        for machine, sentence in sentences:
            machine.past_reason = sentence


class Judgement(NamedTuple):
    """The blockers that may be named, by rule."""

    exact: dict[str, bool]
    """Rule → whether it blocks: `why` must name exactly the true ones."""
    possible: dict[str, bool]
    """Rule → whether it may block: `why` may name only true ones."""


class ActualBlockers:
    """The existing blockers, computed from the committed rows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._checks: Checks = world.checks

    # --- a run ---------------------------------------------------------------------------------------------------

    def of_run(self, run: int) -> Judgement:
        """The blockers of a run."""
        shadow, now = self._checks.shadow, self._world.clock.wall()
        row = shadow.runs[run]
        dag = shadow.dags[row.dag_id]
        queued, of_backfill = row.state == R_QUEUED, row.kind == "backfill"
        exact = {
            "not_loaded": False,
            "quarantined": False,
            "inactive": queued and not dag.is_active,
            "rows": queued and row.rows_created < row.task_count,
            "run_after": queued and row.run_after > now,
            "max_active_runs": queued and not of_backfill and self._runs_left(row) <= 0,
        }
        if queued:
            exact["paused"] = dag.is_paused
        direct = self._world.before(run) if self._has_past(row) else None
        if direct is not None and queued and self._could_begin(direct, now) and shadow.runs[direct].kind != "backfill":
            exact["previous_run"] = True
        first = next((one for one in self._chain(run) if shadow.runs[one].state == R_QUEUED), None)
        possible = {
            "previous_run": queued and self._has_past(row) and first is not None,
            "run_order": queued and any(self._must_start_before(other, row, now) for other in shadow.runs.values()),
            "backfill_paused": queued and of_backfill,
            "backfill_max_active_runs": queued and of_backfill and self._running(row.dag_id, of_backfill=True) > 0,
        }
        return Judgement(exact, possible)

    def _running(self, dag_id: str, *, of_backfill: bool) -> int:
        runs = self._checks.shadow.runs.values()
        return sum(one.dag_id == dag_id and one.state == R_RUNNING and (one.kind == "backfill") == of_backfill for one in runs)

    def _runs_left(self, row: Run) -> int:
        definition = self._checks.shape(self._checks.shadow.dags[row.dag_id].version).definition
        return definition.max_active_runs - self._running(row.dag_id, of_backfill=False)

    def _has_past(self, row: Run) -> bool:
        tasks = self._checks.shape(row.version).definition.tasks
        return any(task.depends_on_past or task.wait_for_downstream for task in tasks)

    def _could_begin(self, run: int, now: int) -> bool:
        row = self._checks.shadow.runs[run]
        dag = self._checks.shadow.dags[row.dag_id]
        due = row.run_after <= now and row.rows_created >= row.task_count
        return row.state == R_QUEUED and due and dag.is_active and not dag.is_paused

    def _chain(self, run: int) -> Iterator[int]:
        """Yield the previous run on which the run depends, the previous run of that run, and so on, until one has ended."""
        runs, before = self._checks.shadow.runs, self._world.before(run)
        while before is not None and runs[before].state not in (R_SUCCESS, R_FAILED):
            yield before
            before = self._world.before(before)

    def _must_start_before(self, other: Run, row: Run, now: int) -> bool:
        """Whether `other` must start before `row`, and cannot start now."""
        same = other.dag_id == row.dag_id and (other.kind == "backfill") == (row.kind == "backfill")
        late = other.run_after > now or other.rows_created < other.task_count
        return same and other is not row and other.state == R_QUEUED and late

    # --- a task instance -------------------------------------------------------------------------------------------

    def of_task(self, run: int, slot: int, before: Task | None = None) -> Judgement:
        """Return the blockers that keep a task instance from being dispatched.

        Args:
            before: its row before it was dispatched a moment ago: its own attempt does not count.
        """
        shadow = self._checks.shadow
        row, task = shadow.runs[run], before if before is not None else shadow.tasks[run][slot]
        definition = self._checks.task_of(row, task)
        exact, possible = self.of_run(run)
        exact.update(
            queued=task.state == QUEUED,
            running=task.state == RUNNING,
            restarting=task.state == RESTARTING,
            finished=task.state in OVER,
            position=False,
            due=task.state in (RETRY, RESCHEDULE) and task.due > self._world.clock.wall(),
        )
        self._wait(run, slot, task, possible)
        if task.state not in (NONE, SCHEDULED, RETRY, RESCHEDULE):
            if task.state == QUEUED:
                exact["no_worker"] = not self._has_host_that_takes_work()
            return Judgement(exact, possible)
        # a task that a newer version of the DAG has made empty, and that is scheduled already, is dispatched all the same
        at_once = definition.empty and task.state != SCHEDULED
        if definition.wait is None or task.state == SCHEDULED:  # else the scheduler waits in its place, and asks for no slot
            if row.state == R_RUNNING:
                exact["paused"] = shadow.dags[row.dag_id].is_paused and not at_once
            exact.update(self._limits(run, row, definition, own=before is not None, at_once=at_once))
        if task.state == SCHEDULED:
            possible.update(dict.fromkeys(("trigger_rule", "setup", "teardown", "branch", "list", "expanding", "past"), False))
        elif self._checks.shape(row.version).has(task):  # otherwise it is removed when its run starts: no dependency counts
            self._dependencies(run, slot, definition, exact, possible)
        return Judgement(exact, possible)

    def _wait(self, run: int, slot: int, task: Task, possible: dict[str, bool]) -> None:
        """Add the blockers of a deferred task instance; other task instances have none of them."""
        shadow, waits = self._checks.shadow, task.state == DEFERRED
        kept = shadow.waits.get((run, slot)) if waits else None
        asked = tasks_waits(kept.deferral.wait) if kept is not None else ()
        found = [shadow.dags.get(one.dag_id) for one in asked]
        others = [one for run, row in shadow.runs.items() if row.state == R_RUNNING for one in shadow.tasks[run].values()]
        possible.update(
            deferred=waits,
            deferred_until=waits and not asked,
            waits_for_paused=any(dag is not None and dag.is_paused for dag in found),
            waits_for_nothing=bool(asked),
            waits_for_no_run=bool(asked),
            waits_for_other_end=bool(asked),
            waits_in_a_circle=bool(asked) and sum(one.state == DEFERRED for one in others) > 0,
            no_worker=task.state == QUEUED or not self._has_host(),
        )

    def _has_host(self) -> bool:
        life = self._world.scheduler
        return life is not None and life.server is not None and bool(life.server.workers)

    def _has_host_that_takes_work(self) -> bool:
        """Whether a worker host is connected that is not draining."""
        life = self._world.scheduler
        if life is None or life.server is None:
            return False
        loads = [one for one in life.server.executor.loads if not one.draining]
        if self._world.config.executor == CELERY:  # a worker host without a Celery worker gets nothing from the broker
            return any(CELERY in one.executors for one in loads)
        return bool(loads)

    def _limits(self, run: int, row: Run, task: TaskDefinition, *, own: bool, at_once: bool) -> Iterator[tuple[str, bool]]:
        """For each limit of the task instance: True if it has too few free slots.

        Args:
            own: do not count the instance itself.
            at_once: the task instance succeeds without a dispatch.
        """
        if at_once:
            yield from ((rule, False) for rule in ("pool", "parallelism", "max_active_tasks"))
            return
        limits: list[tuple[str, Limit, int]] = [
            ("parallelism", ("all",), 1),
            ("pool", ("pool", task.pool), task.pool_slots),
            ("max_active_tasks", ("run", run), 1),
        ]
        if task.max_active_tis_per_dagrun is not None:
            limits.append(("max_active_tis_per_dagrun", ("run task", run, task.task_id), 1))
        if task.max_active_tis_per_dag is not None and self._is_same_in_all_versions(row, task):
            limits.append(("max_active_tis_per_dag", ("dag task", row.dag_id, task.task_id), 1))
        used = self._checks.used()
        for rule, limit, amount in limits:
            capacity = self._checks.capacity(limit)
            yield rule, capacity is not None and max(0, capacity - used.get(limit, 0) + amount * own) < amount

    def _is_same_in_all_versions(self, row: Run, task: TaskDefinition) -> bool:
        """Whether all versions of the DAG have the same limit for the task."""
        versions = self._checks.shadow.versions
        limits = {
            one.max_active_tis_per_dag
            for version, definition in versions.items()
            if definition.dag_id == row.dag_id and (one := self._checks.shape(version).tasks.get(task.task_id)) is not None
        }
        return len(limits) == 1

    def _dependencies(
        self, run: int, slot: int, task: TaskDefinition, exact: dict[str, bool], possible: dict[str, bool]
    ) -> None:
        shadow = self._checks.shadow
        row, rows = shadow.runs[run], shadow.tasks[run]
        shape = self._checks.shape(row.version)
        past = self._is_held_by_the_past(run, task)
        if past is not None:
            exact["past"] = past
        if row.rows_created < row.task_count or shape.definition.groups:
            return  # not all rows are written yet; and instances of mapped groups depend on single map indexes
        branched = self._checks.passed_over(run, task.task_id)
        states = [one.state for one in rows.values() if one.task_id in task.upstream]
        holds = rule_holds(task.trigger_rule.value, states)
        setups = [one.state for one in rows.values() if one.task_id in task.upstream and shape.tasks[one.task_id].is_setup]
        if task.is_teardown and setups and SUCCESS not in setups:
            holds = False  # there is nothing to tear down
        sources = {one.task_id for one in task.expand if isinstance(one, MapXCom)}
        ends = (one.state for one in rows.values() if one.task_id in sources and one.map_index < 0)
        listless = any(state in (FAILED, UPSTREAM_FAILED, SKIPPED) for state in ends)
        if listless:
            possible["trigger_rule"] = not holds  # that there is no list comes first, whatever its rule says
        elif not branched:
            if not holds:
                exact["trigger_rule"] = True
            elif past is False:  # else it is going to be skipped or failed, and only that is held back
                exact["trigger_rule"] = False
        behind = [one for one in rows.values() if one.task_id in shape.setups[task.task_id]]
        others = [one for number, one in rows.items() if number != slot]
        possible.update(
            branch=branched,
            setup=any(one.state != SUCCESS for one in behind),
            teardown=any(one.state not in OVER for one in others),
            list=listless or (task.mapped and rows[slot].map_index < 0),
            growing=task.mapped,
        )

    def _is_held_by_the_past(self, run: int, task: TaskDefinition) -> bool | None:
        """Whether the previous run does not have the required state. None: the rows do not show it."""
        shadow = self._checks.shadow
        row = shadow.runs[run]
        if not (task.depends_on_past or task.wait_for_downstream):
            return False
        before = self._world.before(run) if row.logical_date is not None else None
        if before is None:
            return False
        there = shadow.tasks.get(before, {}).values()
        below = self._checks.shape(row.version).below[task.task_id] if task.wait_for_downstream else []
        if not any(one.task_id == task.task_id for one in there):
            return None  # it may never have been, in no run
        return any(
            one.state not in (SUCCESS, SKIPPED, REMOVED) for one in there if one.task_id == task.task_id or one.task_id in below
        )


class Asked(NamedTuple):
    """The blockers that `why` has named for a task instance."""

    task: Task
    rules: frozenset[str]


class WhyChecks:
    """See the module.

    Args:
        world: the simulation; its scheduler is asked after it has processed its inbox.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._truth = ActualBlockers(world)
        self._rng = world.timeline.stream("why")
        self.on = True
        self._next = 0
        self._happened = 0
        self._lost = 0
        """Number of lost messages when the scheduler last knew everything."""
        self._deleted = False
        """Whether a run was deleted since then."""
        self._asked: dict[tuple[int, int], Asked] = {}

    # --- notifications of the world ------------------------------------------------------------------------------

    def knows_everything(self) -> None:
        """Record that the scheduler has read everything from the store, or has compared its memory with the store."""
        self._lost, self._deleted = self._losses(), False

    def inbox_processed(self, life: SchedulerProcess) -> None:
        """Ask some questions, now and then, after the scheduler has processed its inbox."""
        world = self._world
        happened = world.timeline.faults.total() + len(world.operator.asked) + len(world.acting_user.asked)
        soon, self._happened = happened != self._happened, happened
        if not self.on or not (world.timeline.now >= self._next or (soon and self._rng.random() < AFTER_A_FAULT)):
            return
        server = life.server
        shadow = world.checks.shadow
        if server is None or life is not world.scheduler or server.scheduler.epoch != shadow.epoch or world.violations:
            return
        if not is_quiet(server.scheduler) or server.scheduler.trouble is not None:
            return
        rate = AN_HOUR_OF_RECOVERY if world.recovering else AN_HOUR
        self._next = world.timeline.now + int(self._rng.expovariate(rate) * HOUR)
        store_faults, worker = world.store_faults, world.store_faults.worker
        store_faults.quiet, store_faults.worker = store_faults.quiet + 1, None
        try:
            with undo_changes(server.scheduler):
                if self._losses() == self._lost:
                    self._ask(server.scheduler)
                else:
                    self._ask_after_lost_message(server.scheduler)
        finally:
            store_faults.quiet, store_faults.worker = store_faults.quiet - 1, worker

    def committed(self, changes: list[Change]) -> None:
        """Check that no task instance with existing blockers was dispatched."""
        shadow, written = self._world.checks.shadow, set[int]()
        for kind, key, row in changes:
            if kind == "run":
                written.add(key[0])
                self._deleted |= row is None
        # a task that the scheduler waits for takes no turn at its pool; one that counts waits may be fuller afterwards than it was
        waited = {
            self._definition(*key).pool
            for kind, key, row in changes
            if kind == "task" and row is not None and row.state == DEFERRED and key[0] in shadow.runs
        }
        for kind, key, row in changes:
            asked = self._asked.get(key) if kind == "task" else None
            if asked is None or (row is not None and (row.state, row.fence) == (asked.task.state, asked.task.fence)):
                continue
            del self._asked[key]  # a scheduled task instance can be blocked only by limits
            dispatched = row is not None and row.state == QUEUED and row.fence == asked.task.fence + 1
            # else a share was not written, and limits count it still; or nobody could know of a run that is the past
            whole = self._world.store_faults.shares <= written and not self._world.checks.new_runs
            if dispatched and whole and key not in self._world.checks.by_hand and key[0] in shadow.runs:
                self._check_dispatched(key, asked, waited)

    def _definition(self, run: int, slot: int) -> TaskDefinition:
        shadow = self._world.checks.shadow
        return self._world.checks.task_of(shadow.runs[run], shadow.tasks[run][slot])

    # --- asking --------------------------------------------------------------------------------------------------

    def _losses(self) -> int:
        return self._world.timeline.faults["wake-up lost: command"]

    def _ask(self, scheduler: Scheduler) -> None:
        shadow, rng = self._world.checks.shadow, self._rng
        runs = [run for run, row in shadow.runs.items() if row.state in (R_QUEUED, R_RUNNING)]
        self._asked = {key: asked for key, asked in self._asked.items() if key[0] in shadow.tasks}
        for run in rng.sample(runs, min(len(runs), RUNS)):
            checks, tasks = self._world.checks, shadow.tasks[run]
            # if mapped instances have replaced an instance, `why` answers for the mapped task
            slots = [slot for slot, task in tasks.items() if task.state not in OVER and not checks.is_replaced(run, slot, task)]
            if slots:
                self._ask_of_task(scheduler, run, rng.choice(slots))
        queued = [run for run in runs if shadow.runs[run].state == R_QUEUED]
        for run in rng.sample(queued, min(len(queued), QUEUED_RUNS)):
            row = shadow.runs[run]
            answer = why_run_of(scheduler.store, scheduler, row.dag_id, row.run_id)
            self._judge(f"{row.dag_id}/{row.run_id}", answer, self._truth.of_run(run))

    def _ask_after_lost_message(self, scheduler: Scheduler) -> None:
        """Ask about a run that has changed since a message was lost: the answer says only that the scheduler does not know it."""
        for run, active_run in scheduler.active_runs_by_id.items():
            row = self._world.checks.shadow.runs.get(run)
            if row is not None and row.state == R_RUNNING and row.revision != active_run.row.revision:
                self._world.timeline.sometimes["why was asked of what the scheduler was not told of"] += 1
                answer = why_run_of(scheduler.store, scheduler, row.dag_id, row.run_id)
                if "not_loaded" not in {one.rule for one in answer.blockers}:
                    self._violated(f"{row.dag_id}/{row.run_id} has changed, and why does not say that nobody knows of it")

    def _ask_of_task(self, scheduler: Scheduler, run: int, slot: int) -> None:
        shadow = self._world.checks.shadow
        row, task = shadow.runs[run], shadow.tasks[run][slot]
        where = self._world.checks.where(run, slot)
        index = task.map_index if task.map_index >= 0 else None
        answer = why(scheduler.store, scheduler, row.dag_id, task.task_id, row.run_id, index)
        if (answer.state or "none") != NAMES[task.state] or answer.map_index != task.map_index:
            self._violated(f"{where} is {NAMES[task.state]}, but why says {answer.state} of [{answer.map_index}]")
            return
        self._judge(where, answer, self._truth.of_task(run, slot))
        if task.state not in HOLDING:
            self._asked[run, slot] = Asked(task, frozenset(one.rule for one in answer.blockers))

    def _judge(self, where: str, answer: Explanation, truth: Judgement) -> None:
        named = {one.rule: one.sentence for one in answer.blockers}
        for rule in named:
            self._world.timeline.sometimes[f"why: {rule}"] += 1
        if self._deleted:
            truth.exact.pop("past", None)  # until it looks again, it does not know which run is the one before
            truth.exact.pop("trigger_rule", None)
            truth.exact.pop("previous_run", None)
        if any(one.ends_with == NOTICED for one in answer.blockers):
            self._violated(f"what {where} waits for has come, and it does not go on")
        if not named:
            self._violated(f"why names no blocker of {where}, but it is not dispatched")
        for rule, stands in truth.exact.items():
            if stands and rule not in named:
                self._violated(f"{rule} blocks {where}, but why does not name it; it names {', '.join(named)}")
            elif rule in named and not stands:
                self._violated(f"{rule} does not block {where}, but why says: {named[rule]}")
        for rule, sentence in named.items():
            if not truth.possible.get(rule, True):
                self._violated(f"{rule} cannot block {where}, but why says: {sentence}")

    def _check_dispatched(self, key: tuple[int, int], asked: Asked, waited: set[str]) -> None:
        """Check a dispatched task instance: at least one of the blockers that `why` had named must be gone.

        Args:
            waited: pools of task instances that began to wait in the same commit, perhaps after the slot was given.
        """
        truth = self._truth.of_task(*key, asked.task)
        if self._definition(*key).pool in waited:
            truth.exact["pool"] = False
        if all(truth.exact.get(rule, False) for rule in asked.rules):
            where = self._world.checks.where(*key)
            self._violated(f"{where} is dispatched, though all of it stands: {', '.join(sorted(asked.rules))}")

    def _violated(self, text: str) -> None:
        self._world.violated("why", text)
