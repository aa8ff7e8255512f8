"""Changes of rows in the memory of a process that runs tests: what `ChangeRows` means for plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.wire.messages import ChangeRows, RowChange, Value

Tables = Mapping[str, dict[str, dict[str, Any]]]
"""Table → key → column → value."""


def change_tables(tables: Tables, question: ChangeRows) -> Value:
    """Change the rows, all or none of them. The answer is that of `ChangeRows`."""
    made = {table: dict(rows) for table, rows in tables.items()}
    for change in question.changes:
        rows = made[change.table]
        exists = change.key in rows
        if (change.verb == "add" and exists) or (change.verb == "change" and not exists):
            return Value(question.op, False, _place(change))
        if change.verb == "delete":
            rows.pop(change.key, None)
        else:
            rows[change.key] = {**rows.get(change.key, {}), **change.values}
    for table, rows in tables.items():
        rows.clear()
        rows.update(made[table])
    return Value(question.op, True)


def _place(change: RowChange) -> dict[str, str]:
    return {"table": change.table, "key": change.key, "verb": change.verb}
