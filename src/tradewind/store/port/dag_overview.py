"""Rows for the page with all DAGs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class DagSummary(NamedTuple):
    """The fields of one active DAG by which the list is filtered and ordered. Moments are microseconds."""

    dag_id: str
    is_paused: bool
    has_import_error: bool
    tags: tuple[str, ...]
    owners: tuple[str, ...]
    description: str | None
    version: int
    next_run_after: int | None
    last_state: int | None
    """Code of the state of the newest run; None: there is no run."""
    last_run_after: int | None


class DagDisplay(NamedTuple):
    """More fields of a DAG for the page: its names and its schedule."""

    dag_id: str
    file: str
    schedule: bytes
    """Encoded `Schedule`."""
    schedule_summary: str | None
    has_assets: bool
    """Whether the DAG also runs when assets were updated."""
    has_partitions: bool
    """Whether each partition key of these assets has a run of its own."""
    task_count: int
    last_parsed_at: int | None


class RecentRun(NamedTuple):
    """One of the newest runs of a DAG. Moments are microseconds."""

    dag_id: str
    run_id: str
    state: int
    run_after: int
    started_at: int | None
    ended_at: int | None


class DagOverview(Protocol):
    """Each method executes one statement."""

    def dag_summaries(self) -> list[DagSummary]:
        """All active DAGs, by id."""

    def dag_displays(self, dag_ids: Sequence[str]) -> dict[str, DagDisplay]:
        """These DAGs, by id."""

    def display_names(self, versions: Sequence[int]) -> dict[int, str]:
        """Version → the name that the author gave the DAG. Versions without such a name are left out."""

    def recent_runs(self, dag_ids: Sequence[str], limit: int) -> dict[str, list[RecentRun]]:
        """The newest runs of these DAGs by `run_after`, at most `limit` of each, the oldest first."""

    def run_counts(self, dag_ids: Sequence[str]) -> dict[str, dict[int, int]]:
        """Number of queued, running and failed runs of these DAGs, by state code."""

    def import_error_count(self) -> int:
        """Number of DAG files that cannot be imported."""
