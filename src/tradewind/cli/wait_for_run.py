"""Waits until a run has ended, with a progress bar and a closing line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from tradewind.cli.common import reading
from tradewind.cli.live_table import duration_text
from tradewind.cli.progress import progress
from tradewind.model.states import FINISHED, TaskState

if TYPE_CHECKING:
    from tradewind.cli.progress import Bar
    from tradewind.model.rows import RunRow
    from tradewind.store.port import Reader

_LOOK_AGAIN_SECONDS = 0.1
_COUNT_EVERY = 5
"""The tasks are counted only at every fifth check, because counting costs more than reading the run."""


def wait_for_run(dag_id: str, run_id: str, timeout: float | None) -> str:
    """Wait until the run has ended, and return a sentence with its result.

    Raises:
        click.ClickException: the run took longer than `timeout` seconds.
        NotFound: the run was deleted while waiting.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    checks = 0
    with reading() as store, progress(run_id, None, slow=True) as bar:
        while (row := store.need_run(dag_id, run_id)).ended_at is None:
            if deadline is not None and time.monotonic() > deadline:
                counts = _counts(store, row)
                raise click.ClickException(f"the run {run_id} had not ended after {timeout:g} s ({counts}); it continues")
            if bar.drawn and checks % _COUNT_EVERY == 0:
                _update_bar(bar, store, row)
            checks += 1
            time.sleep(_LOOK_AGAIN_SECONDS)
        return _closing_line(store, row)


def _update_bar(bar: Bar, store: Reader, row: RunRow) -> None:
    states = store.task_state_counts(row.id)
    done = sum(count for state, count in states.items() if state in FINISHED)
    bar.set(done, max(done, sum(states.values())), f"{row.run_id} {row.state.value}")


def _closing_line(store: Reader, row: RunRow) -> str:
    """`DAG d: run r is failed after 1.2 s (2 success, 1 failed). First failed task: t. Its log: tradewind tasks logs …`"""
    took = f" after {duration_text(row.ended_at - row.started_at)}" if row.ended_at and row.started_at else ""
    text = f"DAG {row.dag_id}: run {row.run_id} is {row.state.value}{took} ({_counts(store, row)})."
    failed = store.list_task_instances(row.dag_id, row.run_id, states=["failed"], limit=1, order_by=("end_date",)).rows
    if failed:
        first = failed[0]
        index = f" --map-index {first.map_index}" if first.map_index >= 0 else ""
        command = f"tradewind tasks logs {row.dag_id} {first.task_id} {row.run_id}{index}"
        text += f"\nFirst failed task: {first.task_id}. Its log: {command}"
    return text


def _counts(store: Reader, row: RunRow) -> str:
    """`3 success, 1 failed`, in the order of the states."""
    states = store.task_state_counts(row.id)
    found = [f"{states[state]} {state.shown or 'not examined yet'}" for state in TaskState if state in states]
    return ", ".join(found) or "no tasks"
