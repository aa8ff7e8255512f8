"""`DagContext` and `TaskGroupContext`: the open DAG and task group, as helpers of DAG files ask for them."""

from __future__ import annotations

from typing import ClassVar

from tradewind.sdk import open_dags
from tradewind.sdk.dag import DAG
from tradewind.sdk.taskgroup import TaskGroup

__all__ = ["DagContext", "TaskGroupContext"]


class DagContext:
    """The DAGs whose `with` block is open."""

    autoregistered_dags: ClassVar[set[object]] = set()
    """Always empty: DAGs are found without it."""
    current_autoregister_module_name: ClassVar[str | None] = None

    @staticmethod
    def get_current_dag() -> DAG | None:
        """The DAG of the innermost open block."""
        return open_dags.current_dag()

    @staticmethod
    def push_context_managed_dag(dag: DAG) -> None:
        """Open a block of the DAG, as `with dag:` does."""
        dag.__enter__()

    @staticmethod
    def pop_context_managed_dag() -> DAG | None:
        """Close the innermost block of a DAG."""
        dag = open_dags.current_dag()
        if dag is not None:
            dag.__exit__(None, None, None)
        return dag

    get_current = get_current_dag
    push = push_context_managed_dag
    pop = pop_context_managed_dag


class TaskGroupContext:
    """The task groups whose `with` block is open."""

    active: ClassVar[bool] = False

    @staticmethod
    def get_current_task_group(dag: DAG | None = None) -> TaskGroup | None:
        """The innermost open group of the DAG, or its root group. The default is the DAG of the innermost open block."""
        dag = dag or open_dags.current_dag()
        return None if dag is None else open_dags.current_group(dag)

    @staticmethod
    def push_context_managed_task_group(task_group: TaskGroup) -> None:
        """Open a block of the group, as `with task_group:` does."""
        task_group.__enter__()

    @staticmethod
    def pop_context_managed_task_group() -> TaskGroup | None:
        """Close the innermost block of a group."""
        group = open_dags.open_groups[-1] if open_dags.open_groups else None
        if group is not None:
            group.__exit__(None, None, None)
        return group

    get_current = get_current_task_group
    push = push_context_managed_task_group
    pop = pop_context_managed_task_group
