"""Names that a module of Airflow has only because it imports them itself: `from airflow.models.dag import DagRun`.

`inherited_names.tsv` beside this file has a line for each name: the name, its place, and the modules below `airflow` that have it
(`.` is `airflow` itself). A place is `package.module:name`, or a module. Source: the import statements in the modules of eleven
releases of Airflow (1.10.3 … 3.3.2, and the task SDK) that DAG files import from.
"""

from __future__ import annotations

import functools
from pathlib import Path

_FILE = Path(__file__).with_suffix(".tsv")


@functools.cache
def _targets() -> dict[str, dict[str, str]]:
    """Module of Airflow → name → target."""
    found: dict[str, dict[str, str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        name, target, modules = line.split("\t")
        for module in modules.split():
            found.setdefault("airflow" if module == "." else f"airflow.{module}", {})[name] = target
    return found


def target(module: str, name: str) -> str | None:
    """The place of a name that this module of Airflow imports. None: the module does not import this name."""
    return _targets().get(module, {}).get(name)


def names() -> list[tuple[str, str]]:
    """All names, as (module of Airflow, name)."""
    return [(module, name) for module, known in _targets().items() for name in known]
