"""Answers to requests about assets: asset events as mappings, and the assets for which a DAG still waits."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.kernel.partitions import partition_progress
from tradewind.model.assets import AssetSchedule, update_progress, watcher_number
from tradewind.model.errors import nearest
from tradewind.model.moments import shown_moment
from tradewind.model.phrases import Phrase, english, phrase, semicolons
from tradewind.model.rows import AssetEventRow, AssetRow, DagPlan
from tradewind.scheduler.assets.asset_index import asset_schedule, counted
from tradewind.scheduler.runs.facts import run_facts
from tradewind.store.port import RowReader
from tradewind.wire.messages import GetAsset, GetAssetEvents, Value

PARTITIONS_NAMED = 5
"""Maximum number of partition keys that are named."""


def events_answer(store: RowReader, question: GetAssetEvents, run: int) -> Value:
    """Return events of an asset or alias; if the request names none, the events that started the run."""
    if question.name or question.uri or question.alias:
        events = store.asset_events(
            name=question.name,
            uri=question.uri,
            alias=question.alias,
            after=question.after,
            before=question.before,
            ascending=question.ascending,
            limit=question.limit,
        )
    else:
        events = store.asset_events_of_run(run)
    return Value(question.op, True, [event_as_dict(store, event) for event in events])


def asset_answer(store: RowReader, question: GetAsset) -> Value:
    asset = store.find_asset(name=question.name, uri=question.uri)
    if asset is None:
        return Value(question.op, False, nearest(question.name or question.uri, asset_names(store)))
    return Value(question.op, True, asset_as_dict(asset))


def asset_names(store: RowReader) -> list[str]:
    """Return the names of all assets that DAGs use, for hints in error messages."""
    found: dict[str, None] = {}
    for plan in store.plans():
        definition = store.definition(plan.version) if plan.is_active else None
        for use in definition.asset_uses if definition is not None else ():
            found[use.what.name] = None
    return list(found)


def asset_as_dict(asset: AssetRow) -> dict[str, Any]:
    return {"name": asset.name, "uri": asset.uri, "group": asset.group, "extra": _object(asset.extra)}


def event_as_dict(store: RowReader, event: AssetEventRow) -> dict[str, Any]:
    """Return an event as a mapping, with the run that emitted it. Moments are microseconds."""
    source = None
    if event.source_dag is not None and event.source_run is not None:
        row = store.find_run(event.source_dag, event.source_run)
        source = None if row is None else {"dag_id": row.dag_id, **run_facts(row)}
    return {
        "id": event.id,
        "asset_id": event.asset.id,
        "name": event.asset.name,
        "uri": event.asset.uri,
        "group": event.asset.group,
        "asset_extra": _object(event.asset.extra),
        "extra": _object(event.extra),
        "at": event.at,
        "source_dag_id": event.source_dag,
        "source_run_id": event.source_run,
        "source_task_id": event.source_task,
        "source_map_index": event.source_index,
        "aliases": list(event.aliases),
        "source_run": source,
        "partition_key": event.partition_key,
    }


def _object(data: bytes | None) -> Any:
    return msgspec.json.decode(data) if data else {}


def waits_for_assets(store: RowReader, plan: DagPlan) -> str | None:
    """Return `missing_assets` in English."""
    found = missing_assets(store, plan)
    return None if found is None else english(found)


def missing_assets(store: RowReader, plan: DagPlan) -> Phrase | None:
    """Return the assets for which a DAG waits: "2 of 3 assets updated; missing: orders". None: assets do not schedule the DAG."""
    if plan.assets is None:
        return None
    if asset_schedule(plan.assets).partitions is not None:
        return _waits_for_partitions(store, plan, asset_schedule(plan.assets))
    waiting = store.waiting_assets(plan.dag_id)
    parts = [update_progress(asset_schedule(plan.assets).condition, counted(waiting))]
    held = sum(one.events for one in waiting if not one.counts)
    if held:
        parts.append(phrase("assets_held", count=held))
    parts += [phrase("assets_paused")] if plan.is_paused else watcher_troubles(store, plan)
    return semicolons(parts)


def _waits_for_partitions(store: RowReader, plan: DagPlan, schedule: AssetSchedule) -> Phrase:
    found = store.waiting_partitions(plan.dag_id, limit=PARTITIONS_NAMED + 1)
    texts = [partition_progress(schedule, one) for one in found[:PARTITIONS_NAMED]]
    if len(found) > PARTITIONS_NAMED:
        texts.append("further partitions wait")
    if store.unmapped_events(plan.dag_id, 1):
        texts.append("the partition mapper of the DAG is asked for the keys of events")
    text = ". ".join(texts) or "no event with a partition key waits for the DAG"
    dropped = store.dropped_asset_event(plan.dag_id)
    if dropped is not None:
        text += f"; event {dropped[0]} was dropped: {dropped[1]}"
    words = phrase("words", text=text)
    return semicolons([words, phrase("assets_paused")]) if plan.is_paused else words


def watcher_troubles(store: RowReader, plan: DagPlan) -> list[Phrase]:
    """Return a sentence for each watcher of the DAG's assets whose trigger failed the last time."""
    watches = asset_schedule(plan.assets).watchers if plan.assets is not None else ()
    failed = {row.number: row for row in store.watchers() if row.failures} if watches else {}
    found = []
    for watch in watches:
        row = failed.get(watcher_number(plan.bundle, watch.trigger))
        if row is not None:
            name, times, problem = watch.name, row.failures, _last_line(row.error)
            found.append(
                phrase("watcher_failed", watcher=name, times=times, problem=problem)
                if row.next_start is None
                else phrase("watcher_failed_again", watcher=name, times=times, problem=problem, at=shown_moment(row.next_start))
            )
    return found


def _last_line(error: str | None) -> str:
    return next(iter(reversed((error or "").strip().splitlines())), "no error text")
