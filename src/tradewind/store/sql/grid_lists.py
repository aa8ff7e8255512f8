"""Reads the rows for the grid of a DAG, in a fixed number of statements (see `store.port.grid_lists`)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradewind.kernel.run_summary import RunSummary, decode_summary
from tradewind.model.definition import decode_definition
from tradewind.model.errors import NotFound
from tradewind.store.port.grid_lists import GridRun, GridVersion, Step
from tradewind.store.sql.dags import unpack_definition
from tradewind.store.sql.queries import PAGE_SECONDS, bounded
from tradewind.store.sql.xcom_lists import XComLists


class GridLists(XComLists):
    """See `store.port.grid_lists`."""

    def grid_version(self, dag_id: str, number: int | None = None) -> tuple[int, int]:
        if number is None:
            row = self.engine.row(
                "SELECT v.id, v.number FROM dag d JOIN dag_version v ON v.id = d.version WHERE d.dag_id = ?", (dag_id,)
            )
        else:
            row = self.engine.row("SELECT id, number FROM dag_version WHERE dag_id = ? AND number = ?", (dag_id, number))
        if row is None:
            self.need_dag(dag_id)
            raise NotFound(f"DAG {dag_id} has no version {number}.")
        return row[0], row[1]

    def grid_definitions(self, versions: Sequence[int]) -> list[GridVersion]:
        if not versions:
            return []
        rows = self.engine.rows(
            f"SELECT id, number, definition FROM dag_version WHERE id IN ({_marks(versions)})", list(versions)
        )
        return [GridVersion(row[0], row[1], decode_definition(unpack_definition(row[2]))) for row in rows]

    def grid_task_ids(self, versions: Sequence[int]) -> dict[int, tuple[str, ...]]:
        if not versions:
            return {}
        rows = self.engine.rows(f"SELECT id, definition FROM dag_version WHERE id IN ({_marks(versions)})", list(versions))
        return {row[0]: tuple([task.task_id for task in _ids_decoder.decode(unpack_definition(row[1])).tasks]) for row in rows}

    def grid_runs(self, dag_id: str, limit: int, before: str | None = None) -> list[GridRun]:
        older, parameters = "", [dag_id]
        if before is not None:
            place = self.engine.row("SELECT run_after, id FROM dag_run WHERE dag_id = ? AND run_id = ?", (dag_id, before))
            if place is None:
                self.need_run(dag_id, before)
                raise NotFound(f"DAG {dag_id} has no run {before!r}.")
            older = "AND r.run_after <= ? AND (r.run_after < ? OR r.id < ?)"
            parameters += [place[0], place[0], place[1]]
        rows = self.engine.rows(
            f"""SELECT {_RUN} FROM dag_run r JOIN dag_version v ON v.id = r.version WHERE r.dag_id = ? {older}
                ORDER BY r.run_after DESC, r.id DESC LIMIT ?""",
            (*parameters, limit),
        )
        return [GridRun._make((*row[:11], bool(row[11]), *row[12:])) for row in rows]

    def run_summaries(self, runs: Sequence[int]) -> dict[int, tuple[int, RunSummary]]:
        if not runs:
            return {}
        rows = self.engine.rows(f"SELECT run, journal_seq, summary FROM run_summary WHERE run IN ({_marks(runs)})", list(runs))
        return {run: (seq, decode_summary(data)) for run, seq, data in rows}

    def instance_states(self, run: int) -> list[tuple[int, str, int]]:
        with bounded(self.engine, PAGE_SECONDS):
            rows = self.engine.rows("SELECT slot, task_id, state FROM task_instance WHERE run = ? ORDER BY slot", (run,))
        return [(slot, task_id, state) for slot, task_id, state in rows]

    def steps_since(self, runs: Sequence[tuple[int, int]]) -> list[Step]:
        if not runs:
            return []
        terms = " OR ".join(["run = ? AND seq > ?"] * len(runs))
        with bounded(self.engine, PAGE_SECONDS):
            rows = self.engine.rows(
                f"SELECT run, seq, slot, after FROM journal WHERE {terms} ORDER BY run, seq",
                [value for one in runs for value in one],
            )
        return [Step(*row) for row in rows]


class _TaskId(msgspec.Struct):
    task_id: str


class _TaskIds(msgspec.Struct):
    """The ids of a definition's tasks; its other fields are not decoded."""

    tasks: tuple[_TaskId, ...] = ()


_ids_decoder = msgspec.msgpack.Decoder(_TaskIds)

_RUN = """r.id, r.run_id, r.run_type, r.state, r.version, v.number, r.logical_date, r.run_after, r.queued_at, r.started_at,
    r.ended_at, CASE WHEN r.note IS NULL THEN 0 ELSE 1 END, r.revision, r.journal_seq, r.rows_created, r.triggering_user"""


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
