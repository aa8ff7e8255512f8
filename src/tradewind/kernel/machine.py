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

What takes many task instances away at once (fail_fast, a short circuit, dagrun_timeout) is a *sweep*, bounded in the same
way. While one is under way nothing else is examined. It outlives a restart: the row of the task that caused it keeps its
`resume` mark until the sweep is through, and a timeout is simply noticed again.

A mapped task is one task instance until its dependencies are met and the lengths of its lists are known; then it grows to so
many (`instances`, `expansion`), a bounded number a call, and is not examined while it grows. All instances of a task share the
counters of their upstream tasks, so a finish still costs the children and not their instances: these are looked at, all
together, when the common counters say that something may follow. Only inside a mapped group do instances meet index by index.

The machine is also the one truth about the rows: `row(slot)` is what the store has to hold after the decisions so far, and
`touched` remembers what it held before, which is the guard of the write.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tradewind.kernel import events as e
from tradewind.kernel import expansion
from tradewind.kernel.instances import UNEXPANDED, Instances
from tradewind.kernel.retry import retry_delay
from tradewind.kernel.rules import branch_memory, past, run_verdict, setups, task_dates
from tradewind.kernel.topology import RULE_ALWAYS, Topology
from tradewind.kernel.trigger_rules import DECIDERS, RUN, WAIT
from tradewind.model.states import (
    FINISHED,
    SCHEDULABLE,
    TASK_STATES,
    TASK_TRANSITIONS,
    Outcome,
    TaskState,
)
from tradewind.wire.messages import Branch

_S = TaskState
_NONE, _SCHEDULED, _QUEUED, _RUNNING = _S.NONE.code, _S.SCHEDULED.code, _S.QUEUED.code, _S.RUNNING.code
_SUCCESS, _FAILED, _SKIPPED = _S.SUCCESS.code, _S.FAILED.code, _S.SKIPPED.code
_UPSTREAM_FAILED, _REMOVED, _RESTARTING = _S.UPSTREAM_FAILED.code, _S.REMOVED.code, _S.RESTARTING.code
_RETRY, _RESCHEDULE, _DEFERRED = _S.UP_FOR_RETRY.code, _S.UP_FOR_RESCHEDULE.code, _S.DEFERRED.code

_FINISHED = frozenset(state.code for state in FINISHED)
_SCHEDULABLE = frozenset(state.code for state in SCHEDULABLE)
_LIVE = frozenset({_QUEUED, _RUNNING, _RESTARTING})
_LEGAL = tuple(frozenset(after.code for after in TASK_TRANSITIONS[before]) for before in TASK_STATES)

_NEEDS_A_START = frozenset({Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE, Outcome.DEFERRED})
"""What an attempt whose start was never accepted cannot have come to."""

NEVER = 0
"""A moment that has not come: rows hold NULL, arrays hold 0."""

NO_TASK = -1
"""In the place of a slot: the run itself."""

EVERY_WAVE = 2**62
"""Settle until nothing moves."""


class TaskRow(NamedTuple):
    """The mutable part of a task instance's row. Moments are microseconds; 0 stands for NULL."""

    slot: int
    state: int
    fence: int
    try_number: int
    max_tries: int
    resume: bool
    """The next attempt belongs to the same try: it asked to be called again later."""
    requeues: int
    due_at: int
    queued_at: int
    started_at: int
    ended_at: int
    reason: str | None
    branch: Branch | None
    task_id: str = ""
    map_index: int = UNEXPANDED
    length: int | None = None
    """Of a success: elements that it offers to mapped tasks."""


class Sweep(NamedTuple):
    """Task instances that are taken away, a bounded number a call."""

    kind: str
    """"fail_fast", "branch", "timeout" or "dates"."""
    source: int
    """The task that caused it; −1 is the run itself."""
    cause: str
    slots: deque[int]
    """Those that are left to look at."""


class RunFacts(NamedTuple):
    """What the machine has to know of its run besides the topology."""

    number: int
    dag_id: str
    logical_date: int | None
    requeue_limit: int = 3
    budget: int = 2000
    """Decisions per call, roughly."""
    doomed: str | None = None
    """A person failed the run and only its teardowns are left to run: why it fails, whatever they come to."""


class RunMachine:
    """One running run. `apply` is its only way to change."""

    __slots__ = (
        "_handlers",
        "_out",
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
        "growing",
        "grown",
        "instances",
        "lengths",
        "listless",
        "max_tries",
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
            code: array("i", bytes(4 * count)) for code in (_SUCCESS, _SKIPPED, _FAILED, _UPSTREAM_FAILED, _REMOVED)
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
        self.sweeps: deque[Sweep] = deque()
        self.touched: dict[int, tuple[int, int]] = {}
        self._out: list[e.Decision] = []
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
    def from_rows(cls, topology: Topology, facts: RunFacts, rows: Iterable[TaskRow]) -> RunMachine:
        """The machine of a run that is under way. Everything that could be scheduled is dirty: call `settle`."""
        machine = cls(topology, facts)
        for row in rows:
            slot = row.slot
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
            if row.reason is not None and (row.resume or row.state not in _FINISHED):
                machine.reasons[slot] = row.reason
            if row.resume and row.ended_at:
                machine.ended_at[slot] = row.ended_at
        state = machine.state
        machine._go_on_growing()
        for slot in range(machine.instances.total):
            code = state[slot]
            if code in _FINISHED:
                machine.unfinished -= 1
                machine._count(slot, code, 1)
                if code == _SUCCESS and slot in machine.branches:
                    machine._remember_branch(slot, machine.branches[slot])
            elif code != _NONE:
                machine.active += 1
            if code in _SCHEDULABLE:
                machine.look_at(machine.instances.task(slot))
        for slot in [slot for slot in machine.resume if state[slot] in _FINISHED]:
            machine._sweep_again(slot)
        return machine

    def _place(self, row: TaskRow) -> None:
        """Make room for a row that is not of the definition, or was expanded. Rows come by slot."""
        instances, slot = self.instances, row.slot
        if slot < instances.count:
            if row.map_index >= 0:
                instances.first(slot)
            return
        if slot != instances.total:
            raise AssertionError(f"run {self.facts.number}: row {slot} follows row {instances.total - 1}")
        self._new_instance(self.topology.index[row.task_id], row.map_index)

    def _go_on_growing(self) -> None:
        """What was cut short by a restart; and how many instances those behind it have to wait for."""
        for task, slots in self.instances.of.items():
            want = len(slots)
            if any(self.state[slot] == _NONE for slot in slots):
                want = max(want, expansion.length(self, self.topology.domains[self.topology.domain_of[task]]))
                if want > len(slots):
                    self.growing[task] = want
            self._widen(task, 1, want)

    # --- looking ------------------------------------------------------------------------------------------------

    def task_state(self, slot: int) -> TaskState:
        return TASK_STATES[self.state[slot]]

    def name(self, slot: int) -> str:
        """Task id and map index, for people."""
        index = self.instances.index(slot)
        task_id = self.topology.ids[self.instances.task(slot)]
        return task_id if index == UNEXPANDED else f"{task_id}[{index}]"

    def retries(self, slot: int) -> int:
        """Retries allowed to this task instance (more than the definition says after a clear)."""
        return self.max_tries.get(slot, self.topology.retries[self.instances.task(slot)])

    def tally(self, slot: int) -> tuple[int, int, int, int, int, int]:
        """(n, s, k, f, u, r): see `trigger_rules`."""
        topology = self.topology
        task = slot if slot < topology.count else self.instances.task(slot)
        tally = self.tally_of_all(task)
        if task in topology.inner_up and task in self.instances.of:
            return self._with_own_index(tally, slot, task)
        return tally

    def tally_of_all(self, task: int) -> tuple[int, int, int, int, int, int]:
        """The part of the tally that all instances of a task share."""
        topology, counts = self.topology, self.counts
        return (
            topology.up_at[task + 1] - topology.up_at[task] + (self.wider.get(task, 0) if self.wider else 0),
            counts[_SUCCESS][task],
            counts[_SKIPPED][task],
            counts[_FAILED][task],
            counts[_UPSTREAM_FAILED][task],
            counts[_REMOVED][task],
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
                s += code == _SUCCESS
                k += code == _SKIPPED
                f += code == _FAILED
                u += code == _UPSTREAM_FAILED
                r += code == _REMOVED
        return n, s, k, f, u, r

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
            self.topology.ids[self.instances.task(slot)],
            self.instances.index(slot),
            self.lengths.get(slot),
        )

    @property
    def unsettled(self) -> bool:
        """More decisions are waiting: call `settle` again, after a commit."""
        return bool(self.sweeps or self.backlog or self.dirty or self.wide or self.growing or self.grown) and not self.ended

    # --- changing -----------------------------------------------------------------------------------------------

    def apply(self, event: e.Event, *, settle: bool = True) -> list[e.Decision]:
        """Everything that follows from `event`. A `Refusal` means that it does not apply and changed nothing.

        With `settle` False only its immediate effects follow: for the first events of a batch, before one `settle`. A task
        with a thousand upstream tasks that end together is then examined once, not a thousand times.
        """
        out: list[e.Decision] = []
        self._out, self.spent = out, 0
        self._handlers[type(event)](event)
        if not self.ended:
            self._sweep(event.at)
        if settle and not self.ended:
            self._settle(event.at, self.waves)
        return out

    def settle(self, at: int, waves: int | None = None) -> list[e.Decision]:
        """Go on with what a full call left over, or begin after `from_rows`; at most `waves` waves (0: sweeps only)."""
        out: list[e.Decision] = []
        self._out, self.spent = out, 0
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
        self.dirty.update(i for i in range(topology.count) if starts[i] == starts[i + 1] or rules[i] == RULE_ALWAYS)
        moment = self.facts.logical_date
        absent = dict(task_dates.outside(topology, moment)) if moment is not None else {}
        for domain in topology.domains:
            if domain.fixed:
                for task in domain.tasks:
                    if task not in absent and task not in self.instances.of and self.state[task] == _NONE:
                        self.growing[task] = domain.fixed
        for slot, why in absent.items():
            self.sweeps.append(Sweep("dates", NO_TASK, why, deque((slot,))))

    def _admitted(self, event: e.Admitted) -> None:
        slot = event.slot
        if self.state[slot] != _SCHEDULED:
            self._refuse(slot, self.fence[slot], f"it is {self.task_state(slot).value}, not scheduled")
            return
        self.queued_at[slot] = event.at
        self.reasons.pop(slot, None)
        self._set(slot, _QUEUED, event.at, "a slot was free", new_fence=True)

    def _attempt_started(self, event: e.AttemptStarted) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] != _QUEUED:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if self.started_at[slot] == NEVER:
            self.started_at[slot] = event.at
        self._set(slot, _RUNNING, event.at, "started by its worker")

    def _attempt_ended(self, event: e.AttemptEnded) -> None:
        slot, code = event.slot, self.state[event.slot]
        if event.fence != self.fence[slot] or code not in _LIVE:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if code == _RESTARTING:
            self._set(slot, _NONE, event.at, "its attempt was stopped because it was cleared")
            self.dirty.add(slot)
            return
        if code == _QUEUED and event.outcome in _NEEDS_A_START:
            self._refuse(slot, event.fence, "a result came from an attempt whose start was never accepted")
            return
        if event.reason is not None:
            self.reasons[slot] = event.reason
        self._OUTCOMES[event.outcome](self, event)

    def _succeeded(self, event: e.AttemptEnded) -> None:
        slot = event.slot
        if event.branch is not None:
            self.branches[slot] = event.branch
        if event.length is not None:
            self.lengths[slot] = event.length
        self._set(slot, _SUCCESS, event.at, event.reason or "its worker reported success")
        if event.branch is not None:
            self._apply_branch(slot, event.branch)

    def _skipped(self, event: e.AttemptEnded) -> None:
        self._set(event.slot, _SKIPPED, event.at, event.reason or "the task skipped itself")

    def _rescheduled(self, event: e.AttemptEnded) -> None:
        slot = event.slot
        self.resume.add(slot)
        self._set(slot, _RESCHEDULE, event.at, event.reason or "the sensor asked to be called again later")
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
        self._set(slot, _RETRY, event.at, event.reason or "the task failed")
        self._wake(slot, event.at + delay, event.at)

    def _wake(self, slot: int, due: int, at: int) -> None:
        """Examine it again at `due`."""
        self.due[slot] = due
        if due > at:
            self._out.append(e.Timer(slot, due))
        else:
            self.dirty.add(slot)

    def _failed_for_good(self, event: e.AttemptEnded) -> None:
        self._set(event.slot, _FAILED, event.at, event.reason or "the task failed")
        if self.topology.fail_fast:
            self._fail_fast(event.slot)

    def _lost(self, event: e.AttemptEnded) -> None:
        """The worker, not the task, failed: the same try is dispatched again, a bounded number of times."""
        slot = event.slot
        requeues = self.requeues.get(slot, 0) + 1
        if requeues > self.facts.requeue_limit:
            cause = f"{event.reason or 'the attempt was lost'}; it was lost {requeues} times, which is the limit"
            self.reasons[slot] = cause
            self._failed(event._replace(reason=cause))
            return
        self.requeues[slot] = requeues
        self._set(slot, _SCHEDULED, event.at, event.reason or "its worker was lost")

    def _deferred(self, event: e.AttemptEnded) -> None:
        """It waits without an attempt. Whoever keeps what it waits for says when that is over; `due` is the latest moment."""
        slot = event.slot
        self._set(slot, _DEFERRED, event.at, event.reason or "the task waits without a process")
        if event.reschedule_at is not None:
            self.due[slot] = event.reschedule_at

    def _wait_over(self, event: e.WaitOver) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] != _DEFERRED:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
        elif event.outcome is None:
            self._set(slot, _SCHEDULED, event.at, event.reason or "what it waited for has come")
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
    }

    def _attempt_vanished(self, event: e.AttemptVanished) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] not in _LIVE:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if self.state[slot] == _RESTARTING:
            self._set(slot, _NONE, event.at, "its attempt was stopped because it was cleared")
            self.dirty.add(slot)
        else:
            self._lost(e.AttemptEnded(slot, event.fence, Outcome.LOST, event.at, event.reason or None))

    def _timer_due(self, event: e.TimerDue) -> None:
        slot = event.slot
        if self.due.get(slot, NEVER) and self.due[slot] <= event.at and self.state[slot] in (_RETRY, _RESCHEDULE):
            self.dirty.add(slot)
        else:
            self._refuse(slot, self.fence[slot], "nothing is due")

    def _past_changed(self, event: e.PastChanged) -> None:
        self.past_allowed[event.task] = event.allowed
        self.past_why[event.task] = event.why
        self.look_at(event.task)

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
            self._apply_verdict(slot, _SUCCESS if self.topology.tasks[task].empty else _SCHEDULED, event.at, event.cause)

    def _run_timed_out(self, event: e.RunTimedOut) -> None:
        if self.ended:
            self._refuse(NO_TASK, 0, "the run has ended")
            return
        self._begin_sweep("timeout", NO_TASK, "the run took longer than its dagrun_timeout", range(self.instances.total))

    # --- examining ----------------------------------------------------------------------------------------------

    def _settle(self, at: int, waves: int) -> None:
        backlog = self.backlog
        if not self._sweep(at) or self.ended or waves <= 0:
            return
        while True:
            if (self.growing or self.grown) and not self._grow(at):
                return
            while backlog:
                if not self._room():
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
        verdict_on_run = run_verdict.decide(self)
        if verdict_on_run is not None:
            self._end(verdict_on_run.success, at, verdict_on_run.why, verdict_on_run.word)

    def _room(self) -> int:
        """Rows that this call may still write, roughly."""
        return max(0, self.budget - len(self._out) - self.spent)

    def _examine_wave(self, at: int) -> None:
        """Judge all that could have changed against the states as they are."""
        wave, wide = sorted(self.dirty), sorted(self.wide)
        self.dirty.clear()
        self.wide.clear()
        for slot in wave:
            if not wide or self.instances.task(slot) not in wide:
                verdict = self._examine(slot, at)
                if verdict is not None:
                    self.backlog.append(verdict)
        for task in wide:
            self._examine_all(task, at)

    def _examine_all(self, task: int, at: int) -> None:
        """Every instance of an expanded task, if what they have in common lets any of them go on."""
        if task in self.growing or not self._may_follow(task):
            return
        slots = self.instances.of[task]
        want = expansion.length(self, self.topology.domains[self.topology.domain_of[task]])
        if want > len(slots):  # its list is longer than it was before a clear
            self._widen(task, len(slots), want, first=False)
            self._begin_to_grow(task, want)
            return
        if 0 <= want < len(slots):
            self._look_inside(task)
            for slot in slots[want:]:
                if self.state[slot] in _SCHEDULABLE:
                    self.backlog.append((slot, _REMOVED, f"its list has {want} elements now"))
            slots = slots[:want]
        for slot in slots:
            verdict = self._examine(slot, at)
            if verdict is not None:
                self.backlog.append(verdict)

    def _may_follow(self, task: int) -> bool:
        """Is there anything that all instances have in common that may move them?

        Their counters are the same but for those of the own map index; one that is missing there can only make them wait.
        """
        topology = self.topology
        if topology.has_setups or task in self.skips or self.skips_at:
            return True
        n, s, k, f, u, r = self.tally_of_all(task)
        verdict = DECIDERS[topology.rules[task]](n + (task in topology.inner_up), s, k, f, u, r) if n else RUN
        if task in topology.inner_up and verdict == WAIT and s + k + f + u + r >= n:
            return True
        return expansion.decide(self, topology.domains[topology.domain_of[task]], verdict) != WAIT

    def _apply_verdict(self, slot: int, code: int, at: int, cause: str) -> None:
        waits = code == _DEFERRED
        if waits or code in (_SCHEDULED, _SUCCESS):
            if slot in self.resume:
                self.resume.discard(slot)
            else:
                self.tries[slot] += 1
                self.requeues.pop(slot, None)
                self.started_at[slot] = NEVER if code == _SCHEDULED else at
        if waits:
            self.spent += 1  # the row that says for what
            self.reasons.pop(slot, None)
            self.due.pop(slot, None)
        self._set(slot, code, at, cause, new_fence=waits)

    def _examine(self, slot: int, at: int) -> tuple[int, int, str] | None:
        """What this task instance becomes now; None: it waits. Mirrors the order of Airflow's checks."""
        code = self.state[slot]
        if code not in _SCHEDULABLE or (code != _NONE and self.due.get(slot, NEVER) > at):
            return None
        topology = self.topology
        task = slot if slot < topology.count else self.instances.task(slot)
        if task in self.growing:
            return None
        past_open = not topology.has_past or past.allows(self, task)
        if (self.skips or self.skips_at) and branch_memory.skips(self, slot, task):
            if past_open or not topology.tasks[task].wait_for_past_depends_before_skipping:
                return slot, _SKIPPED, branch_memory.sentence(self, slot)
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
                return self._expand(task, domain)
            if topology.tasks[task].empty:
                return slot, _SUCCESS, "it has nothing to do"
            if topology.waits and topology.only_waits(task, self.facts.logical_date):
                return slot, _DEFERRED, "its dependencies are met, and all that it does is to wait"
            return slot, _SCHEDULED, "its dependencies are met"
        if verdict == _SKIPPED and not past_open and topology.tasks[task].wait_for_past_depends_before_skipping:
            return None
        return slot, verdict, "its upstream tasks ended so that its trigger rule cannot be met"

    # --- growing ------------------------------------------------------------------------------------------------

    def _expand(self, task: int, domain: int) -> tuple[int, int, str] | None:
        """The dependencies of a mapped task are met: it grows, or ends as it stands."""
        length = expansion.length(self, self.topology.domains[domain])
        if length == expansion.NOT_YET:
            self.listless.add(task)
            return None
        if length == expansion.NO_LIST:
            return task, _UPSTREAM_FAILED, "a task that it is mapped over ended without a list"
        if length == 0:
            return task, _SKIPPED, "the list that it is mapped over is empty"
        self._begin_to_grow(task, length)
        return None

    def _begin_to_grow(self, task: int, length: int) -> None:
        self.growing[task] = length

    def _grow(self, at: int) -> bool:
        """Add instances to mapped tasks; whether all have theirs. Then they are examined, before anything is applied."""
        instances = self.instances
        for task, length in sorted(self.growing.items()):
            if task not in instances.of:
                instances.first(task)
                self._touch(task)
                self._widen(task, 1, length)
                self.spent += 1
                have = 1
            else:
                have = len(instances.of[task])
                if task not in self.topology.domain_of:
                    raise AssertionError(f"{self.topology.ids[task]} is not mapped")
            count = min(length - have, self._room())
            if count > 0:
                first = instances.total
                for index in range(have, have + count):
                    slot = self._new_instance(task, index)
                    for sweep in self.sweeps:
                        if sweep.kind in ("fail_fast", "timeout"):
                            sweep.slots.append(slot)
                self.spent += count
                self._out.append(e.Expanded(task, first, have, count, length))
                have += count
            elif have == 1 and length == 1:
                self._out.append(e.Expanded(task, instances.total, 1, 0, 1))
            if have < length:
                return False
            del self.growing[task]
            self.grown.append(task)
            self._look_inside(task)
        grown, self.grown = self.grown, []
        for task in grown:
            self._examine_all(task, at)
        return True

    def _new_instance(self, task: int, index: int) -> int:
        slot = self.instances.add(task, index)
        self.state.append(_NONE)
        self.fence.append(0)
        self.tries.append(0)
        self.queued_at.append(NEVER)
        self.started_at.append(NEVER)
        self.unfinished += 1
        return slot

    def _widen(self, task: int, before: int, after: int, *, first: bool = True) -> None:
        """Those behind a mapped task wait for so many instances instead of so many before; its own index counts apart.

        `first`: it was not expanded before, and counted as one.
        """
        topology = self.topology
        for child in topology.downstream(task):
            step = after - before
            if task in topology.inner_up.get(child, ()):
                step = -1 if first else 0
            if step:
                self.wider[child] = self.wider.get(child, 0) + step

    def _look_inside(self, task: int) -> None:
        """The tasks behind it in its group may be concerned."""
        for child in self.topology.downstream(task):
            if task in self.topology.inner_up.get(child, ()):
                self.look_at(child)

    def look_at(self, task: int) -> None:
        """Examine a task, all instances of it."""
        if task in self.instances.of:
            self.wide.add(task)
        else:
            self.dirty.add(task)

    def _touch(self, slot: int) -> None:
        """Its row is about to change: remember what the store holds."""
        if slot not in self.touched:
            self.touched[slot] = (self.state[slot], self.fence[slot])

    # --- stepping -----------------------------------------------------------------------------------------------

    def _set(self, slot: int, code: int, at: int, cause: str, *, new_fence: bool = False) -> None:
        before = self.state[slot]
        if code not in _LEGAL[before]:
            raise AssertionError(
                f"run {self.facts.number}, task {self.name(slot)}: "
                f"{TASK_STATES[before].value} → {TASK_STATES[code].value} is no legal step ({cause})"
            )
        self._touch(slot)
        if new_fence:
            self.fence[slot] += 1
        self.state[slot] = code
        if before in _FINISHED:
            self._count(slot, before, -1)
            self.unfinished += 1
        elif before != _NONE:
            self.active -= 1
        if code in _FINISHED:
            self._count(slot, code, 1)
            self.unfinished -= 1
            self.ended_at[slot] = at
            self.due.pop(slot, None)
            self.requeues.pop(slot, None)
            self.resume.discard(slot)
        elif code != _NONE:
            self.active += 1
            if code in (_SCHEDULED, _QUEUED, _RUNNING):
                self.due.pop(slot, None)
        self._out.append(e.Move(slot, TASK_STATES[before], TASK_STATES[code], self.fence[slot], at, cause))

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
        expanded = instances.of
        index = instances.index(slot)
        for child in topology.downstream(task):
            if index >= 0 and task in topology.inner_up.get(child, ()):
                if step > 0 and child in expanded and index < len(expanded[child]):
                    self.dirty.add(expanded[child][index])
                continue
            counter[child] += step
            if step > 0:
                self.look_at(child)
        if step > 0 and index >= 0 and task in topology.providing:
            self.dirty.update(self.listless.intersection(topology.providing[task]))

    def _list_provided(self, task: int, code: int) -> None:
        """Tasks that are mapped over it go on, or fail or are skipped with it."""
        if code == _SUCCESS:
            self.dirty.update(self.listless.intersection(self.topology.providing[task]))
        else:
            for other in self.topology.providing[task]:
                self.look_at(other)

    def _take_away(self, slot: int, code: int, at: int, cause: str) -> None:
        """Give a task instance a state although an attempt may live: that attempt is fenced off and stopped."""
        live = self.state[slot] in _LIVE
        if live:
            self._out.append(e.Stop(slot, self.fence[slot], cause))
        self.reasons[slot] = cause
        self._set(slot, code, at, cause, new_fence=live)

    # --- sweeping -----------------------------------------------------------------------------------------------

    def _begin_sweep(self, kind: str, source: int, cause: str, slots: Iterable[int]) -> None:
        self.sweeps.append(Sweep(kind, source, cause, deque(slots)))
        if source != NO_TASK:
            self.resume.add(source)

    def _sweep_again(self, slot: int) -> None:
        """The sweep that this finished task caused was cut short by a restart."""
        branch = self.branches.get(slot)
        if self.state[slot] == _SUCCESS and branch is not None:
            self._apply_branch(slot, branch)
        else:
            self._fail_fast(slot)

    def _sweep(self, at: int) -> bool:
        """Go on taking away; whether all of it is done."""
        if self.sweeps and self.growing and not self._grow(at):
            return False
        while self.sweeps:
            sweep = self.sweeps[0]
            while sweep.slots:
                if not self._room():
                    return False
                self._sweep_one(sweep, sweep.slots.popleft(), at)
            self.sweeps.popleft()
            if sweep.kind == "timeout":
                self._end(False, at, sweep.cause, "timed_out")
                return True
            if sweep.source in self.resume and self.state[sweep.source] in _FINISHED:
                self.resume.discard(sweep.source)
                self._touch(sweep.source)  # its row may have been written with the mark
        return True

    def _sweep_one(self, sweep: Sweep, slot: int, at: int) -> None:
        code = self.state[slot]
        if sweep.kind == "dates":
            if code == _NONE:
                self._set(slot, _REMOVED, at, sweep.cause)
        elif sweep.kind == "timeout":
            if code not in _FINISHED:
                self._take_away(slot, _SKIPPED, at, sweep.cause)
        elif sweep.kind == "branch":
            if code not in (_RUNNING, _SUCCESS, _FAILED, _SKIPPED, _REMOVED, _RESTARTING):
                self._take_away(slot, _SKIPPED, at, sweep.cause)
        elif code not in (_SUCCESS, _FAILED, _SKIPPED, _REMOVED) and self._fails_with(sweep.source, slot):
            self._take_away(slot, _FAILED if code in (_RUNNING, _RESTARTING) else _SKIPPED, at, sweep.cause)

    def _fails_with(self, failed: int, slot: int) -> bool:
        """Does fail_fast end this one too? Not teardowns, nor other instances of the mapped task that failed."""
        task = self.instances.task(slot)
        return task != self.instances.task(failed) and not self.topology.tasks[task].is_teardown

    def _apply_branch(self, slot: int, branch: Branch) -> None:
        skipped = self._remember_branch(slot, branch)
        if self.instances.index(slot) == UNEXPANDED and self.instances.task(slot) not in self.topology.domain_of:
            at_once = sorted(task for task in skipped if task not in self.instances.of)
            self._begin_sweep("branch", slot, f"{self.name(slot)} did not choose this branch", at_once)

    def _remember_branch(self, slot: int, branch: Branch) -> set[int]:
        """Tasks that the decision skips. The direct ones are remembered: they are skipped again after a clear."""
        task, index = self.instances.task(slot), self.instances.index(slot)
        skipped = branch_memory.skipped_by(self.topology, task, branch)
        for other in skipped.intersection(self.topology.downstream(task)):
            if index == UNEXPANDED:
                self.skips.setdefault(other, set()).add(slot)
            else:
                self.skips_at.setdefault((other, index), set()).add(slot)
        return skipped

    def _fail_fast(self, failed: int) -> None:
        cause = f"{self.name(failed)} failed and the DAG is fail_fast"
        self._begin_sweep("fail_fast", failed, cause, range(self.instances.total))

    def _end(self, success: bool, at: int, cause: str, word: str) -> None:
        self.ended = True
        self.dirty.clear()
        self.wide.clear()
        self.growing.clear()
        self.grown.clear()
        self.backlog.clear()
        self.sweeps.clear()
        self._out.append(e.RunEnds(success, at, cause, word))

    def _refuse(self, slot: int, fence: int, cause: str) -> None:
        self._out.append(e.Refusal(slot, fence, cause))

    def _why_stale(self, slot: int, fence: int) -> str:
        if fence != self.fence[slot]:
            return f"it came from attempt {fence}, but attempt {self.fence[slot]} is the current one"
        return f"the task instance is {self.task_state(slot).value}"
