"""Asset events in a running task: events that it emits, events that it reads, and events that started its run.

    outlet_events[orders].extra = {"rows": 12}           sets the extra of the event that the task's success emits
    outlet_events[alias].add(Asset("s3://bucket/key"))   adds an asset that is known only at run time
    yield Metadata(orders, extra={"rows": 12})           the same as the first line, from a generator function
    inlet_events[orders][-1].extra                       the extra of the last event
    triggering_asset_events[orders]                      events that started this run

Events are requested on first access. The events of a task are stored in the same transaction as its success, or not at all.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import msgspec

from tradewind.execution.task_instance import DagRun, to_pendulum
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import to_micros
from tradewind.model.partitions import KEY_MAX
from tradewind.sdk.assets import Asset, AssetAlias, AssetRef
from tradewind.sdk.exceptions import AirflowException
from tradewind.wire import runtime
from tradewind.wire.messages import AssetUpdate, Failure, GetAsset, GetAssetEvents, Value

if TYPE_CHECKING:
    from pendulum import DateTime

    from tradewind.execution.task_instance import TaskInstance

log = logging.getLogger("tradewind.task")

Outlet = Asset | AssetRef | AssetAlias


class Metadata:
    """A value that a task function yields to describe the event of one of its outlets.

    Args:
        asset: the asset that was updated.
        extra: a JSON object about the event.
        alias: an alias among the task's outlets under which the asset is produced, as object or name.
    """

    __slots__ = ("alias", "asset", "extra")

    def __init__(self, asset: Asset, extra: Mapping[str, Any] | None = None, alias: AssetAlias | str | None = None) -> None:
        if not isinstance(asset, Asset | AssetRef):
            raise AirflowException(f"Metadata needs an asset, not {asset!r}")
        self.asset = asset
        self.extra = dict(extra or {})
        self.alias = AssetAlias(alias) if isinstance(alias, str) else alias


# --- events that the task emits -----------------------------------------------------------------------------------------


class AliasEvent:
    """An asset that is produced under an alias."""

    __slots__ = ("dest_asset", "extra", "source_alias_name")

    def __init__(self, alias: str, asset: Asset, extra: dict[str, Any]) -> None:
        self.source_alias_name = alias
        self.dest_asset = asset
        self.extra = extra


class OutletEventAccessor:
    """One outlet: the `extra` of its event, or for an alias the added assets."""

    def __init__(self, key: Outlet) -> None:
        self.key = key
        self.extra: dict[str, Any] = {}
        self.asset_alias_events: list[AliasEvent] = []
        self.partition_keys: set[str] = set()

    def add(self, asset: Asset, extra: Mapping[str, Any] | None = None) -> None:
        """For an alias: add an updated asset. For an asset: set the extra of its event."""
        if isinstance(asset, str):
            asset = Asset(uri=asset)
        chosen = self.extra if extra is None else dict(extra)
        if isinstance(self.key, AssetAlias):
            self.asset_alias_events.append(AliasEvent(self.key.name, asset, dict(chosen)))
        elif asset == self.key:
            self.extra = dict(chosen)
        else:
            raise AirflowException(
                f"outlet_events[{self.key!r}].add() accepts only this asset; to add other assets at run time, use an AssetAlias"
            )

    def add_partitions(self, keys: str | Iterable[str]) -> None:
        """Emit an event for each of these partition keys instead of one with the partition key of the run.

        Raises:
            TypeError: this is an alias.
            ValueError: a key is empty or too long.
        """
        if isinstance(self.key, AssetAlias):
            raise TypeError(f"add_partitions() is only for assets; {self.key!r} is an alias")
        found = [keys] if isinstance(keys, str) else list(keys)
        for key in found:
            if not key.strip():
                raise ValueError(f"the partition key {key!r} is empty")
            if len(key) > KEY_MAX:
                raise ValueError(f"the partition key {key[:40]!r}… has {len(key)} characters; at most {KEY_MAX} are allowed")
        self.partition_keys.update(found)


class OutletEventAccessors(Mapping[Outlet, OutletEventAccessor]):
    """The context variable `outlet_events`: accessors by asset, alias, or the name or URI of one of the task's outlets."""

    def __init__(self, outlets: Iterable[Any]) -> None:
        self._outlets = [one for one in outlets if isinstance(one, Asset | AssetRef | AssetAlias)]
        self._made: dict[Outlet, OutletEventAccessor] = {}

    def __getitem__(self, key: Outlet | str) -> OutletEventAccessor:
        found = self._find(key) if isinstance(key, str) else key
        if not isinstance(found, Asset | AssetRef | AssetAlias):
            raise KeyError(f"the key of outlet_events must be an asset or an alias, not {key!r}")
        if found not in self._made and not isinstance(found, AssetAlias):
            known = [one for one in (*self._outlets, *self._made) if not isinstance(one, AssetAlias)]
            found = next((one for one in known if _same(one, found)), found)
        made = self._made.get(found)
        if made is None:
            made = self._made[found] = OutletEventAccessor(found)
        return made

    def _find(self, text: str) -> Outlet:
        names: list[str] = []
        for one in self._outlets:
            names += [one.name] if isinstance(one, AssetAlias) else [one.name, one.uri]
            if text in names:
                return one
        raise KeyError(f"the task has no outlet {text!r}.{did_you_mean(text, names)}")

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> OutletEventAccessor:
        return self[Asset(name, uri) if name is not None and uri is not None else AssetRef(name=name, uri=uri)]

    def for_asset_alias(self, *, name: str) -> OutletEventAccessor:
        return self[AssetAlias(name)]

    def __iter__(self) -> Iterator[Outlet]:
        return iter(self._outlets)

    def __len__(self) -> int:
        return len(self._outlets)

    def __repr__(self) -> str:
        return f"<outlet_events of {len(self._outlets)} outlets>"

    def apply(self, metadata: Metadata) -> None:
        """Apply a `Metadata` that the task function yielded."""
        self[metadata.asset].extra.update(metadata.extra)
        if metadata.alias is not None:
            self[metadata.alias].add(metadata.asset, extra=metadata.extra)

    def with_outlets(self, outlets: Iterable[Any]) -> Self:
        """These accessors with the present outlets of the task: `execute` may have added some, as in astronomer-cosmos."""
        self._outlets = [one for one in outlets if isinstance(one, Asset | AssetRef | AssetAlias)]
        return self

    def updates(self) -> tuple[AssetUpdate, ...]:
        """The updates that a success emits: one for each asset, in the order of the outlets, then the assets added under aliases.

        Raises:
            AirflowException: an extra is not a JSON object.
        """
        found: list[AssetUpdate] = []
        distinct = {(one.name, one.uri) if isinstance(one, Asset) else one: one for one in self._outlets}
        for one in distinct.values():  # not a set of them: a subclass of Asset may have no hash
            if not isinstance(one, AssetAlias):
                extra, keys = self._extra_and_keys_of(one)
                found += [_update(one, extra, (), key) for key in sorted(keys) or (None,)]
        under: dict[tuple[Asset, str], list[str]] = {}
        for one in self._outlets:
            for event in self[one].asset_alias_events if isinstance(one, AssetAlias) else ():
                names = under.setdefault((event.dest_asset, _json(event.dest_asset, event.extra)), [])
                names += [event.source_alias_name] if event.source_alias_name not in names else []
        for (asset, extra), aliases in under.items():
            found.append(_update(asset, extra, tuple(aliases)))
        return tuple(found)

    def _extra_and_keys_of(self, outlet: Asset | AssetRef) -> tuple[str, set[str]]:
        """Extra and partition keys of an outlet, including those of a reference to the same asset (name or URI)."""
        extra: dict[str, Any] = {}
        keys: set[str] = set()
        for key, made in self._made.items():
            if key == outlet or (not isinstance(key, AssetAlias) and _same(key, outlet)):
                extra.update(made.extra)
                keys |= made.partition_keys
        return _json(outlet, extra), keys


def _same(one: Asset | AssetRef, other: Asset | AssetRef) -> bool:
    return (one.name or other.name) == (other.name or one.name) and (one.uri or other.uri) == (other.uri or one.uri)


def _json(outlet: Outlet, extra: Mapping[str, Any]) -> str:
    if not isinstance(extra, Mapping):
        raise AirflowException(f"outlet_events[{outlet!r}].extra is {extra!r}; it must be a dictionary")
    try:
        return json.dumps(dict(extra), sort_keys=True) if extra else ""
    except (TypeError, ValueError) as error:
        raise AirflowException(f"outlet_events[{outlet!r}].extra must be a JSON object: {error}") from None


def _update(asset: Asset | AssetRef, extra: str, aliases: tuple[str, ...], key: str | None = None) -> AssetUpdate:
    leaf = asset.condition()
    return AssetUpdate(leaf.name, leaf.uri, leaf.group, extra.encode(), leaf.extra, aliases, key)


def updates_of(ti: TaskInstance) -> tuple[AssetUpdate, ...]:
    """The updates that the success of this task instance emits."""
    accessors = None if ti.context is None else dict.get(ti.context, "outlet_events")
    if not isinstance(accessors, OutletEventAccessors):
        accessors = OutletEventAccessors(ti.task.outlets)
    return accessors.with_outlets(ti.task.outlets).updates()


class EmittedAssetEvent(NamedTuple):
    """An event of an asset, as listeners get it. The attributes are those of Airflow. The source is None if no task emitted it."""

    asset: Asset
    extra: dict[str, Any]
    source_dag_id: str | None
    source_task_id: str | None
    source_run_id: str | None
    source_map_index: int
    source_aliases: list[AssetAlias]
    partition_key: str | None
    partition_date: None = None


def emitted_events(ti: TaskInstance) -> list[EmittedAssetEvent]:
    """The events that the success of this task instance emits. An outlet that is only a name or a URI is an asset of this name."""
    source = (ti.dag_id, ti.task_id, ti.run_id, ti.map_index)
    found = []
    for update in updates_of(ti):
        about = json.loads(update.about) if update.about else None
        asset = Asset(update.name or None, update.uri or None, group=update.group, extra=about)
        extra = json.loads(update.extra) if update.extra else {}
        aliases = [AssetAlias(name) for name in update.aliases]
        found.append(EmittedAssetEvent(asset, extra, *source, aliases, update.partition_key or ti.workload.partition_key))
    return found


def consume(generator: Any, context: Any) -> Any:
    """Run a generator that yields `Metadata`. Returns its result. Other values are ignored with a warning, as in Airflow."""
    accessors: OutletEventAccessors = context["outlet_events"]
    while True:
        try:
            value = next(generator)
        except StopIteration as end:
            return end.value
        if isinstance(value, Metadata):
            accessors.apply(value)
        else:
            log.warning("ignored a %s that the task function yielded: it may yield only Metadata", type(value).__name__)


# --- events of other tasks ----------------------------------------------------------------------------------------------


class SourceRun:
    """The run whose task emitted an event: `run_id`, `dag_id`, dates. None for events from outside of Tradewind."""

    def __new__(cls, row: Mapping[str, Any]) -> Any:
        dates = {
            name: row.get(name)
            for name in ("logical_date", "data_interval_start", "data_interval_end", "run_after", "start_date", "end_date")
        }
        run = DagRun(
            dag_id=row["dag_id"],
            run_id=row["run_id"],
            run_type=row.get("run_type") or "manual",
            state=row.get("state"),
            dates=dates,
            conf=row.get("conf"),
            partition_key=row.get("partition_key"),
        )
        run.dag_run_id = run.run_id  # type: ignore[attr-defined]
        return run


class SourceTask:
    """The task instance that emitted an event."""

    def __init__(self, dag_id: str, run_id: str, task_id: str, map_index: int, context: Any) -> None:
        self.dag_id = dag_id
        self.run_id = run_id
        self.task_id = task_id
        self.map_index = map_index
        self._context = context

    def xcom_pull(self, key: str = "return_value", default: Any = None, **more: Any) -> Any:
        """A value that this task pushed."""
        ti = self._context["ti"]
        index = None if self.map_index < 0 else self.map_index
        found = ti.xcom_pull(task_ids=self.task_id, dag_id=self.dag_id, run_id=self.run_id, key=key, map_indexes=index, **more)
        return default if found is None else found


class AssetEvent:
    """One asset event, read-only."""

    def __init__(self, row: Mapping[str, Any], context: Any = None) -> None:
        self.row = row
        self._context = context
        self.id: int = row["id"]
        self.asset = Asset(row["name"] or None, row["uri"] or None, group=row["group"], extra=row["asset_extra"])
        self.extra: dict[str, Any] = row["extra"]
        self.source_dag_id: str | None = row["source_dag_id"]
        self.source_task_id: str | None = row["source_task_id"]
        self.source_run_id: str | None = row["source_run_id"]
        self.source_map_index: int = row["source_map_index"]
        self.partition_key: str | None = row.get("partition_key")
        self.source_aliases: list[str] = list(row["aliases"])

    @property
    def uri(self) -> str:
        return self.asset.uri

    @property
    def name(self) -> str:
        return self.asset.name

    @property
    def dataset(self) -> Asset:
        """Airflow 2's name for `asset`."""
        return self.asset

    @property
    def timestamp(self) -> DateTime | None:
        return to_pendulum(self.row["at"])

    @property
    def source_dag_run(self) -> Any:
        run = self.row.get("source_run")
        return None if run is None else SourceRun(run)

    @property
    def source_task_instance(self) -> SourceTask | None:
        if not (self.source_dag_id and self.source_run_id and self.source_task_id):
            return None
        return SourceTask(self.source_dag_id, self.source_run_id, self.source_task_id, self.source_map_index, self._context)

    def __repr__(self) -> str:
        return f"<AssetEvent {self.id} of {self.asset.name}>"


def _request_events(request: GetAssetEvents, context: Any) -> list[AssetEvent]:
    answer = runtime.current().ask(request)
    if isinstance(answer, Failure):
        raise AirflowException(f"cannot read asset events: {answer.reason}")
    assert isinstance(answer, Value)
    return [AssetEvent(row, context) for row in answer.value or ()]


class InletEventsAccessor(Sequence[AssetEvent]):
    """The events of one asset or alias, oldest first. They are requested on first access."""

    def __init__(self, request: GetAssetEvents, context: Any) -> None:
        self._request = request
        self._context = context
        self._events: list[AssetEvent] | None = None

    def _narrowed(self, **more: Any) -> InletEventsAccessor:
        return InletEventsAccessor(msgspec.structs.replace(self._request, **more), self._context)

    def after(self, after: Any) -> InletEventsAccessor:
        """Only events at or after this time (a datetime or a string in ISO 8601)."""
        return self._narrowed(after=_micros(after))

    def before(self, before: Any) -> InletEventsAccessor:
        """Only events at or before this time."""
        return self._narrowed(before=_micros(before))

    def ascending(self, ascending: bool = True) -> InletEventsAccessor:
        return self._narrowed(ascending=ascending)

    def limit(self, limit: int) -> InletEventsAccessor:
        return self._narrowed(limit=limit)

    def _all(self) -> list[AssetEvent]:
        if self._events is None:
            self._events = _request_events(self._request, self._context)
        return self._events

    @overload
    def __getitem__(self, index: int) -> AssetEvent: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AssetEvent]: ...
    def __getitem__(self, index: int | slice) -> AssetEvent | Sequence[AssetEvent]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())


def _micros(given: Any) -> int:
    date = datetime.fromisoformat(given) if isinstance(given, str) else datetime.fromisoformat(given.isoformat())
    return to_micros(date if date.tzinfo is not None else date.replace(tzinfo=UTC))


class InletEventsAccessors(Mapping[Any, InletEventsAccessor]):
    """The context variable `inlet_events`: events by asset, alias, index, or the name or URI of one of the task's inlets."""

    def __init__(self, inlets: Iterable[Any], context: Any) -> None:
        self._inlets = [one for one in inlets if isinstance(one, Asset | AssetRef | AssetAlias)]
        self._context = context

    def __getitem__(self, key: Any) -> InletEventsAccessor:
        if isinstance(key, int):
            key = self._inlets[key]
        if isinstance(key, AssetAlias):
            return InletEventsAccessor(GetAssetEvents(0, alias=key.name), self._context)
        if isinstance(key, Asset | AssetRef):
            return InletEventsAccessor(GetAssetEvents(0, key.name, key.uri), self._context)
        if isinstance(key, str):
            for one in self._inlets:
                if key == one.name or (not isinstance(one, AssetAlias) and key == one.uri):
                    return self[one]
            names = [one.name for one in self._inlets]
            raise KeyError(f"the task has no inlet {key!r}.{did_you_mean(key, names)}")
        raise KeyError(f"the key of inlet_events must be an asset or an alias, not {key!r}")

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> InletEventsAccessor:
        return InletEventsAccessor(GetAssetEvents(0, name or "", uri or ""), self._context)

    def for_asset_alias(self, *, name: str) -> InletEventsAccessor:
        return self[AssetAlias(name)]

    def __repr__(self) -> str:
        return f"<inlet_events of {len(self._inlets)} inlets>"

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inlets)

    def __len__(self) -> int:
        return len(self._inlets)


class TriggeringAssetEvents(Mapping[Any, Sequence[AssetEvent]]):
    """The events that started this run, by asset, and by alias if a task added the asset under one. A name or a URI is a key, too.

    As in Airflow, an asset without such an event has an empty list.

    With `by_uri` it iterates over URIs, as Airflow 2's `triggering_dataset_events` does.
    """

    def __init__(self, context: Any, by_uri: bool) -> None:
        self._context = context
        self._by_uri = by_uri
        self._found: dict[Asset, list[AssetEvent]] | None = None

    def every(self) -> list[AssetEvent]:
        """Each event once."""
        return [event for events in self._all().values() for event in events]

    def _aliases(self) -> list[AssetAlias]:
        names = dict.fromkeys(name for event in self.every() for name in event.source_aliases)
        return [AssetAlias(name) for name in names]

    def _all(self) -> dict[Asset, list[AssetEvent]]:
        if self._found is None:
            self._found = {}
            if self._context["dag_run"].run_type == "asset_triggered":
                for event in _request_events(GetAssetEvents(0), self._context):
                    self._found.setdefault(event.asset, []).append(event)
        return self._found

    def __getitem__(self, key: Any) -> Sequence[AssetEvent]:
        found = self._all()
        if isinstance(key, AssetAlias):
            events = [event for event in self.every() if key.name in event.source_aliases]
        elif isinstance(key, Asset):
            events = found.get(key, [])
        elif isinstance(key, AssetRef):
            events = [event for asset, events in found.items() if _same(key, asset) for event in events]
        else:
            events = [event for asset, events in found.items() if key in (asset.name, asset.uri) for event in events]
            if not events:
                names = sorted(asset.name for asset in found)
                raise KeyError(f"{key!r} is not among the assets whose events started this run: {names}")
        return events

    def __contains__(self, key: object) -> bool:
        try:
            return bool(self[key])
        except KeyError:
            return False

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> Sequence[AssetEvent]:
        return self[Asset(name, uri) if name is not None and uri is not None else AssetRef(name=name, uri=uri)]

    def for_asset_alias(self, *, name: str) -> Sequence[AssetEvent]:
        return self[AssetAlias(name)]

    def __repr__(self) -> str:
        return "<events that started this run>"

    def __iter__(self) -> Iterator[Any]:
        return iter([asset.uri for asset in self._all()] if self._by_uri else [*self._all(), *self._aliases()])

    def __len__(self) -> int:
        return len(self._all()) + (0 if self._by_uri else len(self._aliases()))


def find_asset(name: str) -> Asset:
    """The asset with this name.

    Raises:
        AirflowException: there is no such asset.
    """
    answer = runtime.current().ask(GetAsset(0, name))
    if isinstance(answer, Value) and answer.found:
        row = answer.value
        return Asset(row["name"], row["uri"], group=row["group"], extra=row["extra"])
    hint = f" Did you mean {answer.value!r}?" if isinstance(answer, Value) and answer.value else ""
    why = f": {answer.reason}" if isinstance(answer, Failure) else ""
    raise AirflowException(f"there is no asset {name!r}{why}.{hint}")


def consumed_by(context: Any) -> list[AssetEvent]:
    """All events that started this run."""
    return TriggeringAssetEvents(context, False).every()
