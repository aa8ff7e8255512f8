"""The state of one run, and everything that follows from what happens to it.

Theory of operation. A `RunMachine` is built from a snapshot (or fresh) and fed events; each answer is a list of decisions.
It touches nothing else: no clock, no store, no randomness. The same machine schedules production, runs `dag.test()` and is
hammered by the simulator.

For each task it keeps counters of its finished direct upstream tasks, by state. When a task finishes, the counters of its
children change, the children become *dirty*, and only they are examined. Examination goes in waves: all dirty tasks are
judged against the states as they are, then the verdicts are applied, and what they changed makes the next wave. That is the
pass of Airflow's scheduler without looking at anything that could not have changed, so the outcome is the same and the cost
is the number of children.

A wave may be large (one task with 100,000 children). Verdicts wait in `backlog` and at most `budget` of them are applied a
call, so that no transaction grows beyond reason; `unsettled` says that more is to come.

What takes many task instances away at once (fail_fast, a short circuit, dagrun_timeout) is a *sweep* (`sweeping`), bounded in
the same way. While one is under way nothing else is examined. It outlives a restart: the row of the task that caused it keeps its
`resume` mark until the sweep is through, and a timeout is simply noticed again.

A mapped task is one task instance until its dependencies are met and the lengths of its lists are known; then it grows to so
many (`growing`, `instances`, `expansion`), a bounded number a call, and is not examined while it grows. All instances of a task
share the counters of their upstream tasks, so a finish still costs the children and not their instances: these are looked at, all
together, when the common counters say that something may follow. Only inside a mapped group do instances meet index by index.

The machine is also the one truth about the rows: `row(slot)` is what the store has to hold after the decisions so far, and
`touched` remembers what it held before, which is the guard of the write.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tradewind.kernel import bulk_end, expansion, integrity, mapping
from tradewind.kernel import events as e
from tradewind.kernel.codes import (
    DEFERRED,
    FAILED,
    NEVER,
    NO_TASK,
    NONE,
    QUEUED,
    REMOVED,
    RESCHEDULE,
    RESTARTING,
    RETRY,
    RUNNING,
    SCHEDULED,
    SKIPPED,
    SUCCESS,
    UPSTREAM_FAILED,
)
from tradewind.kernel.expansion import joined
from tradewind.kernel.instances import Instances
from tradewind.kernel.retry import retry_delay
from tradewind.kernel.rules import branch_memory, past, run_verdict, setups, task_dates
from tradewind.kernel.topology import RULE_ALWAYS, Topology
from tradewind.kernel.trigger_rules import DECIDERS, RUN, WAIT
from tradewind.model.branch import Branch
from tradewind.model.definition import REPEAT
from tradewind.model.ids import UNEXPANDED
from tradewind.model.rows import TaskRow
from tradewind.model.states import (
    FINISHED,
    SCHEDULABLE,
    TASK_STATES,
    TASK_TRANSITIONS,
    Outcome,
    TaskState,
)

_FINISHED = frozenset(state.code for state in FINISHED)
_SCHEDULABLE = frozenset(state.code for state in SCHEDULABLE)
_LIVE = frozenset({QUEUED, RUNNING, RESTARTING})
_COUNTED = frozenset({QUEUED, RUNNING, RESTARTING, DEFERRED})
"""It may count against limits; those of the version under which that began."""
_LEGAL = tuple(frozenset(after.code for after in TASK_TRANSITIONS[before]) for before in TASK_STATES)

_NEEDS_A_START = frozenset({Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE, Outcome.DEFERRED})
"""What an attempt whose start was never accepted cannot have come to."""

LOST_WITHOUT_REASON = "its attempt was lost"

EVERY_WAVE = 2**62
"""Settle until nothing moves."""


class RunFacts(NamedTuple):
    """What the machine has to know of its run besides the topology."""

    number: int
    dag_id: str
    logical_date: int | None
    requeue_limit: int = 3
    budget: int = 2000
    """Decisions per call, roughly."""
    failing: str | None = None
    """A person failed the run and only its teardowns are left to run: why it fails, whatever they come to."""
    repeat_lost: bool = False
    """The setting `scheduler.lost_attempts` is `repeat`: for tasks that do not choose themselves."""


class RunMachine:
    """One running run. `apply` is its only way to change."""

    __slots__ = (
        "_handlers",
        "active",
        "backlog",
        "branches",
        "budget",
        "counts",
        "dirty",
        "due",
        "ended",
        "ended_at",
        "facts",
        "fence",
        "gone",
        "growing",
        "grown",
        "inside",
        "instances",
        "lengths",
        "listless",
        "max_tries",
        "out",
        "past_allowed",
        "past_why",
        "queued_at",
        "reasons",
        "requeues",
        "resume",
        "scope_left",
        "skips",
        "skips_at",
        "spent",
        "started_at",
        "state",
        "sweeps",
        "topology",
        "touched",
        "tries",
        "unfinished",
        "verification",
        "versions",
        "waves",
        "wide",
        "wider",
    )

    def __init__(self, topology: Topology, facts: RunFacts) -> None:
        count = topology.count
        self.topology = topology
        self.facts = facts
        self.budget = facts.budget
        """Decisions of the next call, roughly; whoever calls may lower it."""
        self.waves = EVERY_WAVE
        """Waves of a call; whoever gives slots between them lowers it."""
        self.state = bytearray(count)
        self.fence = array("I", bytes(4 * count))
        self.tries = array("H", bytes(2 * count))
        self.queued_at = array("q", bytes(8 * count))
        self.started_at = array("q", bytes(8 * count))
        self.counts: dict[int, array[int]] = {
            code: array("i", bytes(4 * count)) for code in (SUCCESS, SKIPPED, FAILED, UPSTREAM_FAILED, REMOVED)
        }
        self.max_tries: dict[int, int] = {}
        self.resume: set[int] = set()
        self.requeues: dict[int, int] = {}
        self.due: dict[int, int] = {}
        self.ended_at: dict[int, int] = {}
        self.reasons: dict[int, str] = {}
        self.branches: dict[int, Branch] = {}
        self.skips: dict[int, set[int]] = {}
        """Task → instances of branching tasks that did not choose it."""
        self.skips_at: dict[tuple[int, int], set[int]] = {}
        """Likewise, (task, map index)."""
        self.instances = Instances(count)
        self.inside: dict[int, dict[int, int]] = {}
        """Impatient tasks → ended upstream task instances of all map indexes inside their mapped group, by state."""
        self.lengths: dict[int, int] = {}
        """Elements that instances which succeeded offer to mapped tasks."""
        self.growing: dict[int, int] = {}
        """Mapped tasks that have not all of their instances yet → how many they get."""
        self.grown: list[int] = []
        """Those that have them now, to be examined before anything else."""
        self.listless: set[int] = set()
        """Mapped tasks that could go on, but for the length of a list."""
        self.wider: dict[int, int] = {}
        """Upstream task instances beyond one for each upstream task."""
        self.past_allowed: dict[int, bool] = {}
        self.past_why: dict[int, str] = {}
        self.scope_left: dict[int, int] = {teardown: len(scope) for teardown, scope in topology.teardown_scope.items()}
        """Tasks between a teardown and its setups that have not ended."""
        self.unfinished = count
        self.active = 0
        self.ended = False
        self.dirty: set[int] = set()
        self.wide: set[int] = set()
        """Expanded tasks of which all instances are to be examined."""
        self.spent = 0
        """Rows that this call made, besides those of its decisions."""
        self.backlog: deque[tuple[int, int, str]] = deque()
        self.sweeps: deque[bulk_end.Sweep] = deque()
        self.verification: integrity.Plan | None = None
        """What is left to do until the rows are as a newer definition asks for."""
        self.gone: dict[int, str] = {}
        """Slots of tasks that the definition does not have → their task id."""
        self.versions: dict[int, int] = {}
        """Instances whose attempt, or wait, began under an earlier version of the DAG → that version."""
        self.touched: dict[int, tuple[int, int]] = {}
        self.out: list[e.Decision] = []
        self._handlers: dict[type, Callable[..., None]] = {
            e.RunStarted: self._run_started,
            e.Admitted: self._admitted,
            e.AttemptStarted: self._attempt_started,
            e.AttemptEnded: self._attempt_ended,
            e.AttemptVanished: self._attempt_vanished,
            e.TimerDue: self._timer_due,
            e.PastChanged: self._past_changed,
            e.RunNow: self._run_now,
            e.WaitOver: self._wait_over,
            e.RunTimedOut: self._run_timed_out,
        }

    # --- building -----------------------------------------------------------------------------------------------

    @classmethod
    def from_rows(
        cls, topology: Topology, facts: RunFacts, rows: Iterable[TaskRow], before: integrity.Before | None = None
    ) -> RunMachine:
        """The machine of a run that is under way. Everything that could be scheduled is dirty: call `settle`.

        Args:
            before: what the rows were last verified against, where it is not that of `topology`: what the change
                asks for is done before anything else (see `integrity`).
        """
        machine = cls(topology, facts)
        known: set[int] = set()
        for row in rows:
            slot = row.slot
            known.add(slot)
            machine._place(row)
            if row.length is not None:
                machine.lengths[slot] = row.length
            machine.state[slot] = row.state
            machine.fence[slot] = row.fence
            machine.tries[slot] = row.try_number
            machine.queued_at[slot] = row.queued_at
            machine.started_at[slot] = row.started_at
            if row.max_tries != topology.retries[machine.instances.task(slot)]:
                machine.max_tries[slot] = row.max_tries
            if row.resume:
                machine.resume.add(slot)
            if row.requeues:
                machine.requeues[slot] = row.requeues
            if row.due_at:
                machine.due[slot] = row.due_at
            if row.reason is not None:
                machine.reasons[slot] = row.reason
            if row.branch is not None:
                machine.branches[slot] = row.branch
            if row.version is not None and row.state in _COUNTED:
                machine.versions[slot] = row.version
            if row.reason is not None and (row.resume or row.state not in _FINISHED):
                machine.reasons[slot] = row.reason
            if row.ended_at and (row.resume or slot in machine.gone):
                machine.ended_at[slot] = row.ended_at
        state = machine.state
        if topology.layout is not None:
            machine._order_instances()
        mapping.go_on(machine)
        for slot in range(machine.instances.total):
            code = state[slot]
            if code in _FINISHED:
                machine.unfinished -= 1
                machine._count(slot, code, 1)
                if code == SUCCESS and slot in machine.branches and slot not in machine.gone:
                    machine.remember_branch(slot, machine.branches[slot])
            elif code != NONE:
                machine.active += 1
            if code in _SCHEDULABLE and slot not in machine.gone:
                machine.look_at(machine.instances.task(slot))
        for slot in [slot for slot in machine.resume if state[slot] in _FINISHED and slot not in machine.gone]:
            bulk_end.begin_again(machine, slot)
        if before is not None:
            machine.verification = integrity.plan(machine, frozenset(known), before)
        elif machine.gone:
            machine.verification = integrity.plan_of_cleared(machine)
        return machine

    def _place(self, row: TaskRow) -> None:
        """Make room for a row that is not of the definition, or was expanded. Rows come by slot."""
        instances, slot, layout = self.instances, row.slot, self.topology.layout
        if layout is not None and slot in layout.gone:
            self.gone[slot] = row.task_id
            instances.between[slot] = (slot, row.map_index)
            return
        if slot < instances.count:
            if layout is not None and layout.own[slot] is None:
                instances.between[slot] = (self.topology.index[row.task_id], row.map_index)
            elif row.map_index >= 0:
                instances.first(slot)
            return
        if slot != instances.total:
            raise AssertionError(f"run {self.facts.number}: row {slot} follows row {instances.total - 1}")
        mapping.new_instance(self, self.topology.index[row.task_id], row.map_index)

    def _order_instances(self) -> None:
        """Instances of expanded tasks that lie between tasks: by map index."""
        further: dict[int, list[tuple[int, int]]] = {}
        for slot, (task, index) in self.instances.between.items():
            if slot not in self.gone:
                further.setdefault(task, []).append((index, slot))
        for task, slots in further.items():
            self.instances.of[task].extend(slot for _, slot in sorted(slots))

    # --- looking ------------------------------------------------------------------------------------------------

    def task_id(self, slot: int) -> str:
        """Whose instance it is, also of a task that is gone."""
        return self.gone.get(slot) or self.topology.ids[self.instances.task(slot)]

    def task_state(self, slot: int) -> TaskState:
        return TASK_STATES[self.state[slot]]

    def name(self, slot: int) -> str:
        """Task id and map index, for people."""
        index = self.instances.index(slot)
        task_id = self.task_id(slot)
        return task_id if index == UNEXPANDED else f"{task_id}[{index}]"

    def retries(self, slot: int) -> int:
        """Retries allowed to this task instance (more than the definition says after a clear)."""
        return self.max_tries.get(slot, self.topology.retries[self.instances.task(slot)])

    def tally(self, slot: int) -> tuple[int, int, int, int, int, int]:
        """(n, s, k, f, u, r): see `trigger_rules`."""
        topology = self.topology
        task = self.instances.task(slot)
        tally = self.tally_of_all(task)
        if task in topology.inner_up:
            if task in self.instances.of:
                return self._with_own_index(tally, slot, task)
            if task in topology.impatient:
                return self._with_all_indexes(tally, task)
        return tally

    def tally_of_all(self, task: int) -> tuple[int, int, int, int, int, int]:
        """The part of the tally that all instances of a task share."""
        topology, counts = self.topology, self.counts
        return (
            topology.up_at[task + 1] - topology.up_at[task] + (self.wider.get(task, 0) if self.wider else 0),
            counts[SUCCESS][task],
            counts[SKIPPED][task],
            counts[FAILED][task],
            counts[UPSTREAM_FAILED][task],
            counts[REMOVED][task],
        )

    def _with_own_index(
        self, tally: tuple[int, int, int, int, int, int], slot: int, task: int
    ) -> tuple[int, int, int, int, int, int]:
        """The tally that all instances share, and the upstream instances of this map index."""
        n, s, k, f, u, r = tally
        index, expanded = self.instances.index(slot), self.instances.of
        for up in self.topology.inner_up[task]:
            if up in expanded and index < len(expanded[up]):
                n += 1
                code = self.state[expanded[up][index]]
                s += code == SUCCESS
                k += code == SKIPPED
                f += code == FAILED
                u += code == UPSTREAM_FAILED
                r += code == REMOVED
        return n, s, k, f, u, r

    def _with_all_indexes(self, tally: tuple[int, int, int, int, int, int], task: int) -> tuple[int, int, int, int, int, int]:
        """The tally that all instances share, and all upstream instances inside the mapped group."""
        n, s, k, f, u, r = tally
        expanded, inside = self.instances.of, self.inside.get(task, {})
        n += sum(max(len(expanded[up]), self.growing.get(up, 0)) for up in self.topology.inner_up[task] if up in expanded)
        s, k, f = s + inside.get(SUCCESS, 0), k + inside.get(SKIPPED, 0), f + inside.get(FAILED, 0)
        return n, s, k, f, u + inside.get(UPSTREAM_FAILED, 0), r + inside.get(REMOVED, 0)

    def row(self, slot: int) -> TaskRow:
        """What the store has to hold for this task instance now."""
        return TaskRow(
            slot,
            self.state[slot],
            self.fence[slot],
            self.tries[slot],
            self.retries(slot),
            slot in self.resume,
            self.requeues.get(slot, 0),
            self.due.get(slot, NEVER),
            self.queued_at[slot],
            self.started_at[slot],
            self.ended_at.get(slot, NEVER),
            self.reasons.get(slot),
            self.branches.get(slot),
            self.task_id(slot),
            self.instances.index(slot),
            self.lengths.get(slot),
            self.versions.get(slot),
        )

    @property
    def unsettled(self) -> bool:
        """More decisions are waiting: call `settle` again, after a commit."""
        waiting = self.sweeps or self.backlog or self.dirty or self.wide or self.growing or self.grown
        return bool(waiting or self.verification is not None) and not self.ended

    @property
    def closed(self) -> bool:
        """Rows are being changed all over the run: none of it is given a slot meanwhile."""
        return bool(self.sweeps) or self.verification is not None

    # --- changing -----------------------------------------------------------------------------------------------

    def apply(self, event: e.Event, *, settle: bool = True) -> list[e.Decision]:
        """Everything that follows from `event`. A `Refusal` means that it does not apply and changed nothing.

        With `settle` False only its immediate effects follow: for the first events of a batch, before one `settle`. A task
        with a thousand upstream tasks that end together is then examined once, not a thousand times.
        """
        out: list[e.Decision] = []
        self.out, self.spent = out, 0
        self._handlers[type(event)](event)
        if not self.ended:
            bulk_end.go_on(self, event.at)
        if settle and not self.ended:
            self._settle(event.at, self.waves)
        return out

    def settle(self, at: int, waves: int | None = None) -> list[e.Decision]:
        """Go on with what a full call left over, or begin after `from_rows`; at most `waves` waves (0: sweeps only)."""
        out: list[e.Decision] = []
        self.out, self.spent = out, 0
        if not self.ended:
            self._settle(at, self.waves if waves is None else waves)
        return out

    def written(self) -> None:
        """The rows are in the store: forget what they held before."""
        for slot in self.touched:
            if self.state[slot] in _FINISHED and slot not in self.resume:
                self.reasons.pop(slot, None)
                self.ended_at.pop(slot, None)
        self.touched.clear()

    def _run_started(self, event: e.RunStarted) -> None:
        topology = self.topology
        starts, rules = topology.up_at, topology.rules
        self.dirty.update(i for i in topology.numbers if starts[i] == starts[i + 1] or rules[i] == RULE_ALWAYS)
        moment = self.facts.logical_date
        absent = dict(task_dates.outside(topology, moment)) if moment is not None else {}
        for domain in topology.domains:
            if domain.fixed:
                for task in domain.tasks:
                    if task not in absent and task not in self.instances.of and self.state[task] == NONE:
                        self.growing[task] = domain.fixed
        for slot, why in absent.items():
            self.sweeps.append(bulk_end.Sweep("dates", NO_TASK, why, deque((slot,))))

    def _admitted(self, event: e.Admitted) -> None:
        slot = event.slot
        if self.state[slot] != SCHEDULED:
            self._refuse(slot, self.fence[slot], f"it is {self.task_state(slot).value}, not scheduled")
            return
        self.queued_at[slot] = event.at
        self.reasons.pop(slot, None)
        self.step(slot, QUEUED, event.at, "a slot was free", new_fence=True)

    def _attempt_started(self, event: e.AttemptStarted) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] != QUEUED:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if self.started_at[slot] == NEVER:
            self.started_at[slot] = event.at
        self.step(slot, RUNNING, event.at, "started by its worker")

    def _attempt_ended(self, event: e.AttemptEnded) -> None:
        slot, code = event.slot, self.state[event.slot]
        if event.fence != self.fence[slot] or code not in _LIVE:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if code == RESTARTING and slot not in self.gone:
            self.step(slot, NONE, event.at, "its attempt was stopped because it was cleared")
            self.dirty.add(slot)
            return
        if code == QUEUED and event.outcome in _NEEDS_A_START:
            self._refuse(slot, event.fence, "a result came from an attempt whose start was never accepted")
            return
        if slot in self.gone:
            integrity.attempt_ended(self, slot, event.at, f"ended as {event.outcome.value}")
            self.ended_at[slot] = event.ended or event.at
            return
        if event.reason is not None:
            self.reasons[slot] = event.reason
        self._OUTCOMES[event.outcome](self, event)
        if event.ended and self.state[slot] in _FINISHED:
            self.ended_at[slot] = event.ended

    def _succeeded(self, event: e.AttemptEnded) -> None:
        slot = event.slot
        if event.branch is not None:
            self.branches[slot] = event.branch
        if event.length is not None:
            self.lengths[slot] = event.length
        self.step(slot, SUCCESS, event.at, event.reason or "its worker reported success")
        if event.branch is not None:
            bulk_end.branch(self, slot, event.branch)

    def _skipped(self, event: e.AttemptEnded) -> None:
        self.step(event.slot, SKIPPED, event.at, event.reason or "the task skipped itself")

    def _rescheduled(self, event: e.AttemptEnded) -> None:
        slot = event.slot
        self.resume.add(slot)
        self.step(slot, RESCHEDULE, event.at, event.reason or "the sensor asked to be called again later")
        self._wake(slot, event.reschedule_at if event.reschedule_at is not None else event.at, event.at)

    def _failed(self, event: e.AttemptEnded) -> None:
        slot = event.slot
        if self.tries[slot] > self.retries(slot):
            self._failed_for_good(event)
            return
        delay = event.retry_delay
        if delay is None:
            facts = self.facts
            delay = retry_delay(
                self.topology.tasks[self.instances.task(slot)], facts.dag_id, facts.logical_date, self.tries[slot]
            )
        self.step(slot, RETRY, event.at, event.reason or "the task failed")
        self._wake(slot, event.at + delay, event.at)

    def _wake(self, slot: int, due: int, at: int) -> None:
        """Examine it again at `due`."""
        self.due[slot] = due
        if due > at:
            self.out.append(e.Timer(slot, due))
        else:
            self.dirty.add(slot)

    def _failed_for_good(self, event: e.AttemptEnded) -> None:
        self.step(event.slot, FAILED, event.at, event.reason or "the task failed")
        if self.topology.fail_fast:
            bulk_end.fail_fast(self, event.slot)

    def _lost(self, event: e.AttemptEnded) -> None:
        """The worker, not the task, failed.

        An attempt whose code may have run has used up its try, unless the task or the deployment chose to repeat it. Any other is
        dispatched again in the same try. Both repetitions are bounded by the same limit.
        """
        slot = event.slot
        if self._may_have_run(slot, event.outcome) and not self.repeats_lost(slot):
            self._failed(event._replace(reason=event.reason or LOST_WITHOUT_REASON))
            return
        requeues = self.requeues.get(slot, 0) + 1
        if requeues > self.facts.requeue_limit:
            cause = f"{event.reason or LOST_WITHOUT_REASON}; it was lost {requeues} times, which is the limit"
            self.reasons[slot] = cause
            self._failed(event._replace(reason=cause))
            return
        self.requeues[slot] = requeues
        self.step(slot, SCHEDULED, event.at, event.reason or LOST_WITHOUT_REASON)

    def _may_have_run(self, slot: int, outcome: Outcome) -> bool:
        """Has the task's own code begun, as far as anybody can know? `REFUSED` says that its process was never told to go."""
        return self.state[slot] == RUNNING and outcome is not Outcome.REFUSED

    def repeats_lost(self, slot: int) -> bool:
        """Is an attempt of it that started and was lost repeated in the same try?"""
        chosen = self.topology.tasks[self.instances.task(slot)].lost_attempts
        return self.facts.repeat_lost if chosen is None else chosen == REPEAT

    def _deferred(self, event: e.AttemptEnded) -> None:
        """It waits without an attempt. Whoever keeps what it waits for says when that is over; `due` is the latest moment."""
        slot = event.slot
        self.step(slot, DEFERRED, event.at, event.reason or "the task waits without a process")
        if event.reschedule_at is not None:
            self.due[slot] = event.reschedule_at

    def _wait_over(self, event: e.WaitOver) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] != DEFERRED:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
        elif event.outcome is None:
            self.step(slot, SCHEDULED, event.at, event.reason or "what it waited for has come")
        else:
            if event.reason is not None:
                self.reasons[slot] = event.reason
            self._OUTCOMES[event.outcome](self, e.AttemptEnded(slot, event.fence, event.outcome, event.at, event.reason))

    _OUTCOMES = {
        Outcome.SUCCESS: _succeeded,
        Outcome.FAILED: _failed,
        Outcome.FAILED_FINAL: _failed_for_good,
        Outcome.SKIPPED: _skipped,
        Outcome.RESCHEDULE: _rescheduled,
        Outcome.DEFERRED: _deferred,
        Outcome.LOST: _lost,
        Outcome.REFUSED: _lost,
        Outcome.MISSING: _rescheduled,
    }

    def _attempt_vanished(self, event: e.AttemptVanished) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] not in _LIVE:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if slot in self.gone:
            integrity.attempt_ended(self, slot, event.at, event.reason or "was lost")
        elif self.state[slot] == RESTARTING:
            self.step(slot, NONE, event.at, "its attempt was stopped because it was cleared")
            self.dirty.add(slot)
        else:
            self.reasons[slot] = event.reason or LOST_WITHOUT_REASON
            self._lost(e.AttemptEnded(slot, event.fence, Outcome.LOST, event.at, self.reasons[slot]))

    def _timer_due(self, event: e.TimerDue) -> None:
        slot = event.slot
        if self.due.get(slot, NEVER) and self.due[slot] <= event.at and self.state[slot] in (RETRY, RESCHEDULE):
            self.dirty.add(slot)
        else:
            self._refuse(slot, self.fence[slot], "nothing is due")

    def _past_changed(self, event: e.PastChanged) -> None:
        self.past_why[event.task] = event.why
        if not event.allowed:
            self.hold_back(event.task)
            return
        self.past_allowed[event.task] = True
        self.look_at(event.task)

    def hold_back(self, task: int) -> None:
        """The past does not let this task go on: nor what was decided before and did not fit into a full batch."""
        self.past_allowed[task] = False
        if self.backlog:
            kept = [one for one in self.backlog if self.instances.task(one[0]) != task]
            self.backlog.clear()
            self.backlog.extend(kept)
        self.look_at(task)

    def _run_now(self, event: e.RunNow) -> None:
        """From here on it is like any other that is scheduled: only what could not be scheduled yet is ever examined."""
        slot = event.slot
        task = self.instances.task(slot)
        if self.ended or self.state[slot] not in _SCHEDULABLE:
            cause = "its run has ended" if self.ended else f"it is {self.task_state(slot).value}"
            self._refuse(slot, self.fence[slot], cause)
        elif task in self.growing or (task in self.topology.domain_of and task not in self.instances.of):
            self._refuse(slot, self.fence[slot], "it is mapped, and its task instances are not all there yet")
        else:
            self._apply_verdict(slot, SUCCESS if self.topology.tasks[task].empty else SCHEDULED, event.at, event.cause)

    def _run_timed_out(self, event: e.RunTimedOut) -> None:
        if self.ended:
            self._refuse(NO_TASK, 0, "the run has ended")
            return
        bulk_end.begin(self, "timeout", NO_TASK, "the run took longer than its dagrun_timeout", range(self.instances.total))

    # --- examining ----------------------------------------------------------------------------------------------

    def _settle(self, at: int, waves: int) -> None:
        backlog = self.backlog
        if not bulk_end.go_on(self, at) or self.ended or waves <= 0:
            return
        while True:
            if (self.growing or self.grown) and not mapping.grow(self, at):
                return
            while backlog:
                if not self.room():
                    return
                slot, code, cause = backlog.popleft()
                if self.state[slot] in _SCHEDULABLE:
                    self._apply_verdict(slot, code, at, cause)
            if not self.dirty and not self.wide:
                break
            if waves <= 0:
                return
            waves -= 1
            self._examine_wave(at)
        verdict_on_run = run_verdict.decide(self, at)
        if verdict_on_run is not None:
            self.end(verdict_on_run.success, at, verdict_on_run.why, verdict_on_run.word)

    def room(self) -> int:
        """Rows that this call may still write, roughly."""
        return max(0, self.budget - len(self.out) - self.spent)

    def _examine_wave(self, at: int) -> None:
        """Judge all that could have changed against the states as they are."""
        wave, wide = sorted(self.dirty), sorted(self.wide)
        self.dirty.clear()
        self.wide.clear()
        for task in wide:  # first: where a list has grown, those behind it wait for more instances than before
            self._grow_again(task)
        for slot in wave:
            if not wide or self.instances.task(slot) not in wide:
                verdict = self.examine(slot, at)
                if verdict is not None:
                    self.backlog.append(verdict)
        for task in wide:
            self.examine_all(task, at)

    def _grow_again(self, task: int) -> None:
        """After a clear, the list of an expanded task may be longer than it was."""
        if task in self.growing or not self._may_follow(task):
            return
        have, want = len(self.instances.of[task]), expansion.length(self, self.topology.domains[self.topology.domain_of[task]])
        if want > have:
            mapping.widen(self, task, have, want, first=False)
            mapping.begin_to_grow(self, task, want)

    def examine_all(self, task: int, at: int) -> None:
        """Every instance of an expanded task, if what they have in common lets any of them go on."""
        if task in self.growing or not self._may_follow(task):
            return
        slots = self.instances.of[task]
        want = expansion.length(self, self.topology.domains[self.topology.domain_of[task]])
        if 0 <= want < len(slots):
            mapping.look_inside(self, task)
            for slot in slots[want:]:
                if self.state[slot] in _SCHEDULABLE:
                    self.backlog.append((slot, REMOVED, f"its list has {want} elements now"))
            slots = slots[:want]
        for slot in slots:
            verdict = self.examine(slot, at)
            if verdict is not None:
                self.backlog.append(verdict)

    def _may_follow(self, task: int) -> bool:
        """Is there anything that all instances have in common that may move them?

        Their counters are the same but for those of the own map index; one that is missing there can only make them wait.
        """
        topology = self.topology
        if topology.has_setups or task in self.skips or self.skips_at or task in topology.impatient:
            return True  # an impatient one may follow its own map index alone
        n, s, k, f, u, r = self.tally_of_all(task)
        verdict = DECIDERS[topology.rules[task]](n + (task in topology.inner_up), s, k, f, u, r) if n else RUN
        if task in topology.inner_up and verdict == WAIT and s + k + f + u + r >= n:
            return True
        return expansion.decide(self, topology.domains[topology.domain_of[task]], verdict) != WAIT

    def _apply_verdict(self, slot: int, code: int, at: int, cause: str) -> None:
        waits = code == DEFERRED
        if waits or code in (SCHEDULED, SUCCESS):
            if slot in self.resume:
                self.resume.discard(slot)
            else:
                self.tries[slot] += 1
                self.requeues.pop(slot, None)
                self.started_at[slot] = NEVER if code == SCHEDULED else at
        if waits:
            self.spent += 1  # the row that says for what
            self.reasons.pop(slot, None)
            self.due.pop(slot, None)
        self.step(slot, code, at, cause, new_fence=waits)

    def examine(self, slot: int, at: int) -> tuple[int, int, str] | None:
        """What this task instance becomes now; None: it waits. Mirrors the order of Airflow's checks."""
        code = self.state[slot]
        if code not in _SCHEDULABLE or (code != NONE and self.due.get(slot, NEVER) > at):
            return None
        topology = self.topology
        task = self.instances.task(slot)
        if task in self.growing:
            return None
        past_open = not topology.has_past or past.allows(self, task)
        if (self.skips or self.skips_at) and branch_memory.skips(self, slot, task):
            if past_open or not topology.tasks[task].wait_for_past_depends_before_skipping:
                return slot, SKIPPED, branch_memory.sentence(self, slot)
            return None
        tally = self.tally(slot)
        verdict = DECIDERS[topology.rules[task]](*tally) if tally[0] else RUN
        if topology.has_setups and topology.up_at[task] != topology.up_at[task + 1]:
            verdict = setups.decide(self, slot, verdict)
        domain = topology.domain_of.get(task)
        if domain is not None:
            verdict = expansion.decide(self, topology.domains[domain], verdict)
        if verdict == WAIT:
            return None
        if verdict == RUN:
            if not past_open:
                return None
            if domain is not None and task not in self.instances.of:
                return mapping.begin(self, task, domain)
            if topology.tasks[task].empty:
                return slot, SUCCESS, "it has nothing to do"
            if topology.waits and topology.only_waits(task, self.facts.logical_date):
                return slot, DEFERRED, "its dependencies are met, and all that it does is to wait"
            return slot, SCHEDULED, "its dependencies are met"
        if verdict == SKIPPED and not past_open and topology.tasks[task].wait_for_past_depends_before_skipping:
            return None
        return slot, verdict, "its upstream tasks ended so that its trigger rule cannot be met"

    def look_at(self, task: int) -> None:
        """Examine a task, all instances of it."""
        if task in self.instances.of:
            self.wide.add(task)
        else:
            self.dirty.add(task)

    def touch(self, slot: int) -> None:
        """Its row is about to change: remember what the store holds."""
        if slot not in self.touched:
            self.touched[slot] = (self.state[slot], self.fence[slot])

    # --- stepping -----------------------------------------------------------------------------------------------

    def step(self, slot: int, code: int, at: int, cause: str, *, new_fence: bool = False) -> None:
        before = self.state[slot]
        if code not in _LEGAL[before]:
            raise AssertionError(
                f"run {self.facts.number}, task {self.name(slot)}: "
                f"{TASK_STATES[before].value} → {TASK_STATES[code].value} is no legal step ({cause})"
            )
        self.touch(slot)
        if new_fence:
            self.fence[slot] += 1
        self.state[slot] = code
        if self.versions and code not in _COUNTED:
            self.versions.pop(slot, None)
        if before in _FINISHED:
            self._count(slot, before, -1)
            self.unfinished += 1
        elif before != NONE:
            self.active -= 1
        if code in _FINISHED:
            self._count(slot, code, 1)
            self.unfinished -= 1
            self.ended_at[slot] = at
            self.due.pop(slot, None)
            self.requeues.pop(slot, None)
            self.resume.discard(slot)
        elif code != NONE:
            self.active += 1
            if code in (SCHEDULED, QUEUED, RUNNING):
                self.due.pop(slot, None)
        self.out.append(e.Move(slot, TASK_STATES[before], TASK_STATES[code], self.fence[slot], at, cause))

    def _count(self, slot: int, code: int, step: int) -> None:
        topology, counter = self.topology, self.counts[code]
        if self.instances.of:
            self._count_mapped(slot, code, step)
        else:
            children = topology.downstream(slot)
            for child in children:
                counter[child] += step
            if step > 0:
                self.dirty.update(children)
        if topology.has_setups:
            setups.follow(self, slot, step)
        if step > 0 and slot in topology.providing and not self.instances.of.get(slot):
            self._list_provided(slot, code)

    def _count_mapped(self, slot: int, code: int, step: int) -> None:
        """Likewise, where anything is expanded: inside a mapped group only the own map index counts."""
        topology, instances, counter = self.topology, self.instances, self.counts[code]
        task = instances.task(slot)
        index = instances.index(slot)
        for child in topology.downstream(task):
            if index >= 0 and task in topology.inner_up.get(child, ()):
                if child in topology.impatient:
                    inside = self.inside.setdefault(child, {})
                    inside[code] = inside.get(code, 0) + step
                if step > 0:
                    self._look_inside(child, index)
                continue
            counter[child] += step
            if step > 0:
                self.look_at(child)
        if step > 0 and index >= 0 and task in topology.providing:
            self.dirty.update(self.listless.intersection(topology.providing[task]))

    def _look_inside(self, child: int, index: int) -> None:
        """A task instance of this map index has ended in a mapped group: one of `child` may follow, or all of it may."""
        expanded = self.instances.of
        if child not in expanded:
            if child in self.topology.impatient:
                self.dirty.add(child)
        elif index < len(expanded[child]):
            self.dirty.add(expanded[child][index])

    def _list_provided(self, task: int, code: int) -> None:
        """Tasks that are mapped over it go on, or fail or are skipped with it."""
        if code == SUCCESS:
            self.dirty.update(self.listless.intersection(self.topology.providing[task]))
        else:
            for other in self.topology.providing[task]:
                self.look_at(other)

    def take_away(self, slot: int, code: int, at: int, cause: str) -> None:
        """Give a task instance a state although an attempt may live: that attempt is fenced off and stopped."""
        live = self.state[slot] in _LIVE
        if live:
            self.out.append(e.Stop(slot, self.fence[slot], cause))
        self.reasons[slot] = cause
        self.step(slot, code, at, cause, new_fence=live)

    # --- branches, and the end ------------------------------------------------------------------------------

    def remember_branch(self, slot: int, branch: Branch) -> set[int]:
        """Tasks that the decision skips. The direct ones are remembered: they are skipped again after a clear.

        In a mapped group each instance decides for the instances of its own map index in the group, and for nobody else.
        """
        topology, task, index = self.topology, self.instances.task(slot), self.instances.index(slot)
        skipped = branch_memory.skipped_by(topology, task, branch)
        if index != UNEXPANDED and not topology.tasks[task].mapped:
            skipped = {other for other in skipped if joined(topology, task, other)}
        for other in skipped.intersection(topology.downstream(task)):
            if index == UNEXPANDED:
                self.skips.setdefault(other, set()).add(slot)
            else:
                self.skips_at.setdefault((other, index), set()).add(slot)
        return skipped

    def end(self, success: bool, at: int, cause: str, word: str) -> None:
        self.ended = True
        self.dirty.clear()
        self.wide.clear()
        self.verification = None
        self.growing.clear()
        self.grown.clear()
        self.backlog.clear()
        self.sweeps.clear()
        self.out.append(e.RunEnds(success, at, cause, word))

    def _refuse(self, slot: int, fence: int, cause: str) -> None:
        self.out.append(e.Refusal(slot, fence, cause))

    def _why_stale(self, slot: int, fence: int) -> str:
        if fence != self.fence[slot]:
            return f"it came from attempt {fence}, but attempt {self.fence[slot]} is the current one"
        return f"the task instance is {self.task_state(slot).value}"
