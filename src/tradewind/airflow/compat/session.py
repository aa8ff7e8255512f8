"""`airflow.utils.session`: sessions of Airflow's metadata database.

A process that runs user code never has credentials of the database. A session reads through the channel of the running task
(see `queries`). Connections, variables and pools that it adds, changes or deletes are sent at its commit (see `pending_changes`);
other changes are refused with a message that names the alternative.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar

from tradewind.airflow.compat import test_rows
from tradewind.sdk import open_dags
from tradewind.sdk.variables import Connection, add_for_file

__all__ = ["NEW_SESSION", "Session", "create_session", "provide_session"]

P = ParamSpec("P")
T = TypeVar("T")


class Session:
    """A session that reads, and that changes connections, variables and pools."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        """The arguments of SQLAlchemy have no effect."""
        self._pending: Any = None

    @property
    def pending(self) -> Any:
        """The changes since the last commit (`pending_changes.PendingChanges`)."""
        if self._pending is None:
            self._pending = _changes().PendingChanges()
        return self._pending

    def __call__(self, *_args: Any, **_options: Any) -> Session:
        """Return this session."""
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def flush(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: changes are sent by the commit. In a process that runs tests, store the changes."""
        if test_rows.is_possible():
            self.commit()

    def expire(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: objects keep the values that were read."""

    expire_all = refresh = expire

    def commit(self) -> None:
        """Store the changes of this session, all or none of them. While a DAG file is read, nothing is stored.

        Raises:
            IntegrityError: a row that was added exists already.
            AirflowException: the scheduler refuses a change.
        """
        if self._pending is not None and not open_dags.is_reading():
            self._pending.commit()

    def rollback(self) -> None:
        """Forget the changes since the last commit."""
        if self._pending is not None:
            self._pending.roll_back()

    def close(self, *_args: Any, **_options: Any) -> None:
        """Forget all objects. Changes that were not committed are lost, as in Airflow."""
        self._pending = None

    remove = expunge_all = close

    def expunge(self, one: Any) -> None:
        """Forget one object: its changes are not stored."""
        if self._pending is not None:
            self._pending.forget(one)

    @property
    def no_autoflush(self) -> AbstractContextManager[Session]:
        """Return a context manager without effect, for `with session.no_autoflush:`."""
        return nullcontext(self)

    def query(self, *what: Any) -> Any:
        """A query of a table or of columns of it; see `queries.Query`."""
        return _queries().Query(what, self)

    def execute(self, statement: Any, *_args: Any, **_options: Any) -> Any:
        """The rows of a `select(…)` of SQLAlchemy; see `selects`. Raises NotYetSupported."""
        return _selects().execute(statement, self)

    def scalars(self, statement: Any, *_args: Any, **_options: Any) -> Any:
        """The first value of each row of a `select(…)`. Raises NotYetSupported."""
        return self.execute(statement).scalars()

    def scalar(self, statement: Any, *_args: Any, **_options: Any) -> Any:
        """The first value of the first row of a `select(…)`, or None. Raises NotYetSupported."""
        return self.execute(statement).scalar()

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A block that ends with a commit; an error in it ends with a rollback."""
        try:
            yield self
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def begin_nested(self) -> AbstractContextManager[Session]:
        """Return a context manager without effect: the commit of the session stores the changes."""
        return nullcontext(self)

    def get(self, table: Any, key: Any, **_options: Any) -> Any:
        """The object of a table with this name, or None."""
        return self.query(table).get(key)

    def add(self, one: Any, *_args: Any, **_options: Any) -> None:
        """Store a connection, a variable or a pool at the next commit.

        At the top level of a DAG file, nothing is stored, and the file gets a warning; its own tasks can use a connection that it
        adds. In a process that runs tests, runs and task instances are kept in its memory at once, and the others by the commit.

        Raises:
            NotYetSupported: an object of another class.
        """
        self._add(one, "add")

    def merge(self, one: Any, *_args: Any, **_options: Any) -> Any:
        """As `add`; a row with the same name is changed. Returns the object."""
        self._add(one, "put")
        return one

    def _add(self, one: Any, verb: str) -> None:
        if type(one).__name__ == "RenderedTaskInstanceFields" and one.store():
            return
        if test_rows.add(one):
            return
        if open_dags.is_reading():
            if isinstance(one, Connection):
                _add_for_file(one)
            else:
                _queries().changes_nothing(f"session.add({type(one).__name__})")
            return
        if _changes().kind_of_row(one) is None:
            _queries().refuse(f"session.add({type(one).__name__})")
        self.pending.add(one, verb)

    def add_all(self, objects: Any) -> None:
        """Store several objects; see `add`."""
        for one in objects:
            self.add(one)

    bulk_save_objects = add_all

    def delete(self, one: Any) -> None:
        """Delete a connection, a variable or a pool at the next commit.

        At the top level of a DAG file, nothing is deleted, and the file gets a warning.

        Raises:
            NotYetSupported: an object of another class.
        """
        if test_rows.delete(one):
            return
        if open_dags.is_reading():
            if isinstance(one, Connection):
                _warn_of_deletion(one)
            else:
                _queries().changes_nothing(f"session.delete({type(one).__name__})")
            return
        kind = _changes().kind_of_row(one)
        if kind is None or kind.only_changes:
            _queries().refuse(f"session.delete({type(one).__name__})", one)
        self.pending.delete(one)

    def __getattr__(self, name: str) -> Any:
        """Refuse all other methods.

        Raises:
            NotYetSupported: the message says what to use instead.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        _queries().refuse(f"session.{name}")


class ScopedSession:
    """`settings.Session`: a call returns the session of this thread; the methods of that session can be called here, too."""

    def __init__(self) -> None:
        self._threads = threading.local()

    def __call__(self, *_args: Any, **_options: Any) -> Session:
        """The session of this thread."""
        found: Session | None = getattr(self._threads, "session", None)
        if found is None:
            found = self._threads.session = Session()
        return found

    def remove(self) -> None:
        """Close the session of this thread; the next call makes another one."""
        self().close()
        del self._threads.session

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self(), name)


def _add_for_file(one: Connection) -> None:
    """Let the tasks of the DAG file that is read use this connection, and warn its author that it is not stored.

    Otherwise each reading of the file would store the connection again, even after a person has deleted it.
    """
    add_for_file(one)
    open_dags.warn_author(
        f"the connection {one.conn_id!r} is added at the top level of the file: it is not stored. The tasks of this file can use "
        f"it; for other files use `tradewind connections add {one.conn_id}`, or set AIRFLOW_CONN_{str(one.conn_id).upper()}"
    )


def _warn_of_deletion(one: Connection) -> None:
    """Warn the author of the DAG file that is read: the connection stays."""
    open_dags.warn_author(
        f"the connection {one.conn_id!r} is deleted at the top level of the file: nothing is changed. Use "
        f"`tradewind connections delete {one.conn_id}`"
    )


def _queries() -> Any:
    return importlib.import_module("tradewind.airflow.compat.queries")  # it needs the tables, which need this module


def _selects() -> Any:
    return importlib.import_module("tradewind.airflow.compat.selects")  # as for the queries


def _changes() -> Any:
    return importlib.import_module("tradewind.airflow.compat.pending_changes")  # as for the queries


NEW_SESSION: Any = None
"""Default of a parameter `session` that `provide_session` fills."""


@contextmanager
def create_session(*_args: Any, **_kwargs: Any) -> Iterator[Session]:
    """A session for a `with` block: a commit follows the block, a rollback an error in it. Raises as `Session.commit`."""
    session = Session()
    try:
        yield session
        session.commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        session.close()


def session_or_new(session: Any) -> AbstractContextManager[Any]:
    """This session, whose owner commits it; for None a session that is committed at the end of the block."""
    return create_session() if session is None else nullcontext(session)


def provide_session(function: Callable[P, T]) -> Callable[P, T]:
    """Pass a session to a function if the caller gives none; a commit follows the function, as in `create_session`."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind_partial(*args, **kwargs).arguments
        if given.get("session") is not None:
            return function(*args, **kwargs)
        with create_session() as session:
            kwargs["session"] = session
            return function(*args, **kwargs)

    return called
