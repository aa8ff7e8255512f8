"""Clearing and marking from the command line: show what it touches, ask, and do it in bounded pieces, a few runs each.

A piece is one command of its own. If the command line is interrupted between two of them, what is done is done, and the same
command goes on with the rest: a task instance that is as it should be is not touched again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tradewind.cli.common import door, say_if_offline, sure
from tradewind.cli.output import asked_about, show
from tradewind.cli.progress import progress

if TYPE_CHECKING:
    from tradewind.cli.command_client import CommandClient

_COLUMNS = ("dag_id", "run_id", "task_id", "map_index", "state", "to")


class Words(NamedTuple):
    """How an edit is called."""

    command: str
    infinitive: str
    participle: str
    doing: str


CLEAR = Words("clear", "clear", "cleared", "Clearing")
MARK = Words("mark", "mark", "marked", "Marking")


def edit_and_tell(words: Words, wishes: list[dict[str, Any]], *, yes: bool, dry_run: bool, output: str) -> None:
    """Show what it would touch and ask (`yes` answers); then do it, and say what was done.

    Args:
        wishes: arguments of the command, one for each DAG or run.
    """
    way = door()
    found = [] if yes and not dry_run else _carry_out(way, words, [{**wish, "dry_run": True} for wish in wishes])["touched"]
    if dry_run:
        show(found, output, _COLUMNS, empty=f"There is nothing to {words.infinitive}.")
        if output == "table" and found:
            click.echo(f"{_counted(found)} would be {words.participle}; nothing was changed.", err=True)
        return
    if not yes:
        if not found:
            click.echo(f"There is nothing to {words.infinitive}.", err=True)
            return
        show(found, asked_about(), _COLUMNS)
        these = f"these {len(found)} task instances" if len(found) > 1 else "this task instance"
        sure(f"You are about to {words.infinitive} {these}. Go on?", False)
    done = _carry_out(way, words, wishes, len(found) or None)
    touched = done["touched"]
    if output != "table":
        show(touched, output, _COLUMNS)
    elif not touched:
        click.echo(f"There is nothing to {words.infinitive}.")
    else:
        runs = len({(row["dag_id"], row["run_id"]) for row in touched})
        were = "was" if len(touched) == 1 else "were"
        click.echo(f"{_counted(touched)} of {runs} run{'s' if runs != 1 else ''} {were} {words.participle}.")
    if done["ended"]:
        names = ", ".join(done["ended"][:3]) + (" …" if len(done["ended"]) > 3 else "")
        click.echo(
            f"Runs that had ended keep their state, since nothing of them has to run: {names}. "
            "To change it: tradewind dags set-state",
            err=True,
        )
    say_if_offline(way)


def _carry_out(
    way: CommandClient, words: Words, wishes: list[dict[str, Any]], total: int | None = None
) -> dict[str, list[Any]]:
    """Every bounded step of it."""
    told: dict[str, list[Any]] = {"touched": [], "ended": []}
    with progress(words.doing, total) as bar:
        for wish in wishes:
            after = None
            while True:
                answer = way.call(words.command, **wish, after=after)
                told["touched"] += answer["task_instances"]
                told["ended"] += answer.get("ended") or []
                bar.advance(len(answer["task_instances"]))
                after = answer["next"]
                if after is None:
                    break
    return told


def _counted(found: list[Any]) -> str:
    """`3 task instances`."""
    return f"{len(found)} task instance{'s' if len(found) != 1 else ''}"
