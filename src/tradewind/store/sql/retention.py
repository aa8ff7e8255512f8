"""Deletion of old runs and DAGs, with everything that belongs to them."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.counts import counted
from tradewind.model.errors import Conflict, NotFound
from tradewind.model.rows import Removed, RemovedRun, RetiredLog
from tradewind.store.sql.services import ServiceOperations

KEPT_OPS = 24 * 3600 * 1_000_000
"""Results of commands are kept for a day, microseconds: longer than any client repeats a command."""

_REMOVED = "id, dag_id, run_id, logical_date"
"""Columns of a `RemovedRun`."""


class RetentionOperations(ServiceOperations):
    """See `store.port` for the descriptions of the methods."""

    def delete_old_runs(
        self, ended_before: int, keep_per_dag: int, at: int, at_most: int = 20, dag_id: str | None = None
    ) -> Removed:
        only, parameters = ("AND dag_id = ?", (dag_id,)) if dag_id is not None else ("", ())
        with self.engine.transaction():
            candidates = self.engine.rows(
                f"""SELECT {_REMOVED} FROM dag_run r WHERE state >= 2 AND ended_at < ? {only}
                   AND id < (SELECT max(id) FROM dag_run)
                   AND (SELECT count(*) FROM (SELECT 1 FROM dag_run n WHERE n.dag_id = r.dag_id
                        AND n.run_after > r.run_after LIMIT ?) AS newer) >= ?
                   ORDER BY ended_at, id LIMIT ?""",
                (ended_before, *parameters, keep_per_dag, keep_per_dag, at_most),
            )
            removed = self._remove([RemovedRun(*row) for row in candidates], at)
            self.engine.run("DELETE FROM op WHERE at < ?", (at - KEPT_OPS,))
            if dag_id is None:
                self._retire_events(ended_before, at_most)
                self._forget_expired_tokens(at)
                self.engine.run("DELETE FROM skipped_interval WHERE at < ?", (ended_before,))
        return removed

    def count_deletable_runs(self, ended_before: int, keep: int, dag_id: str) -> int:
        row = self.engine.row(
            """SELECT count(*) FROM dag_run r WHERE dag_id = ? AND state >= 2 AND ended_at < ?
               AND id < (SELECT max(id) FROM dag_run)
               AND (SELECT count(*) FROM (SELECT 1 FROM dag_run n WHERE n.dag_id = r.dag_id
                    AND n.run_after > r.run_after LIMIT ?) AS newer) >= ?""",
            (dag_id, ended_before, keep, keep),
        )
        return int(row[0]) if row else 0

    def _remove(self, runs: list[RemovedRun], at: int) -> Removed:
        """Delete runs with everything that belongs to them, and note that their logs are to be deleted."""
        spills: set[str] = set()
        for run, *_ in runs:
            spills.update(
                name for (name,) in self.engine.rows("SELECT spill FROM xcom WHERE run = ? AND spill IS NOT NULL", (run,))
            )
            for table in (
                "task_instance",
                "attempt",
                "journal",
                "feed",
                "xcom",
                "deferral",
                "hitl_detail",
                "outbox",
                "deadline_miss",
                "run_summary",
                "task_state_store",
            ):
                self.engine.run(f"DELETE FROM {table} WHERE run = ?", (run,))
            self._forget_deliveries(run)
            self.engine.run(
                """INSERT INTO retired_log (dag_id, run_id, at) SELECT dag_id, run_id, ? FROM dag_run WHERE id = ?
                   ON CONFLICT (dag_id, run_id) DO UPDATE SET at = excluded.at""",
                (at, run),
            )
            self.engine.change("DELETE FROM dag_run WHERE id = ?", (run,), f"run number {run}")
        unused = [
            name
            for name in sorted(spills)
            if self.engine.row("SELECT 1 FROM xcom WHERE spill = ? AND spill IS NOT NULL LIMIT 1", (name,)) is None
        ]
        return Removed(sorted(runs), unused)

    def logs_to_delete(self, at_most: int) -> list[RetiredLog]:
        rows = self.engine.rows("SELECT dag_id, run_id, at FROM retired_log ORDER BY at, dag_id, run_id LIMIT ?", (at_most,))
        return [RetiredLog(*row) for row in rows]

    def delete_log_entries(self, gone: Sequence[RetiredLog]) -> None:
        with self.engine.transaction():
            self.engine.many("DELETE FROM retired_log WHERE dag_id = ? AND run_id = ? AND at = ?", gone)

    def used_spills(self, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if self.engine.row("SELECT 1 FROM xcom WHERE spill = ? AND spill IS NOT NULL LIMIT 1", (name,)) is not None
        }

    def _keep_highest_number(self, key: str, table: str) -> None:
        """Before the newest rows are deleted: store the highest number that was ever used, so that no number is used twice."""
        newest = self.engine.row(f"SELECT max(id) FROM {table}")
        known = self.engine.row("SELECT value FROM meta WHERE key = ?", (key,))
        if newest is not None and newest[0] is not None and (known is None or newest[0] > int(known[0])):
            self.engine.run(
                "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, str(newest[0])),
            )

    def delete_run(self, run: int, actor: str, at: int) -> Removed:
        with self.engine.transaction():
            row = self.engine.row(f"SELECT {_REMOVED} FROM dag_run WHERE id = ? AND state >= 2", (run,))
            if row is None:
                raise NotFound(f"there is no run number {run} that has ended")
            self._keep_highest_number("last_run", "dag_run")
            removed = self._remove([RemovedRun(*row)], at)
            self._audit("delete run", actor, at, dag_id=row[1], run_id=row[2])
        return removed

    def delete_dag(self, dag_id: str, actor: str, at: int, at_most: int = 20) -> tuple[Removed, bool]:
        engine = self.engine
        with engine.transaction():
            self.need_dag(dag_id)
            live = self.active_runs(dag_id)
            if live:
                raise Conflict(
                    f"DAG {dag_id} has {counted(len(live), 'active run')} (the first: {live[0].run_id}); "
                    "pause the DAG and wait for the end of its runs"
                )
            found = engine.rows(
                f"SELECT {_REMOVED} FROM dag_run WHERE dag_id = ? ORDER BY run_after, id LIMIT ?", (dag_id, at_most)
            )
            runs = [RemovedRun(*row) for row in found]
            if runs:
                self._keep_highest_number("last_run", "dag_run")
            removed = self._remove(runs, at)
            gone = engine.row("SELECT 1 FROM dag_run WHERE dag_id = ? LIMIT 1", (dag_id,)) is None
            if gone:
                self._keep_highest_number("last_version", "dag_version")
                engine.run("DELETE FROM backfill_run WHERE backfill IN (SELECT id FROM backfill WHERE dag_id = ?)", (dag_id,))
                self._forget_assets_of(dag_id)
                for table in ("dag_version", "skipped_interval", "backfill", "dag_favorite", "dag"):
                    engine.run(f"DELETE FROM {table} WHERE dag_id = ?", (dag_id,))
                self._audit("delete dag", actor, at, dag_id=dag_id)
        return removed, gone
