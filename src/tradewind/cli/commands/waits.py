"""`tradewind waits …`: list deferred tasks and what they wait for."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import reading
from tradewind.cli.completers import complete_dags
from tradewind.cli.output import columns_option, output_option, show

_COLUMNS = ("dag_id", "task_id", "run_id", "since", "waits_for", "until", "timeout_at", "impossible")


@click.group(cls=CommandGroup)
def waits() -> None:
    """List deferred tasks and what they wait for."""


@waits.command("list")
@click.argument("dag_id", required=False, shell_complete=complete_dags)
@click.option("--impossible", is_flag=True, help="Only waits that can never end, as far as is known.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Show at most this many rows.")
@columns_option
@output_option
def list_waits(dag_id: str | None, impossible: bool, limit: int, columns: str | None, output: str) -> None:
    """List deferred tasks, the longest wait first. A wait that can never end is shown with the reason and what would help."""
    import time

    from tradewind.scheduler.waits import listing

    with reading() as store:
        if dag_id is not None:
            store.need_dag(dag_id)
        now = time.time_ns() // 1000
        listed = listing.list_waits(store, now, dag_id=dag_id, limit=limit, impossible_only=impossible)
    found: list[dict[str, Any]] = msgspec.to_builtins(listed)
    rows = found if output in ("json", "yaml") else [_in_words(row) for row in found]
    none = "There are no waits that can never end." if impossible else "No task is deferred."
    show(rows, output, _COLUMNS, chosen=columns, empty=none)


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the map index in the task id, and the reasons as text."""
    which = f"[{row['map_index']}]" if row["map_index"] >= 0 else ""
    return {**row, "task_id": row["task_id"] + which, "impossible": " ".join(one["sentence"] for one in row["impossible"])}
