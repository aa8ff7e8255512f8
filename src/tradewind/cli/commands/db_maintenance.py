"""`tradewind db check-migrations`, `reset`, `clean`, `shell`, `downgrade` and `export-archived`."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

import click

from tradewind.cli.commands.dags_maintenance import remove_spills
from tradewind.cli.common import MOMENT, command_client, confirm, reading
from tradewind.cli.completers import complete_dags
from tradewind.cli.locks import exclusive_access, refuse_active_scheduler
from tradewind.cli.output import output_option, preview_format, show
from tradewind.cli.progress import progress
from tradewind.cli.worker_hosts import delete_spools
from tradewind.model.counts import counted
from tradewind.model.errors import NotFound, NotYetSupported, TradewindError
from tradewind.settings import Settings, load

_LOOK_AGAIN_SECONDS = 0.2
_KEPT = 1
"""How many of the newest runs of each DAG are kept, as in Airflow."""
_TABLES = ("dag_run", "task_instance", "xcom", "log", "job")


@click.command("check-migrations")
@click.option(
    "-t", "--migration-wait-timeout", type=click.FloatRange(0), default=60, show_default=True, help="How many seconds to wait."
)
def check_migrations(migration_wait_timeout: float) -> None:
    """Wait until the database has the schema of this release. The exit code is 1 if that takes too long."""
    settings, deadline = load(), time.monotonic() + migration_wait_timeout
    while True:
        try:
            with reading(settings):
                pass
        except (TradewindError, OSError) as error:
            if time.monotonic() > deadline:
                raise click.ClickException(
                    f"the database did not get the schema of this release within {migration_wait_timeout:g} s: {error}"
                ) from None
            time.sleep(_LOOK_AGAIN_SECONDS)
        else:
            click.echo(f"The database has the schema of this release ({settings.store_name}).")
            return


@click.command()
@click.option("-s", "--skip-init", is_flag=True, help="Do not create a new database.")
@click.option("-m", "--use-migration-files", is_flag=True, hidden=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def reset(skip_init: bool, use_migration_files: bool, yes: bool) -> None:
    """Delete the database with all DAGs, runs, variables and connections, and create a new one. Logs, keys and users stay.

    Stop `standalone` or the scheduler first.
    """
    from tradewind.cli.compose.database import open_prepared
    from tradewind.cli.lost_database import clear_database_path

    settings = load()
    paths = settings.paths
    paths.prepare()
    with exclusive_access(settings):
        refuse_active_scheduler(settings)
        confirm(f"This deletes all data in {settings.store_name}. It cannot be undone. Continue?", yes)
        gone = _delete_tables(settings) if settings.database.url is not None else _delete_files(paths.database)
        delete_spools(settings)
        if os.path.isdir(paths.xcom):
            shutil.rmtree(paths.xcom)
        paths.prepare()
        clear_database_path(settings)
        click.echo(f"The database {settings.store_name} is deleted." if gone else "There was no database.")
        if not skip_init:
            store, _ = open_prepared(settings, create_new=True)
            store.close()
            click.echo("A new database is created.")


def _delete_files(database: str) -> bool:
    gone = [name for ending in ("", "-wal", "-shm") if os.path.exists(name := database + ending)]
    for name in gone:
        os.unlink(name)
    return bool(gone)


def _delete_tables(settings: Settings) -> bool:
    """Delete Tradewind's tables from the database of a server; its other tables stay."""
    from tradewind.store.factory import erase

    return erase(settings.store)


@click.command()
@click.option("--clean-before-timestamp", "before", type=MOMENT, required=True, help="Delete runs that ended before this date.")
@click.option(
    "--dag-ids",
    multiple=True,
    shell_complete=complete_dags,
    help="Only runs of these DAGs, separated by commas; can be repeated.",
)
@click.option("--exclude-dag-ids", multiple=True, shell_complete=complete_dags, help="Keep the runs of these DAGs.")
@click.option(
    "-t", "--tables", help="As in Airflow, separated by commas. Must contain dag_run: runs are deleted with all their rows."
)
@click.option("--batch-size", type=click.IntRange(1), hidden=True)
@click.option("--skip-archive", is_flag=True, hidden=True)
@click.option("--error-on-cleanup-failure", is_flag=True, hidden=True)
@click.option("-v", "--verbose", is_flag=True, hidden=True)
@click.option("--dry-run", is_flag=True, help="Only list how many runs would be deleted.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
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
    """Delete old runs with their task instances, XComs, history and logs. The newest run of each DAG is kept. There is no archive.

    The scheduler deletes the logs within a minute, or when it starts.
    """
    from tradewind.wire import commands as c

    if tables is not None and "dag_run" not in (names := [name.strip() for name in tables.split(",")]):
        raise click.UsageError(
            f"--tables {tables}: rows of runs are deleted together with their runs; give dag_run, or leave out --tables"
            + ("" if set(names) <= set(_TABLES) else f" (known tables: {', '.join(_TABLES)})")
        )
    settings = load()
    with reading(settings) as store:
        wanted = _names(dag_ids) or store.dag_ids()
        for name in (*wanted, *_names(exclude_dag_ids)):
            store.need_dag(name)
        chosen = [name for name in wanted if name not in _names(exclude_dag_ids)]
        counts = {name: store.count_deletable_runs(before, _KEPT, name) for name in chosen}
    rows: list[dict[str, Any]] = [{"dag_id": name, "runs": count} for name, count in counts.items() if count]
    total = sum(counts.values())
    if dry_run or not rows:
        show(rows, output, ("dag_id", "runs"), empty="There are no runs to delete.")
        if rows and output == "table":
            click.echo(f"{counted(total, 'run')} would be deleted; nothing was changed.", err=True)
        return
    confirm(f"This deletes {counted(total, 'run')} of {counted(len(rows), 'DAG')}. Continue?", yes)
    client, done = command_client(settings), {}
    with progress("Deleting runs", total) as bar:
        for row in rows:
            done[row["dag_id"]] = 0
            while True:
                step = client.call(c.Retire(before, row["dag_id"], _KEPT))
                remove_spills(settings, step.spills)
                if not step.runs:
                    break
                done[row["dag_id"]] += step.runs
                bar.advance(step.runs)
    if output == "table":
        click.echo(f"Deleted {counted(sum(done.values()), 'run')} of {counted(len(done), 'DAG')}.")
    else:
        show([{"dag_id": name, "runs": count} for name, count in done.items()], output, ("dag_id", "runs"))


def _names(given: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def downgrade(words: tuple[str, ...]) -> None:
    """Not possible: the schema cannot go back to an older version. Prints how to restore a backup instead."""
    raise NotYetSupported(
        "the schema of the database cannot be downgraded. Install the release that made your backup, "
        "and restore the backup with it: tradewind db restore FILE"
    )


@click.command()
@click.argument("words", nargs=-1)
def shell(words: tuple[str, ...]) -> None:
    """Open the database read-only in sqlite3 or psql; only the scheduler writes. With SQL as arguments, run that and exit."""
    from tradewind.store.file import shell_command

    settings = load()
    if settings.database.url is not None:
        from tradewind.cli import database_server  # lazy import: only with a database server

        if shutil.which("psql") is not None or not words:
            database_server.shell(settings, " ".join(words))
        _query(" ".join(words))
        return
    path = settings.paths.database
    if not os.path.exists(path):
        raise NotFound(f"there is no database yet ({path}). Start: tradewind standalone (or: tradewind db migrate)")
    command = shell_command(path, " ".join(words))
    program = shutil.which(command[0])
    if program is None:
        if not words:
            raise NotFound(
                "the sqlite3 program is not installed (Debian: apt install sqlite3). Without it: tradewind db shell 'SELECT …'"
            )
        _query(" ".join(words))
        return
    os.execv(program, [program, *command[1:]])


def _query(sql: str) -> None:
    """Execute one statement and print its rows."""
    with reading() as store:
        names, rows = store.query(sql)
    show([dict(zip(names, row, strict=True)) for row in rows], preview_format(), names)


@click.command("export-archived", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def export_archived(words: tuple[str, ...]) -> None:
    """There is no archive: `db clean` deletes rows. Prints how to make a backup."""
    click.echo("There is no archive: `tradewind db clean` deletes rows. To keep a copy, first run: tradewind db backup FILE")
