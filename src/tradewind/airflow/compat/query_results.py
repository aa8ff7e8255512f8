"""The results of queries as SQLAlchemy gives them: rows with names, `session.execute(…)`, `session.scalars(…)`."""

from __future__ import annotations

import keyword
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

__all__ = ["MultipleResultsFound", "NoResultFound", "Result", "Row", "ScalarResult", "one_of"]


class NoResultFound(Exception):
    """`one()` found nothing. Where SQLAlchemy is imported, it is also SQLAlchemy's."""


class MultipleResultsFound(Exception):
    """`one()` found more than one result. Where SQLAlchemy is imported, it is also SQLAlchemy's."""


def _raise(kind: type[Exception], sentence: str) -> Any:
    """Raise an exception that is also SQLAlchemy's of this name, if the file may have imported it."""
    theirs = getattr(sys.modules.get("sqlalchemy.exc"), kind.__name__, None)
    raise (kind if theirs is None else type(kind.__name__, (theirs, kind), {}))(sentence)


class Row(tuple[Any, ...]):
    """The values of one result, by position and by name."""

    _fields: tuple[str, ...] = ()

    @classmethod
    def maker(cls, names: Sequence[str]) -> Callable[[Iterable[Any]], Row]:
        """The class of rows whose values have these names. Names that occur twice or that Python cannot use have positions only."""
        usable = {
            name: at for at, name in reversed(list(enumerate(names))) if name.isidentifier() and not keyword.iskeyword(name)
        }
        members: dict[str, Any] = {
            name: property(operator.itemgetter(at))
            for name, at in usable.items()
            if not name.startswith("_") and name not in ("count", "index")
        }
        made: Callable[[Iterable[Any]], Row] = type("Row", (cls,), {**members, "_fields": tuple(names)})
        return made

    @property
    def _mapping(self) -> dict[str, Any]:
        """The values by name."""
        return dict(zip(self._fields, self, strict=True))

    def _asdict(self) -> dict[str, Any]:
        return self._mapping

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the row has no column {name!r}; it has {', '.join(self._fields) or 'none with a name'}")


def one_of(found: Sequence[Any], *, or_none: bool) -> Any:
    """The only result; None if there is none and `or_none`.

    Raises:
        NoResultFound: there is none.
        MultipleResultsFound: there are several.
    """
    if len(found) > 1:
        _raise(MultipleResultsFound, f"{len(found)} results were found when one{' or none' * or_none} was required")
    if not found and not or_none:
        _raise(NoResultFound, "no results were found when one was required")
    return found[0] if found else None


class ScalarResult:
    """Results with one value each. It is read once from begin to end, as in SQLAlchemy."""

    def __init__(self, found: Sequence[Any]) -> None:
        self._left = list(found)

    def __iter__(self) -> Iterator[Any]:
        while self._left:
            yield self._left.pop(0)

    def __next__(self) -> Any:
        if not self._left:
            raise StopIteration
        return self._left.pop(0)

    def _rest(self) -> list[Any]:
        found, self._left = self._left, []
        return found

    def all(self) -> list[Any]:
        return self._rest()

    fetchall = all

    def first(self) -> Any:
        """The next result, or None."""
        return next(self, None)

    fetchone = first

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next results, at most `size`."""
        count = len(self._left) if size is None else size
        found, self._left = self._left[:count], self._left[count:]
        return found

    def partitions(self, size: int | None = None) -> Iterator[list[Any]]:
        """All results in lists of `size`."""
        while self._left:
            yield self.fetchmany(size)

    def one(self) -> Any:
        """The only result. Raises NoResultFound, MultipleResultsFound."""
        return one_of(self._rest(), or_none=False)

    def one_or_none(self) -> Any:
        """The only result, or None. Raises MultipleResultsFound."""
        return one_of(self._rest(), or_none=True)

    def unique(self, strategy: Callable[[Any], Any] | None = None) -> Any:
        """Each result once; `strategy` gives what is compared."""
        found: dict[Any, Any] = {}
        for one in self._left:
            found.setdefault(strategy(one) if strategy else one, one)
        self._left = list(found.values())
        return self

    def yield_per(self, _number: int) -> Any:
        """Do nothing: all results are in memory."""
        return self

    def close(self) -> None:
        """Drop the results that were not read."""
        self._left = []

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()


class Result(ScalarResult):
    """The rows of `session.execute(…)`."""

    def __init__(self, found: Sequence[Row], names: Sequence[str], row_count: int = -1) -> None:
        super().__init__(found)
        self._names = tuple(names)
        self.rowcount = row_count
        """How many rows a statement has deleted; -1 for a select."""

    def keys(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    def scalars(self, index: int = 0) -> ScalarResult:
        """One value of each row."""
        return ScalarResult([row[index] for row in self._rest()])

    def mappings(self) -> ScalarResult:
        """The rows as dictionaries."""
        return ScalarResult([row._mapping for row in self._rest()])

    def tuples(self) -> Result:
        return self

    def scalar(self) -> Any:
        """The first value of the first row, or None."""
        row = self.first()
        return None if row is None else row[0]

    def scalar_one(self) -> Any:
        """The first value of the only row. Raises NoResultFound, MultipleResultsFound."""
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        """The first value of the only row, or None. Raises MultipleResultsFound."""
        row = self.one_or_none()
        return None if row is None else row[0]
