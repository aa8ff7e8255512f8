"""`tradewind callbacks …`: pending and failed callbacks and mails."""

from __future__ import annotations

import click

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import command_client, confirm, reading, warn_if_no_scheduler
from tradewind.cli.completers import complete_dags
from tradewind.cli.output import output_option, show

_COLUMNS = ("id", "what", "dag_id", "run_id", "task_id", "tries", "parked", "problem", "due_at")


@click.group(cls=CommandGroup)
def callbacks() -> None:
    """Manage pending and failed callbacks and mails."""


@callbacks.command("list")
@click.option("--parked", is_flag=True, help="Only callbacks that failed and will not be retried.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Show at most this many rows.")
@output_option
def list_callbacks(parked: bool, limit: int, output: str) -> None:
    """List callbacks and mails that have not succeeded yet, the oldest first."""
    import msgspec

    from tradewind.store.callback_view import shown

    with reading() as store:
        found = [msgspec.to_builtins(shown(item)) for item in store.outbox_items(parked=parked or None, at_most=limit)]
    show(found, output, _COLUMNS, empty="There are no pending callbacks.")


@callbacks.command("list-misses")
@click.option("-d", "--dag-id", shell_complete=complete_dags, help="Only deadlines of this DAG.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Show at most this many rows.")
@output_option
def list_misses(dag_id: str | None, limit: int, output: str) -> None:
    """List missed deadlines (sla, deadline), the latest first."""
    import msgspec

    from tradewind.store.callback_view import miss_shown

    with reading() as store:
        if dag_id is not None:
            store.need_dag(dag_id)
        found = [msgspec.to_builtins(miss_shown(miss)) for miss in store.deadline_misses(dag_id, at_most=limit)]
    show(found, output, ("dag_id", "run_id", "task_id", "name", "due_at", "noticed_at"), empty="No deadline was missed.")


@callbacks.command()
@click.argument("ids", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All failed callbacks: parked ones and those that wait for their next try.")
def retry(ids: tuple[int, ...], every: bool) -> None:
    """Retry failed callbacks now."""
    from tradewind.wire import commands as c

    _check(ids, every)
    client = command_client()
    done = client.call(c.RetryCallbacks(None if every else list(ids))).ids
    click.echo(f"Callbacks that are retried now: {_ids_text(done)}." if done else "There are no failed callbacks to retry.")
    if done:
        warn_if_no_scheduler(client)


@callbacks.command()
@click.argument("ids", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All parked callbacks.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def drop(ids: tuple[int, ...], every: bool, yes: bool) -> None:
    """Delete parked callbacks, so that they are never called."""
    from tradewind.wire import commands as c

    _check(ids, every)
    confirm("Really delete these callbacks?", yes)
    done = command_client().call(c.DropCallbacks(None if every else list(ids))).ids
    click.echo(f"Deleted callbacks: {_ids_text(done)}." if done else "There are no parked callbacks to delete.")


def _check(ids: tuple[int, ...], every: bool) -> None:
    if bool(ids) == every:
        raise click.UsageError("give either callback ids (tradewind callbacks list) or --all")


def _ids_text(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
