"""The rows that sessions of tests change at once, in the memory of the process (`tradewind.execution.local_database`).

Connections, variables and pools are changed by the commit of the session, as in a task: see `pending_changes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.execution.local_database import LocalRun, database, in_test_process, is_open, open_database
from tradewind.execution.other_instances import OtherTaskInstance
from tradewind.execution.task_instance import DagRun, TaskInstance
from tradewind.model.errors import NotYetSupported
from tradewind.sdk import open_dags
from tradewind.wire import runtime


def is_possible() -> bool:
    """Whether this process runs tests and is not reading a DAG file."""
    return runtime.is_local() and not open_dags.is_reading() and (is_open() or in_test_process())


def add(one: Any) -> bool:
    """Store a row. Returns False if tests cannot store rows of this kind, or if this process runs no tests."""
    if not is_possible():
        return False
    kept = open_database()
    match one:
        case TaskInstance():
            kept.record_state(one)
        case DagRun():
            known = kept.find(one.dag_id, one.run_id)
            run = known if known is not None else kept.add(LocalRun(one.dag_id, one.run_id, dict(one._dates), one.dag))
            run.facts.update(run_type=one.run_type.value, state=str(getattr(one.state, "value", one.state)), conf=one.conf)
        case _:
            return False
    return True


def delete(one: Any) -> bool:
    """Delete a row. Returns False if tests cannot store rows of this kind, or if this process runs no tests."""
    if not is_possible():
        return False
    kept = database()
    match one:
        case TaskInstance():
            return _delete_instance(one.dag_id, one.run_id, one.task_id, one.map_index)
        case DagRun():
            return kept.runs.pop((one.dag_id, one.run_id), None) is not None
        case _:
            return _delete_stored(one)


def delete_all(objects: Callable[[], list[Any]]) -> int:
    """Delete the rows of a query. Returns how many; 0 for a table that tests cannot change."""
    open_database()
    try:
        found = objects()
    except NotYetSupported:
        return 0
    return sum(delete(row) for row in found)


def _delete_stored(one: Any) -> bool:
    """Delete the row from which an object of a query was made."""
    columns = vars(one)
    kind = getattr(one, "table", "")
    if isinstance(one, OtherTaskInstance):
        return _delete_instance(one.dag_id, one.run_id, one.task_id, one.map_index)
    if kind == "XCom":
        run = database().find(columns["dag_id"], columns["run_id"])
        return run is not None and run.xcoms.pop((columns["task_id"], columns["map_index"], columns["key"]), None) is not None
    return False


def _delete_instance(dag_id: str, run_id: str, task_id: str, map_index: int) -> bool:
    run = database().find(dag_id, run_id)
    if run is None or (task_id, map_index) not in run.states:
        return False
    del run.states[task_id, map_index]
    run.forget(task_id, map_index)
    return True
