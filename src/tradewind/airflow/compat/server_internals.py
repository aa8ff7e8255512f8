"""Names of Airflow's own services: its API server, scheduler, metadata database and command line.

Provider packages import them, at the top of modules that extend those services. Here the names exist, so that such modules can
be imported and their other classes used. Calling one of these functions, or creating an object of one of these classes, raises
an error that names it. Classes can be subclassed.
"""

from __future__ import annotations

from typing import Any

from tradewind.model.errors import NotYetSupported

_TYPES_OF_ARGUMENTS = frozenset({"AsyncSessionDep", "DagBagDep", "GetUserDep", "SessionDep"})
"""Dependencies of FastAPI, with which apps of plugins annotate arguments. FastAPI refuses classes that it does not know."""

_made: dict[str, Any] = {}


class AirflowService:
    """Base class of the classes here. Objects can be created only of subclasses that define `__init__` themselves."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise _refusal(type(self).__name__)

    def __class_getitem__(cls, _item: Any) -> type[AirflowService]:
        """`BaseAuthManager[User]`."""
        return cls

    def __init_subclass__(cls, **_kwargs: Any) -> None:
        """Accept every class argument, as Airflow's classes with metaclasses do."""
        super().__init_subclass__()


def _refusal(name: str) -> NotYetSupported:
    return NotYetSupported(
        f"{name} is part of Airflow's own services (API server, scheduler, metadata database or command line); Tradewind has "
        "its own and does not run this part of Airflow or of a provider package"
    )


def _function(name: str) -> Any:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise _refusal(name)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def __getattr__(name: str) -> Any:
    """The class, function or constant of that name; the spelling of the name decides which of them it is.

    Raises:
        AttributeError: a special name.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if name not in _made:
        plain = name.lstrip("_")
        if plain in _TYPES_OF_ARGUMENTS:
            _made[name] = Any
        elif plain.isupper():
            _made[name] = plain.lower()
        elif plain[0].isupper():
            _made[name] = type(name, (AirflowService,), {"__module__": __name__, "__doc__": "Of Airflow's own services."})
        else:
            _made[name] = _function(name)
    return _made[name]
