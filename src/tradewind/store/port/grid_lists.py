"""Rows for the grid of a DAG: its version, the runs of a window, and the states of their task instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tradewind.kernel.run_summary import RunSummary
from tradewind.model.definition import DagDefinition


class GridVersion(NamedTuple):
    """One version of a DAG. `id` is unique among all DAGs and its content never changes; `number` counts from 1 in each DAG."""

    id: int
    number: int
    definition: DagDefinition


class GridRun(NamedTuple):
    """One run as the grid shows it. Moments are microseconds."""

    id: int
    run_id: str
    run_type: str
    state: int
    version: int
    version_number: int
    logical_date: int | None
    run_after: int
    queued_at: int
    started_at: int | None
    ended_at: int | None
    has_note: bool
    revision: int
    """A number that increases with each change of the run and of its task instances."""
    journal_seq: int
    rows_created: int
    triggering_user: str | None


class Step(NamedTuple):
    """One change of the state of a task instance."""

    run: int
    seq: int
    slot: int
    state: int


class GridLists(Protocol):
    """Each method executes one statement, or the number that its docstring names."""

    def grid_version(self, dag_id: str, number: int | None = None) -> tuple[int, int]:
        """(id, number) of a version of a DAG; None: the current one. Raises NotFound: no such DAG or version.

        Executes one statement, and one more for the message of an error.
        """

    def grid_definitions(self, versions: Sequence[int]) -> list[GridVersion]:
        """The versions with these ids. A version that was deleted is left out."""

    def grid_task_ids(self, versions: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Version → the ids of its tasks, in the author's order. A version that was deleted is left out."""

    def grid_runs(self, dag_id: str, limit: int, before: str | None = None) -> list[GridRun]:
        """The newest runs of a DAG, by `run_after`, the newest first.

        Args:
            before: a run id; only runs older than this one.

        Raises:
            NotFound: there is no run `before`; the message has the nearest id. (Two statements with `before`.)
        """

    def run_summaries(self, runs: Sequence[int]) -> dict[int, tuple[int, RunSummary]]:
        """Run → (the length of its journal at its last end, the summary of its states), if there is a summary. The summary
        is valid as long as the journal has the same length.
        """

    def instance_states(self, run: int) -> list[tuple[int, str, int]]:
        """(slot, task id, state code) of all task instances of a run, by slot. Plain tuples: a run may have 100,000."""

    def steps_since(self, runs: Sequence[tuple[int, int]]) -> list[Step]:
        """The steps of runs after a position in their journals, in order. `runs`: (run, number of the last known entry)."""
