"""Plugins: extensions from files of the plugins folder and from installed packages, available to all DAGs.

    class OurPlugin(AirflowPlugin):
        name = "ours"
        macros = [workdays_between]          # {{ macros.ours.workdays_between(...) }}
        timetables = [Workdays]

Plugins are user code. They are loaded only in child processes of the parser and in task processes, when they are first needed. The
scheduler and the API read only the list of plugins that a child process of the parser wrote.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from tradewind.sdk.entry_points import mentions, package_sources
from tradewind.sdk.import_paths import add_plugins_folder, plugins_folder, serve_airflow_names

ENTRY_POINTS = ("airflow.plugins", "tradewind.plugins")
"""Entry point groups in which installed packages offer plugins."""
FILE, PACKAGE = "$PLUGINS_FOLDER/", "package "

_SUPPORTED = (
    "macros",
    "timetables",
    "operators",
    "sensors",
    "hooks",
    "listeners",
    "hook_lineage_readers",
    "operator_extra_links",
    "global_operator_extra_links",
    "priority_weight_strategies",
    "partition_mappers",
    "windows",
)
_LISTED_ONLY = (
    "executors",
    "admin_views",
    "flask_blueprints",
    "deadline_references",
)
"""Other attributes of Airflow's plugins. They are listed and have no effect."""

_TABLES: dict[str, tuple[str, ...]] = {
    "fastapi_apps": ("name", "app", "url_prefix"),
    "fastapi_root_middlewares": ("name", "middleware"),
    "react_apps": ("name", "bundle_url", "destination", "category", "icon", "icon_dark_mode", "url_route", "nav_top_level"),
    "appbuilder_views": ("name", "category", "label", "view"),
    "external_views": ("name", "href", "destination", "category", "icon", "icon_dark_mode", "url_route", "nav_top_level"),
    "appbuilder_menu_items": ("name", "href", "category"),
}
"""Attributes whose entries are dicts, with the keys that Airflow's REST API shows."""
_TABLES_LISTED_ONLY = ("fastapi_apps", "fastapi_root_middlewares", "react_apps", "appbuilder_views")
"""Tables without effect: their entries are code of the author that would have to run in the web server."""


class AirflowPlugin:
    """Base class of plugins. Each attribute is a list; the names are Airflow's."""

    name: str | None = None
    operators: list[Any] = []
    sensors: list[Any] = []
    hooks: list[Any] = []
    executors: list[Any] = []
    macros: list[Any] = []
    timetables: list[Any] = []
    listeners: list[Any] = []
    hook_lineage_readers: list[Any] = []
    operator_extra_links: list[Any] = []
    global_operator_extra_links: list[Any] = []
    priority_weight_strategies: list[Any] = []
    external_views: list[Any] = []
    appbuilder_menu_items: list[Any] = []
    menu_links: list[Any] = []

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Called once in each process that loads the plugin."""


class LoadedPlugin(NamedTuple):
    """A plugin and its source."""

    name: str
    source: str
    """`$PLUGINS_FOLDER/ours.py`, or the package that contains the plugin."""
    plugin: Any


class LoadError(NamedTuple):
    """A file or package whose plugins cannot be loaded."""

    source: str
    error: BaseException


class Loaded(NamedTuple):
    plugins: list[LoadedPlugin]
    errors: list[LoadError]


def load_plugins(folder: str) -> Loaded:
    """Load the plugins of the plugins folder and of installed packages. An error in one file does not affect the others."""
    loaded = Loaded([], [])
    serve_airflow_names()
    add_plugins_folder(folder)
    for file in _files(folder):
        source = FILE + file
        try:
            module = importlib.import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
            for value in list(vars(module).values()):
                if _is_plugin(value) and value.__module__ == module.__name__:
                    _add(loaded, value, source)
        except (Exception, SystemExit) as error:
            loaded.errors.append(LoadError(source, error))
    from importlib.metadata import entry_points  # lazy import: takes longer than all the rest, and usually finds no plugin

    for group in ENTRY_POINTS:
        for point in entry_points(group=group):
            package = "" if point.dist is None else f"{point.dist.name}=={point.dist.version}: "
            source = f"{PACKAGE}{package}{point.value}"
            try:
                _add(loaded, point.load(), source)
            except (Exception, SystemExit) as error:
                loaded.errors.append(LoadError(source, error))
    return loaded


def _files(folder: str) -> Iterator[str]:
    """Relative paths of the Python files, sorted, with forward slashes; without hidden files and caches."""
    for path, _, files in sorted(os.walk(folder)):
        inside = os.path.relpath(path, folder)
        if any(part.startswith((".", "__pycache__")) and part != "." for part in inside.split(os.sep)):
            continue
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith("."):
                yield name if inside == "." else f"{inside.replace(os.sep, '/')}/{name}"


def _is_plugin(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, AirflowPlugin) and value is not AirflowPlugin


def _add(loaded: Loaded, plugin: Any, source: str) -> None:
    """Call `on_load` of a plugin and add the plugin to the list.

    Raises:
        TypeError: not a plugin class.
        ValueError: the plugin has no name, or another plugin has the same name.
    """
    if not _is_plugin(plugin):
        raise TypeError(f"{plugin!r} is not a subclass of AirflowPlugin")
    if not plugin.name:
        raise ValueError(f"the plugin {plugin.__name__} needs a name, such as name = 'ours'")
    other = next((found for found in loaded.plugins if found.name == plugin.name), None)
    if other is not None:
        raise ValueError(f"the plugin name {plugin.name!r} is already used by {other.source}; choose another name")
    plugin.on_load()
    loaded.plugins.append(LoadedPlugin(str(plugin.name), source, plugin))


def describe_plugin(found: LoadedPlugin) -> dict[str, Any]:
    """A plugin as plain values: names, and for links of the web page their addresses.

    `listener_events` lists the events for which its listeners have functions, `recorded_only` the attributes of the plugin that
    have no effect. As in Airflow, `external_views` contains the menu items of older plugins, too.

    Raises:
        pluggy.PluginValidationError: a listener has an argument that its event does not have.
    """
    listed: dict[str, Any] = {"name": found.name, "source": found.source}
    for kind in (*_SUPPORTED, *_LISTED_ONLY):
        listed[kind] = [_named(thing) for thing in getattr(found.plugin, kind, None) or ()]
    for kind, keys in _TABLES.items():
        listed[kind] = [_plain_entry(thing, keys) for thing in getattr(found.plugin, kind, None) or ()]
    menu_links = (_menu_link(link) for link in getattr(found.plugin, "menu_links", None) or ())
    listed["external_views"] += [*listed["appbuilder_menu_items"], *menu_links]
    if listed["listeners"]:
        from tradewind.sdk.listeners import events_of  # lazy import: needs pluggy, and few plugins have listeners

        listed["listener_events"] = sorted(events_of(found.plugin.listeners))
    listed["recorded_only"] = [kind for kind in (*_LISTED_ONLY, *_TABLES_LISTED_ONLY) if listed[kind]]
    return listed


def _plain_entry(entry: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """An entry of a table with those of the keys that it has. Objects become the names of their classes or functions.

    Raises:
        TypeError: the entry is not a dict.
    """
    if not isinstance(entry, dict):
        raise TypeError(f"{entry!r} is not a dict with the keys {', '.join(keys)}")
    found = {key: entry[key] for key in keys if entry.get(key) is not None}
    return {key: value if isinstance(value, str | bool) else _named(value) for key, value in found.items()}


def _menu_link(link: Any) -> dict[str, Any]:
    """A link of Airflow 1: an object with the attributes name, url and category."""
    found = {
        "name": getattr(link, "name", None),
        "href": getattr(link, "url", None),
        "category": getattr(link, "category", None),
    }
    return {key: str(value) for key, value in found.items() if value}


def _named(thing: Any) -> str:
    if isinstance(thing, dict):
        return str(thing.get("name", thing))
    if not hasattr(thing, "__name__"):
        thing = type(thing)
    return f"{thing.__module__}.{thing.__qualname__}" if hasattr(thing, "__qualname__") else str(thing.__name__)


@lru_cache(maxsize=1)
def plugins_of_process() -> Loaded:
    """The plugins of this process. The first call loads them."""
    return load_plugins(plugins_folder())


def plugin_sources(words: tuple[bytes, ...]) -> list[Path]:
    """Python files of the plugins folder, and plugin modules of packages, whose source contains one of these words.

    Much cheaper than loading the plugins, which most processes do not need. A package whose module is not found beside its metadata
    counts with the file of its entry points: it may contain the word.
    """
    files = (path for path in plugins_folder_tree() if path.suffix == ".py")
    return [*package_sources(ENTRY_POINTS, words), *(path for path in files if mentions(path, words))]


def plugins_folder_tree() -> Iterator[Path]:
    """The plugins folder, the folders in it, and their Python files. The plugins folder is named even if it does not exist."""
    yield (root := Path(plugins_folder()))
    for where, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        yield from (Path(where, name) for name in (*folders, *files) if name in folders or name.endswith(".py"))


def listener_sources() -> list[Path]:
    """Where listeners may come from: files whose plugins mention `listeners`."""
    return plugin_sources((b"listeners",))


def macros_of(name: str) -> SimpleNamespace | None:
    """The macros of a plugin, by name; None if there is no such plugin."""
    found = next((found for found in plugins_of_process().plugins if found.name == name), None)
    if found is None:
        for failed in plugins_of_process().errors:
            sys.stderr.write(f"cannot load plugins of {failed.source}: {type(failed.error).__name__}: {failed.error}\n")
        return None
    return SimpleNamespace(**{macro.__name__: macro for macro in found.plugin.macros})
