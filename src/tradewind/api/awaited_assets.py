"""What the next runs of a DAG that is scheduled by assets wait for: assets, and for a DAG with partitions the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tradewind.api.ui_shapes import AwaitedAsset, AwaitedAssets, AwaitedRun
from tradewind.kernel.partitions import KeyProgress, is_due, key_progress
from tradewind.model.assets import (
    AliasKey,
    AllOf,
    AnyOf,
    AssetSchedule,
    Condition,
    Leaf,
    Update,
    decode_asset_schedule,
    holds,
    leaves,
    matches,
)
from tradewind.model.moments import iso
from tradewind.model.rows import DagPlan, WaitingAsset
from tradewind.store.port import Reader
from tradewind.store.views import AssetView

PARTITIONS_MAX = 20
"""How many partition keys are described."""
MISSING_MAX = 20
"""How many missing keys of an asset are named."""
ASSETS_MAX = 200
"""How many assets of a DAG get a link to their page."""


def awaited_assets(reader: Reader, dag_id: str) -> AwaitedAssets:
    """Read what the next runs of a DAG wait for. Raises NotFound: there is no such DAG."""
    plan = reader.need_dag(dag_id)
    if plan.assets is None:
        return AwaitedAssets("all", False, plan.is_paused, [], False, None)
    schedule = decode_asset_schedule(plan.assets)
    rule = _rule(schedule.condition)
    known = reader.list_assets(dag_ids=[dag_id], limit=ASSETS_MAX).rows
    numbers = {leaf: _number(leaf, known) for leaf in leaves(schedule.condition)}
    if schedule.partitions is None:
        run = _whole_run(schedule, reader.waiting_assets(dag_id), numbers)
        return AwaitedAssets(rule, False, plan.is_paused, [run], False, None)
    return _partitions(reader, plan, schedule, rule, numbers)


def _partitions(
    reader: Reader,
    plan: DagPlan,
    schedule: AssetSchedule,
    rule: Literal["all", "any", "mixed"],
    numbers: Mapping[Leaf, int | None],
) -> AwaitedAssets:
    waiting = reader.waiting_partitions(plan.dag_id, limit=PARTITIONS_MAX + 1)
    runs = [
        AwaitedRun(
            partition_key=one.key,
            since=iso(one.first_at),
            is_due=is_due(schedule, one),
            assets=[_awaited_keys(progress, numbers) for progress in key_progress(schedule, one)],
        )
        for one in waiting[:PARTITIONS_MAX]
    ]
    dropped = reader.dropped_asset_event(plan.dag_id)
    return AwaitedAssets(
        rule, True, plan.is_paused, runs, len(waiting) > PARTITIONS_MAX, None if dropped is None else dropped[1]
    )


def _awaited_keys(progress: KeyProgress, numbers: Mapping[Leaf, int | None]) -> AwaitedAsset:
    missing = () if progress.complete else progress.missing
    return AwaitedAsset(
        id=numbers.get(progress.asset),
        name=_name(progress.asset),
        is_alias=isinstance(progress.asset, AliasKey),
        is_complete=progress.complete,
        updated_at=None,
        arrived=progress.arrived,
        needed=progress.needed,
        missing=list(missing[:MISSING_MAX]),
        missing_count=len(missing),
        problem=progress.problem,
    )


def _whole_run(schedule: AssetSchedule, waiting: Sequence[WaitingAsset], numbers: Mapping[Leaf, int | None]) -> AwaitedRun:
    counting = [one for one in waiting if one.counts]
    updates = [_update(one) for one in counting]
    return AwaitedRun(
        partition_key=None,
        since=iso(min((one.first_at for one in counting), default=None)),
        is_due=holds(schedule.condition, updates),
        assets=[_awaited(leaf, counting, numbers) for leaf in dict.fromkeys(leaves(schedule.condition))],
    )


def _awaited(leaf: Leaf, counting: Sequence[WaitingAsset], numbers: Mapping[Leaf, int | None]) -> AwaitedAsset:
    moments = [one.last_at for one in counting if matches(leaf, _update(one))]
    return AwaitedAsset(
        id=numbers.get(leaf),
        name=_name(leaf),
        is_alias=isinstance(leaf, AliasKey),
        is_complete=bool(moments),
        updated_at=iso(max(moments, default=None)),
        arrived=min(len(moments), 1),
        needed=1,
        missing=[],
        missing_count=0,
        problem=None,
    )


def _update(waiting: WaitingAsset) -> Update:
    return Update(waiting.asset.name, waiting.asset.uri, waiting.aliases)


def _name(leaf: Leaf) -> str:
    return leaf.name if isinstance(leaf, AliasKey) else leaf.shown


def _number(leaf: Leaf, known: Sequence[AssetView]) -> int | None:
    if isinstance(leaf, AliasKey):
        return None
    return next((one.id for one in known if leaf.fits(one.name, one.uri)), None)


def _rule(condition: Condition) -> Literal["all", "any", "mixed"]:
    if not isinstance(condition, AllOf | AnyOf):
        return "all"
    if any(isinstance(part, AllOf | AnyOf) for part in condition.of):
        return "mixed"
    return "all" if isinstance(condition, AllOf) or len(condition.of) == 1 else "any"
