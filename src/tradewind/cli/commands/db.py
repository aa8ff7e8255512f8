"""`tradewind db migrate` and `check`; the other commands of the group are in the modules of `Db.lazy`."""

from __future__ import annotations

import time
from typing import Any

import click

from tradewind.cli.command_groups import LazyCommand, LazyGroup
from tradewind.cli.common import reading
from tradewind.cli.locks import writer_lock
from tradewind.cli.output import output_option, show_one
from tradewind.model.counts import counted
from tradewind.model.errors import StoreBusy, StoreError, TradewindError
from tradewind.settings import Settings, load


class Db(LazyGroup):
    lazy = {
        "check-migrations": LazyCommand(
            "db_maintenance:check_migrations", "Wait until the database has this release's schema."
        ),
        "clean": LazyCommand("db_maintenance:clean", "Delete old runs with their task instances, XComs and logs."),
        "backup": LazyCommand("db_backup:backup", "Copy the database to a file, also while services run."),
        "restore": LazyCommand("db_backup:restore", "Replace the database with a backup."),
        "move": LazyCommand("db_move:move", "Copy the SQLite database into an empty PostgreSQL database."),
        "reset": LazyCommand("db_maintenance:reset", "Delete the database and create a new one."),
        "shell": LazyCommand("db_maintenance:shell", "Open the database read-only in sqlite3 or psql."),
        "downgrade": LazyCommand("db_maintenance:downgrade", "Not possible; prints how to restore a backup instead."),
        "export-archived": LazyCommand("db_maintenance:export_archived", "There is no archive; prints how to make a backup."),
        "drop-archived": LazyCommand(
            "db_maintenance:export_archived", "There is no archive; prints how to make a backup.", hidden=True
        ),
        "init": LazyCommand("db:migrate", "Airflow 2's name for migrate.", hidden=True),
        "upgrade": LazyCommand("db:migrate", "Airflow 2's name for migrate.", hidden=True),
    }


@click.group(cls=Db)
def db() -> None:
    """Create, migrate, check, back up and clean the database."""


@db.command()
def migrate() -> None:
    """Create the database, or migrate it to the schema of this release. A scheduler does the same when it starts."""
    from tradewind.cli.compose.database import is_new, open_prepared

    settings = load()
    settings.paths.prepare()
    lock = writer_lock(settings)
    try:
        lock.acquire()
    except StoreBusy:
        with reading(settings):  # fails if the schema is not the one of this release
            click.echo(f"The database is up to date; a scheduler is using it ({settings.store_name}).")
        return
    try:
        existed = not is_new(settings)
        store, _ = open_prepared(settings)
        store.close()
        click.echo(f"The database is {'up to date' if existed else 'created'} ({settings.store_name}).")
    finally:
        lock.release()


@db.command()
@click.option("--retry", type=click.IntRange(0), default=0, show_default=True, help="Retry this many times before failing.")
@click.option("--retry-delay", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds between two attempts.")
@click.option("--integrity", is_flag=True, help="Also read all rows and check every index (slow for big databases).")
@output_option
def check(retry: int, retry_delay: float, integrity: bool, output: str) -> None:
    """Check that the database can be read and has the schema of this release; with --integrity, that it is not damaged."""
    settings = load()
    for left in range(retry, -1, -1):
        try:
            found = _inspect(settings, integrity)
            break
        except (TradewindError, OSError) as error:
            if not left:
                raise
            click.echo(f"{error}; {counted(left, 'attempt')} left", err=True)
            time.sleep(retry_delay)
    if output == "table":
        click.echo(f"The database is in order ({settings.store_name}, schema {found['schema']}).")
    else:
        show_one(found, output)


def _inspect(settings: Settings, integrity: bool) -> dict[str, Any]:
    """Facts about the database. Raises TradewindError if it cannot be read or is damaged."""
    with reading(settings) as store:
        found: dict[str, Any] = {
            "database": settings.store_name,
            "schema": store.schema_number(),
            "bytes": store.size(),
            **store.kind(),
        }
        if integrity:
            problems = store.problems(20)
            if problems:
                raise StoreError(f"the database {settings.store_name} is damaged: {'; '.join(problems)}")
            found["integrity"] = "ok"
    return found
