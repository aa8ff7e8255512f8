"""Handles task instances that wait (`deferred`, `awaiting_input`): begins and ends their waits, and counts them in some pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tradewind.kernel import events as e
from tradewind.model.errors import StoreError, StoreRefused
from tradewind.model.rows import DeferralRow, PoolRow, XComWrite
from tradewind.model.states import WAITING, TaskState
from tradewind.model.waits import InputWait, TriggerEnd, TriggerWait
from tradewind.observe.log import Log
from tradewind.scheduler.attempts.final_log_lines import last_line
from tradewind.scheduler.runs.active_run import WAIT_IS_KEPT, ActiveRun
from tradewind.scheduler.shared_state import SharedState
from tradewind.scheduler.waits.input_answers import UNANSWERED, answered, default_answer
from tradewind.scheduler.waits.wait_index import ExamineWait, WaitDue, WaitResult, due_at, end_by_clock, wait_over
from tradewind.wire.messages import AttemptKey, LastLine

log = Log("scheduler")

WAIT = "wait"
"""Key of a wait that is held back because examining it failed: (WAIT, run, slot)."""


class DeferralManager:
    """See the module.

    Args:
        run_triggers: sends waits for triggers, by attempt, to the worker host's triggerer.
    """

    def __init__(self, state: SharedState, run_triggers: Callable[[Iterable[AttemptKey]], None]) -> None:
        self._state = state
        self._run_triggers = run_triggers
        self._counting: frozenset[str] = frozenset()
        """Pools in which deferred task instances count, too."""

    def adopt(self, active_run: ActiveRun) -> None:
        """Register the waits of a run that was loaded, and the pool slots that they hold."""
        self._state.waits.adopt(active_run)
        for slot in active_run.waits:
            self._hold(active_run, slot)

    def moved(self, active_run: ActiveRun, move: e.Move) -> None:
        """Handle a step of a task instance in a run that has waits."""
        state, run, slot = self._state, active_run.row.id, move.slot
        if move.before in WAITING:
            state.admission.release(run, slot)
            waiting = state.waits.end(run, slot)
            if waiting is not None and isinstance(waiting.deferral.wait, TriggerWait):
                state.batch.after_commit(run, lambda: state.executor.drop_triggers([waiting.key]))
        row = active_run.waits.get(slot)
        if row is None:
            return
        if move.after in WAITING and row.fence == move.fence:
            begun = state.waits.begin(active_run, row)
            self._hold(active_run, slot)
            if isinstance(row.deferral.wait, TriggerWait):
                state.batch.after_commit(run, lambda: self._run_triggers([begun.key]))
        elif move.after not in WAIT_IS_KEPT:
            active_run.forget_wait(slot)

    def apply(self, active_run: ActiveRun, item: WaitDue | WaitResult, now: int) -> list[e.Decision] | None:
        """End a wait, and return the decisions that follow; None: the wait continues or has already ended."""
        state = self._state
        run, slot, fence = item[:3]
        row = active_run.waits.get(slot)
        if row is None or row.fence != fence or active_run.machine.task_state(slot) not in WAITING:
            if isinstance(item, WaitResult):
                state.batch.after_commit(run, lambda: state.executor.drop_triggers([(run, slot, fence)]))
            return None
        end = item.end if isinstance(item, WaitResult) else self._end_by_clock(active_run, row, now)
        if end is None:
            state.timers.add(due_at(row.deferral) or now, item)  # the clock was set back
            return None
        event, resumption = wait_over(row, end, now)
        tries = active_run.machine.tries[slot]
        if resumption is not None:
            active_run.keep_wait(row._replace(resumption=resumption))
        for key, value in end.xcoms.items():
            active_run.xcoms.append(XComWrite(*active_run.where(slot), key, value, None, len(value), now))
        decisions = active_run.machine.apply(event)
        if event.outcome is not None and not self._has_no_attempt(active_run, slot):
            self._end_log(run, last_line(active_run, slot, fence, tries, decisions))
        return decisions

    def _end_by_clock(self, active_run: ActiveRun, row: DeferralRow, now: int) -> TriggerEnd | None:
        """Return the end of a wait whose moment or timeout has come. An answer of a person counts even if it arrived after the
        timeout.
        """
        end, wait = end_by_clock(row.deferral, now), row.deferral.wait
        if end is None or not isinstance(wait, InputWait):
            return end
        answer = self._state.store.input_answer(active_run.row.id, row.slot, row.fence)
        if answer is None:
            answer = default_answer(wait, row.slot, row.fence, now)
            if answer is None:
                return UNANSWERED
            active_run.input_answers.append(answer)
        return answered(answer)

    @staticmethod
    def _has_no_attempt(active_run: ActiveRun, slot: int) -> bool:
        """Return whether the scheduler does the whole work of the task, so that it has no log."""
        topology = active_run.topology
        return bool(topology.waits) and topology.only_waits(
            active_run.machine.instances.task(slot), active_run.row.logical_date
        )

    def _end_log(self, run: int, line: LastLine | None) -> None:
        if line is not None:
            self._state.batch.after_commit(run, lambda: self._state.executor.end_log(line))

    def examine_noticed(self) -> None:
        """After a commit: examine the waits that it may have ended, and put those that have ended into the inbox.

        Raises:
            StoreError: the store cannot be read.
        """
        state = self._state
        for key in list(state.waits.noticed)[: state.config.batch_max_rows]:
            try:
                self._examine(key)
            except Exception as error:
                if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                    raise
                state.waits.noticed.pop(key, None)
                log.exception("the wait of a task cannot be examined; it is tried again later", run=key[0], slot=key[1])
                until = state.quarantine.hold_back((WAIT, *key), f"{type(error).__name__}: {error}", state.clock.wall())
                state.timers.add(until, ExamineWait(*key))

    def _examine(self, key: tuple[int, int]) -> None:
        state = self._state
        if state.quarantine.held_back((WAIT, *key), state.clock.wall()) is not None:
            state.waits.noticed.pop(key, None)  # a timer lets it be examined again
            return
        news = state.waits.examine(key, state.active_runs_by_id)
        state.quarantine.release((WAIT, *key))
        if news is not None:
            state.inbox.append(news)

    # --- pools --------------------------------------------------------------------------------------------------------

    def set_pools(self, pools: list[PoolRow]) -> None:
        """Handle a change of pools: whether they count deferred task instances."""
        before, self._counting = self._counting, frozenset(pool.name for pool in pools if pool.include_deferred)
        changed = before ^ self._counting
        for run, slot in list(self._state.waits.open) if changed else ():
            active_run = self._state.active_runs_by_id.get(run)
            if (
                active_run is not None
                and active_run.machine.task_state(slot) is TaskState.DEFERRED
                and active_run.needs(slot)[0][0][1] in changed
            ):
                self._state.admission.release(run, slot)
                self._hold(active_run, slot)

    def _hold(self, active_run: ActiveRun, slot: int) -> None:
        """Count a deferred task instance in its pool, if the pool counts deferred task instances."""
        needs = active_run.needs(slot)
        if needs[0][0][1] in self._counting and active_run.machine.task_state(slot) is TaskState.DEFERRED:
            self._state.admission.occupy(active_run.row.id, slot, needs[:1], attempt=False)
