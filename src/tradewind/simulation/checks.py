"""Invariants that must hold after every commit. No code is shared with the kernel: all rules are implemented a second time.

The numbers are those of the list in docs/explanation/simulation.md. The cost of a check depends only on what a commit changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tradewind.model.definition import CronSchedule, DagDefinition, DeltaSchedule, TaskDefinition
from tradewind.model.moments import MINUTE
from tradewind.simulation.shadow import Change, Run, Shadow, Step, Task, Try
from tradewind.simulation.timeline import START
from tradewind.simulation.wait_checks import WaitChecks
from tradewind.wire.messages import AttemptKey, Report

# repeated here on purpose: codes are stored, so they never change
NONE, SCHEDULED, QUEUED, RUNNING, SUCCESS, FAILED, SKIPPED, UPSTREAM_FAILED, REMOVED = range(9)
RETRY, RESCHEDULE, DEFERRED, AWAITING, RESTARTING = range(9, 14)
NAMES = (
    *("none", "scheduled", "queued", "running", "success", "failed", "skipped", "upstream_failed", "removed"),
    *("up_for_retry", "up_for_reschedule", "deferred", "awaiting_input", "restarting"),
)
R_QUEUED, R_RUNNING, R_SUCCESS, R_FAILED = range(4)

OVER = frozenset({SUCCESS, FAILED, SKIPPED, UPSTREAM_FAILED, REMOVED})
HOLDING = frozenset({QUEUED, RUNNING, RESTARTING})

_TAKEN_AWAY = {SUCCESS, FAILED, SKIPPED}
_STEPS: dict[int, set[int]] = {
    NONE: {SCHEDULED, DEFERRED, SUCCESS, SKIPPED, UPSTREAM_FAILED, REMOVED},
    SCHEDULED: {QUEUED, SKIPPED, NONE, REMOVED, *_TAKEN_AWAY},
    QUEUED: {RUNNING, SCHEDULED, RETRY, FAILED, SKIPPED, RESTARTING, REMOVED, *_TAKEN_AWAY},
    RUNNING: {SUCCESS, FAILED, SKIPPED, RETRY, RESCHEDULE, SCHEDULED, RESTARTING, DEFERRED, REMOVED},
    RETRY: {SCHEDULED, DEFERRED, SKIPPED, UPSTREAM_FAILED, NONE, REMOVED, *_TAKEN_AWAY},
    RESCHEDULE: {SCHEDULED, DEFERRED, SKIPPED, UPSTREAM_FAILED, NONE, REMOVED, *_TAKEN_AWAY},
    DEFERRED: {SCHEDULED, RETRY, NONE, REMOVED, *_TAKEN_AWAY},
    RESTARTING: {NONE, REMOVED, *_TAKEN_AWAY},
    SUCCESS: {NONE, FAILED, SKIPPED, REMOVED},
    FAILED: {NONE, SUCCESS, SKIPPED, REMOVED},
    SKIPPED: {NONE, SUCCESS, FAILED, REMOVED},
    UPSTREAM_FAILED: {NONE, SUCCESS, FAILED, SKIPPED, REMOVED},
    REMOVED: {NONE},
}
_RUN_STEPS = {
    R_QUEUED: {R_RUNNING, R_SUCCESS, R_FAILED},
    R_RUNNING: {R_SUCCESS, R_FAILED, R_QUEUED},
    R_SUCCESS: {R_QUEUED, R_FAILED},
    R_FAILED: {R_QUEUED, R_SUCCESS},
}

Limit = tuple[Any, ...]
FOLLOWS_WITHIN = 30 * 60 * 1_000_000
"""Microseconds within which a run must follow a newer version: at once, or after a lost message at the next safety net check."""


class Shape:
    """The data of one version of a DAG for the checks."""

    def __init__(self, definition: DagDefinition) -> None:
        self.definition = definition
        self.tasks: dict[str, TaskDefinition] = {task.task_id: task for task in definition.tasks}
        self.below: dict[str, list[str]] = {name: [] for name in self.tasks}
        for task in definition.tasks:
            for up in task.upstream:
                self.below[up].append(task.task_id)
        self.leaves = [name for name, below in self.below.items() if self._decides(name, below)]
        self.setups = {name: self._setups_over(name) for name in self.tasks}

    def _decides(self, name: str, below: list[str]) -> bool:
        task = self.tasks[name]
        if task.is_teardown:
            return task.on_failure_fail_dagrun and not below
        return all(self.tasks[one].is_teardown and not self.tasks[one].on_failure_fail_dagrun for one in below)

    def _setups_over(self, name: str) -> list[str]:
        seen: set[str] = set()
        stack = list(self.tasks[name].upstream)
        while stack:
            one = stack.pop()
            if one not in seen:
                seen.add(one)
                stack += self.tasks[one].upstream
        return [] if self.tasks[name].is_teardown else [one for one in seen if self.tasks[one].is_setup]

    def has(self, task: Task) -> bool:
        """Whether this version has the task in the form (mapped or not) of this instance."""
        one = self.tasks.get(task.task_id)
        if one is None or self.definition.groups:
            return one is not None
        return one.mapped or task.map_index < 0


def rule_holds(rule: str, states: list[int]) -> bool:
    """Whether a task with this trigger rule may run when its direct upstream task instances have these states."""
    if not states or rule == "always":
        return True
    over = all(state in OVER for state in states)
    bad = any(state in (FAILED, UPSTREAM_FAILED) for state in states)
    good, skipped = SUCCESS in states, SKIPPED in states
    present = [state for state in states if state != REMOVED]
    match rule:
        case "all_success":
            return all(state == SUCCESS for state in present)
        case "all_failed":
            return all(state in (FAILED, UPSTREAM_FAILED) for state in present)
        case "all_done" | "all_done_setup_success":
            return over
        case "all_done_min_one_success":
            return over and good and not skipped
        case "one_success":
            return good
        case "one_failed":
            return bad
        case "one_done":
            return good or FAILED in states
        case "none_failed":
            return over and not bad
        case "none_failed_min_one_success":
            return over and not bad and good
        case "none_skipped":
            return over and not skipped
        case "all_skipped":
            return all(state == SKIPPED for state in states)
    raise AssertionError(rule)


class Checks:
    """See the module.

    Args:
        violated: called with the name of a violated rule and a sentence.
        sometimes: called with the name of a situation that was reached.
    """

    def __init__(self, violated: Callable[[str, str], None], sometimes: Callable[[str], None]) -> None:
        self.shadow = Shadow()
        self.violated = violated
        self.sometimes = sometimes
        self.parallelism = 0
        self.host_slots = 0
        self.now: Callable[[], int] = lambda: 0
        """The wall clock of the scheduler."""
        self.batch_epoch: int | None = None
        """Epoch of the batch in this commit."""
        self.batch_runs: set[int] = set()
        """Runs that the batch writes. If the guard of a run failed, its freed slots may already be given to others: its
        attempt has ended, but its row does not show this yet."""
        self.said: dict[AttemptKey, Report] = {}
        """Reports of task processes."""
        self.nonces: dict[AttemptKey, str] = {}
        """Accepted nonces. Never removed."""
        self.by_hand: set[tuple[int, int]] = set()
        """(run, slot) that a user requested to run now."""
        self.missed_message = False
        """A message about a command to the scheduler was lost: until its next check, it may use outdated states of earlier runs."""
        self.unannounced_runs: set[int] = set()
        """Runs whose creation was not announced to the scheduler, until it starts them."""
        self._once_good: set[tuple[int, int]] = set()
        """(run, slot) that was ever a success or skipped."""
        self.state_set_by_user: set[int] = set()
        """Runs whose state was set by a user."""
        self.lives: Callable[[AttemptKey], bool] = lambda key: False
        """Returns whether the process of this attempt runs."""
        self.requeue_limit = 0
        self.dispatched: set[AttemptKey] = set()
        """Attempts with a committed dispatch. Never removed."""
        self.deleted: set[str] = set()
        """DAGs that were ever deleted."""
        self.jumped = False
        """The clock of the scheduler was changed: times before and after the change cannot be compared."""
        self._shapes: dict[int, Shape] = {}
        self._tries: dict[tuple[int, int], int] = {}
        self._version_since: dict[str, int] = {}
        """The time since which each DAG has its version."""
        self.begun_version: dict[AttemptKey, int] = {}
        """The version of the run at the dispatch of each attempt: the task process knows the callbacks of this version."""
        self._begun_under: dict[tuple[int, int], TaskDefinition] = {}
        """Definitions of the tasks at the start of their attempts and waits."""
        self._held: dict[tuple[int, int], list[tuple[Limit, int]]] = {}
        self._used: dict[Limit, int] = {}
        self._running: dict[tuple[str, bool], set[int]] = {}
        self._dates: dict[tuple[str, int], int] = {}
        self._begun: list[tuple[int, Run, set[int]]] = []
        """Runs that start in this commit."""
        self.new_runs: set[int] = set()
        """Runs that are created in this commit."""
        self._choices: dict[tuple[int, int], tuple[int, tuple[str, ...]]] = {}
        """(run, slot) → the fence of an attempt that succeeded, and the tasks that its branch chose."""
        self._unasked: list[tuple[tuple[int, int], list[tuple[Limit, int]]]] = []
        """Slots of waits that start in this commit without admission: they count from the next commit on."""
        self.waits = WaitChecks(self.shadow, self.said, self.task_of, violated, sometimes, self.where)

    # --- commits ---------------------------------------------------------------------------------------------

    def committed(self, changes: list[Change]) -> None:
        """Check a commit."""
        shadow = self.shadow
        superseded = self.batch_epoch is not None and shadow.epoch > self.batch_epoch > 0
        if superseded and any(kind in ("task", "run", "journal") for kind, *_ in changes):
            self.violated("30 epochs", f"epoch {self.batch_epoch} has written after epoch {shadow.epoch} started")
        steps: dict[int, list[tuple[int, Step]]] = {}
        tasks: dict[tuple[int, int], Task | None] = {}
        done = shadow.absorb(changes)
        for kind, key, before, row in done:
            if kind == "journal":
                if row is not None:
                    steps.setdefault(key[0], []).append((key[1], row))
            elif kind == "task":
                tasks[key] = before
            elif kind == "attempt":
                self._attempt(key, before, row)
            elif kind == "dag" and row is not None and (before is None or before.version != row.version):
                self._version_since[key[0]] = self.now()
        grown: set[Limit] = set()
        self.new_runs = {key[0] for kind, key, before, row in done if kind == "run" and before is None}
        self.unannounced_runs -= {
            key[0] for kind, key, _, row in done if kind == "run" and row is not None and row.state == R_RUNNING
        }
        for run, entries in steps.items():
            self._journal(run, sorted(entries), tasks, grown)
        for kind, key, before, row in done:
            if kind == "run":
                self._run(key[0], before, row)
            elif kind == "xcom":
                self._xcom(key, row, steps)
        for begun in self._begun:
            self._runs_allowed(*begun)
        self._begun.clear()
        for (run, slot), before_task in tasks.items():
            self._row(run, slot, before_task)
        if self.batch_runs <= {
            key[0] for kind, key, *_ in done if kind == "run"
        }:  # else a run was not written; see `batch_runs`
            for limit in grown:
                self._limit(limit)
        if any(kind == "pool" for kind, *_ in done):
            self._count_waits_again()
        for key, limits in self._unasked:
            self._take(key, limits)
        self._unasked.clear()
        self.waits.update(done)

    def shape(self, version: int) -> Shape:
        found = self._shapes.get(version)
        if found is None:
            found = self._shapes[version] = Shape(self.shadow.versions[version])
        return found

    def task_of(self, row: Run, task: Task) -> TaskDefinition:
        """Return the definition of a task instance: in the version of the run, otherwise in the newest version with this task."""
        found = self.shape(row.version).tasks.get(task.task_id)
        if found is not None:
            return found
        versions = sorted((v for v, one in self.shadow.versions.items() if one.dag_id == row.dag_id), reverse=True)
        known = (self.shape(version).tasks.get(task.task_id) for version in versions)
        return next((one for one in known if one is not None), TaskDefinition(task.task_id))

    def _begun_as(self, run: int, slot: int) -> TaskDefinition:
        """Return the definition at the start of its attempt or wait: the limits of this definition apply."""
        return self._begun_under.get((run, slot)) or self.task_of(self.shadow.runs[run], self.shadow.tasks[run][slot])

    def _follows_the_dag(self, run: int, before: Run, row: Run) -> None:
        """56: a run on a newer version has a row for each task of the version; other tasks are removed or still run."""
        if before.version == row.version:
            return
        self.sometimes("a run followed a newer version of its DAG")
        shape, tasks = self.shape(row.version), self.shadow.tasks.get(run, {})
        if shape.definition.dag_id != row.dag_id:
            self.violated("56 version", f"run {run} of {row.dag_id} follows a version of {shape.definition.dag_id}")
        missing = shape.tasks.keys() - {task.task_id for task in tasks.values()}
        if missing:
            self.violated("56 version", f"run {run} follows version {row.version}, but has no row of {sorted(missing)}")
        for slot, task in tasks.items():
            if not shape.has(task) and task.state not in (REMOVED, *HOLDING):
                self.violated("56 version", f"{self.where(run, slot)} is {NAMES[task.state]}, but its version has no such task")

    def is_replaced(self, run: int, slot: int, task: Task) -> bool:
        """Whether this is an instance without map index of a task that is mapped (again), with instances in other slots (seed 17).

        Those instances may still be removed: they come back with the steps that follow (seed 7268).
        """
        dag = self.shadow.dags.get(self.shadow.runs[run].dag_id)
        now = self.shape(dag.version).tasks.get(task.task_id) if dag is not None else None
        return (now is not None and now.mapped and task.map_index < 0) and any(
            other != slot and one.task_id == task.task_id and one.map_index >= 0
            for other, one in self.shadow.tasks.get(run, {}).items()
        )

    def _leaves_or_returns(self, run: int, row: Run, step: Step, task: Task | None) -> None:
        """56: a removed task is not in the newest version; a task that comes back is."""
        dag = self.shadow.dags.get(row.dag_id)
        if task is None or dag is None:
            return
        there = self.shape(dag.version).has(task)
        if (
            step.after == REMOVED
            and there
            and step.before not in (NONE, SCHEDULED, RETRY, RESCHEDULE)
            and not self.missed_message
            and not self.is_replaced(run, step.slot, task)
        ):
            self.violated("56 version", f"{self.where(run, step.slot)} is removed, but its DAG has the task: {step.cause}")
        if step.after == REMOVED and not there:
            self.sometimes(f"a task was taken out of its DAG while it was {NAMES[step.before]}")
        if step.before == REMOVED and step.after == NONE and "cleared" not in step.cause:
            self.sometimes("a task came back into its DAG")
            if not there and not self.missed_message:
                self.violated("56 version", f"{self.where(run, step.slot)} comes back, but its DAG does not have the task")

    def where(self, run: int, slot: int) -> str:
        row, task = self.shadow.runs.get(run), self.shadow.tasks.get(run, {}).get(slot)
        if row is None or task is None:
            return f"run {run} slot {slot}"
        index = f"[{task.map_index}]" if task.map_index >= 0 else ""
        return f"{row.dag_id}/{row.run_id} {task.task_id}{index} (run {run} slot {slot})"

    # --- the journal and the rows ----------------------------------------------------------------------------

    def _journal(
        self, run: int, entries: list[tuple[int, Step]], tasks: dict[tuple[int, int], Task | None], grown: set[Limit]
    ) -> None:
        shadow = self.shadow
        row = shadow.runs.get(run)
        if row is None:
            return
        fold = shadow.fold.setdefault(run, {})
        for seq, step in entries:
            expected = shadow.journal_seq.get(run, 0) + 1
            if seq != expected:
                self.violated("3 journal", f"run {run}: entry {seq} follows entry {expected - 1}")
            shadow.journal_seq[run] = seq
            state, fence = fold.get(step.slot, (NONE, 0))
            where = self.where(run, step.slot)
            if step.before != state:
                self.violated(
                    "3 journal", f"{where}: a step from {NAMES[step.before]}, but it was {NAMES[state]}: {step.cause}"
                )
            marked = by_mark(step) and step.after in _TAKEN_AWAY and step.before != REMOVED
            if step.after not in _STEPS.get(step.before, ()) and not marked:
                self.violated("3 steps", f"{where}: {NAMES[step.before]} → {NAMES[step.after]}: {step.cause}")
            self._fence(where, step, fence, row)
            fold[step.slot] = (step.after, step.fence)
            if step.after in (SUCCESS, SKIPPED):
                self._once_good.add((run, step.slot))
            self._slots(run, row, step, grown)
            before = tasks.get((run, step.slot))
            self._step(run, row, step, before if before is not None else shadow.tasks[run].get(step.slot))
        if row.journal_seq != shadow.journal_seq[run]:
            self.violated("3 journal", f"run {run}: its row says {row.journal_seq}, the journal {shadow.journal_seq[run]}")

    def _fence(self, where: str, step: Step, fence: int, row: Run) -> None:
        if step.after == QUEUED or (step.after == DEFERRED and step.before != RUNNING):
            if step.fence != fence + 1:
                self.violated("2 fence", f"{where}: dispatched under fence {step.fence} after {fence}")
        elif step.fence < fence:
            self.violated("2 fence", f"{where}: fence {step.fence} after {fence}")
        elif step.before in OVER and step.fence == fence:
            by_the_run = step.before == UPSTREAM_FAILED and step.after == SKIPPED  # fail_fast, or a branch that passes it over
            if not by_the_run:
                self.violated("4 terminal", f"{where}: left {NAMES[step.before]} under the same fence: {step.cause}")

    def _row(self, run: int, slot: int, before: Task | None) -> None:
        shadow = self.shadow
        row = shadow.tasks.get(run, {}).get(slot)
        if row is None or run not in shadow.runs:
            return
        state, fence = shadow.fold.get(run, {}).get(slot, (NONE, 0))
        if (row.state, row.fence) != (state, fence):
            self.violated(
                "3 fold",
                f"{self.where(run, slot)}: the row says {NAMES[row.state]} under {row.fence}, "
                f"the journal {NAMES[state]} under {fence}",
            )
        if self.requeue_limit and row.requeues > self.requeue_limit:
            self.violated("25 requeues", f"{self.where(run, slot)} was queued again {row.requeues} times")
        tries = self._tries.get((run, slot), 0)
        if row.tries != tries:
            self.violated("tries", f"{self.where(run, slot)}: try {row.tries}, but {tries} were begun")
        live = shadow.attempts.get((run, slot, row.fence))
        if row.state not in HOLDING and live is not None and live.ended_at is None:
            self.violated("14 attempts", f"{self.where(run, slot)} is {NAMES[row.state]}, but its attempt has not ended")
        if row.state in (RETRY, RESCHEDULE) and not row.due:
            self.violated("28 timers", f"{self.where(run, slot)} is {NAMES[row.state]} without a date")

    # --- state changes ---------------------------------------------------------------------------------------

    def _step(self, run: int, row: Run, step: Step, before: Task | None) -> None:
        slot, after = step.slot, step.after
        key = (run, slot)
        by_hand = key in self.by_hand and step.cause.startswith("run by ")
        if REMOVED in (after, step.before):
            self._leaves_or_returns(run, row, step, self.shadow.tasks[run].get(slot))
        if step.before == SCHEDULED and after == NONE and "changed before it began" in step.cause:
            self._tries[key] = self._tries.get(key, 1) - 1
        if after == SCHEDULED:
            if step.before in (NONE, RETRY):
                self._tries[key] = self._tries.get(key, 0) + 1
            due = before.due if before is not None and step.before in (RETRY, RESCHEDULE) else 0
            if step.at < due and not by_hand:
                self.violated("28 timers", f"{self.where(*key)}: woken {due - step.at} µs early")
            if step.before in (NONE, RETRY, RESCHEDULE) and not by_hand:
                self._dependencies(run, row, step)
            if step.before in (QUEUED, RUNNING):
                self.sometimes("an attempt was lost and queued again")
                if step.before == RUNNING:
                    self.sometimes("a started attempt was lost and repeated")
        elif after == QUEUED:
            self._dispatched(run, row, step)
        elif after == DEFERRED and step.before != RUNNING:
            if step.before != RESCHEDULE:
                self._tries[key] = self._tries.get(key, 0) + 1
            self._dependencies(run, row, step)
        elif after == RUNNING:
            attempt = self.shadow.attempts.get((run, slot, step.fence))
            now = self.shadow.tasks[run][slot]  # it may have ended in the same commit
            over = attempt is not None and attempt.ended_at is not None and now[:2] == (RUNNING, step.fence)
            if attempt is None or attempt.nonce is None or over:
                self.violated("8 start", f"{self.where(*key)} runs without a running, accepted attempt")
        elif after == SUCCESS and step.before in (NONE, RETRY) and not by_mark(step):  # an empty task, or one that became so
            self._tries[key] = self._tries.get(key, 0) + 1
            if not by_hand:
                self._dependencies(run, row, step)
        if step.before == RUNNING:
            self._verdict(run, row, step)
        self.waits.step(run, row, step)
        if step.before == RESTARTING:
            self.sometimes("a cleared attempt was stopped")

    def _verdict(self, run: int, row: Run, step: Step) -> None:
        """35: the state after a running attempt follows from its report, or from its loss."""
        report = self.said.get((run, step.slot, step.fence))
        outcome = report.outcome.value if report is not None else None
        where = self.where(run, step.slot)
        if by_mark(step):
            return
        if report is None and step.after in (RETRY, FAILED, SCHEDULED) and self.lives((run, step.slot, step.fence)):
            self.violated("55 lost", f"{where}: {step.cause}, but its process runs it")
        if step.after == SKIPPED and outcome != "skipped":
            definition = self.shape(row.version).definition
            if not definition.fail_fast and definition.dagrun_timeout is None:
                self.violated(
                    "19 skip", f"{where}: a running attempt is skipped, but its process reported {outcome}: {step.cause}"
                )
        if step.after == SUCCESS and outcome != "success":
            self.violated("35 verdict", f"{where}: success, but its process reported {outcome}")
        if step.after == RESCHEDULE and outcome != "reschedule":
            self.violated("35 verdict", f"{where}: up_for_reschedule, but its process reported {outcome}")
        task = self.shadow.tasks[run][step.slot]
        if step.after == RETRY and self._tries.get((run, step.slot), 0) > task.max_tries:
            self.violated("tries", f"{where}: another try after {task.tries} of {task.max_tries + 1}")
        if step.after == SUCCESS and report is not None and report.branch is not None:
            self._choices[run, step.slot] = (step.fence, report.branch.tasks)

    def _dependencies(self, run: int, row: Run, step: Step) -> None:
        """15: the trigger rule is met on committed states, setups have ended, no branch has skipped the task."""
        shadow = self.shadow
        me = shadow.tasks[run].get(step.slot)
        if me is None:
            return
        shape, fold = self.shape(row.version), shadow.fold[run]
        if me.task_id not in shape.tasks:
            self.violated("56 version", f"{self.where(run, step.slot)} begins, but its version has no such task: {step.cause}")
            return
        task = shape.tasks[me.task_id]
        wanted = set(task.upstream)
        needed = set(shape.setups[me.task_id])
        states: list[int] = []
        setups: dict[str, list[int]] = {}
        if wanted or needed:
            for slot, other in shadow.tasks[run].items():
                name = other.task_id
                if not shape.has(other):
                    continue  # an attempt of it may run on; nobody waits for that
                if name in wanted:
                    states.append(fold.get(slot, (NONE, 0))[0])
                if name in needed or (task.is_teardown and name in wanted and shape.tasks[name].is_setup):
                    setups.setdefault(name, []).append(fold.get(slot, (NONE, 0))[0])
        rule = task.trigger_rule.value
        if not rule_holds(rule, states):
            shown = ", ".join(sorted(NAMES[state] for state in states))
            self.violated("15 trigger rule", f"{self.where(run, step.slot)}: {rule} over {shown}: {step.cause}")
        if rule != "always":
            for name, found in setups.items():
                if name in needed and any(state != SUCCESS for state in found):
                    self.violated("15 setups", f"{self.where(run, step.slot)} begins, but its setup {name} is no success")
            if task.is_teardown and setups and not any(SUCCESS in found for found in setups.values()):
                self.violated("20 teardown", f"{self.where(run, step.slot)} begins without a setup that succeeded")
        if self.passed_over(run, me.task_id):
            self.violated("19 branch", f"{self.where(run, step.slot)} begins, but a branch has skipped it")
        if task.depends_on_past and row.logical_date is not None:
            self._past(run, row, step, task)

    def passed_over(self, run: int, task_id: str) -> bool:
        """Whether a valid branch decision did not choose this task."""
        row = self.shadow.runs.get(run)
        if row is None:
            return False
        shape, fold = self.shape(row.version), self.shadow.fold.get(run, {})
        for slot, task in self.shadow.tasks.get(run, {}).items():
            choice = self._choices.get((run, slot))
            if choice is None or task_id not in shape.below.get(task.task_id, ()):
                continue
            fence, chosen = choice
            stands = fold.get(slot, (NONE, 0)) == (SUCCESS, fence)
            if stands and task_id not in chosen and not _follows(shape, chosen, task_id):
                return True
        return False

    def _past(self, run: int, row: Run, step: Step, task: TaskDefinition) -> None:
        """16: the same task in the previous run is a success or skipped."""
        shadow = self.shadow
        catchup = self.shape(row.version).definition.catchup
        best: int | None = None
        for number, other in shadow.runs.items():
            date = other.logical_date
            if (number in self.new_runs or number in self.unannounced_runs) and number != run:
                continue  # the scheduler could not know about it
            if other.dag_id != row.dag_id or date is None or row.logical_date is None or date >= row.logical_date:
                continue
            if catchup and other.kind == "manual":
                continue
            if best is None or date > (shadow.runs[best].logical_date or 0):
                best = number
        if best is None:
            return
        mine = [
            SUCCESS
            if self.missed_message and (best, slot) in self._once_good
            else shadow.fold.get(best, {}).get(slot, (NONE, 0))[0]
            for slot, one in shadow.tasks[best].items()
            if one.task_id == task.task_id
        ]
        present = [state for state in mine if state != REMOVED]  # an empty list leaves no instance, and blocks no run
        if any(state not in (SUCCESS, SKIPPED) for state in present):
            self.violated("16 past", f"{self.where(run, step.slot)} begins before {task.task_id} of run {best} has ended")

    def _dispatched(self, run: int, row: Run, step: Step) -> None:
        """5: the previous attempt has ended. No task of a paused DAG or of a run that is not running is dispatched."""
        self.dispatched.add((run, step.slot, step.fence))
        dag = self.shadow.dags.get(row.dag_id)
        where = self.where(run, step.slot)
        if dag is not None and dag.is_paused:
            self.violated("pause", f"{where} is dispatched though its DAG is paused")
        old = dag is not None and dag.version != row.version and not self.jumped
        if old and self.now() - self._version_since.get(row.dag_id, 0) > FOLLOWS_WITHIN:
            self.violated("56 version", f"{where} is dispatched under version {row.version}, long after its DAG was changed")
        if row.state != R_RUNNING:
            self.violated("17 runs", f"{where} is dispatched in a run that is not running")
        fence = step.fence - 1
        while fence > 0:
            attempt = self.shadow.attempts.get((run, step.slot, fence))
            if attempt is not None:
                if attempt.ended_at is None:
                    self.violated("5 successor", f"{where}: dispatched before attempt {fence} has ended")
                break
            fence -= 1

    # --- limits ----------------------------------------------------------------------------------------------

    def _slots(self, run: int, row: Run, step: Step, grown: set[Limit]) -> None:
        held = step.after in HOLDING
        key = (run, step.slot)
        if step.after == QUEUED or (step.after == DEFERRED and step.before != RUNNING):
            self.begun_version[run, step.slot, step.fence] = row.version
            self._begun_under[key] = self.task_of(row, self.shadow.tasks[run][step.slot])
        if held and key not in self._held:
            task = self.shadow.tasks[run][step.slot]
            definition = self.task_of(row, task)
            limits: list[tuple[Limit, int]] = [
                (("all",), 1),
                (("pool", definition.pool), definition.pool_slots),
                (("run", run), 1),
            ]
            if definition.max_active_tis_per_dag is not None:
                limits.append((("dag task", row.dag_id, task.task_id), 1))
            if definition.max_active_tis_per_dagrun is not None:
                limits.append((("run task", run, task.task_id), 1))
            self._take(key, limits)
            grown.update(limit for limit, _ in limits)
        elif not held:
            for limit, amount in self._held.pop(key, ()):
                self._used[limit] -= amount
            self._unasked = [one for one in self._unasked if one[0] != key]
            limits = self.waits.holds(self._begun_as(run, step.slot)) if step.after == DEFERRED else []
            if limits and step.before != RUNNING:
                self._unasked.append((key, limits))
            elif limits:
                self._take(key, limits)

    def _count_waits_again(self) -> None:
        """Handle that a pool has started or stopped to count deferred task instances."""
        for run, fold in self.shadow.fold.items():
            for slot in [slot for slot, (state, _) in fold.items() if state == DEFERRED]:
                for limit, amount in self._held.pop((run, slot), ()):
                    self._used[limit] -= amount
                self._take((run, slot), self.waits.holds(self._begun_as(run, slot)))

    def _take(self, key: tuple[int, int], limits: list[tuple[Limit, int]]) -> None:
        self._held[key] = limits
        for limit, amount in limits:
            self._used[limit] = self._used.get(limit, 0) + amount

    def _limit(self, limit: Limit) -> None:
        """10 to 14: limits, counted again from the existing attempts."""
        used = self._used[limit]
        capacity = self.capacity(limit)
        if capacity is not None and used > capacity:
            self.violated(f"10 {limit[0]}", f"{used} of {capacity} are used of {' '.join(map(str, limit))}")
        if capacity is not None and used == capacity:
            self.sometimes(f"limit reached: {limit[0]}")

    def capacity(self, limit: Limit) -> int | None:
        """The value of a limit; None: there is no such limit."""
        shadow = self.shadow
        match limit:
            case ("all",):
                return self.parallelism or None
            case ("pool", name):
                pool = shadow.pools.get(name)
                slots = 0 if pool is None else pool.slots
                return None if slots < 0 else slots
            case ("run", run):
                return self.shape(shadow.runs[run].version).definition.max_active_tasks
            case ("dag task", dag_id, task_id):
                found = [
                    task.max_active_tis_per_dag
                    for version, definition in shadow.versions.items()
                    if definition.dag_id == dag_id and (task := self.shape(version).tasks.get(task_id)) is not None
                ]
                known = [one for one in found if one is not None]
                return max(known) if len(known) == len(found) else None
            case ("run task", run, task_id):
                one = self.shape(shadow.runs[run].version).tasks.get(task_id)
                return None if one is None else one.max_active_tis_per_dagrun
        raise AssertionError(limit)

    def used(self) -> dict[Limit, int]:
        """Return the slots in use now, for comparisons."""
        return {limit: used for limit, used in self._used.items() if used}

    # --- runs ------------------------------------------------------------------------------------------------

    def _run(self, run: int, before: Run | None, row: Run | None) -> None:
        if row is None:
            if before is not None:
                self._deleted(run, before)
            return
        if before is not None:
            self._follows_the_dag(run, before, row)
        if before is None:
            self._created(run, row)
        elif row.revision < before.revision:
            self.violated("1 revision", f"run {run}: revision {row.revision} after {before.revision}")
        state = before.state if before is not None else R_QUEUED
        if row.state != state:
            if row.state not in _RUN_STEPS[state]:
                self.violated("3 runs", f"run {run}: state {state} → {row.state}")
            again = before is not None and state in (R_SUCCESS, R_FAILED) and row.clear_number == before.clear_number
            if again and run not in self.state_set_by_user:
                self.violated("4 terminal", f"run {run} left its final state without a command")
            if row.state in (R_SUCCESS, R_FAILED) and run not in self.state_set_by_user:
                self._ended(run, row)
        running = self._running.setdefault((row.dag_id, row.kind == "backfill"), set())
        if row.state == R_RUNNING:
            if run not in running:
                running.add(run)
                self._begun.append((run, row, running))
        else:
            running.discard(run)

    def _runs_allowed(self, run: int, row: Run, running: set[int]) -> None:
        """11: at most `max_active_runs` runs of a DAG are running."""
        dag = self.shadow.dags.get(row.dag_id)
        if dag is None or row.kind == "backfill":
            return
        most = self.shape(dag.version).definition.max_active_runs
        if len(running) > most:
            self.violated("11 runs", f"{len(running)} runs of {row.dag_id} run, {most} may")
        if len(running) == most:
            self.sometimes("limit reached: max_active_runs")
        if dag.is_paused:
            self.violated("pause", f"run {run} of the paused DAG {row.dag_id} begins")

    def _created(self, run: int, row: Run) -> None:
        if row.logical_date is not None:
            twin = self._dates.get((row.dag_id, row.logical_date))
            if twin is not None and twin in self.shadow.runs and twin != run:
                self.violated("21 slots", f"runs {twin} and {run} of {row.dag_id} share a logical date")
            self._dates[row.dag_id, row.logical_date] = run
        if row.kind == "scheduled":
            self._scheduled(run, row)

    def _scheduled(self, run: int, row: Run) -> None:
        """21, 22: a scheduled run has a date of its schedule, and is not created before its time."""
        definition = self.shape(row.version).definition
        every = period(definition)
        date = row.logical_date
        if every is None or date is None:
            return
        steady = definition.catchup or isinstance(definition.schedule, CronSchedule)  # else it counts from the last run
        if steady and (date - (definition.start_date or START)) % every:
            self.violated("22 ticks", f"run {row.run_id} of {row.dag_id} has a date that is not in its schedule")
        if row.run_after > self.now() and not self.jumped:
            self.violated("22 ticks", f"run {row.run_id} of {row.dag_id} was created before its time")
        has_earlier = date - every >= (definition.start_date or START)
        missed = has_earlier and (row.dag_id, date - every) not in self._dates
        if definition.catchup and missed and not self._edited(row.dag_id):
            self.violated("21 slots", f"a run of {row.dag_id} before {row.run_id} is missing, though catchup is on")

    def _edited(self, dag_id: str) -> bool:
        """Whether the DAG had another schedule before, or was deleted."""
        return sum(definition.dag_id == dag_id for definition in self.shadow.versions.values()) != 1 or dag_id in self.deleted

    def _ended(self, run: int, row: Run) -> None:
        """17, 20: all tasks of an ended run have ended, and its state follows from its leaves."""
        shadow, shape = self.shadow, self.shape(row.version)
        tasks = shadow.tasks.get(run, {})
        fold = shadow.fold.get(run, {})
        states = {slot: fold.get(slot, (NONE, 0))[0] for slot in tasks}
        if any(state in HOLDING for state in states.values()):
            self.violated("17 runs", f"run {run} has ended, but one of its attempts runs")
        leaves = [states[slot] for slot, task in tasks.items() if task.task_id in shape.leaves]
        if row.state == R_SUCCESS:
            if any(state not in OVER for state in states.values()):
                self.violated("17 runs", f"run {run} is a success, but not all its tasks have ended")
            if any(state in (FAILED, UPSTREAM_FAILED) for state in leaves):
                self.violated("20 verdict", f"run {run} is a success, but a leaf has failed")
        elif all(state in OVER for state in states.values()) and shape.leaves:
            timed = shape.definition.dagrun_timeout is not None
            if not timed and not any(state in (FAILED, UPSTREAM_FAILED) for state in leaves):
                self.violated("20 verdict", f"run {run} has failed, but none of its leaves has")
        for name, one in shape.tasks.items():
            indexes = [task.map_index for task in tasks.values() if task.task_id == name]
            if any(index >= 0 for index in indexes):
                indexes = [index for index in indexes if index >= 0]  # it may have been a plain task in an earlier version
            if one.mapped and indexes != [-1] and sorted(indexes) != list(range(len(indexes))):
                self.violated("18 mapping", f"run {run}: {name} has the map indexes {sorted(indexes)}")

    def _deleted(self, run: int, before: Run) -> None:
        if before.state not in (R_SUCCESS, R_FAILED):
            self.violated("24 history", f"run {run} was deleted before it ended")
        for key in [key for key in self._tries if key[0] == run]:
            del self._tries[key]
        if any(key[0] == run for key in self._held):
            self.violated("14 attempts", f"run {run} was deleted while one of its attempts runs")
        self._running.get((before.dag_id, before.kind == "backfill"), set()).discard(run)

    # --- attempts and XComs ----------------------------------------------------------------------------------

    def _attempt(self, key: AttemptKey, before: Try | None, row: Try | None) -> None:
        if row is None:
            return
        known = self.nonces.get(key)
        if row.nonce is not None:
            if known is not None and known != row.nonce:
                self.violated("8 start", f"attempt {key} was started twice: {known} and {row.nonce}")
            self.nonces[key] = row.nonce
        elif before is not None and before.nonce is not None:
            self.violated("8 start", f"attempt {key} has lost the nonce of its start")

    def _xcom(self, key: tuple[Any, ...], value: bytes | None, steps: dict[int, list[tuple[int, Step]]]) -> None:
        """38: an XCom is written together with the success of its attempt, and never otherwise."""
        if value is None:
            return
        run, slot, fence = msgspec.json.decode(value, type=tuple[int, int, int])
        report = self.said.get((run, slot, fence))
        good = any(step.slot == slot and step.fence == fence and step.after == SUCCESS for _, step in steps.get(run, ()))
        said = (report is not None and report.outcome.value == "success") or self.waits.pushed((run, slot, fence))
        if run != key[0] or not said or not good:
            self.violated("38 xcom", f"an XCom of attempt {(run, slot, fence)} was written without its success")


def by_mark(step: Step) -> bool:
    """Whether a user caused this state change."""
    return step.cause.startswith("marked ")


def _follows(shape: Shape, chosen: Iterable[str], name: str) -> bool:
    """Whether a task is downstream of one of the chosen tasks."""
    stack, seen = list(chosen), set()
    while stack:
        one = stack.pop()
        if one == name:
            return True
        if one in shape.below and one not in seen:
            seen.add(one)
            stack += shape.below[one]
    return False


def period(definition: DagDefinition) -> int | None:
    """Return the microseconds between two dates of a schedule of the workload."""
    schedule = definition.schedule
    if isinstance(schedule, CronSchedule):
        minute = schedule.expressions[0].split()[0]
        return (int(minute[2:]) if minute.startswith("*/") else 60) * MINUTE
    if isinstance(schedule, DeltaSchedule):
        return schedule.delta.micros
    return None
