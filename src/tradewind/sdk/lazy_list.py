"""A list whose elements are made when they are looked at: what a mapped task returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


class LazyList(Sequence[Any]):
    """Like a list to whoever reads it, and equal to one. `list(it)` makes all of it."""

    __slots__ = ("_at", "_length")

    def __init__(self, length: int, at: Callable[[int], Any]) -> None:
        self._length = length
        self._at = at

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._at(i) for i in range(*index.indices(self._length))]
        place = index + self._length if index < 0 else index
        if not 0 <= place < self._length:
            raise IndexError(f"there is no element {index}: there are {self._length}")
        return self._at(place)

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
