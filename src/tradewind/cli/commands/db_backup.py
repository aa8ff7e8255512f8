"""`tradewind db backup` and `restore`."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from tradewind.cli.account_backups import ENDING, back_up_accounts, check_copy, restore_accounts
from tradewind.cli.common import confirm
from tradewind.cli.locks import exclusive_access, refuse_active_scheduler
from tradewind.cli.worker_hosts import delete_spools
from tradewind.model.errors import StoreError
from tradewind.platform.private_file import sync_folder
from tradewind.settings import Settings, load

if TYPE_CHECKING:
    from tradewind.store.backups import Backup


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
def backup(file: str) -> None:
    """Copy the database to a new file, and the accounts to FILE.accounts, also while services run.

    The copies do not contain the key file: back it up separately. The database may have the schema of an older release, so a
    backup is possible before `db migrate`.
    """
    from tradewind.cli.compose.database import open_reader

    settings = load()
    for one in (file, file + ENDING):
        if os.path.lexists(one):
            raise click.ClickException(f"{one} exists; a backup does not overwrite files")
    if settings.database.url is not None:
        from tradewind.cli import database_server  # lazy import: only with a database server

        with closing(open_reader(settings, allow_older=True)):
            database_server.back_up(settings, _create_empty_private(file))
        _report(file, settings)
        return
    with closing(open_reader(settings, allow_older=True)) as store:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(file)
        before = os.umask(0o077)
        try:
            store.back_up(file)
        finally:
            os.umask(before)
    _report(file, settings)


def _create_empty_private(file: str) -> str:
    """Create an empty file that only this user can read, and return its path."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return file


def _report(file: str, settings: Settings) -> None:
    accounts = back_up_accounts(settings, file)
    click.echo(
        f"The database was copied to {file} ({os.path.getsize(file):,} bytes). Its secrets need {settings.paths.fernet_key}."
    )
    if accounts is not None:
        click.echo(f"The accounts were copied to {accounts}.")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--accounts", is_flag=True, help="Replace the accounts, too. Default: only where there are none.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def restore(file: str, accounts: bool, yes: bool) -> None:
    """Replace the database with a backup. The present database is kept under another name.

    Stop `standalone` or the scheduler first. Attempts that were running when the backup was made count as lost.
    """
    from tradewind.cli.compose.database import open_prepared
    from tradewind.cli.lost_database import record_database_path
    from tradewind.store.backups import inspect_backup

    settings = load()
    check_copy(settings, file, accounts)
    paths = settings.paths
    if settings.database.url is not None:
        _restore_on_server(file, settings, yes, accounts)
        return
    backup = inspect_backup(file)
    _check_key(file, backup, settings)
    paths.prepare()
    with exclusive_access(settings):
        confirm(f"This replaces {paths.database} with {file} ({backup.runs:,} DAG runs). Continue?", yes)
        kept = _replace_database(file, paths.database)
        delete_spools(settings)
        paths.prepare()
        record_database_path(settings)
        store, _ = open_prepared(settings)
        store.close()
        click.echo(f"The database {paths.database} is restored from {file}.")
        if kept is not None:
            click.echo(f"The previous database is now {kept}; delete it when you no longer need it.")
        for sentence in restore_accounts(settings, file, accounts):
            click.echo(sentence)


def _restore_on_server(file: str, settings: Settings, yes: bool, accounts: bool) -> None:
    from tradewind.cli import database_server  # lazy import: only with a database server
    from tradewind.cli.compose.database import open_prepared
    from tradewind.cli.lost_database import record_database_path

    if not database_server.is_backup(file):
        raise StoreError(f"{file} is not a backup of a PostgreSQL database; make one with: tradewind db backup FILE")
    settings.paths.prepare()
    with exclusive_access(settings):
        refuse_active_scheduler(settings)
        confirm(f"This replaces the tables of Tradewind in {settings.store_name} with {file}. Continue?", yes)
        database_server.restore(settings, file)
        delete_spools(settings)
        record_database_path(settings)
        store, _ = open_prepared(settings)
        store.close()
    click.echo(f"The database {settings.store_name} is restored from {file}.")
    for sentence in restore_accounts(settings, file, accounts):
        click.echo(sentence)


def _check_key(file: str, backup: Backup, settings: Settings) -> None:
    """Refuse a backup whose secrets the present key cannot decrypt; otherwise each task that needs a secret would fail later."""
    from tradewind.store.crypto import open_vault

    if backup.secret is not None:
        key, value = backup.secret
        vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)
        vault.decrypt(value.decode(), f"variable {key!r} of {file}")


def _replace_database(file: str, database: str) -> str | None:
    """Replace the database with a backup in one step. Returns the new path of the previous database, None if there was none."""
    from tradewind.store.file import SIDE_FILES

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
            for ending in (*SIDE_FILES, ""):
                if os.path.exists(database + ending):
                    os.rename(database + ending, kept + ending)
        os.rename(draft, database)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise
    sync_folder(os.path.dirname(database))
    return kept
