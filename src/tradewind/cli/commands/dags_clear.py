"""`tradewind dags clear`, `set-state` and `note`: change runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tradewind.cli.arguments import dag_argument, run_argument
from tradewind.cli.common import MOMENT, command_client, confirm, find_run, reading, warn_if_no_scheduler
from tradewind.cli.output import output_option, preview_format, show
from tradewind.model.counts import counted

if TYPE_CHECKING:
    from tradewind.wire.commands import SetRunStateResult


@click.command()
@dag_argument
@click.option("-r", "--run-id", "run_ids", metavar="RUN_ID_OR_DATE", multiple=True, help="Only this run; can be repeated.")
@click.option("-s", "--start-date", type=MOMENT, help="Only runs from this logical date on.")
@click.option("-e", "--end-date", type=MOMENT, help="Only runs up to this logical date.")
@click.option("-f", "--only-failed", is_flag=True, help="Only failed task instances.")
@click.option("--only-running", is_flag=True, help="Only running task instances.")
@click.option(
    "--latest-version/--own-version",
    default=None,
    help="Run with the newest version of the DAG's bundle, or with the version that the run has. Default: as the DAG says with "
    "rerun_with_latest_version, otherwise its own version.",
)
@click.option("--reason", help="Reason, for the audit log and the history of each task instance.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only list the task instances that would be cleared.")
@output_option
def clear(
    dag_id: str,
    run_ids: tuple[str, ...],
    start_date: int | None,
    end_date: int | None,
    only_failed: bool,
    only_running: bool,
    latest_version: bool | None,
    reason: str | None,
    yes: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Clear the task instances of runs, so that they run again. Choose runs with --run-id, or with --start-date and --end-date."""
    from tradewind.cli.task_instance_edits import CLEAR, edit_with_confirmation
    from tradewind.wire import commands as c

    if not run_ids and start_date is None and end_date is None:
        raise click.UsageError("no runs are chosen; give --run-id, or --start-date and --end-date")
    with reading() as store:
        run_ids = tuple(find_run(store, dag_id, run).run_id for run in run_ids)
    commands = [
        c.ClearTasks(
            dag_id,
            run_id,
            start=start_date,
            end=end_date,
            reason=reason,
            only_failed=only_failed,
            only_running=only_running,
            latest_version=latest_version,
        )
        for run_id in run_ids or (None,)
    ]
    edit_with_confirmation(CLEAR, commands, yes=yes, dry_run=dry_run, output=output)


@click.command("set-state")
@dag_argument
@run_argument
@click.argument("state", type=click.Choice(["success", "failed", "queued"]))
@click.option("--reason", help="Reason, for the audit log and the history of each task instance.")
@click.option("--note", help="Note to store with the run.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only list the task instances that would change, with their new states.")
@output_option
def set_state(
    dag_id: str, run: str, state: str, reason: str | None, note: str | None, yes: bool, dry_run: bool, output: str
) -> None:
    """Set the state of a run by hand.

    success: all its task instances become success. failed: running tasks are stopped, and tasks that have not started are skipped.
    queued: a finished run continues with its unfinished tasks. Teardowns whose setup has run are run before the run ends.
    """
    import msgspec

    from tradewind.wire import commands as c

    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    client = command_client()
    command = c.SetRunState(dag_id, run_id, state, reason=reason, note=note)
    columns = ("task_id", "map_index", "state", "to")
    if dry_run or not yes:
        plan = client.call(msgspec.structs.replace(command, dry_run=True))
        found = [msgspec.structs.asdict(one) for one in plan.task_instances]
        if not dry_run:
            show(found, preview_format(), columns)
            those = f"{counted(len(found), 'task instance')} and " if found else ""
            confirm(f"You are about to set {those}the run {run_id} (it is {plan.before}) to {state}. Continue?", False)
        else:
            show(found, output, columns, empty="No task instance would change.")
            if output == "table":
                click.echo(f"The run {run_id} is {plan.before} and would be {plan.now}; nothing was changed.", err=True)
                _print_teardowns(plan, "would run")
            return
    result = client.call(command)
    if output == "table":
        count = len(result.task_instances)
        click.echo(f"{run_id}  {result.now}  ({counted(count, 'task instance')} marked)")
        _print_teardowns(result, "run")
    else:
        show([msgspec.structs.asdict(one) for one in result.task_instances], output, columns)
    if result.now in ("queued", "running"):
        warn_if_no_scheduler(client)


def _print_teardowns(result: SetRunStateResult, verb: str) -> None:
    if result.teardowns:
        names = ", ".join(sorted({one.task_id for one in result.teardowns}))
        click.echo(f"Teardowns that {verb} before the run ends: {names}.", err=True)


@click.command()
@dag_argument
@run_argument
@click.argument("text", metavar="[TEXT]", default="")
def note(dag_id: str, run: str, text: str) -> None:
    """Set the note of a run. Without TEXT the note is removed."""
    from tradewind.wire import commands as c

    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    command_client().call(c.NoteRun(dag_id, run_id, text))
    click.echo(f"{run_id} {'has a new note' if text else 'has no note any more'}.")
