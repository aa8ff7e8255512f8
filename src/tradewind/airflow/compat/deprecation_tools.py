"""`airflow.utils.deprecation_tools`: modules and classes that have moved."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from types import ModuleType
from typing import Any

__all__ = ["DeprecatedImportWarning", "add_deprecated_classes", "getattr_with_deprecation"]


class DeprecatedImportWarning(FutureWarning):
    """A name is imported from its former module."""


def getattr_with_deprecation(
    imports: dict[str, str],
    module: str,
    override_deprecated_classes: dict[str, str],
    extra_message: str,
    name: str,
) -> Any:
    """Get a name of a module from its present module.

    Args:
        imports: name → `module.name` today; `*` stands for all names.
        override_deprecated_classes: name → the name that the warning shows instead.

    Raises:
        AttributeError: the name is not among `imports`.
    """
    target = imports.get(name) or (f"{imports['*']}.{name}" if "*" in imports else None)
    if target is None:
        raise AttributeError(f"The module `{module!r}` has no attribute `{name!r}`")
    shown = override_deprecated_classes.get(name, target)
    warnings.warn(
        f"The `{module}.{name}` attribute is deprecated. Please use `{shown!r}`. {extra_message}".rstrip(),
        DeprecatedImportWarning,
        stacklevel=2,
    )
    where, _, attribute = target.rpartition(".")
    return getattr(importlib.import_module(where), attribute)


def add_deprecated_classes(
    module_imports: dict[str, dict[str, str]],
    package: str,
    override_deprecated_classes: dict[str, dict[str, str]] | None = None,
    extra_message: str | None = None,
) -> None:
    """Create modules in a package whose names are in other modules today.

    Args:
        module_imports: module in the package (`__name__`: the package itself) → name → `module.name` today.
    """
    shown = override_deprecated_classes or {}
    for module_name, imports in module_imports.items():
        full = package if module_name == "__name__" else f"{package}.{module_name}"
        found = functools.partial(getattr_with_deprecation, imports, full, shown.get(module_name, {}), extra_message or "")
        if module_name == "__name__":
            sys.modules[package].__getattr__ = found  # type: ignore[method-assign]
            continue
        module = ModuleType(full)
        module.__getattr__ = found  # type: ignore[method-assign]
        sys.modules.setdefault(full, module)
