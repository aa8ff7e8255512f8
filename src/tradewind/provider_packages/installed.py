"""The provider packages of this environment, with their own descriptions.

A provider package has an entry point `apache_airflow_provider`: a function that returns its description (hooks, connection types,
task decorators …). Backports for Airflow 1.10 have none; they are found by their names, and their hooks in their modules.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP = "apache_airflow_provider"
BACKPORT = "apache-airflow-backport-providers-"


class Provider(NamedTuple):
    """One installed provider package."""

    package: str
    """`apache-airflow-providers-postgres`"""
    version: str
    info: dict[str, Any]
    """What the package's `get_provider_info()` returned."""
    problem: str | None
    """The reason why the description cannot be read, or None."""


def read() -> Iterator[Provider]:
    """The installed provider packages by name. If the description cannot be read, it is empty, and `problem` says why."""
    from importlib.metadata import entry_points  # lazy import: 10 ms, and most processes do not need it

    seen = set()
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.dist.name if one.dist is not None else one.name):
        package = entry.dist.name if entry.dist is not None else entry.name
        if package in seen:
            continue
        seen.add(package)
        problem = None
        try:
            info = _description(entry)
        except Exception as error:  # code of the package may raise anything
            info, problem = {}, f"{type(error).__name__}: {error}"
        package = str(info.get("package-name", package))
        yield Provider(package, entry.dist.version if entry.dist is not None else "", info, problem)


def _description(entry: EntryPoint) -> dict[str, Any]:
    """The result of the package's function.

    The function's file is executed alone: importing the package would need the `airflow` namespace and the version of
    Airflow, which a process that only lists packages does not have.
    """
    module, _, function = entry.value.partition(":")
    path = str(entry.dist.locate_file(f"{module.replace('.', '/')}.py")) if entry.dist is not None else ""
    if not os.path.isfile(path):
        return dict(entry.load()())
    loader = SourceFileLoader(module, path)  # it stores bytecode, so the next call is ten times as fast
    alone: dict[str, Any] = {"__name__": module, "__file__": path}
    code = loader.get_code(module)
    assert code is not None, "a source file has code"
    exec(code, alone)
    return dict(alone[function]())


def backports() -> Iterator[Provider]:
    """The installed backports for Airflow 1.10, whose descriptions contain only the modules of their hooks."""
    from importlib.metadata import distributions  # lazy import: see `read`

    for dist in distributions():
        name = (dist.metadata["Name"] or "").lower()
        if name.startswith(BACKPORT):
            yield Provider(name, dist.version, _backport_info(dist), None)


def _backport_info(dist: Distribution) -> dict[str, Any]:
    modules = []
    for file in dist.files or ():
        parts = file.parts
        if parts[:2] == ("airflow", "providers") and "hooks" in parts and file.suffix == ".py" and file.stem != "__init__":
            modules.append(".".join((*parts[:-1], file.stem)))
    return {"description": dist.metadata["Summary"] or "", "hooks": [{"python-modules": sorted(modules)}]}


@functools.cache
def providers() -> dict[str, Provider]:
    """Package name → provider, read once in this process."""
    return {one.package: one for one in (*read(), *backports())}
