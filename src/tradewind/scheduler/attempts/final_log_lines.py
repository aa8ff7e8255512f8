"""The last line of an attempt's log, in Airflow's words: the decision about the task instance, and its reason.

    Marking task as SUCCESS.
    Marking task as UP_FOR_RETRY: ValueError: no rows. Try 2 of 3 begins at 2026-01-31T06:05:00Z at the earliest.
    All retries failed; marking task as FAILED: ValueError: no rows.

The line contains only decisions, and a worker host gets it only after the commit.
"""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.kernel import events as e
from tradewind.model.moments import iso
from tradewind.model.states import FINISHED, WAITING, TaskState
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.waits.messages import describe
from tradewind.wire.log_paths import log_path
from tradewind.wire.messages import SUCCESS_LINE, LastLine

_LEVELS = {
    TaskState.FAILED: "error",
    TaskState.UP_FOR_RETRY: "warning",
    TaskState.SCHEDULED: "warning",
    TaskState.NONE: "warning",
}


def last_line(active_run: ActiveRun, slot: int, fence: int, tries: int, decisions: Sequence[e.Decision]) -> LastLine | None:
    """Return the line for an attempt that has just ended; None if nothing was decided about it.

    Args:
        fence, tries: fence and try number of the attempt, before the decisions.
    """
    move = next((one for one in decisions if isinstance(one, e.Move) and one.slot == slot), None)
    if move is None:
        return None
    if move.after is TaskState.SUCCESS:
        return LastLine("info", SUCCESS_LINE, log_of(active_run, slot, fence, tries))
    due = next((one.due for one in decisions if isinstance(one, e.Timer) and one.slot == slot), None)
    return LastLine(
        _LEVELS.get(move.after, "info"), _text(active_run, move, tries, due), log_of(active_run, slot, fence, tries)
    )


def standing_line(active_run: ActiveRun, slot: int, fence: int) -> LastLine | None:
    """Return the line for an attempt whose report an earlier scheduler accepted but did not answer.

    None while the attempt runs, and if another attempt has followed: then the result of this one is not known here any more.
    """
    machine = active_run.machine
    state = machine.task_state(slot)
    if machine.fence[slot] != fence or state not in FINISHED:
        return None
    return LastLine(
        _LEVELS.get(state, "info"),
        f"Marking task as {state_name(state)}.",
        log_of(active_run, slot, fence, machine.tries[slot]),
    )


def log_of(active_run: ActiveRun, slot: int, fence: int, tries: int) -> str:
    """Return the path of an attempt's log, relative to the log folder."""
    return log_path(active_run.row.dag_id, active_run.row.run_id, *active_run.where(slot), tries, fence)


def state_name(state: TaskState) -> str:
    """Return the name of a state in logs."""
    return state.value.upper() if state is not TaskState.NONE else "NONE"


def _text(active_run: ActiveRun, move: e.Move, tries: int, due: int | None) -> str:
    cause = move.cause.strip().rstrip(".")
    after, slot = move.after, move.slot
    retries = active_run.machine.retries(slot)
    if after is TaskState.UP_FOR_RETRY:
        when = f"begins at {iso(due)} at the earliest" if due is not None else "begins at once"
        return f"Marking task as UP_FOR_RETRY: {cause}. Try {tries + 1} of {max(retries, tries) + 1} {when}."
    if after is TaskState.FAILED:
        return f"{'All retries failed; marking' if 0 < retries < tries else 'Marking'} task as FAILED: {cause}."
    if after is TaskState.UP_FOR_RESCHEDULE:
        return f"Marking task as UP_FOR_RESCHEDULE: it is called again {f'at {iso(due)}' if due is not None else 'at once'}."
    if after in WAITING:
        row, name = active_run.waits.get(slot), state_name(after)
        return f"Marking task as {name}: it waits for {describe(row.deferral.wait)}." if row is not None else f"It is {name}."
    if after is TaskState.SCHEDULED:
        return f"The attempt was lost, and the task is scheduled again: {cause}."
    if after is TaskState.NONE:
        return f"The result does not count, and the task starts again: {cause}."
    return f"Marking task as {state_name(after)}: {cause}."
