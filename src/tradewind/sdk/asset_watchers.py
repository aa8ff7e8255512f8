"""Watchers of assets: triggers whose events become events of an asset.

arrived = AssetWatcher(name="inbox", trigger=FileDeleteTrigger(filepath="/inbox/orders.csv"))
DAG("load", schedule=Asset("orders", watchers=[arrived]))
"""

from __future__ import annotations

from typing import Any

from tradewind.model.assets import AssetWatch
from tradewind.model.errors import DefinitionError
from tradewind.model.waits import TriggerWait
from tradewind.sdk.assets import BaseAsset
from tradewind.sdk.trigger import BaseEventTrigger


class AssetWatcher:
    """A trigger that watches an asset. It runs while an active, unpaused DAG is scheduled on the asset.

    Args:
        name: the name for people.
        trigger: an event trigger. Watchers whose triggers have the same class and arguments share one trigger.

    Raises:
        DefinitionError: the trigger is not an event trigger.
    """

    def __init__(self, name: str, trigger: Any) -> None:
        if not isinstance(name, str) or not name:
            raise DefinitionError(f"the name of an AssetWatcher is {name!r}; it must be a string")
        if not isinstance(trigger, BaseEventTrigger):
            raise DefinitionError(
                f"AssetWatcher {name!r}: the trigger is {trigger!r}, a {type(trigger).__name__}; it must be a BaseEventTrigger, "
                "because only such a trigger continues after an event"
            )
        self.name = name
        self.trigger = trigger

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetWatcher) and (self.name, self.trigger) == (other.name, other.trigger)

    __hash__ = None  # type: ignore[assignment]  # its trigger can be changed

    def __repr__(self) -> str:
        return f"AssetWatcher(name={self.name!r}, trigger={self.trigger!r})"


def watches_of(condition: BaseAsset) -> tuple[AssetWatch, ...]:
    """The watchers of the assets in a condition, as plain values.

    Raises:
        DefinitionError: a watcher is no `AssetWatcher`, or its trigger cannot be made in another process.
    """
    found: dict[AssetWatch, None] = {}
    for _, asset in condition.iter_assets():
        for watcher in asset.watchers:
            if not isinstance(watcher, AssetWatcher):
                raise DefinitionError(f"asset {asset.name!r}: watchers contains {watcher!r}; it must be an AssetWatcher")
            found[AssetWatch(watcher.name, asset.name, asset.uri, _stored(asset.name, watcher))] = None
    return tuple(found)


def _stored(asset: str, watcher: AssetWatcher) -> TriggerWait:
    from tradewind.execution.xcom_codec import encode_xcom  # lazy import: only where an asset has watchers

    try:
        classpath, kwargs = watcher.trigger.serialize()
        return TriggerWait(str(classpath), encode_xcom(dict(kwargs), "the trigger's arguments"))
    except Exception as error:
        raise DefinitionError(
            f"asset {asset!r}: the trigger of the watcher {watcher.name!r} cannot run in the triggerer: serialize() must return "
            f"its import path and its arguments ({type(error).__name__}: {error})"
        ) from error
