"""Converts the neutral workflow of a golden specification (conformance format, section 3) to a `DagDefinition`.

The order of building is the format's: edges between tasks, then setup/teardown pairs, then the edges of groups in the order
listed, because a group's roots and leaves depend on the edges that exist when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tradewind.model.definition import (
    DagDefinition,
    GroupDefinition,
    MapConcat,
    MapLiteral,
    MapSource,
    MapXCom,
    MapZip,
    TaskDefinition,
    map_providers,
)
from tradewind.model.moments import SECOND
from tradewind.model.states import TriggerRule, WeightRule

Json = Mapping[str, Any]


class Unsupported(Exception):
    """The specification needs a feature that is not supported."""


class Workflow:
    """Tasks, groups and edges of one neutral workflow, with the properties that the format needs."""

    def __init__(self, spec: Json) -> None:
        self.tasks: dict[str, Json] = {task["id"]: task for task in spec["tasks"]}
        self.groups: dict[str, Json] = {group["id"]: group for group in spec.get("groups", ())}
        self.up: dict[str, set[str]] = {task_id: set() for task_id in self.tasks}
        self.down: dict[str, set[str]] = {task_id: set() for task_id in self.tasks}
        edges = [(up, down) for up, down in spec.get("edges", ())]
        between = [(up, down) for up, down in edges if up in self.tasks and down in self.tasks]
        inside = [(up, down) for up, down in between if self.mapped_group(up) == self.mapped_group(down) is not None]
        for up, down in inside:
            self._connect(up, down)
        for node, part in (*self.tasks.items(), *self.groups.items()):
            targets = self._over_lists(node) if part.get("expand") else []
            for provider in map_providers(_sources(part)):
                for target in targets:
                    self._connect(provider, target)
        for up, down in between:
            self._connect(up, down)
        for task_id, task in self.tasks.items():
            for setup in (task.get("teardown") or {}).get("setups", ()):
                self._connect(setup, task_id)
        for up, down in edges:
            if up in self.groups or down in self.groups:
                # both ends are read before the edges are added, so that the new edges do not change them
                sources = list(self.leaves(up)) if up in self.groups else [up]
                targets = self.roots(down)
                for source in sources:
                    for target in targets:
                        self._connect(source, target)

    def _connect(self, up: str, down: str) -> None:
        self.up[down].add(up)
        self.down[up].add(down)

    def members(self, group: str) -> list[str]:
        """Tasks inside a group, at any depth."""

        def inside(owner: str | None) -> bool:
            while owner is not None:
                if owner == group:
                    return True
                owner = self.groups[owner].get("parent")
            return False

        return [task_id for task_id, task in self.tasks.items() if inside(task.get("group"))]

    def mapped_group(self, task_id: str) -> str | None:
        """The innermost mapped group around a task."""
        group = self.tasks[task_id].get("group")
        while group is not None and not self.groups[group].get("expand"):
            group = self.groups[group].get("parent")
        return group

    def roots(self, node: str) -> list[str]:
        """A task itself; of a group, the members without an upstream task in it."""
        if node in self.tasks:
            return [node]
        members = self.members(node)
        return [task_id for task_id in members if self.up[task_id].isdisjoint(members)]

    def _over_lists(self, node: str) -> list[str]:
        """The tasks that depend on the lists over which a node is expanded.

        For a group: its roots at each time that a task is added to it; so all roots that exist when its last own task is added.
        """
        if node in self.tasks:
            return [node]
        members = self.members(node)
        own = [i for i, task_id in enumerate(members) if self.tasks[task_id].get("group") == node]
        early = members[: own[-1] + 1] if own else []
        return sorted({*early, *self.roots(node)})

    def leaves(self, group: str) -> Iterator[str]:
        """Members without a downstream task in the group; a teardown is replaced by the tasks before it."""
        members = set(self.members(group))
        for task_id in self.members(group):
            if not self.down[task_id].isdisjoint(members):
                continue
            if self.is_teardown(task_id):
                yield from self._before_teardown(task_id, members)
            else:
                yield task_id

    def _before_teardown(self, teardown: str, members: set[str]) -> Iterator[str]:
        for task_id in sorted(self.up[teardown] & members):
            if self.is_teardown(task_id):
                yield from self._before_teardown(task_id, members)
            elif not self.tasks[task_id].get("setup") and not any(
                other != teardown and not self.is_teardown(other) for other in self.down[task_id] & members
            ):
                yield task_id

    def is_teardown(self, task_id: str) -> bool:
        return self.tasks[task_id].get("teardown") is not None

    def graph(self) -> list[list[str]]:
        """Sorted edges between tasks."""
        return sorted([up, down] for up, downs in self.down.items() for down in downs)

    def definition(self, dag_id: str, settings: Json) -> DagDefinition:
        """The definition, in the order in which the tasks are listed."""
        return DagDefinition(
            dag_id=dag_id,
            tasks=tuple(self._task(task_id) for task_id in self.tasks),
            groups=tuple(self._group(g) for g in self.groups.values()),
            fail_fast=settings.get("fail_fast", False),
            catchup=settings.get("catchup", False),
            max_active_runs=settings.get("max_active_runs", 16),
            max_active_tasks=settings.get("max_active_tasks", 16),
        )

    def _group(self, group: Json) -> GroupDefinition:
        return GroupDefinition(
            group_id=group["id"], parent=group.get("parent"), mapped=bool(group.get("expand")), expand=_sources(group)
        )

    def _task(self, task_id: str) -> TaskDefinition:
        task = self.tasks[task_id]
        teardown = task.get("teardown")
        waits = task.get("wait_for_downstream", False)
        rule = (
            TriggerRule.ALL_DONE_SETUP_SUCCESS if teardown is not None else TriggerRule(task.get("trigger_rule", "all_success"))
        )
        return TaskDefinition(
            task_id=task_id,
            upstream=tuple(sorted(self.up[task_id])),
            trigger_rule=rule,
            mapped=bool(task.get("expand")),
            expand=_sources(task),
            retries=task.get("retries", 0),
            retry_delay=task.get("retry_delay", 0) * SECOND,
            group=task.get("group"),
            empty=task.get("kind") == "empty",
            is_setup=task.get("setup", False),
            is_teardown=teardown is not None,
            on_failure_fail_dagrun=(teardown or {}).get("on_failure_fail_dagrun", False),
            depends_on_past=task.get("depends_on_past", False) or waits,
            wait_for_downstream=waits,
            max_active_tis_per_dag=task.get("max_active_tis_per_dag"),
            max_active_tis_per_dagrun=task.get("max_active_tis_per_dagrun"),
            pool=task.get("pool", "default_pool"),
            pool_slots=task.get("pool_slots", 1),
            priority_weight=task.get("priority_weight", 1),
            weight_rule=WeightRule(task.get("weight_rule", "downstream")),
        )


def _sources(part: Json) -> tuple[MapSource, ...]:
    """The lists over which a task or group is expanded."""
    return tuple(_source(dimension) for dimension in part.get("expand") or ())


def _source(dimension: Any) -> MapSource:
    if isinstance(dimension, str):
        return MapXCom(dimension)
    ((kind, value),) = dimension.items()
    if kind == "literal":
        return MapLiteral(value)
    if kind == "xcom":
        return MapXCom(value)
    parts = tuple(_source(part) for part in value)
    return MapConcat(parts) if kind == "concat" else MapZip(parts, longest=kind == "zip_longest")
