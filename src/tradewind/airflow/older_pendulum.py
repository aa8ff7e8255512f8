"""Names that the library pendulum had when Airflow 1.10 and 2.0 – 2.7 brought it along: `pendulum.Period`,
`pendulum.tz.timezone("UTC")`.

DAG files of that time use them. They lead to the present names where pendulum does not have them any more.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tradewind.airflow.wrapped_loader import changed_spec

PENDULUM = "pendulum"

_RENAMED = {"Period": "Interval", "period": "interval", "Pendulum": "DateTime", "create": "datetime"}
"""Older name → present name."""


class _CallableModule(ModuleType):
    """`pendulum.tz.timezone`: a function of pendulum 2, a module of pendulum 3. This module can be called like the function."""

    def __call__(self, name: str | int) -> Any:
        """The time zone with this name, or with this distance from UTC in seconds."""
        return sys.modules[PENDULUM].timezone(name)


def add_names(module: ModuleType) -> None:
    """Give pendulum its older names."""
    for older, present in _RENAMED.items():
        if not hasattr(module, older) and hasattr(module, present):
            setattr(module, older, getattr(module, present))
    zones = sys.modules.get(f"{PENDULUM}.tz.timezone")
    if zones is not None and not callable(getattr(sys.modules[f"{PENDULUM}.tz"], "timezone", zones)):
        zones.__class__ = _CallableModule


def spec() -> ModuleSpec | None:
    """The spec of pendulum with the older names; None if it is not installed."""
    return changed_spec(PENDULUM, None, add_names)


def add_names_if_imported() -> None:
    """Give pendulum its older names, if this process has imported it already."""
    module = sys.modules.get(PENDULUM)
    if module is not None:
        add_names(module)
