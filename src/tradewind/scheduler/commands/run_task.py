"""The command `run_task`: run one task instance now.

It is decided from the store alone, in the command's own transaction. The kernel (`kernel.explain`) lists rules that keep the task
instance from running, the command says which of these rules are ignored, and then the run machine moves the task instance to
scheduled. Limits and pools apply as for every other task instance: the scheduler dispatches it when slots are free.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

import msgspec

from tradewind.executors.registry import ExecutorRegistry
from tradewind.kernel import events as e
from tradewind.kernel.explain import Blocker, dependencies, outside_its_dates
from tradewind.kernel.topology import Topology
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.rows import Batch, RunRow
from tradewind.model.states import FINISHED, FINISHED_RUNS, SCHEDULABLE, RunState, TaskState
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.dags import active_dag
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker
from tradewind.scheduler.runs.run_shape import fitted
from tradewind.store.port import Store
from tradewind.wire import commands as c

OF_THE_TASK = frozenset({"trigger_rule", "setup", "teardown", "branch", "past", "due", "dates"})
"""Rules of `kernel.explain` that a person may ignore. If another rule is not met, there is nothing that could run."""

IGNORABLE = {"all": OF_THE_TASK, "task": OF_THE_TASK, "past": frozenset({"past"})}
"""Word of `ignore` → the rules. Limits are not dependencies, so `all` means the same as `task`."""


def run_task(context: CommandContext, command: c.RunTask) -> c.RunTaskResult:
    """Schedule the task instance, if its dependencies are met or the command ignores them.

    Raises:
        NotFound: there is no such DAG, run, task or pool, with the nearest one.
        Conflict: it is already scheduled or running; it has ended and `force` is not given; dependencies are not met.
    """
    store, now = context.store, context.clock.wall()
    plan = active_dag(store, command.dag_id)
    allowed = _allowed(command.ignore)
    if command.wait_for_past and allowed:
        raise Conflict("waiting for the past and ignoring dependencies exclude each other")
    pool = _known_pool(store, command.pool)
    row = store.need_run(plan.dag_id, command.run_id)
    active_run = _read(context, row)
    machine, slot = active_run.machine, _slot(active_run, command.task_id, command.map_index)
    state = machine.task_state(slot)
    _refuse_by_state(active_run, slot, force=command.force)
    blockers = dependencies(machine, slot, now) + outside_its_dates(machine, slot)
    left = [blocker for blocker in blockers if blocker.rule not in allowed]
    waits = command.wait_for_past and bool(left) and all(blocker.rule == "past" for blocker in left)
    if left and not waits:
        raise Conflict(_not_met(active_run, slot, left))
    empty = active_run.topology.tasks[machine.instances.task(slot)].empty
    ignored = sorted({blocker.rule for blocker in blockers} & allowed)
    result = c.RunTaskResult(
        done="waits" if waits else "success" if empty else "scheduled",
        dag_id=plan.dag_id,
        run_id=row.run_id,
        task_id=command.task_id,
        map_index=machine.instances.index(slot),
        before=state.shown,
        ignored=ignored,
        waits_for=[blocker.sentence for blocker in left],
        is_paused=plan.is_paused,
        pool=pool,
        try_number=machine.tries[slot],
        run_state=row.state.value,
    )
    return result if command.dry_run else _carry_out(context, command, row, slot, state, result)


def _carry_out(
    context: CommandContext, command: c.RunTask, row: RunRow, slot: int, state: TaskState, result: c.RunTaskResult
) -> c.RunTaskResult:
    """Write the change. Returns the result with the number of the try and the state of the run."""
    store, now, reason = context.store, context.clock.wall(), command.reason or ""
    tries = result.try_number
    if state in FINISHED or row.state in FINISHED_RUNS:
        row = store.clear(row.id, [slot], context.actor, now, reason or "to be run by hand")
    if result.done != "waits":
        tries = _schedule_now(context, row, slot, _cause(context.actor, reason, result.ignored), command.pool)
    elif command.pool is not None:
        active_run = _read(context, row)
        active_run.choose_pool(slot, command.pool)
        _commit(store, active_run, now)
    detail = {**msgspec.structs.asdict(result), "force": command.force, "reason": reason}
    del detail["try_number"], detail["run_state"]
    store.write_audit("run_task", context.actor, now, dag_id=row.dag_id, run_id=row.run_id, detail=detail)
    context.effects.runs.add(row.id)
    context.effects.dags.add(row.dag_id)
    return msgspec.structs.replace(result, try_number=tries, run_state=row.state.value)


def _read(context: CommandContext, row: RunRow) -> ActiveRun:
    """Return the run as the store has it, with the verdicts of earlier runs for its `depends_on_past` tasks."""
    store, config = context.store, context.config
    snapshot = store.snapshot(row.id)
    if snapshot is None:
        raise NotFound(f"run {row.run_id!r} was deleted")
    topology = fitted(Topology(store.definition(row.version)), snapshot)
    active_run = ActiveRun.restore(
        snapshot,
        topology,
        config.requeue_limit,
        config.batch_max_rows,
        repeat_lost=config.repeat_lost,
        executors=ExecutorRegistry(config.executor, config.parallelism),
    )
    sweeps = active_run.machine.sweeps
    if sweeps and row.state is RunState.RUNNING:
        raise Conflict(f"task instances of run {row.run_id} are being ended just now: {sweeps[0].cause}. Try again in a moment")
    sweeps.clear()

    def tell(run: int, event: e.Event) -> None:
        active_run.machine.apply(event, settle=False)

    PreviousRunTracker(store).adopt(active_run, {}, tell)
    return active_run


def _known_pool(store: Store, name: str | None) -> str | None:
    """Return the pool that the command names. Raises NotFound with the nearest name."""
    if name is None:
        return None
    names = [pool.name for pool in store.pools()]
    if name not in names:
        raise NotFound(
            f"There is no pool {name!r}.{did_you_mean(name, names)} To create it: "
            f"tradewind pools set {shlex.quote(name)} SLOTS DESCRIPTION"
        )
    return name


def _schedule_now(context: CommandContext, row: RunRow, slot: int, cause: str, pool: str | None) -> int:
    """Write that the task instance is scheduled, in `pool`. Returns the number of its try.

    The scheduler decides the consequences for other task instances when it reads the run.
    """
    now, active_run = context.clock.wall(), _read(context, row)
    for decision in active_run.machine.apply(e.RunNow(slot, now, cause), settle=False):
        if isinstance(decision, e.Refusal):
            raise Conflict(f"{active_run.machine.name(slot)} in {active_run.row.run_id} cannot run now: {decision.cause}")
        if isinstance(decision, e.Move):
            active_run.add_move(decision)
    if pool is not None:
        active_run.choose_pool(slot, pool)
    _commit(context.store, active_run, now)
    return active_run.machine.tries[slot]


def _commit(store: Store, active_run: ActiveRun, now: int) -> None:
    """Write the decisions. Raises Conflict if the run was changed since it was read."""
    if store.commit(Batch(store.epoch(), now, [active_run.write(now)])).stale:
        raise Conflict(f"run {active_run.row.run_id} was changed by another process at the same time; try again")


def _allowed(words: Iterable[str]) -> frozenset[str]:
    """Return the rules that the words of `ignore` name."""
    allowed: frozenset[str] = frozenset()
    for word in words:
        if word not in IGNORABLE:
            raise Conflict(f"{word!r} cannot be ignored.{did_you_mean(word, IGNORABLE)} Use {', '.join(IGNORABLE)}.")
        allowed |= IGNORABLE[word]
    return allowed


def _slot(active_run: ActiveRun, task_id: str, map_index: int | None) -> int:
    """Return the slot of the task instance. Raises NotFound, or Conflict if it does not exist yet."""
    topology, run_id = active_run.topology, active_run.row.run_id
    task = topology.index.get(task_id)
    if task is None:
        raise NotFound(f"DAG {active_run.row.dag_id} has no task {task_id!r}.{did_you_mean(task_id, topology.ids)}")
    index = -1 if map_index is None else map_index
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
    """Raise Conflict if the task instance is scheduled or running, or has ended and `force` is not given."""
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
    """Return a sentence with every unmet dependency, and how to ignore them."""
    named = "; ".join(f"{blocker.rule}: {blocker.sentence.rstrip('.')}" for blocker in blockers)
    if not all(blocker.rule in OF_THE_TASK for blocker in blockers):
        advice = "These cannot be ignored."
    elif all(blocker.rule == "past" for blocker in blockers):
        advice = (
            "To run it all the same: --ignore-depends-on-past. To have it run when its past lets it: --depends-on-past wait"
        )
    else:
        advice = "To run it all the same: --ignore-dependencies"
    return f"{active_run.machine.name(slot)} in {active_run.row.run_id} is not run, dependencies not met: {named}. {advice}"


def _cause(actor: str, reason: str, ignored: list[str]) -> str:
    """Return the cause for the journal."""
    cause = f"run by {actor}" + (f": {reason}" if reason else "")
    return f"{cause} (ignored: {', '.join(ignored)})" if ignored else cause
