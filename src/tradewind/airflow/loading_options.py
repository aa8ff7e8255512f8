"""Loading options of SQLAlchemy in queries of Airflow's tables: `session.query(DagRun).options(load_only(DagRun.state))`.

They say which columns and related rows SQLAlchemy reads together. Queries here always read all of them, so the options have no
effect.
SQLAlchemy's own functions accept only columns of its own tables; for those they do their work as always.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tradewind.airflow.wrapped_loader import changed_spec
from tradewind.sdk.columns import Expression

ORM = "sqlalchemy.orm"

_NAMES = (
    "contains_eager",
    "defaultload",
    "defer",
    "immediateload",
    "joinedload",
    "lazyload",
    "load_only",
    "noload",
    "raiseload",
    "selectinload",
    "subqueryload",
    "undefer",
    "with_expression",
)
"""The functions of `sqlalchemy.orm` that make loading options of columns. The options have methods with the same names."""


@functools.cache
def _option_class() -> Any:
    """The class of options without effect, which SQLAlchemy's `select(…).options(…)` accepts, too."""
    base = importlib.import_module("sqlalchemy.sql.base").ExecutableOption

    def unchanged(self: Any, *_columns: Any, **_options: Any) -> Any:
        return self

    return type("LoadingOption", (base,), {"__module__": __name__, "options": unchanged, **dict.fromkeys(_NAMES, unchanged)})


def _is_ours(value: Any) -> bool:
    return isinstance(value, Expression) or (isinstance(value, type) and hasattr(value, "__clause_element__"))


def _accepting(genuine: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(genuine)
    def option(*columns: Any, **options: Any) -> Any:
        if any(_is_ours(column) for column in columns):
            return _option_class()()
        return genuine(*columns, **options)

    return option


def accept_columns(module: ModuleType) -> None:
    """Let the functions of `sqlalchemy.orm` accept columns of Airflow's tables."""
    for name in _NAMES:
        genuine = getattr(module, name, None)
        if genuine is not None and not hasattr(genuine, "__wrapped__"):
            setattr(module, name, _accepting(genuine))


def spec(path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of `sqlalchemy.orm` with these functions; None if it is not installed."""
    return changed_spec(ORM, path, accept_columns)


def accept_columns_if_imported() -> None:
    """Change `sqlalchemy.orm`, if this process has imported it already."""
    module = sys.modules.get(ORM)
    if module is not None:
        accept_columns(module)
