"""Assets, their events, the DAGs that wait for events, and the runs that consumed them.

A delivery is an event for one DAG; its key is (DAG, event). An event and its deliveries are written in one transaction; a run and
the deliveries that it consumes in another one. So each DAG consumes each event at most once, and no event is lost: a delivery that
is not consumed waits, or is superseded with a reason. Events are ordered by their numbers, not by clocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import msgspec

from tradewind.model.assets import AliasKey, AssetKey, Leaf, Update, decode_asset_schedule, leaves, matches
from tradewind.model.definition import DagDefinition
from tradewind.model.errors import Changed, Conflict
from tradewind.model.partitions import Custom, KeyFacts, MappedKey, Mapper, UnmappedEvent
from tradewind.model.rows import (
    AssetEventRow,
    AssetRow,
    NewAssetEvent,
    NewRun,
    RunRow,
    WaitingAsset,
    WaitingPartition,
    WatcherRow,
)
from tradewind.store.sql.engine import NO_LIMIT, Engine, Row
from tradewind.timetables.partition_keys import PartitionKeyError, downstream_keys

CREATED_MAX = 1_000
"""Maximum number of new assets that are kept for listeners."""
WAITS, CONSUMED, SUPERSEDED = 0, 1, 2
NAMED_NO_MORE = "the DAG's schedule does not name its asset any more"
OTHER_PARTITIONS = "the partition mappers of the DAG's schedule have changed"
NO_KEY = "the event has no partition key, and the DAG's schedule needs one"
PAUSED = "the DAG was paused"
NO_TARGETS = "the partition mapper gave no key"

_ASSET = "a.id, a.name, a.uri, a.asset_group, a.extra"
_EVENT = f"{_ASSET}, e.id, e.extra, e.at, e.source_dag, e.source_run, e.source_task, e.source_index, e.aliases, e.partition_key"


class AssetOperations:
    """See `store.port` for the descriptions of the methods."""

    engine: Engine
    created_assets: list[AssetKey | AliasKey]
    """Created since they were last taken, also by transactions that were rolled back; at most `CREATED_MAX`."""

    # --- references -------------------------------------------------------------------------------------------------

    def _note_assets(self, definition: DagDefinition, at: int, before: bytes | None) -> None:
        """Replace the assets to which a DAG refers by the assets of its current definition.

        Args:
            before: the encoded `AssetSchedule` of its last definition.
        """
        engine, dag_id = self.engine, definition.dag_id
        had_rules = None if before is None else decode_asset_schedule(before).partitions
        if before is not None and definition.assets is not None and had_rules != definition.assets.partitions:
            engine.run(
                "UPDATE asset_delivery SET outcome = ?, reason = ? WHERE dag_id = ? AND outcome = 0",
                (SUPERSEDED, OTHER_PARTITIONS, dag_id),
            )
        wanted = list(references(definition))
        had = engine.rows("SELECT kind, task_id, name, uri, alias FROM asset_reference WHERE dag_id = ?", (dag_id,))
        if not wanted and not had:
            return
        for _, leaf in named(definition):
            self._note_asset(leaf, at)
        gone = set(had) - set(wanted)
        engine.many(
            "DELETE FROM asset_reference WHERE dag_id = ? AND kind = ? AND task_id = ? AND name = ? AND uri = ? AND alias = ?",
            [(dag_id, *one) for one in gone],
        )
        engine.many(
            "INSERT INTO asset_reference (dag_id, kind, task_id, name, uri, alias, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(dag_id, *one, at) for one in dict.fromkeys(wanted) if one not in set(had)],
        )
        if any(one[0] == "schedule" for one in gone):
            self._supersede_unnamed(definition)

    def _note_asset(self, leaf: Leaf, at: int) -> None:
        if isinstance(leaf, AliasKey):
            if self.engine.row("SELECT 1 FROM asset_alias WHERE name = ?", (leaf.name,)) is None:
                self._note_created(leaf)
            self.engine.run(
                """INSERT INTO asset_alias (name, alias_group) VALUES (?, ?)
                   ON CONFLICT (name) DO UPDATE SET alias_group = excluded.alias_group""",
                (leaf.name, leaf.group),
            )
        elif leaf.name and leaf.uri:
            known = self.engine.row(
                "SELECT id, asset_group, extra FROM asset WHERE name = ? AND uri = ?", (leaf.name, leaf.uri)
            )
            if known is None:
                self._note_created(leaf)
                self.engine.run(
                    "INSERT INTO asset (name, uri, asset_group, extra, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)",
                    (leaf.name, leaf.uri, leaf.group, leaf.extra or None, at, at),
                )
            elif known[1:] != (leaf.group, leaf.extra or None):
                self.engine.change(
                    "UPDATE asset SET asset_group = ?, extra = ?, updated_at = ? WHERE id = ?",
                    (leaf.group, leaf.extra or None, at, known[0]),
                    f"asset {leaf.name}",
                )

    def _note_created(self, leaf: AssetKey | AliasKey) -> None:
        if len(self.created_assets) < CREATED_MAX:
            self.created_assets.append(leaf)

    def take_created_assets(self) -> list[AssetKey | AliasKey]:
        if not self.created_assets:
            return []
        noted, self.created_assets = list(dict.fromkeys(self.created_assets)), []
        return [leaf for leaf in noted if self._exists(leaf)]

    def _exists(self, leaf: AssetKey | AliasKey) -> bool:
        if isinstance(leaf, AliasKey):
            return self.engine.row("SELECT 1 FROM asset_alias WHERE name = ?", (leaf.name,)) is not None
        return self.engine.row("SELECT 1 FROM asset WHERE name = ? AND uri = ?", (leaf.name, leaf.uri)) is not None

    def _supersede_unnamed(self, definition: DagDefinition) -> None:
        condition = None if definition.assets is None else definition.assets.condition
        wanted = [] if condition is None else list(leaves(condition))
        for waiting in self._waiting(definition.dag_id):
            update = Update(waiting.asset.name, waiting.asset.uri, waiting.aliases)
            if not any(matches(leaf, update) for leaf in wanted):
                self.engine.run(
                    """UPDATE asset_delivery SET outcome = ?, reason = ? WHERE dag_id = ? AND outcome = 0
                       AND event IN (SELECT id FROM asset_event WHERE asset = ?)""",
                    (SUPERSEDED, NAMED_NO_MORE, definition.dag_id, waiting.asset.id),
                )

    # --- events -----------------------------------------------------------------------------------------------------

    def record_asset_events(self, events: Sequence[NewAssetEvent], epoch: int = 0) -> tuple[list[int], frozenset[str]]:
        with self.engine.transaction():
            self._check_epoch(epoch)
            return self._record(events)

    def _record(self, events: Iterable[NewAssetEvent]) -> tuple[list[int], frozenset[str]]:
        numbers: list[int] = []
        consumers: set[str] = set()
        for event in events:
            asset = self._asset_of(event)
            if event.origin is not None and self._is_recorded(asset, event.origin):
                continue
            number = self._insert_event(asset, event)
            numbers.append(number)
            consumers |= self._deliver(number, asset, bool(event.aliases), event.partition_key)
        return numbers, frozenset(consumers)

    def _insert_event(self, asset: AssetRow, event: NewAssetEvent) -> int:
        row = self.engine.row("SELECT coalesce(max(id), 0) + 1 FROM asset_event")
        assert row is not None
        number = int(row[0])
        self.engine.run(
            """INSERT INTO asset_event (id, asset, extra, at, source_dag, source_run, source_task, source_index, aliases,
               origin, partition_key, partition_date) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                number,
                asset.id,
                event.extra,
                event.at,
                event.source_dag,
                event.source_run,
                event.source_task,
                event.source_index,
                json.dumps(sorted(event.aliases)),
                event.origin,
                event.partition_key,
                event.partition_date,
            ),
        )
        return number

    def import_asset_event(
        self, event: NewAssetEvent, waits: Sequence[tuple[str, str]], consumed: Sequence[tuple[str, str]]
    ) -> bool:
        engine = self.engine
        with engine.transaction():
            asset = self._asset_of(event)
            known = engine.row("SELECT id FROM asset_event WHERE asset = ? AND origin = ?", (asset.id, event.origin))
            number = self._insert_event(asset, event) if known is None else int(known[0])
            for dag_id, target in waits:
                if self._is_scheduled_on(dag_id, asset):
                    engine.run(
                        """INSERT INTO asset_delivery (dag_id, event, target) VALUES (?, ?, ?)
                           ON CONFLICT (dag_id, event, target) DO NOTHING""",
                        (dag_id, number, target),
                    )
            for dag_id, run_id in consumed:
                run = engine.row("SELECT id, partition_key FROM dag_run WHERE dag_id = ? AND run_id = ?", (dag_id, run_id))
                if run is not None:
                    engine.run(
                        """INSERT INTO asset_delivery (dag_id, event, outcome, run, target) VALUES (?, ?, ?, ?, ?)
                           ON CONFLICT (dag_id, event, target) DO UPDATE SET outcome = excluded.outcome, run = excluded.run
                           WHERE asset_delivery.outcome = 0""",
                        (dag_id, number, CONSUMED, run[0], run[1] or ""),
                    )
        return known is None

    def _is_scheduled_on(self, dag_id: str, asset: AssetRow) -> bool:
        """Whether the schedule of a DAG names the asset, or an alias that the asset has had."""
        found = self.engine.row(
            """SELECT 1 FROM asset_reference WHERE dag_id = ? AND kind = 'schedule' AND ((name = ? AND uri IN (?, ''))
               OR (name = '' AND uri = ?) OR alias IN (SELECT alias FROM asset_alias_member WHERE asset = ?))""",
            (dag_id, asset.name, asset.uri, asset.uri, asset.id),
        )
        return found is not None

    def _is_recorded(self, asset: AssetRow, origin: str) -> bool:
        return self.engine.row("SELECT 1 FROM asset_event WHERE asset = ? AND origin = ?", (asset.id, origin)) is not None

    def _asset_of(self, event: NewAssetEvent) -> AssetRow:
        """Return the asset of an event. Create it if it does not exist."""
        asset = self.find_asset(name=event.name, uri=event.uri)
        if asset is None:
            name, uri = event.name or event.uri, event.uri or event.name
            self._note_asset(AssetKey(name, uri, event.group, event.about or b""), event.at)
            asset = self.find_asset(name=name, uri=uri)
            assert asset is not None
        for alias in event.aliases:
            if self.engine.run("INSERT INTO asset_alias (name) VALUES (?) ON CONFLICT (name) DO NOTHING", (alias,)):
                self._note_created(AliasKey(alias))
            self.engine.run(
                "INSERT INTO asset_alias_member (alias, asset) VALUES (?, ?) ON CONFLICT (alias, asset) DO NOTHING",
                (alias, asset.id),
            )
        return asset

    def _deliver(self, event: int, asset: AssetRow, aliased: bool, key: str | None) -> set[str]:
        """Deliver an event to every DAG that is scheduled on its asset, or on an alias that the asset has had.

        A DAG whose schedule has partitions gets the event under each partition key that its mapper gives. An event with a partition
        key is delivered only to such DAGs. Returns the DAGs whose condition the event may have changed.
        """
        found = self.engine.rows(
            """SELECT DISTINCT d.dag_id, d.is_paused, d.assets FROM asset_reference r JOIN dag d ON d.dag_id = r.dag_id
               WHERE d.is_active = 1 AND r.kind = 'schedule' AND r.name = ? AND r.uri IN (?, '')
               UNION SELECT d.dag_id, d.is_paused, d.assets FROM asset_reference r JOIN dag d ON d.dag_id = r.dag_id
               WHERE d.is_active = 1 AND r.kind = 'schedule' AND r.uri = ? AND r.name = ''
               UNION SELECT d.dag_id, d.is_paused, d.assets FROM asset_alias_member m
               JOIN asset_reference r ON r.alias = m.alias AND r.kind = 'schedule' JOIN dag d ON d.dag_id = r.dag_id
               WHERE d.is_active = 1 AND m.asset = ?""",
            (asset.name, asset.uri, asset.uri, asset.id),
        )
        partitioned: set[str] = set()
        rows: list[tuple[str, bool]] = []
        for dag_id, paused, assets in found:
            rules = None if assets is None else decode_asset_schedule(bytes(assets)).partitions
            if rules is not None:
                partitioned |= self._deliver_partitions(event, dag_id, rules.mapper(asset.name, asset.uri), key, bool(paused))
            elif key is None:
                rows.append((dag_id, bool(paused)))
        self.engine.many(
            "INSERT INTO asset_delivery (dag_id, event, counts) VALUES (?, ?, ?)",
            [(dag_id, event, 0 if paused else 1) for dag_id, paused in rows],
        )
        return partitioned | self._changed(event, asset, aliased, rows)

    def _deliver_partitions(self, event: int, dag_id: str, mapper: Mapper, key: str | None, paused: bool) -> set[str]:
        """Deliver an event to a DAG with partitions. If that is impossible, the delivery says why. Returns the DAG, or none."""
        targets, reason = list[str](), NO_KEY
        if paused:
            reason = PAUSED
        elif key and isinstance(mapper, Custom):
            self.engine.run("INSERT INTO asset_delivery (dag_id, event) VALUES (?, ?)", (dag_id, event))  # not mapped yet
            return {dag_id}
        elif key:
            try:
                targets = downstream_keys(mapper, key)
            except PartitionKeyError as error:
                reason = str(error)
        if targets:
            self.engine.many(
                "INSERT INTO asset_delivery (dag_id, event, target) VALUES (?, ?, ?)", [(dag_id, event, one) for one in targets]
            )
            return {dag_id}
        self.engine.run(
            "INSERT INTO asset_delivery (dag_id, event, outcome, reason) VALUES (?, ?, ?, ?)",
            (dag_id, event, SUPERSEDED, reason),
        )
        return set()

    def unmapped_events(self, dag_id: str, limit: int) -> list[UnmappedEvent]:
        rows = self.engine.rows(
            f"""SELECT e.id, a.name, a.uri, e.partition_key, e.partition_date FROM asset_delivery d{self._waiting_hint}
               JOIN asset_event e ON e.id = d.event JOIN asset a ON a.id = e.asset
               WHERE d.dag_id = ? AND d.outcome = 0 AND d.target = '' AND e.partition_key IS NOT NULL ORDER BY e.id LIMIT ?""",
            (dag_id, limit),
        )
        return [UnmappedEvent(*row) for row in rows]

    def map_event(self, dag_id: str, event: int, mapped: MappedKey, epoch: int = 0) -> None:
        with self.engine.transaction():
            self._check_epoch(epoch)
            where, key = "dag_id = ? AND event = ? AND outcome = 0 AND target = ''", (dag_id, event)
            if not mapped.targets:
                reason = mapped.problem or NO_TARGETS
                self.engine.run(f"UPDATE asset_delivery SET outcome = ?, reason = ? WHERE {where}", (SUPERSEDED, reason, *key))
            elif self.engine.run(f"DELETE FROM asset_delivery WHERE {where}", key):
                rows = [(dag_id, event, target, msgspec.json.encode(facts)) for target, facts in mapped.targets]
                self.engine.many("INSERT INTO asset_delivery (dag_id, event, target, facts) VALUES (?, ?, ?, ?)", rows)

    def _changed(self, event: int, asset: AssetRow, aliased: bool, rows: list[tuple[str, bool]]) -> set[str]:
        """Return those of the DAGs that got an event whose condition the event may have changed."""
        if aliased:  # the alias may be new for this asset
            return {dag_id for dag_id, paused in rows if not paused}
        before = self.engine.row("SELECT max(id) FROM asset_event WHERE asset = ? AND id < ?", (asset.id, event))
        latest: int | None = None if before is None else before[0]
        return {dag_id for dag_id, paused in rows if not paused and not self._waits(dag_id, latest)}

    def _waits(self, dag_id: str, event: int | None) -> bool:
        """Whether an event waits for a DAG and counts. Then a later event of the asset does not change the DAG's condition."""
        return (
            event is not None
            and self.engine.row(
                "SELECT 1 FROM asset_delivery WHERE dag_id = ? AND event = ? AND outcome = 0 AND counts = 1", (dag_id, event)
            )
            is not None
        )

    # --- deliveries -------------------------------------------------------------------------------------------------

    @property
    def _waiting_hint(self) -> str:
        return self.engine.dialect.index_hint("asset_delivery_waiting")

    def waiting_assets(self, dag_id: str) -> list[WaitingAsset]:
        return self._waiting(dag_id, "AND d.target = ''")

    def _waiting(self, dag_id: str, only: str = "") -> list[WaitingAsset]:
        rows = self.engine.rows(
            f"""SELECT {_ASSET}, max(d.counts), count(*), min(e.at), max(e.id), max(e.at)
               FROM asset_delivery d{self._waiting_hint}
               JOIN asset_event e ON e.id = d.event JOIN asset a ON a.id = e.asset
               WHERE d.dag_id = ? AND d.outcome = 0 {only} GROUP BY a.id ORDER BY max(e.id)""",
            (dag_id,),
        )
        return [
            WaitingAsset(AssetRow(*row[:5]), self._aliases_of(row[0]), bool(row[5]), row[6], row[7], row[8], row[9])
            for row in rows
        ]

    def waiting_partitions(self, dag_id: str, after: int = 0, limit: int | None = None) -> list[WaitingPartition]:
        keys = self.engine.rows(
            f"""SELECT target, min(event) FROM asset_delivery d{self._waiting_hint}
               WHERE dag_id = ? AND outcome = 0 AND target <> '' GROUP BY target HAVING max(event) > ?
               ORDER BY min(event), target LIMIT ?""",
            (dag_id, after, NO_LIMIT if limit is None else limit),
        )
        return [self._waiting_partition(dag_id, key) for key, _ in keys]

    def dropped_asset_event(self, dag_id: str) -> tuple[int, str] | None:
        row = self.engine.row(
            "SELECT event, outcome, reason FROM asset_delivery WHERE dag_id = ? ORDER BY event DESC, target DESC LIMIT 1",
            (dag_id,),
        )
        return None if row is None or row[1] != SUPERSEDED else (row[0], row[2] or "")

    def _waiting_partition(self, dag_id: str, key: str) -> WaitingPartition:
        rows = self.engine.rows(
            f"""SELECT {_ASSET}, e.id, e.at, e.partition_key, e.partition_date, d.facts FROM asset_delivery d{self._waiting_hint}
               JOIN asset_event e ON e.id = d.event JOIN asset a ON a.id = e.asset
               WHERE d.dag_id = ? AND d.outcome = 0 AND d.target = ? ORDER BY e.id""",
            (dag_id, key),
        )
        keys: dict[AssetRow, set[str]] = {}
        for row in rows:
            keys.setdefault(AssetRow(*row[:5]), set()).add(row[7])
        dates = tuple(dict.fromkeys((row[0], row[8]) for row in rows if row[8] is not None))
        assets = tuple((asset, frozenset(found)) for asset, found in keys.items())
        facts = {row[0]: msgspec.json.decode(row[9], type=KeyFacts) for row in rows if row[9] is not None}  # the latest
        return WaitingPartition(key, assets, dates, rows[0][6], rows[-1][5], rows[-1][6], tuple(facts.items()))

    def _aliases_of(self, asset: int) -> frozenset[str]:
        return frozenset(name for (name,) in self.engine.rows("SELECT alias FROM asset_alias_member WHERE asset = ?", (asset,)))

    def waiting_interval(self, dag_id: str, upto: int) -> tuple[int, int] | None:
        row = self.engine.row(
            f"""SELECT min(r.interval_start), max(r.interval_end)
               FROM asset_delivery d{self._waiting_hint} JOIN asset_event e ON e.id = d.event
               JOIN dag_run r ON r.dag_id = e.source_dag AND r.run_id = e.source_run
               WHERE d.dag_id = ? AND d.outcome = 0 AND d.event <= ?
               AND r.interval_start IS NOT NULL AND r.interval_end IS NOT NULL""",
            (dag_id, upto),
        )
        return None if row is None or row[0] is None else (row[0], row[1])

    def create_asset_run(self, new: NewRun, upto: int, epoch: int = 0) -> RunRow:
        with self.engine.transaction():
            self._check_epoch(epoch)
            target = new.partition_key or ""
            counting = self.engine.row(
                f"""SELECT 1 FROM asset_delivery{self._waiting_hint}
                   WHERE dag_id = ? AND outcome = 0 AND target = ? AND event <= ? AND counts = 1 LIMIT 1""",
                (new.dag_id, target, upto),
            )
            if counting is None:
                raise Conflict(f"no asset event waits for DAG {new.dag_id} any more")
            row = self._create_run(new)
            consumed = self.engine.run(
                "UPDATE asset_delivery SET outcome = ?, run = ? WHERE dag_id = ? AND outcome = 0 AND target = ? AND event <= ?",
                (CONSUMED, row.id, new.dag_id, target, upto),
            )
            if not consumed:
                raise Changed(
                    f"the asset events that wait for DAG {new.dag_id} were consumed or dropped by another process at the same time"
                )
        return row

    def _create_run(self, new: NewRun) -> RunRow:
        raise NotImplementedError

    def _check_epoch(self, epoch: int) -> None:
        raise NotImplementedError

    def _audit(self, event: str, actor: str, at: int, *, dag_id: str | None = None, detail: object = None) -> None:
        raise NotImplementedError

    def drop_waiting_events(self, dag_id: str | None, asset: int | None, before: int | None, actor: str, at: int) -> list[str]:
        where, parameters = "outcome = 0", list[object]()
        if dag_id is not None:
            where += " AND dag_id = ?"
            parameters.append(dag_id)
        if asset is not None:
            where += " AND event IN (SELECT id FROM asset_event WHERE asset = ?)"
            parameters.append(asset)
        if before is not None:
            where += " AND event IN (SELECT id FROM asset_event WHERE at < ?)"
            parameters.append(before)
        with self.engine.transaction():
            rows = self.engine.rows(f"SELECT dag_id, count(*) FROM asset_delivery WHERE {where} GROUP BY dag_id", parameters)
            dropped = self.engine.run(
                f"UPDATE asset_delivery SET outcome = ?, reason = ? WHERE {where}",
                (SUPERSEDED, f"dismissed by {actor}", *parameters),
            )
            if dropped != sum(count for _, count in rows):
                raise Changed(
                    "the waiting asset events were changed by another request at the same time; nothing was written. Try again"
                )
            for dag, count in rows:
                self._audit("drop asset events", actor, at, dag_id=dag, detail={"count": count, "asset": asset})
        return [dag for dag, _ in rows]

    # --- events that are read ---------------------------------------------------------------------------------------

    def asset_events_of_run(self, run: int) -> list[AssetEventRow]:
        rows = self.engine.rows(
            f"""SELECT {_EVENT} FROM asset_delivery d JOIN asset_event e ON e.id = d.event JOIN asset a ON a.id = e.asset
               WHERE d.run = ? ORDER BY e.id""",
            (run,),
        )
        return [event_row(row) for row in rows]

    def asset_events(
        self,
        *,
        name: str = "",
        uri: str = "",
        alias: str = "",
        after: int | None = None,
        before: int | None = None,
        ascending: bool = True,
        limit: int | None = None,
    ) -> list[AssetEventRow]:
        terms: list[str] = []
        parameters: list[object] = []
        for column, text in (("a.name", name), ("a.uri", uri)):
            if text:
                terms.append(f"{column} = ?")
                parameters.append(text)
        if alias:
            terms.append("a.id IN (SELECT asset FROM asset_alias_member WHERE alias = ?)")
            parameters.append(alias)
        for operator, moment in ((">=", after), ("<=", before)):
            if moment is not None:
                terms.append(f"e.at {operator} ?")
                parameters.append(moment)
        where = f"WHERE {' AND '.join(terms)}" if terms else ""
        order = "" if ascending else " DESC"
        rows = self.engine.rows(
            f"""SELECT {_EVENT} FROM asset_event e JOIN asset a ON a.id = e.asset {where}
               ORDER BY e.id{order} LIMIT ?""",
            (*parameters, NO_LIMIT if limit is None or alias else limit),
        )
        found = [event_row(row) for row in rows]
        return [event for event in found if alias in event.aliases][:limit] if alias else found

    def find_asset(self, *, number: int | None = None, name: str = "", uri: str = "") -> AssetRow | None:
        terms = [("a.id", number)] if number is not None else []
        terms += [(column, text) for column, text in (("a.name", name), ("a.uri", uri)) if text]  # type: ignore[misc]
        if not terms:
            return None
        row = self.engine.row(
            f"""SELECT {_ASSET}, EXISTS (SELECT 1 FROM asset_reference r JOIN dag d ON d.dag_id = r.dag_id
               WHERE d.is_active = 1 AND r.name = a.name AND r.uri = a.uri) AS named FROM asset a
               WHERE {" AND ".join(f"{column} = ?" for column, _ in terms)} ORDER BY named DESC, a.id DESC LIMIT 1""",
            [value for _, value in terms],
        )
        return None if row is None else AssetRow(*row[:5])

    def producers(self, asset: AssetRow) -> list[tuple[str, str]]:
        rows = self.engine.rows(
            """SELECT DISTINCT r.dag_id, r.task_id FROM asset_reference r JOIN dag d ON d.dag_id = r.dag_id
               WHERE d.is_active = 1 AND r.kind = 'outlet'
               AND ((r.name = ? AND r.uri IN (?, '')) OR (r.name = '' AND r.uri = ?)) ORDER BY r.dag_id, r.task_id""",
            (asset.name, asset.uri, asset.uri),
        )
        return [(dag_id, task_id) for dag_id, task_id in rows]

    # --- watchers ---------------------------------------------------------------------------------------------------

    def note_watcher(self, row: WatcherRow, epoch: int) -> None:
        with self.engine.transaction():
            self._check_epoch(epoch)
            self.engine.run(
                """INSERT INTO asset_watcher (id, classpath, worker, failures, error, next_start, since)
                   VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET classpath = excluded.classpath,
                   worker = excluded.worker, failures = excluded.failures, error = excluded.error,
                   next_start = excluded.next_start, since = excluded.since""",
                row,
            )

    def keep_watchers(self, numbers: Sequence[int], epoch: int) -> None:
        gone = {number for (number,) in self.engine.rows("SELECT id FROM asset_watcher")} - set(numbers)
        if not gone:
            return
        with self.engine.transaction():
            self._check_epoch(epoch)
            self.engine.many("DELETE FROM asset_watcher WHERE id = ?", [(number,) for number in sorted(gone)])

    def watchers(self) -> list[WatcherRow]:
        rows = self.engine.rows(
            "SELECT id, classpath, worker, failures, error, next_start, since FROM asset_watcher ORDER BY id"
        )
        return [WatcherRow(*row) for row in rows]

    # --- deletion ---------------------------------------------------------------------------------------------------

    def _forget_deliveries(self, run: int) -> None:
        """Delete the deliveries that a run consumed. Their events stay consumed: a delivery that is gone does not wait."""
        self.engine.run("DELETE FROM asset_delivery WHERE run = ?", (run,))

    def _forget_assets_of(self, dag_id: str) -> None:
        """Delete the references and deliveries of a DAG."""
        self.engine.run("DELETE FROM asset_delivery WHERE dag_id = ?", (dag_id,))
        self.engine.run("DELETE FROM asset_reference WHERE dag_id = ?", (dag_id,))

    def _retire_events(self, before: int, at_most: int) -> None:
        """Delete old events that wait for no DAG and that no remaining run consumed.

        The newest stays, so that no number is used twice.
        """
        old = self.engine.rows(
            """SELECT id FROM asset_event e WHERE at < ? AND id < (SELECT max(id) FROM asset_event)
               AND NOT EXISTS (SELECT 1 FROM asset_delivery d WHERE d.event = e.id AND d.outcome <> 2) ORDER BY id LIMIT ?""",
            (before, 50 * at_most),
        )
        self.engine.many("DELETE FROM asset_delivery WHERE event = ?", old)
        self.engine.many("DELETE FROM asset_event WHERE id = ?", old)


def named(definition: DagDefinition) -> Iterable[tuple[tuple[str, str], Leaf]]:
    """((kind, task id), asset or alias) for all references of a definition; the task id is empty for references of its schedule."""
    if definition.assets is not None:
        for leaf in leaves(definition.assets.condition):
            yield ("schedule", ""), leaf
    for use in definition.asset_uses:
        yield (use.kind, use.task_id), use.what


def references(definition: DagDefinition) -> Iterable[tuple[str, str, str, str, str]]:
    """(kind, task id, name, URI, alias) for all references of a definition, as in the rows of `asset_reference`."""
    for (kind, task_id), leaf in named(definition):
        if isinstance(leaf, AliasKey):
            yield kind, task_id, "", "", leaf.name
        else:
            yield kind, task_id, leaf.name, leaf.uri, ""


def event_row(row: Row) -> AssetEventRow:
    """Make a row from the columns of `_EVENT`."""
    return AssetEventRow(
        id=row[5],
        asset=AssetRow(*row[:5]),
        extra=row[6],
        at=row[7],
        source_dag=row[8],
        source_run=row[9],
        source_task=row[10],
        source_index=row[11],
        aliases=tuple(json.loads(row[12])),
        partition_key=row[13],
    )
