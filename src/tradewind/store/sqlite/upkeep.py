"""Verbs for the house itself: epochs, answered commands, the outbox, retention, looking after the file."""

from __future__ import annotations

from tradewind.store.nouns import OutboxItem, Removed
from tradewind.store.sqlite.runs import RunVerbs

KEPT_OPS = 24 * 3600 * 1_000_000
"""Answers to commands are kept for a day: longer than any client repeats one."""


class UpkeepVerbs(RunVerbs):
    """See `store.port.Store` for what each verb promises."""

    def begin_epoch(self, hostname: str, pid: int, boot: str, at: int) -> int:
        """A scheduler is born: its epoch is higher than every earlier one, whose writes fail from now on."""
        with self.engine.transaction():
            row = self.engine.row("SELECT coalesce(max(epoch), 0) + 1 FROM scheduler")
            assert row is not None
            self.engine.run(
                "INSERT INTO scheduler (epoch, hostname, pid, boot, started_at) VALUES (?, ?, ?, ?, ?)",
                (row[0], hostname, pid, boot, at),
            )
            self.engine.run("DELETE FROM scheduler WHERE epoch < ?", (row[0] - 100,))
        return int(row[0])

    def note_host(self, name: str, hostname: str, pid: int, slots: int, at: int) -> None:
        """A worker host said hello; earlier lives of the same machine's host are forgotten."""
        with self.engine.transaction():
            self.engine.run("DELETE FROM worker_host WHERE hostname = ? OR name = ?", (hostname, name))
            self.engine.run(
                "INSERT INTO worker_host (name, hostname, pid, slots, seen_at) VALUES (?, ?, ?, ?, ?)",
                (name, hostname, pid, slots, at),
            )

    # --- commands --------------------------------------------------------------------------------------------------

    def answered(self, op: str) -> bytes | None:
        """The stored answer of a command that was carried out already."""
        row = self.engine.row("SELECT answer FROM op WHERE op = ?", (op,))
        return None if row is None else bytes(row[0])

    def remember(self, op: str, answer: bytes, at: int) -> None:
        with self.engine.transaction():
            self.engine.run("INSERT INTO op (op, answer, at) VALUES (?, ?, ?) ON CONFLICT (op) DO NOTHING", (op, answer, at))

    # --- outbox ------------------------------------------------------------------------------------------------------

    def post(self, kind: str, identity: str, payload: bytes, at: int, due: int | None = None) -> None:
        """Put something to be done outside into the outbox; the same identity is posted once."""
        with self.engine.transaction():
            if self.engine.row("SELECT 1 FROM outbox WHERE identity = ?", (identity,)) is not None:
                return
            self.engine.run(
                """INSERT INTO outbox (kind, identity, payload, created_at, due_at) VALUES (?, ?, ?, ?, ?)
                   ON CONFLICT (identity) DO NOTHING""",
                (kind, identity, payload, at, at if due is None else due),
            )

    def due_posts(self, at: int, at_most: int = 100) -> list[OutboxItem]:
        return [
            OutboxItem(*row)
            for row in self.engine.rows(
                """SELECT id, kind, identity, payload, tries FROM outbox WHERE due_at <= ? AND parked IS NULL
                   ORDER BY due_at, id LIMIT ?""",
                (at, at_most),
            )
        ]

    def acknowledge(self, item: int) -> None:
        with self.engine.transaction():
            self.engine.run("DELETE FROM outbox WHERE id = ?", (item,))

    def postpone(self, item: int, due: int, parked: str | None = None) -> None:
        """It failed: again at `due`, or parked for good with a sentence."""
        with self.engine.transaction():
            self.engine.run("UPDATE outbox SET tries = tries + 1, due_at = ?, parked = ? WHERE id = ?", (due, parked, item))

    # --- retention -----------------------------------------------------------------------------------------------------

    def retire(self, ended_before: int, keep_per_dag: int, at: int, at_most: int = 20) -> Removed:
        """Delete up to `at_most` finished runs that ended before a moment, keeping the newest of each DAG.

        Returns how many went, so that the caller repeats until a step comes back short, and the spill files that no
        other run refers to (files are named by content, so two runs may share one). The run with the highest number
        stays, so that no number comes twice.
        """
        with self.engine.transaction():
            candidates = self.engine.rows(
                """SELECT id FROM dag_run r WHERE state >= 2 AND ended_at < ?
                   AND id < (SELECT max(id) FROM dag_run)
                   AND (SELECT count(*) FROM (SELECT 1 FROM dag_run n WHERE n.dag_id = r.dag_id
                        AND n.run_after > r.run_after LIMIT ?)) >= ?
                   ORDER BY ended_at, id LIMIT ?""",
                (ended_before, keep_per_dag, keep_per_dag, at_most),
            )
            spills: set[str] = set()
            for (run,) in candidates:
                spills.update(
                    name for (name,) in self.engine.rows("SELECT spill FROM xcom WHERE run = ? AND spill IS NOT NULL", (run,))
                )
                for table in ("task_instance", "attempt", "journal", "feed", "xcom"):
                    self.engine.run(f"DELETE FROM {table} WHERE run = ?", (run,))
                self.engine.run("DELETE FROM dag_run WHERE id = ?", (run,))
            unused = [
                name
                for name in sorted(spills)
                if self.engine.row("SELECT 1 FROM xcom WHERE spill = ? AND spill IS NOT NULL LIMIT 1", (name,)) is None
            ]
            self.engine.run("DELETE FROM op WHERE at < ?", (at - KEPT_OPS,))
        return Removed(len(candidates), unused)
