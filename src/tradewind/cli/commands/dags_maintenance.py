"""`tradewind dags report`, `list-jobs`, `reserialize` and `delete`."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from tradewind.cli.airflow_output import is_airflow
from tradewind.cli.arguments import dag_argument
from tradewind.cli.commands.dags import bundle_option
from tradewind.cli.common import command_client, confirm, reading
from tradewind.cli.compose.bundles import DAGS_BUNDLE, EXAMPLES_BUNDLE, examples_folder
from tradewind.cli.compose.parser import load_plugins, parse_bundle
from tradewind.cli.output import columns_option, output_option, show
from tradewind.cli.progress import progress
from tradewind.model.counts import counted
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.settings import Settings, load

_FILES_AT_ONCE = 50
_NOTHING_READ = {"duration": 0.0, "dag_num": 0, "task_num": 0, "errors": 0, "last_parsed": None}
_REPORT_COLUMNS = ("file", "duration", "dag_num", "task_num", "errors", "dags", "last_parsed")


@click.command()
@bundle_option
@columns_option
@output_option
def report(bundles: tuple[str, ...], columns: str | None, output: str) -> None:
    """Show how the last parsing of each DAG file went: duration, time, DAGs and errors. The slowest file comes first."""
    with reading() as store:
        views = store.list_dags(limit=None).rows
        plans = {view.dag_id: len(store.current_definition(view.dag_id).tasks) for view in views}
        broken = store.import_errors(limit=None).rows
    files: dict[tuple[str, str], dict[str, Any]] = {}
    for view in views:
        about = {"duration": view.last_parse_duration or 0.0, "last_parsed": view.last_parsed_time}
        row = files.setdefault((view.bundle_name or "", view.relative_fileloc or ""), {**_NOTHING_READ, **about, "dags": []})
        row["dag_num"] += 1
        row["task_num"] += plans[view.dag_id]
        row["dags"].append(view.dag_id)
    for error in broken:
        row = files.setdefault((error.bundle_name or "", error.filename), {**_NOTHING_READ, "dags": []})
        row["last_parsed"] = error.timestamp
        row["errors"] += 1
    rows = [{"file": file, **row} for (bundle, file), row in files.items() if not bundles or bundle in bundles]
    rows.sort(key=lambda row: -row["duration"])
    show(rows, output, _REPORT_COLUMNS, chosen=columns, empty="There are no DAG files yet.")


@click.command("list-jobs")
@click.option("-d", "--dag-id", hidden=True)
@click.option("--state", type=click.Choice(["running", "success", "failed"]), help="Only jobs in this state.")
@click.option("--limit", type=click.IntRange(1), help="Show at most this many rows.")
@output_option
def list_jobs(dag_id: str | None, state: str | None, limit: int | None, output: str) -> None:
    """List the services in the database, as `tradewind jobs list` does."""
    from tradewind.cli.commands.jobs import known_jobs

    if dag_id is not None:
        raise click.UsageError("jobs do not belong to DAGs: one scheduler runs all DAGs; see: tradewind dags list-runs")
    rows = known_jobs(load(), state=state, limit=limit)
    show(rows, output, ("job_type", "state", "hostname", "pid", "start_date"), empty="There are no such jobs.")


@click.command()
@bundle_option
def reserialize(bundles: tuple[str, ...]) -> int:
    """Load the plugins and parse all DAG files again, and store the DAGs. The exit code is 1 if a file has errors."""
    settings = load()
    folders = _folders(settings, bundles)
    plugins = load_plugins(settings)
    command_client(settings).call(plugins)
    bad = len(plugins.problems)
    if plugins.plugins or plugins.problems:
        click.echo(f"plugins: loaded {counted(len(plugins.plugins), 'plugin')}; {counted(bad, 'file')} with errors.")
    for bundle, folder in folders.items():
        result = read_bundle(settings, bundle, folder)
        click.echo(result.text)
        bad += result.broken
    if bad:
        click.echo("See: tradewind dags list-import-errors", err=True)
    return 1 if bad and not is_airflow() else 0  # Airflow's command succeeds, and deployments rely on it


class BundleResult(NamedTuple):
    """The result of reading a bundle."""

    text: str
    """A sentence for people."""
    broken: int
    """How many files have errors."""


def read_bundle(settings: Settings, bundle: str, folder: str) -> BundleResult:
    """Parse all files of a bundle and store the DAGs."""
    from tradewind.parser.registration import register_command
    from tradewind.wire import commands as c

    client = command_client(settings)
    outcomes = parse_bundle(settings, folder, bundle)
    known = client.call(c.KnownFiles(bundle))
    gone = sorted(set(known) - {outcome.file for outcome in outcomes})
    changed: list[str] = []
    with progress("Storing", len(outcomes)) as bar:
        for start in range(0, len(outcomes), _FILES_AT_ONCE):
            part = outcomes[start : start + _FILES_AT_ONCE]
            changed += client.call(register_command(part)).changed
            bar.advance(len(part))
    if gone:
        changed += client.call(c.ForgetFiles(bundle, gone)).gone
    broken = sum(outcome.problem is not None for outcome in outcomes)
    text = (
        f"{bundle}: parsed {counted(len(outcomes), 'file')}; {counted(len(set(changed)), 'DAG')} changed; "
        f"{counted(broken, 'file')} with errors."
    )
    return BundleResult(text, broken)


def _folders(settings: Settings, wanted: tuple[str, ...]) -> dict[str, str]:
    """Bundle name → folder of the wanted bundles; of the DAG folder if no bundle is named."""
    known = {DAGS_BUNDLE: settings.paths.dags}
    examples = examples_folder()
    if examples is not None:
        known[EXAMPLES_BUNDLE] = examples
    for name in wanted:
        if name not in known:
            raise NotFound(f"there is no bundle {name!r}.{did_you_mean(name, known)}")
    return {name: known[name] for name in wanted or (DAGS_BUNDLE,)}


@click.command()
@dag_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(dag_id: str, yes: bool) -> None:
    """Delete a DAG with all its runs and logs. If its file still exists, the DAG comes back when the file changes."""
    from tradewind.wire import commands as c

    settings = load()
    with reading(settings) as store:
        plan = store.need_dag(dag_id)
        runs = store.list_runs(dag_id, limit=1).total
    confirm(
        f"This deletes DAG {dag_id} and {'its runs' if runs is None else counted(runs, 'run')} from the database. Continue?",
        yes,
    )
    client = command_client(settings)
    deleted = 0
    with progress("Deleting runs", runs) as bar:
        while True:
            step = client.call(c.DeleteDag(dag_id))
            remove_spills(settings, step.spills)
            deleted += step.runs
            bar.advance(step.runs)
            if step.gone:
                break
    click.echo(f"Deleted DAG {dag_id} and {counted(deleted, 'run')}.")
    if plan.is_active:
        click.echo(
            f"Its file still exists ({plan.file}): the DAG comes back when the file changes or the parser starts.", err=True
        )


def remove_spills(settings: Settings, names: list[str]) -> None:
    """Delete the files of XComs that no row refers to any more."""
    from tradewind.storage.local_spills import LocalSpills

    LocalSpills(settings.paths.xcom).remove_unused(names)
