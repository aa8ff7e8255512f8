"""Asset partitions: whether the run of a partition key is due, computed from the events that wait for this key."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.assets import AssetKey, AssetSchedule, Leaf, Update, holds, leaves, matches, progress
from tradewind.model.counts import counted
from tradewind.model.partitions import Identity, KeyFacts, PartitionRules, Rollup
from tradewind.model.rows import AssetRow, WaitingPartition
from tradewind.timetables.partition_keys import PartitionKeyError, enough, expected_keys, needed, run_date, shown

_NAMED_MAX = 3
"""Maximum number of missing keys that a sentence names."""


class KeyProgress(NamedTuple):
    """How many partition keys of one asset of a schedule have arrived for the run of a downstream key."""

    asset: Leaf
    complete: bool
    """Enough keys have arrived."""
    arrived: int
    """How many of the expected keys have arrived."""
    needed: int
    """How many of the expected keys must arrive."""
    missing: tuple[str, ...]
    """Expected keys that have not arrived, sorted. Empty for a mapper that does not wait for several keys."""
    problem: str | None = None
    """Why the expected keys are not known; None: they are known."""


def is_due(schedule: AssetSchedule, waiting: WaitingPartition) -> bool:
    """Return whether the run of a key can be created: the condition is met by the assets of which enough keys have arrived."""
    return holds(schedule.condition, _complete(schedule, waiting))


def partition_date(rules: PartitionRules, waiting: WaitingPartition) -> int | None:
    """Return the partition date of the run that consumes these events. An event's date is used only if the mapper keeps the key."""
    assets = [(asset.name, asset.uri) for asset, _ in waiting.assets]
    by_number = {asset.id: rules.mapper(asset.name, asset.uri) for asset, _ in waiting.assets}
    carried = [date for number, date in waiting.dates if isinstance(by_number.get(number), Identity)]
    said = [facts.date for _, facts in waiting.facts if facts.date is not None]
    return run_date(rules, assets, waiting.key, carried, said)


def key_progress(schedule: AssetSchedule, waiting: WaitingPartition) -> list[KeyProgress]:
    """Return the progress of each asset of a schedule for the run of one key, in the author's order."""
    return [_key_progress(schedule, leaf, waiting) for leaf in dict.fromkeys(leaves(schedule.condition))]


def _key_progress(schedule: AssetSchedule, leaf: Leaf, waiting: WaitingPartition) -> KeyProgress:
    found = [(asset, keys) for asset, keys in waiting.assets if matches(leaf, Update(asset.name, asset.uri, frozenset()))]
    complete = any(_asset_is_complete(schedule, asset, waiting, keys) for asset, keys in found)
    name, uri = (found[0][0].name, found[0][0].uri) if found else (leaf.name, leaf.uri if isinstance(leaf, AssetKey) else "")
    mapper = (schedule.partitions or PartitionRules()).mapper(name, uri)
    arrived = frozenset(key for _, keys in found for key in keys)
    facts = next((facts for asset, _ in found if (facts := _facts(asset, waiting)) is not None), None)
    if facts is not None and facts.expected is not None:
        expected = frozenset(facts.expected)
        return KeyProgress(leaf, complete, len(expected & arrived), facts.needed, tuple(sorted(expected - arrived)))
    if not isinstance(mapper, Rollup):
        return KeyProgress(leaf, complete, int(bool(found)), 1, ())
    try:
        expected = expected_keys(mapper, waiting.key)
    except PartitionKeyError as error:
        return KeyProgress(leaf, complete, len(arrived), 1, (), str(error))
    return KeyProgress(leaf, complete, len(expected & arrived), needed(mapper, expected), tuple(sorted(expected - arrived)))


def partition_progress(schedule: AssetSchedule, waiting: WaitingPartition) -> str:
    """Return as text what the run of a key waits for."""
    updates = _complete(schedule, waiting)
    text = f"partition {waiting.key}: {progress(schedule.condition, updates)}"
    complete = {(update.name, update.uri) for update in updates}
    for asset, keys in waiting.assets:
        if (asset.name, asset.uri) not in complete:
            text += f"; {_rollup_progress(schedule, asset, waiting, keys)}"
    return text


def _complete(schedule: AssetSchedule, waiting: WaitingPartition) -> list[Update]:
    return [
        Update(asset.name, asset.uri, frozenset())
        for asset, keys in waiting.assets
        if _asset_is_complete(schedule, asset, waiting, keys)
    ]


def _facts(asset: AssetRow, waiting: WaitingPartition) -> KeyFacts | None:
    return next((facts for number, facts in waiting.facts if number == asset.id), None)


def _asset_is_complete(schedule: AssetSchedule, asset: AssetRow, waiting: WaitingPartition, arrived: frozenset[str]) -> bool:
    facts = _facts(asset, waiting)
    if facts is not None and facts.expected is not None:
        return len(arrived.intersection(facts.expected)) >= facts.needed
    mapper = (schedule.partitions or PartitionRules()).mapper(asset.name, asset.uri)
    if not isinstance(mapper, Rollup):
        return True
    try:
        return enough(mapper, waiting.key, arrived)
    except PartitionKeyError:
        return False


def _rollup_progress(schedule: AssetSchedule, asset: AssetRow, waiting: WaitingPartition, arrived: frozenset[str]) -> str:
    mapper = (schedule.partitions or PartitionRules()).mapper(asset.name, asset.uri)
    facts = _facts(asset, waiting)
    try:
        expected = expected_keys(mapper, waiting.key) if isinstance(mapper, Rollup) else frozenset()
    except PartitionKeyError as error:
        return f"{asset.name}: {error}"
    need = needed(mapper, expected) if isinstance(mapper, Rollup) else 1
    if facts is not None and facts.expected is not None:
        expected, need = frozenset(facts.expected), facts.needed
    if need > len(expected):
        window = f"{counted(need, 'key')}, but its window has {len(expected)}; change minimum or window"
        return f"{asset.name}: {shown(mapper)} waits for {window}"
    missing = sorted(expected - arrived)
    named = ", ".join(missing[:_NAMED_MAX]) + (" …" if len(missing) > _NAMED_MAX else "")
    return f"{asset.name}: {len(expected & arrived)} of {counted(need, 'key')} arrived; missing: {named}"
