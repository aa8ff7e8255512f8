"""`tradewind dags upcoming`: what starts next in all DAGs."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from tradewind.cli.commands.why import ask
from tradewind.cli.completers import complete_dags
from tradewind.cli.output import output_option, show
from tradewind.model.counts import counted
from tradewind.settings import load


@click.command("upcoming")
@click.argument("dag_ids", metavar="[DAG_ID...]", nargs=-1, shell_complete=complete_dags)
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Show at most this many.")
@click.option("--timezone", metavar="ZONE", help="Time zone of the shown times. Default: the setting core.default_timezone.")
@output_option
def upcoming(dag_ids: tuple[str, ...], limit: int, timezone: str | None, output: str) -> None:
    """List what starts next in all DAGs: scheduled runs, runs that wait for their date, task retries, rescheduled sensors."""
    from tradewind.wire import commands as c

    settings = load()
    zone = timezone or settings.core.default_timezone
    found = ask(settings, c.Upcoming(limit, list(dag_ids), zone))
    rows: list[dict[str, Any]] = msgspec.to_builtins(found.upcoming)
    shown = [
        {**row, "at": row["local"], "what": row["task_id"] or row["kind"]} if output in ("table", "plain") else row
        for row in rows
    ]
    show(shown, output, ("at", "dag_id", "what", "run_id", "held_by"), empty="Nothing is planned.")
    if found.paused_dags:
        click.echo(f"Not listed: {counted(found.paused_dags, 'paused DAG')}, because their runs do not start.", err=True)
