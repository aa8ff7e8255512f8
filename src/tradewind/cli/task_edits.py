"""`tradewind tasks clear`, `mark` and `note`: what people change in task instances."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.arguments import dag_argument, run_argument, task_argument
from tradewind.cli.common import MOMENT, door, find_run, reading
from tradewind.cli.completion import complete_runs
from tradewind.cli.output import output_option
from tradewind.model.errors import NotFound, did_you_mean

if TYPE_CHECKING:
    from tradewind.store.sql.store import SqliteStore


def _options(command: Any) -> Any:
    """Which task instances of which runs, and how it is done: clearing and marking share them."""
    for option in (
        output_option,
        click.option("--dry-run", is_flag=True, help="Only list what would be touched, and what it would come to."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option("--note", help="A remark that stays with these task instances."),
        click.option("--reason", help="Why; it stands in the audit log and in the history of each task instance."),
        click.option("-u", "--upstream", is_flag=True, help="Also what comes before them."),
        click.option("-d", "--downstream", is_flag=True, help="Also what comes after them."),
        click.option("--future", is_flag=True, help="With --run-id: also in the runs after it."),
        click.option("--past", is_flag=True, help="With --run-id: also in the runs before it."),
        click.option("-e", "--end-date", type=MOMENT, help="Only runs up to this logical date."),
        click.option("-s", "--start-date", type=MOMENT, help="Only runs from this logical date on."),
        click.option("--run-id", metavar="RUN_ID_OR_DATE", shell_complete=complete_runs, help="Only this run."),
        click.option(
            "--map-index", "map_indexes", type=click.IntRange(0), multiple=True, help="Of mapped tasks, only this instance."
        ),
        click.option("-t", "--task-regex", help="Only tasks whose id matches (anywhere in the id)."),
    ):
        command = option(command)
    return command


@click.command()
@dag_argument
@_options
@click.option("-f", "--only-failed", is_flag=True, help="Only what failed.")
@click.option("-r", "--only-running", is_flag=True, help="Only what runs.")
@click.option(
    "--reset-dag-runs/--no-reset-dag-runs",
    default=True,
    show_default=True,
    help="Runs that had ended are queued again; without it they stay as they are, and so do their tasks.",
)
@click.option("-R", "--dag-regex", is_flag=True, help="DAG_ID is a regular expression.")
@click.option("-x", "--exclude-subdags", "--exclude-parentdag", is_flag=True, hidden=True)
def clear(
    dag_id: str,
    task_regex: str | None,
    map_indexes: tuple[int, ...],
    only_failed: bool,
    only_running: bool,
    reset_dag_runs: bool,
    dag_regex: bool,
    exclude_subdags: bool,
    yes: bool,
    dry_run: bool,
    output: str,
    **where: Any,
) -> None:
    """Forget what tasks came to, so that they run again. Those that run are stopped first."""
    from tradewind.cli.dags import matching
    from tradewind.cli.editing import CLEAR, edit_and_tell

    _check_where(task_regex, map_indexes, where)
    if exclude_subdags:
        click.echo("There are no sub-DAGs here: --exclude-subdags and --exclude-parentdag change nothing.", err=True)
    with reading() as store:
        names = matching(store, dag_id) if dag_regex else [dag_id]
        if not dag_regex and where["run_id"] is not None:
            where["run_id"] = find_run(store, dag_id, where["run_id"]).run_id
        chosen = {name: _matching_tasks(store, name, task_regex, lenient=dag_regex) for name in names}
    reset = None if reset_dag_runs else False
    flags = {"only_failed": only_failed or None, "only_running": only_running or None, "reset_dag_runs": reset}
    wishes = [{**_which(name, ids, map_indexes, where), **flags} for name, ids in chosen.items() if ids or task_regex is None]
    edit_and_tell(CLEAR, wishes, yes=yes, dry_run=dry_run, output=output)


@click.command()
@dag_argument
@click.argument("state", type=click.Choice(["success", "failed", "skipped"]))
@_options
def mark(
    dag_id: str,
    state: str,
    task_regex: str | None,
    map_indexes: tuple[int, ...],
    yes: bool,
    dry_run: bool,
    output: str,
    **where: Any,
) -> None:
    """Say by hand what tasks came to. Those that run are stopped; what failed only because of them is judged again.

    Say which runs: --run-id, or --start-date and --end-date. Only runs that exist are touched.
    """
    from tradewind.cli.editing import MARK, edit_and_tell

    _check_where(task_regex, map_indexes, where)
    if where["run_id"] is None and where["start_date"] is None and where["end_date"] is None:
        raise click.UsageError("say which runs: --run-id, or --start-date and --end-date")
    with reading() as store:
        ids = _matching_tasks(store, dag_id, task_regex, lenient=False)
        if where["run_id"] is not None:
            where["run_id"] = find_run(store, dag_id, where["run_id"]).run_id
    wish = {**_which(dag_id, ids, map_indexes, where), "state": state}
    edit_and_tell(MARK, [wish], yes=yes, dry_run=dry_run, output=output)


@click.command()
@dag_argument
@task_argument
@run_argument
@click.argument("text", metavar="[TEXT]", default="")
@click.option("--map-index", type=click.IntRange(0), help="Of a mapped task, only this instance.")
def note(dag_id: str, task_id: str, run: str, text: str, map_index: int | None) -> None:
    """Write a note on a task of a run; without a text it is taken away."""
    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    given = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index, "note": text}
    answer = door().call("note_task", **given)
    count = answer["task_instances"]
    instances = "" if count == 1 else f" ({count} task instances)"
    click.echo(f"{task_id} in {run_id}{instances} {'has a new note' if text else 'has no note any more'}.")


def _check_where(task_regex: str | None, map_indexes: tuple[int, ...], where: dict[str, Any]) -> None:
    if map_indexes and task_regex is None:
        raise click.UsageError("--map-index needs --task-regex: of which tasks?")
    if (where["past"] or where["future"]) and where["run_id"] is None:
        raise click.UsageError("--past and --future need --run-id: before and after which run?")


def _which(dag_id: str, ids: list[str], map_indexes: tuple[int, ...], where: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the command; None where nothing is said. Dates in microseconds."""
    instances = [[task_id, index] for task_id in ids for index in map_indexes]
    return {
        "dag_id": dag_id,
        "task_ids": None if instances else ids or None,
        "instances": instances or None,
        "run_id": where["run_id"],
        "start": where["start_date"],
        "end": where["end_date"],
        "reason": where["reason"],
        "note": where["note"],
        **{name: where[name] or None for name in ("past", "future", "upstream", "downstream")},
    }


def _matching_tasks(store: SqliteStore, dag_id: str, pattern: str | None, *, lenient: bool) -> list[str]:
    ids = [task.task_id for task in store.current_definition(dag_id).tasks]
    if pattern is None:
        return []
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r} is not a regular expression: {error}", param_hint="--task-regex") from None
    found = [task_id for task_id in ids if compiled.search(task_id)]
    if not found and not lenient:
        raise NotFound(f"no task of DAG {dag_id} matches {pattern!r}.{did_you_mean(pattern, ids)}")
    return found
