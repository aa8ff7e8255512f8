"""Names that the library pendulum had when Airflow 1.10 and 2.0 – 2.7 brought it along: `pendulum.Period`, `pendulum.Pendulum`.

DAG files of that time use them. They lead to the present names where pendulum does not have them any more.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from tradewind.airflow.wrapped_loader import WrappedLoader

PENDULUM = "pendulum"

_RENAMED = {"Period": "Interval", "period": "interval", "Pendulum": "DateTime", "create": "datetime"}
"""Older name → present name."""


def add_names(module: ModuleType) -> None:
    """Give pendulum its older names."""
    for older, present in _RENAMED.items():
        if not hasattr(module, older) and hasattr(module, present):
            setattr(module, older, getattr(module, present))


def spec() -> ModuleSpec | None:
    """The spec of pendulum with the older names; None if it is not installed."""
    found = PathFinder.find_spec(PENDULUM)
    if found is not None and found.loader is not None:
        found.loader = WrappedLoader(found.loader, add_names)  # type: ignore[assignment]
    return found


def add_names_if_imported() -> None:
    """Give pendulum its older names, if this process has imported it already."""
    module = sys.modules.get(PENDULUM)
    if module is not None:
        add_names(module)
