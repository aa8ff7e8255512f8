"""`airflow.plugins_manager`: the functions that load plugins.

Here a plugin is loaded when one of its names is used, so these functions do nothing. The script with which the package
`standard` runs a function in another Python calls `integrate_macros_plugins`.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ensure_plugins_loaded",
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
