"""The changes of a session: connections, variables and pools that are added, changed and deleted until `session.commit()`, and
DAGs that are paused.

As in SQLAlchemy, a session knows the objects that its queries have returned. At a commit, it compares their columns with the values
that were read, and sends all changes in one request, which the scheduler executes completely or not at all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tradewind.airflow.compat.models import DagModel, Pool
from tradewind.model.secret_names import secrets_in
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.mask_secret import mask_secret
from tradewind.sdk.variables import Connection, Variable, request_value
from tradewind.wire.messages import ChangeRows, RowChange

__all__ = ["IntegrityError", "PendingChanges", "kind_of"]


class IntegrityError(AirflowException):
    """A row that was added exists already. Where SQLAlchemy is imported, it is also SQLAlchemy's error of this name."""


class Kind(NamedTuple):
    """How the objects of one class are stored.

    `table`: the name in `RowChange`; `key`: the attribute with the name of the row; `columns`: the other stored attributes.
    """

    table: str
    key: str
    columns: tuple[str, ...]
    only_changes: bool = False
    """Rows cannot be added or deleted."""


_KINDS: Mapping[type, Kind] = {
    Connection: Kind(
        "connection", "conn_id", ("conn_type", "description", "host", "login", "password", "schema", "port", "extra")
    ),
    Variable: Kind("variable", "key", ("val", "description")),
    Pool: Kind("pool", "pool", ("slots", "description", "include_deferred")),
    DagModel: Kind("dag", "dag_id", ("is_paused",), only_changes=True),
}


def kind_of(table: Any) -> Kind | None:
    """How the objects of a class are stored; None: a session cannot change them."""
    if not isinstance(table, type):
        return None
    return next((kind for known, kind in _KINDS.items() if issubclass(table, known)), None)


def kind_of_row(one: Any) -> Kind | None:
    """As `kind_of`, for an object. An object that a query has returned is known by its table."""
    return kind_of(_TABLES.get(getattr(one, "table", "")) or type(one))


_TABLES: Mapping[str, type] = {"DagModel": DagModel}
"""The name of the table that objects of a query name → the table."""


class _Tracked:
    """One object of a session.

    Attributes:
        before: the stored row: its key and its columns. None: the object is new.
        verb: of the change of a new object, `add` or `put`.
    """

    def __init__(self, one: Any, kind: Kind, before: dict[str, Any] | None, verb: str = "add") -> None:
        self.one = one
        self.kind = kind
        self.before = before
        self.verb = verb
        self.is_deleted = False

    def now(self) -> dict[str, Any]:
        """Its key and columns as they would be stored.

        Raises:
            AirflowException: a value cannot be stored.
        """
        return {name: _stored(self.kind, self.one, name) for name in (self.kind.key, *self.kind.columns)}

    def renew(self, row: Any) -> None:
        """Give the object the values that were read now, unless it has changes that are not stored."""
        if self.now() == self.before:
            vars(self.one).update(vars(row))
            self.before = vars(self.one)[_READ] = self.now()

    def changes(self) -> Iterator[RowChange]:
        """The changes of the row. Raises as `now`."""
        table, key = self.kind.table, self.kind.key
        if self.is_deleted:
            if self.before is not None:
                yield RowChange(table, self.before[key], "delete")
            return
        now = self.now()
        name = now[key]
        if self.before is not None and self.before[key] == name:
            changed = {column: now[column] for column in self.kind.columns if now[column] != self.before[column]}
            if changed:
                yield RowChange(table, name, "change", changed)
            return
        if not name:
            raise AirflowException(f"a {table} is added without a name ({key})")
        if self.before is not None:
            yield RowChange(table, self.before[key], "delete")
        values = {column: now[column] for column in self.kind.columns if now[column] is not None}
        yield RowChange(table, name, "put" if self.verb == "put" else "add", values)


class PendingChanges:
    """The objects of one session, and what has become of them since they were read."""

    def __init__(self) -> None:
        self._objects: dict[int, _Tracked] = {}

    def _of(self, one: Any) -> _Tracked | None:
        return self._objects.get(id(one))

    def add(self, one: Any, verb: str = "add") -> None:
        """Store a new object at the next commit; `verb` `put` changes a row that exists. An object that was read is known already.

        The class of the object must be one that `kind_of` knows.
        """
        known = self._of(one)
        if known is not None:
            known.is_deleted = False
            return
        kind = kind_of_row(one)
        assert kind is not None
        self._objects[id(one)] = _Tracked(one, kind, vars(one).get(_READ), verb)

    def delete(self, one: Any) -> None:
        """Delete the row of an object at the next commit. An object that was only added is not stored."""
        is_new = self._of(one) is not None and self._objects[id(one)].before is None
        if is_new:
            self.forget(one)
            return
        self.add(one)
        tracked = self._objects[id(one)]
        tracked.is_deleted = True
        if tracked.before is None:  # an object that was made with the name of a row, and not read
            tracked.before = tracked.now()

    def forget(self, one: Any) -> None:
        """Do not store the changes of an object."""
        self._objects.pop(id(one), None)

    def clear(self) -> None:
        """Forget all objects and changes."""
        self._objects.clear()

    def seen(self, table: type, rows: Iterable[Any]) -> Iterator[Any]:
        """The rows of a query as this session sees them: with its additions, without its deletions, each row as one object."""
        kind = kind_of(table)
        if kind is None:
            yield from rows
            return
        mine = [tracked for tracked in self._objects.values() if tracked.kind is kind]
        by_key = {tracked.before[kind.key]: tracked for tracked in mine if tracked.before is not None}
        for row in rows:
            tracked = by_key.get(getattr(row, kind.key))
            if tracked is None:
                self._read(row, kind)
                yield row
            elif not tracked.is_deleted:
                tracked.renew(row)
                yield tracked.one
        for tracked in mine:
            if tracked.before is None and not tracked.is_deleted:
                yield tracked.one

    def _read(self, row: Any, kind: Kind) -> None:
        tracked = _Tracked(row, kind, None)
        tracked.before = vars(row)[_READ] = tracked.now()
        self._objects[id(row)] = tracked

    def commit(self) -> None:
        """Send the changes.

        Raises:
            IntegrityError: a row that is added exists already. Nothing was changed.
            AirflowException: the scheduler refuses a change; nothing was changed.
        """
        changes = tuple(change for tracked in self._objects.values() for change in tracked.changes())
        if not changes:
            return
        _mask(changes)
        answer = request_value(ChangeRows(0, changes), f"cannot store {_shown(changes)}")
        if not answer.found:
            self.roll_back()
            _refuse(answer.value or {})
        for tracked in list(self._objects.values()):
            if tracked.is_deleted:
                del self._objects[id(tracked.one)]
                vars(tracked.one).pop(_READ, None)
            else:
                tracked.before = vars(tracked.one)[_READ] = tracked.now()

    def roll_back(self) -> None:
        """Forget the changes since the last commit. Objects that were read get the values that were read."""
        for tracked in list(self._objects.values()):
            tracked.is_deleted = False
            if vars(tracked.one).get(_READ) is None:
                del self._objects[id(tracked.one)]
                continue
            for name, value in (tracked.before or {}).items():
                if getattr(tracked.one, name) != value:
                    setattr(tracked.one, name, value)


def _mask(changes: Iterable[RowChange]) -> None:
    """Mask the secrets of connections in the log of the task."""
    secrets: list[str] = []
    for change in changes:
        if change.table == "connection":
            secrets += secrets_in({name: change.values.get(name) for name in ("password", "extra")}, True)
    if secrets:
        mask_secret(secrets)


_READ = "_read_by_a_session"
"""The attribute with the row from which an object was made."""


def _stored(kind: Kind, one: Any, name: str) -> Any:
    """A value as it is stored. Raises AirflowException: it cannot be."""
    value = getattr(one, name, None)
    if value is None:
        return None
    whose = f"{kind.table} {getattr(one, kind.key, None)!r}"
    if name in ("port", "slots"):
        if value == "":
            return None
        try:
            return int(value)
        except (TypeError, ValueError):
            raise AirflowException(f"{whose}: {name} is {value!r}; it must be a number") from None
    if name in ("include_deferred", "is_paused"):
        return bool(value)
    if name == "extra" and not isinstance(value, str):
        return json.dumps(value)
    return str(value)


def _shown(changes: tuple[RowChange, ...]) -> str:
    """The first changed rows, for an error message."""
    names = ", ".join(f"{change.table} {change.key!r}" for change in changes[:3])
    return f"{names} and {len(changes) - 3} more" if len(changes) > 3 else names


def _refuse(row: Mapping[str, str]) -> None:
    """Raise the error for a row that is not as a change requires."""
    table, key = row.get("table", "row"), row.get("key", "")
    if row.get("verb") != "add":
        raise AirflowException(f"the {table} {key!r} was deleted since it was read; nothing was changed")
    sentence = (
        f"the {table} {key!r} exists already; nothing was changed. Query it first and change it, or use session.merge({table})"
    )
    theirs = getattr(sys.modules.get("sqlalchemy.exc"), "IntegrityError", None)
    if theirs is None:
        raise IntegrityError(sentence)
    both = type("IntegrityError", (theirs, IntegrityError), {})
    raise both(None, None, IntegrityError(sentence))
