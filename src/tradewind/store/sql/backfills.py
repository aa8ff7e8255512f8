"""Backfills: one row for each backfill, and one for each date that was handled."""

from __future__ import annotations

from tradewind.model.errors import Conflict, NotFound
from tradewind.model.rows import BackfillOutcome, BackfillRow, NewBackfill, RunRow
from tradewind.model.states import RUN_STATES, RunState, RunType
from tradewind.store.sql.engine import Row
from tradewind.store.sql.runs import RunOperations

_COLUMNS = """id, dag_id, from_date, to_date, conf, is_paused, max_active_runs, created_at, completed_at, schedule,
    reprocess_behavior, run_backwards, created_by, planned, handled, run_on_latest_version"""
_FLAGS = (5, 11, 15)


class BackfillOperations(RunOperations):
    """See `store.port` for the descriptions of the methods."""

    def create_backfill(self, new: NewBackfill) -> BackfillRow:
        with self.engine.transaction():
            active = self.backfills(new.dag_id)
            if active:
                raise Conflict(
                    f"DAG {new.dag_id} already has the active backfill {active[0].id}; wait for its end or cancel it"
                )
            number = self.engine.insert(
                """INSERT INTO backfill (dag_id, from_date, to_date, conf, max_active_runs, created_at, schedule,
                   reprocess_behavior, run_backwards, created_by, planned, run_on_latest_version)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    new.dag_id,
                    new.from_date,
                    new.to_date,
                    new.conf,
                    new.max_active_runs,
                    new.created_at,
                    new.schedule,
                    new.reprocess_behavior,
                    int(new.run_backwards),
                    new.created_by,
                    new.planned,
                    None if new.run_on_latest_version is None else int(new.run_on_latest_version),
                ),
            )
            detail = {"backfill": number, "runs": new.planned, "reprocess_behavior": new.reprocess_behavior}
            self._audit("create backfill", new.created_by, new.created_at, dag_id=new.dag_id, detail=detail)
            found = self.backfill(number)
            assert found is not None
            return found

    def backfill(self, number: int) -> BackfillRow | None:
        row = self.engine.row(f"SELECT {_COLUMNS} FROM backfill WHERE id = ?", (number,))
        return None if row is None else _row(row)

    def backfills(self, dag_id: str | None = None, *, active: bool = True) -> list[BackfillRow]:
        terms = ["completed_at IS NULL"] if active else []
        terms += ["dag_id = ?"] if dag_id is not None else []
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        parameters = (dag_id,) if dag_id is not None else ()
        return [_row(row) for row in self.engine.rows(f"SELECT {_COLUMNS} FROM backfill{where} ORDER BY id", parameters)]

    def backfill_outcomes(self, number: int) -> list[BackfillOutcome]:
        sql = """SELECT ordinal, logical_date, run_id, outcome, partition_key FROM backfill_run
            WHERE backfill = ? ORDER BY ordinal"""
        return [BackfillOutcome(*row) for row in self.engine.rows(sql, (number,))]

    def record_backfill_outcome(self, number: int, outcome: BackfillOutcome) -> None:
        with self.engine.transaction():
            moved = self.engine.run(
                "UPDATE backfill SET handled = ? WHERE id = ? AND handled = ?", (outcome.ordinal, number, outcome.ordinal - 1)
            )
            if moved != 1:
                raise Conflict(f"run {outcome.ordinal} is not the next run of backfill {number}")
            self.engine.run(
                """INSERT INTO backfill_run (backfill, ordinal, logical_date, run_id, outcome, partition_key)
                   VALUES (?, ?, ?, ?, ?, ?)""",
                (number, *outcome),
            )

    def pause_backfill(self, number: int, paused: bool, actor: str, at: int) -> bool:
        with self.engine.transaction():
            row = self._open_backfill(number)
            changed = self.engine.run(
                "UPDATE backfill SET is_paused = ? WHERE id = ? AND is_paused <> ?", (int(paused), number, int(paused))
            )
            if changed:
                word = "pause backfill" if paused else "unpause backfill"
                self._audit(word, actor, at, dag_id=row.dag_id, detail={"backfill": number})
        return bool(changed)

    def complete_backfill(self, number: int, at: int, cancelled_by: str | None = None) -> None:
        with self.engine.transaction():
            row = self._open_backfill(number)
            sql = "UPDATE backfill SET completed_at = ? WHERE id = ? AND completed_at IS NULL"
            self.engine.change(sql, (at, number), f"backfill {number}")
            if cancelled_by is not None:
                self._audit("cancel backfill", cancelled_by, at, dag_id=row.dag_id, detail={"backfill": number})

    def _open_backfill(self, number: int) -> BackfillRow:
        row = self.backfill(number)
        if row is None:
            raise NotFound(f"there is no backfill {number}")
        if row.completed_at is not None:
            raise Conflict(f"backfill {number} of DAG {row.dag_id} has ended already")
        return row

    def backfill_run_counts(self, dag_id: str, number: int) -> dict[RunState, int]:
        rows = self.engine.rows(
            "SELECT state, count(*) FROM dag_run WHERE dag_id = ? AND backfill = ? GROUP BY state", (dag_id, number)
        )
        return {RUN_STATES[state]: count for state, count in rows}

    def active_backfill_runs(self, dag_id: str, number: int) -> int:
        hint = self.engine.dialect.index_hint("dag_run_active")
        row = self.engine.row(
            f"SELECT count(*) FROM dag_run{hint} WHERE dag_id = ? AND state < 2 AND backfill = ?",
            (dag_id, number),
        )
        return int(row[0]) if row else 0

    def move_run_to_backfill(self, run: int, number: int, conf: bytes | None, actor: str) -> RunRow:
        with self.engine.transaction():
            moved = self.engine.run(
                """UPDATE dag_run SET revision = revision + 1, run_type = ?, backfill = ?, conf = ?, triggered_by = 'backfill',
                   triggering_user = ? WHERE id = ?""",
                (RunType.BACKFILL.value, number, conf, actor, run),
            )
            if moved != 1:
                raise NotFound(f"there is no run number {run}")
            found = self.run(run)
            assert found is not None
            return found


def _row(row: Row) -> BackfillRow:
    return BackfillRow._make(bool(value) if place in _FLAGS and value is not None else value for place, value in enumerate(row))
