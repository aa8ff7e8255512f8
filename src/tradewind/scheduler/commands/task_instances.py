"""Task instances that commands name."""

from __future__ import annotations

from tradewind.model.errors import NotFound
from tradewind.model.rows import RunRow
from tradewind.store.port import RowReader


def run_with_instance(store: RowReader, dag_id: str, run_id: str, task_id: str, map_index: int | None) -> RunRow:
    """The run that has this task instance; with `map_index` None any of the task. Raises NotFound."""
    store.need_dag(dag_id)
    row = store.need_run(dag_id, run_id)
    found = store.task_instances_of(row, [task_id])
    if not any(map_index is None or one[2] == map_index for one in found):
        which = f" with map index {map_index}" if map_index is not None and map_index >= 0 else ""
        raise NotFound(f"the run {row.run_id} of DAG {dag_id} has no task instance of {task_id!r}{which}")
    return row
