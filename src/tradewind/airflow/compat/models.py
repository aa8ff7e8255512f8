"""`airflow.models`: the names of the tables of Airflow's metadata database.

DAG files import them to query the database, which user code cannot reach in Tradewind. A file that only imports the tables, or
mentions their columns in a function, can be loaded. Queries of some of them work: see `queries`.
"""

from __future__ import annotations

import importlib
from abc import ABCMeta
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from tradewind.airflow.compat.exceptions import PoolNotFound
from tradewind.airflow.compat.session import session_or_new
from tradewind.execution import rendered_fields
from tradewind.model.errors import NotYetSupported
from tradewind.sdk import open_dags
from tradewind.sdk.columns import Column, table_element
from tradewind.sdk.exceptions import AirflowException

__all__ = [
    "DagModel",
    "DagTag",
    "DagWarning",
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


class _TableType(ABCMeta):
    """Makes every attribute of a table's class a column."""

    def __getattr__(cls, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        return Column(name, cls)


class Table(metaclass=_TableType):
    """A table of Airflow's metadata database."""

    is_clause_element = False
    """SQLAlchemy asks for it: the class itself is not an element."""

    @classmethod
    def __clause_element__(cls) -> Any:
        """For SQLAlchemy's `select`."""
        return table_element(cls)

    def __init__(self, *_args: Any, **columns: Any) -> None:
        """A row. It is stored nowhere (see `session.add`), so it can be made only while a DAG file is read.

        Raises:
            NotYetSupported: no DAG file is read.
        """
        if open_dags.is_reading():
            self.__dict__.update(columns)
            return
        raise NotYetSupported(
            f"a {type(self).__name__} cannot be created here: user code does not change Airflow's tables. Use the command line "
            "(`tradewind airflow …`) or the REST API (/api/v2)"
        )


class DagModel(Table):
    """DAGs."""

    @classmethod
    def get_dagmodel(cls, dag_id: str, session: Any = None) -> Any:
        """The DAG with this id as a row: `is_paused`, which can be changed, `is_active`, `fileloc`. None if there is none.

        Raises:
            DatabaseNotReachable: no task is running.
        """
        return _queries().matching(cls, {"dag_id": dag_id}, session)

    @classmethod
    def get_current(cls, dag_id: str, session: Any = None) -> Any:
        """See `get_dagmodel`."""
        return cls.get_dagmodel(dag_id, session)

    @classmethod
    def get_paused_dag_ids(cls, dag_ids: Iterable[str], session: Any = None) -> set[str]:
        """The ids of those DAGs that are paused. Raises as `get_dagmodel`."""
        found = _queries().Query((cls,)).filter(cls.dag_id.in_(dag_ids), cls.is_paused.is_(True))
        return {row.dag_id for row in found}


def _queries() -> Any:
    return importlib.import_module("tradewind.airflow.compat.queries")  # it needs the tables of this module


class DagTag(Table):
    """Tags of DAGs."""


class AssetModel(Table):
    """Assets (datasets) that an active DAG names."""


class AssetEvent(Table):
    """Events of assets."""


class DagWarning(Table):
    """Warnings about DAGs whose file can be imported."""


class Job(Table):
    """Services."""


class Log(Table):
    """The audit log."""


class RenderedTaskInstanceFields(Table):
    """Rendered templates. A task may add a row of its own: operators that learn their SQL in `execute` show it so."""

    def __init__(self, ti: Any = None, render_templates: bool = True, **columns: Any) -> None:
        """The present values of the templated fields of a running task, or a row with columns (see `Table`)."""
        if getattr(ti, "task", None) is None:
            super().__init__(**columns)
        self.__dict__["ti"] = ti

    def store(self) -> bool:
        """Show these values as the rendered fields of the task. Returns False if the row was made without a running task."""
        ti = self.__dict__.get("ti")
        if ti is None:
            return False
        ti.rendered = rendered_fields.stored_fields(ti.task)
        return True


class SlaMiss(Table):
    """Missed deadlines."""


class TaskFail(Table):
    """Failed tries."""


class TaskReschedule(Table):
    """Reschedules of sensors."""


class ImportErrorModel(Table):
    """Errors of DAG files."""


class Trigger(Table):
    """Triggers that tasks wait for."""

    @classmethod
    def from_object(cls, trigger: Any) -> Trigger:
        """A row with the class path and the arguments of a trigger. Tests of packages compare them; nothing is stored."""
        made = object.__new__(cls)
        made.__dict__["classpath"], made.__dict__["kwargs"] = trigger.serialize()
        return made


class Pool(Table):
    """Pools. `session.add(Pool(pool="wide", slots=4))` and `session.commit()` store one."""

    DEFAULT_POOL_NAME = "default_pool"

    def __init__(
        self,
        pool: str | None = None,
        slots: int | None = 0,
        description: str | None = None,
        include_deferred: bool = False,
        team_name: str | None = None,
        **_ignored: Any,
    ) -> None:
        """A pool; see `session.add`.

        Args:
            slots: -1 is unlimited.
            team_name: has no effect.
        """
        self.id = self.pool = pool
        self.slots = slots
        self.description = description
        self.include_deferred = include_deferred
        self.team_name = team_name

    def __repr__(self) -> str:
        return str(self.pool)

    def to_json(self) -> dict[str, Any]:
        """The columns as a mapping."""
        names = ("id", "pool", "slots", "description", "include_deferred")
        return {name: getattr(self, name) for name in names}

    @staticmethod
    def is_default_pool(id: str) -> bool:
        """Whether this is the id of the default pool."""
        return id == Pool.DEFAULT_POOL_NAME

    @classmethod
    def get_pool(cls, pool_name: str, session: Any = None) -> Any:
        """The pool with this name. None if there is none. Its changes are stored by the commit of the session."""
        return _queries().matching(cls, {"pool": pool_name}, session)

    @classmethod
    def get_default_pool(cls, session: Any = None) -> Any:
        """The default pool; see `get_pool`."""
        return cls.get_pool(cls.DEFAULT_POOL_NAME, session)

    @classmethod
    def get_pools(cls, session: Any = None) -> list[Any]:
        """All pools; see `get_pool`."""
        found: list[Any] = _queries().Query((cls,), session).all()
        return found

    @classmethod
    def create_or_update_pool(
        cls,
        name: str,
        slots: int,
        description: str = "",
        include_deferred: bool = False,
        *_more: Any,
        session: Any = None,
        **_options: Any,
    ) -> Any:
        """Store a pool. While a DAG file is read, nothing is stored, and a warning says so.

        Args:
            session: stores the pool at its commit. None: it is stored at once.

        Raises:
            AirflowException: the name is empty, or the scheduler refuses the pool.
        """
        made = cls(pool=name, slots=slots, description=description, include_deferred=bool(include_deferred))
        if not _queries().changes_nothing(f"Pool.create_or_update_pool({name!r})"):
            with session_or_new(session) as own:
                own.merge(made)
        return made

    @classmethod
    def delete_pool(cls, name: str, session: Any = None) -> Any:
        """Delete a pool, and return it. While a DAG file is read, nothing is deleted, and a warning says so.

        Args:
            session: as in `create_or_update_pool`.

        Raises:
            AirflowException: it is the default pool.
            PoolNotFound: there is no such pool.
        """
        if _queries().changes_nothing(f"Pool.delete_pool({name!r})"):
            return cls.get_pool(name)
        if cls.is_default_pool(name):
            raise AirflowException(f"the pool {name!r} cannot be deleted: tasks without a pool use it")
        with session_or_new(session) as own:
            found = cls.get_pool(name, own)
            if found is None:
                known = ", ".join(pool.pool for pool in cls.get_pools())
                raise PoolNotFound(f"there is no pool {name!r}; there are {known}")
            own.delete(found)
        return found


def __getattr__(name: str) -> Any:
    """A table for which this module has no class: the table and its columns can be named.

    Raises:
        AttributeError: the name is not that of a class.
    """
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = _TableType(name, (Table,), {"__doc__": "A table of Airflow's metadata database.", "__module__": __name__})
    globals()[name] = made
    return made
