"""Shell completion of DAG ids, run ids, task ids, pools, keys and assets; each is one short query.

If the database cannot be read there are no completions and no error: an error would be printed into the prompt.
"""

from __future__ import annotations

from typing import Any

import click

_AT_MOST = 200


def _rows(sql: str, parameters: tuple[Any, ...]) -> list[str]:
    """The first column. Does not use the store's operations, because importing them takes longer than the query."""
    from tradewind.settings import load  # lazy import: only for completions
    from tradewind.store.file import first_column

    try:
        return first_column(load().store, f"{sql} LIMIT {_AT_MOST}", parameters)
    except Exception:
        return []


def _prefix_bounds(text: str) -> tuple[str, str]:
    """Lower and upper bound of the texts with this prefix; a query with bounds can use an index."""
    return text, text + "\U0010ffff"


def complete_dags(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    sql = "SELECT dag_id FROM dag WHERE is_active = 1 AND dag_id >= ? AND dag_id <= ? ORDER BY dag_id"
    return _rows(sql, _prefix_bounds(text))


def complete_runs(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    """Run ids of the DAG named by the previous argument, the newest first."""
    dag_id = context.params.get("dag_id")
    if dag_id is None:
        return []
    sql = "SELECT run_id FROM dag_run WHERE dag_id = ? AND run_id >= ? AND run_id <= ? ORDER BY run_after DESC"
    return _rows(sql, (dag_id, *_prefix_bounds(text)))


def complete_tasks(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    """Task ids of the DAG named by a previous argument: of its newest run, or of its definition if it has no run."""
    dag_id = context.params.get("dag_id")
    if dag_id is None:
        return []
    newest = "(SELECT id FROM dag_run WHERE dag_id = ? ORDER BY run_after DESC LIMIT 1)"
    sql = f"SELECT DISTINCT task_id FROM task_instance WHERE run = {newest} AND task_id >= ? AND task_id <= ? ORDER BY slot"
    found = _rows(sql, (dag_id, *_prefix_bounds(text)))
    return found or _defined_tasks(dag_id, text)


def _defined_tasks(dag_id: str, text: str) -> list[str]:
    from tradewind.cli.common import reading  # lazy import: only if the DAG has no run yet

    try:
        with reading() as store:
            names = [task.task_id for task in store.current_definition(dag_id).tasks]
    except Exception:
        return []
    return [name for name in names if name.startswith(text)]


def complete_pools(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    return _rows("SELECT name FROM pool WHERE name >= ? AND name <= ? ORDER BY name", _prefix_bounds(text))


def complete_variables(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    return _rows("SELECT key FROM variable WHERE key >= ? AND key <= ? ORDER BY key", _prefix_bounds(text))


def complete_connections(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    return _rows("SELECT conn_id FROM connection WHERE conn_id >= ? AND conn_id <= ? ORDER BY conn_id", _prefix_bounds(text))


def complete_assets(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    return _rows("SELECT name FROM asset WHERE name >= ? AND name <= ? ORDER BY name", _prefix_bounds(text))
