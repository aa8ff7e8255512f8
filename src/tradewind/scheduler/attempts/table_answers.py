"""Rows for queries of user code written for Airflow's database: DAGs, pools, task instances, keys of XComs,
names of variables and connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.model.operator_classes import class_name
from tradewind.scheduler.attempts.asked_tasks import asked_tasks
from tradewind.scheduler.attempts.record_rows import RECORDS
from tradewind.store.port import Reader, RowReader
from tradewind.wire.messages import Failure, ListRows, Value

ROWS_MAX = 10_000
"""Maximum number of rows of an answer."""


def table_answer(store: Reader, question: ListRows) -> Value | Failure:
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
            rows = [{**one._asdict(), "fileloc": one.file} for one in store.dag_facts(ROWS_MAX)]
        case "import_error":
            rows = [
                {"bundle_name": bundle, "filename": file, "stacktrace": problem.stack_trace or problem.message}
                for (bundle, file), problem in store.import_problems().items()
            ]
        case "task_instance":
            rows = list(_task_instances(store, question))
        case "xcom_key":
            runs = [run for run_id in question.run_ids if (run := store.find_run(question.dag_id, run_id)) is not None]
            rows = [{"run_id": run.run_id, "key": key} for run in runs for key in store.pushed_keys(run.id)]
        case name if name in RECORDS:
            rows = RECORDS[name](store, question)
        case other:
            return Failure(question.op, f"there is no table {other!r} here")
    return Value(question.op, True, rows[:ROWS_MAX])


def _task_instances(store: RowReader, question: ListRows) -> Iterator[dict[str, Any]]:
    left = ROWS_MAX
    for run_id in question.run_ids:
        run = store.find_run(question.dag_id, run_id)
        if run is None:
            continue
        definition = store.definition(run.version)
        tasks = {task.task_id: task for task in definition.tasks}
        wanted = asked_tasks(question, definition)
        if question.group is not None and not wanted:
            continue
        found = store.instance_facts(run.id, wanted, left)
        left -= len(found)
        for one in found:
            task = tasks.get(one.task_id)  # None: the DAG has this task no more
            yield {
                "dag_id": run.dag_id,
                "task_id": one.task_id,
                "run_id": run.run_id,
                "map_index": max(one.map_index, -1),
                "state": one.state.shown,
                "logical_date": run.logical_date,
                "try_number": one.try_number,
                "max_tries": one.max_tries,
                "queued_at": one.queued_at,
                "started_at": one.started_at,
                "ended_at": one.ended_at,
                "hostname": one.hostname,
                "pid": one.pid,
                "executor": one.executor,
                "note": one.note,
                "map_label": one.map_label,
                "pool": one.pool or (task.pool if task is not None else None),
                "pool_slots": task.pool_slots if task is not None else 1,
                "queue": task.queue if task is not None else None,
                "operator": class_name(task.operator) if task is not None else None,
                "custom_operator_name": task.operator if task is not None else None,
            }
