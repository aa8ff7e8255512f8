"""What workers say of attempts, and what is written of it: starts, reports, and that one is gone.

Each is decided by the run's machine under the attempt's fence; the answer goes out after the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tradewind.kernel import events as e
from tradewind.kernel.codes import NO_TASK
from tradewind.model.states import OCCUPYING, Outcome, TaskState
from tradewind.scheduler import follow_ups
from tradewind.scheduler.items import FromWorker
from tradewind.scheduler.run_box import RunBox
from tradewind.scheduler.waits import due_at
from tradewind.store.nouns import AttemptEnd, AttemptStart, DeferralRow, XComWrite
from tradewind.wire.messages import Accepted, Refused, Report, Start, ToRunner

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler

_DEFERRED_TO_NOTHING = "the task deferred itself without saying what it waits for"


class AttemptDesk:
    """See the module."""

    def __init__(self, owner: Scheduler) -> None:
        self._owner = owner

    def start(self, box: RunBox, item: FromWorker, start: Start, now: int) -> None:
        _, slot, fence = item.attempt
        known = box.nonces.get(slot)
        machine = box.machine
        if known is not None and known[0] == fence:
            same = known[1] == start.nonce and machine.fence[slot] == fence and machine.task_state(slot) in OCCUPYING
            answer = (
                Accepted(start.op, start.nonce)
                if same
                else Refused(start.op, "another process was started for this attempt", start.nonce)
            )
            self.answer(item, answer)
            return
        first_of_try = machine.started_at[slot] == 0
        decisions = machine.apply(e.AttemptStarted(slot, fence, now))
        refusal = next((d for d in decisions if isinstance(d, e.Refusal)), None)
        if refusal is not None:
            self.answer(item, Refused(start.op, refusal.cause, start.nonce))
            self._owner.take(box, decisions, now)
            return
        box.nonces[slot] = (fence, start.nonce)
        if first_of_try and machine.tries[slot] > 1:
            box.cleared_xcoms.append(box.where(slot))
        box.starts.append(
            AttemptStart(
                slot,
                fence,
                machine.tries[slot],
                self._owner.executor.name,
                item.host,
                start.hostname,
                start.pid,
                start.nonce,
                machine.queued_at[slot],
                now,
            )
        )
        self.answer(item, Accepted(start.op, start.nonce))
        self._owner.take(box, decisions, now)

    def report(self, box: RunBox, item: FromWorker, report: Report, now: int) -> None:
        _, slot, fence = item.attempt
        machine = box.machine
        ended = report.ended or now
        counts = machine.task_state(slot) is TaskState.RUNNING
        if report.outcome is Outcome.DEFERRED and report.deferral is None:
            report = msgspec.structs.replace(report, outcome=Outcome.FAILED_FINAL, reason=_DEFERRED_TO_NOTHING)
        until = report.reschedule_at if report.deferral is None else due_at(report.deferral)
        tries, queued = machine.tries[slot], machine.queued_at[slot]
        alone = not self._owner.inbox  # what else has happened is applied before anything is decided from it
        decisions = machine.apply(
            e.AttemptEnded(
                slot,
                fence,
                report.outcome,
                now,
                report.reason,
                until,
                report.retry_delay,
                report.branch,
                report.map_length,
            ),
            settle=alone,
        )
        if not alone:
            self._owner.go_on(box.row.id)
        refusal = next((d for d in decisions if isinstance(d, e.Refusal)), None)
        if refusal is not None:
            self.answer(item, Refused(report.op, refusal.cause))
            self._owner.take(box, decisions, now)
            return
        box.nonces.pop(slot, None)
        box.count_reschedule(slot, report.outcome)
        box.ends.append(
            AttemptEnd(
                slot,
                fence,
                tries,
                self._owner.executor.name,
                queued,
                ended,
                report.outcome.value,
                report.reason,
                report.exit_code,
                report.signal,
                report.rendered or None,
            )
        )
        if report.deferral is not None and machine.task_state(slot) is TaskState.DEFERRED:
            box.keep_wait(DeferralRow(slot, fence, now, report.deferral))
        where = box.where(slot)
        if report.map_label is not None:
            box.labels.append((slot, report.map_label))
        for xcom in report.xcoms if counts else ():  # a cleared attempt's values are nobody's
            box.xcoms.append(XComWrite(*where, xcom.key, xcom.value or None, xcom.spill, xcom.size, ended))
        if report.assets and counts and report.outcome is Outcome.SUCCESS:
            self._owner.rows += 2 * len(report.assets)
            box.note_assets(slot, report.assets, now)
        self.answer(item, Accepted(report.op))
        own = report.calls_back and counts
        if own and not report.called_back and box.topology.tasks[machine.instances.task(slot)].callbacks:
            move = next((d for d in decisions if isinstance(d, e.Move) and d.slot == slot), None)
            box.posts += follow_ups.of_own_process(box, move) if move is not None else ()
        self._owner.take(box, decisions, now, calls_back=slot if own else NO_TASK)

    def vanished(self, box: RunBox, event: e.AttemptVanished, now: int) -> None:
        """Its attempt has ended, or the next life of the scheduler would accept it again under its nonce."""
        slot, machine = event.slot, box.machine
        tries, queued = machine.tries[slot], machine.queued_at[slot]
        outcome = "stopped" if machine.task_state(slot) is TaskState.RESTARTING else Outcome.LOST.value
        decisions = machine.apply(event)
        if not any(isinstance(d, e.Refusal) for d in decisions):
            box.ends.append(
                AttemptEnd(
                    slot, event.fence, tries, self._owner.executor.name, queued, now, outcome, event.reason or None, None, None
                )
            )
        self._owner.take(box, decisions, now)

    def stop(self, box: RunBox, stop: e.Stop) -> None:
        key = (box.row.id, stop.slot, stop.fence)
        self._owner.when_committed(key[0], lambda: self._owner.executor.cancel(key, stop.cause, self._owner.config.kill_grace))
        box.ends.append(
            AttemptEnd(
                stop.slot,
                stop.fence,
                box.machine.tries[stop.slot],
                self._owner.executor.name,
                box.machine.queued_at[stop.slot],
                self._owner.clock.wall(),
                "stopped",
                stop.cause,
                None,
                None,
            )
        )

    def answer(self, item: FromWorker, answer: Accepted | Refused) -> None:
        """After the commit."""
        self._owner.when_committed(item.attempt[0], lambda: self._owner.executor.answer(ToRunner(item.attempt, answer)))
