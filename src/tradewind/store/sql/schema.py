"""Schema and migrations.

A new database gets all migrations in order, an older one the missing ones. Each is applied in one transaction together with its
number. A database of a newer release is refused. Files: migrations/NNNN_name.<dialect>.sql, and for the database of accounts
account_migrations/NNNN_name.<dialect>.sql.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from tradewind.model.database_urls import on_server
from tradewind.model.errors import StoreLost, StoreMismatch
from tradewind.store.sql.engine import Dialect, Engine

_STORE_FOLDER = os.path.dirname(os.path.dirname(__file__))
STORE, ACCOUNTS = "migrations", "account_migrations"
"""Folders of migrations: of the scheduler's tables, and of the tables of accounts."""


class Migration(NamedTuple):
    number: int
    name: str
    sql: str


def migrations(dialect: str, tables: str = STORE) -> list[Migration]:
    """All migrations of a dialect (its name) in the folder `tables`, in order."""
    found = []
    with os.scandir(os.path.join(_STORE_FOLDER, tables)) as entries:
        for entry in entries:
            if entry.name.endswith(f".{dialect}.sql"):
                number, _, name = entry.name.removesuffix(f".{dialect}.sql").partition("_")
                with open(entry.path, encoding="utf-8") as file:
                    found.append(Migration(int(number), name, file.read()))
    return sorted(found)


def newest(dialect: Dialect, tables: str = STORE) -> int:
    """Number of the newest migration that this release knows."""
    return migrations(dialect.name, tables)[-1].number


def applied(engine: Engine) -> int:
    """Number of the newest migration in the database; 0 for an empty one."""
    if not engine.has_table("meta"):
        return 0
    row = engine.row("SELECT value FROM meta WHERE key = 'schema'")
    return int(row[0]) if row else 0


def migrate(engine: Engine, tables: str = STORE) -> list[str]:
    """Apply the missing migrations, and return their names. `tables`: `STORE` or `ACCOUNTS`.

    Raises:
        StoreMismatch: the database comes from a newer release.
    """
    have, known = applied(engine), migrations(engine.dialect.name, tables)
    _refuse_newer(engine, have, known[-1].number)
    done = []
    for migration in known:
        if migration.number > have:
            with engine.without_deadline(), engine.transaction():
                engine.exclusive()
                if applied(engine) >= migration.number:
                    continue
                for statement in statements(migration.sql):
                    engine.run(statement)
                engine.run(
                    "INSERT INTO meta (key, value) VALUES ('schema', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (str(migration.number),),
                )
            done.append(f"{migration.number:04d}_{migration.name}")
    return done


def check(engine: Engine, *, allow_older: bool = False) -> None:
    """Raise StoreMismatch if the schema is not exactly the schema of this release, StoreLost if there is no schema.

    Args:
        allow_older: accept the schema of an older release, too.
    """
    have, needed = applied(engine), newest(engine.dialect)
    if have == 0:
        if on_server(engine.path):
            raise StoreLost(
                f"the database {engine.path} has no tables of Tradewind. Start: tradewind standalone (or: tradewind db migrate)"
            )
        raise StoreLost(
            f"the database {engine.path} is empty: another process is creating it, or it was emptied. If it stays empty, restore a "
            "backup (tradewind db restore FILE), or create it again: tradewind db reset -y"
        )
    _refuse_newer(engine, have, needed)
    if have < needed and not allow_older:
        raise StoreMismatch(
            f"the database {engine.path} has schema {have}, this release needs {needed}; run: tradewind db migrate "
            "(first, to be able to go back: tradewind db backup FILE)"
        )


def _refuse_newer(engine: Engine, have: int, known: int) -> None:
    if have > known:
        raise StoreMismatch(
            f"the database {engine.path} has schema {have}, but this release knows only {known}; "
            "use the release that wrote it, or a newer one"
        )


def statements(script: str) -> list[str]:
    """Return the statements of a script, without comments. A statement ends with a semicolon at the end of a line."""
    lines = [line for line in script.splitlines() if not line.strip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";\n") if part.strip()]
