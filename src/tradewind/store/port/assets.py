"""Assets, their events, and the events that wait for a DAG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tradewind.model.assets import AliasKey, AssetKey
from tradewind.model.partitions import MappedKey, UnmappedEvent
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


class AssetReader(Protocol):
    """Reads assets and their events."""

    def waiting_assets(self, dag_id: str) -> list[WaitingAsset]:
        """Assets with events that the DAG has not consumed, in the order of their latest events."""

    def waiting_interval(self, dag_id: str, upto: int) -> tuple[int, int] | None:
        """The first start and the last end of the data intervals of the runs whose events wait, up to an event's number."""

    def waiting_partitions(self, dag_id: str, after: int = 0, limit: int | None = None) -> list[WaitingPartition]:
        """Partition keys of a DAG for which events wait, by first event. `after`: only keys with an event after this number."""

    def unmapped_events(self, dag_id: str, limit: int) -> list[UnmappedEvent]:
        """Events that wait for a DAG with partitions, and that its mapper of users has not mapped yet, by number."""

    def dropped_asset_event(self, dag_id: str) -> tuple[int, str] | None:
        """Number of the last event of the DAG's assets, and why it was dropped; None: it was not dropped."""

    def asset_events_of_run(self, run: int) -> list[AssetEventRow]:
        """The events that a run consumed, in order."""

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
        """Events of an asset or of an alias, by number. `after` and `before` are moments (µs), both included."""

    def find_asset(self, *, number: int | None = None, name: str = "", uri: str = "") -> AssetRow | None:
        """An asset by number, or by the given name and URI. If several match: one that DAGs name now, otherwise the newest."""

    def watchers(self) -> list[WatcherRow]:
        """The states of the triggers of asset watchers, by number."""

    def producers(self, asset: AssetRow) -> list[tuple[str, str]]:
        """(DAG id, task id) of the tasks of active DAGs that have the asset as an outlet."""


class AssetStore(Protocol):
    """Writes events of assets."""

    def record_asset_events(self, events: Sequence[NewAssetEvent], epoch: int = 0) -> tuple[list[int], frozenset[str]]:
        """Record events from outside. Returns their numbers, and the DAGs whose condition they may have changed.

        DAGs for which an earlier event of the same asset already waits are left out. An event is ignored if its `origin` was
        already recorded for its asset.

        Args:
            epoch: epoch of the scheduler that asks; 0: not checked.

        Raises:
            Stale: a newer scheduler has begun an epoch.
        """

    def map_event(self, dag_id: str, event: int, mapped: MappedKey, epoch: int = 0) -> None:
        """Let an event wait for the keys that a mapper of users has given, or drop it. Nothing if it does not wait any more.

        Raises:
            Stale: a newer scheduler has begun an epoch.
        """

    def take_created_assets(self) -> list[AssetKey | AliasKey]:
        """The assets and aliases that this store has created since the last call. Rolled back ones are left out."""

    def note_watcher(self, row: WatcherRow, epoch: int) -> None:
        """Write the state of the trigger of an asset watcher. Raises Stale."""

    def keep_watchers(self, numbers: Sequence[int], epoch: int) -> None:
        """Delete the rows of all other watchers. Raises Stale."""

    def create_asset_run(self, new: NewRun, upto: int, epoch: int = 0) -> RunRow:
        """Create a run that consumes all events that wait for its DAG, up to an event's number; whole or not at all.

        Args:
            epoch: of the scheduler that asks; 0: not checked.

        Raises:
            Stale: a newer scheduler has begun an epoch.
            Conflict: no event that counts waits any more, or the run's id or logical date is taken.
        """

    def drop_waiting_events(self, dag_id: str | None, asset: int | None, before: int | None, actor: str, at: int) -> list[str]:
        """Mark waiting events as superseded. Returns the DAGs for which they waited.

        Args:
            dag_id: only for this DAG.
            asset: only of the asset with this number.
            before: only those emitted before this time, microseconds.
        """
