"""Lists of assets, aliases, events, and events that wait for DAGs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tradewind.model.assets import AssetWatch, decode_asset_schedule, watcher_number
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import WatcherRow
from tradewind.model.states import RUN_STATES
from tradewind.store.sql.engine import Row
from tradewind.store.sql.queries import Where, count, ordering, page, rows_among
from tradewind.store.sql.service_lists import ServiceLists
from tradewind.store.views import (
    NO_CONDITIONS,
    AssetAliasView,
    AssetDagView,
    AssetEventView,
    AssetTaskView,
    AssetView,
    AssetWatcherView,
    Conditions,
    CreatedRunView,
    LastAssetEventView,
    Listing,
    QueuedEventView,
)

_NO_EVENT = LastAssetEventView(id=None, timestamp=None)


class AssetLists(ServiceLists):
    """See `store.port.lists`."""

    def list_assets(
        self,
        *,
        name_pattern: str | None = None,
        uri_pattern: str | None = None,
        dag_ids: Sequence[str] = (),
        only_active: bool = True,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[AssetView]:
        where = Where()
        where.pattern(self.engine.dialect, "a.name", name_pattern)
        where.pattern(self.engine.dialect, "a.uri", uri_pattern)
        where.conditions(self.engine.dialect, {"name": "a.name", "uri": "a.uri"}, conditions)
        if dag_ids:
            marks = ", ".join("?" * len(dag_ids))
            where.add(f"EXISTS (SELECT 1 FROM asset_reference r WHERE r.dag_id IN ({marks}) AND {_NAMES})", *dag_ids)
        if only_active:
            where.add(
                f"""(EXISTS (SELECT 1 FROM asset_reference r JOIN dag d ON d.dag_id = r.dag_id
                WHERE d.is_active = 1 AND {_NAMES})
                OR EXISTS (SELECT 1 FROM asset_alias_member m WHERE m.asset = a.id))"""
            )
        order = ordering(self.engine.dialect, order_by, _ORDERS, "a.id")
        rows = page(self.engine, f"SELECT {_COLUMNS} FROM asset a{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM asset a{where.sql}", where.parameters)
        return Listing(self._asset_views(rows), total)

    def asset_details(self, number: int) -> AssetView:
        row = self.engine.row(f"SELECT {_COLUMNS} FROM asset a WHERE a.id = ?", (number,))
        if row is None:
            raise NotFound(english(phrase("error_no_asset", number=number)))
        return self._asset_views([row])[0]

    def need_asset(self, name: str, uri: str) -> AssetView:
        found = self.find_asset(name=name, uri=uri)
        if found is None:
            known = [one for row in self.engine.rows("SELECT name, uri FROM asset") for one in row]
            raise NotFound(f"There is no asset {name or uri!r}.{did_you_mean(name or uri, known)}")
        return self.asset_details(found.id)

    def _asset_views(self, rows: Sequence[Row]) -> list[AssetView]:
        """Return the views of rows of `_COLUMNS`, with three statements."""
        numbers = [row[0] for row in rows]
        references: dict[int, list[Row]] = {}
        for row in rows_among(self.engine, _REFERENCES, numbers):
            references.setdefault(row[0], []).append(row[1:])
        aliases: dict[int, list[AssetAliasView]] = {}
        for number, alias, name, group in rows_among(self.engine, _ALIASES, numbers):
            aliases.setdefault(number, []).append(AssetAliasView(id=alias, name=name, group=group))
        last = {number: LastAssetEventView(id=event, timestamp=iso(at)) for number, event, at in self._last_events(numbers)}
        watchers = self._watchers_of(rows, references)
        return [
            _asset_view(
                row, references.get(row[0], ()), aliases.get(row[0], []), watchers.get(row[0], []), last.get(row[0], _NO_EVENT)
            )
            for row in rows
        ]

    def _watchers_of(self, assets: Sequence[Row], references: Mapping[int, Sequence[Row]]) -> dict[int, list[AssetWatcherView]]:
        """The watchers in the schedules of active DAGs, by asset."""
        dags = {dag_id for found in references.values() for dag_id, kind, _, _ in found if kind == "schedule"}
        schedules = rows_among(
            self.engine, "SELECT dag_id, bundle, assets FROM dag WHERE assets IS NOT NULL AND dag_id IN ({})", sorted(dags)
        )
        watches: dict[tuple[str, str], dict[tuple[str, int], tuple[str, AssetWatch]]] = {}
        for dag_id, bundle, encoded in schedules:
            for watch in decode_asset_schedule(encoded).watchers:
                number = watcher_number(bundle, watch.trigger)
                known = watches.setdefault((watch.asset_name, watch.asset_uri), {})
                known.setdefault((watch.name, number), (dag_id, watch))
        if not watches:
            return {}
        states = {row.number: row for row in self.watchers()}
        return {
            row[0]: [
                _watcher_view(number, watch, states.get(number), min(one[3] for one in references[row[0]] if one[0] == dag_id))
                for (_, number), (dag_id, watch) in watches.get((row[1], row[2]), {}).items()
            ]
            for row in assets
        }

    def _last_events(self, numbers: Sequence[int]) -> list[Row]:
        return rows_among(
            self.engine,
            """SELECT a.id, e.id, e.at FROM asset a JOIN asset_event e
               ON e.id = (SELECT x.id FROM asset_event x WHERE x.asset = a.id ORDER BY x.id DESC LIMIT 1)
               WHERE a.id IN ({})""",
            numbers,
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
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[AssetAliasView]:
        where = Where()
        where.conditions(self.engine.dialect, {"name": "b.name"}, conditions)
        where.pattern(self.engine.dialect, "b.name", name_pattern)
        order = ordering(self.engine.dialect, order_by, {"id": "b.id", "name": "b.name"}, "b.id")
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
        conditions: Conditions = NO_CONDITIONS,
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
        where.conditions(self.engine.dialect, {"name": "a.name"}, conditions)
        if consumed_by is not None:
            where.add("e.id IN (SELECT event FROM asset_delivery WHERE run = ?)", consumed_by)
        where.ranges({"timestamp": "e.at"}, ranges or {})
        order = ordering(self.engine.dialect, order_by, _EVENT_ORDERS, "e.id")
        source = f"FROM asset_event e JOIN asset a ON a.id = e.asset{where.sql}"
        rows = page(self.engine, f"SELECT {_EVENT} {source}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) {source}", where.parameters)
        return Listing(self._event_views(rows), total)

    def asset_event(self, number: int) -> AssetEventView:
        row = self.engine.row(f"SELECT {_EVENT} FROM asset_event e JOIN asset a ON a.id = e.asset WHERE e.id = ?", (number,))
        if row is None:
            raise NotFound(f"There is no asset event {number}.")
        return self._event_views([row])[0]

    def _event_views(self, rows: Sequence[Row]) -> list[AssetEventView]:
        """Return the views of rows of `_EVENT`, with one statement for the runs that they created."""
        created: dict[int, list[CreatedRunView]] = {}
        for row in rows_among(self.engine, _CREATED_RUNS, [row[0] for row in rows]):
            created.setdefault(row[0], []).append(_created_run(row[1:]))
        return [_event_view(row, created.get(row[0], [])) for row in rows]

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
        shown = self.shown_versions([row[3] for row in rows])
        return [
            QueuedEventView(
                dag_id=row[0],
                asset_id=row[1],
                created_at=iso(row[2]) or "",
                dag_display_name=shown[row[3]].dag.shown_name,
            )
            for row in rows
        ]


_NAMES = "((r.name = a.name AND r.uri IN (a.uri, '')) OR (r.name = '' AND r.uri = a.uri AND r.uri <> ''))"
"""Condition: the reference `r` stands for the asset `a`."""

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
    e.at, e.partition_key"""
_EVENT_ORDERS = {
    "id": "e.id",
    "timestamp": "e.id",
    "source_dag_id": "e.source_dag",
    "source_task_id": "e.source_task",
    "source_run_id": "e.source_run",
    "source_map_index": "e.source_index",
}


_REFERENCES = f"""SELECT a.id, r.dag_id, r.kind, r.task_id, min(r.at) FROM asset a JOIN asset_reference r ON {_NAMES}
    JOIN dag d ON d.dag_id = r.dag_id WHERE d.is_active = 1 AND a.id IN ({{}})
    GROUP BY a.id, r.dag_id, r.kind, r.task_id ORDER BY r.dag_id, r.task_id"""

_ALIASES = """SELECT m.asset, b.id, b.name, b.alias_group FROM asset_alias_member m JOIN asset_alias b ON b.name = m.alias
    WHERE m.asset IN ({}) ORDER BY b.name"""

_CREATED_RUNS = """SELECT d.event, r.run_id, r.dag_id, r.logical_date, r.started_at, r.ended_at, r.state, r.interval_start,
    r.interval_end, r.partition_key, d.event, (SELECT max(x.event) FROM asset_delivery x WHERE x.run = d.run)
    FROM asset_delivery d JOIN dag_run r ON r.id = d.run WHERE d.event IN ({}) ORDER BY r.id"""


def _watcher_view(number: int, watch: AssetWatch, state: WatcherRow | None, at: int) -> AssetWatcherView:
    return AssetWatcherView(
        name=watch.name,
        trigger_id=number,
        created_date=iso(at) or "",
        trigger=watch.trigger.classpath,
        worker=state.worker if state is not None else None,
        failures=state.failures if state is not None else 0,
        error=state.error if state is not None else None,
        next_start=iso(state.next_start) if state is not None else None,
    )


def _asset_view(
    row: Row,
    references: Sequence[Row],
    aliases: list[AssetAliasView],
    watchers: list[AssetWatcherView],
    last: LastAssetEventView,
) -> AssetView:
    scheduled: list[AssetDagView] = []
    tasks: dict[str, list[AssetTaskView]] = {"outlet": [], "inlet": []}
    for dag_id, kind, task_id, at in references:
        moment = iso(at) or ""
        if kind == "schedule":
            scheduled.append(AssetDagView(dag_id=dag_id, created_at=moment, updated_at=moment))
        else:
            tasks[kind].append(AssetTaskView(dag_id=dag_id, task_id=task_id, created_at=moment, updated_at=moment))
    return AssetView(
        id=row[0],
        name=row[1],
        uri=row[2],
        group=row[3],
        extra=msgspec.json.decode(row[4]) if row[4] else {},
        created_at=iso(row[5]) or "",
        updated_at=iso(row[6]) or "",
        scheduled_dags=scheduled,
        producing_tasks=tasks["outlet"],
        consuming_tasks=tasks["inlet"],
        aliases=aliases,
        watchers=watchers,
        last_asset_event=last,
    )


def _created_run(row: Row) -> CreatedRunView:
    return CreatedRunView(
        run_id=row[0],
        dag_id=row[1],
        logical_date=iso(row[2]),
        start_date=iso(row[3]),
        end_date=iso(row[4]),
        state=RUN_STATES[row[5]],
        data_interval_start=iso(row[6]),
        data_interval_end=iso(row[7]),
        partition_key=row[8],
        triggering=row[9] == row[10],
    )


def _event_view(row: Row, created: list[CreatedRunView]) -> AssetEventView:
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
        created_dagruns=created,
        timestamp=iso(row[10]) or "",
        partition_key=row[11],
    )
