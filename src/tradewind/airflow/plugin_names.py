"""Operators, hooks, sensors and executors that plugins offer under Airflow's own packages.

Airflow 1 put the `operators` of a plugin called `ours` into `airflow.operators.ours`, and into `airflow.operators` itself.
"""

from __future__ import annotations

from typing import Any

from tradewind.sdk import plugins
from tradewind.sdk.import_paths import plugins_folder

PACKAGES = {
    "airflow.operators": "operators",
    "airflow.sensors": "sensors",
    "airflow.hooks": "hooks",
    "airflow.executors": "executors",
    "airflow.macros": "macros",
}
"""Package of Airflow → the attribute of a plugin with the classes for this package."""

_loading: list[bool] = []
"""Not empty while plugins are loaded: a plugin that imports from these packages does not ask for plugins again."""


def _loaded() -> plugins.Loaded:
    if _loading:
        return plugins.Loaded([], [])
    _loading.append(True)
    try:
        return plugins.plugins_of_process()
    finally:
        _loading.pop()


def members_of(module: str) -> dict[str, Any] | None:
    """The classes that a plugin offers in its module, such as `airflow.operators.ours`, by name.

    Returns:
        None if no plugin of this name offers a class in this package.
    """
    package, _, name = module.rpartition(".")
    kind = PACKAGES.get(package)
    found = next((found for found in _loaded().plugins if found.name == name), None) if kind else None
    if found is None or kind is None:
        return None
    return {thing.__name__: thing for thing in getattr(found.plugin, kind, None) or ()} or None


def find(package: str, name: str) -> Any:
    """The class `name` that any plugin offers in a package; None if there is none."""
    kind = PACKAGES.get(package)
    if kind is None:
        return None
    for found in _loaded().plugins:
        for thing in getattr(found.plugin, kind, None) or ():
            if getattr(thing, "__name__", "") == name:
                return thing
    return None


def missing(package: str, name: str) -> str:
    """A sentence that says why a name is not in one of these packages."""
    errors = _loaded().errors
    sentence = f"cannot import name {name!r} from {package!r}: no operator of Airflow and no plugin has this name."
    if errors:
        problem = errors[0]
        return f"{sentence} A plugin cannot be loaded: {problem.source}: {type(problem.error).__name__}: {problem.error}"
    return f"{sentence} Plugins are read from {plugins_folder()}"
