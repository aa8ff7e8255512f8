"""`airflow.models`: the tables of Airflow's metadata database, as names.

DAG files import them to query the database, which user code cannot reach here. A file that only imports them, or mentions their
columns in a function, loads; a query is refused by the session.
"""

from __future__ import annotations

from abc import ABCMeta
from datetime import timedelta
from typing import Any

from tradewind.airflow.compat.session import RefusedSession

__all__ = [
    "DagModel",
    "DagTag",
    "Job",
    "Log",
    "Pool",
    "RenderedTaskInstanceFields",
    "ScheduleInterval",
    "SlaMiss",
    "TaskFail",
    "TaskReschedule",
]

ScheduleInterval = str | timedelta | None


class Column:
    """A column of a table of Airflow's: it can be named and compared, and never queried."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: self

    def _part(self, *_others: object) -> Column:
        return self

    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __add__ = __sub__ = _part

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)


class _TableType(ABCMeta):
    """Makes every attribute of a table's class a column."""

    def __getattr__(cls, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        return Column(f"{cls.__name__}.{name}")


class Table(metaclass=_TableType):
    """A table of Airflow's metadata database."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        RefusedSession().query  # noqa: B018


class DagModel(Table):
    """DAGs."""


class DagTag(Table):
    """Tags of DAGs."""


class Job(Table):
    """Services."""


class Log(Table):
    """The audit log."""


class RenderedTaskInstanceFields(Table):
    """Rendered templates."""


class SlaMiss(Table):
    """Missed deadlines."""


class TaskFail(Table):
    """Failed tries."""


class TaskReschedule(Table):
    """Reschedules of sensors."""


class ImportErrorModel(Table):
    """Errors of DAG files."""


class Pool(Table):
    """Pools."""

    DEFAULT_POOL_NAME = "default_pool"


def __getattr__(name: str) -> Any:
    """A table that has no class of its own here: it can be named with its columns.

    Raises:
        AttributeError: the name is not that of a class.
    """
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = _TableType(name, (Table,), {"__doc__": "A table of Airflow's metadata database.", "__module__": __name__})
    globals()[name] = made
    return made
