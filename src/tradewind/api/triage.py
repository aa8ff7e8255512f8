"""Which runs are late and which DAGs were fixed: the decisions of the triage page, on plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from tradewind.api.ui_shapes import TriageFixed, TriageRun, UsualDuration
from tradewind.model.moments import DAY, SECOND, iso
from tradewind.model.states import RUN_STATES, RunState
from tradewind.store.port.triage_lists import FailedInstance, LatestEndedRuns, MissedDeadline, TriageLists, UnfinishedRun

HISTORY_MIN = 3
"""Minimum number of successful runs for a usual duration."""
HISTORY_MAX = 20
FAILURES_MAX = 100
"""Maximum number of failed task instances that are listed."""
FIXED_WITHIN = 2 * DAY
DEADLINE, LONGER = "deadline", "longer_than_usual"


def usual(durations: Sequence[int]) -> UsualDuration | None:
    """The usual duration of a DAG's runs. `durations`: those of its latest successful runs, microseconds. None: too few runs."""
    if len(durations) < HISTORY_MIN:
        return None
    return UsualDuration(min(durations) / SECOND, median(durations) / SECOND, max(durations) / SECOND, len(durations))


def shown_run(
    run: UnfinishedRun, now: int, durations: Sequence[int], missed: MissedDeadline | None, progress: Sequence[int] | None
) -> TriageRun:
    """A run that has not ended, as the page shows it, and whether it is late.

    Args:
        progress: [task instances, not ended, …] from the scheduler; None: not known.
    """
    history = usual(durations)
    started = run.started_at if RUN_STATES[run.state] is RunState.RUNNING else None
    elapsed = None if started is None else max(0, now - started) / SECOND
    late = DEADLINE if missed is not None else None
    if late is None and history is not None and elapsed is not None and elapsed > history.high:
        late = LONGER
    known = history is not None and started is not None
    return TriageRun(
        dag_id=run.dag_id,
        run_id=run.run_id,
        run_type=run.run_type,
        state=RUN_STATES[run.state].value,
        run_after=iso(run.run_after) or "",
        start_date=iso(started),
        elapsed=elapsed,
        usual=history,
        expected_from=iso(started + round(history.low * SECOND)) if known and started is not None and history else None,
        expected_to=iso(started + round(history.high * SECOND)) if known and started is not None and history else None,
        late_because=late,
        deadline=None if missed is None else missed.label,
        deadline_at=None if missed is None else iso(missed.due_at),
        tasks=progress[0] if progress else run.task_count,
        unfinished=progress[1] if progress else None,
    )


def failed_ends(ends: Sequence[LatestEndedRuns]) -> list[LatestEndedRuns]:
    """The DAGs whose newest ended run failed."""
    return [one for one in ends if RUN_STATES[one.state] is RunState.FAILED]


def failed_total(ends: Sequence[LatestEndedRuns], unfinished: Sequence[FailedInstance]) -> int:
    """How many runs failed. `unfinished`: failed task instances of runs that have not ended."""
    return len(ends) + len({one.run for one in unfinished})


def failed_run_count(reader: TriageLists) -> int:
    """How many runs failed: the number in the bar of the web page."""
    return failed_total(failed_ends(reader.latest_ended_runs()), reader.failed_in_unfinished_runs(FAILURES_MAX))


def first_line(reason: str | None) -> str | None:
    return reason.strip().split("\n", 1)[0] if reason and reason.strip() else None


def fixed(ends: Sequence[LatestEndedRuns], now: int, at_most: int) -> list[TriageFixed]:
    """DAGs whose newest ended run succeeded and whose newest failed run is recent."""
    found = [
        one
        for one in ends
        if RUN_STATES[one.state] is RunState.SUCCESS
        and one.failed_run_id is not None
        and now - (one.failed_ended_at or 0) < FIXED_WITHIN
    ]
    found.sort(key=lambda one: (-(one.ended_at or 0), one.dag_id))
    return [
        TriageFixed(one.dag_id, one.run_id, iso(one.ended_at), one.failed_run_id or "", iso(one.failed_ended_at))
        for one in found[:at_most]
    ]


def first_miss(misses: Sequence[MissedDeadline]) -> Mapping[int, MissedDeadline]:
    """Run → the deadline that it missed first."""
    found: dict[int, MissedDeadline] = {}
    for one in misses:
        if one.run not in found or one.due_at < found[one.run].due_at:
            found[one.run] = one
    return found
