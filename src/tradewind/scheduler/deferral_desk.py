"""Task instances in state `deferred`: their waits begin and end with the state, and some pools count them meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.kernel import events as e
from tradewind.model.errors import StoreError
from tradewind.model.states import TaskState
from tradewind.model.waits import TriggerWait
from tradewind.scheduler.run_box import WAIT_IS_KEPT, RunBox
from tradewind.scheduler.waits import WaitDue, WaitNews, come_due, due_at, over
from tradewind.store.nouns import PoolRow, XComWrite

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler


class DeferralDesk:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner
        self._counting: frozenset[str] = frozenset()
        """Pools whose slots deferred task instances hold, too."""

    def adopt(self, box: RunBox) -> None:
        """A run that is taken up: what its deferred task instances wait for, and hold."""
        self._owner.waits.adopt(box)
        for slot in box.waits:
            self._hold(box, slot)

    def moved(self, box: RunBox, move: e.Move) -> None:
        """A task instance of a run in which something waits has moved."""
        owner, run, slot = self._owner, box.row.id, move.slot
        if move.before is TaskState.DEFERRED:
            owner.admission.release(run, slot)
            waiting = owner.waits.end(run, slot)
            if waiting is not None and isinstance(waiting.deferral.wait, TriggerWait):
                owner.when_committed(run, lambda: owner.executor.drop_triggers([waiting.key]))
        row = box.waits.get(slot)
        if row is None:
            return
        if move.after is TaskState.DEFERRED and row.fence == move.fence:
            begun = owner.waits.begin(box, row)
            self._hold(box, slot)
            if isinstance(row.deferral.wait, TriggerWait):
                owner.when_committed(run, lambda: owner.hosts.run_triggers([begun.key]))
        elif move.after not in WAIT_IS_KEPT:
            box.forget_wait(slot)

    def apply(self, box: RunBox, item: WaitDue | WaitNews, now: int) -> None:
        """A wait is over, unless it is another one by now."""
        owner = self._owner
        run, slot, fence = item[:3]
        row = box.waits.get(slot)
        if row is None or row.fence != fence or box.machine.task_state(slot) is not TaskState.DEFERRED:
            if isinstance(item, WaitNews):
                owner.when_committed(run, lambda: owner.executor.drop_triggers([(run, slot, fence)]))
            return
        end = item.end if isinstance(item, WaitNews) else come_due(row.deferral, now)
        if end is None:
            owner.timers.add(due_at(row.deferral) or now, item)  # the clock was set back
            return
        event, resumption = over(row, end, now)
        if resumption is not None:
            box.keep_wait(row._replace(resumption=resumption))
        for key, value in end.xcoms.items():
            box.xcoms.append(XComWrite(*box.where(slot), key, value, None, len(value), now))
        owner.take(box, box.machine.apply(event), now)

    def look(self) -> None:
        """After the commit: what others wait for may have come with it."""
        owner = self._owner
        if not owner.waits.noticed or owner.paused or owner.superseded:
            return
        try:
            owner.inbox.extend(owner.waits.look(owner.boxes, owner.config.batch_max_rows))
        except StoreError as error:
            owner.commit_failed(error, [])

    # --- pools --------------------------------------------------------------------------------------------------------

    def count_in(self, pools: list[PoolRow]) -> None:
        """Pools may count deferred task instances from now on, or not any more."""
        before, self._counting = self._counting, frozenset(pool.name for pool in pools if pool.include_deferred)
        changed = before ^ self._counting
        for box in self._owner.boxes.values() if changed else ():
            for slot in box.waits:
                if box.machine.task_state(slot) is TaskState.DEFERRED and box.needs(slot)[0][0][1] in changed:
                    self._owner.admission.release(box.row.id, slot)
                    self._hold(box, slot)

    def _hold(self, box: RunBox, slot: int) -> None:
        """Slots of a pool that counts deferred task instances."""
        needs = box.needs(slot)
        if needs[0][0][1] in self._counting and box.machine.task_state(slot) is TaskState.DEFERRED:
            self._owner.admission.occupy(box.row.id, slot, needs[:1], attempt=False)
