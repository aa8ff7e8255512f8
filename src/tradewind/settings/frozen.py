"""Frozen values with named fields.

They work like `@dataclass(frozen=True, kw_only=True)`, also for type checkers, at a tenth of the import time: importing dataclasses
would double the time to read the settings, which every command does first.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers treat this name as true; importing typing for it would take milliseconds
if TYPE_CHECKING:
    from typing import Any, ClassVar, NoReturn, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Frozen:
    """Base of a frozen value: annotations are its fields, assignments their defaults.

    Raises:
        TypeError: a field has no value, or a value has no field.
        AttributeError: a field is assigned after creation.
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = tuple(name for name in cls.__annotations__ if not name.startswith("_"))
        cls._fields = cls._fields + own

    def __init__(self, **values: Any) -> None:
        for name in self._fields:
            if name in values:
                self.__dict__[name] = values.pop(name)
            elif not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs a value for {name!r}")
        if values:
            raise TypeError(f"{type(self).__name__} has no field {next(iter(values))!r}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self._fields))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"
