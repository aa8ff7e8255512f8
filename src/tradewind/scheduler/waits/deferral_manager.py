"""Task instances in state `deferred`: their waits begin and end with the state, and some pools count them meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.kernel import events as e
from tradewind.model.errors import StoreError, StoreRefused
from tradewind.model.rows import PoolRow, XComWrite
from tradewind.model.states import TaskState
from tradewind.model.waits import TriggerWait
from tradewind.observe.log import Log
from tradewind.scheduler.attempts.final_log_lines import last_line
from tradewind.scheduler.runs.active_run import WAIT_IS_KEPT, ActiveRun
from tradewind.scheduler.waits.wait_index import LookAtWait, WaitDue, WaitNews, come_due, due_at, over
from tradewind.wire.messages import LastLine

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler


log = Log("scheduler")

WAIT = "wait"
"""What is held back while looking at a wait fails, with the run and the slot."""


class DeferralManager:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner
        self._counting: frozenset[str] = frozenset()
        """Pools whose slots deferred task instances hold, too."""

    def adopt(self, active_run: ActiveRun) -> None:
        """A run that is taken up: what its deferred task instances wait for, and hold."""
        self._owner.waits.adopt(active_run)
        for slot in active_run.waits:
            self._hold(active_run, slot)

    def moved(self, active_run: ActiveRun, move: e.Move) -> None:
        """A task instance of a run in which something waits has moved."""
        owner, run, slot = self._owner, active_run.row.id, move.slot
        if move.before is TaskState.DEFERRED:
            owner.admission.release(run, slot)
            waiting = owner.waits.end(run, slot)
            if waiting is not None and isinstance(waiting.deferral.wait, TriggerWait):
                owner.after_commit(run, lambda: owner.executor.drop_triggers([waiting.key]))
        row = active_run.waits.get(slot)
        if row is None:
            return
        if move.after is TaskState.DEFERRED and row.fence == move.fence:
            begun = owner.waits.begin(active_run, row)
            self._hold(active_run, slot)
            if isinstance(row.deferral.wait, TriggerWait):
                owner.after_commit(run, lambda: owner.hosts.run_triggers([begun.key]))
        elif move.after not in WAIT_IS_KEPT:
            active_run.forget_wait(slot)

    def apply(self, active_run: ActiveRun, item: WaitDue | WaitNews, now: int) -> None:
        """A wait is over, unless it is another one by now."""
        owner = self._owner
        run, slot, fence = item[:3]
        row = active_run.waits.get(slot)
        if row is None or row.fence != fence or active_run.machine.task_state(slot) is not TaskState.DEFERRED:
            if isinstance(item, WaitNews):
                owner.after_commit(run, lambda: owner.executor.drop_triggers([(run, slot, fence)]))
            return
        end = item.end if isinstance(item, WaitNews) else come_due(row.deferral, now)
        if end is None:
            owner.timers.add(due_at(row.deferral) or now, item)  # the clock was set back
            return
        event, resumption = over(row, end, now)
        tries = active_run.machine.tries[slot]
        if resumption is not None:
            active_run.keep_wait(row._replace(resumption=resumption))
        for key, value in end.xcoms.items():
            active_run.xcoms.append(XComWrite(*active_run.where(slot), key, value, None, len(value), now))
        decisions = active_run.machine.apply(event)
        if event.outcome is not None and not self._has_no_attempt(active_run, slot):
            self._end_log(run, last_line(active_run, slot, fence, tries, decisions))
        owner.take(active_run, decisions, now)

    @staticmethod
    def _has_no_attempt(active_run: ActiveRun, slot: int) -> bool:
        """Does the scheduler carry out the whole task, so that there is no log?"""
        topology = active_run.topology
        return bool(topology.waits) and topology.only_waits(
            active_run.machine.instances.task(slot), active_run.row.logical_date
        )

    def _end_log(self, run: int, line: LastLine | None) -> None:
        if line is not None:
            self._owner.after_commit(run, lambda: self._owner.executor.end_log(line))

    def look(self) -> None:
        """After the commit: what others wait for may have come with it."""
        owner = self._owner
        if not owner.waits.noticed or owner.paused or owner.superseded:
            return
        for key in list(owner.waits.noticed)[: owner.config.batch_max_rows]:
            try:
                self._look_at(key)
            except Exception as error:
                if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                    owner.commit_failed(error, [])
                    return
                owner.waits.noticed.pop(key, None)
                log.exception("what a task waits for cannot be read; it is looked at again later", run=key[0], slot=key[1])
                until = owner.quarantine.hold_back((WAIT, *key), f"{type(error).__name__}: {error}", owner.clock.wall())
                owner.timers.add(until, LookAtWait(*key))

    def _look_at(self, key: tuple[int, int]) -> None:
        owner = self._owner
        if owner.quarantine.held_back((WAIT, *key), owner.clock.wall()) is not None:
            owner.waits.noticed.pop(key, None)  # a timer brings it back
            return
        news = owner.waits.look(key, owner.active_runs_by_id)
        owner.quarantine.release((WAIT, *key))
        if news is not None:
            owner.inbox.append(news)

    # --- pools --------------------------------------------------------------------------------------------------------

    def count_in(self, pools: list[PoolRow]) -> None:
        """Pools may count deferred task instances from now on, or not any more."""
        before, self._counting = self._counting, frozenset(pool.name for pool in pools if pool.include_deferred)
        changed = before ^ self._counting
        for run, slot in list(self._owner.waits.open) if changed else ():
            active_run = self._owner.active_runs_by_id.get(run)
            if (
                active_run is not None
                and active_run.machine.task_state(slot) is TaskState.DEFERRED
                and active_run.needs(slot)[0][0][1] in changed
            ):
                self._owner.admission.release(run, slot)
                self._hold(active_run, slot)

    def _hold(self, active_run: ActiveRun, slot: int) -> None:
        """Slots of a pool that counts deferred task instances."""
        needs = active_run.needs(slot)
        if needs[0][0][1] in self._counting and active_run.machine.task_state(slot) is TaskState.DEFERRED:
            self._owner.admission.occupy(active_run.row.id, slot, needs[:1], attempt=False)
