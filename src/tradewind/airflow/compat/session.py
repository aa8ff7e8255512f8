"""`airflow.utils.session`: sessions of Airflow's metadata database.

A process that runs user code never has credentials of the database. A session reads through the channel of the running task
(see `queries`); all changes except those of variables are refused with a message that names the alternative.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from tradewind.airflow.compat import test_rows
from tradewind.sdk import open_dags
from tradewind.sdk.variables import Connection, Variable

__all__ = ["NEW_SESSION", "Session", "create_session", "provide_session"]

P = ParamSpec("P")
T = TypeVar("T")


class Session:
    """A session that can read, and refuses to write."""

    def __call__(self) -> Session:
        """Return this session: `settings.Session()` creates a session in Airflow."""
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        return None

    def close(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: no transaction is open."""

    remove = expunge_all = expunge = rollback = commit = flush = expire_all = expire = refresh = close

    @property
    def no_autoflush(self) -> Session:
        """Return a context manager without effect, for `with session.no_autoflush:`."""
        return self

    @staticmethod
    def query(*what: Any) -> Any:
        """A query of a table or of columns of it; see `queries.Query`."""
        return _queries().Query(what)

    @staticmethod
    def execute(statement: Any, *_args: Any, **_options: Any) -> Any:
        """The rows of a `select(…)` of SQLAlchemy; see `selects`. Raises NotYetSupported."""
        return _selects().execute(statement)

    def scalars(self, statement: Any, *_args: Any, **_options: Any) -> Any:
        """The first value of each row of a `select(…)`. Raises NotYetSupported."""
        return self.execute(statement).scalars()

    def scalar(self, statement: Any, *_args: Any, **_options: Any) -> Any:
        """The first value of the first row of a `select(…)`, or None. Raises NotYetSupported."""
        return self.execute(statement).scalar()

    def begin(self) -> Session:
        """Return a context manager without effect: no transaction is open."""
        return self

    begin_nested = begin

    def get(self, table: Any, key: Any, **_options: Any) -> Any:
        """The object of a table with this name, or None."""
        return self.query(table).get(key)

    @staticmethod
    def add(one: Any, *_args: Any, **_options: Any) -> None:
        """Store a variable. Other objects that a DAG file adds at its top level are not stored: the file gets a warning.

        In a process that runs tests, connections, runs and task instances are kept in its memory.

        Raises:
            NotYetSupported: another object than a variable, in a task.
        """
        if test_rows.add(one):
            return
        if isinstance(one, Connection) and _warned("added", "add", one):
            return
        if not isinstance(one, Variable) and _queries().changes_nothing(f"session.add({type(one).__name__})"):
            return
        if not isinstance(one, Variable) or one.key is None:
            _queries().refuse(f"session.add({type(one).__name__})")
        Variable.set(one.key, one.val, one.description)

    merge = add

    def add_all(self, objects: Any) -> None:
        """Store variables; see `add`."""
        for one in objects:
            self.add(one)

    bulk_save_objects = add_all

    @staticmethod
    def delete(one: Any) -> None:
        """Delete a variable. Other objects that a DAG file deletes at its top level stay: the file gets a warning.

        Raises:
            NotYetSupported: another object than a variable, in a task.
        """
        if test_rows.delete(one):
            return
        if isinstance(one, Connection) and _warned("deleted", "delete", one):
            return
        if not isinstance(one, Variable) and _queries().changes_nothing(f"session.delete({type(one).__name__})"):
            return
        if not isinstance(one, Variable) or one.key is None:
            _queries().refuse(f"session.delete({type(one).__name__})")
        Variable.delete(one.key)

    def __getattr__(self, name: str) -> Any:
        """Refuse all other methods.

        Raises:
            NotYetSupported: the message says what to use instead.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        _queries().refuse(f"session.{name}")


def _warned(verb: str, command: str, one: Connection) -> bool:
    """While a DAG file is imported: warn its author that a connection is not changed.

    Otherwise each import of the file would change the connection again, even after a person has corrected it.
    """
    if not open_dags.is_reading():
        return False
    open_dags.warn_author(
        f"the connection {one.conn_id!r} is {verb} at the top level of the file: nothing is changed. Use "
        f"`tradewind connections {command} {one.conn_id}`, or set AIRFLOW_CONN_{str(one.conn_id).upper()}"
    )
    return True


def _queries() -> Any:
    return importlib.import_module("tradewind.airflow.compat.queries")  # it needs the tables, which need this module


def _selects() -> Any:
    return importlib.import_module("tradewind.airflow.compat.selects")  # as for the queries


NEW_SESSION: Any = None
"""Default of a parameter `session` that `provide_session` fills."""


@contextmanager
def create_session(*_args: Any, **_kwargs: Any) -> Iterator[Session]:
    """A session for a `with` block."""
    yield Session()


def provide_session(function: Callable[P, T]) -> Callable[P, T]:
    """Pass a session to a function if the caller gives none."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind_partial(*args, **kwargs).arguments
        if given.get("session") is None:
            kwargs["session"] = Session()
        return function(*args, **kwargs)

    return called
