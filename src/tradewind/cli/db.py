"""`tradewind db …`"""

from __future__ import annotations

import os
from typing import Any

import click

from tradewind.cli.common import reading
from tradewind.cli.lazy import HelpfulGroup
from tradewind.cli.lock import WriterLock
from tradewind.cli.output import output_option, show_one
from tradewind.model.errors import StoreBusy, StoreError
from tradewind.settings import load


@click.group(cls=HelpfulGroup)
def db() -> None:
    """The database: bring it up to date, check it."""


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
@click.option("--integrity", is_flag=True, help="Also read all of it and check every index (slow for big databases).")
@output_option
def check(integrity: bool, output: str) -> None:
    """Can the database be read, is its schema this release's, and (with --integrity) is all of it sound?"""
    from tradewind.store.schema import applied

    settings = load()
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
    if output == "table":
        click.echo(f"The database answers ({settings.paths.database}, schema {found['schema']}).")
    else:
        show_one(found, output)
