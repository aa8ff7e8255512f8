"""Clear and mark task instances: list them, ask for confirmation, then change them in bounded steps of a few runs each.

Each step is one command. If the command line is interrupted between two steps, the finished steps stay, and the same command line
can be run again for the rest: a task instance that already has the wanted state is not changed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tradewind.cli.common import command_client, confirm, warn_if_no_scheduler
from tradewind.cli.output import preview_format, show
from tradewind.cli.progress import progress

if TYPE_CHECKING:
    from tradewind.cli.command_client import CommandClient

_COLUMNS = ("dag_id", "run_id", "task_id", "map_index", "state", "to")


class Edit(NamedTuple):
    """A command that changes task instances, and the words for it in messages."""

    command: str
    infinitive: str
    participle: str
    doing: str


CLEAR = Edit("clear", "clear", "cleared", "Clearing")
MARK = Edit("mark", "mark", "marked", "Marking")


def edit_with_confirmation(edit: Edit, requests: list[dict[str, Any]], *, yes: bool, dry_run: bool, output: str) -> None:
    """List the task instances and ask for confirmation (not with `yes`); then change them and print the result.

    Args:
        requests: the arguments of the command, one dict for each DAG or run.
    """
    client = command_client()
    found = (
        []
        if yes and not dry_run
        else _carry_out(client, edit, [{**request, "dry_run": True} for request in requests])["touched"]
    )
    if dry_run:
        show(found, output, _COLUMNS, empty=f"There is nothing to {edit.infinitive}.")
        if output == "table" and found:
            click.echo(f"{_counted(found)} would be {edit.participle}; nothing was changed.", err=True)
        return
    if not yes:
        if not found:
            click.echo(f"There is nothing to {edit.infinitive}.", err=True)
            return
        show(found, preview_format(), _COLUMNS)
        these = f"these {len(found)} task instances" if len(found) > 1 else "this task instance"
        confirm(f"You are about to {edit.infinitive} {these}. Continue?", False)
    done = _carry_out(client, edit, requests, len(found) or None)
    touched = done["touched"]
    if output != "table":
        show(touched, output, _COLUMNS)
    elif not touched:
        click.echo(f"There is nothing to {edit.infinitive}.")
    else:
        runs = len({(row["dag_id"], row["run_id"]) for row in touched})
        were = "was" if len(touched) == 1 else "were"
        click.echo(f"{_counted(touched)} of {runs} run{'s' if runs != 1 else ''} {were} {edit.participle}.")
    if done["ended"]:
        names = ", ".join(done["ended"][:3]) + (" …" if len(done["ended"]) > 3 else "")
        click.echo(
            f"These finished runs keep their state, because none of their tasks has to run: {names}. "
            "To change the state of a run: tradewind dags set-state",
            err=True,
        )
    warn_if_no_scheduler(client)


def _carry_out(
    client: CommandClient, edit: Edit, requests: list[dict[str, Any]], total: int | None = None
) -> dict[str, list[Any]]:
    """Execute the commands, step by step."""
    result: dict[str, list[Any]] = {"touched": [], "ended": []}
    with progress(edit.doing, total) as bar:
        for request in requests:
            after = None
            while True:
                answer = client.call(edit.command, **request, after=after)
                result["touched"] += answer["task_instances"]
                result["ended"] += answer.get("ended") or []
                bar.advance(len(answer["task_instances"]))
                after = answer["next"]
                if after is None:
                    break
    return result


def _counted(found: list[Any]) -> str:
    """`3 task instances`."""
    return f"{len(found)} task instance{'s' if len(found) != 1 else ''}"
