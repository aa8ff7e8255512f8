"""Checks a backup before it is restored."""

from __future__ import annotations

import os
from contextlib import closing
from typing import NamedTuple

from tradewind.model.errors import NotFound, StoreError, StoreMismatch, TradewindError
from tradewind.store.sql import schema
from tradewind.store.sql.dialects.sqlite import SqliteEngine


class Backup(NamedTuple):
    """The content of a backup."""

    runs: int
    """Number of DAG runs."""
    secret: tuple[str, bytes] | None
    """Key and encrypted value of one variable; None: no variable is encrypted."""


def inspect_backup(file: str) -> Backup:
    """Check a backup and return its content.

    Raises:
        NotFound: there is no such file.
        StoreError: the file is damaged or is not a database of Tradewind.
        StoreMismatch: a newer release wrote the file.
    """
    if not os.path.isfile(file):
        raise NotFound(f"there is no file {file}. To make a backup: tradewind db backup FILE")
    try:
        with closing(SqliteEngine(os.path.abspath(file), read_only=True)) as engine:
            problems = engine.problems(5)
            number, newest = schema.applied(engine), schema.newest(engine.dialect)
            ((runs,),) = engine.rows("SELECT count(*) FROM dag_run")
            secret = engine.row("SELECT key, value FROM variable WHERE is_encrypted = 1 LIMIT 1")
    except (TradewindError, ValueError) as error:
        raise StoreError(f"{file} is not a backup of a Tradewind database: {error}") from None
    _need_sound(file, problems, number, newest)
    return Backup(int(runs), None if secret is None else (secret[0], bytes(secret[1])))


def check_accounts(file: str) -> None:
    """Check a copy of the accounts.

    Raises:
        StoreError: the file is damaged, or contains no accounts of Tradewind.
        StoreMismatch: a newer release wrote the file.
    """
    try:
        with closing(SqliteEngine(os.path.abspath(file), read_only=True)) as engine:
            problems = engine.problems(5)
            number, newest = schema.applied(engine), schema.newest(engine.dialect, schema.ACCOUNTS)
            engine.rows("SELECT count(*) FROM account")
    except (TradewindError, ValueError) as error:
        raise StoreError(f"{file} holds no accounts of Tradewind: {error}") from None
    _need_sound(file, problems, number, newest)


def _need_sound(file: str, problems: list[str], number: int, newest: int) -> None:
    if problems:
        raise StoreError(f"the backup {file} is damaged: {'; '.join(problems)}. Use an older one")
    if number > newest:
        raise StoreMismatch(
            f"the backup {file} has schema {number}, but this release knows only {newest}; "
            "use the release that wrote it, or a newer one"
        )
