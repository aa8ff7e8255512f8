"""Bugs put back into production on purpose: the simulation has to find each of them.

A mutant changes the production path and nothing else: one function or one piece of its source is replaced while the mutant is in
force. Checkers never know. In brackets: the public issues of the class that it stands for.
"""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from tradewind.executors.local import LocalExecutor
from tradewind.kernel import bulk_end, deadlines, examination, explain, integrity
from tradewind.kernel.admission import Admission
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.rules import branch_memory, past, run_verdict, setups
from tradewind.kernel.trigger_rules import DECIDERS, RULE_CODES, RUN, WAIT
from tradewind.model.rows import RunWrite
from tradewind.model.states import TaskState, TriggerRule
from tradewind.scheduler.assets import asset_index
from tradewind.scheduler.assets.asset_index import AssetIndex
from tradewind.scheduler.attempts.attempt_handler import AttemptHandler
from tradewind.scheduler.attempts.host_registry import HostRegistry
from tradewind.scheduler.callbacks import missed_deadlines
from tradewind.scheduler.callbacks.callback_dispatcher import CallbackDispatcher
from tradewind.scheduler.commands import assets as asset_commands
from tradewind.scheduler.commands import callbacks as callback_commands
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.dags import dag_registry
from tradewind.scheduler.dags.dag_registry import DagRegistry
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.scheduler.explain import why_run
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker
from tradewind.scheduler.runs.run_registry import RunRegistry
from tradewind.scheduler.runs.run_slots import RunSlots
from tradewind.scheduler.waits import deferral_manager, wait_index
from tradewind.scheduler.waits.deferral_manager import DeferralManager
from tradewind.scheduler.waits.wait_index import WaitIndex
from tradewind.simulation.simulate import Simulated, simulate
from tradewind.store.sql import run_changes, runs
from tradewind.store.sql.assets import AssetOperations
from tradewind.store.sql.deadlines import DeadlineOperations
from tradewind.store.sql.edits import EditOperations
from tradewind.store.sql.outbox import OutboxOperations
from tradewind.store.sql.retention import RetentionOperations
from tradewind.store.sql.runs import RunOperations
from tradewind.worker.attempt import Attempt
from tradewind.worker.host import WorkerHost
from tradewind.worker.trigger_manager import TriggerManager

Change = tuple[str, str]
"""(a piece of source, what stands there instead)."""


class Mutant(NamedTuple):
    name: str
    what: str
    """What is wrong, and for which known bugs it stands."""
    patches: Callable[[ExitStack], None]
    seed: int
    """One that finds it: it is tried first."""


@contextmanager
def rewritten(owner: Any, name: str, *changes: Change) -> Iterator[None]:
    """A production function with pieces of its source replaced."""
    held = vars(owner)[name]
    plain = held.__func__ if isinstance(held, staticmethod | classmethod) else held
    source = textwrap.dedent(inspect.getsource(plain))
    source = source.removeprefix("@classmethod\n").removeprefix("@staticmethod\n")
    for old, new in changes:
        if source.count(old) != 1:
            raise AssertionError(
                f"{name} has changed: {old!r} stands in it {source.count(old)} times; look at this mutant again"
            )
        source = source.replace(old, new)
    made: dict[str, Any] = {}
    exec(compile(f"from __future__ import annotations\n{source}", f"mutant of {name}", "exec"), plain.__globals__, made)
    value = type(held)(made[name]) if isinstance(held, staticmethod | classmethod) else made[name]
    with ExitStack() as stack:
        stack.enter_context(patch.object(owner, name, value))
        if owner is RunMachine:
            outcomes = {outcome: made[name] for outcome, work in RunMachine._OUTCOMES.items() if work is plain}
            stack.enter_context(patch.dict(RunMachine._OUTCOMES, outcomes))
        yield


def rewrite(*parts: tuple[Any, ...]) -> Callable[[ExitStack], None]:
    """(owner, function, changes …) of each function."""

    def enter(stack: ExitStack) -> None:
        for owner, name, *changes in parts:
            stack.enter_context(rewritten(owner, name, *changes))

    return enter


def replace(owner: Any, name: str, value: Any) -> Callable[[ExitStack], None]:
    def enter(stack: ExitStack) -> None:
        stack.enter_context(patch.object(owner, name, value))

    return enter


def _rule(rule: TriggerRule, decide: Callable[[int, int, int, int, int, int], int]) -> Callable[[ExitStack], None]:
    deciders = list(DECIDERS)
    deciders[RULE_CODES[rule]] = decide
    return replace(examination, "DECIDERS", tuple(deciders))


def _all_done_too_early(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    return RUN if s + k + f + u + r >= n - 1 else WAIT


def _success_counts_skips(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if f or u:
        return TaskState.UPSTREAM_FAILED.code
    return RUN if s + k + r >= n else WAIT


def _writes_without_a_guard(stack: ExitStack) -> None:
    any_value = "AND coalesce(?, 0) >= 0"
    for name, guards in (
        ("_MOVE_RUN", "AND revision = ? AND journal_seq = ? AND epoch <= ?"),
        ("_WRITE_TASK", "AND state = ? AND fence = ?"),
    ):
        statement: str = getattr(run_changes, name)
        assert guards in statement
        unguarded = statement.replace(guards, " ".join([any_value] * guards.count("?")))
        stack.enter_context(patch.object(run_changes, name, unguarded))

    def append(write: RunWrite, store: RunOperations) -> RunWrite:
        """The same part of a run, with its entries behind those of the journal as it stands."""
        row = store.engine.row("SELECT journal_seq FROM dag_run WHERE id = ?", (write.run,))
        changed = copy.copy(write)
        changed.journal_seq = write.journal_seq if row is None else row[0]
        return changed

    stack.enter_context(patch.object(runs, "append", append, create=True))
    stack.enter_context(
        rewritten(RunOperations, "commit", ("changes_of(write, batch.epoch)", "changes_of(append(write, self), batch.epoch)"))
    )


_ATTEMPT = "event.fence != self.fence[slot] or code not in _LIVE"

_NO_SUCCESS = "state is not RunState.SUCCESS"

MUTANTS = [
    # --- attempts ---------------------------------------------------------------------------------------------------
    Mutant(
        "fence not bumped at dispatch",
        "two attempts share an identity [AIRFLOW-5071, #10790]",
        rewrite((RunMachine, "_admitted", ("new_fence=True", "new_fence=False"))),
        0,
    ),
    Mutant(
        "fence not bumped by clear",
        "what was cleared can still be overwritten by its old attempt [#57618]",
        rewrite(
            (EditOperations, "clear", ("(_NONE, fence + 1)", "(_NONE, fence)")),
        ),
        2,
    ),
    Mutant(
        "reports count under any fence",
        "the end of attempt k ends attempt k+1 [AIRFLOW-5071, #8622, #39717]",
        rewrite((RunMachine, "_attempt_ended", (_ATTEMPT, "code not in _LIVE"))),
        41,
    ),
    Mutant(
        "vanished counts under any fence",
        "an old attempt's loss takes the new one away [#51969]",
        rewrite((RunMachine, "_attempt_vanished", ("event.fence != self.fence[slot] or ", ""))),
        3,
    ),
    Mutant(
        "nonce not checked",
        "the same order delivered twice runs twice [celery redelivery, #4976]",
        rewrite((AttemptHandler, "start", ("known.nonce == start.nonce and ", ""))),
        448,
    ),
    Mutant(
        "any process reports under the fence",
        "a second process that was refused ends the attempt of the first [#4976, #57618]",
        replace(ActiveRun, "accepts_report_from", lambda self, slot, fence, nonce, host: True),
        0,
    ),
    Mutant(
        "a worker host answers for another process of the attempt",
        "whether it holds the attempt is looked at, and not whose",
        rewrite(
            (
                AttemptHandler,
                "vanished",
                ("not active_run.accepts_report_from(slot, event.fence, event.nonce, event.host)", "False"),
            )
        ),
        1,
    ),
    Mutant(
        "what had started and was lost is repeated",
        "a task without retries is carried out twice",
        rewrite((RunMachine, "_lost", ("and not self.repeats_lost(slot)", "and False"))),
        0,
    ),
    Mutant(
        "nonce forgotten by a restart",
        "a healthy task is refused when it asks again [#63183, #17507]",
        rewrite((ActiveRun, "restore", ("for attempt in snapshot.live:", "for attempt in ():"))),
        0,
    ),
    Mutant(
        "answers come before the commit",
        "user code runs although nothing was written [#58570]",
        rewrite(
            (
                AttemptHandler,
                "answer",
                (
                    "self._state.batch.after_commit(item.attempt[0], lambda: self._state.executor.answer(item.host, message))",
                    "self._state.executor.answer(item.host, message)",
                ),
            )
        ),
        0,
    ),
    Mutant(
        "orders go out before the commit",
        "an attempt is handed over that was never written [#58570, #35676]",
        rewrite(
            (
                Scheduler,
                "_dispatch",
                ("self.batch.workloads.append((active_run, slot))", "self.executor.submit([self.hosts.workload(run, slot)])"),
            )
        ),
        0,
    ),
    Mutant(
        "no second look at orders",
        "a lost order leaves its task queued for ever [#28943, #21225]",
        replace(HostRegistry, "resubmit_old", lambda self, older_than: 0),
        0,
    ),
    Mutant(
        "lost attempts are never asked for",
        "a dead worker's tasks stay running [#13542]",
        replace(LocalExecutor, "reconcile", lambda self, worker, attempts, complete=False: None),
        0,
    ),
    Mutant(
        "a registration speaks for all workers",
        "what one worker does not list is taken for lost, though another one runs it; each of both guards prevents this",
        rewrite(
            (HostRegistry, "_register", ("elif may_report_for(worker, self._worker_of(key)):", "else:")),
            (ActiveRun, "accepts_report_from", (" and may_report_for(worker_of(host), worker_of(holder.host))", "")),
        ),
        0,
    ),
    Mutant(
        "the next attempt does not wait for the former worker",
        "two processes of one task instance live on two workers",
        rewrite((LocalExecutor, "_offer", ("and self._is_left_on(former, workload)", "and False"))),
        0,
    ),
    Mutant(
        "what a gone worker had queued stays with it",
        "queued attempts wait for a worker that is away, though another one is idle",
        rewrite((LocalExecutor, "disconnect", ("del self._places[task]", "pass"))),
        0,
    ),
    Mutant(
        "a lost attempt is queued again for ever",
        "no limit of requeues [#69760]",
        rewrite((RunMachine, "_lost", ("if requeues > self.facts.requeue_limit:", "if False:"))),
        32,
    ),
    Mutant(
        "a crash is a success",
        "the exit code says nothing, so all was well [#60858, #65833]",
        rewrite(
            (
                WorkerHost,
                "_verdict_from_status",
                ("        Outcome.FAILED,\n        reason=reason", "        Outcome.SUCCESS,\n        reason=reason"),
            )
        ),
        0,
    ),
    Mutant(
        "two processes of one task instance",
        "the host does not wait for the end of the older one [#57618]",
        rewrite((WorkerHost, "_launch_pending", ("if older is not None:", "if False:"))),
        0,
    ),
    Mutant(
        "a late acceptance lets anybody begin",
        "an answer is taken without looking for whom it is",
        replace(Attempt, "_is_meant", lambda self, answer: True),
        41,
    ),
    Mutant(
        "clear forgets the living attempt",
        "cleared while it runs, and dispatched at once [#18304, #55045]",
        rewrite(
            (EditOperations, "clear", ("live = state in LIVE_CODES", "live = False")),
        ),
        0,
    ),
    Mutant(
        "an attempt that vanished does not end",
        "its row stays alive, and its start would be accepted again",
        rewrite((AttemptHandler, "vanished", ("if not any(isinstance(d, e.Refusal) for d in decisions):", "if False:"))),
        0,
    ),
    # --- the journal and the store ------------------------------------------------------------------------------------
    Mutant(
        "a step without its journal entry",
        "state and history drift apart",
        rewrite((ActiveRun, "add_move", ("self.journal.append(", "move.after is TaskState.RUNNING or self.journal.append("))),
        0,
    ),
    Mutant(
        "a superseded scheduler writes on",
        "epochs are not looked at [#57618 comment, #31198]",
        rewrite(
            (RunOperations, "_check_epoch", ("row[0] > epoch", "False")),
        ),
        0,
    ),
    Mutant(
        "memory is believed after a failed commit",
        "what was not written is built upon [#58570]",
        replace(Scheduler, "record_failure", lambda self, why: None),
        0,
    ),
    Mutant(
        "writes without a guard",
        "UPDATE by key only: whoever comes last wins [#57618, #59378]",
        _writes_without_a_guard,
        42,
    ),
    Mutant(
        "XComs of attempts that do not count",
        "a cleared attempt leaves its value behind",
        rewrite((AttemptHandler, "report", ("report.xcoms if counts else ()", "report.xcoms"))),
        17,
    ),
    Mutant(
        "version numbers come twice",
        "another definition under a number that schedulers keep [#54627]",
        replace(RetentionOperations, "_keep_highest_number", lambda self, key, table: None),
        170,
    ),
    Mutant(
        "a DAG is deleted while it runs",
        "rows go under a living attempt [#71540]",
        rewrite((RetentionOperations, "delete_dag", ("if live:", "if False:"))),
        0,
    ),
    # --- limits -------------------------------------------------------------------------------------------------------
    Mutant(
        "slots released twice",
        "a limit is given out again while it is held [#15399]",
        rewrite((Admission, "release", ("self._held.pop((run, slot), ())", "self._held.get((run, slot), ())"))),
        0,
    ),
    Mutant(
        "slots never released after a loss",
        "an attempt that was lost keeps its place [#71540]",
        rewrite(
            (
                Scheduler,
                "_moved",
                (
                    "move.before in OCCUPYING and move.after not in OCCUPYING",
                    "move.before in OCCUPYING and move.after in FINISHED",
                ),
            )
        ),
        0,
    ),
    Mutant(
        "pool slots count as one",
        "weights are ignored [#15399, AIRFLOW-41]",
        rewrite((ActiveRun, "needs", ("task.pool_slots", "1"))),
        0,
    ),
    Mutant(
        "queued attempts hold nothing after a restart",
        "queued does not count [#1057, #1431]",
        rewrite((ActiveRun, "occupying", ("if code in _OCCUPYING", "if code == TaskState.RUNNING.code"))),
        0,
    ),
    Mutant(
        "max_active_runs does not hold",
        "a way of creating runs that is not checked [#1442, #9975]",
        replace(DagEntry, "is_full", False),
        0,
    ),
    Mutant(
        "max_active_tis_per_dag does not hold",
        "counted for each run alone",
        rewrite(
            (ActiveRun, "needs", ('(f"dag_task:{task.task_id}", row.dag_id, 0)', '(f"dag_task:{task.task_id}", row.id, 0)')),
            (
                ActiveRun,
                "limits",
                ('(f"dag_task:{task.task_id}", self.row.dag_id, 0)', '(f"dag_task:{task.task_id}", self.row.id, 0)'),
            ),
        ),
        0,
    ),
    Mutant(
        "a paused DAG goes on",
        "its tasks are admitted",
        rewrite((DagRegistry, "_set_paused", ("UNLIMITED if not entry.plan.is_paused else 0", "UNLIMITED"))),
        0,
    ),
    # --- dependencies ---------------------------------------------------------------------------------------------------
    Mutant(
        "all_done is done one too early",
        "a task begins beside the last one before it",
        _rule(TriggerRule.ALL_DONE, _all_done_too_early),
        0,
    ),
    Mutant(
        "all_success counts skips",
        "a skipped upstream task is a success",
        _rule(TriggerRule.ALL_SUCCESS, _success_counts_skips),
        0,
    ),
    Mutant(
        "setups do not hold",
        "work begins although its setup failed [#29332]",
        replace(setups, "decide", lambda machine, slot, verdict: verdict),
        0,
    ),
    Mutant(
        "branches are forgotten",
        "what was not chosen runs",
        replace(branch_memory, "skips", lambda machine, slot, task: False),
        100,
    ),
    Mutant(
        "a branch skips what runs",
        "a running task is taken away [#59378, #63266]",
        rewrite((bulk_end, "_end_one", ("if code not in (RUNNING, SUCCESS, FAILED", "if code not in (SUCCESS, FAILED"))),
        250,
    ),
    Mutant("the past does not hold", "depends_on_past is ignored", replace(past, "allows", lambda machine, task: True), 0),
    Mutant(
        "the past is never told",
        "a run waits for good news that does not come [#29524, #18304]",
        rewrite(
            (Scheduler, "_moved", ("if move.after in FINISHED or move.before in FINISHED:", "if False:")),
            (RunRegistry, "_find_previous_run", ("active_run.topology.has_past", "False")),
        ),
        8,
    ),
    Mutant(
        "newer runs keep their places",
        "depends_on_past and max_active_runs wait for each other [#29524]",
        replace(RunSlots, "run_to_requeue", lambda self, entry, now: None),
        8,
    ),
    Mutant(
        "a run begins before the one that it looks back at",
        "depends_on_past and max_active_runs take turns for ever [#29524]",
        replace(RunSlots, "_may_wait", lambda self, entry, row: False),
        1219,
    ),
    Mutant(
        "old news counts",
        "a task begins on what was said before its past was cleared [#18304]",
        rewrite(
            (PreviousRunTracker, "_update", ("active_run.machine.block_by_past(slot)", "pass")),
            (PreviousRunTracker, "is_current", ("return self._verdicts", "return True or self._verdicts")),
        ),
        993,
    ),
    Mutant(
        "map indexes begin at one",
        "instances are not 0 to n-1 [#25681]",
        rewrite((ActiveRun, "add_expanded", ("range(expanded.first_index, ", "range(expanded.first_index + 1, 1 + "))),
        0,
    ),
    Mutant(
        "nobody looks for queued runs that are gone",
        "runs wait behind one that ended long ago",
        rewrite(
            (RunRegistry, "compare_with_store", (" | {run for entry in state.dags.values() for run in entry.waiting}", ""))
        ),
        141,
    ),
    # --- tasks that wait without a process --------------------------------------------------------------------------------
    Mutant(
        "the word of an old trigger ends a new wait",
        "what a trigger says counts under any fence",
        rewrite(
            (
                DeferralManager,
                "apply",
                ("row.fence != fence or", "(row.fence != fence and isinstance(item, WaitDue)) or"),
            )
        ),
        522,
    ),
    Mutant(
        "a deferred one keeps its slot",
        "it counts as long as it waits",
        rewrite(
            (
                Scheduler,
                "_moved",
                (
                    "move.before in OCCUPYING and move.after not in OCCUPYING",
                    "move.before in OCCUPYING and move.after not in OCCUPYING and move.after is not TaskState.DEFERRED",
                ),
            )
        ),
        4,
    ),
    Mutant(
        "waits of a run that is built anew keep their pool",
        "slots of a pool that counts what waits are lost by a clear or a mark",
        rewrite((RunRegistry, "forget", (", *active_run.waits):", "):"))),
        141,
    ),
    Mutant(
        "the clock of a wait is forgotten by a restart",
        "its moment or its timeout never comes",
        rewrite(
            (
                WaitIndex,
                "adopt",
                (
                    "            self.begin(active_run, row)",
                    "            timers, self._timers = self._timers, Timers()\n"
                    "            self.begin(active_run, row)\n"
                    "            self._timers = timers",
                ),
            )
        ),
        45,
    ),
    Mutant(
        "what a wait came to is forgotten by a restart",
        "the next attempt begins from the beginning",
        rewrite((ActiveRun, "restore", ("state not in WAIT_IS_KEPT", "state is not TaskState.DEFERRED"))),
        10,
    ),
    Mutant(
        "a wait costs a try",
        "going on counts as trying again",
        rewrite(
            (
                RunMachine,
                "_wait_over",
                ("elif event.outcome is None:\n", "elif event.outcome is None:\n        self.tries[slot] += 1\n"),
            )
        ),
        4,
    ),
    Mutant(
        "triggers are begun once",
        "those of a triggerer that died are nobody's",
        rewrite((TriggerManager, "_on_started", ("if waiting:", "if waiting and self._deaths == 0:"))),
        10,
    ),
    Mutant(
        "moments come early",
        "what is to come in a minute is over now",
        rewrite(
            (deferral_manager, "end_by_clock", ("deferral.wait.at <= now", "deferral.wait.at <= now + 60_000_000")),
            (wait_index, "due_at", ("[deferral.wait.at]", "[deferral.wait.at - 60_000_000]")),
        ),
        4,
    ),
    # --- runs, tries and time -------------------------------------------------------------------------------------------
    Mutant(
        "a run ends with one task to go",
        "success though not all is over [#15439]",
        rewrite((run_verdict, "decide", ("if run.unfinished:", "if run.unfinished > 1:"))),
        0,
    ),
    Mutant(
        "failed leaves do not count",
        "a success though a leaf has failed [#30929]",
        rewrite((run_verdict, "decide", ("if state[slot] in _BAD:", "if False:"))),
        0,
    ),
    Mutant(
        "a reschedule costs a try",
        "every call of a sensor begins another try",
        rewrite((RunMachine, "_rescheduled", ("self.resume.add(slot)", "pass"))),
        0,
    ),
    Mutant(
        "one try too many",
        "retries are counted wrongly",
        rewrite(
            (
                RunMachine,
                "_failed",
                ("if self.tries[slot] > self.retries(slot):", "if self.tries[slot] > self.retries(slot) + 1:"),
            )
        ),
        0,
    ),
    Mutant(
        "timers are lost",
        "a retry never comes due",
        rewrite((Scheduler, "take", ("elif isinstance(decision, e.Timer):", "elif False:"))),
        0,
    ),
    Mutant(
        "retries come early",
        "what is due later runs now",
        rewrite(
            (RunMachine, "_wake", ("if due > at:", "if False:")),
            (examination, "examine", ("(code != NONE and run.due.get(slot, NEVER) > at)", "False")),
        ),
        10,
    ),
    Mutant(
        "runs before their time",
        "a run of the future is made [#70089]",
        rewrite((dag_registry, "take_due", ("times.run_after > now", "times.run_after > now + 3_600_000_000"))),
        0,
    ),
    Mutant(
        "every second tick is missed",
        "the schedule skips without a record [#66791]",
        rewrite(
            (
                dag_registry,
                "take_due",
                (
                    "    plan_next(entry, now)\n",
                    "    plan_next(entry, now)\n"
                    "    if entry.next is not None:\n"
                    "        entry.plan = entry.plan._replace(last=times_of(entry.next))\n"
                    "        plan_next(entry, now)\n",
                ),
            )
        ),
        0,
    ),
    Mutant(
        "running runs keep their version",
        "a task that was added to the DAG never comes, one that was taken out fails",
        rewrite((RunRegistry, "current_version", ("entry.plan.version", "row.version"))),
        3,
    ),
    Mutant(
        "removed tasks stay",
        "what is not in the DAG any more is still scheduled",
        replace(integrity, "_remove", lambda machine, slot, at: None),
        4,
    ),
    # --- what people are told ---------------------------------------------------------------------------------------
    Mutant(
        "why forgets the pool",
        "a task waits for a pool, and nobody is told",
        rewrite(
            (explain, "limits", ("elif max(0, capacity - used) < amount:", "elif kind != 'pool' and capacity - used < amount:"))
        ),
        0,
    ),
    Mutant(
        "why names a limit that is not reached",
        "a run is said to wait for a place while there is one",
        rewrite((why_run, "_run_slots", ("if not entry.is_full:", "if not entry.running:"))),
        9,
    ),
    Mutant(
        "why forgets the run before",
        "a queued run waits for the one that it looks back at, and nobody is told",
        replace(RunSlots, "must_start_before", lambda self, entry, row, now: None),
        8,
    ),
    # --- callbacks ------------------------------------------------------------------------------------------------------
    Mutant(
        "a callback is acknowledged before it was called",
        "it is lost with its host",
        rewrite(
            (
                CallbackDispatcher,
                "_send_due",
                ("self._senders[worker](order)", "self._senders[worker](order), self._store.delete_outbox_item(item.id)"),
            )
        ),
        4,
    ),
    Mutant(
        "a callback that failed is acknowledged",
        "nobody tries it again",
        rewrite((CallbackDispatcher, "_write_result", ("if message.ok:", "if True:"))),
        4,
    ),
    Mutant(
        "a post is forgotten when its host goes",
        "the next host is not handed what the last one had",
        rewrite(
            (CallbackDispatcher, "attach", ("del self._out[callback_id]", "pass")),
            (CallbackDispatcher, "compare_with_store", ("del self._out[callback_id]", "pass")),
        ),
        15,
    ),
    Mutant(
        "posts are not written with their step",
        "a crash behind the commit loses a callback",
        rewrite(
            (
                Scheduler,
                "take",
                (
                    "active_run.callback_requests += requests.of_run(active_run, decision, self.state.listened)",
                    "requests.of_run(active_run, decision, self.state.listened)",
                ),
            )
        ),
        4,
    ),
    Mutant(
        "a callback that hangs is not ended",
        "the few that may be called at a time hang, and nothing is called any more",
        rewrite((Attempt, "_ask_start", ("if not self.started:", "if True:"))),
        11,
    ),
    Mutant(
        "the old word of a try counts",
        "what failed before somebody had it tried again uses up its new tries",
        rewrite((CallbackDispatcher, "_write_result", ("(item.tries, item.due_at) == (message.tries, message.due)", "True"))),
        14,
    ),
    Mutant(
        "the old word of a try counts for what is tried anew",
        "the first try after somebody asked for it is taken for the very first one",
        rewrite(
            (
                CallbackDispatcher,
                "_write_result",
                ("(item.tries, item.due_at) == (message.tries, message.due)", "item.tries == message.tries"),
            )
        ),
        631,
    ),
    Mutant(
        "a callback that is tried again has its last try",
        "it is parked at once when it fails",
        rewrite(
            (OutboxOperations, "retry_outbox_item", ("SET tries = 0, due_at", "SET due_at")),
        ),
        22,
    ),
    Mutant(
        "who gives up one callback gives up all that are parked",
        "what was said of one is done to others",
        rewrite((callback_commands, "drop_callbacks", ("context.store, command.ids", "context.store, None"))),
        25,
    ),
    # --- deadlines ------------------------------------------------------------------------------------------------------
    Mutant(
        "who succeeds too late was in time",
        "only the state counts, as it is when somebody looks",
        rewrite(
            (deadlines, "run_missed", ("state is not RunState.SUCCESS or ended_at is None or ended_at > due", _NO_SUCCESS))
        ),
        549,
    ),
    Mutant(
        "a skipped task is late",
        "what is not to run has an sla",
        replace(deadlines, "_DONE", frozenset({TaskState.SUCCESS})),
        16,
    ),
    Mutant(
        "a deadline goes before its miss is written",
        "a crash in between, and nobody is told",
        rewrite(
            (
                missed_deadlines,
                "record_missed",
                (
                    "            with store.transaction():",
                    "            store.delete_outbox_item(item.id)\n            with store.transaction():",
                ),
            )
        ),
        10,
    ),
    Mutant(
        "a miss that is known is told again",
        "a cleared run is late once more for the same moment",
        rewrite(
            (DeadlineOperations, "record_deadline_miss", ("found == 1", "True")),
        ),
        75,
    ),
    Mutant(
        "runs by hand have an sla",
        "they are late for a schedule that did not make them",
        rewrite((deadlines, "of_run", ("if dates.run_type is RunType.SCHEDULED:", "if True:"))),
        10,
    ),
    Mutant(
        "a deadline can be given up as a callback",
        "numbers of the outbox are not looked at",
        rewrite((callback_commands, "_chosen", (" or item.kind == DEADLINE", ""))),
        52,
    ),
    # --- assets ---------------------------------------------------------------------------------------------------------
    Mutant(
        "an event is consumed twice",
        "what a run has consumed still waits for the next one",
        rewrite(
            (AssetOperations, "create_asset_run", ("(CONSUMED, row.id,", "(0, row.id,")),
        ),
        14,
    ),
    Mutant(
        "what comes while a run is held back is dropped",
        "a run consumes the latest event of an asset only",
        rewrite(
            (AssetOperations, "create_asset_run", ('AND event <= ?",', 'AND event = ?",')),
        ),
        14,
    ),
    Mutant(
        "a cleared attempt updates its assets",
        "an event without a success",
        rewrite((AttemptHandler, "report", ("report.assets and counts and", "report.assets and"))),
        75,
    ),
    Mutant(
        "events of a paused time count",
        "unpausing begins a history",
        rewrite(
            (AssetOperations, "_deliver", ("0 if paused else 1", "1")),
        ),
        42,
    ),
    Mutant(
        "a DAG is not looked at when its assets are updated",
        "its run is made by chance or never",
        replace(AssetIndex, "mark_dirty", lambda self, plan: None),
        14,
    ),
    Mutant(
        "a command that is said again is carried out again",
        "whoever gets no answer asks once more, and the asset is updated twice",
        rewrite((Commands, "run", ("if known is not None:", "if False:"))),
        10,
    ),
    Mutant(
        "what waits for another DAG is dismissed, too",
        "dismissing what one DAG waits with takes it from all",
        rewrite((asset_commands, "drop_queued_events", ("drop_waiting_events(dag_id, ", "drop_waiting_events(None, "))),
        26,
    ),
    Mutant(
        "what was consumed is dismissed",
        "what a run has consumed is said to be dropped",
        rewrite(
            (AssetOperations, "drop_waiting_events", ('"outcome = 0"', '"outcome <> 2"')),
        ),
        26,
    ),
    Mutant(
        "who waits for an alias is told only of what comes under it",
        "the next update of the same asset, by its own name, is kept from them",
        rewrite(
            (AssetOperations, "_deliver", ("asset.uri, asset.id),", "asset.uri, asset.id if aliased else 0),")),
        ),
        28,
    ),
    Mutant(
        "what came under an alias is not counted",
        "a condition that names an alias never holds",
        rewrite((asset_index, "counted", ("one.aliases)", "frozenset())"))),
        28,
    ),
    Mutant(
        "a new version drops what waits under an alias",
        "reading a file anew loses events",
        rewrite(
            (AssetOperations, "_supersede_unnamed", ("waiting.asset.uri, waiting.aliases)", "waiting.asset.uri, frozenset())")),
        ),
        157,
    ),
]


def hunt(mutant: Mutant, budget: int, *, machines: bool = False) -> Simulated | None:
    """The first seed that finds it, within a budget, and finds nothing without it; None: it lives."""
    for seed in (mutant.seed, *range(budget)):
        with ExitStack() as stack:
            mutant.patches(stack)
            done = simulate(seed, strict=False, machines=machines)
        if done.found and not simulate(seed, strict=False, machines=machines).found:
            return done
    return None
