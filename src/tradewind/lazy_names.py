"""Names of a module that are defined in other modules and imported when they are first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any


def import_name(module: str, targets: Mapping[str, str], name: str) -> Any:
    """Import a name, and store it in the module so that the next use finds it there. Call this from the module's `__getattr__`.

    Args:
        module: full name of the module that offers the name.
        targets: name → where it is defined: `sdk.dag`, or `model.states:RunState` if it has another name there. Modules are
            below `tradewind`.

    Raises:
        AttributeError: the module does not offer this name.
    """
    target = targets.get(name)
    if target is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    path, _, attribute = target.partition(":")
    value = getattr(importlib.import_module(f"tradewind.{path}"), attribute or name)
    setattr(sys.modules[module], name, value)
    return value
