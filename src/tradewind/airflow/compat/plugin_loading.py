"""`airflow.plugins_manager`: the functions that load plugins, and those that list what plugins contain.

Here a plugin is loaded when one of its names is used, so functions that load do nothing. The script with which the package
`standard` runs a function in another Python calls `integrate_macros_plugins`. Functions that list load the plugins of this process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tradewind.sdk.plugins import describe_plugin, plugins_of_process

__all__ = [
    "ensure_plugins_loaded",
    "get_deadline_references_plugins",
    "get_fastapi_plugins",
    "get_flask_plugins",
    "get_global_operator_extra_links",
    "get_import_errors",
    "get_operator_extra_links",
    "get_partition_mapper_plugins",
    "get_plugin_info",
    "get_priority_weight_strategy_plugins",
    "get_timetables_plugins",
    "get_windows_plugins",
    "initialize_extra_operators_links_plugins",
    "initialize_ti_deps_plugins",
    "initialize_timetables_plugins",
    "integrate_executor_plugins",
    "integrate_listener_plugins",
    "integrate_macros_plugins",
]


def ensure_plugins_loaded(*_args: Any, **_options: Any) -> None:
    """Do nothing."""


initialize_extra_operators_links_plugins = initialize_ti_deps_plugins = initialize_timetables_plugins = ensure_plugins_loaded
integrate_executor_plugins = integrate_listener_plugins = integrate_macros_plugins = ensure_plugins_loaded


def _all(attribute: str) -> list[Any]:
    """What all plugins have in one of their lists."""
    return [one for found in plugins_of_process().plugins for one in getattr(found.plugin, attribute, None) or ()]


def _by_path(attribute: str) -> dict[str, Any]:
    """The classes that all plugins have in one of their lists, by import path."""
    return {f"{one.__module__}.{one.__qualname__}": one for one in _all(attribute)}


def get_timetables_plugins() -> dict[str, Any]:
    """The timetables of plugins, by import path."""
    return _by_path("timetables")


def get_priority_weight_strategy_plugins() -> dict[str, Any]:
    """The priority weight strategies of plugins, by import path."""
    return _by_path("priority_weight_strategies")


def get_partition_mapper_plugins() -> dict[str, Any]:
    """The partition mappers of plugins, by import path."""
    return _by_path("partition_mappers")


def get_windows_plugins() -> dict[str, Any]:
    """The windows of plugins, by import path."""
    return _by_path("windows")


def get_deadline_references_plugins() -> dict[str, Any]:
    """The references of deadlines of plugins, by import path."""
    return _by_path("deadline_references")


def get_global_operator_extra_links() -> list[Any]:
    """The links that plugins add to all operators."""
    return _all("global_operator_extra_links")


def get_operator_extra_links() -> list[Any]:
    """The links that plugins add to some operators."""
    return _all("operator_extra_links")


def get_fastapi_plugins() -> tuple[list[Any], list[Any]]:
    """The apps and the middlewares of FastAPI of plugins. They have no effect here."""
    return _all("fastapi_apps"), _all("fastapi_root_middlewares")


def get_flask_plugins() -> tuple[list[Any], list[Any], list[Any]]:
    """The blueprints, views and menu items for the web server of Airflow 2. Blueprints and views have no effect here."""
    blueprints = [
        {"name": found.name, "blueprint": blueprint}
        for found in plugins_of_process().plugins
        for blueprint in getattr(found.plugin, "flask_blueprints", None) or ()
    ]
    return blueprints, _all("appbuilder_views"), _all("appbuilder_menu_items")


def get_import_errors() -> dict[str, str]:
    """The files and packages whose plugins cannot be loaded → the error."""
    return {failed.source: f"{type(failed.error).__name__}: {failed.error}" for failed in plugins_of_process().errors}


def get_plugin_info(attrs_to_dump: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The plugins as plain values: name, source, and the names of what they contain.

    Args:
        attrs_to_dump: the attributes to return besides name and source; None: all.
    """
    wanted = None if attrs_to_dump is None else {"name", "source", *attrs_to_dump}
    shown = [describe_plugin(found) for found in plugins_of_process().plugins]
    return [{key: value for key, value in one.items() if wanted is None or key in wanted} for one in shown]
