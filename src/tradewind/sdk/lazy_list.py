"""A list whose elements are loaded on access: the results of a mapped task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tradewind.model.counts import counted


class LazyList(Sequence[Any]):
    """Behaves like a list, and is equal to a list with the same elements. `list(x)` loads all elements."""

    __slots__ = ("_at", "_length")

    def __init__(self, length: int, at: Callable[[int], Any]) -> None:
        self._length = length
        self._at = at

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._at(i) for i in range(*index.indices(self._length))]
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(f"index {index} is out of range: the list has {counted(self._length, 'element')}")
        return self._at(position)

    def __iter__(self) -> Iterator[Any]:
        return (self._at(i) for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(other) == self._length and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> list[Any]:
        return [*self, *other]

    def __repr__(self) -> str:
        return repr(list(self))
