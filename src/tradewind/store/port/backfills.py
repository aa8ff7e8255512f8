"""Backfills."""

from __future__ import annotations

from typing import Protocol

from tradewind.model.rows import BackfillOutcome, BackfillRow, NewBackfill, RunRow
from tradewind.model.states import RunState


class BackfillReader(Protocol):
    """Reads backfills."""

    def backfill(self, number: int) -> BackfillRow | None:
        """The backfill with this number."""

    def backfills(self, dag_id: str | None = None, *, active: bool = True) -> list[BackfillRow]:
        """Backfills, of one DAG or of all DAGs, in the order of their creation; `active`: only unfinished ones."""

    def backfill_outcomes(self, number: int) -> list[BackfillOutcome]:
        """The result for each date that a backfill has handled so far, in order."""

    def backfill_run_counts(self, dag_id: str, number: int) -> dict[RunState, int]:
        """Number of a backfill's runs in each state. States without runs are left out."""

    def active_backfill_runs(self, dag_id: str, number: int) -> int:
        """Number of queued or running runs of a backfill."""


class BackfillStore(Protocol):
    """Writes backfills."""

    def create_backfill(self, new: NewBackfill) -> BackfillRow:
        """Create a backfill. Raises Conflict while the DAG has an active one."""

    def record_backfill_outcome(self, number: int, outcome: BackfillOutcome) -> None:
        """Record the result for the next date. Raises Conflict if the outcome is of another date than the next one."""

    def pause_backfill(self, number: int, paused: bool, actor: str, at: int) -> bool:
        """Pause or unpause a backfill. Returns whether this changed anything. Raises NotFound; Conflict: the backfill has ended."""

    def complete_backfill(self, number: int, at: int, cancelled_by: str | None = None) -> None:
        """End a backfill. Raises NotFound; Conflict: it has already ended."""

    def move_run_to_backfill(self, run: int, number: int, conf: bytes | None, actor: str) -> RunRow:
        """Assign an existing run to a backfill. Raises NotFound."""
