"""The slow reference implementation: what should happen to a run, computed from its rows alone.

The run machine is fast because it keeps counters and examines only what can have changed. This module keeps nothing and
examines everything each time, so that it can be compared with the specification and trusted. It shares the types of `model/`
with the machine, but no rule. A property test compares the two, so that a mistake in one of them is found.

- `apply_event` writes the immediate effect of an event into the rows.
- `decide_all` returns the decisions that follow, in passes: every task is examined against the states at the start of the pass,
  until a pass changes nothing.
- `apply_decisions` writes those decisions into the rows.

Never used in production. Sources: Airflow 3.3.2's trigger rules, setups, run states and retries as the surface inventory
lists them (1.9, 2.1, 2.2), and the execution model of the conformance format (2 and 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tradewind.kernel import events as e
from tradewind.model.branch import Branch
from tradewind.model.definition import DagDefinition, MapConcat, MapLiteral, MapSource, MapXCom, TaskDefinition, map_providers
from tradewind.model.states import FAILURES, FINISHED, OCCUPYING, SCHEDULABLE, WAITING, Outcome, TaskState, TriggerRule

_S, _R = TaskState, TriggerRule
_NEEDS_A_START = (Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE, Outcome.DEFERRED, Outcome.AWAITING_INPUT)

Key = tuple[str, int]
"""Task id and map index; −1: the task is not expanded."""

States = dict[Key, TaskState]

FAST = (_R.ONE_SUCCESS, _R.ONE_FAILED, _R.ONE_DONE, _R.NONE_FAILED_MIN_ONE_SUCCESS)


@dataclass
class Row:
    """One task instance. Moments are microseconds; None: unknown."""

    state: TaskState = TaskState.NONE
    fence: int = 0
    try_number: int = 0
    resume: bool = False
    """The next attempt belongs to the same try."""
    requeues: int = 0
    due_at: int | None = None
    branch: Branch | None = None
    length: int | None = None
    """The number of elements that a successful task instance returned."""


@dataclass
class Snapshot:
    """One run, as a store would hold it."""

    definition: DagDefinition
    now: int
    logical_date: int | None = None
    rows: dict[Key, Row] = field(default_factory=dict)
    """`apply_event(RunStarted)` creates the missing rows."""
    slots: dict[int, Key] = field(default_factory=dict)
    """The task instances of slots after those of the definition; events name them by these slots."""
    past: dict[str, bool] = field(default_factory=dict)
    """Task id → whether the previous run lets the task run; a missing entry means not yet."""
    requeue_limit: int = 3
    repeat_lost: bool = False
    success: bool | None = None
    """How the run ended; None: it has not ended."""

    def key(self, slot: int) -> Key:
        if slot in self.slots:
            return self.slots[slot]
        task_id = self.definition.tasks[slot].task_id
        return (task_id, 0) if (task_id, 0) in self.rows else (task_id, -1)

    def task(self, slot: int) -> TaskDefinition:
        return _task(self.definition, self.key(slot)[0])

    def row(self, slot: int) -> Row:
        return self.rows[self.key(slot)]


class TaskDecision(NamedTuple):
    """A task instance gets a new state."""

    task_id: str
    map_index: int
    state: TaskState


class Expansion(NamedTuple):
    """A mapped task is expanded to `length` instances."""

    task_id: str
    length: int


class RunDecision(NamedTuple):
    """The run ends, with success or failure."""

    success: bool


Decision = TaskDecision | Expansion | RunDecision


# --- decisions ----------------------------------------------------------------------------------------------------------


def decide_all(snapshot: Snapshot) -> frozenset[Decision]:
    """Return every decision that follows from the rows, in all passes. The snapshot is not changed."""
    if snapshot.success is not None:
        return frozenset()
    states = {key: row.state for key, row in snapshot.rows.items()}
    decided: set[Decision] = set()
    while True:
        found = {key: _examine(snapshot, states, key) for key in states}
        expansions = [verdict for verdict in found.values() if isinstance(verdict, Expansion)]
        for expansion in expansions:
            del states[expansion.task_id, -1]
            states.update({(expansion.task_id, index): _S.NONE for index in range(expansion.length)})
        for task_id, length in expansions:
            found |= {(task_id, index): _examine(snapshot, states, (task_id, index)) for index in range(length)}
        verdicts = {key: verdict for key, verdict in found.items() if isinstance(verdict, TaskState)}
        if not verdicts and not expansions:
            break
        states.update(verdicts)
        decided.update(expansions)
        decided.update(TaskDecision(*key, state) for key, state in verdicts.items())
    verdict_on_run = _run_verdict(snapshot, states)
    if verdict_on_run is not None:
        decided.add(RunDecision(verdict_on_run))
    return frozenset(decided)


def apply_decisions(snapshot: Snapshot, decisions: frozenset[Decision]) -> None:
    """Write the decisions into the rows."""
    for decision in decisions:
        if isinstance(decision, RunDecision):
            snapshot.success = decision.success
        elif isinstance(decision, Expansion):
            _expand(snapshot, decision)
    for decision in decisions:
        if not isinstance(decision, TaskDecision):
            continue
        _begin(snapshot.rows[decision.task_id, decision.map_index], decision.state)


def _begin(row: Row, state: TaskState) -> None:
    """Give a row a decided state, and begin a try or continue the last one. A wait gets a fence, like an attempt."""
    if state in (_S.SCHEDULED, _S.DEFERRED, _S.SUCCESS):
        if not row.resume:
            row.try_number += 1
            row.requeues = 0
        row.resume = False
    if state is _S.DEFERRED:
        row.fence += 1
        row.due_at = None
    _set_state(row, state)


def _expand(snapshot: Snapshot, expansion: Expansion) -> None:
    """Turn the row of a mapped task into its first instance, and add the others."""
    snapshot.rows[expansion.task_id, 0] = snapshot.rows.pop((expansion.task_id, -1))
    snapshot.rows.update({(expansion.task_id, index): Row() for index in range(1, expansion.length)})


def _examine(snapshot: Snapshot, states: States, key: Key) -> TaskState | Expansion | None:
    """Return the new state of a task instance in this pass. None: its state stays."""
    task, state = _task(snapshot.definition, key[0]), states[key]
    if state not in SCHEDULABLE:
        return None
    due = snapshot.rows[key].due_at if key in snapshot.rows else None
    if state is not _S.NONE and due is not None and due > snapshot.now:
        return None
    past_allows = _past_allows(snapshot, task)
    skip_waits = task.wait_for_past_depends_before_skipping and not past_allows
    if _not_chosen(snapshot, states, task, key[1]):
        return None if skip_waits else _S.SKIPPED
    follows = _by_upstream(snapshot.definition, states, task, key[1])
    lists = _mapped_over(snapshot.definition, task)
    ends = {states[provider, -1] for provider in map_providers(lists or ()) if (provider, -1) in states} & FINISHED
    if ends - {_S.SUCCESS, _S.SKIPPED}:
        follows = _S.UPSTREAM_FAILED
    elif _S.SKIPPED in ends and follows in (None, _S.SCHEDULED):
        follows = _S.SKIPPED
    if follows is _S.SKIPPED and skip_waits:
        return None
    if follows is not _S.SCHEDULED:
        return follows
    if not past_allows:
        return None
    if lists is not None and key[1] < 0:
        return _expansion(snapshot, states, task.task_id, lists)
    if task.wait is not None and not task.empty and (snapshot.logical_date is not None or not task.wait.needs_a_date):
        return _S.DEFERRED
    return _S.SUCCESS if task.empty else _S.SCHEDULED


def _expansion(snapshot: Snapshot, states: States, task_id: str, lists: tuple[MapSource, ...]) -> TaskState | Expansion | None:
    """Return the new state of a mapped task whose dependencies are met, or its expansion; None: the length of a list is unknown."""
    if any(states[key] not in FINISHED for key in states if key[0] in set(map_providers(lists))):
        return None
    total = 1
    for source in lists:
        length = _length(snapshot, states, source)
        if length is None:
            return _S.UPSTREAM_FAILED
        total *= length
    return Expansion(task_id, total) if total else _S.SKIPPED


def _length(snapshot: Snapshot, states: States, source: MapSource) -> int | None:
    if isinstance(source, MapLiteral):
        return source.length
    if isinstance(source, MapXCom):
        if (source.task_id, -1) in states:
            return snapshot.rows[source.task_id, -1].length
        return sum(row.length is not None for key, row in snapshot.rows.items() if key[0] == source.task_id)
    parts = [_length(snapshot, states, part) for part in source.of]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(source, MapConcat):
        return sum(known)
    return max(known) if source.longest else min(known)


def _past_allows(snapshot: Snapshot, task: TaskDefinition) -> bool:
    """Return whether the previous run lets the task run, or the task does not depend on it."""
    return snapshot.past.get(task.task_id, False) or not (task.depends_on_past or task.wait_for_downstream)


def _not_chosen(snapshot: Snapshot, states: States, task: TaskDefinition, index: int) -> bool:
    """Return whether a successful direct upstream branch or short circuit skips the task instance, whatever its trigger rule.

    A mapped branching task decides for its own map index; a branching task in a mapped group for its map index in that group.
    """
    definition = snapshot.definition
    for task_id in task.upstream:
        domain = _domain(definition, task_id)
        mapped = domain is not None and index >= 0
        if mapped and domain != _domain(definition, task.task_id) and not _task(definition, task_id).mapped:
            continue
        key = (task_id, index if mapped else -1)
        branch = snapshot.rows[key].branch if key in snapshot.rows else None
        if branch is not None and states[key] is _S.SUCCESS and task.task_id in _skipped_by(definition, task_id, branch):
            return True
    return False


def _by_upstream(definition: DagDefinition, states: States, task: TaskDefinition, index: int) -> TaskState | None:
    """Apply the trigger rule and setups. SCHEDULED: it may run; None: it waits."""
    if not task.upstream or task.trigger_rule is _R.ALWAYS:
        return _S.SCHEDULED
    indirect = [] if task.is_teardown else _indirect_setups(definition, task)
    needed = [state for setup in indirect for state in _relevant(definition, states, task, index, setup)]
    if any(state in FAILURES for state in needed):
        return _S.UPSTREAM_FAILED
    if _S.SKIPPED in needed:
        return _S.SKIPPED
    upstream = [state for up in task.upstream for state in _relevant(definition, states, task, index, up)]
    if task.trigger_rule is _R.ALL_DONE_SETUP_SUCCESS:
        follows = _setup_success_rule(definition, states, task, index)
    else:
        follows = trigger_rule(task.trigger_rule, upstream) if upstream else _S.SCHEDULED
    ready = all(state is _S.SUCCESS for state in needed)
    return None if follows is _S.SCHEDULED and not ready else follows


def _relevant(definition: DagDefinition, states: States, task: TaskDefinition, index: int, upstream: str) -> list[TaskState]:
    """Return the states of those instances of an upstream task that count for this map index."""
    if (upstream, -1) in states:
        return [states[upstream, -1]]
    domain = _domain(definition, task.task_id)
    all_indexes = task.trigger_rule in FAST and index < 0
    if domain is not None and domain == _domain(definition, upstream) and not all_indexes:
        return [states[upstream, index]] if (upstream, index) in states else []
    return [state for key, state in states.items() if key[0] == upstream]


def trigger_rule(rule: TriggerRule, upstream: list[TaskState]) -> TaskState | None:
    """Apply a trigger rule to the states of the direct upstream task instances (at least one).

    Returns:
        SCHEDULED if the task instance may run, None if it must wait, otherwise the state that it gets at once.
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
        # a removed instance is not skipped: if there is one, this rule is never met
        forced, runs = (_S.SKIPPED if success or failed else None), all_skipped and not removed
    else:
        raise ValueError(f"{rule.value} depends on more than the states of the upstream task instances")
    return forced if forced is not None else _S.SCHEDULED if runs else None


def _setup_success_rule(definition: DagDefinition, states: States, task: TaskDefinition, index: int) -> TaskState | None:
    """Apply all_done_setup_success."""

    def of(tasks: set[str]) -> list[TaskState]:
        return [state for other in tasks for state in _relevant(definition, states, task, index, other)]

    if any(state not in FINISHED for state in of(set(task.upstream))):
        return None
    own = {up for up in task.upstream if _task(definition, up).is_setup}
    if ends := of(own):
        if all(state is _S.SKIPPED for state in ends):
            return _S.SKIPPED
        if _S.SUCCESS not in ends:
            return _S.UPSTREAM_FAILED
    if task.is_teardown:
        above = _upstream(definition, task.task_id)
        if any(state not in FINISHED for state in of({node for up in own for node in _downstream(definition, up) & above})):
            return None
    return _S.SCHEDULED


def _indirect_setups(definition: DagDefinition, task: TaskDefinition) -> Iterator[str]:
    """Yield setups that are indirectly upstream of `task`, and that have no teardown or a teardown downstream of `task`."""
    below = _downstream(definition, task.task_id)
    for up in _upstream(definition, task.task_id) - set(task.upstream):
        if _task(definition, up).is_setup:
            teardowns = {down for down in _children(definition, up) if _task(definition, down).is_teardown}
            if not teardowns or teardowns & below:
                yield up


def _run_verdict(snapshot: Snapshot, states: States) -> bool | None:
    """Return whether the run ends with success; None: it continues."""
    tasks = snapshot.definition.tasks
    unfinished = [key for key, state in states.items() if state not in FINISHED]
    if unfinished:
        some_can_move = any(not _cannot_move(snapshot, states, key) for key in unfinished)
        waits_for_past = not all(_past_allows(snapshot, _task(snapshot.definition, key[0])) for key in unfinished)
        return None if some_can_move or waits_for_past else False
    ignored = {task.task_id for task in tasks if task.is_teardown and not task.on_failure_fail_dagrun}
    leaves = [task.task_id for task in tasks if not _children(snapshot.definition, task.task_id) - ignored]
    deciding = [leaf for leaf in leaves if leaf not in ignored]
    if not deciding:
        deciding = [task.task_id for task in tasks if not _children(snapshot.definition, task.task_id)]
    return not any(state in FAILURES for key, state in states.items() if key[0] in deciding)


def _cannot_move(snapshot: Snapshot, states: States, key: Key) -> bool:
    """Return whether an unfinished task instance has not begun, or is due for an attempt that no pass scheduled."""
    due = snapshot.rows[key].due_at if key in snapshot.rows else None
    again = states[key] in (_S.UP_FOR_RETRY, _S.UP_FOR_RESCHEDULE) and due is not None and due <= snapshot.now
    return again or states[key] is _S.NONE


# --- events -------------------------------------------------------------------------------------------------------------


def apply_event(snapshot: Snapshot, event: e.Event) -> bool:
    """Write the immediate effect of `event` into the rows. False: the event does not apply, and nothing changed."""
    snapshot.now = event.at
    if isinstance(event, e.RunStarted):
        _start(snapshot)
        return True
    if isinstance(event, e.RunTimedOut):
        for row in snapshot.rows.values():
            if row.state not in FINISHED:
                _force_state(row, _S.SKIPPED)
        snapshot.success = False
        return True
    if isinstance(event, e.PastChanged):
        snapshot.past[snapshot.task(event.task).task_id] = event.allowed
        return True
    row = snapshot.row(event.slot)
    if isinstance(event, e.TimerDue):
        return row.state in (_S.UP_FOR_RETRY, _S.UP_FOR_RESCHEDULE) and row.due_at is not None and row.due_at <= event.at
    if isinstance(event, e.RunNow):
        task_id, index = snapshot.key(event.slot)
        task = _task(snapshot.definition, task_id)
        unexpanded = index < 0 and _mapped_over(snapshot.definition, task) is not None
        if snapshot.success is not None or row.state not in SCHEDULABLE or unexpanded:
            return False
        _begin(row, _S.SUCCESS if task.empty else _S.SCHEDULED)
        return True
    if isinstance(event, e.Admitted):
        if row.state is not _S.SCHEDULED:
            return False
        row.fence += 1
        _set_state(row, _S.QUEUED)
        return True
    if event.fence != row.fence:
        return False
    if isinstance(event, e.AttemptStarted):
        if row.state is not _S.QUEUED:
            return False
        _set_state(row, _S.RUNNING)
        return True
    if isinstance(event, e.AttemptVanished):
        return row.state in OCCUPYING and _end(
            snapshot, event.slot, e.AttemptEnded(event.slot, event.fence, Outcome.LOST, event.at)
        )
    if isinstance(event, e.WaitOver):
        if row.state not in WAITING:
            return False
        if event.outcome is None:
            _set_state(row, _S.SCHEDULED)
            return True
        return _end(snapshot, event.slot, e.AttemptEnded(event.slot, event.fence, event.outcome, event.at))
    return row.state in OCCUPYING and _end(snapshot, event.slot, event)


def _start(snapshot: Snapshot) -> None:
    """Create rows for all tasks; tasks whose own dates exclude the run's date are removed.

    A start date that is the DAG's own does not count: runs triggered before it have all tasks.
    """
    date = snapshot.logical_date
    for task in snapshot.definition.tasks:
        if (task.task_id, 0) in snapshot.rows:
            continue
        row = snapshot.rows.setdefault((task.task_id, -1), Row())
        if date is None or row.state is not _S.NONE:
            continue
        begins = None if task.start_date == snapshot.definition.start_date else task.start_date
        if (begins is not None and date < begins) or (task.end_date is not None and date > task.end_date):
            _set_state(row, _S.REMOVED)
    for task in snapshot.definition.tasks:
        lists = _mapped_over(snapshot.definition, task)
        key = (task.task_id, -1)
        if lists is not None and not list(map_providers(lists)) and key in snapshot.rows:
            expansion = _expansion(snapshot, {}, task.task_id, lists)
            if isinstance(expansion, Expansion) and snapshot.rows[key].state is _S.NONE:
                _expand(snapshot, expansion)


def _end(snapshot: Snapshot, slot: int, event: e.AttemptEnded) -> bool:
    """Write the end of an attempt. False: an attempt in this state cannot end with this outcome."""
    row, task, outcome = snapshot.row(slot), snapshot.task(slot), event.outcome
    if row.state is _S.RESTARTING:
        _set_state(row, _S.NONE)
        return True
    if row.state is _S.QUEUED and outcome in _NEEDS_A_START:
        return False
    chosen = task.lost_attempts or ("repeat" if snapshot.repeat_lost else "fail")
    if outcome is Outcome.LOST and row.state is _S.RUNNING and chosen == "fail":
        outcome = Outcome.FAILED  # its code may have run
    if outcome in (Outcome.LOST, Outcome.REFUSED):
        if row.requeues < snapshot.requeue_limit:
            row.requeues += 1
            _set_state(row, _S.SCHEDULED)
            return True
        outcome = Outcome.FAILED
    if outcome is Outcome.SUCCESS:
        row.branch, row.length = event.branch, event.length
        _set_state(row, _S.SUCCESS)
        if event.branch is not None and _domain(snapshot.definition, task.task_id) is None:
            for task_id in _skipped_by(snapshot.definition, task.task_id, event.branch):
                other = snapshot.rows.get((task_id, -1))
                if other is not None and other.state not in (
                    _S.RUNNING,
                    _S.RESTARTING,
                    _S.SUCCESS,
                    _S.FAILED,
                    _S.REMOVED,
                    _S.SKIPPED,
                ):
                    _force_state(other, _S.SKIPPED)
    elif outcome is Outcome.SKIPPED:
        _set_state(row, _S.SKIPPED)
    elif outcome in (Outcome.RESCHEDULE, Outcome.MISSING):
        row.resume = True
        _set_state(row, _S.UP_FOR_RESCHEDULE)
        row.due_at = event.at if event.reschedule_at is None else event.reschedule_at
    elif outcome in (Outcome.DEFERRED, Outcome.AWAITING_INPUT):
        _set_state(row, _S.DEFERRED if outcome is Outcome.DEFERRED else _S.AWAITING_INPUT)
        row.due_at = event.reschedule_at
    elif outcome is Outcome.FAILED and row.try_number <= task.retries:
        _set_state(row, _S.UP_FOR_RETRY)
        row.due_at = event.at + _retry_delay(task, event)
    else:
        _set_state(row, _S.FAILED)
        if snapshot.definition.fail_fast:
            _fail_fast(snapshot, task.task_id)
    return True


def _retry_delay(task: TaskDefinition, event: e.AttemptEnded) -> int:
    if event.retry_delay is not None:
        return event.retry_delay
    if task.retry_exponential_backoff:
        raise ValueError(f"{task.task_id}: the reference does not compute back-off; put a retry_delay in the event")
    return task.retry_delay if task.max_retry_delay is None else min(task.retry_delay, task.max_retry_delay)


def _fail_fast(snapshot: Snapshot, failed: str) -> None:
    """End all other task instances except teardowns."""
    for (task_id, _), row in snapshot.rows.items():
        task = _task(snapshot.definition, task_id)
        over = row.state in (_S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.REMOVED)
        if task_id != failed and not task.is_teardown and not over:
            _force_state(row, _S.FAILED if row.state in (_S.RUNNING, _S.RESTARTING) else _S.SKIPPED)


def _force_state(row: Row, state: TaskState) -> None:
    """Set a state. The result of a live attempt does not count any more."""
    if row.state in OCCUPYING:
        row.fence += 1
    _set_state(row, state)


def _set_state(row: Row, state: TaskState) -> None:
    row.state = state
    if state in FINISHED or state in (_S.SCHEDULED, _S.QUEUED, _S.RUNNING):
        row.due_at = None
    if state in FINISHED:
        row.resume = False
        row.requeues = 0


# --- the graph, computed without any index ------------------------------------------------------------------------------


def _task(definition: DagDefinition, task_id: str) -> TaskDefinition:
    return next(task for task in definition.tasks if task.task_id == task_id)


def _domain(definition: DagDefinition, task_id: str) -> str | None:
    """Return the mapped task or group that a task is expanded with."""
    task = _task(definition, task_id)
    if task.mapped:
        return task_id
    group = task.group
    while group is not None:
        found = next(one for one in definition.groups if one.group_id == group)
        if found.mapped:
            return group
        group = found.parent
    return None


def _mapped_over(definition: DagDefinition, task: TaskDefinition) -> tuple[MapSource, ...] | None:
    """Return the lists that a task is expanded over; None when it is not mapped."""
    if task.mapped:
        return task.expand
    domain = _domain(definition, task.task_id)
    return next((group.expand for group in definition.groups if group.group_id == domain), None)


def _children(definition: DagDefinition, task_id: str) -> set[str]:
    return {task.task_id for task in definition.tasks if task_id in task.upstream}


def _downstream(definition: DagDefinition, task_id: str) -> set[str]:
    children = _children(definition, task_id)
    return children.union(*(_downstream(definition, child) for child in children))


def _upstream(definition: DagDefinition, task_id: str) -> set[str]:
    parents = set(_task(definition, task_id).upstream)
    return parents.union(*(_upstream(definition, parent) for parent in parents))


def _skipped_by(definition: DagDefinition, brancher: str, branch: Branch) -> set[str]:
    """Return the tasks that a branching task's decision skips."""
    known = {task.task_id: task for task in definition.tasks}
    if branch.kind == "follow":
        followed = known.keys() & set(branch.tasks)
        kept = followed.union(*(_downstream(definition, task_id) for task_id in followed))
        return _children(definition, brancher) - kept
    if branch.kind == "stop":
        below = _children(definition, brancher) if branch.direct_only else _downstream(definition, brancher)
        return {task_id for task_id in below if not known[task_id].is_teardown}
    return known.keys() & set(branch.tasks)
