"""Rows for queries of user code written for Airflow's database: DAGs, pools, task instances, keys of XComs,
names of variables and connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.store.port import RowReader
from tradewind.wire.messages import Failure, ListRows, Value

ROWS_MAX = 10_000
"""Maximum number of rows of an answer."""


def table_answer(store: RowReader, question: ListRows) -> Value | Failure:
    """Return the rows of one table, at most `ROWS_MAX`. For a table that does not exist, return a `Failure`."""
    rows: list[dict[str, Any]]
    match question.table:
        case "variable":
            rows = [{"key": one.key, "description": one.description} for one in store.variables()]
        case "connection":
            rows = [{"conn_id": one.conn_id} for one in store.connections()]
        case "pool":
            rows = [
                {"pool": one.name, "slots": one.slots, "description": one.description, "include_deferred": one.include_deferred}
                for one in store.pools()
            ]
        case "dag":
            rows = [
                {"dag_id": one.dag_id, "is_paused": one.is_paused, "is_active": one.is_active, "fileloc": one.file}
                for one in store.plans()
            ]
        case "task_instance":
            rows = list(_task_instances(store, question))
        case "xcom_key":
            runs = [run for run_id in question.run_ids if (run := store.find_run(question.dag_id, run_id)) is not None]
            rows = [{"run_id": run.run_id, "key": key} for run in runs for key in store.pushed_keys(run.id)]
        case other:
            return Failure(question.op, f"there is no table {other!r} here")
    return Value(question.op, True, rows[:ROWS_MAX])


def _task_instances(store: RowReader, question: ListRows) -> Iterator[dict[str, Any]]:
    for run_id in question.run_ids:
        run = store.find_run(question.dag_id, run_id)
        if run is None:
            continue
        tasks = {task.task_id: task for task in store.definition(run.version).tasks}
        for _, task_id, map_index, state in store.task_instances_of(run, tasks):
            task = tasks[task_id]
            yield {
                "dag_id": run.dag_id,
                "task_id": task_id,
                "run_id": run.run_id,
                "map_index": map_index,
                "state": state.shown,
                "logical_date": run.logical_date,
                "pool": task.pool,
                "queue": task.queue,
                "operator": task.operator,
            }
