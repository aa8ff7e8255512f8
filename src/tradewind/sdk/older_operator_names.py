"""Names of Airflow 1 and 2's `BaseOperator` that extra links, tests and operators of provider packages use."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tradewind.model.states import WeightRule
from tradewind.sdk.plugins import plugin_sources, plugins_of_process

if TYPE_CHECKING:
    from tradewind.sdk.operator import BaseOperator


class OlderOperatorNames:
    """Base of `BaseOperator`. An operator may replace each name by an attribute of its own."""

    deps: ClassVar[frozenset[Any]] = frozenset()
    """What a task waits for besides its upstream tasks. The scheduler decides it."""

    def _operator(self) -> BaseOperator:
        return cast("BaseOperator", self)

    @property
    def operator_extra_link_dict(self) -> Mapping[str, Any]:
        """Name → extra link of this operator."""
        return {str(link.name): link for link in self._operator().operator_extra_links or ()}

    @property
    def global_operator_extra_link_dict(self) -> Mapping[str, Any]:
        """Name → extra link that a plugin adds to all operators."""
        if not plugin_sources((b"operator_extra_links",)):
            return {}
        plugins = [found.plugin for found in plugins_of_process().plugins]
        return {str(link.name): link for one in plugins for link in getattr(one, "global_operator_extra_links", None) or ()}

    @cached_property
    def extra_links(self) -> list[str]:
        """The names of all extra links."""
        return sorted({*self.operator_extra_link_dict, *self.global_operator_extra_link_dict})

    def get_extra_links(self, ti: Any, link_name: str) -> str | None:
        """The address of an extra link; None if the operator has no such link.

        Args:
            ti: the task instance; until Airflow 2.2 the logical date.
        """
        link = self.operator_extra_link_dict.get(link_name) or self.global_operator_extra_link_dict.get(link_name)
        if link is None:
            return None
        task = self._operator()
        takes = inspect.signature(link.get_link).parameters
        if "ti_key" not in takes and not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
            return cast("str", link.get_link(task, ti if isinstance(ti, datetime) else ti.execution_date))
        if isinstance(ti, datetime):
            # lazy import: only tests give a date
            from tradewind.execution.task_instance import TaskInstance

            ti = TaskInstance(task, ti)
        return cast("str", link.get_link(task, ti_key=ti.key))

    @cached_property
    def priority_weight_total(self) -> int:
        """The priority of the task with those of other tasks, as `weight_rule` says."""
        task = self._operator()
        rule = task.weight_rule
        if rule is WeightRule.ABSOLUTE or not task.has_dag():
            return task.priority_weight
        others = task.get_flat_relatives(upstream=rule is WeightRule.UPSTREAM)
        return task.priority_weight + sum(one.priority_weight for one in others)

    def get_task_instances(self, start_date: datetime | None = None, end_date: datetime | None = None, **_options: Any) -> Any:
        """The task instances of this task in runs of this process."""
        task = self._operator()
        return [ti for ti in task.dag.get_task_instances(start_date, end_date) if ti.task_id == task.task_id]

    @classmethod
    def get_serialized_fields(cls) -> frozenset[str]:
        """The names of the attributes that describe a task."""
        own = (name for one in cls.__mro__ for name in getattr(one, "__annotations__", ()) if not name.startswith("_"))
        return frozenset({*own, "task_type", "ui_color", "ui_fgcolor", "template_fields", "template_ext"})

    def add_only_new(self, item_set: set[str], item: str, dag_id: str | None = None) -> None:
        """Add an id to a set; warn if it is there."""
        if item in item_set:
            self._operator().log.warning("dependency %s, %s is already registered in DAG %s", self, item, dag_id or "")
        item_set.add(item)
