"""`tradewind callbacks …`: callbacks and mails that have not been acknowledged."""

from __future__ import annotations

import click

from tradewind.cli.common import door, reading, say_if_offline, sure
from tradewind.cli.completion import complete_dags
from tradewind.cli.lazy import HelpfulGroup
from tradewind.cli.output import output_option, show

_COLUMNS = ("id", "what", "dag_id", "run_id", "task_id", "tries", "parked", "problem", "due_at")


@click.group(cls=HelpfulGroup)
def callbacks() -> None:
    """Callbacks and mails that wait, and those that failed."""


@callbacks.command("list")
@click.option("--parked", is_flag=True, help="Only those that are not tried any more.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many.")
@output_option
def list_callbacks(parked: bool, limit: int, output: str) -> None:
    """What has not been called yet, the oldest first."""
    import msgspec

    from tradewind.store.callback_view import shown

    with reading() as store:
        found = [msgspec.to_builtins(shown(item)) for item in store.posts(parked=parked or None, at_most=limit)]
    show(found, output, _COLUMNS, empty="No callback waits.")


@callbacks.command("list-misses")
@click.option("-d", "--dag-id", shell_complete=complete_dags, help="Only of this DAG.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many.")
@output_option
def list_misses(dag_id: str | None, limit: int, output: str) -> None:
    """Deadlines (sla, deadline) that were missed, the latest first."""
    import msgspec

    from tradewind.store.callback_view import miss_shown

    with reading() as store:
        if dag_id is not None:
            store.need_dag(dag_id)
        found = [msgspec.to_builtins(miss_shown(miss)) for miss in store.misses(dag_id, at_most=limit)]
    show(found, output, ("dag_id", "run_id", "task_id", "name", "due_at", "noticed_at"), empty="No deadline was missed.")


@callbacks.command()
@click.argument("ids", type=int, nargs=-1)
@click.option(
    "--all", "every", is_flag=True, help="All that failed: those that are parked, and those that wait for their next try."
)
def retry(ids: tuple[int, ...], every: bool) -> None:
    """Try those that failed again now."""
    _check(ids, every)
    way = door()
    done = way.call("retry_callbacks", ids=None if every else list(ids))["ids"]
    click.echo(f"Tried again now: {_named(done)}." if done else "No callback failed: there is nothing to try again.")
    if done:
        say_if_offline(way)


@callbacks.command()
@click.argument("ids", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that are parked.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def drop(ids: tuple[int, ...], every: bool, yes: bool) -> None:
    """Give them up: they are never called."""
    _check(ids, every)
    sure("Really give them up?", yes)
    done = door().call("drop_callbacks", ids=None if every else list(ids))["ids"]
    click.echo(f"Given up: {_named(done)}." if done else "No callback is parked: there is nothing to give up.")


def _check(ids: tuple[int, ...], every: bool) -> None:
    if bool(ids) == every:
        raise click.UsageError("give the numbers that `tradewind callbacks list` shows, or --all")


def _named(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
