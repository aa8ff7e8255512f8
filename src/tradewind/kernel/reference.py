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
from tradewind.model.branch import Branch
from tradewind.model.definition import DagDefinition, MapConcat, MapLiteral, MapSource, MapXCom, TaskDefinition, map_providers
from tradewind.model.states import FAILURES, FINISHED, OCCUPYING, SCHEDULABLE, Outcome, TaskState, TriggerRule

_S, _R = TaskState, TriggerRule

Key = tuple[str, int]
"""Task id and map index; −1 stands for a task that is not expanded."""

States = dict[Key, TaskState]

FAST = (_R.ONE_SUCCESS, _R.ONE_FAILED, _R.ONE_DONE, _R.NONE_FAILED_MIN_ONE_SUCCESS)


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
    length: int | None = None
    """Of a success: how many elements it returned."""


@dataclass
class Snapshot:
    """One run, as a store would hold it."""

    definition: DagDefinition
    now: int
    logical_date: int | None = None
    rows: dict[Key, Row] = field(default_factory=dict)
    """`happen(RunStarted)` makes those that are absent."""
    places: dict[int, Key] = field(default_factory=dict)
    """Where events name a slot behind those of the definition: whose it is."""
    past: dict[str, bool] = field(default_factory=dict)
    """What the previous run says of tasks that depend on it; absent: not yet."""
    requeue_limit: int = 3
    repeat_lost: bool = False
    success: bool | None = None
    """Verdict on the run; None while it goes on."""

    def key(self, slot: int) -> Key:
        if slot in self.places:
            return self.places[slot]
        task_id = self.definition.tasks[slot].task_id
        return (task_id, 0) if (task_id, 0) in self.rows else (task_id, -1)

    def task(self, slot: int) -> TaskDefinition:
        return _task(self.definition, self.key(slot)[0])

    def row(self, slot: int) -> Row:
        return self.rows[self.key(slot)]


class TaskDecision(NamedTuple):
    """This task instance becomes that."""

    task_id: str
    map_index: int
    state: TaskState


class Expansion(NamedTuple):
    """A mapped task has so many instances now."""

    task_id: str
    length: int


class RunDecision(NamedTuple):
    """The run ends like that."""

    success: bool


Decision = TaskDecision | Expansion | RunDecision


# --- what follows -------------------------------------------------------------------------------------------------------


def decide_all(snapshot: Snapshot) -> frozenset[Decision]:
    """Every decision that follows from the rows, to the last pass. The snapshot is not changed."""
    if snapshot.success is not None:
        return frozenset()
    states = {key: row.state for key, row in snapshot.rows.items()}
    decided: set[Decision] = set()
    while True:
        found = {key: _judge(snapshot, states, key) for key in states}
        expansions = [verdict for verdict in found.values() if isinstance(verdict, Expansion)]
        for expansion in expansions:
            del states[expansion.task_id, -1]
            states.update({(expansion.task_id, index): _S.NONE for index in range(expansion.length)})
        for task_id, length in expansions:
            found |= {(task_id, index): _judge(snapshot, states, (task_id, index)) for index in range(length)}
        verdicts = {key: verdict for key, verdict in found.items() if isinstance(verdict, TaskState)}
        if not verdicts and not expansions:
            break
        states.update(verdicts)
        decided.update(expansions)
        decided.update(TaskDecision(*key, state) for key, state in verdicts.items())
    verdict_on_run = _judge_run(snapshot, states)
    if verdict_on_run is not None:
        decided.add(RunDecision(verdict_on_run))
    return frozenset(decided)


def enact(snapshot: Snapshot, decisions: frozenset[Decision]) -> None:
    """Write the decisions into the rows."""
    for decision in decisions:
        if isinstance(decision, RunDecision):
            snapshot.success = decision.success
        elif isinstance(decision, Expansion):
            _expand(snapshot, decision)
    for decision in decisions:
        if not isinstance(decision, TaskDecision):
            continue
        _follow(snapshot.rows[decision.task_id, decision.map_index], decision.state)


def _follow(row: Row, state: TaskState) -> None:
    """Become what was decided; what is scheduled begins a try, or goes on with its own. A wait has a fence, as an attempt."""
    if state in (_S.SCHEDULED, _S.DEFERRED, _S.SUCCESS):
        if not row.resume:
            row.try_number += 1
            row.requeues = 0
        row.resume = False
    if state is _S.DEFERRED:
        row.fence += 1
        row.due_at = None
    _become(row, state)


def _expand(snapshot: Snapshot, expansion: Expansion) -> None:
    """The row of the task becomes its first instance; the others are new."""
    snapshot.rows[expansion.task_id, 0] = snapshot.rows.pop((expansion.task_id, -1))
    snapshot.rows.update({(expansion.task_id, index): Row() for index in range(1, expansion.length)})


def _judge(snapshot: Snapshot, states: States, key: Key) -> TaskState | Expansion | None:
    """What a task instance becomes in this pass. None: it stays what it is."""
    task, state = _task(snapshot.definition, key[0]), states[key]
    if state not in SCHEDULABLE:
        return None
    due = snapshot.rows[key].due_at if key in snapshot.rows else None
    if state is not _S.NONE and due is not None and due > snapshot.now:
        return None
    past_open = _past_open(snapshot, task)
    skip_has_to_wait = task.wait_for_past_depends_before_skipping and not past_open
    if _not_chosen(snapshot, states, task, key[1]):
        return None if skip_has_to_wait else _S.SKIPPED
    follows = _by_upstream(snapshot.definition, states, task, key[1])
    lists = _mapped_over(snapshot.definition, task)
    ends = {states[provider, -1] for provider in map_providers(lists or ()) if (provider, -1) in states} & FINISHED
    if ends - {_S.SUCCESS, _S.SKIPPED}:
        follows = _S.UPSTREAM_FAILED
    elif _S.SKIPPED in ends and follows in (None, _S.SCHEDULED):
        follows = _S.SKIPPED
    if follows is _S.SKIPPED and skip_has_to_wait:
        return None
    if follows is not _S.SCHEDULED:
        return follows
    if not past_open:
        return None
    if lists is not None and key[1] < 0:
        return _expansion(snapshot, states, task.task_id, lists)
    if task.wait is not None and not task.empty and (snapshot.logical_date is not None or not task.wait.needs_a_date):
        return _S.DEFERRED
    return _S.SUCCESS if task.empty else _S.SCHEDULED


def _expansion(snapshot: Snapshot, states: States, task_id: str, lists: tuple[MapSource, ...]) -> TaskState | Expansion | None:
    """What becomes of a mapped task that could go on: it waits for a list, has none, an empty one, or so many elements."""
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


def _past_open(snapshot: Snapshot, task: TaskDefinition) -> bool:
    """Nobody asks for the past of this task, or the previous run is done with it."""
    return snapshot.past.get(task.task_id, False) or not (task.depends_on_past or task.wait_for_downstream)


def _not_chosen(snapshot: Snapshot, states: States, task: TaskDefinition, index: int) -> bool:
    """A direct upstream branch or short circuit ended well and skips it, whatever its trigger rule.

    One that is mapped speaks for its own map index; one in a mapped group for its own map index in that group.
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
    """Trigger rule and setups. SCHEDULED: it may run; None: it waits."""
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
        follows = _setup_rule(definition, states, task, index)
    else:
        follows = trigger_rule(task.trigger_rule, upstream) if upstream else _S.SCHEDULED
    ready = all(state is _S.SUCCESS for state in needed)
    return None if follows is _S.SCHEDULED and not ready else follows


def _relevant(definition: DagDefinition, states: States, task: TaskDefinition, index: int, upstream: str) -> list[TaskState]:
    """States of those instances of an upstream task that matter to this map index."""
    if (upstream, -1) in states:
        return [states[upstream, -1]]
    domain = _domain(definition, task.task_id)
    all_indexes = task.trigger_rule in FAST and index < 0
    if domain is not None and domain == _domain(definition, upstream) and not all_indexes:
        return [states[upstream, index]] if (upstream, index) in states else []
    return [state for key, state in states.items() if key[0] == upstream]


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


def _setup_rule(definition: DagDefinition, states: States, task: TaskDefinition, index: int) -> TaskState | None:
    """all_done_setup_success."""

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
        above = _above(definition, task.task_id)
        if any(state not in FINISHED for state in of({node for up in own for node in _below(definition, up) & above})):
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


def _judge_run(snapshot: Snapshot, states: States) -> bool | None:
    """Success, failure, or None: it goes on."""
    tasks = snapshot.definition.tasks
    unfinished = [key for key, state in states.items() if state not in FINISHED]
    if unfinished:
        on_their_way = any(not _is_held(snapshot, states, key) for key in unfinished)
        waits_for_past = not all(_past_open(snapshot, _task(snapshot.definition, key[0])) for key in unfinished)
        return None if on_their_way or waits_for_past else False
    ignored = {task.task_id for task in tasks if task.is_teardown and not task.on_failure_fail_dagrun}
    leaves = [task.task_id for task in tasks if not _children(snapshot.definition, task.task_id) - ignored]
    deciding = [leaf for leaf in leaves if leaf not in ignored]
    if not deciding:
        deciding = [task.task_id for task in tasks if not _children(snapshot.definition, task.task_id)]
    return not any(state in FAILURES for key, state in states.items() if key[0] in deciding)


def _is_held(snapshot: Snapshot, states: States, key: Key) -> bool:
    """Has it not begun, or is it due for another try, and no pass has let it go on?"""
    due = snapshot.rows[key].due_at if key in snapshot.rows else None
    again = states[key] in (_S.UP_FOR_RETRY, _S.UP_FOR_RESCHEDULE) and due is not None and due <= snapshot.now
    return again or states[key] is _S.NONE


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
    if isinstance(event, e.RunNow):
        task_id, index = snapshot.key(event.slot)
        task = _task(snapshot.definition, task_id)
        unexpanded = index < 0 and _mapped_over(snapshot.definition, task) is not None
        if snapshot.success is not None or row.state not in SCHEDULABLE or unexpanded:
            return False
        _follow(row, _S.SUCCESS if task.empty else _S.SCHEDULED)
        return True
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
    if isinstance(event, e.WaitOver):
        if row.state is not _S.DEFERRED:
            return False
        if event.outcome is None:
            _become(row, _S.SCHEDULED)
            return True
        return _end(snapshot, event.slot, e.AttemptEnded(event.slot, event.fence, event.outcome, event.at))
    return row.state in OCCUPYING and _end(snapshot, event.slot, event)


def _start(snapshot: Snapshot) -> None:
    """Rows for all tasks; those whose own dates exclude the run's date have no part in it.

    A start date that is the DAG's own says nothing about the task: runs triggered before it are still whole.
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
            _become(row, _S.REMOVED)
    for task in snapshot.definition.tasks:
        lists = _mapped_over(snapshot.definition, task)
        key = (task.task_id, -1)
        if lists is not None and not list(map_providers(lists)) and key in snapshot.rows:
            expansion = _expansion(snapshot, {}, task.task_id, lists)
            if isinstance(expansion, Expansion) and snapshot.rows[key].state is _S.NONE:
                _expand(snapshot, expansion)


def _end(snapshot: Snapshot, slot: int, event: e.AttemptEnded) -> bool:
    """An attempt came to its end. False: it may not end like that."""
    row, task, outcome = snapshot.row(slot), snapshot.task(slot), event.outcome
    if row.state is _S.RESTARTING:
        _become(row, _S.NONE)
        return True
    if row.state is _S.QUEUED and outcome in (Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE, Outcome.DEFERRED):
        return False
    chosen = task.lost_attempts or ("repeat" if snapshot.repeat_lost else "fail")
    if outcome is Outcome.LOST and row.state is _S.RUNNING and chosen == "fail":
        outcome = Outcome.FAILED  # its code may have run
    if outcome in (Outcome.LOST, Outcome.REFUSED):
        if row.requeues < snapshot.requeue_limit:
            row.requeues += 1
            _become(row, _S.SCHEDULED)
            return True
        outcome = Outcome.FAILED
    if outcome is Outcome.SUCCESS:
        row.branch, row.length = event.branch, event.length
        _become(row, _S.SUCCESS)
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
                    _take_away(other, _S.SKIPPED)
    elif outcome is Outcome.SKIPPED:
        _become(row, _S.SKIPPED)
    elif outcome in (Outcome.RESCHEDULE, Outcome.MISSING):
        row.resume = True
        _become(row, _S.UP_FOR_RESCHEDULE)
        row.due_at = event.at if event.reschedule_at is None else event.reschedule_at
    elif outcome is Outcome.DEFERRED:
        _become(row, _S.DEFERRED)
        row.due_at = event.reschedule_at
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
    for (task_id, _), row in snapshot.rows.items():
        task = _task(snapshot.definition, task_id)
        over = row.state in (_S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.REMOVED)
        if task_id != failed and not task.is_teardown and not over:
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


def _domain(definition: DagDefinition, task_id: str) -> str | None:
    """The mapped task or group that a task is expanded with."""
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
    """The lists that a task is expanded over; None when it is not mapped."""
    if task.mapped:
        return task.expand
    domain = _domain(definition, task.task_id)
    return next((group.expand for group in definition.groups if group.group_id == domain), None)


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
