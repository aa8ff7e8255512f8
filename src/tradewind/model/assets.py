"""Assets as plain values: what tasks produce, what DAGs wait for, and when a DAG's condition holds.

An asset is known by its name and its URI together. A reference may leave one of them empty (`Asset.ref(name=…)`): it means
whichever asset has the other. Conditions are trees; whether one holds is decided from the events that wait for their consumer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Literal, NamedTuple

import msgspec


class AssetKey(msgspec.Struct, frozen=True, omit_defaults=True, tag="asset"):
    """One asset, by name and URI; one of them is empty where the author gave a reference."""

    name: str = ""
    uri: str = ""
    group: str = "asset"
    extra: bytes = b""
    """JSON object; empty: none."""

    def fits(self, name: str, uri: str) -> bool:
        """Is it this asset?"""
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
    """Holds when every part does."""

    of: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True, tag="any"):
    """Holds when one part does."""

    of: tuple[Condition, ...]


Leaf = AssetKey | AliasKey
Condition = AssetKey | AliasKey | AllOf | AnyOf


class AssetSchedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A DAG that runs when assets were updated."""

    condition: Condition
    dated: bool = False
    """Its runs have a logical date and the data interval of the runs that emitted the events (Airflow 2); else none."""


class AssetUse(msgspec.Struct, frozen=True):
    """A task that produces (`outlet`) or reads (`inlet`) an asset or an alias."""

    task_id: str
    kind: Literal["outlet", "inlet"]
    what: Leaf


class Update(NamedTuple):
    """An event that waits for a consumer, as far as conditions care."""

    name: str
    uri: str
    aliases: frozenset[str]


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(AssetSchedule)


def encode_asset_schedule(schedule: AssetSchedule | None) -> bytes | None:
    return None if schedule is None else _encoder.encode(schedule)


def decode_asset_schedule(data: bytes) -> AssetSchedule:
    return _decoder.decode(data)


def leaves(condition: Condition) -> Iterator[Leaf]:
    """The assets and aliases of a condition, in the author's order, as often as they occur."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.of:
            yield from leaves(part)
    else:
        yield condition


def matches(leaf: Leaf, update: Update) -> bool:
    """Does the event count for this leaf?"""
    return leaf.name in update.aliases if isinstance(leaf, AliasKey) else leaf.fits(update.name, update.uri)


def holds(condition: Condition, updates: Collection[Update]) -> bool:
    """Is the condition fulfilled by these events?"""
    if isinstance(condition, AllOf):
        return all(holds(part, updates) for part in condition.of)
    if isinstance(condition, AnyOf):
        return any(holds(part, updates) for part in condition.of)
    return any(matches(condition, update) for update in updates)


def missing(condition: Condition, updates: Collection[Update]) -> str:
    """What still has to be updated before it holds, in words; empty when it holds."""
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
    """How far a condition has come: "2 of 3 assets updated; missing: orders"."""
    known = dict.fromkeys(leaves(condition))
    updated = sum(any(matches(leaf, update) for update in updates) for leaf in known)
    plural = "asset" if len(known) == 1 else "assets"
    text = missing(condition, updates)
    return f"{updated} of {len(known)} {plural} updated" + (f"; missing: {text}" if text else "")


def expression(condition: Condition) -> dict[str, Any]:
    """A condition in Airflow's form for its API."""
    if isinstance(condition, AllOf):
        return {"all": [expression(part) for part in condition.of]}
    if isinstance(condition, AnyOf):
        return {"any": [expression(part) for part in condition.of]}
    if isinstance(condition, AliasKey):
        return {"alias": {"name": condition.name, "group": condition.group}}
    return {"asset": {"uri": condition.uri, "name": condition.name, "group": condition.group}}
