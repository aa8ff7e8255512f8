"""A task group: tasks drawn and joined as one box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from tradewind.model.errors import DefinitionError, DuplicateTaskId
from tradewind.sdk import open_dags
from tradewind.sdk.dependencies import Node
from tradewind.sdk.names import check_group_id, with_suffix

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.mapping import ExpandInput
    from tradewind.sdk.operator import BaseOperator


class TaskGroup(Node):
    """Tasks and groups made inside `with TaskGroup("name"):` belong to it; their ids begin with `name.`.

    Args:
        group_id: unique among the tasks and groups of its DAG; the ids of the groups around it are put before it.
        prefix_group_id: False leaves the ids inside as they are.
        parent_group: default is the innermost open group.
        dag: default is the DAG of the innermost open block.
        default_args: laid over those of the DAG and of the groups around.
        tooltip: shown to people.
        add_suffix_on_collision: an id that is taken becomes `name__1`, `name__2`, … instead of an error.
        group_display_name: shown instead of the id.

    Raises:
        DuplicateTaskId: the id is taken.
        DefinitionError: no DAG is open, or the id may not be.
    """

    DEFAULT_COLOR = "CornflowerBlue"
    DEFAULT_FGCOLOR = "#000"

    expand_input: ExpandInput | None = None
    """What a mapped group is expanded over (see `mapping`)."""

    def __init__(
        self,
        group_id: str | None,
        prefix_group_id: bool = True,
        parent_group: TaskGroup | None = None,
        dag: DAG | None = None,
        default_args: Mapping[str, Any] | None = None,
        tooltip: str = "",
        ui_color: str = DEFAULT_COLOR,
        ui_fgcolor: str = DEFAULT_FGCOLOR,
        add_suffix_on_collision: bool = False,
        group_display_name: str = "",
    ) -> None:
        self.prefix_group_id = prefix_group_id
        self.default_args: dict[str, Any] = dict(default_args or {})
        self.tooltip = tooltip
        self.ui_color = ui_color
        self.ui_fgcolor = ui_fgcolor
        self.group_display_name = group_display_name
        self.children: dict[str, BaseOperator | TaskGroup] = {}
        """Tasks and groups directly inside, by id, in the author's order."""
        self._group_id: str | None = None
        self.parent_group: TaskGroup | None = None
        self.prefix: str | None = None
        """What is put before the ids inside; None for no prefix."""
        if group_id is None:
            if dag is None:
                raise DefinitionError("a task group needs a group_id")
            self.dag = dag
        else:
            self._settle(check_group_id(group_id), parent_group, dag, add_suffix_on_collision)

    def _settle(self, group_id: str, parent: TaskGroup | None, dag: DAG | None, add_suffix: bool) -> None:
        """Find its place among the groups of the DAG, and the id that follows from it."""
        owner = parent.dag if parent is not None else dag or open_dags.current_dag()
        if owner is None:
            raise DefinitionError(f"task group {group_id!r} is in no DAG; create it inside `with DAG(...)` or give it dag=…")
        self.dag = owner
        self.parent_group = parent if parent is not None else open_dags.current_group(owner)
        wanted = self.parent_group.child_id(group_id)
        if add_suffix:
            wanted = with_suffix(wanted, owner.ids, owner.suffixes)
        elif wanted in owner.ids:
            raise DuplicateTaskId(f"DAG {owner.dag_id!r} has a task or group {wanted!r} already")
        self._group_id = wanted
        self.prefix = wanted if self.prefix_group_id else self.parent_group.prefix
        self.default_args = {**self.parent_group.default_args, **self.default_args}
        self.parent_group.children[wanted] = self
        owner.note_group(self)

    @classmethod
    def create_root(cls, dag: DAG) -> TaskGroup:
        """The nameless group around everything in a DAG."""
        return cls(None, dag=dag)

    @property
    def group_id(self) -> str | None:
        """Its full id; None for the group around everything in a DAG."""
        return self._group_id

    @property
    def node_id(self) -> str | None:
        return self._group_id

    @property
    def label(self) -> str | None:
        """The id without the prefix of the groups around it."""
        parent = self.parent_group
        if self._group_id is None or parent is None or parent.prefix is None:
            return self._group_id
        return self._group_id.removeprefix(f"{parent.prefix}.")

    @property
    def is_root(self) -> bool:
        return self._group_id is None

    @property
    def task_group(self) -> TaskGroup | None:
        """The group around this one."""
        return self.parent_group

    def child_id(self, label: str) -> str:
        """The full id of a task or group called `label` inside this group."""
        return label if self.prefix is None else f"{self.prefix}.{label}"

    def add(self, task: BaseOperator) -> BaseOperator:
        """Take in a new task, whose id gets this group's prefix.

        Raises:
            DuplicateTaskId: the id is taken.
        """
        self.dag.take_in(task, self)
        return task

    def copy_into(self, parent: TaskGroup) -> TaskGroup:
        """An empty copy inside a group of another DAG object (see `DAG.partial_subset`)."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.dag, twin.parent_group, twin.children = parent.dag, parent, {}
        assert twin.group_id is not None
        parent.children[twin.group_id] = twin
        parent.dag.note_group(twin)
        return twin

    # --- what is inside ------------------------------------------------------------------------------------------------

    def iter_tasks(self) -> Iterator[BaseOperator]:
        """Every task inside, those of inner groups too, in the author's order."""
        pending: list[BaseOperator | TaskGroup] = list(reversed(self.children.values()))
        while pending:
            node = pending.pop()
            if isinstance(node, TaskGroup):
                pending.extend(reversed(node.children.values()))
            else:
                yield node

    def has_task(self, task: BaseOperator) -> bool:
        group = task.task_group
        while group is not None:
            if group is self:
                return True
            group = group.parent_group
        return False

    def get_child_by_label(self, label: str) -> BaseOperator | TaskGroup:
        return self.children[self.child_id(label)]

    def get_roots(self) -> list[BaseOperator]:
        """Tasks inside with no task inside directly before them."""
        tasks = list(self.iter_tasks())
        inside = {task.task_id for task in tasks}
        return [task for task in tasks if not task._upstream or inside.isdisjoint(task._upstream)]

    def get_leaves(self) -> list[BaseOperator]:
        """Tasks inside with no task inside directly after them; in the place of teardowns, the work before them."""
        tasks = list(self.iter_tasks())
        inside = {task.task_id for task in tasks}
        found: dict[str, BaseOperator] = {}
        for task in tasks:
            if not task._downstream or inside.isdisjoint(task._downstream):
                for leaf in _before_teardown(task, inside) if task.is_teardown else (task,):
                    found[leaf.task_id] = leaf
        return list(found.values())

    @property
    def roots(self) -> list[BaseOperator]:
        """Where an arrow into the group ends. Warns when there is nothing inside (yet)."""
        return self._not_empty(self.get_roots())

    @property
    def leaves(self) -> list[BaseOperator]:
        """Where an arrow out of the group starts. Warns when there is nothing inside (yet)."""
        return self._not_empty(self.get_leaves())

    def _not_empty(self, ends: list[BaseOperator]) -> list[BaseOperator]:
        if not ends:
            open_dags.warn_author(
                f"DAG {self.dag.dag_id!r}: an arrow leads to or from the task group {self.group_id!r}, which has no tasks yet, "
                "so it joins nothing; draw arrows after the group's tasks are made"
            )
        return ends

    # --- the block -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        open_dags.open_dags.append(self.dag)
        open_dags.open_groups.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        open_dags.open_groups.pop()
        open_dags.open_dags.pop()

    def __repr__(self) -> str:
        return f"<TaskGroup: {self._group_id}>"


def _before_teardown(teardown: BaseOperator, inside: set[str]) -> Iterator[BaseOperator]:
    """The last tasks before a teardown that are none: an arrow out of a group does not wait for teardowns."""
    for task in teardown.upstream_list:
        if task.task_id not in inside or task.is_setup:
            continue
        if task.is_teardown:
            yield from _before_teardown(task, inside)
        elif all(
            after.is_teardown or after.task_id == teardown.task_id or after.task_id not in inside
            for after in task.downstream_list
        ):
            yield task
