"""Messages of worker hosts about attempts: starts, reports, and lost processes.

The run's machine decides on each message under the attempt's fence. The answer is sent after the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tradewind.kernel import events as e
from tradewind.kernel.codes import NO_TASK
from tradewind.model.moments import SECOND
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import AttemptEnd, AttemptStart, DeferralRow, InputRequest, XComWrite
from tradewind.model.states import OCCUPYING, WAITING, Outcome, TaskState
from tradewind.model.waits import Deferral, InputWait
from tradewind.scheduler.attempts.final_log_lines import last_line, standing_line, state_name
from tradewind.scheduler.callbacks import requests
from tradewind.scheduler.inbox import FromWorker
from tradewind.scheduler.runs.active_run import ActiveRun, Holder
from tradewind.scheduler.shared_state import SharedState
from tradewind.scheduler.waits.messages import describe
from tradewind.scheduler.waits.wait_index import due_at
from tradewind.wire.messages import Accepted, LastLine, Refused, Report, Start, ToRunner
from tradewind.wire.worker_names import worker_of

ANOTHER_PROCESS = "another process was started for this attempt"
MISSING_WAITS = tuple(seconds * SECOND for seconds in (1, 2, 4, 8, 15))
"""Pauses before further attempts of a task that was missing in its DAG file; after the last one the task fails."""
_DEFERRED_WITHOUT_WAIT = "the task deferred itself without saying what it waits for"


class ReportEffects(NamedTuple):
    """The consequences of a report."""

    decisions: list[e.Decision]
    calls_back: int = NO_TASK
    """The slot of the task, if its process calls its callbacks itself."""
    is_settled: bool = True
    """False: the run has to be settled after the items that are in the inbox."""


class AttemptHandler:
    """See the module.

    Args:
        why_lost: returns why the process of an attempt ended, for people.
    """

    def __init__(self, state: SharedState, why_lost: Callable[[Holder | None, e.AttemptVanished], str]) -> None:
        self._state = state
        self._why_lost = why_lost

    def start(self, active_run: ActiveRun, item: FromWorker, start: Start, now: int) -> list[e.Decision] | None:
        """Accept or refuse the start of an attempt, and return the decisions that follow; None for a repeated request."""
        _, slot, fence = item.attempt
        known = active_run.holders.get(slot)
        machine = active_run.machine
        if known is not None and known.fence == fence:
            same = known.nonce == start.nonce and machine.fence[slot] == fence and machine.task_state(slot) in OCCUPYING
            answer = Accepted(start.op, start.nonce) if same else Refused(start.op, ANOTHER_PROCESS, start.nonce)
            self.answer(item, answer)
            return None
        first_of_try = machine.started_at[slot] == 0
        decisions = machine.apply(e.AttemptStarted(slot, fence, now))
        refusal = next((d for d in decisions if isinstance(d, e.Refusal)), None)
        if refusal is not None:
            self.answer(item, Refused(start.op, refusal.cause, start.nonce))
            return decisions
        active_run.holders[slot] = Holder(fence, start.nonce, item.host)
        active_run.last_hosts[slot] = item.host
        if first_of_try and machine.tries[slot] > 1:
            active_run.cleared_xcoms.append(active_run.where(slot))
        active_run.starts.append(
            AttemptStart(
                slot,
                fence,
                machine.tries[slot],
                active_run.executor(slot),
                item.host,
                start.hostname,
                start.pid,
                start.nonce,
                machine.queued_at[slot],
                now,
            )
        )
        self.answer(item, Accepted(start.op, start.nonce))
        return decisions

    def report(self, active_run: ActiveRun, item: FromWorker, report: Report, now: int) -> ReportEffects | None:
        """Apply the report of an attempt's end, and return what follows; None for a report of another process."""
        _, slot, fence = item.attempt
        machine = active_run.machine
        if not self._counts(active_run, slot, fence, report):
            self.answer(item, Refused(report.op, ANOTHER_PROCESS, report.nonce))
            return None
        ended = self._ended(active_run, slot, report, now)
        counts = machine.task_state(slot) is TaskState.RUNNING and slot not in machine.gone
        if report.outcome in (Outcome.DEFERRED, Outcome.AWAITING_INPUT) and report.deferral is None:
            report = msgspec.structs.replace(report, outcome=Outcome.FAILED_FINAL, reason=_DEFERRED_WITHOUT_WAIT)
        report = self._of_edited_file(active_run, slot, report, now)
        until = report.reschedule_at if report.deferral is None else due_at(report.deferral)
        tries, queued = machine.tries[slot], machine.queued_at[slot]
        alone = not self._state.inbox  # other items in the inbox are applied before the run is settled
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
                ended,
            ),
            settle=alone,
        )
        refusal = next((d for d in decisions if isinstance(d, e.Refusal)), None)
        if refusal is not None:
            self.answer(item, Refused(report.op, refusal.cause, report.nonce, standing_line(active_run, slot, fence)))
            return ReportEffects(decisions, is_settled=alone)
        active_run.holders.pop(slot, None)
        active_run.count_reschedule(slot, report.outcome, tries)
        active_run.ends.append(
            AttemptEnd(
                slot,
                fence,
                tries,
                active_run.executor(slot),
                queued,
                ended,
                report.outcome.value,
                report.reason,
                report.exit_code,
                report.signal,
                report.rendered or None,
                report.cpu,
                report.peak_memory,
            )
        )
        if report.deferral is not None and machine.task_state(slot) in WAITING:
            active_run.keep_wait(DeferralRow(slot, fence, now, report.deferral))
            if isinstance(report.deferral.wait, InputWait):
                active_run.input_requests.append(InputRequest(slot, fence, tries, now, report.deferral.wait))
            decisions = [_with_wait(one, slot, report.deferral) for one in decisions]
        where = active_run.where(slot)
        if report.map_label is not None:
            active_run.labels.append((slot, report.map_label))
        for xcom in report.xcoms if counts else ():  # the XComs of a cleared attempt are dropped
            active_run.xcoms.append(XComWrite(*where, xcom.key, xcom.value or None, xcom.spill, xcom.size, ended))
        if report.assets and counts and report.outcome is Outcome.SUCCESS:
            self._state.batch.rows += 2 * len(report.assets)
            active_run.add_asset_events(slot, report.assets, now)
        self.answer(item, Accepted(report.op, report.nonce, last_line(active_run, slot, fence, tries, decisions)))
        own = report.calls_back and counts
        if own and not report.called_back and active_run.topology.tasks[machine.instances.task(slot)].callbacks:
            move = next((d for d in decisions if isinstance(d, e.Move) and d.slot == slot), None)
            active_run.callback_requests += requests.of_own_process(active_run, move) if move is not None else ()
        return ReportEffects(decisions, slot if own else NO_TASK, alone)

    @staticmethod
    def _ended(active_run: ActiveRun, slot: int, report: Report, now: int) -> int:
        """Return when the attempt ended by the clock of its worker, limited to the possible times.

        A report may have waited long for a scheduler, and the worker's clock may be wrong. The attempt cannot have ended before
        it was dispatched, before its try began, or later than now.
        """
        machine = active_run.machine
        earliest = max(machine.started_at[slot], machine.queued_at[slot])
        return max(earliest, min(report.ended or now, now))

    @staticmethod
    def _counts(active_run: ActiveRun, slot: int, fence: int, report: Report) -> bool:
        """Return whether a report comes from the process whose start was accepted. See `ActiveRun.accepts_report_from`.

        A report from the spool of an older release names no process. It counts if only a process that was started can have sent
        it. A report that the attempt was lost or did not start does not count: reconciliation asks for the started process.
        """
        if report.nonce or report.host:
            return active_run.accepts_report_from(slot, fence, report.nonce, report.host)
        holder = active_run.holders.get(slot)
        begun = holder is not None and holder.fence == fence
        return not begun or report.outcome not in (Outcome.LOST, Outcome.REFUSED)

    def _of_edited_file(self, active_run: ActiveRun, slot: int, report: Report, now: int) -> Report:
        """Let a task that was missing in its DAG file be tried again shortly, a limited number of times."""
        if report.outcome is not Outcome.MISSING:
            active_run.missing.pop(slot, None)
            return report
        entry, before = self._state.dags.get(active_run.row.dag_id), active_run.missing.get(slot, 0)
        if entry is None or not entry.plan.is_active or before >= len(MISSING_WAITS):
            return msgspec.structs.replace(report, outcome=Outcome.FAILED)
        active_run.missing[slot] = before + 1
        reason = f"{report.reason or 'its file is missing'} It is tried again when the file was parsed"
        return msgspec.structs.replace(report, reschedule_at=now + MISSING_WAITS[before], reason=reason)

    def vanished(self, active_run: ActiveRun, event: e.AttemptVanished, now: int) -> list[e.Decision] | None:
        """End an attempt whose process does not exist any more, and return the decisions that follow.

        Return None if the message is about another process. The end is written: otherwise the next scheduler would accept the
        process again under its nonce.
        """
        slot, machine = event.slot, active_run.machine
        if not active_run.accepts_report_from(slot, event.fence, event.nonce, event.host):
            return None
        event = event._replace(reason=self._why_lost(active_run.holders.get(slot), event))
        tries, queued = machine.tries[slot], machine.queued_at[slot]
        outcome = "stopped" if machine.task_state(slot) is TaskState.RESTARTING else Outcome.LOST.value
        decisions = machine.apply(event)
        line = last_line(active_run, slot, event.fence, tries, decisions)
        if outcome != "stopped":  # the host has written why a process was stopped
            self._end_log(active_run.row.id, line, worker_of(event.host))
        if not any(isinstance(d, e.Refusal) for d in decisions):
            active_run.holders.pop(slot, None)
            active_run.count_reschedule(slot, Outcome.LOST, tries)
            active_run.ends.append(
                AttemptEnd(
                    slot, event.fence, tries, active_run.executor(slot), queued, now, outcome, event.reason or None, None, None
                )
            )
        return decisions

    def _end_log(self, run: int, line: LastLine | None, worker: str) -> None:
        """Let a worker write a last line into the attempt's log after the commit."""
        if line is not None:
            self._state.batch.after_commit(run, lambda: self._state.executor.end_log(line, worker))

    def stop(self, active_run: ActiveRun, stop: e.Stop) -> None:
        """Write the end of an attempt that has to be stopped, and cancel its process after the commit."""
        key = (active_run.row.id, stop.slot, stop.fence)

        def cancel() -> None:
            cause = f"{stop.cause}; the task is marked as {state_name(active_run.machine.task_state(stop.slot))}"
            self._state.executor.cancel(key, cause, self._state.config.kill_grace)

        self._state.batch.after_commit(key[0], cancel)
        active_run.ends.append(
            AttemptEnd(
                stop.slot,
                stop.fence,
                active_run.machine.tries[stop.slot],
                active_run.executor(stop.slot),
                active_run.machine.queued_at[stop.slot],
                self._state.clock.wall(),
                "stopped",
                stop.cause,
                None,
                None,
            )
        )

    def answer(self, item: FromWorker, answer: Accepted | Refused) -> None:
        """Send an answer to a worker host after the commit."""
        message = ToRunner(item.attempt, answer)
        self._state.batch.after_commit(item.attempt[0], lambda: self._state.executor.answer(item.host, message))


def _with_wait(decision: e.Decision, slot: int, deferral: Deferral) -> e.Decision:
    """Return the step into a waiting state with the wait in its cause: the journal keeps the wait when its row is deleted."""
    if isinstance(decision, e.Move) and decision.slot == slot and decision.after in WAITING:
        return decision._replace(cause=english(phrase("cause_waits_for", what=describe(deferral.wait))))
    return decision
