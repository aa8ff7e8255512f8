"""The slow reference: what should happen to a run, worked out from nothing but its rows.

The run machine is fast because it keeps counters and looks only at what could have changed. This module keeps nothing and
looks at everything, every time, so that it can be read beside the specification and trusted. It shares the nouns of `model/`
with the machine, and no rule: a property test holds the two equal, and what one of them got wrong the other one shows.

- `happen` writes the immediate effect of an event into the rows.
- `decide_all` says what follows, in passes: every task is judged against the states as they were when the pass began, until a
  pass changes nothing.
- `enact` writes those decisions into the rows.

Never used in production. Sources: Airflow 3.3.2's trigger rules, setups, run states and retries as the surface inventory
lists them (1.9, 2.1, 2.2), and the execution model of the conformance format (2 and 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tradewind.kernel import events as e
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.states import FAILURES, FINISHED, OCCUPYING, SCHEDULABLE, Outcome, TaskState, TriggerRule
from tradewind.wire.messages import Branch

_S, _R = TaskState, TriggerRule


@dataclass
class Row:
    """One task instance. Moments are microseconds; None has not come."""

    state: TaskState = TaskState.NONE
    fence: int = 0
    try_number: int = 0
    resume: bool = False
    """The next attempt belongs to the same try."""
    requeues: int = 0
    due_at: int | None = None
    branch: Branch | None = None


@dataclass
class Snapshot:
    """One run, as a store would hold it."""

    definition: DagDefinition
    now: int
    logical_date: int | None = None
    rows: dict[str, Row] = field(default_factory=dict)
    """By task id; `happen(RunStarted)` makes those that are absent."""
    past: dict[str, bool] = field(default_factory=dict)
    """What the previous run says of tasks that depend on it; absent: not yet."""
    requeue_limit: int = 3
    success: bool | None = None
    """Verdict on the run; None while it goes on."""

    def task(self, slot: int) -> TaskDefinition:
        return self.definition.tasks[slot]

    def row(self, slot: int) -> Row:
        return self.rows[self.task(slot).task_id]


class TaskDecision(NamedTuple):
    """This task instance becomes that."""

    task_id: str
    state: TaskState


class RunDecision(NamedTuple):
    """The run ends like that."""

    success: bool


Decision = TaskDecision | RunDecision


# --- what follows -------------------------------------------------------------------------------------------------------


def decide_all(snapshot: Snapshot) -> frozenset[Decision]:
    """Every decision that follows from the rows, to the last pass. The snapshot is not changed."""
    if snapshot.success is not None:
        return frozenset()
    states = {task_id: row.state for task_id, row in snapshot.rows.items()}
    decided: set[Decision] = set()
    while True:
        verdicts = {
            task.task_id: verdict
            for task in snapshot.definition.tasks
            if (verdict := _judge(snapshot, states, task)) is not None
        }
        if not verdicts:
            break
        states.update(verdicts)
        decided.update(TaskDecision(task_id, state) for task_id, state in verdicts.items())
    verdict_on_run = _judge_run(snapshot, states)
    if verdict_on_run is not None:
        decided.add(RunDecision(verdict_on_run))
    return frozenset(decided)


def enact(snapshot: Snapshot, decisions: frozenset[Decision]) -> None:
    """Write the decisions into the rows."""
    for decision in decisions:
        if isinstance(decision, RunDecision):
            snapshot.success = decision.success
            continue
        row = snapshot.rows[decision.task_id]
        if decision.state in (_S.SCHEDULED, _S.SUCCESS):
            if not row.resume:
                row.try_number += 1
                row.requeues = 0
            row.resume = False
        _become(row, decision.state)


def _judge(snapshot: Snapshot, states: dict[str, TaskState], task: TaskDefinition) -> TaskState | None:
    """What a task becomes in this pass. None: it stays what it is."""
    state = states[task.task_id]
    if state not in SCHEDULABLE:
        return None
    due = snapshot.rows[task.task_id].due_at
    if state is not _S.NONE and due is not None and due > snapshot.now:
        return None
    past_open = _past_open(snapshot, task)
    skip_has_to_wait = task.wait_for_past_depends_before_skipping and not past_open
    if _not_chosen(snapshot, states, task):
        return None if skip_has_to_wait else _S.SKIPPED
    follows = _by_upstream(snapshot.definition, states, task)
    if follows is _S.SKIPPED and skip_has_to_wait:
        return None
    if follows is not _S.SCHEDULED:
        return follows
    if not past_open:
        return None
    return _S.SUCCESS if task.empty else _S.SCHEDULED


def _past_open(snapshot: Snapshot, task: TaskDefinition) -> bool:
    """Nobody asks for the past of this task, or the previous run is done with it."""
    return snapshot.past.get(task.task_id, False) or not (task.depends_on_past or task.wait_for_downstream)


def _not_chosen(snapshot: Snapshot, states: dict[str, TaskState], task: TaskDefinition) -> bool:
    """A direct upstream branch or short circuit ended well and skips it, whatever its trigger rule."""
    for task_id in task.upstream:
        branch = snapshot.rows[task_id].branch
        if (
            branch is not None
            and states[task_id] is _S.SUCCESS
            and task.task_id in _skipped_by(snapshot.definition, task_id, branch)
        ):
            return True
    return False


def _by_upstream(definition: DagDefinition, states: dict[str, TaskState], task: TaskDefinition) -> TaskState | None:
    """Trigger rule and setups. SCHEDULED: it may run; None: it waits."""
    if not task.upstream or task.trigger_rule is _R.ALWAYS:
        return _S.SCHEDULED
    needed = [] if task.is_teardown else [states[setup] for setup in _indirect_setups(definition, task)]
    if any(state in FAILURES for state in needed):
        return _S.UPSTREAM_FAILED
    if _S.SKIPPED in needed:
        return _S.SKIPPED
    if task.trigger_rule is _R.ALL_DONE_SETUP_SUCCESS:
        follows = _setup_rule(definition, states, task)
    else:
        follows = trigger_rule(task.trigger_rule, [states[up] for up in task.upstream])
    ready = all(state is _S.SUCCESS for state in needed)
    return None if follows is _S.SCHEDULED and not ready else follows


def trigger_rule(rule: TriggerRule, upstream: list[TaskState]) -> TaskState | None:
    """What a rule makes of the states of the direct upstream task instances (at least one).

    Returns:
        SCHEDULED when it may run, None when it waits, else the state it is given at once.
    """
    success, skipped, removed = _S.SUCCESS in upstream, _S.SKIPPED in upstream, _S.REMOVED in upstream
    failed = any(state in FAILURES for state in upstream)
    done = all(state in FINISHED for state in upstream)
    all_skipped = all(state is _S.SKIPPED for state in upstream)
    present = [state for state in upstream if state is not _S.REMOVED]
    if rule is _R.ALL_SUCCESS:
        forced = _S.UPSTREAM_FAILED if failed else _S.SKIPPED if skipped else None
        runs = done
    elif rule is _R.ALL_FAILED:
        forced = _S.SKIPPED if success or skipped else None
        runs = all(state in FAILURES for state in present)
    elif rule is _R.ALWAYS:
        forced, runs = None, True
    elif rule is _R.ALL_DONE:
        forced, runs = None, done
    elif rule is _R.ALL_DONE_MIN_ONE_SUCCESS:
        forced = _S.SKIPPED if skipped else _S.UPSTREAM_FAILED if done and not success else None
        runs = done and success
    elif rule is _R.ONE_SUCCESS:
        runs = success
        forced = None if runs or not done else _S.SKIPPED if all_skipped else _S.UPSTREAM_FAILED
    elif rule is _R.ONE_FAILED:
        runs = failed
        forced = _S.SKIPPED if done and not runs else None
    elif rule is _R.ONE_DONE:
        runs = success or _S.FAILED in upstream
        forced = _S.SKIPPED if done and not runs else None
    elif rule is _R.NONE_FAILED:
        forced, runs = (_S.UPSTREAM_FAILED if failed else None), done
    elif rule is _R.NONE_FAILED_MIN_ONE_SUCCESS:
        runs = done and success
        forced = _S.UPSTREAM_FAILED if failed else _S.SKIPPED if all_skipped else None
        if forced is None and done and not success:
            forced = _S.UPSTREAM_FAILED
    elif rule is _R.NONE_SKIPPED:
        forced, runs = (_S.SKIPPED if skipped else None), done
    elif rule is _R.ALL_SKIPPED:
        # a removed one is neither skipped nor anything else: with it this rule is never met
        forced, runs = (_S.SKIPPED if success or failed else None), all_skipped and not removed
    else:
        raise ValueError(f"{rule.value} cannot be judged by the states of its upstream alone")
    return forced if forced is not None else _S.SCHEDULED if runs else None


def _setup_rule(definition: DagDefinition, states: dict[str, TaskState], task: TaskDefinition) -> TaskState | None:
    """all_done_setup_success."""
    if any(states[up] not in FINISHED for up in task.upstream):
        return None
    own = [up for up in task.upstream if _task(definition, up).is_setup]
    if own:
        if all(states[up] is _S.SKIPPED for up in own):
            return _S.SKIPPED
        if not any(states[up] is _S.SUCCESS for up in own):
            return _S.UPSTREAM_FAILED
    if task.is_teardown:
        above = _above(definition, task.task_id)
        between = {node for up in own for node in _below(definition, up) & above}
        if any(states[node] not in FINISHED for node in between):
            return None
    return _S.SCHEDULED


def _indirect_setups(definition: DagDefinition, task: TaskDefinition) -> Iterator[str]:
    """Setups above `task`, none of them its direct upstream, that have no teardown or one below `task`."""
    below = _below(definition, task.task_id)
    for up in _above(definition, task.task_id) - set(task.upstream):
        if _task(definition, up).is_setup:
            teardowns = {down for down in _children(definition, up) if _task(definition, down).is_teardown}
            if not teardowns or teardowns & below:
                yield up


def _judge_run(snapshot: Snapshot, states: dict[str, TaskState]) -> bool | None:
    """Success, failure, or None: it goes on."""
    tasks = snapshot.definition.tasks
    unfinished = [task for task in tasks if states[task.task_id] not in FINISHED]
    if unfinished:
        on_their_way = any(states[task.task_id] is not _S.NONE for task in unfinished)
        waits_for_past = not all(_past_open(snapshot, task) for task in unfinished)
        return None if on_their_way or waits_for_past else False
    ignored = {task.task_id for task in tasks if task.is_teardown and not task.on_failure_fail_dagrun}
    leaves = [task.task_id for task in tasks if not _children(snapshot.definition, task.task_id) - ignored]
    deciding = [leaf for leaf in leaves if leaf not in ignored]
    if not deciding:
        deciding = [task.task_id for task in tasks if not _children(snapshot.definition, task.task_id)]
    return not any(states[task_id] in FAILURES for task_id in deciding)


# --- what happens -------------------------------------------------------------------------------------------------------


def happen(snapshot: Snapshot, event: e.Event) -> bool:
    """Write the immediate effect of `event` into the rows. False: it does not apply, and nothing changed."""
    snapshot.now = event.at
    if isinstance(event, e.RunStarted):
        _start(snapshot)
        return True
    if isinstance(event, e.RunTimedOut):
        for row in snapshot.rows.values():
            if row.state not in FINISHED:
                _take_away(row, _S.SKIPPED)
        snapshot.success = False
        return True
    if isinstance(event, e.PastChanged):
        snapshot.past[snapshot.task(event.task).task_id] = event.allowed
        return True
    row = snapshot.row(event.slot)
    if isinstance(event, e.TimerDue):
        return row.state in (_S.UP_FOR_RETRY, _S.UP_FOR_RESCHEDULE) and row.due_at is not None and row.due_at <= event.at
    if isinstance(event, e.Admitted):
        if row.state is not _S.SCHEDULED:
            return False
        row.fence += 1
        _become(row, _S.QUEUED)
        return True
    if event.fence != row.fence:
        return False
    if isinstance(event, e.AttemptStarted):
        if row.state is not _S.QUEUED:
            return False
        _become(row, _S.RUNNING)
        return True
    if isinstance(event, e.AttemptVanished):
        return row.state in OCCUPYING and _end(
            snapshot, event.slot, e.AttemptEnded(event.slot, event.fence, Outcome.LOST, event.at)
        )
    return row.state in OCCUPYING and _end(snapshot, event.slot, event)


def _start(snapshot: Snapshot) -> None:
    """Rows for all tasks; those whose own dates exclude the run's date have no part in it.

    A start date that is the DAG's own says nothing about the task: runs triggered before it are still whole.
    """
    date = snapshot.logical_date
    for task in snapshot.definition.tasks:
        row = snapshot.rows.setdefault(task.task_id, Row())
        if date is None or row.state is not _S.NONE:
            continue
        begins = None if task.start_date == snapshot.definition.start_date else task.start_date
        if (begins is not None and date < begins) or (task.end_date is not None and date > task.end_date):
            _become(row, _S.REMOVED)


def _end(snapshot: Snapshot, slot: int, event: e.AttemptEnded) -> bool:
    """An attempt came to its end. False: it may not end like that."""
    row, task, outcome = snapshot.row(slot), snapshot.task(slot), event.outcome
    if row.state is _S.RESTARTING:
        _become(row, _S.NONE)
        return True
    if row.state is _S.QUEUED and outcome in (Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE):
        return False
    if outcome in (Outcome.LOST, Outcome.REFUSED):
        if row.requeues < snapshot.requeue_limit:
            row.requeues += 1
            _become(row, _S.SCHEDULED)
            return True
        outcome = Outcome.FAILED
    if outcome is Outcome.SUCCESS:
        row.branch = event.branch
        _become(row, _S.SUCCESS)
        if event.branch is not None:
            for task_id in _skipped_by(snapshot.definition, task.task_id, event.branch):
                if snapshot.rows[task_id].state not in (
                    _S.RUNNING,
                    _S.RESTARTING,
                    _S.SUCCESS,
                    _S.FAILED,
                    _S.REMOVED,
                    _S.SKIPPED,
                ):
                    _take_away(snapshot.rows[task_id], _S.SKIPPED)
    elif outcome is Outcome.SKIPPED:
        _become(row, _S.SKIPPED)
    elif outcome is Outcome.RESCHEDULE:
        row.resume = True
        _become(row, _S.UP_FOR_RESCHEDULE)
        row.due_at = event.at if event.reschedule_at is None else event.reschedule_at
    elif outcome is Outcome.FAILED and row.try_number <= task.retries:
        _become(row, _S.UP_FOR_RETRY)
        row.due_at = event.at + _retry_delay(task, event)
    else:
        _become(row, _S.FAILED)
        if snapshot.definition.fail_fast:
            _fail_fast(snapshot, task.task_id)
    return True


def _retry_delay(task: TaskDefinition, event: e.AttemptEnded) -> int:
    if event.retry_delay is not None:
        return event.retry_delay
    if task.retry_exponential_backoff:
        raise ValueError(f"{task.task_id}: the spread of its back-off is not for the reference; put a retry_delay in the event")
    return task.retry_delay if task.max_retry_delay is None else min(task.retry_delay, task.max_retry_delay)


def _fail_fast(snapshot: Snapshot, failed: str) -> None:
    """All others but teardowns end now."""
    for task in snapshot.definition.tasks:
        row = snapshot.rows[task.task_id]
        over = row.state in (_S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.REMOVED)
        if task.task_id != failed and not task.is_teardown and not over:
            _take_away(row, _S.FAILED if row.state in (_S.RUNNING, _S.RESTARTING) else _S.SKIPPED)


def _take_away(row: Row, state: TaskState) -> None:
    """Whatever attempt lives, its result does not count any more."""
    if row.state in OCCUPYING:
        row.fence += 1
    _become(row, state)


def _become(row: Row, state: TaskState) -> None:
    row.state = state
    if state in FINISHED or state in (_S.SCHEDULED, _S.QUEUED, _S.RUNNING):
        row.due_at = None
    if state in FINISHED:
        row.resume = False
        row.requeues = 0


# --- the shape of the DAG, asked naively --------------------------------------------------------------------------------


def _task(definition: DagDefinition, task_id: str) -> TaskDefinition:
    return next(task for task in definition.tasks if task.task_id == task_id)


def _children(definition: DagDefinition, task_id: str) -> set[str]:
    return {task.task_id for task in definition.tasks if task_id in task.upstream}


def _below(definition: DagDefinition, task_id: str) -> set[str]:
    children = _children(definition, task_id)
    return children.union(*(_below(definition, child) for child in children))


def _above(definition: DagDefinition, task_id: str) -> set[str]:
    parents = set(_task(definition, task_id).upstream)
    return parents.union(*(_above(definition, parent) for parent in parents))


def _skipped_by(definition: DagDefinition, brancher: str, branch: Branch) -> set[str]:
    """Tasks that a branching task's decision skips."""
    known = {task.task_id: task for task in definition.tasks}
    if branch.kind == "follow":
        followed = known.keys() & set(branch.tasks)
        kept = followed.union(*(_below(definition, task_id) for task_id in followed))
        return _children(definition, brancher) - kept
    if branch.kind == "stop":
        below = _children(definition, brancher) if branch.direct_only else _below(definition, brancher)
        return {task_id for task_id in below if not known[task_id].is_teardown}
    return known.keys() & set(branch.tasks)
