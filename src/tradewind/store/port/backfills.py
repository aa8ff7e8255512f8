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
        """Backfills, of one DAG or of all, in the order of their creation; `active`: only those that have not ended."""

    def backfill_outcomes(self, number: int) -> list[BackfillOutcome]:
        """What happened to each date of a backfill so far, in order."""

    def backfill_run_counts(self, dag_id: str, number: int) -> dict[RunState, int]:
        """How many runs of a backfill are in each state; states without any are left out."""

    def active_backfill_runs(self, dag_id: str, number: int) -> int:
        """How many runs of a backfill are queued or running."""


class BackfillStore(Protocol):
    """Writes backfills."""

    def create_backfill(self, new: NewBackfill) -> BackfillRow:
        """Create a backfill. Raises Conflict while the DAG has an active one."""

    def record_backfill_outcome(self, number: int, outcome: BackfillOutcome) -> None:
        """Record what happened to the next date. Raises Conflict if the outcome is of another date than the next one."""

    def pause_backfill(self, number: int, paused: bool, actor: str, at: int) -> bool:
        """Pause or unpause; whether that changed anything. Raises NotFound, and Conflict if the backfill has ended."""

    def complete_backfill(self, number: int, at: int, cancelled_by: str | None = None) -> None:
        """End a backfill. Raises NotFound, and Conflict if it has ended."""

    def move_run_to_backfill(self, run: int, number: int, conf: bytes | None, actor: str) -> RunRow:
        """Make an existing run one of a backfill. Raises NotFound."""
