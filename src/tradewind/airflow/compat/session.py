"""`airflow.utils.session`: sessions of Airflow's metadata database.

Here user code never shares a process with credentials of the database. A session can be made and handed around, so that files
import and decorators work; its first use raises, and names what to use instead.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, ParamSpec, TypeVar

from tradewind.model.errors import NotYetSupported

__all__ = ["NEW_SESSION", "RefusedSession", "create_session", "provide_session"]

P = ParamSpec("P")
T = TypeVar("T")


class RefusedSession:
    """A session that refuses to be used."""

    def __call__(self) -> RefusedSession:
        """`settings.Session` is called to get a session."""
        return self

    def __enter__(self) -> RefusedSession:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        return None

    def close(self) -> None:
        """Nothing is open."""

    remove = expunge_all = rollback = close

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse a query.

        Raises:
            NotYetSupported: with what to use instead.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotYetSupported(
            f"session.{name} needs Airflow's metadata database, which user code cannot reach. Use Variable, Connection, "
            "ti.xcom_pull, ti.get_previous_ti and dag_run in a task, or the REST API (/api/v2) for everything else"
        )


NEW_SESSION: Any = None
"""Default of a parameter `session` that `provide_session` fills."""


@contextmanager
def create_session(*_args: Any, **_kwargs: Any) -> Iterator[RefusedSession]:
    """A session for a `with` block."""
    yield RefusedSession()


def provide_session(function: Callable[P, T]) -> Callable[P, T]:
    """Fill the parameter `session` of a function where the caller gave none."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind_partial(*args, **kwargs).arguments
        if given.get("session") is None:
            kwargs["session"] = RefusedSession()
        return function(*args, **kwargs)

    return called
