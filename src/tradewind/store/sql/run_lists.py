"""Lists of DAG runs and XComs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tradewind.model.errors import did_you_mean
from tradewind.model.moments import SECOND, iso
from tradewind.model.rows import AttemptRow, JournalEntry, XComWrite
from tradewind.model.states import RUN_STATES, RunState, RunType
from tradewind.store.sql.cursors import cursor_page
from tradewind.store.sql.dag_lists import DagLists, ShownVersion
from tradewind.store.sql.engine import NO_LIMIT, Row
from tradewind.store.sql.queries import (
    Term,
    Value,
    Where,
    count,
    literal,
    order_clause,
    order_terms,
    page,
    rows_among,
    run_state_code,
)
from tradewind.store.views import NO_CONDITIONS, Conditions, DagStatsView, Listing, RunView, StateCount, UnknownValue

TRIGGERED_BY = frozenset({"cli", "operator", "rest_api", "ui", "test", "timetable", "asset", "backfill"})
"""Values of Airflow; any other value is shown as null."""

_FAILED = RunState.FAILED.code


class RunLists(DagLists):
    """See `store.port.lists`."""

    def journal(self, run: int) -> list[JournalEntry]:
        rows = self.engine.rows("SELECT slot, fence, before, after, at, cause FROM journal WHERE run = ? ORDER BY seq", (run,))
        return [JournalEntry(*row) for row in rows]

    def attempts_of_run(self, run: int) -> list[AttemptRow]:
        rows = self.engine.rows(
            """SELECT slot, fence, try_number, executor, queued_at, host, nonce, started_at, ended_at, outcome, reason, exit_code,
               signal, rendered FROM attempt WHERE run = ? ORDER BY slot, fence""",
            (run,),
        )
        return [AttemptRow(*row) for row in rows]

    def list_xcoms(
        self,
        run: int,
        *,
        task_id: str | None = None,
        map_index: int | None = None,
        key: str | None = None,
        limit: int | None = None,
    ) -> list[XComWrite]:
        where = Where()
        where.add("run = ?", run)
        for column, wanted in (("task_id", task_id), ("map_index", map_index), ("key", key)):
            if wanted is not None:
                where.add(f"{column} = ?", wanted)
        rows = self.engine.rows(
            f"SELECT task_id, map_index, key, value, spill, size, at FROM xcom{where.sql} "
            "ORDER BY task_id, map_index, key LIMIT ?",
            (*where.parameters, NO_LIMIT if limit is None else limit),
        )
        return [XComWrite(*row) for row in rows]

    def list_runs(
        self,
        dag_id: str = "~",
        *,
        states: Sequence[str] = (),
        run_types: Sequence[str] = (),
        ranges: Mapping[str, int] | None = None,
        conditions: Conditions = NO_CONDITIONS,
        conf_contains: str | None = None,
        consuming_asset: str | None = None,
        cursor: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[RunView]:
        where = Where()
        if dag_id != "~":
            self.need_dag(dag_id)
            where.add("r.dag_id = ?", dag_id)
        codes = [run_state_code(state) for state in states]
        if codes:
            where.one_of("r.state", codes)
            # SQLite uses a partial index only if the condition repeats its WHERE clause
            if max(codes) < 2:
                where.add("r.state < 2")
            elif codes == [_FAILED]:
                where.add(f"r.state = {_FAILED}")
        where.one_of("r.run_type", [_run_type(name) for name in run_types])
        where.ranges(_RUN_RANGES, ranges or {})
        where.conditions(self.engine.dialect, _RUN_FIELDS, conditions)
        self._add_conf_and_asset(where, conf_contains, consuming_asset)
        terms = order_terms(order_by, RUN_ORDERS, "r.id")
        if cursor is not None:
            return self._runs_at(where, terms, cursor, NO_LIMIT if limit is None else limit)
        sql = f"SELECT r.id FROM dag_run r{where.sql}{order_clause(self.engine.dialect, terms)}"
        found = page(self.engine, sql, where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM dag_run r{where.sql}", where.parameters)
        return Listing(self._run_views([row[0] for row in found]), total)

    def _runs_at(self, where: Where, terms: Sequence[Term], cursor: str, limit: int) -> Listing[RunView]:
        def select(columns: str, where: Where) -> tuple[str, Sequence[Value]]:
            return f"SELECT r.id, {columns} FROM dag_run r{where.sql}", where.parameters

        found = cursor_page(self.engine, select, where, terms, cursor, limit)
        return Listing(self._run_views([row[0] for row in found.rows]), None, found.next_cursor, found.previous_cursor)

    def _add_conf_and_asset(self, where: Where, conf_contains: str | None, consuming_asset: str | None) -> None:
        """Add conditions on the conf and on a consumed asset. Raises BadQuery: the conf cannot be searched."""
        if conf_contains:
            where.add(f"({self.engine.dialect.contains('CAST(r.conf AS TEXT)')})", f"%{literal(conf_contains)}%")
        if consuming_asset:
            like = f"%{literal(consuming_asset)}%"
            contains = self.engine.dialect.contains
            where.add(
                f"""EXISTS (SELECT 1 FROM asset_delivery d JOIN asset_event e ON e.id = d.event JOIN asset a ON a.id = e.asset
                    WHERE d.run = r.id AND d.outcome = 1 AND ({contains("a.name")} OR {contains("a.uri")}))""",
                like,
                like,
            )

    def run_details(self, dag_id: str, run_id: str) -> RunView:
        row = self.engine.row(f"SELECT {_RUN} FROM dag_run r WHERE r.dag_id = ? AND r.run_id = ?", (dag_id, run_id))
        if row is None:
            self.need_dag(dag_id)
            self.need_run(dag_id, run_id)
            raise AssertionError("need_run raises when there is no such run")
        return self._run_view(row, self.shown_version(row[16]))

    def dag_stats(self, dag_ids: Sequence[str] = ()) -> list[DagStatsView]:
        ids = list(dag_ids) or [
            row[0] for row in self.engine.rows("SELECT dag_id FROM dag WHERE is_active = 1 ORDER BY dag_id")
        ]
        versions = {row[0]: row[1] for row in rows_among(self.engine, _VERSIONS, ids)}
        for dag_id in ids:
            if dag_id not in versions:
                self.need_dag(dag_id)  # raises NotFound
        shown = self.shown_versions(list(versions.values()))
        counts = {dag_id: dict.fromkeys(RUN_STATES, 0) for dag_id in ids}
        # success is computed as the number of all runs minus the other states: these are few, or have an index
        for dag_id, number in rows_among(self.engine, _ALL_RUNS, ids):
            counts[dag_id][RunState.SUCCESS] = number
        for sql in (_UNFINISHED_RUNS, _FAILED_RUNS):
            for dag_id, state, number in rows_among(self.engine, sql, ids):
                counts[dag_id][RUN_STATES[state]] = number
                counts[dag_id][RunState.SUCCESS] -= number
        return [
            DagStatsView(
                dag_id=dag_id,
                dag_display_name=shown[versions[dag_id]].dag.shown_name,
                stats=[StateCount(state=state, count=number) for state, number in counts[dag_id].items()],
            )
            for dag_id in ids
        ]

    def _run_views(self, ids: Sequence[int]) -> list[RunView]:
        rows = rows_among(self.engine, f"SELECT {_RUN} FROM dag_run r WHERE r.id IN ({{}})", ids)
        shown = self.shown_versions([row[16] for row in rows])
        views = {row[0]: self._run_view(row, shown[row[16]]) for row in rows}
        return [views[run] for run in ids if run in views]

    def _run_view(self, row: Row, version: ShownVersion) -> RunView:
        return RunView(
            dag_run_id=row[2],
            dag_id=row[1],
            logical_date=iso(row[5]),
            queued_at=iso(row[9]),
            start_date=iso(row[10]),
            end_date=iso(row[11]),
            duration=seconds_between(row[10], row[11]),
            data_interval_start=iso(row[6]),
            data_interval_end=iso(row[7]),
            run_after=iso(row[8]) or "",
            last_scheduling_decision=None,
            run_type=RunType(row[3]),
            state=RUN_STATES[row[4]],
            triggered_by=row[12] if row[12] in TRIGGERED_BY else None,
            triggering_user_name=row[13],
            conf=read_conf(row[14]),
            note=row[15],
            dag_versions=[version.view],
            bundle_version=row[19],
            dag_display_name=version.dag.shown_name,
            partition_key=row[17],
            partition_date=iso(row[18]),
        )


_VERSIONS = "SELECT dag_id, version FROM dag WHERE dag_id IN ({})"
_ALL_RUNS = "SELECT dag_id, count(*) FROM dag_run WHERE dag_id IN ({}) GROUP BY dag_id"
_UNFINISHED_RUNS = "SELECT dag_id, state, count(*) FROM dag_run WHERE state < 2 AND dag_id IN ({}) GROUP BY dag_id, state"
_FAILED_RUNS = (
    f"SELECT dag_id, state, count(*) FROM dag_run WHERE state = {_FAILED} AND dag_id IN ({{}}) GROUP BY dag_id, state"
)

_RUN = """r.id, r.dag_id, r.run_id, r.run_type, r.state, r.logical_date, r.interval_start, r.interval_end, r.run_after,
    r.queued_at, r.started_at, r.ended_at, r.triggered_by, r.triggering_user, r.conf, r.note, r.version, r.partition_key,
    r.partition_date, r.bundle_version"""

_RUN_RANGES = {
    "run_after": "r.run_after",
    "logical_date": "r.logical_date",
    "partition_date": "r.partition_date",
    "start_date": "r.started_at",
    "end_date": "r.ended_at",
}

_CHANGED = "coalesce(r.ended_at, r.started_at, r.queued_at)"
"""The time of the last change of a run's state: Airflow's `updated_at`."""

_RUN_RANGES |= {"duration": "r.ended_at - r.started_at", "updated_at": _CHANGED}

_RUN_FIELDS = {
    "dag_id": "r.dag_id",
    "run_id": "r.run_id",
    "triggering_user_name": "r.triggering_user",
    "partition_key": "r.partition_key",
    "bundle_version": "r.bundle_version",
    "dag_version": "(SELECT v.number FROM dag_version v WHERE v.id = r.version)",
}
"""The fields by which lists of runs can be filtered, besides states, types and ranges."""

RUN_ORDERS = {
    "id": "r.id",
    "updated_at": _CHANGED,
    "partition_key": "r.partition_key",
    "conf": "CAST(r.conf AS TEXT)",
    "dag_id": "r.dag_id",
    "run_id": "r.run_id",
    "dag_run_id": "r.run_id",
    "state": "r.state",
    "run_type": "r.run_type",
    "logical_date": "r.logical_date",
    "run_after": "r.run_after",
    "queued_at": "r.queued_at",
    "start_date": "r.started_at",
    "end_date": "r.ended_at",
    "duration": "r.ended_at - r.started_at",
    "triggering_user_name": "r.triggering_user",
}


def seconds_between(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else (end - start) / SECOND


def read_conf(stored: bytes | None) -> dict[str, Any]:
    """Decodes a run's conf, from JSON or msgpack."""
    if not stored:
        return {}
    found = msgspec.json.decode(stored) if stored[:1] == b"{" else msgspec.msgpack.decode(stored)
    return found if isinstance(found, dict) else {}


def _run_type(name: str) -> str:
    try:
        return RunType(name).value
    except ValueError:
        valid = [kind.value for kind in RunType]
        raise UnknownValue(
            f"{name!r} is not a type of a run; possible are: {', '.join(valid)}.{did_you_mean(name, valid)}"
        ) from None
