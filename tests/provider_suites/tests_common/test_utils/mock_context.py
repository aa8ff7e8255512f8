"""A context whose task instance keeps XComs in memory."""

from __future__ import annotations

from typing import Any

from tests_common.test_utils.runs import make_runtime_ti

from tradewind.execution.context import Context


def mock_context(task: Any, run_id: str | None = None) -> Context:
    """The context of a task. `xcom_pull` of its task instance returns the values that were pushed to it."""
    ti = make_runtime_ti(task, run_id=run_id)
    values: dict[str, Any] = {}

    def address(key: str, map_indexes: Any = None) -> str:
        index = ti.map_index if map_indexes is None else map_indexes
        plain = f"{ti.task_id}_{ti.dag_id}_{key}"
        return plain if isinstance(index, int) and index < 0 else f"{plain}_{index}"

    def push(key: str, value: Any, *_args: Any, **_kwargs: Any) -> None:
        values[address(key)] = value

    def pull(task_ids: Any = None, dag_id: Any = None, key: str = "return_value", *_args: Any, **more: Any) -> Any:
        del task_ids, dag_id
        return values.get(address(key, more.get("map_indexes")), more.get("default"))

    ti.xcom_push, ti.xcom_pull = push, pull
    context: Context = ti.get_template_context()
    return context
