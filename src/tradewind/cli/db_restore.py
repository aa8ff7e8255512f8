"""`tradewind db restore`: replace the database with a copy that `tradewind db backup` made."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import click

from tradewind.cli.common import confirm
from tradewind.cli.lock import exclusive_access
from tradewind.model.errors import NotFound, StoreError, StoreMismatch
from tradewind.platform.private_file import sync_folder
from tradewind.settings import Settings, load

_ENDINGS = ("", "-wal", "-shm")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def restore(file: str, yes: bool) -> None:
    """Replace the database with a backup. The present database is kept under another name.

    Stop `standalone` or the scheduler first. Attempts that were running when the backup was made count as lost.
    """
    from tradewind.cli import compose
    from tradewind.cli.lost_database import record_database_path

    settings = load()
    paths = settings.paths
    runs = _check(file)
    _check_key(file, settings)
    paths.prepare()
    with exclusive_access(settings):
        confirm(f"This replaces {paths.database} with {file} ({runs:,} DAG runs). Continue?", yes)
        kept = _replace(file, paths.database)
        if os.path.isdir(paths.spool):  # the reports in the spool belong to runs of the old database
            shutil.rmtree(paths.spool)
        paths.prepare()
        record_database_path(settings)
        store, _ = compose.open_prepared(settings)
        store.close()
        click.echo(f"The database {paths.database} is restored from {file}.")
        if kept is not None:
            click.echo(f"The previous database is now {kept}; delete it when you no longer need it.")


def _check(file: str) -> int:
    """Check a backup and return its number of DAG runs.

    Raises:
        NotFound: there is no such file.
        StoreError: the file is damaged or is not a database of Tradewind.
        StoreMismatch: a newer release wrote the file.
    """
    from tradewind.store.schema import migrations

    if not os.path.isfile(file):
        raise NotFound(f"there is no file {file}. To make a backup: tradewind db backup FILE")
    try:
        with closing(sqlite3.connect(f"file:{os.path.abspath(file)}?mode=ro", uri=True)) as db:
            problems = [row[0] for row in db.execute("PRAGMA integrity_check(5)")]
            if problems != ["ok"]:
                raise StoreError(f"the backup {file} is damaged: {'; '.join(problems)}. Use an older one")
            schema = int(db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()[0])
            runs = int(db.execute("SELECT count(*) FROM dag_run").fetchone()[0])
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise StoreError(f"{file} is not a backup of a Tradewind database: {error}") from None
    newest = migrations()[-1].number
    if schema > newest:
        raise StoreMismatch(
            f"the backup {file} has schema {schema}, but this release knows only {newest}; "
            "use the release that wrote it, or a newer one"
        )
    return runs


def _check_key(file: str, settings: Settings) -> None:
    """Refuse a backup whose secrets the present key cannot decrypt; otherwise each task that needs a secret would fail later."""
    from tradewind.store.crypto import open_vault

    with closing(sqlite3.connect(f"file:{os.path.abspath(file)}?mode=ro", uri=True)) as db:
        row = db.execute("SELECT key, value FROM variable WHERE is_encrypted LIMIT 1").fetchone()
    if row is not None:
        vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)
        vault.decrypt(row[1].decode() if isinstance(row[1], bytes) else row[1], f"variable {row[0]!r} of {file}")


def _replace(file: str, database: str) -> str | None:
    """Replace the database with a backup in one step. Returns the new path of the previous database, None if there was none."""
    draft = f"{database}.restoring-{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(file, "rb") as source, os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        kept = None
        if os.path.exists(database):
            kept = f"{database}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
            # the database file itself is moved last: if this is interrupted, a second restore finds it and completes the move
            for ending in reversed(_ENDINGS):
                if os.path.exists(database + ending):
                    os.rename(database + ending, kept + ending)
        os.rename(draft, database)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise
    sync_folder(os.path.dirname(database))
    return kept
