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


class _GroupOfOperator(TaskGroup):
    """A task group that is made with the arguments of an operator, and gets its tasks from another DAG.

    Subclasses of Airflow's `SubDagOperator` that make their DAG themselves call this constructor instead of that of
    `SubDagOperator`, `super(SubDagOperator, self).__init__(task_id=…)`, and then set `subdag`.

    Args:
        task_id: id of the group.
        dag: the outer DAG; default is the one of the innermost open block.
        trigger_rule: the trigger rule of the first tasks inside, if they have the default rule.
        more: arguments of Airflow's operator (`executor`, `conf`, `pool`, …), without effect.
    """

    def __init__(
        self,
        *args: Any,
        task_id: str | None = None,
        dag: DAG | None = None,
        trigger_rule: Any = TriggerRule.ALL_SUCCESS,
        task_group: TaskGroup | None = None,
        **more: Any,
    ) -> None:
        name = task_id or (str(args[0]) if args else None)
        if name is None:
            raise DefinitionError("SubDagOperator needs a task_id")
        outer = dag or open_dags.current_dag()
        defaults = {**(outer.default_args if outer is not None else {}), **more.get("default_args", {})}
        warnings.warn("SubDagOperator becomes a TaskGroup; write: with TaskGroup(group_id=…)", DeprecationWarning, stacklevel=3)
        super().__init__(name.replace(".", "__"), dag=outer or defaults.get("dag"), parent_group=task_group)
        self.ui_color = "#555"
        self._rule_of_roots = arguments.trigger_rule("trigger_rule", trigger_rule)

    @property
    def subdag(self) -> DAG | None:
        """The inner DAG, which is empty since its tasks were moved into this group. None: it is not set yet."""
        found: DAG | None = vars(self).get("subdag")
        return found

    @subdag.setter
    def subdag(self, subdag: DAG) -> None:
        """Move the tasks of a DAG into this group. Raises DefinitionError: it is no DAG."""
        if not isinstance(subdag, DAG):
            raise DefinitionError(f"SubDagOperator {self.group_id!r}: subdag is {subdag!r}; it must be a DAG")
        outer_ids = set(self.dag.ids) - {self.group_id}
        self.prefix_group_id = any(task_id in outer_ids for task_id in subdag.task_ids)
        self.prefix = self.group_id if self.prefix_group_id else None
        vars(self)["subdag"] = subdag
        graph.move_into(subdag, self)
        for task in self.get_roots():
            if task.trigger_rule is TriggerRule.ALL_SUCCESS:
                task.trigger_rule = self._rule_of_roots

    @property
    def task_id(self) -> str | None:
        """The id of the group."""
        return self.group_id


class SubDagOperator(_GroupOfOperator):
    """A DAG inside a DAG, shown and run as a task group of the outer one.

    The inner tasks keep their ids if the outer DAG uses none of them; otherwise each gets the prefix of the group. The inner
    DAG's schedule, dates and limits have no effect; its `default_args` and `params` hold for its tasks.

    Args:
        subdag: the inner DAG with all its tasks.
        task_id: id of the group; default is the last part of the inner DAG's id.
        more: see `_GroupOfOperator`.

    Raises:
        DefinitionError: `subdag` is no DAG.
    """

    def __init__(self, *args: Any, subdag: DAG, task_id: str | None = None, **more: Any) -> None:
        if not isinstance(subdag, DAG):
            raise DefinitionError(f"SubDagOperator {task_id!r}: subdag is {subdag!r}; it must be a DAG")
        super().__init__(*args, task_id=task_id or (None if args else subdag.dag_id.rpartition(".")[2]), **more)
        self.subdag = subdag
