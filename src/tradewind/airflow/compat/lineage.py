"""`airflow.lineage`: what tasks read and write, as Airflow 1.10 and 2 wrote it, and the collector that hooks tell."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tradewind.airflow.compat.module_loading import import_string
from tradewind.provider_packages import offers
from tradewind.sdk.assets import Asset
from tradewind.sdk.conf import conf
from tradewind.sdk.plugins import plugin_sources

log = logging.getLogger(__name__)

__all__ = [
    "AUTO",
    "MAX_COLLECTED_ASSETS",
    "MAX_COLLECTED_EXTRA",
    "AssetLineageInfo",
    "Column",
    "ExtraLineageInfo",
    "File",
    "HookLineage",
    "HookLineageCollector",
    "HookLineageReader",
    "LineageBackend",
    "NoOpCollector",
    "Table",
    "Tag",
    "User",
    "apply_lineage",
    "get_hook_lineage_collector",
    "prepare_lineage",
]

F = TypeVar("F", bound=Callable[..., Any])

AUTO = "auto"
"""An inlet that stands for all outlets of the upstream tasks."""

MAX_COLLECTED_ASSETS: int = conf.getint("lineage", "max_assets_per_collector", fallback=100)
MAX_COLLECTED_EXTRA: int = conf.getint("lineage", "max_extras_per_collector", fallback=200)


def apply_lineage(function: F) -> F:
    """Return `execute` unchanged: outlets are read from the task."""
    return function


def prepare_lineage(function: F) -> F:
    """Return `execute` unchanged: inlets are read from the task."""
    return function


class LineageBackend:
    """Base class of backends that send lineage to another system. Tradewind never calls them."""

    def send_lineage(self, operator: Any, inlets: Any = None, outlets: Any = None, context: Any = None) -> None:
        """Send the inlets and outlets of a task."""


class _Entity:
    """Data that tasks read or write, described by attributes."""

    template_fields: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(self.fields, args, strict=False)), **kwargs}
        for name in self.fields:
            setattr(self, name, given.pop(name, None))
        if given:
            raise TypeError(f"{type(self).__name__} takes no argument {next(iter(given))!r}; it has {', '.join(self.fields)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.fields)})"


class File(_Entity):
    """A file, by its URL."""

    template_fields = ("url",)
    fields = ("url", "type_hint")


class User(_Entity):
    """A person."""

    fields = ("email", "first_name", "last_name")


class Tag(_Entity):
    """A label."""

    fields = ("tag_name",)


class Column(_Entity):
    """A column of a table."""

    fields = ("name", "description", "data_type", "tags")


class Table(_Entity):
    """A table of a database."""

    template_fields = ("database", "cluster", "name", "tags", "description", "columns", "owners", "extra")
    fields = ("database", "cluster", "name", "tags", "description", "columns", "owners", "extra", "type_hint")


@dataclass
class AssetLineageInfo:
    """An asset that hooks have read or written, and how often."""

    asset: Any
    count: int
    context: Any

    @property
    def dataset(self) -> Any:
        """Airflow 2's name of `asset`."""
        return self.asset


@dataclass
class ExtraLineageInfo:
    """Another report of hooks, with its number."""

    key: str
    value: Any
    count: int
    context: Any


@dataclass
class HookLineage:
    """The reports that a collector has received."""

    inputs: list[AssetLineageInfo] = field(default_factory=list)
    outputs: list[AssetLineageInfo] = field(default_factory=list)
    extra: list[ExtraLineageInfo] = field(default_factory=list)


class HookLineageReader:
    """Base of the classes in `hook_lineage_readers` of a plugin. If a plugin has such a class, hooks report to the collector."""

    def __init__(self, **_kwargs: Any) -> None:
        self.lineage_collector = get_hook_lineage_collector()

    def retrieve_hook_lineage(self) -> HookLineage:
        """The reports of the hooks of this process."""
        return self.lineage_collector.collected_assets


class HookLineageCollector:
    """Receives reports of hooks about the data that they read and write. Keeps a limited number of entries of each kind."""

    def __init__(self, **_kwargs: Any) -> None:
        self._inputs: dict[Any, AssetLineageInfo] = {}
        self._outputs: dict[Any, AssetLineageInfo] = {}
        self._extra: dict[Any, ExtraLineageInfo] = {}

    def create_asset(
        self,
        *,
        scheme: str | None = None,
        uri: str | None = None,
        name: str | None = None,
        group: str | None = None,
        asset_kwargs: dict[str, Any] | None = None,
        asset_extra: dict[str, Any] | None = None,
        **_ignored: Any,
    ) -> Any:
        """An asset for a URI, or for the arguments that the package of a scheme takes; None if no package knows the scheme."""
        named: dict[str, Any] = {} if group is None else {"group": group}
        if uri or name:
            return Asset(name or uri, uri or name, extra=asset_extra or {}, **named)
        factory = offers.asset_factories().get(scheme or "")
        if factory is None or asset_kwargs is None:
            return None
        return import_string(factory)(**asset_kwargs, extra=asset_extra)

    create_dataset = create_asset

    def _add(self, entries: dict[Any, AssetLineageInfo], context: Any, kwargs: dict[str, Any]) -> None:
        asset = self.create_asset(**kwargs)
        if asset is None:
            return
        key = asset.uri, repr(asset.extra), id(context)
        if key in entries:
            entries[key].count += 1
        elif len(entries) < MAX_COLLECTED_ASSETS:
            entries[key] = AssetLineageInfo(asset, 1, context)

    def add_input_asset(self, context: Any, scheme: str | None = None, uri: str | None = None, **more: Any) -> None:
        """Record that a hook has read an asset."""
        self._add(self._inputs, context, {"scheme": scheme, "uri": uri, **more})

    def add_output_asset(self, context: Any, scheme: str | None = None, uri: str | None = None, **more: Any) -> None:
        """Record that a hook has written an asset."""
        self._add(self._outputs, context, {"scheme": scheme, "uri": uri, **more})

    def add_extra(self, context: Any, key: str, value: Any) -> None:
        """Record another report of a hook."""
        entry = key, repr(value), id(context)
        if not key or not value:
            return
        if entry in self._extra:
            self._extra[entry].count += 1
        elif len(self._extra) < MAX_COLLECTED_EXTRA:
            self._extra[entry] = ExtraLineageInfo(key, value, 1, context)

    add_input_dataset, add_output_dataset = add_input_asset, add_output_asset

    @property
    def collected_assets(self) -> HookLineage:
        """The reports of hooks since the start of the process."""
        return HookLineage(list(self._inputs.values()), list(self._outputs.values()), list(self._extra.values()))

    collected_datasets = collected_assets

    @property
    def has_collected(self) -> bool:
        """Whether a hook has reported anything."""
        return bool(self._inputs or self._outputs or self._extra)


class NoOpCollector(HookLineageCollector):
    """Keeps nothing. Used while no plugin reads the reports of hooks."""

    def add_input_asset(self, *_args: Any, **_kwargs: Any) -> None:
        """Record that a hook has read an asset."""

    def add_output_asset(self, *_args: Any, **_kwargs: Any) -> None:
        """Record that a hook has written an asset."""

    def add_extra(self, *_args: Any, **_kwargs: Any) -> None:
        """Record another report of a hook."""


@functools.cache
def get_hook_lineage_collector() -> HookLineageCollector:
    """The collector of this process. It keeps the reports if a plugin with listeners or lineage readers may read them."""
    return HookLineageCollector() if plugin_sources((b"listeners", b"hook_lineage_readers")) else NoOpCollector()
