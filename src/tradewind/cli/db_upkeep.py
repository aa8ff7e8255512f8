"""`tradewind db …`, the part that takes away, copies, waits and refuses."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

import click

from tradewind.cli.common import MOMENT, door, home_lock, reading, say_if_offline, sure
from tradewind.cli.completion import complete_dags
from tradewind.cli.dag_upkeep import remove_spills
from tradewind.cli.lock import HomeLock, WriterLock
from tradewind.cli.output import asked_about, output_option, show
from tradewind.cli.progress import progress
from tradewind.model.errors import NotFound, NotYetSupported, StoreBusy, StoreError, TradewindError
from tradewind.settings import load

_LOOK_AGAIN_SECONDS = 0.2
_KEPT = 1
"""The newest run of each DAG stays, as in Airflow."""
_TABLES = ("dag_run", "task_instance", "xcom", "log", "job")


@click.command("check-migrations")
@click.option(
    "-t", "--migration-wait-timeout", type=click.FloatRange(0), default=60, show_default=True, help="Seconds to wait."
)
def check_migrations(migration_wait_timeout: float) -> None:
    """Wait until the database has this release's schema. The exit code is 1 when it does not come to that in time."""
    settings, deadline = load(), time.monotonic() + migration_wait_timeout
    while True:
        try:
            with reading(settings):
                pass
        except (TradewindError, OSError) as error:
            if time.monotonic() > deadline:
                raise click.ClickException(f"not within {migration_wait_timeout:g} s: {error}") from None
            time.sleep(_LOOK_AGAIN_SECONDS)
        else:
            click.echo(f"The database has this release's schema ({settings.paths.database}).")
            return


@click.command()
@click.option("-s", "--skip-init", is_flag=True, help="Do not make a new database.")
@click.option("-m", "--use-migration-files", is_flag=True, hidden=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def reset(skip_init: bool, use_migration_files: bool, yes: bool) -> None:
    """Delete the database with all DAGs, runs, variables and connections, and make a new one. Logs, keys and logins stay.

    Nothing may run meanwhile: stop `standalone` or the scheduler first.
    """
    from tradewind.cli import compose
    from tradewind.cli.lost_database import forget_database

    settings = load()
    paths = settings.paths
    paths.prepare()
    home, writer = HomeLock(home_lock(settings)), WriterLock(paths.lock)
    home.take()
    try:
        writer.take()
        sure(f"This deletes everything in {paths.database}. There is no way back. Go on?", yes)
        gone = [name for ending in ("", "-wal", "-shm") if os.path.exists(name := paths.database + ending)]
        for name in gone:
            os.unlink(name)
        for folder in (paths.xcom, paths.spool):  # verdicts that wait there belong to runs of the old database
            if os.path.isdir(folder):
                shutil.rmtree(folder)
        paths.prepare()
        forget_database(settings)
        click.echo(f"The database {paths.database} is deleted." if gone else "There was no database.")
        if not skip_init:
            store, _ = compose.open_prepared(settings, anew=True)
            store.close()
            click.echo("A new one is made.")
    finally:
        writer.release()
        home.release()


@click.command()
@click.option(
    "--clean-before-timestamp", "before", type=MOMENT, required=True, help="Delete runs that ended before this moment."
)
@click.option(
    "--dag-ids", multiple=True, shell_complete=complete_dags, help="Only of these DAGs, commas between or given again."
)
@click.option("--exclude-dag-ids", multiple=True, shell_complete=complete_dags, help="Not of these DAGs.")
@click.option("-t", "--tables", help="As in Airflow, commas between; only dag_run, with all that belongs to runs, is cleaned.")
@click.option("--batch-size", type=click.IntRange(1), hidden=True)
@click.option("--skip-archive", is_flag=True, hidden=True)
@click.option("--error-on-cleanup-failure", is_flag=True, hidden=True)
@click.option("-v", "--verbose", is_flag=True, hidden=True)
@click.option("--dry-run", is_flag=True, help="Only tell how much would be deleted.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
def clean(
    before: int,
    dag_ids: tuple[str, ...],
    exclude_dag_ids: tuple[str, ...],
    tables: str | None,
    batch_size: int | None,
    skip_archive: bool,
    error_on_cleanup_failure: bool,
    verbose: bool,
    dry_run: bool,
    yes: bool,
    output: str,
) -> None:
    """Delete old runs with their task instances, XComs, journal and logs. The newest run of each DAG stays; there is no archive.

    The scheduler deletes the logs within a minute, or when it starts.
    """
    if tables is not None and "dag_run" not in (names := [name.strip() for name in tables.split(",")]):
        raise click.UsageError(
            f"--tables {tables}: task instances, XComs and attempts go with their runs; give dag_run, or leave --tables out"
            + ("" if set(names) <= set(_TABLES) else f" (known here: {', '.join(_TABLES)})")
        )
    settings = load()
    with reading(settings) as store:
        wanted = _names(dag_ids) or store.dag_ids()
        for name in (*wanted, *_names(exclude_dag_ids)):
            store.need_dag(name)
        chosen = [name for name in wanted if name not in _names(exclude_dag_ids)]
        counts = {name: store.retirable(before, _KEPT, name) for name in chosen}
    rows: list[dict[str, Any]] = [{"dag_id": name, "runs": count} for name, count in counts.items() if count]
    total = sum(counts.values())
    if dry_run or not rows:
        show(rows, output, ("dag_id", "runs"), empty="There is nothing to delete.")
        if rows and output == "table":
            click.echo(f"{total} runs would be deleted; nothing was changed.", err=True)
        return
    sure(f"This deletes {total} runs of {len(rows)} DAGs. Go on?", yes)
    way, done = door(settings), {}
    with progress("Deleting runs", total) as bar:
        for row in rows:
            done[row["dag_id"]] = 0
            while True:
                answer = way.call("retire", before=before, dag_id=row["dag_id"], keep=_KEPT)
                remove_spills(settings, answer["spills"])
                if not answer["runs"]:
                    break
                done[row["dag_id"]] += answer["runs"]
                bar.advance(answer["runs"])
    if output == "table":
        click.echo(f"{sum(done.values())} runs of {len(done)} DAGs are deleted.")
    else:
        show([{"dag_id": name, "runs": count} for name, count in done.items()], output, ("dag_id", "runs"))


def _names(given: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
def backup(file: str) -> None:
    """Copy the database into a new file, while everything runs. The key file is not in it: keep that apart."""
    settings = load()
    if os.path.lexists(file):
        raise click.ClickException(f"{file} exists; a backup never replaces a file")
    with reading(settings) as store:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(file)
        before = os.umask(0o077)
        try:
            store.engine.rows("VACUUM INTO ?", (file,))
        finally:
            os.umask(before)
    click.echo(
        f"The database was copied to {file} ({os.path.getsize(file):,} bytes). Its secrets need {settings.paths.fernet_key}."
    )


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def downgrade(words: tuple[str, ...]) -> None:
    """Going back to an older schema is not possible; says what to do instead."""
    raise NotYetSupported(
        "the database cannot be taken back to an older schema. Put back the copy that you made before the new release "
        "(tradewind db backup FILE), and start the release that wrote it"
    )


@click.command()
@click.argument("words", nargs=-1)
def shell(words: tuple[str, ...]) -> None:
    """Open the database in the sqlite3 program, for reading: only the scheduler writes. SQL after it is carried out at once."""
    path = load().paths.database
    if not os.path.exists(path):
        raise NotFound(f"there is no database yet ({path}). Start: tradewind standalone (or: tradewind db migrate)")
    program = shutil.which("sqlite3")
    if program is None:
        if not words:
            raise NotFound(
                "the sqlite3 program is not installed (Debian: apt install sqlite3). Or give SQL: tradewind db shell 'SELECT …'"
            )
        _query(" ".join(words))
        return
    os.execv(program, [program, "-readonly", path, *([" ".join(words)] if words else [])])


def _query(sql: str) -> None:
    """Carry out one statement and write its rows."""
    import sqlite3  # lazy door: only without the program

    with reading() as store:
        try:
            cursor = store.engine.db.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            found: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in cursor]
        except sqlite3.Error as error:
            raise StoreError(f"the database answered: {error}") from None
    show(found, asked_about(), names)


@click.command("export-archived", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def export_archived(words: tuple[str, ...]) -> None:
    """Nothing is archived here: `db clean` deletes. Says so."""
    click.echo("There is no archive: `tradewind db clean` deletes. Keep a copy first with: tradewind db backup FILE")


@click.command("rotate-fernet-key")
def rotate_fernet_key() -> None:
    """Encrypt all variables and connections with the newest key.

    First put the new key before the old one: as the first line of the key file, or first in secrets.fernet_key; and restart the
    scheduler, so that it writes with it.
    """
    from tradewind.cli.connection_files import decrypted
    from tradewind.store.crypto import open_vault

    settings = load()
    vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)

    def stale(stored: bytes | None) -> bool:
        return stored is not None and vault.needs_rotation(stored.decode())

    with reading(settings) as store:
        variables = [row for row in store.variables() if not row.is_encrypted or stale(row.value)]
        connections = [row for row in store.connections() if stale(row.password) or stale(row.extra)]
    way = door(settings)
    with progress("Encrypting", len(variables) + len(connections)) as bar:
        for row in variables:
            value = row.value.decode()
            plain = vault.decrypt(value, f"variable {row.key!r}") if row.is_encrypted else value
            way.call("set_variable", key=row.key, value=plain, description=row.description)
            bar.advance()
        for connection in connections:
            way.call("set_connection", conn_id=connection.conn_id, **decrypted(settings, connection))
            bar.advance()
    with reading(settings) as store:
        left = sum(stale(row.value) for row in store.variables())
        left += sum(stale(row.password) or stale(row.extra) for row in store.connections())
    if left:
        raise StoreBusy(f"{left} values are still under an older key: the live scheduler does not know the new one; restart it")
    click.echo(f"{len(variables)} variables and {len(connections)} connections are now under key {vault.key_ids[0]}.")
    say_if_offline(way)
