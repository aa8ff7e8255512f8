"""The states of one run, and the decisions that follow from each event.

Theory of operation. A `RunMachine` is built from rows (or new) and is given events; its answer to each event is a list of
decisions. It uses nothing else: no clock, no store, no randomness. Production, `dag.test()` and the simulation run the same
machine.

For each task the machine keeps counters of the finished direct upstream task instances, by state. When a task finishes, the
counters of its children change, the children become *dirty*, and only dirty tasks are examined. Examination works in waves: all
dirty tasks are examined against the current states, then the verdicts are applied, and the tasks that become dirty form the next
wave. This gives the outcome of a pass of Airflow's scheduler without examining tasks that cannot have changed: the cost is the
number of children.

A wave may be large (one task with 100,000 children). Verdicts wait in `backlog`, and a call applies at most about `budget` of
them, so that the size of a transaction is bounded. `unsettled` says whether more decisions follow.

When many task instances end together (fail_fast, a branch, dagrun_timeout), they are handled by a *sweep* (`bulk_end`), bounded
in the same way. While a sweep is under way nothing else is examined. A sweep survives a restart: the row of the task that
caused it keeps its `resume` mark until the sweep is done, and a timeout is noticed again.

A mapped task is one task instance until its dependencies are met and the lengths of its lists are known. Then it is expanded
(`mapping`, `expansion`), a bounded number of instances a call, and is not examined meanwhile. All instances of a task share the
counters of their upstream tasks, so that a finished task costs the number of its children and not of their instances. The
instances are examined together, when the shared counters let some of them move. Only inside a mapped group are instances joined
index by index.

The machine decides the content of the rows: `row(slot)` is the row that the store must hold after the decisions so far. `touched`
remembers the state and fence that the store holds now; a write is refused if the store holds something else.

Parts: `run_data` holds the data and answers questions, `run_steps` changes single states and counters, `examination` says what
a task instance becomes, `rules/` has one file for each condition. They take the data of the run and do not know this class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from tradewind.kernel import bulk_end, examination, integrity, mapping, step_causes
from tradewind.kernel import events as e
from tradewind.kernel.codes import (
    AWAITING_INPUT,
    DEFERRED,
    FAILED,
    NEVER,
    NO_TASK,
    NONE,
    QUEUED,
    RESCHEDULE,
    RESTARTING,
    RETRY,
    RUNNING,
    SCHEDULED,
    SKIPPED,
    SUCCESS,
)
from tradewind.kernel.examination import SCHEDULABLE_CODES
from tradewind.kernel.retry import retry_delay
from tradewind.kernel.rules import run_verdict, task_dates
from tradewind.kernel.run_data import RunFacts, Sweep
from tradewind.kernel.run_steps import HOLDS_LIMITS, RunSteps
from tradewind.kernel.topology import RULE_ALWAYS, Topology
from tradewind.model.definition import REPEAT
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import TaskRow
from tradewind.model.states import FINISHED, Outcome

_FINISHED = frozenset(state.code for state in FINISHED)
_LIVE = frozenset({QUEUED, RUNNING, RESTARTING})

_NEEDS_A_START = frozenset({Outcome.SUCCESS, Outcome.SKIPPED, Outcome.RESCHEDULE, Outcome.DEFERRED, Outcome.AWAITING_INPUT})
"""Outcomes that an attempt cannot have if its start was never accepted."""


class RunMachine(RunSteps):
    """One running run. It changes only by `apply` and `settle`."""

    __slots__ = ("_handlers",)

    def __init__(self, topology: Topology, facts: RunFacts) -> None:
        super().__init__(topology, facts)
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
        cls, topology: Topology, facts: RunFacts, rows: Iterable[TaskRow], before: integrity.VerifiedVersion | None = None
    ) -> RunMachine:
        """Build the machine of a run that has already begun. Everything that could be scheduled is dirty: call `settle`.

        Args:
            rows: ordered by slot.
            before: the definition that the rows were last verified against, if it is not that of `topology`. The rows are
                changed to match the newer definition before anything else is decided (see `integrity`).

        Raises:
            AssertionError: a slot is missing between the rows.
        """
        machine = cls(topology, facts)
        known: set[int] = set()
        for row in rows:
            slot = row.slot
            known.add(slot)
            machine._place_row(row)
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
            if row.version is not None and row.state in HOLDS_LIMITS:
                machine.versions[slot] = row.version
            if row.ended_at and (row.resume or slot in machine.gone):
                machine.ended_at[slot] = row.ended_at
        state = machine.state
        if topology.layout is not None:
            machine._order_instances()
        mapping.restore(machine)
        for slot in range(machine.instances.total):
            code = state[slot]
            if code in _FINISHED:
                machine.unfinished -= 1
                machine.count_finished(slot, code, 1)
                if code == SUCCESS and slot in machine.branches and slot not in machine.gone:
                    machine.remember_branch(slot, machine.branches[slot])
            elif code != NONE:
                machine.active += 1
            if code in SCHEDULABLE_CODES and slot not in machine.gone:
                machine.mark_dirty(machine.instances.task(slot))
        for slot in [slot for slot in machine.resume if state[slot] in _FINISHED and slot not in machine.gone]:
            bulk_end.begin_again(machine, slot)
        if before is not None:
            machine.verification = integrity.plan(machine, frozenset(known), before)
        elif machine.gone:
            machine.verification = integrity.plan_of_cleared(machine)
        return machine

    def _place_row(self, row: TaskRow) -> None:
        """Register the slot of a row whose task is deleted, or which belongs to an expanded task."""
        instances, slot, layout = self.instances, row.slot, self.topology.layout
        if layout is not None and slot in layout.gone:
            self.gone[slot] = row.task_id
            instances.between[slot] = (slot, row.map_index)
            return
        if slot < instances.count:
            if layout is not None and layout.own[slot] is None:
                instances.between[slot] = (self.topology.index[row.task_id], row.map_index)
            elif row.map_index >= 0:
                instances.start_expansion(slot)
            return
        if slot != instances.total:
            raise AssertionError(f"run {self.facts.number}: row {slot} follows row {instances.total - 1}")
        self.add_instance(self.topology.index[row.task_id], row.map_index)

    def _order_instances(self) -> None:
        """Add instances whose slots lie between the tasks' own slots to their expanded tasks, ordered by map index."""
        further: dict[int, list[tuple[int, int]]] = {}
        for slot, (task, index) in self.instances.between.items():
            if slot not in self.gone:
                further.setdefault(task, []).append((index, slot))
        for task, slots in further.items():
            self.instances.expanded[task].extend(slot for _, slot in sorted(slots))

    # --- changing -----------------------------------------------------------------------------------------------

    def apply(self, event: e.Event, *, settle: bool = True) -> list[e.Decision]:
        """Return the decisions that follow from `event`. A `Refusal` means that the event does not apply and changed nothing.

        Args:
            settle: False returns only the immediate effects. It is used for all but the last event of a batch: a task with a
                thousand upstream tasks that end together is then examined once, not a thousand times.
        """
        decisions: list[e.Decision] = []
        self.decisions, self.extra_rows = decisions, 0
        self._handlers[type(event)](event)
        if not self.ended:
            bulk_end.continue_all(self, event.at)
        if settle and not self.ended:
            self._settle(event.at, self.max_waves)
        return decisions

    def settle(self, at: int, waves: int | None = None) -> list[e.Decision]:
        """Return the decisions that remained after the budget of a call was used up, or the first decisions after `from_rows`.

        Args:
            waves: maximum number of waves to examine; 0: continue only sweeps and verification.
        """
        decisions: list[e.Decision] = []
        self.decisions, self.extra_rows = decisions, 0
        if not self.ended:
            self._settle(at, self.max_waves if waves is None else waves)
        return decisions

    def mark_written(self) -> None:
        """Forget the changed rows: they are written, so the store holds the current rows."""
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
                    if task not in absent and task not in self.instances.expanded and self.state[task] == NONE:
                        self.expanding[task] = domain.fixed
        for slot, why in absent.items():
            self.sweeps.append(Sweep("dates", NO_TASK, english(why), deque((slot,))))

    def _admitted(self, event: e.Admitted) -> None:
        slot = event.slot
        if self.state[slot] != SCHEDULED:
            self._refuse(slot, self.fence[slot], f"it is {self.task_state(slot).value}, not scheduled")
            return
        self.queued_at[slot] = event.at
        self.reasons.pop(slot, None)
        self.step(slot, QUEUED, event.at, step_causes.SLOT_FREE, new_fence=True)

    def _attempt_started(self, event: e.AttemptStarted) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] != QUEUED:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if self.started_at[slot] == NEVER:
            self.started_at[slot] = event.at
        self.step(slot, RUNNING, event.at, step_causes.STARTED)

    def _attempt_ended(self, event: e.AttemptEnded) -> None:
        slot, code = event.slot, self.state[event.slot]
        if event.fence != self.fence[slot] or code not in _LIVE:
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
            return
        if code == RESTARTING and slot not in self.gone:
            self.step(slot, NONE, event.at, step_causes.STOPPED_TO_CLEAR)
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
        self.step(slot, SUCCESS, event.at, event.reason or step_causes.REPORTED_SUCCESS)
        if event.branch is not None:
            bulk_end.begin_branch(self, slot, event.branch)

    def _skipped(self, event: e.AttemptEnded) -> None:
        self.step(event.slot, SKIPPED, event.at, event.reason or step_causes.SKIPPED_ITSELF)

    def _rescheduled(self, event: e.AttemptEnded) -> None:
        slot = event.slot
        self.resume.add(slot)
        self.step(slot, RESCHEDULE, event.at, event.reason or step_causes.RESCHEDULED)
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
        self.step(slot, RETRY, event.at, event.reason or step_causes.TASK_FAILED)
        self._wake(slot, event.at + delay, event.at)

    def _wake(self, slot: int, due: int, at: int) -> None:
        """Let a task instance be examined again at `due`."""
        self.due[slot] = due
        if due > at:
            self.decisions.append(e.Timer(slot, due))
        else:
            self.dirty.add(slot)

    def _failed_for_good(self, event: e.AttemptEnded) -> None:
        self.step(event.slot, FAILED, event.at, event.reason or step_causes.TASK_FAILED)
        if self.topology.fail_fast:
            bulk_end.begin_fail_fast(self, event.slot)

    def _lost(self, event: e.AttemptEnded) -> None:
        """Handle an attempt that ended because its worker failed, not its task.

        An attempt whose code may have run has used up its try, unless the task or the deployment chose to repeat it. Any other
        attempt is dispatched again in the same try. The same limit bounds both repetitions.
        """
        slot = event.slot
        if self._may_have_run(slot, event.outcome) and not self.repeats_lost(slot):
            self._failed(event._replace(reason=event.reason or step_causes.ATTEMPT_LOST))
            return
        requeues = self.requeues.get(slot, 0) + 1
        if requeues > self.facts.requeue_limit:
            cause = english(phrase("cause_lost_often", reason=event.reason or step_causes.ATTEMPT_LOST, times=requeues))
            self.reasons[slot] = cause
            self._failed(event._replace(reason=cause))
            return
        self.requeues[slot] = requeues
        self.step(slot, SCHEDULED, event.at, event.reason or step_causes.ATTEMPT_LOST)

    def _may_have_run(self, slot: int, outcome: Outcome) -> bool:
        """Return whether the task's code may have begun. `REFUSED`: its process never got the permission to start."""
        return self.state[slot] == RUNNING and outcome is not Outcome.REFUSED

    def repeats_lost(self, slot: int) -> bool:
        """Return whether an attempt of this task instance that started and was lost is repeated in the same try."""
        chosen = self.topology.tasks[self.instances.task(slot)].lost_attempts
        return self.facts.repeat_lost if chosen is None else chosen == REPEAT

    def _deferred(self, event: e.AttemptEnded) -> None:
        """Defer a task instance: it waits without an attempt until a `WaitOver` event. `due` is the timeout of the wait."""
        slot = event.slot
        code = AWAITING_INPUT if event.outcome is Outcome.AWAITING_INPUT else DEFERRED
        self.step(slot, code, event.at, event.reason or step_causes.WAITS_WITHOUT_PROCESS)
        if event.reschedule_at is not None:
            self.due[slot] = event.reschedule_at

    def _wait_over(self, event: e.WaitOver) -> None:
        slot = event.slot
        if event.fence != self.fence[slot] or self.state[slot] not in (DEFERRED, AWAITING_INPUT):
            self._refuse(slot, event.fence, self._why_stale(slot, event.fence))
        elif event.outcome is None:
            self.step(slot, SCHEDULED, event.at, event.reason or step_causes.WAIT_OVER)
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
        Outcome.AWAITING_INPUT: _deferred,
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
            self.step(slot, NONE, event.at, step_causes.STOPPED_TO_CLEAR)
            self.dirty.add(slot)
        else:
            self.reasons[slot] = event.reason or step_causes.ATTEMPT_LOST
            self._lost(e.AttemptEnded(slot, event.fence, Outcome.LOST, event.at, self.reasons[slot]))

    def _timer_due(self, event: e.TimerDue) -> None:
        slot = event.slot
        if self.due.get(slot, NEVER) and self.due[slot] <= event.at and self.state[slot] in (RETRY, RESCHEDULE):
            self.dirty.add(slot)
        else:
            self._refuse(slot, self.fence[slot], "nothing is due")

    def _past_changed(self, event: e.PastChanged) -> None:
        if event.why is None:
            self.past_reason.pop(event.task, None)
        else:
            self.past_reason[event.task] = event.why
        if not event.allowed:
            self.block_by_past(event.task)
            return
        self.past_allowed[event.task] = True
        self.mark_dirty(event.task)

    def block_by_past(self, task: int) -> None:
        """Let a task wait for the previous run, and drop verdicts about it that are not applied yet."""
        self.past_allowed[task] = False
        if self.backlog:
            kept = [one for one in self.backlog if self.instances.task(one[0]) != task]
            self.backlog.clear()
            self.backlog.extend(kept)
        self.mark_dirty(task)

    def _run_now(self, event: e.RunNow) -> None:
        """Schedule a task instance without examining it. Afterwards it is like any other scheduled task instance."""
        slot = event.slot
        task = self.instances.task(slot)
        if self.ended or self.state[slot] not in SCHEDULABLE_CODES:
            cause = "its run has ended" if self.ended else f"it is {self.task_state(slot).value}"
            self._refuse(slot, self.fence[slot], cause)
        elif task in self.expanding or (task in self.topology.domain_of and task not in self.instances.expanded):
            self._refuse(slot, self.fence[slot], "it is mapped, and its task instances are not all there yet")
        else:
            self._apply_verdict(slot, SUCCESS if self.topology.tasks[task].empty else SCHEDULED, event.at, event.cause)

    def _run_timed_out(self, event: e.RunTimedOut) -> None:
        if self.ended:
            self._refuse(NO_TASK, 0, "the run has ended")
            return
        bulk_end.begin(self, "timeout", NO_TASK, english(phrase("run_reason_timeout")), range(self.instances.total))

    # --- settling -----------------------------------------------------------------------------------------------

    def _settle(self, at: int, waves: int) -> None:
        """Apply verdicts and examine dirty tasks until nothing changes, the budget is used up or `waves` are done."""
        backlog = self.backlog
        if not bulk_end.continue_all(self, at) or self.ended or waves <= 0:
            return
        while True:
            if self.expanding or self.just_expanded:
                if not mapping.add_instances(self):
                    return
                examination.examine_expanded(self, at)
            while backlog:
                if not self.rows_left():
                    return
                slot, code, cause = backlog.popleft()
                if self.state[slot] in SCHEDULABLE_CODES:
                    self._apply_verdict(slot, code, at, cause)
            if not self.dirty and not self.dirty_expanded:
                break
            if waves <= 0:
                return
            waves -= 1
            examination.examine_wave(self, at)
        verdict = run_verdict.decide(self, at, lambda slot: examination.examine(self, slot, at) is not None)
        if verdict is not None:
            self.end_run(verdict.success, at, verdict.why, verdict.reason)

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
            self.extra_rows += 1  # the row with the wait of the task instance
            self.reasons.pop(slot, None)
            self.due.pop(slot, None)
        self.step(slot, code, at, cause, new_fence=waits)

    def _refuse(self, slot: int, fence: int, cause: str) -> None:
        self.decisions.append(e.Refusal(slot, fence, cause))

    def _why_stale(self, slot: int, fence: int) -> str:
        if fence != self.fence[slot]:
            return f"it came from attempt {fence}, but attempt {self.fence[slot]} is the current one"
        return f"the task instance is {self.task_state(slot).value}"
