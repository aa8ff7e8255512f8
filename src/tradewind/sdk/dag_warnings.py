"""What the author of a DAG should know although the DAG can be used: arguments that are kept, and do nothing yet.

One sentence for each argument, however many tasks have it. They travel with the definition and are shown wherever DAGs are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator


_OF_TASKS: tuple[tuple[str, Callable[[BaseOperator], bool], str], ...] = (
    (
        "outlets",
        lambda task: any(not hasattr(one, "condition") for one in task.outlets),
        "what is no Asset or AssetAlias is recorded and shown; it emits no events, so it starts no DAG",
    ),
    (
        "executor_config",
        lambda task: bool(task.executor_config),
        "it speaks to executors of other machines and changes nothing for tasks that run on this one",
    ),
    (
        "resources",
        lambda task: bool(task.resources),
        "they are not reserved on this machine; a pool with as many slots as there is room limits tasks",
    ),
)
"""(argument, does the task have it?, what becomes of it)."""

_OF_DAGS: tuple[tuple[str, str], ...] = (
    ("access_control", "it is not applied: who may do what is decided by the role of the user alone"),
)


def of_dag(dag: DAG) -> tuple[str, ...]:
    """The sentences about a DAG."""
    found = [f"{name}: {becomes}" for name, becomes in _OF_DAGS if getattr(dag, name)]
    for name, has, becomes in _OF_TASKS:
        ids = [task.task_id for task in dag.task_dict.values() if has(task)]
        if ids:
            more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
            found.append(f"{name} of task {ids[0]}{more}: {becomes}")
    return tuple(found)


def callback_name(callback: Any) -> str:
    """How people know a callback: the function's name, or its class for an object."""
    while isinstance(callback, partial):
        callback = callback.func
    return str(getattr(callback, "__name__", None) or type(callback).__name__)
