"""`tradewind dags clear`, `set-state` and `note`: what people change in runs."""

from __future__ import annotations

from typing import Any

import click

from tradewind.cli.arguments import dag_argument, run_argument
from tradewind.cli.common import MOMENT, door, find_run, reading, say_if_offline, sure
from tradewind.cli.output import asked_about, output_option, show


@click.command()
@dag_argument
@click.option(
    "-r", "--run-id", "run_ids", metavar="RUN_ID_OR_DATE", multiple=True, help="Only this run; may be given several times."
)
@click.option("-s", "--start-date", type=MOMENT, help="Only runs from this logical date on.")
@click.option("-e", "--end-date", type=MOMENT, help="Only runs up to this logical date.")
@click.option("-f", "--only-failed", is_flag=True, help="Only what failed.")
@click.option("--only-running", is_flag=True, help="Only what runs.")
@click.option("--reason", help="Why; it stands in the audit log and in the history of each task instance.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only list what would be cleared.")
@output_option
def clear(
    dag_id: str,
    run_ids: tuple[str, ...],
    start_date: int | None,
    end_date: int | None,
    only_failed: bool,
    only_running: bool,
    reason: str | None,
    yes: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Forget what runs came to, so that they run again. Give the runs, or dates between which they lie."""
    from tradewind.cli.editing import CLEAR, edit_and_tell

    if not run_ids and start_date is None and end_date is None:
        raise click.UsageError("say which runs: --run-id, or --start-date and --end-date")
    with reading() as store:
        run_ids = tuple(find_run(store, dag_id, run).run_id for run in run_ids)
    which = {"dag_id": dag_id, "start": start_date, "end": end_date, "reason": reason}
    flags = {"only_failed": only_failed, "only_running": only_running}
    wishes = [{**which, **flags, "run_id": run_id} for run_id in run_ids or (None,)]
    edit_and_tell(CLEAR, wishes, yes=yes, dry_run=dry_run, output=output)


@click.command("set-state")
@dag_argument
@run_argument
@click.argument("state", type=click.Choice(["success", "failed", "queued"]))
@click.option("--reason", help="Why; it stands in the audit log and in the history of each task instance.")
@click.option("--note", help="A remark that stays with the run.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only list what would be touched, and what it would come to.")
@output_option
def set_state(
    dag_id: str, run: str, state: str, reason: str | None, note: str | None, yes: bool, dry_run: bool, output: str
) -> None:
    """Say by hand what a run came to.

    success makes all its tasks a success; failed stops what runs and skips what has not begun; queued has a run that had ended
    go on with what is left of it. Teardowns with something to tear down run before the run ends.
    """
    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    way = door()
    given: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id, "state": state, "reason": reason, "note": note}
    columns = ("task_id", "map_index", "state", "to")
    if dry_run or not yes:
        plan = way.call("set_run_state", **given, dry_run=True)
        found = plan["task_instances"]
        if not dry_run:
            show(found, asked_about(), columns)
            told = f"these {len(found)} task instances and " if found else ""
            sure(f"You are about to set {told}the run {run_id} (it is {plan['before']}) to {state}. Go on?", False)
        else:
            show(found, output, columns, empty="No task instance would be touched.")
            if output == "table":
                click.echo(f"The run {run_id} is {plan['before']} and would be {plan['now']}; nothing was changed.", err=True)
                _tell_spared(plan, "would run")
            return
    answer = way.call("set_run_state", **given)
    if output == "table":
        count = len(answer["task_instances"])
        click.echo(f"{run_id}  {answer['now']}  ({count} task instance{'s' if count != 1 else ''} marked)")
        _tell_spared(answer, "run")
    else:
        show(answer["task_instances"], output, columns)
    if answer["now"] in ("queued", "running"):
        say_if_offline(way)


def _tell_spared(answer: dict[str, Any], verb: str) -> None:
    if answer["spared"]:
        names = ", ".join(sorted({one["task_id"] for one in answer["spared"]}))
        click.echo(f"Teardowns {verb} before it ends: {names}.", err=True)


@click.command()
@dag_argument
@run_argument
@click.argument("text", metavar="[TEXT]", default="")
def note(dag_id: str, run: str, text: str) -> None:
    """Write a note on a run; without a text it is taken away."""
    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    door().call("note_run", dag_id=dag_id, run_id=run_id, note=text)
    click.echo(f"{run_id} {'has a new note' if text else 'has no note any more'}.")
