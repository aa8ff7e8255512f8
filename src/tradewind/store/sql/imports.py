"""Writes runs that were executed elsewhere (see `store.port.imports`)."""

from __future__ import annotations

from tradewind.model.rows import AttemptRow, RunImport
from tradewind.store.sql.dags import DagOperations, pack_definition
from tradewind.store.sql.run_changes import JOURNAL, XCOM, encode_branch
from tradewind.store.sql.runs import NEXT_RUN

_RUN = f"""INSERT INTO dag_run (id, dag_id, run_id, run_type, state, version, logical_date, interval_start, interval_end,
    run_after, queued_at, started_at, ended_at, conf, triggered_by, triggering_user, note, task_count, rows_created, revision,
    journal_seq, partition_key, partition_date)
    VALUES ({NEXT_RUN}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?)"""
"""Revision 1: the run already has rows, so the scheduler reads them before it continues the run."""

_TASK = """INSERT INTO task_instance (run, slot, task_id, map_index, state, fence, try_number, max_tries, resume, requeues, due_at,
    queued_at, started_at, ended_at, reason, branch, map_length, note)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_ATTEMPT = """INSERT INTO attempt (run, slot, fence, try_number, executor, hostname, queued_at, started_at, ended_at, outcome,
    reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


class ImportOperations(DagOperations):
    """See `store.port.imports`."""

    def version_of_import(self, dag_id: str, definition: bytes, hash: str, at: int) -> int:
        with self.engine.transaction():
            bundle = self.need_dag(dag_id).bundle
            return self._add_version(dag_id, bundle, hash, definition, at)

    def _add_version(self, dag_id: str, bundle: str, hash: str, definition: bytes, at: int) -> int:
        engine = self.engine
        known = engine.row("SELECT id FROM dag_version WHERE dag_id = ? AND hash = ?", (dag_id, hash))
        if known is not None:
            return int(known[0])
        version, place = self._next_version(dag_id)
        engine.run(
            "INSERT INTO dag_version (id, dag_id, number, hash, bundle, definition, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (version, dag_id, place, hash, bundle, pack_definition(definition), at),
        )
        self._definitions.pop(version, None)
        return version

    def import_run(self, run: RunImport) -> int | None:
        engine = self.engine
        with engine.transaction():
            twin = engine.row(
                "SELECT 1 FROM dag_run WHERE dag_id = ? AND (run_id = ? OR logical_date = ?) LIMIT 1",
                (run.dag_id, run.run_id, run.logical_date),
            )
            if twin is not None:
                return None
            number = engine.insert(
                _RUN,
                (
                    run.dag_id,
                    run.run_id,
                    run.run_type.value,
                    run.state.code,
                    run.version,
                    run.logical_date,
                    run.interval_start,
                    run.interval_end,
                    run.run_after,
                    run.queued_at,
                    run.started_at,
                    run.ended_at,
                    run.conf,
                    run.triggered_by,
                    run.triggering_user,
                    run.note,
                    len(run.rows),
                    len(run.rows),
                    len(run.journal),
                    run.partition_key,
                    run.partition_date,
                ),
            )
            engine.many(
                _TASK,
                [
                    (
                        number,
                        row.slot,
                        row.task_id,
                        row.map_index,
                        row.state,
                        row.fence,
                        row.try_number,
                        row.max_tries,
                        row.resume,
                        row.requeues,
                        row.due_at or None,
                        row.queued_at or None,
                        row.started_at or None,
                        row.ended_at or None,
                        row.reason,
                        None if row.branch is None else encode_branch(row.branch),
                        row.length,
                        run.notes.get(row.slot),
                    )
                    for row in run.rows
                ],
            )
            engine.many(JOURNAL, [(number, seq, *entry) for seq, entry in enumerate(run.journal, 1)])
            engine.many(_ATTEMPT, [(number, *_attempt(one, run.hostnames.get((one.slot, one.fence)))) for one in run.attempts])
            engine.many(XCOM, [(number, *xcom) for xcom in run.xcoms])
        return number

    def advance_schedule(self, dag_id: str, last: tuple[int | None, int | None, int | None, int]) -> bool:
        with self.engine.transaction():
            self.need_dag(dag_id)
            moved = self.engine.run(
                """UPDATE dag SET last_logical_date = ?, last_start = ?, last_end = ?, last_run_after = ?, next_logical_date = NULL,
                   next_start = NULL, next_end = NULL, next_run_after = NULL
                   WHERE dag_id = ? AND (last_run_after IS NULL OR last_run_after < ?)""",
                (*last, dag_id, last[3]),
            )
        return moved == 1


def _attempt(one: AttemptRow, hostname: str | None) -> tuple[object, ...]:
    return (
        one.slot,
        one.fence,
        one.try_number,
        one.executor,
        hostname,
        one.queued_at,
        one.started_at,
        one.ended_at,
        one.outcome,
        one.reason,
    )
