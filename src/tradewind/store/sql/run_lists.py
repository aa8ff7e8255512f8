"""Lists of DAG runs and XComs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tradewind.model.errors import did_you_mean
from tradewind.model.moments import SECOND, iso
from tradewind.model.rows import AttemptRow, JournalEntry, XComWrite
from tradewind.model.states import RUN_CODES, RUN_STATES, RunState, RunType
from tradewind.store.sql.dag_lists import DagLists
from tradewind.store.sql.engine import NO_LIMIT, Row
from tradewind.store.sql.queries import Where, count, ordering, page
from tradewind.store.views import BadQuery, DagStatsView, Listing, RunView, StateCount

TRIGGERED_BY = frozenset({"cli", "operator", "rest_api", "ui", "test", "timetable", "asset", "backfill"})
"""Airflow's values; any other value is shown as null."""

_FAILED = RunState.FAILED.code
_BLOCK = 500
"""How many runs one statement reads."""


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
        run_id_pattern: str | None = None,
        run_id_prefix: str | None = None,
        dag_id_pattern: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[RunView]:
        where = Where()
        if dag_id != "~":
            self.need_dag(dag_id)
            where.add("r.dag_id = ?", dag_id)
        codes = [_run_code(state) for state in states]
        if codes:
            where.one_of("r.state", codes)
            # SQLite uses a partial index only if the condition repeats its WHERE clause
            if max(codes) < 2:
                where.add("r.state < 2")
            elif codes == [_FAILED]:
                where.add(f"r.state = {_FAILED}")
        where.one_of("r.run_type", [_run_type(name) for name in run_types])
        where.ranges(_RUN_RANGES, ranges or {})
        where.pattern(self.engine.dialect, "r.run_id", run_id_pattern)
        where.prefix("r.run_id", run_id_prefix)
        where.pattern(self.engine.dialect, "r.dag_id", dag_id_pattern)
        order = ordering(order_by, RUN_ORDERS, "r.id")
        found = page(self.engine, f"SELECT r.id FROM dag_run r{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM dag_run r{where.sql}", where.parameters)
        return Listing(self._run_views([row[0] for row in found]), total)

    def run_details(self, dag_id: str, run_id: str) -> RunView:
        row = self.engine.row(f"SELECT {_RUN} FROM dag_run r WHERE r.dag_id = ? AND r.run_id = ?", (dag_id, run_id))
        if row is None:
            self.need_dag(dag_id)
            self.need_run(dag_id, run_id)
            raise AssertionError("need_run raises when there is no such run")
        return self._run_view(row)

    def dag_stats(self, dag_ids: Sequence[str] = ()) -> list[DagStatsView]:
        ids = list(dag_ids) or [
            row[0] for row in self.engine.rows("SELECT dag_id FROM dag WHERE is_active = 1 ORDER BY dag_id")
        ]
        found = []
        for dag_id in ids:
            version = self.need_dag(dag_id).version
            counts = dict.fromkeys(RUN_STATES, 0)
            for state, number in self.engine.rows(
                "SELECT state, count(*) FROM dag_run WHERE dag_id = ? AND state < 2 GROUP BY state", (dag_id,)
            ):
                counts[RUN_STATES[state]] = number
            counts[RunState.FAILED] = self._number(f"WHERE dag_id = ? AND state = {_FAILED}", dag_id)
            # the other three states are few or have an index; success is the number of all runs minus those
            counts[RunState.SUCCESS] = self._number("WHERE dag_id = ?", dag_id) - sum(counts.values())
            found.append(
                DagStatsView(
                    dag_id=dag_id,
                    dag_display_name=self.shown_version(version).dag.shown_name,
                    stats=[StateCount(state=state, count=number) for state, number in counts.items()],
                )
            )
        return found

    def _number(self, where: str, dag_id: str) -> int:
        row = self.engine.row(f"SELECT count(*) FROM dag_run {where}", (dag_id,))
        assert row is not None
        return int(row[0])

    def _run_views(self, ids: Sequence[int]) -> list[RunView]:
        views: dict[int, RunView] = {}
        for start in range(0, len(ids), _BLOCK):
            block = ids[start : start + _BLOCK]
            marks = ", ".join("?" * len(block))
            for row in self.engine.rows(f"SELECT {_RUN} FROM dag_run r WHERE r.id IN ({marks})", block):
                views[row[0]] = self._run_view(row)
        return [views[run] for run in ids if run in views]

    def _run_view(self, row: Row) -> RunView:
        version = self.shown_version(row[16])
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
            bundle_version=None,
            dag_display_name=version.dag.shown_name,
            partition_key=row[17],
            partition_date=None,
        )


_RUN = """r.id, r.dag_id, r.run_id, r.run_type, r.state, r.logical_date, r.interval_start, r.interval_end, r.run_after,
    r.queued_at, r.started_at, r.ended_at, r.triggered_by, r.triggering_user, r.conf, r.note, r.version, r.partition_key"""

_RUN_RANGES = {
    "run_after": "r.run_after",
    "logical_date": "r.logical_date",
    "start_date": "r.started_at",
    "end_date": "r.ended_at",
}

RUN_ORDERS = {
    "id": "r.id",
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


def _run_code(name: str) -> int:
    try:
        return RUN_CODES[RunState(name)]
    except ValueError:
        raise _unknown(name, "state", [state.value for state in RUN_STATES]) from None


def _run_type(name: str) -> str:
    try:
        return RunType(name).value
    except ValueError:
        raise _unknown(name, "type", [kind.value for kind in RunType]) from None


def _unknown(name: str, what: str, valid: list[str]) -> BadQuery:
    return BadQuery(f"{name!r} is not a {what} of a run; possible are: {', '.join(valid)}.{did_you_mean(name, valid)}")
