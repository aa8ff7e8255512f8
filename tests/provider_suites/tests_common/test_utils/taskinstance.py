"""Task instances, their contexts and templates."""

from __future__ import annotations

from typing import Any

from tests_common.test_utils.runs import make_runtime_ti, run_task_instance

__all__ = [
    "TaskInstanceWrapper",
    "create_task_instance",
    "get_template_context",
    "render_template_fields",
    "run_task_instance",
]


def create_task_instance(task: Any, *, run_id: str | None = None, state: Any = None, map_index: int = -1, **_more: Any) -> Any:
    ti = make_runtime_ti(task, run_id=run_id, map_index=map_index)
    ti.state = state
    return ti


def TaskInstanceWrapper(ti: Any, task: Any) -> Any:
    """The task instance of another task object."""
    ti.task = task
    return ti


def get_template_context(ti: Any, task: Any = None, **_more: Any) -> Any:
    if task is not None:
        ti.task = task
    return ti.get_template_context()


def render_template_fields(ti: Any, task: Any, *, context: Any = None, jinja_env: Any = None, **_more: Any) -> Any:
    task.render_template_fields(context or get_template_context(ti, task), jinja_env)
    return task
