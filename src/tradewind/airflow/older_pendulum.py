"""Names that the library pendulum had when Airflow 1.10 and 2.0 – 2.7 brought it along: `pendulum.Period`, `pendulum.Pendulum`.

DAG files of that time use them. They lead to the present names where pendulum does not have them any more.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PENDULUM = "pendulum"

_RENAMED = {"Period": "Interval", "period": "interval", "Pendulum": "DateTime", "create": "datetime"}
"""Older name → present name."""


def add_names(module: ModuleType) -> None:
    """Give pendulum its older names."""
    for older, present in _RENAMED.items():
        if not hasattr(module, older) and hasattr(module, present):
            setattr(module, older, getattr(module, present))


class _Loader:
    """The loader of pendulum, which adds the older names afterwards."""

    def __init__(self, genuine: Any) -> None:
        self._genuine = genuine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_genuine"], name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let pendulum's loader create the module."""
        made: ModuleType | None = self._genuine.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Execute pendulum's code, then add the names."""
        self._genuine.exec_module(module)
        add_names(module)


def spec() -> ModuleSpec | None:
    """The spec of pendulum with the older names; None if it is not installed."""
    found = PathFinder.find_spec(PENDULUM)
    if found is not None and found.loader is not None:
        found.loader = _Loader(found.loader)  # type: ignore[assignment]
    return found


def add_names_if_imported() -> None:
    """Give pendulum its older names, if this process has imported it already."""
    module = sys.modules.get(PENDULUM)
    if module is not None:
        add_names(module)
