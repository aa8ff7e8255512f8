"""`tradewind import-airflow`: take over variables, connections, pools, roles, users, pause states, runs and asset events of an
Airflow.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.common import MOMENT, command_client, reading
from tradewind.cli.compose.bundles import DAGS_BUNDLE
from tradewind.cli.output import output_option, show
from tradewind.model.errors import NotFound, WrongArgument

if TYPE_CHECKING:
    from tradewind.cli.import_airflow.source import Source
    from tradewind.cli.import_airflow.takeover import ExistingContents
    from tradewind.settings import Settings

URL_VARIABLES = ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__SQL_ALCHEMY_CONN")
KEY_VARIABLE = "AIRFLOW__CORE__FERNET_KEY"
NOTES_SHOWN = 30
_COLUMNS = ("what", "in_airflow", "imported", "unchanged", "left_out")
SUBJECTS = ("variables", "connections", "pools", "roles", "users", "dags", "runs", "assets")


@click.command("import-airflow")
@click.argument("url", required=False, metavar="[DATABASE_URL]")
@click.option(
    "--fernet-key",
    "fernet_keys",
    multiple=True,
    help="Fernet key of Airflow; several are possible, also separated by commas. Default: AIRFLOW__CORE__FERNET_KEY, "
    "or core.fernet_key of airflow.cfg.",
)
@click.option("--only", multiple=True, type=click.Choice(SUBJECTS), help="Only this subject; may be given several times.")
@click.option("--dag-id", "dag_ids", multiple=True, help="Only this DAG and its runs; may be given several times.")
@click.option(
    "--since", type=MOMENT, help="Leave out runs that ended before this date. Default: follows from scheduler.retention_days."
)
@click.option("--all-runs", is_flag=True, help="Import runs of any age.")
@click.option("--all-xcoms", is_flag=True, help="Also import XComs of finished runs.")
@click.option(
    "--activate",
    is_flag=True,
    help="Unpause the DAGs that are active in Airflow, or those of --dag-id. DAGs that Airflow still runs stay paused.",
)
@click.option("--overwrite", is_flag=True, help="Replace variables, connections and pools that exist with another content.")
@click.option("--no-parse", is_flag=True, help="Do not read the DAG folder first.")
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@output_option
def import_airflow(
    url: str | None,
    fernet_keys: tuple[str, ...],
    only: tuple[str, ...],
    dag_ids: tuple[str, ...],
    since: int | None,
    all_runs: bool,
    all_xcoms: bool,
    activate: bool,
    overwrite: bool,
    no_parse: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Take over an Airflow from its database: variables, connections, pools, roles, users, pause states, runs,
    asset events.

    DATABASE_URL is `sql_alchemy_conn` of Airflow 1.10, 2 or 3: SQLite, PostgreSQL or MySQL. Airflow's database is only read. A
    second import adds what is new. The DAG files have to be in the DAG folder. Nothing runs twice: schedules continue after
    the latest run of Airflow, and a DAG that Airflow still runs stays paused in Tradewind.
    """
    from tradewind.cli.commands.roles import set_imported_role
    from tradewind.cli.commands.users import add_imported_user
    from tradewind.cli.import_airflow.database import open_database
    from tradewind.cli.import_airflow.source import Source
    from tradewind.cli.import_airflow.takeover import ImportOptions, Takeover
    from tradewind.cli.import_airflow.values import Keys, Unreadable
    from tradewind.cli.progress import progress
    from tradewind.settings import load

    settings = load()
    given = url or next((os.environ[name] for name in URL_VARIABLES if os.environ.get(name)), None) or _from_file("url")
    if given is None:
        raise WrongArgument("name the database of Airflow: tradewind import-airflow postgresql://user:password@host/airflow")
    keys = [key.strip() for text in fernet_keys or (_fernet_key(),) for key in text.split(",") if key.strip()]
    try:
        decryption = Keys(keys)
    except Unreadable as problem:
        raise WrongArgument(f"--fernet-key: {problem}") from None
    source = Source(open_database(given))
    try:
        _check_dags(source, dag_ids)
        if not no_parse and not dry_run:
            _parse(settings, source)
        now = time.time_ns() // 1000
        if since is None and not all_runs and settings.scheduler.retention_days:
            since = now - round(settings.scheduler.retention_days * 86_400_000_000)
        options = ImportOptions(only or SUBJECTS, dag_ids, since, activate, overwrite, dry_run, all_xcoms)
        client = command_client(settings)
        with progress("Importing runs", None, slow=True) as bar:
            takeover = Takeover(
                source,
                decryption,
                _existing_contents(settings),
                options,
                _xcom_rules(settings, dry_run),
                client.call,
                partial(set_imported_role, settings),
                partial(add_imported_user, settings),
                now,
                bar.advance,
            )
            takeover.run()
    except Unreadable as problem:
        raise click.ClickException(f"the database cannot be read: {problem}") from None
    finally:
        source.close()
    _show_notes(takeover.notes)
    show([count.row() for count in takeover.counts], output, _COLUMNS)
    if dry_run:
        click.echo("Nothing was changed.", err=True)
    elif takeover.scheduler_lives:
        click.echo("A scheduler of Airflow runs: DAGs that it may run stay paused here.", err=True)
    return 0


def _show_notes(notes: list[str]) -> None:
    for note in notes[:NOTES_SHOWN]:
        click.echo(note, err=True)
    if len(notes) > NOTES_SHOWN:
        click.echo(f"… and {len(notes) - NOTES_SHOWN} more.", err=True)


def _from_file(what: str) -> str | None:
    """The URL of the database (`url`), or the Fernet key (`key`), of the airflow.cfg."""
    import configparser

    from tradewind.cli.commands.config_airflow import airflow_config

    path = airflow_config(None)
    if path is None:
        return None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return None
    places = {"url": (("database", "sql_alchemy_conn"), ("core", "sql_alchemy_conn")), "key": (("core", "fernet_key"),)}
    return next((found for place in places[what] if (found := parser.get(*place, fallback=None))), None)


def _fernet_key() -> str:
    return os.environ.get(KEY_VARIABLE) or _from_file("key") or ""


def _check_dags(source: Source, dag_ids: tuple[str, ...]) -> None:
    """Check the DAG ids that the user gave.

    Raises:
        NotFound: Airflow has no such DAG.
    """
    from tradewind.model.errors import did_you_mean

    known = [dag.dag_id for dag in source.dags()] if dag_ids else []
    for dag_id in dag_ids:
        if dag_id not in known:
            raise NotFound(f"Airflow has no DAG {dag_id!r}.{did_you_mean(dag_id, known)}")


def _parse(settings: Settings, source: Source) -> None:
    """Read the DAG folder, if Airflow has an active DAG that Tradewind does not know."""
    from tradewind.cli.commands.dags_maintenance import read_bundle

    try:
        with reading(settings) as store:
            known = {plan.dag_id for plan in store.plans()}
    except NotFound:
        known = set()
    if {dag.dag_id for dag in source.dags() if dag.is_active} - known:
        click.echo(read_bundle(settings, DAGS_BUNDLE, settings.paths.dags).text, err=True)


def _existing_contents(settings: Settings) -> ExistingContents:
    """The contents of this installation. Empty if it has no database yet."""
    from tradewind.cli.commands.roles import known_roles
    from tradewind.cli.commands.users import known_users
    from tradewind.cli.commands.variables import plain_values
    from tradewind.cli.connection_fields import decrypted_fields
    from tradewind.cli.import_airflow.takeover import ExistingContents

    users, roles, slots = known_users(settings), known_roles(settings), settings.core.default_pool_slots
    try:
        with reading(settings) as store:
            rows = store.variables()
            values = plain_values(settings, rows)
            return ExistingContents(
                {row.key: (values[row.key], row.description) for row in rows},
                {row.conn_id: decrypted_fields(settings, row) for row in store.connections()},
                {row.name: (row.slots, row.description, row.include_deferred) for row in store.pools()},
                {plan.dag_id: plan for plan in store.plans() if plan.is_active},
                users,
                roles,
                slots,
            )
    except NotFound:
        return ExistingContents({}, {}, {}, {}, users, roles, slots)


def _xcom_rules(settings: Settings, dry_run: bool) -> Any:
    from tradewind.cli.import_airflow.runs import XComRules
    from tradewind.storage.local_spills import LocalSpills

    settings.paths.prepare()
    write = (lambda data: "") if dry_run else LocalSpills(settings.paths.xcom).write
    return XComRules(settings.core.xcom_inline_max_bytes, settings.core.xcom_max_bytes, write)
