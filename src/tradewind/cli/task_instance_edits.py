"""Clear and mark task instances: list them, ask for confirmation, then change them in bounded steps of a few runs each.

Each step is one command. If the command line is interrupted between two steps, the finished steps stay, and the same command line
can be run again for the rest: a task instance that already has the wanted state is not changed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from tradewind.cli.common import command_client, confirm, warn_if_no_scheduler
from tradewind.cli.output import preview_format, show
from tradewind.cli.progress import progress
from tradewind.model.counts import counted
from tradewind.wire.commands import ClearTasks, MarkTasks, edit_in_steps

if TYPE_CHECKING:
    from tradewind.cli.command_client import CommandClient

_COLUMNS = ("dag_id", "run_id", "task_id", "map_index", "state", "to")


class Edit(NamedTuple):
    """Words for a change of task instances in messages."""

    infinitive: str
    participle: str
    doing: str


CLEAR = Edit("clear", "cleared", "Clearing")
MARK = Edit("mark", "marked", "Marking")


def edit_with_confirmation(
    edit: Edit, commands: Sequence[ClearTasks | MarkTasks], *, yes: bool, dry_run: bool, output: str
) -> None:
    """List the task instances and ask for confirmation (not with `yes`); then change them and print the result.

    Args:
        commands: one for each DAG or run.
    """
    client = command_client()
    found: list[dict[str, Any]] = []
    if dry_run or not yes:
        found, _ = _carry_out(client, edit, [msgspec.structs.replace(command, dry_run=True) for command in commands])
    if dry_run:
        show(found, output, _COLUMNS, empty=f"There is nothing to {edit.infinitive}.")
        if output == "table" and found:
            click.echo(f"{counted(len(found), 'task instance')} would be {edit.participle}; nothing was changed.", err=True)
        return
    if not yes:
        if not found:
            click.echo(f"There is nothing to {edit.infinitive}.", err=True)
            return
        show(found, preview_format(), _COLUMNS)
        confirm(f"You are about to {edit.infinitive} {counted(len(found), 'task instance')}. Continue?", False)
    touched, ended = _carry_out(client, edit, commands, len(found) or None)
    if output != "table":
        show(touched, output, _COLUMNS)
    elif not touched:
        click.echo(f"There is nothing to {edit.infinitive}.")
    else:
        runs = len({(row["dag_id"], row["run_id"]) for row in touched})
        click.echo(f"{edit.participle.capitalize()} {counted(len(touched), 'task instance')} of {counted(runs, 'run')}.")
    if ended:
        names = ", ".join(ended[:3]) + (" …" if len(ended) > 3 else "")
        click.echo(
            f"These finished runs keep their state, because none of their tasks has to run: {names}. "
            "To change the state of a run: tradewind dags set-state",
            err=True,
        )
    warn_if_no_scheduler(client)


def _carry_out(
    client: CommandClient, edit: Edit, commands: Sequence[ClearTasks | MarkTasks], total: int | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Execute every step of the commands: the changed task instances, and the ids of finished runs whose state stays."""
    touched: list[dict[str, Any]] = []
    ended: list[str] = []
    with progress(edit.doing, total) as bar:
        for command in commands:
            for step in edit_in_steps(command, client.call):
                touched += [msgspec.structs.asdict(one) for one in step.task_instances]
                ended += step.ended
                bar.advance(len(step.task_instances))
    return touched, ended
