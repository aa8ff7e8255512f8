"""`tradewind db backup` and `restore`."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from tradewind.cli.common import confirm, reading
from tradewind.cli.locks import exclusive_access
from tradewind.cli.worker_hosts import delete_spools
from tradewind.platform.private_file import sync_folder
from tradewind.settings import Settings, load

if TYPE_CHECKING:
    from tradewind.store.backups import Backup


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
def backup(file: str) -> None:
    """Copy the database to a new file, also while services run. The copy does not contain the key file: back it up separately."""
    settings = load()
    if os.path.lexists(file):
        raise click.ClickException(f"{file} exists; a backup does not overwrite files")
    with reading(settings) as store:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(file)
        before = os.umask(0o077)
        try:
            store.back_up(file)
        finally:
            os.umask(before)
    click.echo(
        f"The database was copied to {file} ({os.path.getsize(file):,} bytes). Its secrets need {settings.paths.fernet_key}."
    )


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def restore(file: str, yes: bool) -> None:
    """Replace the database with a backup. The present database is kept under another name.

    Stop `standalone` or the scheduler first. Attempts that were running when the backup was made count as lost.
    """
    from tradewind.cli import compose
    from tradewind.cli.lost_database import record_database_path
    from tradewind.store.backups import inspect_backup

    settings = load()
    paths = settings.paths
    backup = inspect_backup(file)
    _check_key(file, backup, settings)
    paths.prepare()
    with exclusive_access(settings):
        confirm(f"This replaces {paths.database} with {file} ({backup.runs:,} DAG runs). Continue?", yes)
        kept = _replace(file, paths.database)
        delete_spools(settings)
        paths.prepare()
        record_database_path(settings)
        store, _ = compose.open_prepared(settings)
        store.close()
        click.echo(f"The database {paths.database} is restored from {file}.")
        if kept is not None:
            click.echo(f"The previous database is now {kept}; delete it when you no longer need it.")


def _check_key(file: str, backup: Backup, settings: Settings) -> None:
    """Refuse a backup whose secrets the present key cannot decrypt; otherwise each task that needs a secret would fail later."""
    from tradewind.store.crypto import open_vault

    if backup.secret is not None:
        key, value = backup.secret
        vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)
        vault.decrypt(value.decode(), f"variable {key!r} of {file}")


def _replace(file: str, database: str) -> str | None:
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
