"""Context variables of Airflow that are not supported yet.

The context contains them, because functions with `**kwargs` get all variables. Using one raises an error that explains it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tradewind.model.errors import NotYetSupported


class UnsupportedVariable:
    """A placeholder for a context variable. Any use of it raises NotYetSupported."""

    def __init__(self, name: str, feature: str) -> None:
        self.__dict__["_refusal"] = f"the context variable {name} ({feature}) is not supported yet"

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotYetSupported(self.__dict__["_refusal"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __repr__(self) -> str:
        return f"<{self.__dict__['_refusal']}>"

    __getitem__ = __setitem__ = __delitem__ = __setattr__ = __iter__ = __len__ = __bool__ = __contains__ = __call__ = _refuse
