"""Asset partitions: whether the run of a partition key is due, decided from the events that wait for this key."""

from __future__ import annotations

from tradewind.model.assets import AssetSchedule, Update, holds, progress
from tradewind.model.partitions import Identity, PartitionRules, Rollup
from tradewind.model.rows import AssetRow, WaitingPartition
from tradewind.timetables.partition_keys import PartitionKeyError, enough, expected_keys, run_date, shown, wanted

_NAMED_MAX = 3
"""How many missing keys a sentence names at most."""


def is_due(schedule: AssetSchedule, waiting: WaitingPartition) -> bool:
    """Return whether the run of a key can be created: the condition holds with the assets of which enough keys have come."""
    return holds(schedule.condition, _complete(schedule, waiting))


def partition_date(rules: PartitionRules, waiting: WaitingPartition) -> int | None:
    """Return the partition date of the run that consumes these events. Only a mapper that keeps the key carries an event's date."""
    assets = [(asset.name, asset.uri) for asset, _ in waiting.assets]
    by_number = {asset.id: rules.mapper(asset.name, asset.uri) for asset, _ in waiting.assets}
    carried = [date for number, date in waiting.dates if isinstance(by_number.get(number), Identity)]
    return run_date(rules, assets, waiting.key, carried)


def partition_progress(schedule: AssetSchedule, waiting: WaitingPartition) -> str:
    """Return what the run of a key waits for, as text."""
    updates = _complete(schedule, waiting)
    text = f"partition {waiting.key}: {progress(schedule.condition, updates)}"
    complete = {(update.name, update.uri) for update in updates}
    for asset, keys in waiting.assets:
        if (asset.name, asset.uri) not in complete:
            text += f"; {_rollup_progress(schedule, asset, waiting.key, keys)}"
    return text


def _complete(schedule: AssetSchedule, waiting: WaitingPartition) -> list[Update]:
    return [
        Update(asset.name, asset.uri, frozenset())
        for asset, keys in waiting.assets
        if _asset_is_complete(schedule, asset, waiting.key, keys)
    ]


def _asset_is_complete(schedule: AssetSchedule, asset: AssetRow, key: str, arrived: frozenset[str]) -> bool:
    mapper = (schedule.partitions or PartitionRules()).mapper(asset.name, asset.uri)
    if not isinstance(mapper, Rollup):
        return True
    try:
        return enough(mapper, key, arrived)
    except PartitionKeyError:
        return False


def _rollup_progress(schedule: AssetSchedule, asset: AssetRow, key: str, arrived: frozenset[str]) -> str:
    mapper = (schedule.partitions or PartitionRules()).mapper(asset.name, asset.uri)
    assert isinstance(mapper, Rollup)
    try:
        expected = expected_keys(mapper, key)
    except PartitionKeyError as error:
        return f"{asset.name}: {error}"
    need = wanted(mapper, expected)
    if need > len(expected):
        return (
            f"{asset.name}: {shown(mapper)} waits for {need} keys, but its window has {len(expected)}; change minimum or window"
        )
    missing = sorted(expected - arrived)
    named = ", ".join(missing[:_NAMED_MAX]) + (" …" if len(missing) > _NAMED_MAX else "")
    return f"{asset.name}: {len(expected & arrived)} of {need} keys have come; missing: {named}"
