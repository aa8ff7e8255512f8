"""Lists of assets, aliases, events, and events that wait for DAGs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.states import RUN_STATES
from tradewind.store.sql.engine import Row
from tradewind.store.sql.queries import Where, count, ordering, page
from tradewind.store.sql.service_lists import ServiceLists
from tradewind.store.views import (
    AssetAliasView,
    AssetDagView,
    AssetEventView,
    AssetTaskView,
    AssetView,
    CreatedRunView,
    LastAssetEventView,
    Listing,
    QueuedEventView,
)


class AssetLists(ServiceLists):
    """See `store.port.lists`."""

    def list_assets(
        self,
        *,
        name_pattern: str | None = None,
        uri_pattern: str | None = None,
        dag_ids: Sequence[str] = (),
        only_active: bool = True,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[AssetView]:
        where = Where()
        where.pattern(self.engine.dialect, "a.name", name_pattern)
        where.pattern(self.engine.dialect, "a.uri", uri_pattern)
        if dag_ids:
            marks = ", ".join("?" * len(dag_ids))
            where.add(f"EXISTS (SELECT 1 FROM asset_reference r WHERE r.dag_id IN ({marks}) AND {_NAMES})", *dag_ids)
        if only_active:
            where.add(
                f"""(EXISTS (SELECT 1 FROM asset_reference r JOIN dag d ON d.dag_id = r.dag_id
                WHERE d.is_active = 1 AND {_NAMES})
                OR EXISTS (SELECT 1 FROM asset_alias_member m WHERE m.asset = a.id))"""
            )
        order = ordering(order_by, _ORDERS, "a.id")
        rows = page(self.engine, f"SELECT {_COLUMNS} FROM asset a{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM asset a{where.sql}", where.parameters)
        return Listing([self._asset_view(row) for row in rows], total)

    def asset_details(self, number: int) -> AssetView:
        row = self.engine.row(f"SELECT {_COLUMNS} FROM asset a WHERE a.id = ?", (number,))
        if row is None:
            raise NotFound(f"There is no asset with id {number}.")
        return self._asset_view(row)

    def need_asset(self, name: str, uri: str) -> AssetView:
        found = self.find_asset(name=name, uri=uri)
        if found is None:
            known = [one for row in self.engine.rows("SELECT name, uri FROM asset") for one in row]
            raise NotFound(f"There is no asset {name or uri!r}.{did_you_mean(name or uri, known)}")
        return self.asset_details(found.id)

    def _asset_view(self, row: Row) -> AssetView:
        number, name, uri = row[:3]
        scheduled: list[AssetDagView] = []
        tasks: dict[str, list[AssetTaskView]] = {"outlet": [], "inlet": []}
        for dag_id, kind, task_id, at in self.engine.rows(
            f"""SELECT r.dag_id, r.kind, r.task_id, min(r.at) FROM asset_reference r JOIN dag d ON d.dag_id = r.dag_id
               JOIN asset a ON a.id = ? WHERE d.is_active = 1 AND {_NAMES}
               GROUP BY r.dag_id, r.kind, r.task_id ORDER BY r.dag_id, r.task_id""",
            (number,),
        ):
            moment = iso(at) or ""
            if kind == "schedule":
                scheduled.append(AssetDagView(dag_id=dag_id, created_at=moment, updated_at=moment))
            else:
                tasks[kind].append(AssetTaskView(dag_id=dag_id, task_id=task_id, created_at=moment, updated_at=moment))
        aliases = self.engine.rows(
            """SELECT b.id, b.name, b.alias_group FROM asset_alias_member m JOIN asset_alias b ON b.name = m.alias
               WHERE m.asset = ? ORDER BY b.name""",
            (number,),
        )
        last = self.engine.row("SELECT id, at FROM asset_event WHERE asset = ? ORDER BY id DESC LIMIT 1", (number,))
        return AssetView(
            id=number,
            name=name,
            uri=uri,
            group=row[3],
            extra=msgspec.json.decode(row[4]) if row[4] else {},
            created_at=iso(row[5]) or "",
            updated_at=iso(row[6]) or "",
            scheduled_dags=scheduled,
            producing_tasks=tasks["outlet"],
            consuming_tasks=tasks["inlet"],
            aliases=[AssetAliasView(id=one[0], name=one[1], group=one[2]) for one in aliases],
            watchers=[],
            last_asset_event=None if last is None else LastAssetEventView(id=last[0], timestamp=iso(last[1])),
        )

    def asset_conflicts(self, number: int) -> list[str]:
        return [
            f"DAG {dag_id} names {name!r} with the URI {uri!r}; one name and one URI belong together, so make them the same"
            for dag_id, name, uri in self.engine.rows(
                """SELECT DISTINCT r.dag_id, r.name, r.uri FROM asset a JOIN asset_reference r
                   ON (r.name = a.name AND r.uri <> a.uri AND r.uri <> '')
                   OR (r.uri = a.uri AND r.name <> a.name AND r.name <> '')
                   JOIN dag d ON d.dag_id = r.dag_id WHERE d.is_active = 1 AND a.id = ? ORDER BY r.dag_id""",
                (number,),
            )
        ]

    def list_asset_aliases(
        self,
        *,
        name_pattern: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[AssetAliasView]:
        where = Where()
        where.pattern(self.engine.dialect, "b.name", name_pattern)
        order = ordering(order_by, {"id": "b.id", "name": "b.name"}, "b.id")
        sql = f"SELECT b.id, b.name, b.alias_group FROM asset_alias b{where.sql}{order}"
        rows = page(self.engine, sql, where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM asset_alias b{where.sql}", where.parameters)
        return Listing([AssetAliasView(id=row[0], name=row[1], group=row[2]) for row in rows], total)

    def asset_alias(self, number: int) -> AssetAliasView:
        row = self.engine.row("SELECT id, name, alias_group FROM asset_alias WHERE id = ?", (number,))
        if row is None:
            raise NotFound(f"There is no asset alias with id {number}.")
        return AssetAliasView(id=row[0], name=row[1], group=row[2])

    def list_asset_events(
        self,
        *,
        asset: int | None = None,
        source_dag_id: str | None = None,
        source_task_id: str | None = None,
        source_run_id: str | None = None,
        source_map_index: int | None = None,
        name_pattern: str | None = None,
        consumed_by: int | None = None,
        ranges: Mapping[str, int] | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("timestamp",),
    ) -> Listing[AssetEventView]:
        where = Where()
        for column, wanted in (
            ("e.asset", asset),
            ("e.source_dag", source_dag_id),
            ("e.source_task", source_task_id),
            ("e.source_run", source_run_id),
            ("e.source_index", source_map_index),
        ):
            if wanted is not None:
                where.add(f"{column} = ?", wanted)
        where.pattern(self.engine.dialect, "a.name", name_pattern)
        if consumed_by is not None:
            where.add("e.id IN (SELECT event FROM asset_delivery WHERE run = ?)", consumed_by)
        where.ranges({"timestamp": "e.at"}, ranges or {})
        order = ordering(order_by, _EVENT_ORDERS, "e.id")
        source = f"FROM asset_event e JOIN asset a ON a.id = e.asset{where.sql}"
        rows = page(self.engine, f"SELECT {_EVENT} {source}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) {source}", where.parameters)
        return Listing([self._event_view(row) for row in rows], total)

    def asset_event(self, number: int) -> AssetEventView:
        row = self.engine.row(f"SELECT {_EVENT} FROM asset_event e JOIN asset a ON a.id = e.asset WHERE e.id = ?", (number,))
        if row is None:
            raise NotFound(f"There is no asset event {number}.")
        return self._event_view(row)

    def _event_view(self, row: Row) -> AssetEventView:
        runs = self.engine.rows(
            """SELECT r.run_id, r.dag_id, r.logical_date, r.started_at, r.ended_at, r.state, r.interval_start, r.interval_end
               FROM asset_delivery d JOIN dag_run r ON r.id = d.run WHERE d.event = ? ORDER BY r.id""",
            (row[0],),
        )
        return AssetEventView(
            id=row[0],
            asset_id=row[1],
            uri=row[2],
            name=row[3],
            group=row[4],
            extra=msgspec.json.decode(row[5]) if row[5] else {},
            source_task_id=row[6],
            source_dag_id=row[7],
            source_run_id=row[8],
            source_map_index=row[9],
            created_dagruns=[
                CreatedRunView(
                    run_id=run[0],
                    dag_id=run[1],
                    logical_date=iso(run[2]),
                    start_date=iso(run[3]),
                    end_date=iso(run[4]),
                    state=RUN_STATES[run[5]],
                    data_interval_start=iso(run[6]),
                    data_interval_end=iso(run[7]),
                    partition_key=None,
                )
                for run in runs
            ],
            timestamp=iso(row[10]) or "",
            partition_key=None,
        )

    def queued_events(
        self, *, dag_id: str | None = None, asset: int | None = None, before: int | None = None
    ) -> list[QueuedEventView]:
        where = Where()
        where.add("d.outcome = 0 AND d.counts = 1")
        if dag_id is not None:
            self.need_dag(dag_id)
            where.add("d.dag_id = ?", dag_id)
        if asset is not None:
            where.add("e.asset = ?", asset)
        if before is not None:
            where.add("e.at < ?", before)
        rows = self.engine.rows(
            f"""SELECT d.dag_id, e.asset, min(e.at), g.version FROM asset_delivery d JOIN asset_event e ON e.id = d.event
               JOIN dag g ON g.dag_id = d.dag_id{where.sql} GROUP BY d.dag_id, e.asset, g.version ORDER BY d.dag_id, e.asset""",
            where.parameters,
        )
        return [
            QueuedEventView(
                dag_id=row[0],
                asset_id=row[1],
                created_at=iso(row[2]) or "",
                dag_display_name=self.shown_version(row[3]).dag.shown_name,
            )
            for row in rows
        ]


_NAMES = "((r.name = a.name AND r.uri IN (a.uri, '')) OR (r.name = '' AND r.uri = a.uri AND r.uri <> ''))"
"""Condition: reference `r` means asset `a`."""

_COLUMNS = "a.id, a.name, a.uri, a.asset_group, a.extra, a.created_at, a.updated_at"
_ORDERS = {
    "id": "a.id",
    "name": "a.name",
    "uri": "a.uri",
    "group": "a.asset_group",
    "created_at": "a.created_at",
    "updated_at": "a.updated_at",
}
_EVENT = """e.id, e.asset, a.uri, a.name, a.asset_group, e.extra, e.source_task, e.source_dag, e.source_run, e.source_index,
    e.at"""
_EVENT_ORDERS = {
    "id": "e.id",
    "timestamp": "e.id",
    "source_dag_id": "e.source_dag",
    "source_task_id": "e.source_task",
    "source_run_id": "e.source_run",
    "source_map_index": "e.source_index",
}
