"""Which hook class serves a connection type, among the installed provider packages.

Packages since 2021-09 describe their connection types. Older packages name only hook classes, and backports for Airflow 1.10 name
nothing: there the connection type is an attribute of the class (`conn_type`), so their modules are imported to find it.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

from tradewind.provider_packages import offers

log = logging.getLogger("tradewind.providers")


class HookClass(NamedTuple):
    """The location of the hook of a connection type."""

    class_name: str
    """Full name of the class."""
    package: str


@functools.cache
def known() -> dict[str, HookClass]:
    """Connection type → hook class. Types in descriptions have priority over types in classes."""
    found = {kind: HookClass(hook.class_name, hook.package) for kind, hook in offers.hooks().items()}
    for kind, hook_class in (*_from_class_names(), *_from_backports()):
        found.setdefault(kind, hook_class)
    return found


def find(connection_type: str) -> HookClass | None:
    """The hook class of a connection type, or None. Imports modules of old packages only for types that no package describes."""
    hook = offers.hooks().get(connection_type)
    if hook is not None:
        return HookClass(hook.class_name, hook.package)
    return known().get(connection_type)


def load(hook_class: HookClass) -> Any:
    """The class.

    Raises:
        ImportError: its module cannot be imported; the message names the package.
    """
    module, _, name = hook_class.class_name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ImportError(f"the hook {hook_class.class_name} of {hook_class.package} cannot be imported: {error}") from error


def _from_class_names() -> Iterator[tuple[str, HookClass]]:
    for package, class_name in offers.old_hook_classes():
        hook_class = HookClass(class_name, package)
        try:
            kind = getattr(load(hook_class), "conn_type", None)
        except Exception as error:  # code of the package may raise anything
            log.warning("%s", error)
            continue
        if isinstance(kind, str):
            yield kind, hook_class


def _from_backports() -> Iterator[tuple[str, HookClass]]:
    for package, name in offers.backport_hook_modules():
        try:
            module = importlib.import_module(name)
        except Exception as error:  # code of the package may raise anything
            log.warning("%s of %s cannot be imported: %s", name, package, error)
            continue
        for value in list(vars(module).values()):
            kind = getattr(value, "conn_type", None)
            if isinstance(value, type) and value.__module__ == name and isinstance(kind, str):
                yield kind, HookClass(f"{name}.{value.__name__}", package)
