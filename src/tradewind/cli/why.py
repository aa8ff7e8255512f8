"""`tradewind why`: what is in the way of a task."""

from __future__ import annotations

from typing import Any

import click

from tradewind.cli.common import find_run, reading
from tradewind.cli.output import FORMATS, show_one
from tradewind.model.errors import Unreachable
from tradewind.settings import Settings, load


@click.command()
@click.argument("dag_id")
@click.argument("task_id")
@click.argument("run", metavar="[RUN_ID_OR_DATE]", required=False)
@click.option("--map-index", type=int, help="Of a mapped task; its first unfinished instance unless told.")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", help="How to write the answer.")
def why(dag_id: str, task_id: str, run: str | None, map_index: int | None, output: str) -> None:
    """Say why a task is not running (in the newest unfinished run unless told)."""
    settings = load()
    run_id = None
    if run is not None:
        with reading(settings) as store:
            run_id = find_run(store, dag_id, run).run_id
    found = ask(settings, dag_id, task_id, run_id, map_index)
    if output != "table":
        show_one(found, output)
        return
    which = f"[{found['map_index']}]" if found["map_index"] >= 0 else ""
    click.echo(f"{dag_id}.{task_id}{which} in {found['run_id']}: {found['state'] or 'not examined yet'}")
    for blocker in found["blockers"]:
        click.echo(f"  - {blocker['sentence']}  [{blocker['rule']}]")
    if not found["blockers"]:
        click.echo("  Nothing is in its way: the next step starts it.")
    for sentence in found["callbacks"]:
        click.echo(f"  - {sentence}")


def ask(settings: Settings, dag_id: str, task_id: str, run_id: str | None, map_index: int | None = None) -> dict[str, Any]:
    """The live scheduler's answer; without one, what the database alone can tell."""
    from tradewind.client.control import ControlClient

    try:
        with ControlClient(settings.paths.scheduler_socket, "cli") as control:
            answer: dict[str, Any] = control.call("why", dag_id=dag_id, task_id=task_id, run_id=run_id, map_index=map_index)
            return answer
    except Unreachable:
        from tradewind.scheduler.why import why as from_store  # lazy door: only where there is no scheduler to ask

        with reading(settings) as store:
            return from_store(store, None, dag_id, task_id, run_id, map_index)
