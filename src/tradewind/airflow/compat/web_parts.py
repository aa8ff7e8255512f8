"""What plugins for Airflow 1 and 2 use for views in the web server: `airflow.www`, flask, flask_appbuilder.

The views do not run here (`docs/reference/plugins.md`). These parts accept every use and do nothing, so that the file of a plugin
loads, and its operators, macros, timetables and listeners have their effect.
"""

from __future__ import annotations

from typing import Any

PACKAGES = frozenset({"flask", "flask_admin", "flask_appbuilder", "flask_babel", "flask_login", "flask_wtf", "wtforms"})
"""Packages that a file of the plugins folder can import although they are not installed."""

_made: dict[str, type] = {}


class WebPart:
    """A view, a form, a decorator or another object of a web server."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Accept all arguments. A name is kept: blueprints and views are listed by it."""
        named = options.get("name", given[0] if given else None)
        if isinstance(named, str):
            self.name = named

    def __init_subclass__(cls, **_options: Any) -> None:
        """Accept every class argument."""
        super().__init_subclass__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "name":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return WebPart()

    def __call__(self, *given: Any, **options: Any) -> Any:
        """As a decorator: the function, unchanged. Otherwise an object that accepts every use."""
        return given[0] if len(given) == 1 and not options and callable(given[0]) else self


def part(name: str) -> Any:
    """The class or the object with this name; its spelling decides which of them it is."""
    if not name.lstrip("_")[:1].isupper():
        return WebPart()
    if name not in _made:
        _made[name] = type(name, (WebPart,), {"__module__": __name__, "__doc__": "Has no effect."})
    return _made[name]


def __getattr__(name: str) -> Any:
    """See `part`.

    Raises:
        AttributeError: a special name.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    return part(name)
