"""Commands on assets."""

from __future__ import annotations

import msgspec

from tradewind.model.assets import AssetKey
from tradewind.model.errors import Conflict, NotFound, TradewindError, did_you_mean
from tradewind.model.rows import AssetRow, NewAssetEvent
from tradewind.model.states import RunType
from tradewind.scheduler.assets.answers import asset_names
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.trigger import check_partition_key, trigger
from tradewind.scheduler.commands.trigger import timetable_question as trigger_question
from tradewind.store.port import Store
from tradewind.wire import commands as c
from tradewind.wire.messages import OutsideAssetEvent, TimetableQuestion


def create_asset_event(context: CommandContext, command: c.CreateAssetEvent) -> c.CreateAssetEventResult:
    """Record the event. DAGs that wait for the asset get it.

    Raises:
        NotFound: there is no such asset; the message has the nearest name.
        Conflict: no asset is named; `extra` is no mapping.
    """
    store, now = context.store, context.clock.wall()
    asset = _asset(store, command)
    extra = command.extra or {}
    if not isinstance(extra, dict):
        raise Conflict(f"extra is {extra!r}; it must be a JSON object")
    event = NewAssetEvent(asset.name, asset.uri, asset.group, msgspec.json.encode(extra) if extra else None, now)
    if command.partition_key is not None:
        event = event._replace(partition_key=check_partition_key(command.partition_key))
    (number,), consumers = store.record_asset_events([event])
    context.effects.dags |= consumers
    key = AssetKey(asset.name, asset.uri, asset.group, asset.extra or b"")
    context.effects.asset_events.append(OutsideAssetEvent(key, extra, event.partition_key))
    detail = {"asset": asset.name, "uri": asset.uri, "event": number}
    store.write_audit("create asset event", context.actor, now, detail=detail)
    return c.CreateAssetEventResult(number, asset.id, asset.name, asset.uri, asset.group, extra, now)


def materialize_asset(context: CommandContext, command: c.MaterializeAsset) -> c.TriggerResult:
    """Trigger the one DAG that produces the asset, or the DAG that the command names.

    Raises:
        NotFound: there is no such asset, no DAG produces the asset, or the named DAG does not produce it.
        Conflict: several DAGs produce it; or as `trigger`.
    """
    return trigger(context, _materializing_trigger(context.store, command))


def timetable_question(store: Store, command: c.MaterializeAsset, number: int, now: int) -> TimetableQuestion | None:
    """Return the question that the DAG's custom timetable has to answer before this command; see `trigger.timetable_question`."""
    try:
        return trigger_question(store, _materializing_trigger(store, command), number, now)
    except TradewindError:  # the command itself says why it is refused
        return None


def _materializing_trigger(store: Store, command: c.MaterializeAsset) -> c.Trigger:
    """Return the command that triggers the one DAG. Raises as `materialize_asset`."""
    asset = _asset(store, command)
    producers = {dag_id for dag_id, _ in store.producers(asset)}
    dags = sorted(producers if command.dag_id is None else producers & {command.dag_id})
    if not dags:
        raise NotFound(f"no DAG produces the asset {asset.name!r}: none has it among the outlets of its tasks")
    if len(dags) > 1:
        raise Conflict(f"more than one DAG produces the asset {asset.name!r} ({', '.join(dags)}); trigger one of them")
    return c.Trigger(
        dags[0],
        conf=command.conf,
        note=command.note,
        run_type=RunType.ASSET_MATERIALIZATION,
        triggered_by=command.triggered_by,
        partition_key=command.partition_key,
    )


def drop_queued_events(context: CommandContext, command: c.DropQueuedEvents) -> c.DropQueuedEventsResult:
    """Delete the events that wait.

    Raises:
        NotFound: there is no such DAG, or no event waits.
        Conflict: neither a DAG nor an asset is named.
    """
    dag_id, asset = command.dag_id, command.asset_id
    if dag_id is None and asset is None:
        raise Conflict("name a DAG, an asset, or both")
    if dag_id is not None:
        context.store.need_dag(dag_id)
    dags = context.store.drop_waiting_events(dag_id, asset, command.before, context.actor, context.clock.wall())
    if not dags:
        about = [f"DAG {dag_id}"] * (dag_id is not None) + [f"asset {asset}"] * (asset is not None)
        raise NotFound(f"no event waits for {' and '.join(about)}")
    return c.DropQueuedEventsResult(list(dags))


def _asset(store: Store, command: c.CreateAssetEvent | c.MaterializeAsset) -> AssetRow:
    """Return the asset that the command names. Raises NotFound with the nearest name."""
    number, name, uri = command.asset_id, command.name or "", command.uri or ""
    if number is None and not name and not uri:
        raise Conflict("name an asset: by its id, name or uri")
    found = store.find_asset(number=number, name=name, uri=uri)
    if found is None:
        which = f"with id {number}" if number is not None else " and ".join(repr(text) for text in (name, uri) if text)
        raise NotFound(f"there is no asset {which}.{did_you_mean(name, asset_names(store))}")
    return found
