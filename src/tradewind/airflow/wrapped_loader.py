"""A loader that changes a module of another package right after its code was executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class WrappedLoader:
    """Loads a module with its own loader, then calls `change` with the module.

    All other attributes of this loader are those of the module's own loader.
    """

    def __init__(self, genuine: Any, change: Callable[[ModuleType], None]) -> None:
        self._genuine = genuine
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_genuine"], name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the module's own loader create the module."""
        made: ModuleType | None = self._genuine.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module's code, then change the module."""
        self._genuine.exec_module(module)
        self._change(module)


def changed_spec(name: str, path: Sequence[str] | None, change: Callable[[ModuleType], None]) -> ModuleSpec | None:
    """The spec of an installed module that `change` gets after its import; None if the module is not installed."""
    spec = PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return None
    spec.loader = WrappedLoader(spec.loader, change)  # type: ignore[assignment]
    return spec
