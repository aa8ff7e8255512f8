"""`airflow.lineage`: what tasks read and write, as Airflow 1.10 and 2 wrote it, and the collector that hooks tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "AUTO",
    "Column",
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
"""As an inlet: whatever the tasks before it write."""


def apply_lineage(function: F) -> F:
    """Leave `execute` as it is: outlets are read from the task."""
    return function


def prepare_lineage(function: F) -> F:
    """Leave `execute` as it is: inlets are read from the task."""
    return function


class LineageBackend:
    """Base of what sends lineage elsewhere; nothing calls it here."""

    def send_lineage(self, operator: Any, inlets: Any = None, outlets: Any = None, context: Any = None) -> None:
        """Send the inlets and outlets of a task."""


class _Entity:
    """A thing that tasks read or write, with its facts as attributes."""

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


class HookLineage(NamedTuple):
    """What a collector has been told."""

    inputs: list[Any] = []
    outputs: list[Any] = []
    extra: list[Any] = []


class HookLineageReader:
    """Base of plugins that read the collector."""

    def __init__(self, **_kwargs: Any) -> None:
        self.lineage_collector = get_hook_lineage_collector()


class HookLineageCollector:
    """Is told by hooks what they read and write. Nothing reads it here, so it keeps nothing."""

    collected_assets = HookLineage()
    collected_datasets = HookLineage()
    has_collected = False

    @staticmethod
    def create_asset(**_kwargs: Any) -> None:
        """An asset for a URI; none is made."""

    create_dataset = create_asset

    def add_input_asset(self, *_args: Any, **_kwargs: Any) -> None:
        """A hook has read an asset."""

    def add_output_asset(self, *_args: Any, **_kwargs: Any) -> None:
        """A hook has written an asset."""

    def add_extra(self, *_args: Any, **_kwargs: Any) -> None:
        """A hook tells something else."""

    add_input_dataset, add_output_dataset = add_input_asset, add_output_asset


NoOpCollector = HookLineageCollector

_COLLECTOR = HookLineageCollector()


def get_hook_lineage_collector() -> HookLineageCollector:
    """The collector of this process."""
    return _COLLECTOR
