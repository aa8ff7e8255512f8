"""`tradewind db …`"""

from __future__ import annotations

import os
import time
from typing import Any

import click

from tradewind.cli.common import reading
from tradewind.cli.lazy import Lazy, LazyGroup
from tradewind.cli.lock import WriterLock
from tradewind.cli.output import output_option, show_one
from tradewind.model.errors import StoreBusy, StoreError, TradewindError
from tradewind.settings import Settings, load


class Db(LazyGroup):
    lazy = {
        "check-migrations": Lazy("db_upkeep:check_migrations", "Wait until the database has this release's schema."),
        "clean": Lazy("db_upkeep:clean", "Delete old runs."),
        "backup": Lazy("db_upkeep:backup", "Copy the database into a file, while everything runs."),
        "restore": Lazy("db_restore:restore", "Put a backup in the place of the database."),
        "reset": Lazy("db_upkeep:reset", "Delete the database and make a new one."),
        "shell": Lazy("db_upkeep:shell", "Open the database in the sqlite3 program, for reading."),
        "downgrade": Lazy("db_upkeep:downgrade", "Says what to do instead of going back."),
        "export-archived": Lazy("db_upkeep:export_archived", "Nothing is archived here; says so."),
        "drop-archived": Lazy("db_upkeep:export_archived", "Nothing is archived here; says so.", hidden=True),
        "init": Lazy("db:migrate", "Airflow 2's name of migrate.", hidden=True),
        "upgrade": Lazy("db:migrate", "Airflow 2's name of migrate.", hidden=True),
    }


@click.group(cls=Db)
def db() -> None:
    """The database: bring it up to date, check it, clean it."""


@db.command()
def migrate() -> None:
    """Create the database, or bring it up to this release's schema. A scheduler does the same when it starts."""
    from tradewind.cli import compose

    settings = load()
    settings.paths.prepare()
    lock = WriterLock(settings.paths.lock)
    try:
        lock.take()
    except StoreBusy:
        with reading(settings):  # refuses a schema that is not this release's
            click.echo(f"The database is up to date; a live scheduler looks after it ({settings.paths.database}).")
        return
    try:
        existed = os.path.exists(settings.paths.database)
        store, _ = compose.open_prepared(settings)
        store.close()
        click.echo(f"The database is {'up to date' if existed else 'created'} ({settings.paths.database}).")
    finally:
        lock.release()


@db.command()
@click.option("--retry", type=click.IntRange(0), default=0, show_default=True, help="Try so many times more before giving up.")
@click.option("--retry-delay", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds between two tries.")
@click.option("--integrity", is_flag=True, help="Also read all of it and check every index (slow for big databases).")
@output_option
def check(retry: int, retry_delay: float, integrity: bool, output: str) -> None:
    """Can the database be read, is its schema this release's, and (with --integrity) is all of it sound?"""
    settings = load()
    for left in range(retry, -1, -1):
        try:
            found = _looked_at(settings, integrity)
            break
        except (TradewindError, OSError) as error:
            if not left:
                raise
            click.echo(f"{error}; {left} more tries", err=True)
            time.sleep(retry_delay)
    if output == "table":
        click.echo(f"The database answers ({settings.paths.database}, schema {found['schema']}).")
    else:
        show_one(found, output)


def _looked_at(settings: Settings, integrity: bool) -> dict[str, Any]:
    """What a look at the database tells. Raises TradewindError when it is not sound."""
    from tradewind.store.schema import applied

    with reading(settings) as store:
        found: dict[str, Any] = {
            "database": settings.paths.database,
            "schema": applied(store.engine),
            "bytes": os.path.getsize(settings.paths.database),
            "journal_mode": store.engine.pragmas()["journal_mode"],
        }
        if integrity:
            problems = [row[0] for row in store.engine.rows("PRAGMA integrity_check(20)")]
            if problems != ["ok"]:
                raise StoreError(f"the database {settings.paths.database} is damaged: {'; '.join(problems)}")
            found["integrity"] = "ok"
    return found
