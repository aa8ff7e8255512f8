"""The in-memory twin's verbs on backfills."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from tradewind.model.errors import Conflict, NotFound
from tradewind.model.rows import BackfillOutcome, BackfillRow, NewBackfill, RunRow
from tradewind.model.states import FINISHED_RUNS, RunType


class MemoryBackfills:
    """See `store.port.Store` for what each verb promises. The tables are the store's."""

    _backfills: dict[int, BackfillRow]
    _outcomes: dict[tuple[int, int], BackfillOutcome]
    _of_backfill: dict[int, int]
    """run → the backfill that made or adopted it."""
    _runs: Any

    def transaction(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _next(self, name: str) -> int:
        raise NotImplementedError

    def _note(self, event: str, actor: str, at: int, **about: Any) -> None:
        raise NotImplementedError

    def create_backfill(self, new: NewBackfill) -> BackfillRow:
        with self.transaction():
            active = self.backfills(new.dag_id)
            if active:
                raise Conflict(f"DAG {new.dag_id} has the backfill {active[0].id} under way; wait for its end or cancel it")
            number = self._next("backfill")
            row = BackfillRow(id=number, is_paused=False, completed_at=None, handled=0, **new._asdict())
            self._backfills[number] = row
            detail = {"backfill": number, "runs": new.planned, "reprocess_behavior": new.reprocess_behavior}
            self._note("create backfill", new.created_by, new.created_at, dag_id=new.dag_id, detail=detail)
        return row

    def backfill(self, number: int) -> BackfillRow | None:
        return self._backfills.get(number)

    def backfills(self, dag_id: str | None = None, *, active: bool = True) -> list[BackfillRow]:
        return [
            row
            for row in self._backfills.values()
            if dag_id in (None, row.dag_id) and not (active and row.completed_at is not None)
        ]

    def backfill_outcomes(self, number: int) -> list[BackfillOutcome]:
        return [outcome for (owner, _), outcome in sorted(self._outcomes.items()) if owner == number]

    def note_backfill_outcome(self, number: int, outcome: BackfillOutcome) -> None:
        with self.transaction():
            row = self._backfills.get(number)
            if row is None or row.handled != outcome.ordinal - 1:
                raise Conflict(f"run {outcome.ordinal} of backfill {number} has had its turn, or it is not its turn")
            self._backfills[number] = row._replace(handled=outcome.ordinal)
            self._outcomes[number, outcome.ordinal] = outcome

    def pause_backfill(self, number: int, paused: bool, actor: str, at: int) -> bool:
        with self.transaction():
            row = self._open_backfill(number)
            changed = row.is_paused is not paused
            if changed:
                self._backfills[number] = row._replace(is_paused=paused)
                word = "pause backfill" if paused else "unpause backfill"
                self._note(word, actor, at, dag_id=row.dag_id, detail={"backfill": number})
        return changed

    def complete_backfill(self, number: int, at: int, cancelled_by: str | None = None) -> None:
        with self.transaction():
            row = self._open_backfill(number)
            self._backfills[number] = row._replace(completed_at=at)
            if cancelled_by is not None:
                self._note("cancel backfill", cancelled_by, at, dag_id=row.dag_id, detail={"backfill": number})

    def _open_backfill(self, number: int) -> BackfillRow:
        row = self._backfills.get(number)
        if row is None:
            raise NotFound(f"there is no backfill {number}")
        if row.completed_at is not None:
            raise Conflict(f"backfill {number} of DAG {row.dag_id} has ended already")
        return row

    def active_backfill_runs(self, dag_id: str, number: int) -> int:
        return sum(
            row.dag_id == dag_id and row.state not in FINISHED_RUNS and self._of_backfill.get(row.id) == number
            for row in self._runs.values()
        )

    def adopt_run(self, run: int, number: int, conf: bytes | None, actor: str) -> RunRow:
        with self.transaction():
            row: RunRow | None = self._runs.get(run)
            if row is None:
                raise NotFound(f"there is no run number {run}")
            self._of_backfill[run] = number
            found = row._replace(
                revision=row.revision + 1,
                run_type=RunType.BACKFILL,
                conf=conf,
                triggered_by="backfill",
                triggering_user=actor,
            )
            self._runs[run] = found
        return found
