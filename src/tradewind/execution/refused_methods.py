"""Methods of Airflow's classes that only Airflow's own services call. A call raises an error that names the alternative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tradewind.model.errors import NotYetSupported


class Refused:
    """A method that raises NotYetSupported when it is called."""

    def __init__(self, instead: str) -> None:
        """Refuse calls.

        Args:
            instead: why there is no such method, and what to use instead.
        """
        self._instead = instead
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = self._name or name

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        def refuse(*_args: Any, **_options: Any) -> NoReturn:
            raise NotYetSupported(f"{owner.__name__}.{self._name}() is not possible in user code: {self._instead}")

        return refuse
