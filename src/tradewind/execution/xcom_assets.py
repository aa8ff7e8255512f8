"""Assets and their events as XComs: plain data, and back. Watchers of assets are not kept."""

from __future__ import annotations

from typing import Any

from tradewind.execution.asset_events import AssetEvent, Metadata
from tradewind.sdk.assets import Asset, AssetAlias, AssetAll, AssetAny, AssetRef, BaseAsset, Dataset, Model
from tradewind.sdk.exceptions import XComNotSerializable

_CLASSES = {one.__name__: one for one in (Asset, Dataset, Model)}
_CONDITIONS = {one.__name__: one for one in (AssetAll, AssetAny)}


def data_of(value: object) -> dict[str, Any] | None:
    """The data of an asset, a reference, an alias, a condition, a `Metadata` or an event; None for another object.

    Values inside, such as `extra`, are as the author gave them.
    """
    match value:
        case Asset():
            kind = next(name for one in type(value).__mro__ if _CLASSES.get(name := one.__name__) is one)
            return {"kind": kind, "name": value.name, "uri": value.uri, "group": value.group, "extra": value.extra}
        case AssetRef():
            return {"kind": "AssetRef", "name": value.name, "uri": value.uri}
        case AssetAlias():
            return {"kind": "AssetAlias", "name": value.name, "group": value.group}
        case AssetAll() | AssetAny():
            return {"kind": type(value).__name__, "objects": value.objects}
        case Metadata():
            return {"kind": "Metadata", "asset": value.asset, "extra": value.extra, "alias": value.alias}
        case AssetEvent():
            return {"kind": "AssetEvent", "row": dict(value.row)}
    return None


def object_of(data: dict[str, Any]) -> BaseAsset | Metadata | AssetEvent:
    """The object of `data_of`. Raises XComNotSerializable: data of a kind that this version does not know."""
    kind = data["kind"]
    if kind in _CLASSES:
        return _CLASSES[kind](data["name"], data["uri"], group=data["group"], extra=data["extra"])
    if kind in _CONDITIONS:
        return _CONDITIONS[kind](*data["objects"])
    match kind:
        case "AssetRef":
            return AssetRef(name=data["name"] or None, uri=data["uri"] or None)
        case "AssetAlias":
            return AssetAlias(data["name"], group=data["group"])
        case "Metadata":
            return Metadata(data["asset"], data["extra"], data["alias"])
        case "AssetEvent":
            return AssetEvent(data["row"])
    raise XComNotSerializable(f"a stored XCom is an asset of the kind {kind!r}, which this version of Tradewind does not know")
