"""Assets as plain values: the assets that tasks produce, the conditions of DAGs, and when a condition is met.

Name and URI together identify an asset. A reference (`Asset.ref(name=…)`) leaves one of them empty: it stands for the asset
with the given name or URI. Conditions are trees. The asset events that wait for the DAG decide whether a condition is met.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from tradewind.model.partitions import PartitionRules
from tradewind.model.phrases import Phrase, english, phrase
from tradewind.model.waits import TriggerWait


class AssetKey(msgspec.Struct, frozen=True, omit_defaults=True, tag="asset"):
    """One asset, by name and URI. In a reference, one of them is empty."""

    name: str = ""
    uri: str = ""
    group: str = "asset"
    extra: bytes = b""
    """JSON object; empty: none."""

    def fits(self, name: str, uri: str) -> bool:
        """Return whether this key or reference stands for the asset with this name and URI."""
        return (self.name or name) == name and (self.uri or uri) == uri

    @property
    def shown(self) -> str:
        return self.name or self.uri


class AliasKey(msgspec.Struct, frozen=True, omit_defaults=True, tag="alias"):
    """A name under which tasks produce assets that are known only when they run."""

    name: str
    group: str = "asset"

    @property
    def shown(self) -> str:
        return f"alias {self.name}"


class AllOf(msgspec.Struct, frozen=True, tag="all"):
    """Met if every part is met."""

    of: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True, tag="any"):
    """Met if at least one part is met."""

    of: tuple[Condition, ...]


Leaf = AssetKey | AliasKey
Condition = AssetKey | AliasKey | AllOf | AnyOf


class AssetWatch(msgspec.Struct, frozen=True):
    """A trigger that watches an asset: each of its events becomes an event of the asset."""

    name: str
    asset_name: str
    asset_uri: str
    trigger: TriggerWait


class AssetSchedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A DAG that runs when assets were updated."""

    condition: Condition
    dated: bool = False
    """Its runs have a logical date, and the data interval of the runs that emitted the events (Airflow 2); else none."""
    watchers: tuple[AssetWatch, ...] = ()
    """Triggers that watch the assets in the condition."""
    partitions: PartitionRules | None = None
    """Set: a run for each partition key. None: events with a partition key do not count."""


class AssetUse(msgspec.Struct, frozen=True):
    """A task that produces (`outlet`) or reads (`inlet`) an asset or an alias."""

    task_id: str
    kind: Literal["outlet", "inlet"]
    what: Leaf


class Update(NamedTuple):
    """The fields of a waiting asset event that conditions need."""

    name: str
    uri: str
    aliases: frozenset[str]


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(AssetSchedule)


def encode_asset_schedule(schedule: AssetSchedule | None) -> bytes | None:
    return None if schedule is None else _encoder.encode(schedule)


def decode_asset_schedule(data: bytes) -> AssetSchedule:
    return _decoder.decode(data)


def watcher_number(bundle: str, trigger: TriggerWait) -> int:
    """Return the number of a watcher's trigger. Watchers with the same class and arguments share one trigger, as in Airflow.

    The number has 53 bits, so that JSON keeps it.
    """
    text = b"\0".join((bundle.encode(), trigger.classpath.encode(), trigger.kwargs))
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest()) >> 3


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Yield the assets and aliases of a condition, in the author's order, with repetitions."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.of:
            yield from leaves(part)
    else:
        yield condition


def matches(leaf: Leaf, update: Update) -> bool:
    """Return whether the event counts for this asset or alias."""
    return leaf.name in update.aliases if isinstance(leaf, AliasKey) else leaf.fits(update.name, update.uri)


def holds(condition: Condition, updates: Collection[Update]) -> bool:
    """Return whether these events meet the condition."""
    if isinstance(condition, AllOf):
        return all(holds(part, updates) for part in condition.of)
    if isinstance(condition, AnyOf):
        return any(holds(part, updates) for part in condition.of)
    return any(matches(condition, update) for update in updates)


def missing(condition: Condition, updates: Collection[Update]) -> str:
    """Return as text what still has to be updated; empty if the condition is met."""
    if holds(condition, updates):
        return ""
    if isinstance(condition, AllOf):
        lacking = [(part, text) for part in condition.of if (text := missing(part, updates))]
        return " and ".join(_bracketed(part, text) for part, text in lacking) if len(lacking) > 1 else lacking[0][1]
    if isinstance(condition, AnyOf):
        return " or ".join(_bracketed(part, missing(part, updates)) for part in condition.of)
    return condition.shown


def _bracketed(part: Condition, text: str) -> str:
    return f"({text})" if isinstance(part, AllOf | AnyOf) and " " in text else text


def progress(condition: Condition, updates: Collection[Update]) -> str:
    """Return the progress of a condition as text: "2 of 3 assets updated; missing: orders"."""
    return english(update_progress(condition, updates))


def update_progress(condition: Condition, updates: Collection[Update]) -> Phrase:
    """Return the same as a phrase."""
    known = dict.fromkeys(leaves(condition))
    updated, total = sum(any(matches(leaf, update) for update in updates) for leaf in known), len(known)
    text = missing(condition, updates)
    if total == 1:
        done = phrase("asset_updated", updated=updated, total=total)
        return phrase("asset_missing", updated=updated, total=total, missing=text) if text else done
    done = phrase("assets_updated", updated=updated, total=total)
    return phrase("assets_missing", updated=updated, total=total, missing=text) if text else done


def expression(condition: Condition, id_of: Callable[[AssetKey], int | None] | None = None) -> dict[str, Any]:
    """Return a condition in the form of Airflow's API.

    Args:
        id_of: gives the id of an asset; without it, assets have no `id`.
    """
    if isinstance(condition, AllOf):
        return {"all": [expression(part, id_of) for part in condition.of]}
    if isinstance(condition, AnyOf):
        return {"any": [expression(part, id_of) for part in condition.of]}
    if isinstance(condition, AliasKey):
        return {"alias": {"name": condition.name, "group": condition.group}}
    if not condition.uri:
        return {"asset_ref": {"name": condition.name}}
    if not condition.name:
        return {"asset_ref": {"uri": condition.uri}}
    found: dict[str, Any] = {"uri": condition.uri, "name": condition.name, "group": condition.group}
    if id_of is not None:
        found["id"] = id_of(condition)
    return {"asset": found}
