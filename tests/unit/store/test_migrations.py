"""A migration that is interrupted at any of its statements leaves nothing behind, and the next start applies it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tradewind.store.factory import DatabaseOptions, connect
from tradewind.store.sql import schema
from tradewind.store.sql.engine import Engine, Row

Opener = Callable[[str], Engine]
"""Opens one of two databases, by its name: a new connection each time."""

_CATALOGUE = {
    "sqlite": ["SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name", "SELECT * FROM meta", "SELECT * FROM pool"],
    "postgres": [
        """SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default, collation_name
           FROM information_schema.columns WHERE table_schema = 'tradewind' ORDER BY 1, 2""",
        "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'tradewind' ORDER BY 1, 2",
        "SELECT relname, CAST(reloptions AS TEXT) FROM pg_class WHERE relnamespace = to_regnamespace('tradewind') ORDER BY 1",
        "SELECT * FROM meta",
        "SELECT * FROM pool",
    ],
}


class _Killed(BaseException):
    """The process ended here."""


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    urls: dict[str, str] = {}
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None

    def open_one(name: str) -> Engine:
        if name not in urls:
            urls[name] = server.create_database() if server is not None else str(tmp_path / f"{name}.db")
        return connect(urls[name], DatabaseOptions(synchronous="NORMAL"), read_only=False)

    yield open_one
    if server is not None:
        for url in urls.values():
            server.drop_database(url)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_each_migration_has_a_number_of_its_own(dialect: str) -> None:
    """Two branches may have added the next number."""
    numbers = [migration.number for migration in schema.migrations(dialect)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_migration_may_end_at_any_statement(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = schema.migrations(opener("tried").dialect.name)
    tried = 0
    for number, migration in enumerate(whole):
        monkeypatch.setattr(schema, "migrations", lambda *_, upto=number + 1: whole[:upto])
        statements = len(schema.statements(migration.sql)) + 1  # and the number of the migration
        for done in range(statements):
            engine = opener("tried")
            _end_after(engine, done)
            with pytest.raises(_Killed):
                schema.migrate(engine)
            tried += 1
            engine = opener("tried")
            assert schema.applied(engine) == (whole[number - 1].number if number else 0)
            engine.close()
        engine = opener("tried")
        assert schema.migrate(engine) == [f"{migration.number:04d}_{migration.name}"]
        engine.close()
    assert tried == sum(len(schema.statements(one.sql)) + 1 for one in whole)
    untouched = opener("untouched")
    schema.migrate(untouched)
    assert _catalogue(opener("tried")) == _catalogue(untouched)


def _end_after(engine: Engine, statements: int) -> None:
    """The process of a connection ends after so many statements: the connection closes without ROLLBACK."""
    run, done = engine.run, 0

    def counted(sql: str, parameters: Any = ()) -> int:
        nonlocal done
        if done == statements:
            raise _Killed
        done += 1
        return run(sql, parameters)

    engine.run = counted  # type: ignore[method-assign]
    engine.roll_back = engine.close  # type: ignore[method-assign]


def _catalogue(engine: Engine) -> list[list[Row]]:
    found = [engine.rows(sql) for sql in _CATALOGUE[engine.dialect.name]]
    engine.close()
    return found
