"""Plugins: what a file of the plugins folder, or an installed package, adds to everybody's DAGs.

    class OurPlugin(AirflowPlugin):
        name = "ours"
        macros = [workdays_between]          # {{ macros.ours.workdays_between(...) }}
        timetables = [Workdays]

They are users' code: loaded in the parser's children and in task processes when somebody asks for them, never in the scheduler
or the API, which know only the list that a child wrote down.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from tradewind.sdk.load import add_plugins_folder, plugins_folder, serve_airflow_names

ENTRY_POINTS = ("airflow.plugins", "tradewind.plugins")
"""Groups under which installed packages offer plugins."""
FILE, PACKAGE = "$PLUGINS_FOLDER/", "package "

_CARRIED_OUT = ("macros", "timetables")
_RECORDED = (
    "listeners",
    "operator_extra_links",
    "global_operator_extra_links",
    "priority_weight_strategies",
    "flask_blueprints",
    "fastapi_apps",
    "fastapi_root_middlewares",
    "external_views",
    "react_apps",
    "menu_links",
    "appbuilder_views",
    "appbuilder_menu_items",
    "hook_lineage_readers",
    "partition_mappers",
    "windows",
    "deadline_references",
)
"""What Airflow's plugins may have besides: it is listed, and has no effect yet."""


class AirflowPlugin:
    """Base of plugins. Each attribute is a list; the names are Airflow's."""

    name: str | None = None
    macros: list[Any] = []
    timetables: list[Any] = []
    listeners: list[Any] = []
    operator_extra_links: list[Any] = []
    global_operator_extra_links: list[Any] = []
    priority_weight_strategies: list[Any] = []

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Called once in each process that loads it."""


class Found(NamedTuple):
    """One plugin."""

    name: str
    source: str
    """`$PLUGINS_FOLDER/ours.py`, or the package that brought it."""
    plugin: Any


class Trouble(NamedTuple):
    """A file or package whose plugins cannot be loaded."""

    source: str
    error: BaseException


class Loaded(NamedTuple):
    plugins: list[Found]
    troubles: list[Trouble]


def load_plugins(folder: str) -> Loaded:
    """Import everything in the plugins folder, and what packages offer. Whatever one of them raises stays with it."""
    loaded = Loaded([], [])
    serve_airflow_names()
    add_plugins_folder(folder)
    for file in _files(folder):
        source = FILE + file
        try:
            module = importlib.import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
            for value in list(vars(module).values()):
                if _is_plugin(value) and value.__module__ == module.__name__:
                    _take(loaded, value, source)
        except (Exception, SystemExit) as error:
            loaded.troubles.append(Trouble(source, error))
    from importlib.metadata import entry_points  # lazy door: costs more than the rest, and seldom is anything found

    for group in ENTRY_POINTS:
        for point in entry_points(group=group):
            package = "" if point.dist is None else f"{point.dist.name}=={point.dist.version}: "
            source = f"{PACKAGE}{package}{point.value}"
            try:
                _take(loaded, point.load(), source)
            except (Exception, SystemExit) as error:
                loaded.troubles.append(Trouble(source, error))
    return loaded


def _files(folder: str) -> Iterator[str]:
    """Python files by name, with forward slashes; hidden ones and caches are left out."""
    for path, _, files in sorted(os.walk(folder)):
        inside = os.path.relpath(path, folder)
        if any(part.startswith((".", "__pycache__")) and part != "." for part in inside.split(os.sep)):
            continue
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith("."):
                yield name if inside == "." else f"{inside.replace(os.sep, '/')}/{name}"


def _is_plugin(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, AirflowPlugin) and value is not AirflowPlugin


def _take(loaded: Loaded, plugin: Any, source: str) -> None:
    """Keep one.

    Raises:
        TypeError, ValueError: it is no plugin, has no name, or one that is taken.
    """
    if not _is_plugin(plugin):
        raise TypeError(f"{plugin!r} is no subclass of AirflowPlugin")
    if not plugin.name:
        raise ValueError(f"the plugin {plugin.__name__} needs a name, such as name = 'ours'")
    taken = next((found for found in loaded.plugins if found.name == plugin.name), None)
    if taken is not None:
        raise ValueError(f"the plugin name {plugin.name!r} is taken by {taken.source}")
    plugin.on_load()
    loaded.plugins.append(Found(str(plugin.name), source, plugin))


def facts(found: Found) -> dict[str, Any]:
    """A plugin as it is listed for people: names only.

    `recorded_only` names the kinds of things it has that have no effect yet.
    """
    listed: dict[str, Any] = {"name": found.name, "source": found.source}
    for kind in (*_CARRIED_OUT, *_RECORDED):
        listed[kind] = [_named(thing) for thing in getattr(found.plugin, kind, None) or ()]
    listed["recorded_only"] = [kind for kind in _RECORDED if listed[kind]]
    return listed


def _named(thing: Any) -> str:
    if isinstance(thing, dict):
        return str(thing.get("name", thing))
    if not hasattr(thing, "__name__"):
        thing = type(thing)
    return f"{thing.__module__}.{thing.__qualname__}" if hasattr(thing, "__qualname__") else str(thing.__name__)


@lru_cache(maxsize=1)
def here() -> Loaded:
    """The plugins of this process, loaded when they are first asked for."""
    return load_plugins(plugins_folder())


def macros_of(name: str) -> SimpleNamespace | None:
    """The macros of the plugin of that name, by their own names; None where there is no such plugin."""
    found = next((found for found in here().plugins if found.name == name), None)
    if found is None:
        for trouble in here().troubles:
            sys.stderr.write(f"a plugin cannot be loaded: {trouble.source}: {type(trouble.error).__name__}: {trouble.error}\n")
        return None
    return SimpleNamespace(**{macro.__name__: macro for macro in found.plugin.macros})
