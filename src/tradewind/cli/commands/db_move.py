"""`tradewind db move`: from the SQLite file to a PostgreSQL database."""

from __future__ import annotations

import os
import socket
import sys
from datetime import UTC, datetime

import click

from tradewind.cli.common import confirm
from tradewind.cli.locks import exclusive_access
from tradewind.model.counts import counted
from tradewind.model.database_urls import on_server, without_password
from tradewind.model.errors import ConfigError, Conflict, NotFound
from tradewind.observe.failpoints import fp
from tradewind.settings import Settings, load

_THEN = """
  tradewind db move URL
  export TRADEWIND__DATABASE__URL=URL
  tradewind standalone
A task that does not finish in time costs a try, and is tried again after the move."""
"""What follows after `standalone` has been stopped."""


@click.command()
@click.argument("url")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def move(url: str, yes: bool) -> None:
    """Copy the SQLite database into an empty PostgreSQL database; runs continue there.

    URL is postgresql://user:password@host:port/database; "-" reads it from stdin, so that the password is on no command line. Stop
    `standalone` or the scheduler first. Afterwards set TRADEWIND__DATABASE__URL to the same URL, and start it again. Users, the key
    file, logs and files of large XComs stay in the home folder.
    """
    settings = load()
    target = (sys.stdin.readline() if url == "-" else url).strip()
    if not on_server(target):
        raise ConfigError(f"{target!r} is not the URL of a server; it must be postgresql://user:password@host:port/database")
    if settings.database.url is not None:
        raise Conflict(
            f"database.url is set to {settings.store_name}, so the SQLite file is not in use. Unset TRADEWIND__DATABASE__URL "
            "for this command"
        )
    source = settings.paths.database
    if not os.path.exists(source):
        raise NotFound(f"there is no database to move ({source}); set TRADEWIND__DATABASE__URL and start: tradewind standalone")
    settings.paths.prepare()
    with exclusive_access(settings, _THEN):
        confirm(f"This copies {source} to {without_password(target)}. Continue?", yes)
        copied = _copy(settings, target)
        kept = _rename_database(source)
    runs = copied["dag_run"]
    click.echo(f"{counted(sum(copied.values()), 'row')} copied, of {counted(runs, 'DAG run')}. The file is now {kept}.")
    click.echo("Set TRADEWIND__DATABASE__URL to this URL for every service, then start: tradewind standalone")


def _copy(settings: Settings, target: str) -> dict[str, int]:
    from tradewind.cli.lost_database import write_database_name
    from tradewind.store import factory

    if not factory.holds_nothing(target):
        raise Conflict(
            f"the database {without_password(target)} has rows of Tradewind already; nothing was copied. Name an empty database. "
            "If the rows are from a move that was interrupted, delete them first: TRADEWIND__DATABASE__URL=… tradewind db reset -y"
        )
    holder = os.urandom(8).hex()
    store = factory.open_store(target, holder=holder)
    try:
        lease = factory.open_lease(target, store, holder, socket.gethostname(), os.getpid())
        if lease is not None:
            lease.acquire(0)
        fp("move.tables_created")
        copied = factory.copy_store(settings.paths.database, target)
    except BaseException:
        store.close()
        factory.erase(target)
        raise
    store.close()
    fp("move.copied")
    write_database_name(settings, without_password(target))
    fp("move.named")
    return copied


def _rename_database(database: str) -> str:
    """Rename the file, so that no service continues to use it by mistake. Returns the new path. The write-ahead log is first
    written into the file, so the file is complete even if the process ends between two renames.
    """
    from tradewind.store import factory
    from tradewind.store.file import SIDE_FILES

    source = factory.connect(database, factory.DatabaseOptions(), read_only=False)
    source.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    source.close()
    kept = f"{database}.moved-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for ending in (*SIDE_FILES, ""):
        if not ending:
            fp("move.renaming")
        if os.path.exists(database + ending):
            os.rename(database + ending, kept + ending)
    return kept
