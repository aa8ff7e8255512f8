"""The authoring API: DAGs, operators, task groups, decorators, parameters.

`NAMES` lists the public names. The module of a name is imported when the name is first used, so that a DAG file imports only the
modules that it needs. The package `tradewind` offers the same names and `@dag`, which is missing here because `dag` is a module.
"""

from __future__ import annotations

from typing import Any

import tradewind
from tradewind.lazy_names import import_name

NAMES: dict[str, str] = {
    **{name: target for name, target in tradewind.NAMES.items() if name != "dag"},
    "DagParam": "sdk.params",
    "DecoratedOperator": "sdk.decorators",
}
"""Name → the module that defines it, as in `tradewind.NAMES`."""


def __getattr__(name: str) -> Any:
    """Lazy import: import the module of a name when the name is first used."""
    return import_name(__name__, NAMES, name)
