"""`run_task`: run one task instance now, as a person asks. Mixed into the other commands, see `commands.py`.

It is decided from the store alone, in the command's own transaction: what keeps the task instance from running is listed by the
kernel (`kernel.explain`), whoever asks says what of it does not count, and then the run's machine moves it to scheduled. Limits
and pools hold as for every other one: the scheduler dispatches it when there is room.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any

from tradewind.kernel import events as e
from tradewind.kernel.explain import Blocker, dependencies, outside_its_dates
from tradewind.kernel.topology import Topology
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.rows import Batch, RunRow
from tradewind.model.states import FINISHED, FINISHED_RUNS, SCHEDULABLE, RunState, TaskState
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker
from tradewind.scheduler.runs.run_shape import fitted
from tradewind.store.port import Store

Args = dict[str, Any]

OF_THE_TASK = frozenset({"trigger_rule", "setup", "teardown", "branch", "past", "due", "dates"})
"""Rules that a person may set aside, as words of `kernel.explain`. The others say that there is nothing yet that could run."""

IGNORABLE = {"all": OF_THE_TASK, "task": OF_THE_TASK, "past": frozenset({"past"})}
"""What `ignore` may name → the rules. Limits are no dependencies, so "all" is no more than "task"."""


class RunTaskCommands:
    """See the module."""

    store: Store
    clock: Clock
    config: SchedulerConfig

    def do_run_task(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, run_id, task_id, map_index?, ignore? (words of `IGNORABLE`), wait_for_past?, force?, dry_run?, reason?,
        pool? (used until the task instance is cleared; None: the pool it has, by default the pool that its DAG names)

        → `done`: `scheduled`; `success`, of a task that does nothing; `waits`, with `wait_for_past`: it runs when its past lets
        it; and `before` (its state), `ignored` (rules), `try_number`, `run_state`, `is_paused`, `pool` (as asked).

        Raises:
            NotFound: no such DAG, run, task or pool, with the nearest one.
            Conflict: it is under way; it has ended and `force` is not given; dependencies are not met.
        """
        store, now = self.store, self.clock.wall()
        plan = store.need_dag(args["dag_id"])
        if not plan.is_active:
            raise Conflict(
                f"DAG {plan.dag_id} is not in the DAG folder any more (its file was {plan.file}); nothing can run it"
            )
        allowed = _allowed(args.get("ignore") or ())
        wait_for_past = bool(args.get("wait_for_past"))
        if wait_for_past and allowed:
            raise Conflict("waiting for the past and ignoring dependencies exclude each other")
        pool = self._pool(args.get("pool"))
        row = store.need_run(plan.dag_id, args["run_id"])
        active_run = self._read(row)
        slot = _slot(active_run, args["task_id"], args.get("map_index"))
        state = active_run.machine.task_state(slot)
        _refuse_by_state(active_run, slot, force=bool(args.get("force")))
        blockers = dependencies(active_run.machine, slot, now) + outside_its_dates(active_run.machine, slot)
        left = [blocker for blocker in blockers if blocker.rule not in allowed]
        waits = wait_for_past and bool(left) and all(blocker.rule == "past" for blocker in left)
        if left and not waits:
            raise Conflict(_not_met(active_run, slot, left))
        empty = active_run.topology.tasks[active_run.machine.instances.task(slot)].empty
        ignored = sorted({blocker.rule for blocker in blockers} & allowed)
        answer: Args = {
            "done": "waits" if waits else "success" if empty else "scheduled",
            "dag_id": plan.dag_id,
            "run_id": row.run_id,
            "task_id": args["task_id"],
            "map_index": active_run.machine.instances.index(slot),
            "before": state.shown,
            "ignored": ignored,
            "waits_for": [blocker.sentence for blocker in left],
            "is_paused": plan.is_paused,
            "pool": pool,
        }
        tries = active_run.machine.tries[slot]
        if not args.get("dry_run"):
            reason = str(args.get("reason") or "")
            if state in FINISHED or row.state in FINISHED_RUNS:
                row = store.clear(row.id, [slot], actor, now, reason or "to be run by hand")
            if not waits:
                tries = self._schedule_now(self._read(row), slot, _cause(actor, reason, ignored), pool)
            elif pool is not None:
                active_run = self._read(row)
                active_run.choose_pool(slot, pool)
                self._commit(active_run, now)
            detail = {**answer, "force": bool(args.get("force")), "reason": reason}
            store.note_audit("run_task", actor, now, dag_id=plan.dag_id, run_id=row.run_id, detail=detail)
            effects.runs.add(row.id)
            effects.dags.add(plan.dag_id)
        return {**answer, "try_number": tries, "run_state": row.state.value}

    def _read(self, row: RunRow) -> ActiveRun:
        """A run as the store has it, with what its past says."""
        snapshot = self.store.snapshot(row.id)
        if snapshot is None:
            raise NotFound(f"run {row.run_id!r} was deleted")
        config, topology = self.config, fitted(Topology(self.store.definition(row.version)), snapshot)
        active_run = ActiveRun.restore(
            snapshot, topology, config.requeue_limit, config.batch_max_rows, repeat_lost=config.repeat_lost
        )
        sweeps = active_run.machine.sweeps
        if sweeps and row.state is RunState.RUNNING:
            raise Conflict(
                f"task instances of run {row.run_id} are being ended just now: {sweeps[0].cause}. Try again in a moment"
            )
        sweeps.clear()

        def tell(run: int, event: e.Event) -> None:
            active_run.machine.apply(event, settle=False)

        PreviousRunTracker(self.store).adopt(active_run, {}, tell)
        return active_run

    def _pool(self, name: str | None) -> str | None:
        """The pool that is asked for. Raises NotFound with the nearest name."""
        if name is None:
            return None
        names = [pool.name for pool in self.store.pools()]
        if name not in names:
            raise NotFound(
                f"There is no pool {name!r}.{did_you_mean(name, names)} To create it: "
                f"tradewind pools set {shlex.quote(name)} SLOTS DESCRIPTION"
            )
        return name

    def _schedule_now(self, active_run: ActiveRun, slot: int, cause: str, pool: str | None) -> int:
        """Write that it is scheduled, in `pool`; the number of its try. What follows is found by whoever reads the run next."""
        now = self.clock.wall()
        for decision in active_run.machine.apply(e.RunNow(slot, now, cause), settle=False):
            if isinstance(decision, e.Refusal):
                raise Conflict(f"{active_run.machine.name(slot)} in {active_run.row.run_id} cannot run now: {decision.cause}")
            if isinstance(decision, e.Move):
                active_run.note(decision)
        if pool is not None:
            active_run.choose_pool(slot, pool)
        self._commit(active_run, now)
        return active_run.machine.tries[slot]

    def _commit(self, active_run: ActiveRun, now: int) -> None:
        """Write what is decided. Raises Conflict where the run was changed since it was read."""
        if self.store.commit(Batch(self.store.epoch(), now, [active_run.write(now)])).stale:
            raise Conflict(f"run {active_run.row.run_id} was changed by somebody else in the same moment; try again")


def _allowed(words: Iterable[str]) -> frozenset[str]:
    """The rules that do not count."""
    allowed: frozenset[str] = frozenset()
    for word in words:
        if word not in IGNORABLE:
            raise Conflict(f"{word!r} cannot be ignored.{did_you_mean(word, IGNORABLE)} Use {', '.join(IGNORABLE)}.")
        allowed |= IGNORABLE[word]
    return allowed


def _slot(active_run: ActiveRun, task_id: str, map_index: int | None) -> int:
    """The task instance that is meant: of a mapped task, one that exists."""
    topology, run_id = active_run.topology, active_run.row.run_id
    task = topology.index.get(task_id)
    if task is None:
        raise NotFound(f"DAG {active_run.row.dag_id} has no task {task_id!r}.{did_you_mean(task_id, topology.ids)}")
    index = -1 if map_index is None else int(map_index)
    slots = active_run.machine.instances.expanded.get(task)
    if slots is None and task in topology.domain_of:
        raise Conflict(
            f"{task_id} is mapped and has no task instances in {run_id} yet; they are made when its dependencies are met"
        )
    if slots is None and index >= 0:
        raise NotFound(f"{task_id} has no map index {index}: it is not mapped")
    if slots is not None and not 0 <= index < len(slots):
        if index < 0:
            raise Conflict(f"{task_id} is mapped: say which one with --map-index, from 0 to {len(slots) - 1}")
        raise NotFound(f"{task_id} has no map index {index} in {run_id}; it has 0 to {len(slots) - 1}")
    slot = task if slots is None else slots[index]
    if slot >= active_run.row.rows_created:
        raise Conflict(f"the task instances of run {run_id} are still being written; try again in a moment")
    return slot


def _refuse_by_state(active_run: ActiveRun, slot: int, *, force: bool) -> None:
    """Only what is not under way can be run; what has ended, only by force."""
    machine, run_id, dag_id = active_run.machine, active_run.row.run_id, active_run.row.dag_id
    state, name, task_id = machine.task_state(slot), machine.name(slot), active_run.where(slot)[0]
    if state in SCHEDULABLE:
        return
    if state is TaskState.SCHEDULED:
        raise Conflict(
            f"{name} in {run_id} is scheduled already and starts when there is room. See: tradewind why {dag_id} {task_id} {run_id}"
        )
    if state not in FINISHED:
        index = f" --map-index {machine.instances.index(slot)}" if machine.instances.index(slot) >= 0 else ""
        raise Conflict(
            f"{name} in {run_id} is {state.value} already. To stop it and have it run again: "
            f"tradewind tasks clear {dag_id} -t '^{re.escape(task_id)}$'{index} --run-id {run_id}"
        )
    if state is TaskState.REMOVED and machine.instances.index(slot) >= 0:
        raise Conflict(f"{name} in {run_id} was removed: the list that it is mapped over is shorter now")
    if not force:
        raise Conflict(f"{name} in {run_id} has ended: it is {state.value}. To run it again all the same: --force")


def _not_met(active_run: ActiveRun, slot: int, blockers: list[Blocker]) -> str:
    """Every dependency that is in the way, and what may be done about it."""
    named = "; ".join(f"{blocker.rule}: {blocker.sentence.rstrip('.')}" for blocker in blockers)
    if not all(blocker.rule in OF_THE_TASK for blocker in blockers):
        advice = "This cannot be ignored."
    elif all(blocker.rule == "past" for blocker in blockers):
        advice = (
            "To run it all the same: --ignore-depends-on-past. To have it run when its past lets it: --depends-on-past wait"
        )
    else:
        advice = "To run it all the same: --ignore-dependencies"
    return f"{active_run.machine.name(slot)} in {active_run.row.run_id} is not run, dependencies not met: {named}. {advice}"


def _cause(actor: str, reason: str, ignored: list[str]) -> str:
    """What the journal says."""
    told = f"run by {actor}" + (f": {reason}" if reason else "")
    return f"{told} (ignored: {', '.join(ignored)})" if ignored else told
