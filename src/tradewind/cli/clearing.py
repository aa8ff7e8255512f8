"""Clearing task instances from the command line: show what it touches, ask, and do it in bounded pieces, a few runs each.

A piece is one command of its own. If the command line is interrupted between two of them, what was cleared is cleared, and the
same command goes on with the rest: a task instance that is cleared already is not touched again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from tradewind.cli.common import door, reading, say_if_offline, sure
from tradewind.cli.output import show
from tradewind.cli.progress import progress

_COLUMNS = ("dag_id", "run_id", "task_id", "map_index", "state")


class Clearing(NamedTuple):
    """What is to be cleared in one DAG. No task ids: all tasks. Dates in microseconds."""

    dag_id: str
    task_ids: tuple[str, ...]
    run_id: str | None
    start: int | None
    end: int | None
    upstream: bool
    downstream: bool
    only_failed: bool
    only_running: bool
    instances: tuple[tuple[str, int], ...] = ()
    """(task id, map index): of these tasks, only these."""


def clear_and_tell(wishes: list[Clearing], *, yes: bool, dry_run: bool, output: str) -> None:
    """Show what it would touch and ask (`yes` answers); then clear, and say what was cleared."""
    found = [] if yes and not dry_run else touched(wishes)
    if dry_run:
        show(found, output, _COLUMNS, empty="There is nothing to clear.")
        if output == "table" and found:
            click.echo(f"{len(found)} task instances would be cleared; nothing was changed.", err=True)
        return
    if not yes:
        if not found:
            click.echo("There is nothing to clear.", err=True)
            return
        show(found, "plain", _COLUMNS)
        sure(f"You are about to clear these {len(found)} task instances. Go on?", False)
    way = door()
    cleared: list[dict[str, Any]] = []
    with progress("Clearing", len(found) or None) as bar:
        for wish in wishes:
            after = None
            while True:
                answer = way.call("clear", **{**wish._asdict(), "instances": wish.instances or None}, after=after)
                cleared += answer["task_instances"]
                bar.advance(len(answer["task_instances"]))
                after = answer["next"]
                if after is None:
                    break
    if output != "table":
        show(cleared, output, _COLUMNS)
    else:
        runs = len({(row["dag_id"], row["run_id"]) for row in cleared})
        told = f"{len(cleared)} task instances of {runs} run{'s' if runs != 1 else ''} were cleared."
        click.echo(told if cleared else "There is nothing to clear.")
    say_if_offline(way)


def touched(wishes: list[Clearing]) -> list[dict[str, Any]]:
    """The task instances that would be cleared, as they stand now. Only reads."""
    from tradewind.kernel.rules import setups  # lazy door: only where it is asked what would be touched

    rows: list[dict[str, Any]] = []
    with reading() as store:
        for wish in wishes:
            dag_id = wish.dag_id
            chosen = store.select_tasks(dag_id, wish.task_ids, upstream=wish.upstream, downstream=wish.downstream)
            chosen = setups.with_setups(store.current_definition(dag_id), chosen)
            if wish.run_id is not None:
                runs = [store.need_run(dag_id, wish.run_id)]
            else:
                runs = store.runs_between(dag_id, wish.start, wish.end)
            for run in runs:
                for _, task_id, map_index, state in store.clearable(
                    run, chosen, only_failed=wish.only_failed, only_running=wish.only_running
                ):
                    if any(one[0] == task_id for one in wish.instances) and (task_id, map_index) not in wish.instances:
                        continue
                    about = {"task_id": task_id, "map_index": map_index, "state": state.value}
                    rows.append({"dag_id": dag_id, "run_id": run.run_id, **about})
    return rows
