"""Changes of rows that user code requests: Airflow's `session.add(Connection(…)); session.commit()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tradewind.model.errors import Conflict, did_you_mean
from tradewind.model.rows import ConnectionRow, PoolRow, VariableRow
from tradewind.store.port import Store
from tradewind.wire.messages import ChangeRows, RowChange

CHANGES_MAX = 1_000
"""Maximum number of changes in one request."""

KEY_MAX = 250
"""Maximum length of a connection id, of the key of a variable and of the name of a pool, as in Airflow."""

PORT_MAX = 65_535

_COLUMNS: Mapping[str, Mapping[str, type]] = {
    "connection": {
        "conn_type": str,
        "description": str,
        "host": str,
        "login": str,
        "port": int,
        "schema": str,
        "password": str,
        "extra": str,
    },
    "variable": {"val": str, "description": str},
    "pool": {"slots": int, "description": str, "include_deferred": bool},
    "dag": {"is_paused": bool},
}
"""Table → column → type of its values; None is valid for each column, too."""


class Cipher(Protocol):
    """Encrypts texts for the store."""

    def encrypt(self, plain: str) -> str: ...


class _Impossible(Exception):
    """A row that must not exist does, or one that must exist does not."""

    def __init__(self, change: RowChange) -> None:
        self.place = {"table": change.table, "key": change.key, "verb": change.verb}


def check(question: ChangeRows) -> None:
    """Check tables, keys, columns and values of changes.

    Raises:
        Conflict: one of them is not valid. The message says which one, and what is valid.
    """
    if len(question.changes) > CHANGES_MAX:
        raise Conflict(
            f"{len(question.changes):,} rows are changed at once; at most {CHANGES_MAX:,} are possible: commit more often"
        )
    for change in question.changes:
        columns = _COLUMNS.get(change.table)
        if columns is None:
            raise Conflict(f"tasks cannot change the table {change.table!r}; they can change {', '.join(_COLUMNS)}")
        what = f"{change.table} {change.key!r}"
        if change.table == "dag" and change.verb != "change":
            raise Conflict(f"{what}: tasks can only pause and unpause DAGs, not {change.verb} them")
        if not change.key.strip():
            raise Conflict(f"a {change.table} needs a name")
        if len(change.key) > KEY_MAX:
            raise Conflict(f"{what:.80}…: the name has {len(change.key)} characters; at most {KEY_MAX} are possible")
        for column, value in change.values.items():
            expected = columns.get(column)
            if expected is None:
                raise Conflict(
                    f"{what} has no column {column!r}.{did_you_mean(column, columns)} The columns are {', '.join(columns)}"
                )
            if value is not None and type(value) is not expected:
                raise Conflict(f"{what}: {column} is {_shown(column, value)}; it must be of the type {expected.__name__}")
        port = change.values.get("port")
        if port is not None and not 0 <= port <= PORT_MAX:
            raise Conflict(f"{what}: port {port} is not possible; it must be between 0 and {PORT_MAX}")


def _shown(column: str, value: Any) -> str:
    """A wrong value for a message; of a secret only the type."""
    return f"a {type(value).__name__}" if column in ("password", "extra", "val") else repr(value)


def change_rows(store: Store, cipher: Cipher, question: ChangeRows, actor: str, at: int) -> dict[str, str] | None:
    """Change the rows, all or none of them, also as a part of an open transaction.

    Returns:
        None: all rows are changed. Otherwise nothing is changed, because of this row: `table`, `key` and `verb` of the change.

    Raises:
        Conflict: a value is not valid, or the row must not be deleted.
    """
    check(question)
    try:
        with store.transaction():
            for change in question.changes:
                _write(store, cipher, change, actor, at)
    except _Impossible as impossible:
        return impossible.place
    return None


class _Table(NamedTuple):
    """How the rows of a table are read, written and deleted.

    `write` gets the store, the cipher, the row before (None: there is none), the change, the name for the audit log and the time.
    """

    read: Callable[[Store, str], Any]
    write: Callable[[Store, Cipher, Any, RowChange, str, int], object]
    delete: Callable[[Store, str, str, int], object] | None = None


def _write(store: Store, cipher: Cipher, change: RowChange, actor: str, at: int) -> None:
    """Make one change.

    Raises:
        _Impossible: the row is not as the change requires.
    """
    table = _TABLES[change.table]
    before = table.read(store, change.key)
    if (change.verb == "add" and before is not None) or (change.verb == "change" and before is None):
        raise _Impossible(change)
    if change.verb != "delete":
        table.write(store, cipher, before, change, actor, at)
    elif before is not None and table.delete is not None:
        table.delete(store, change.key, actor, at)


def _write_connection(
    store: Store, cipher: Cipher, before: ConnectionRow | None, change: RowChange, actor: str, at: int
) -> None:
    row = before if before is not None else ConnectionRow(change.key, "", None, None, None, None, None, None, None)
    values = dict(change.values)
    for secret in ("password", "extra"):
        if values.get(secret):
            values[secret] = cipher.encrypt(values[secret]).encode()
        elif secret in values:
            values[secret] = None
    if "conn_type" in values:
        values["conn_type"] = values["conn_type"] or ""
    store.set_connection(row._replace(**values), actor, at)


def _write_variable(store: Store, cipher: Cipher, before: VariableRow | None, change: RowChange, actor: str, at: int) -> None:
    row = before if before is not None else VariableRow(change.key, cipher.encrypt("").encode(), None, True)
    if "val" in change.values:
        row = row._replace(value=cipher.encrypt(change.values["val"] or "").encode(), is_encrypted=True)
    store.set_variable(row._replace(description=change.values.get("description", row.description)), actor, at)


def _write_pool(store: Store, _cipher: Cipher, before: PoolRow | None, change: RowChange, actor: str, at: int) -> None:
    row = before if before is not None else PoolRow(change.key, 0, None, False)
    given = {column: value for column, value in change.values.items() if value is not None or column == "description"}
    store.set_pool(row._replace(**given), actor, at)


def _write_dag(store: Store, _cipher: Cipher, _before: object, change: RowChange, actor: str, at: int) -> None:
    if change.values.get("is_paused") is not None:
        store.set_paused(change.key, change.values["is_paused"], actor, at)


_TABLES: Mapping[str, _Table] = {
    "connection": _Table(
        lambda store, key: store.connection(key),
        _write_connection,
        lambda store, key, actor, at: store.delete_connection(key, actor, at),
    ),
    "variable": _Table(
        lambda store, key: store.variable(key),
        _write_variable,
        lambda store, key, actor, at: store.delete_variable(key, actor, at),
    ),
    "pool": _Table(
        lambda store, key: next((pool for pool in store.pools() if pool.name == key), None),
        _write_pool,
        lambda store, key, actor, at: store.delete_pool(key, actor, at),
    ),
    "dag": _Table(lambda store, key: store.dag(key), _write_dag),
}
