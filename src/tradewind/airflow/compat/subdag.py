"""`SubDagOperator` of Airflow 1 and 2: the tasks of the other DAG become a task group of this one."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any

from tradewind.model.errors import DefinitionError
from tradewind.model.states import TriggerRule
from tradewind.sdk import arguments, graph, open_dags
from tradewind.sdk.dag import DAG
from tradewind.sdk.taskgroup import TaskGroup

__all__ = ["SkippedStatePropagationOptions", "SubDagOperator"]


class SkippedStatePropagationOptions(Enum):
    """When a sub-DAG counts as skipped. Accepted, without effect: a task group has no state of its own."""

    ALL_LEAVES = "all_leaves"
    ANY_LEAF = "any_leaf"


class SubDagOperator(TaskGroup):
    """A DAG inside a DAG, shown and run as a task group of the outer one.

    The inner tasks keep their ids if the outer DAG uses none of them; otherwise each gets the prefix of the group. The inner
    DAG's schedule, dates and limits have no effect; its `default_args` and `params` hold for its tasks.

    Args:
        subdag: the inner DAG with all its tasks.
        task_id: id of the group.
        dag: the outer DAG; default is the one of the innermost open block.
        trigger_rule: the trigger rule of the first tasks inside, if they have the default rule.
        more: arguments of Airflow's operator (`executor`, `conf`, `pool`, …), without effect.

    Raises:
        DefinitionError: `subdag` is no DAG.
    """

    def __init__(
        self,
        *args: Any,
        subdag: DAG,
        task_id: str | None = None,
        dag: DAG | None = None,
        trigger_rule: Any = TriggerRule.ALL_SUCCESS,
        task_group: TaskGroup | None = None,
        **more: Any,
    ) -> None:
        if not isinstance(subdag, DAG):
            raise DefinitionError(f"SubDagOperator {task_id!r}: subdag is {subdag!r}; it must be a DAG")
        name = task_id or (str(args[0]) if args else subdag.dag_id.rpartition(".")[2])
        outer = dag or open_dags.current_dag()
        defaults = {**(outer.default_args if outer is not None else {}), **more.get("default_args", {})}
        outer = outer or defaults.get("dag")
        warnings.warn("SubDagOperator becomes a TaskGroup; write: with TaskGroup(group_id=…)", DeprecationWarning, stacklevel=2)
        free = outer is None or not any(task_id in outer.ids for task_id in subdag.task_ids if task_id != name)
        super().__init__(name.replace(".", "__"), prefix_group_id=not free, dag=outer, parent_group=task_group)
        self.subdag = subdag
        self.ui_color = "#555"
        graph.move_into(subdag, self)
        rule = arguments.trigger_rule("trigger_rule", trigger_rule)
        for task in self.get_roots():
            if task.trigger_rule is TriggerRule.ALL_SUCCESS:
                task.trigger_rule = rule

    @property
    def task_id(self) -> str | None:
        """The id of the group."""
        return self.group_id
