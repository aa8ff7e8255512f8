"""Context variables of Airflow whose behaviour is not built yet.

They are in the context, because functions that take `**kwargs` receive every variable; using one is an error with a sentence.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tradewind.model.errors import NotYetSupported


class NotBuilt:
    """Stands for a context variable; whatever is done with it raises NotYetSupported."""

    def __init__(self, name: str, belongs: str) -> None:
        self.__dict__["_refusal"] = f"the context variable {name} belongs to {belongs}, which come with a later release"

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotYetSupported(self.__dict__["_refusal"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __repr__(self) -> str:
        return f"<{self.__dict__['_refusal']}>"

    __getitem__ = __setitem__ = __delitem__ = __setattr__ = __iter__ = __len__ = __bool__ = __contains__ = __call__ = _refuse
