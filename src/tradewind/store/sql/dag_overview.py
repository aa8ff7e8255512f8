"""Reads the rows for the page with all DAGs, in a fixed number of statements (see `store.port.dag_overview`)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from tradewind.model.assets import decode_asset_schedule
from tradewind.model.states import RunState
from tradewind.store.port.dag_overview import DagDisplay, DagSummary, RecentRun
from tradewind.store.sql.dags import unpack_definition
from tradewind.store.sql.grid_lists import GridLists

_NEWEST = "(SELECT n.{column} FROM dag_run n WHERE n.dag_id = d.dag_id ORDER BY n.run_after DESC, n.id DESC LIMIT 1)"

_FAILED = RunState.FAILED.code


class _Named(msgspec.Struct):
    """The names in a definition; the other fields are not decoded."""

    dag_id: str
    display_name: str | None = None


_decode_names = msgspec.msgpack.Decoder(_Named).decode


class DagOverview(GridLists):
    """See `store.port.dag_overview`."""

    def dag_summaries(self) -> list[DagSummary]:
        rows = self.engine.rows(
            f"""SELECT d.dag_id, d.is_paused, d.has_import_error, d.tags, d.owners, d.description, d.version, d.next_run_after,
                {_NEWEST.format(column="state")}, {_NEWEST.format(column="run_after")}
                FROM dag d WHERE d.is_active = 1 ORDER BY d.dag_id"""
        )
        return [
            DagSummary(
                row[0],
                bool(row[1]),
                bool(row[2]),
                tuple(json.loads(row[3])),
                tuple(owner.strip() for owner in row[4].split(",") if owner.strip()),
                *row[5:],
            )
            for row in rows
        ]

    def dag_displays(self, dag_ids: Sequence[str]) -> dict[str, DagDisplay]:
        if not dag_ids:
            return {}
        rows = self.engine.rows(
            f"""SELECT dag_id, file, schedule, schedule_summary, assets, task_count,
                last_parsed_at FROM dag WHERE dag_id IN ({_marks(dag_ids)})""",
            list(dag_ids),
        )
        return {row[0]: DagDisplay._make((*row[:4], row[4] is not None, _has_partitions(row[4]), *row[5:])) for row in rows}

    def display_names(self, versions: Sequence[int]) -> dict[int, str]:
        if not versions:
            return {}
        rows = self.engine.rows(f"SELECT id, definition FROM dag_version WHERE id IN ({_marks(versions)})", list(versions))
        named = ((number, _decode_names(unpack_definition(data)).display_name) for number, data in rows)
        return {number: name for number, name in named if name}

    def recent_runs(self, dag_ids: Sequence[str], limit: int) -> dict[str, list[RecentRun]]:
        found: dict[str, list[RecentRun]] = {dag_id: [] for dag_id in dag_ids}
        if not dag_ids:
            return found
        part = """SELECT * FROM (SELECT dag_id, run_id, state, run_after, started_at, ended_at FROM dag_run WHERE dag_id = ?
            ORDER BY run_after DESC, id DESC LIMIT ?) AS newest"""
        parameters = [value for dag_id in dag_ids for value in (dag_id, limit)]
        for row in self.engine.rows(" UNION ALL ".join([part] * len(dag_ids)), parameters):
            found[row[0]].append(RecentRun(*row))
        for runs in found.values():
            runs.reverse()
        return found

    def run_counts(self, dag_ids: Sequence[str]) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {dag_id: {} for dag_id in dag_ids}
        if not dag_ids:
            return found
        marks = _marks(dag_ids)
        rows = self.engine.rows(
            f"""SELECT dag_id, state, count(*) FROM dag_run WHERE state < 2 AND dag_id IN ({marks}) GROUP BY dag_id, state
                UNION ALL
                SELECT dag_id, {_FAILED}, count(*) FROM dag_run WHERE state = {_FAILED} AND dag_id IN ({marks}) GROUP BY dag_id""",
            [*dag_ids, *dag_ids],
        )
        for dag_id, state, number in rows:
            found[dag_id][state] = number
        return found

    def import_error_count(self) -> int:
        row = self.engine.row("SELECT count(*) FROM import_error")
        assert row is not None
        return int(row[0])


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _has_partitions(assets: bytes | None) -> bool:
    """Whether the encoded `AssetSchedule` of a DAG has partitions."""
    return assets is not None and decode_asset_schedule(bytes(assets)).partitions is not None
