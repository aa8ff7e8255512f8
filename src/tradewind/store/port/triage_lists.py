"""Rows for the triage page: failures, late runs, and DAGs that were fixed. All moments are microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class LatestEndedRuns(NamedTuple):
    """The newest run of a DAG that has ended, and its newest failed run."""

    dag_id: str
    run: int
    run_id: str
    state: int
    run_after: int
    ended_at: int | None
    failed_run: int | None
    failed_run_id: str | None
    failed_ended_at: int | None


class FailedInstance(NamedTuple):
    """A task instance that failed."""

    run: int
    dag_id: str
    run_id: str
    run_state: int
    run_after: int
    slot: int
    task_id: str
    map_index: int
    try_number: int
    max_tries: int
    started_at: int | None
    ended_at: int | None
    reason: str | None


class UnfinishedRun(NamedTuple):
    """A run that has not ended."""

    run: int
    dag_id: str
    run_id: str
    run_type: str
    state: int
    run_after: int
    started_at: int | None
    task_count: int


class MissedDeadline(NamedTuple):
    """A missed deadline of a run that has not ended."""

    run: int
    label: str
    due_at: int


class TriageLists(Protocol):
    """Each method executes one statement."""

    def latest_ended_runs(self) -> list[LatestEndedRuns]:
        """For each active DAG with ended runs: the newest ended run, and the newest failed run."""

    def failed_instances(self, runs: Sequence[int], limit: int) -> list[FailedInstance]:
        """Failed task instances of these runs, the latest end first."""

    def failed_in_unfinished_runs(self, limit: int) -> list[FailedInstance]:
        """Failed task instances of runs that have not ended, the latest end first."""

    def upstream_failed_counts(self, runs: Sequence[int]) -> dict[int, int]:
        """Run → number of its task instances in state upstream_failed."""

    def unfinished_runs(self, limit: int) -> list[UnfinishedRun]:
        """Runs that have not ended, the earliest `run_after` first."""

    def unfinished_count(self) -> int:
        """Number of runs that have not ended."""

    def usual_durations(self, dag_ids: Sequence[str], limit: int) -> dict[str, list[int]]:
        """DAG → the durations of its newest successful runs, microseconds; at most `limit` of each."""

    def missed_deadlines(self) -> list[MissedDeadline]:
        """Missed deadlines of runs that have not ended, the latest first."""
