"""Parts of Airflow's own machinery that DAG files import: they can be imported, subclassed and mentioned, and refuse to work.

A file that imports `SchedulerJob` for an annotation, or calls it in a function that nobody calls, loads as it does in Airflow.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tradewind.model.errors import NotYetSupported

_ADVICE = (
    "Tradewind has services of its own. In a task, use Variable, Connection, ti and dag_run; elsewhere, the REST API (/api/v2)"
)


class _InternalType(type):
    """Makes classes that refuse to make objects."""

    def __call__(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse.

        Raises:
            NotYetSupported: with what to use instead.
        """
        raise NotYetSupported(f"{cls.__name__} is a part of Airflow's own machinery. {_ADVICE}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _function(f"{cls.__name__}.{name}")


def _function(name: str) -> Any:
    def refused(*_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse.

        Raises:
            NotYetSupported: with what to use instead.
        """
        raise NotYetSupported(f"{name}() is a part of Airflow's own machinery. {_ADVICE}")

    refused.__name__ = refused.__qualname__ = name
    return refused


def __getattr__(name: str) -> Any:
    """A class, or a function where the name is written small."""
    if name.startswith("__"):
        raise AttributeError(name)
    made = _InternalType(name, (), {"__doc__": "A part of Airflow's own machinery."}) if name[:1].isupper() else _function(name)
    globals()[name] = made
    return made
