"""`airflow.utils.module_loading`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import metadata
from types import ModuleType
from typing import Any

__all__ = ["entry_points_with_dist", "import_string", "is_valid_dotpath", "iter_namespace", "qualname"]


def import_string(dotted_path: str) -> Any:
    """The object behind `package.module.Name`.

    Raises:
        ImportError: there is no such module or name.
    """
    module, dot, name = dotted_path.rpartition(".")
    if not dot:
        raise ImportError(f"{dotted_path} doesn't look like a module path")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ImportError(f'Module "{module}" does not define a "{name}" attribute/class') from None


def qualname(o: object | Callable[..., Any], use_qualname: bool = False) -> str:
    """`module.Name` of a class, function or object."""
    if isinstance(o, str):
        return o
    named = o if callable(o) and hasattr(o, "__qualname__") else type(o)
    name = str(getattr(named, "__qualname__" if use_qualname else "__name__", type(o).__name__))
    module = getattr(named, "__module__", "")
    return f"{module}.{name}" if module and module != "builtins" else name


def iter_namespace(ns: ModuleType) -> Iterator[pkgutil.ModuleInfo]:
    """The modules of a namespace package."""
    return pkgutil.iter_modules(ns.__path__, f"{ns.__name__}.")


def is_valid_dotpath(path: str) -> bool:
    """Whether the text has the form `name.name.name`."""
    return isinstance(path, str) and all(part.isidentifier() for part in path.split("."))


@functools.cache
def _get_grouped_entry_points() -> dict[str, list[tuple[metadata.EntryPoint, metadata.Distribution]]]:
    """Group → the entry points of the installed distributions. Fixtures of packages' tests empty the cache."""
    found = defaultdict(list)
    for distribution in metadata.distributions():
        for point in distribution.entry_points:
            found[point.group].append((point, distribution))
    return dict(found)


def entry_points_with_dist(group: str) -> Iterator[tuple[metadata.EntryPoint, metadata.Distribution]]:
    """The entry points of a group, each with its distribution."""
    return iter(_get_grouped_entry_points().get(group, []))
