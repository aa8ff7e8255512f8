"""Further names of Airflow 3 for assets: watchers, teams, references, the result of a DAG, retention of stored state."""

from __future__ import annotations

from typing import Any, NamedTuple

from tradewind.execution.state_stores import NEVER_EXPIRE
from tradewind.sdk.asset_watchers import AssetWatcher
from tradewind.sdk.assets import AssetRef
from tradewind.triggers.file import DirectoryFileDeleteTrigger

__all__ = [
    "NEVER_EXPIRE",
    "AssetAccessControl",
    "AssetAliasEvent",
    "AssetAliasUniqueKey",
    "AssetNameRef",
    "AssetUniqueKey",
    "AssetUriRef",
    "AssetWatcher",
    "BaseDeadlineReference",
    "DirectoryFileDeleteTrigger",
    "deadline_reference",
]


class AssetAccessControl:
    """Which teams may produce and consume an asset. There are no teams here."""

    def __init__(
        self, *, producer_teams: list[str] | None = None, consumer_teams: list[str] | None = None, allow_global: bool = True
    ) -> None:
        self.producer_teams, self.consumer_teams = producer_teams or [], consumer_teams or []
        self.allow_global = allow_global


class AssetUniqueKey(NamedTuple):
    """Name and URI of an asset."""

    name: str
    uri: str

    @classmethod
    def from_asset(cls, asset: Any) -> AssetUniqueKey:
        """The key of an asset."""
        return cls(asset.name, asset.uri)


class AssetAliasUniqueKey(NamedTuple):
    """Name of an alias."""

    name: str

    @classmethod
    def from_asset_alias(cls, asset_alias: Any) -> AssetAliasUniqueKey:
        """The key of an alias."""
        return cls(asset_alias.name)


class AssetAliasEvent(NamedTuple):
    """An event of an asset that a task has added through an alias."""

    source_alias_name: str
    dest_asset_key: AssetUniqueKey
    dest_asset_extra: dict[str, Any]
    extra: dict[str, Any]


class AssetNameRef(AssetRef):
    """A reference to an asset by its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)


class AssetUriRef(AssetRef):
    """A reference to an asset by its URI."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri=uri)


class BaseDeadlineReference:
    """Base class of custom references of deadlines. `DeadlineAlert` does not support them yet."""


def deadline_reference(*_args: Any, **_kwargs: Any) -> Any:
    """Return the class of a reference unchanged."""
    if len(_args) == 1 and isinstance(_args[0], type):
        return _args[0]
    return lambda cls: cls
