"""`tradewind tasks clear`, `mark` and `note`: change task instances."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.arguments import dag_argument, run_argument, task_argument
from tradewind.cli.common import MOMENT, command_client, find_run, reading
from tradewind.cli.completers import complete_runs
from tradewind.cli.output import output_option
from tradewind.model.errors import NotFound, did_you_mean

if TYPE_CHECKING:
    from tradewind.store.port import Reader


def _options(command: Any) -> Any:
    """Add the options that `clear` and `mark` share: the choice of task instances and runs, the note, and the confirmation."""
    for option in (
        output_option,
        click.option("--dry-run", is_flag=True, help="Only list the task instances that would change, with their new states."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation."),
        click.option("--note", help="Note to store with these task instances."),
        click.option("--reason", help="Reason, for the audit log and the history of each task instance."),
        click.option("-u", "--upstream", is_flag=True, help="Include upstream tasks."),
        click.option("-d", "--downstream", is_flag=True, help="Include downstream tasks."),
        click.option("--future", is_flag=True, help="With --run-id: include the later runs."),
        click.option("--past", is_flag=True, help="With --run-id: include the earlier runs."),
        click.option("-e", "--end-date", type=MOMENT, help="Only runs up to this logical date."),
        click.option("-s", "--start-date", type=MOMENT, help="Only runs from this logical date on."),
        click.option("--run-id", metavar="RUN_ID_OR_DATE", shell_complete=complete_runs, help="Only this run."),
        click.option(
            "--map-index", "map_indexes", type=click.IntRange(0), multiple=True, help="Only this map index, for mapped tasks."
        ),
        click.option("-t", "--task-regex", help="Only tasks whose id contains a match of this regular expression."),
    ):
        command = option(command)
    return command


@click.command()
@dag_argument
@_options
@click.option("-f", "--only-failed", is_flag=True, help="Only failed task instances.")
@click.option("-r", "--only-running", is_flag=True, help="Only running task instances.")
@click.option(
    "--reset-dag-runs/--no-reset-dag-runs",
    default=True,
    show_default=True,
    help="Queue finished runs again, so that their cleared tasks run. Otherwise finished runs and their tasks are not changed.",
)
@click.option(
    "--latest-version/--own-version",
    default=None,
    help="Run with the newest version of the DAG's bundle, or with the version that the run has. Default: as the DAG says with "
    "rerun_with_latest_version, otherwise its own version.",
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
    latest_version: bool | None,
    dag_regex: bool,
    exclude_subdags: bool,
    yes: bool,
    dry_run: bool,
    output: str,
    **where: Any,
) -> None:
    """Clear task instances, so that they run again. Running ones are stopped first."""
    from tradewind.cli.commands.dags import matching
    from tradewind.cli.task_instance_edits import CLEAR, edit_with_confirmation
    from tradewind.wire import commands as c

    _check_options(task_regex, map_indexes, where)
    if exclude_subdags:
        click.echo("Tradewind has no sub-DAGs: --exclude-subdags and --exclude-parentdag have no effect.", err=True)
    with reading() as store:
        names = matching(store, dag_id) if dag_regex else [dag_id]
        if not dag_regex and where["run_id"] is not None:
            where["run_id"] = find_run(store, dag_id, where["run_id"]).run_id
        chosen = {name: _matching_tasks(store, name, task_regex, lenient=dag_regex) for name in names}
    commands = [
        c.ClearTasks(
            **_edit_fields(name, ids, map_indexes, where),
            only_failed=only_failed,
            only_running=only_running,
            reset_dag_runs=reset_dag_runs,
            latest_version=latest_version,
        )
        for name, ids in chosen.items()
        if ids or task_regex is None
    ]
    edit_with_confirmation(CLEAR, commands, yes=yes, dry_run=dry_run, output=output)


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
    """Set the state of task instances by hand. Running ones are stopped. Tasks that are upstream_failed because of them are
    evaluated again.

    Choose the runs with --run-id, or with --start-date and --end-date. Runs that do not exist yet are not created.
    """
    from tradewind.cli.task_instance_edits import MARK, edit_with_confirmation
    from tradewind.wire import commands as c

    _check_options(task_regex, map_indexes, where)
    if where["run_id"] is None and where["start_date"] is None and where["end_date"] is None:
        raise click.UsageError("no runs are chosen; give --run-id, or --start-date and --end-date")
    with reading() as store:
        ids = _matching_tasks(store, dag_id, task_regex, lenient=False)
        if where["run_id"] is not None:
            where["run_id"] = find_run(store, dag_id, where["run_id"]).run_id
    command = c.MarkTasks(**_edit_fields(dag_id, ids, map_indexes, where), state=state)
    edit_with_confirmation(MARK, [command], yes=yes, dry_run=dry_run, output=output)


@click.command()
@dag_argument
@task_argument
@run_argument
@click.argument("text", metavar="[TEXT]", default="")
@click.option("--map-index", type=click.IntRange(0), help="Only this map index, for a mapped task.")
def note(dag_id: str, task_id: str, run: str, text: str, map_index: int | None) -> None:
    """Set the note of a task in a run. Without TEXT the note is removed."""
    from tradewind.wire import commands as c

    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    count = command_client().call(c.NoteTask(dag_id, run_id, task_id, map_index, text)).task_instances
    instances = "" if count == 1 else f" ({count} task instances)"
    click.echo(f"{task_id} in {run_id}{instances} {'has a new note' if text else 'has no note any more'}.")


def _check_options(task_regex: str | None, map_indexes: tuple[int, ...], where: dict[str, Any]) -> None:
    if map_indexes and task_regex is None:
        raise click.UsageError("--map-index needs --task-regex, to choose the mapped tasks")
    if (where["past"] or where["future"]) and where["run_id"] is None:
        raise click.UsageError("--past and --future need --run-id, to choose the run")


def _edit_fields(dag_id: str, ids: list[str], map_indexes: tuple[int, ...], where: dict[str, Any]) -> dict[str, Any]:
    """The fields of `EditTasks`. Dates are microseconds."""
    instances = [(task_id, index) for task_id in ids for index in map_indexes]
    return {
        "dag_id": dag_id,
        "task_ids": [] if instances else ids,
        "instances": instances,
        "run_id": where["run_id"],
        "start": where["start_date"],
        "end": where["end_date"],
        "reason": where["reason"],
        "note": where["note"],
        **{name: where[name] for name in ("past", "future", "upstream", "downstream")},
    }


def _matching_tasks(store: Reader, dag_id: str, pattern: str | None, *, lenient: bool) -> list[str]:
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
