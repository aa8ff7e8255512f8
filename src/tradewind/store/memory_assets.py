"""The in-memory twin's verbs on assets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from tradewind.model.assets import AliasKey, Update, leaves, matches
from tradewind.model.definition import DagDefinition
from tradewind.model.errors import Conflict, Stale
from tradewind.model.rows import AssetEventRow, AssetRow, NewAssetEvent, NewRun, RunRow, WaitingAsset


class Delivery(NamedTuple):
    """What became of an event for one DAG. `outcome`: waits, consumed, superseded."""

    counts: bool
    outcome: str = "waits"
    run: int | None = None
    reason: str | None = None


class MemoryAssets:
    """See `store.port.Store` for what each verb promises. The tables are the store's."""

    _assets: dict[int, AssetRow]
    _members: dict[tuple[str, int], None]
    """(alias, asset)."""
    _asset_events: dict[int, AssetEventRow]
    _deliveries: dict[tuple[str, int], Delivery]
    _definitions_with_assets: dict[str, DagDefinition]
    """DAG → its current definition, where that names assets."""
    _runs: Any
    _dags: Any

    def transaction(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _next(self, name: str) -> int:
        raise NotImplementedError

    def _note(self, event: str, actor: str, at: int, **about: Any) -> None:
        raise NotImplementedError

    def _create_run(self, new: NewRun) -> RunRow:
        raise NotImplementedError

    def find_run(self, dag_id: str, run_id: str) -> RunRow | None:
        raise NotImplementedError

    def epoch(self) -> int:
        raise NotImplementedError

    # --- what DAGs name -------------------------------------------------------------------------------------------

    def _note_assets(self, definition: DagDefinition) -> None:
        dag_id = definition.dag_id
        if definition.assets is None and not definition.asset_uses:
            if dag_id in self._definitions_with_assets:
                del self._definitions_with_assets[dag_id]
        else:
            self._definitions_with_assets[dag_id] = definition
        named = [] if definition.assets is None else list(leaves(definition.assets.condition))
        for leaf in [*named, *(use.what for use in definition.asset_uses)]:
            if not isinstance(leaf, AliasKey) and leaf.name and leaf.uri:
                self._put_asset(leaf.name, leaf.uri, leaf.group, leaf.extra or None)
        for waiting in self.waiting_assets(dag_id):
            update = Update(waiting.asset.name, waiting.asset.uri, waiting.aliases)
            if not any(matches(leaf, update) for leaf in named):
                reason = "the DAG's schedule does not name its asset any more"
                self._supersede(lambda one, of=waiting.asset.id: one.asset.id == of, reason, dag_id)  # type: ignore[misc]

    def _put_asset(self, name: str, uri: str, group: str, extra: bytes | None) -> AssetRow:
        known = next((row for row in self._assets.values() if (row.name, row.uri) == (name, uri)), None)
        row = AssetRow(self._next("asset") if known is None else known.id, name, uri, group, extra)
        self._assets[row.id] = row
        return row

    # --- events -----------------------------------------------------------------------------------------------------

    def record_asset_events(self, events: Sequence[NewAssetEvent]) -> tuple[list[int], frozenset[str]]:
        with self.transaction():
            return self._record(events)

    def _record(self, events: Iterable[NewAssetEvent]) -> tuple[list[int], frozenset[str]]:
        numbers, consumers = [], set[str]()
        for new in events:
            asset = self.find_asset(name=new.name, uri=new.uri)
            if asset is None:
                asset = self._put_asset(new.name or new.uri, new.uri or new.name, new.group, new.about or None)
            for alias in new.aliases:
                self._members[alias, asset.id] = None
            number = self._next("asset_event")
            source = (new.source_dag, new.source_run, new.source_task, new.source_index)
            self._asset_events[number] = AssetEventRow(number, asset, new.extra, new.at, *source, tuple(sorted(new.aliases)))
            numbers.append(number)
            update = Update(asset.name, asset.uri, self._aliases_of(asset.id))
            earlier = max(
                (one.id for one in self._asset_events.values() if one.asset.id == asset.id and one.id < number), default=0
            )
            for dag_id, definition in self._definitions_with_assets.items():
                plan = self._dags[dag_id].plan
                if definition.assets is None or not plan.is_active:
                    continue
                if any(matches(leaf, update) for leaf in leaves(definition.assets.condition)):
                    self._deliveries[dag_id, number] = Delivery(not plan.is_paused)
                    before = None if new.aliases else self._deliveries.get((dag_id, earlier))
                    waits = before is not None and before.counts and before.outcome == "waits"
                    consumers |= set() if plan.is_paused or waits else {dag_id}
        return numbers, frozenset(consumers)

    def _aliases_of(self, asset: int) -> frozenset[str]:
        return frozenset(alias for alias, member in self._members if member == asset)

    # --- who waits and who has consumed -------------------------------------------------------------------------------

    def _event(self, number: int) -> AssetEventRow:
        """As it is shown: with the asset as it stands now."""
        event = self._asset_events[number]
        return event._replace(asset=self._assets[event.asset.id])

    def _waiting(self, dag_id: str, upto: int | None = None) -> list[tuple[AssetEventRow, Delivery]]:
        return [
            (self._event(number), delivery)
            for (owner, number), delivery in sorted(self._deliveries.items(), key=lambda one: one[0][1])
            if owner == dag_id and delivery.outcome == "waits" and (upto is None or number <= upto)
        ]

    def waiting_assets(self, dag_id: str) -> list[WaitingAsset]:
        grouped: dict[int, list[tuple[AssetEventRow, Delivery]]] = {}
        for event, delivery in self._waiting(dag_id):
            grouped.setdefault(event.asset.id, []).append((event, delivery))
        found = [
            WaitingAsset(
                self._assets[asset],
                self._aliases_of(asset),
                any(delivery.counts for _, delivery in members),
                len(members),
                min(event.at for event, _ in members),
                max(event.id for event, _ in members),
                max(event.at for event, _ in members),
            )
            for asset, members in grouped.items()
        ]
        return sorted(found, key=lambda one: one.last)

    def waiting_interval(self, dag_id: str, upto: int) -> tuple[int, int] | None:
        runs = [
            run
            for event, _ in self._waiting(dag_id, upto)
            if (run := self.find_run(event.source_dag or "", event.source_run or "")) is not None
        ]
        spans = [
            (run.interval_start, run.interval_end)
            for run in runs
            if run.interval_start is not None and run.interval_end is not None
        ]
        return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None

    def create_asset_run(self, new: NewRun, upto: int, epoch: int = 0) -> RunRow:
        with self.transaction():
            if epoch and self.epoch() > epoch:
                raise Stale(f"scheduler epoch {epoch} was superseded by {self.epoch()}; this scheduler has to exit")
            waiting = self._waiting(new.dag_id, upto)
            if not any(delivery.counts for _, delivery in waiting):
                raise Conflict(f"no event waits for DAG {new.dag_id} any more")
            row = self._create_run(new)
            for event, delivery in waiting:
                self._deliveries[new.dag_id, event.id] = delivery._replace(outcome="consumed", run=row.id)
        return row

    def _supersede(self, fits: Callable[[AssetEventRow], bool], reason: str, dag_id: str | None) -> list[str]:
        dags: dict[str, None] = {}
        for (owner, number), delivery in list(self._deliveries.items()):
            if delivery.outcome == "waits" and dag_id in (None, owner) and fits(self._asset_events[number]):
                self._deliveries[owner, number] = delivery._replace(outcome="superseded", reason=reason)
                dags[owner] = None
        return sorted(dags)

    def drop_waiting_events(self, dag_id: str | None, asset: int | None, before: int | None, actor: str, at: int) -> list[str]:
        def fits(event: AssetEventRow) -> bool:
            return asset in (None, event.asset.id) and (before is None or event.at < before)

        with self.transaction():
            counts = {
                owner: sum(
                    1
                    for (dag, number), one in self._deliveries.items()
                    if dag == owner and one.outcome == "waits" and fits(self._asset_events[number])
                )
                for owner, _ in self._deliveries
            }
            dags = self._supersede(fits, f"dismissed by {actor}", dag_id)
            for dag in dags:
                self._note("drop asset events", actor, at, dag_id=dag, detail={"count": counts[dag], "asset": asset})
        return dags

    # --- looking ------------------------------------------------------------------------------------------------------

    def asset_events_of_run(self, run: int) -> list[AssetEventRow]:
        return [self._event(number) for (_, number), one in sorted(self._deliveries.items()) if one.run == run]

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
        found = [
            event
            for event in map(self._event, sorted(self._asset_events))
            if name in ("", event.asset.name)
            and uri in ("", event.asset.uri)
            and (not alias or alias in event.aliases)
            and (after is None or event.at >= after)
            and (before is None or event.at <= before)
        ]
        return (found if ascending else found[::-1])[:limit]

    def find_asset(self, *, number: int | None = None, name: str = "", uri: str = "") -> AssetRow | None:
        if number is None and not name and not uri:
            return None

        def is_named(row: AssetRow) -> bool:
            return any(
                not isinstance(leaf, AliasKey) and (leaf.name, leaf.uri) == (row.name, row.uri)
                for dag_id, definition in self._definitions_with_assets.items()
                if self._dags[dag_id].plan.is_active
                for leaf in [
                    *(leaves(definition.assets.condition) if definition.assets is not None else ()),
                    *(use.what for use in definition.asset_uses),
                ]
            )

        found = [
            row for row in self._assets.values() if number in (None, row.id) and name in ("", row.name) and uri in ("", row.uri)
        ]
        return max(found, key=lambda row: (is_named(row), row.id), default=None)

    def producers(self, asset: AssetRow) -> list[tuple[str, str]]:
        return sorted(
            {
                (dag_id, use.task_id)
                for dag_id, definition in self._definitions_with_assets.items()
                if self._dags[dag_id].plan.is_active
                for use in definition.asset_uses
                if use.kind == "outlet" and not isinstance(use.what, AliasKey) and use.what.fits(asset.name, asset.uri)
            }
        )

    # --- upkeep -------------------------------------------------------------------------------------------------------

    def _forget_deliveries(self, run: int) -> None:
        for key in [key for key, one in self._deliveries.items() if one.run == run]:
            del self._deliveries[key]

    def _forget_assets_of(self, dag_id: str) -> None:
        for key in [key for key in self._deliveries if key[0] == dag_id]:
            del self._deliveries[key]
        if dag_id in self._definitions_with_assets:
            del self._definitions_with_assets[dag_id]

    def _retire_events(self, before: int) -> None:
        old = {number for number, event in self._asset_events.items() if event.at < before}
        kept = {number for (_, number), one in self._deliveries.items() if one.outcome != "superseded"}
        gone = old - kept - {max(self._asset_events, default=0)}
        for key in [key for key in self._deliveries if key[1] in gone]:
            del self._deliveries[key]
        for number in gone:
            del self._asset_events[number]
