"""`TaskGroup`: tasks that are shown as one node and can be connected as one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tradewind.model.errors import CycleError, DefinitionError, DuplicateTaskId, NotFound
from tradewind.sdk import open_dags
from tradewind.sdk.dependencies import EdgeModifier, Node, TaskGroupLike
from tradewind.sdk.names import check_group_id, with_suffix

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.mapping import ExpandInput
    from tradewind.sdk.operator import BaseOperator


class TaskGroup(TaskGroupLike):
    """Tasks and groups created inside `with TaskGroup("name"):` belong to the group; their ids begin with `name.`.

    Args:
        group_id: unique among the tasks and groups of the DAG; the ids of the parent groups are put in front.
        prefix_group_id: False leaves out the group id, and the ids of the groups around it, in the ids of tasks and groups inside.
        parent_group: default is the innermost open group.
        dag: default is the DAG of the innermost open block.
        default_args: default arguments for operators inside; they override those of the DAG and of the parent groups.
        tooltip: text shown for the group.
        add_suffix_on_collision: if the id is already used, append `__1`, `__2`, … instead of raising an error.
        group_display_name: name shown instead of the id.
        doc_md: Markdown, or the path of a `.md` file, shown for the group if there is no tooltip.

    Raises:
        DuplicateTaskId: the DAG already uses this id.
        DefinitionError: no DAG is open, or the id is invalid.
    """

    DEFAULT_COLOR = "CornflowerBlue"
    DEFAULT_FGCOLOR = "#000"

    expand_input: ExpandInput | None = None
    """The lists that a mapped group is mapped over (see `mapping`)."""

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
        doc_md: str | None = None,
    ) -> None:
        self.prefix_group_id = prefix_group_id
        self.default_args: dict[str, Any] = dict(default_args or {})
        self.tooltip = tooltip
        self.ui_color = ui_color
        self.ui_fgcolor = ui_fgcolor
        self.group_display_name = group_display_name
        self.doc_md = _doc(doc_md)
        self.add_suffix_on_collision = add_suffix_on_collision
        self.children: dict[str, BaseOperator | TaskGroup] = {}
        """Tasks and groups directly inside, by id, in the order of creation."""
        self._group_id: str | None = None
        self.parent_group: TaskGroup | None = None
        self.upstream_task_ids: set[str] = set()
        self.downstream_task_ids: set[str] = set()
        self.upstream_group_ids: set[str] = set()
        self.downstream_group_ids: set[str] = set()
        """Tasks and groups that were set before and after this group as a whole. The dependencies of its tasks are at the tasks."""
        self.prefix: str | None = None
        """The prefix of the ids inside; None for no prefix."""
        if group_id is None:
            if dag is None:
                raise DefinitionError("a task group needs a group_id")
            self.dag = dag
        else:
            self._place(check_group_id(group_id), parent_group, dag, add_suffix_on_collision)

    def _place(self, group_id: str, parent: TaskGroup | None, dag: DAG | None, add_suffix: bool) -> None:
        """Find the parent group and set the full id."""
        owner = parent.dag if parent is not None else dag or open_dags.current_dag()
        if owner is None:
            raise DefinitionError(
                f"task group {group_id!r} is in no DAG; create it inside `with DAG(...)` or pass the argument dag"
            )
        self.dag = owner
        self.parent_group = parent if parent is not None else open_dags.current_group(owner)
        wanted = self.parent_group.child_id(group_id)
        if add_suffix:
            wanted = with_suffix(wanted, owner.ids, owner.suffixes)
        elif wanted in owner.ids:
            raise DuplicateTaskId(f"DAG {owner.dag_id!r} already has a task or group {wanted!r}")
        self._group_id = wanted
        self.prefix = wanted if self.prefix_group_id else None
        self.default_args = {**self.parent_group.default_args, **self.default_args}
        self.parent_group.children[wanted] = self
        owner.register_group(self)

    @classmethod
    def create_root(cls, dag: DAG) -> TaskGroup:
        """The root group of a DAG: it has no id and contains all tasks and groups."""
        return cls(None, dag=dag)

    @property
    def group_id(self) -> str | None:
        """The full id; None for the root group of a DAG."""
        return self._group_id

    @property
    def node_id(self) -> str | None:
        return self._group_id

    @property
    def label(self) -> str | None:
        """The display name, or the id without the prefix of the parent groups."""
        return self.group_display_name or self.id_in_group

    @property
    def id_in_group(self) -> str | None:
        """The id without the prefix of the parent groups."""
        parent = self.parent_group
        if self._group_id is None or parent is None or parent.prefix is None:
            return self._group_id
        return self._group_id.removeprefix(f"{parent.prefix}.")

    @property
    def is_root(self) -> bool:
        return self._group_id is None

    @property
    def task_group(self) -> TaskGroup | None:
        """The parent group. Same as `parent_group`."""
        return self.parent_group

    @property
    def dag_id(self) -> str:
        return self.dag.dag_id

    @property
    def used_group_ids(self) -> set[str | None]:
        """All ids of tasks and groups of the DAG."""
        return set(self.dag.ids)

    def has_dag(self) -> bool:
        return self.dag is not None

    def get_dag(self) -> DAG | None:
        return self.dag

    def update_relative(self, other: Node, upstream: bool = True, edge_modifier: EdgeModifier | None = None) -> None:
        """Record what was set before or after this group as a whole, and the label. Packages (databricks, openlineage) read it.

        The join ids of the groups stand for the ends of a labelled dependency, as in Airflow.
        """
        if isinstance(other, TaskGroup):
            if self.group_id is None or other.group_id is None:
                return
            before, after = (other, self) if upstream else (self, other)
            after.upstream_group_ids.add(before.group_id)  # type: ignore[arg-type]
            before.downstream_group_ids.add(after.group_id)  # type: ignore[arg-type]
            self._label(edge_modifier, before.downstream_join_id, after.upstream_join_id)
            return
        for task in other.roots:
            if upstream:
                self.upstream_task_ids.add(task.task_id)
                self._label(edge_modifier, task.task_id, self.upstream_join_id)
            else:
                self.downstream_task_ids.add(task.task_id)
                self._label(edge_modifier, self.downstream_join_id, task.task_id)

    def _label(self, modifier: EdgeModifier | None, upstream: str, downstream: str) -> None:
        if modifier is not None:
            self.dag.set_edge_info(upstream, downstream, {"label": modifier.label})

    @property
    def upstream_list(self) -> list[BaseOperator]:
        """The tasks that were set before this group as a whole."""
        return [self.dag.task_dict[one] for one in sorted(self.upstream_task_ids) if one in self.dag.task_dict]

    @property
    def downstream_list(self) -> list[BaseOperator]:
        """The tasks that were set after this group as a whole."""
        return [self.dag.task_dict[one] for one in sorted(self.downstream_task_ids) if one in self.dag.task_dict]

    def get_direct_relative_ids(self, upstream: bool = False) -> set[str]:
        return self.upstream_task_ids if upstream else self.downstream_task_ids

    def get_direct_relatives(self, upstream: bool = False) -> list[BaseOperator]:
        return self.upstream_list if upstream else self.downstream_list

    def get_flat_relatives(self, upstream: bool = False) -> list[BaseOperator]:
        """All tasks after this group (before it, with `upstream`), near ones first, each once."""
        found: dict[str, BaseOperator] = {}
        pending = deque(self.get_direct_relatives(upstream))
        while pending:
            task = pending.popleft()
            if task.task_id not in found:
                found[task.task_id] = task
                pending.extend(task.get_direct_relatives(upstream))
        return list(found.values())

    def get_flat_relative_ids(self, *, upstream: bool = False) -> set[str]:
        return {task.task_id for task in self.get_flat_relatives(upstream)}

    def get_task_group_dict(self) -> dict[str | None, TaskGroup]:
        """This group and all groups inside, by id."""
        found: dict[str | None, TaskGroup] = {}
        pending: list[TaskGroup] = [self]
        while pending:
            group = pending.pop()
            found[group.group_id] = group
            pending += [child for child in group.children.values() if isinstance(child, TaskGroup)]
        return found

    def child_id(self, label: str) -> str:
        """The full id of a task or group with the id `label` in this group."""
        return label if self.prefix is None else f"{self.prefix}.{label}"

    def add(self, task: BaseOperator) -> BaseOperator:
        """Add a new task. Its id gets the prefix of this group.

        Raises:
            DuplicateTaskId: the DAG already uses this id.
        """
        self.dag.register_task(task, self)
        return task

    def copy_into(self, parent: TaskGroup) -> TaskGroup:
        """An empty copy inside a group of another DAG object (see `DAG.partial_subset`)."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied.dag, copied.parent_group, copied.children = parent.dag, parent, {}
        copied.upstream_task_ids, copied.downstream_task_ids = set(self.upstream_task_ids), set(self.downstream_task_ids)
        copied.upstream_group_ids, copied.downstream_group_ids = set(self.upstream_group_ids), set(self.downstream_group_ids)
        assert copied.group_id is not None
        parent.children[copied.group_id] = copied
        parent.dag.register_group(copied)
        return copied

    # --- tasks inside ---------------------------------------------------------------------------------------------------

    @property
    def upstream_join_id(self) -> str:
        """The id of the point in a graph where dependencies enter the group. Packages (openlineage) read it."""
        return f"{self.group_id}.upstream_join_id"

    @property
    def downstream_join_id(self) -> str:
        """The id of the point in a graph where dependencies leave the group."""
        return f"{self.group_id}.downstream_join_id"

    def __iter__(self) -> Iterator[BaseOperator]:
        """All tasks inside, those of an inner group at its place among its neighbours."""
        pending: list[BaseOperator | TaskGroup] = list(reversed(self.children.values()))
        while pending:
            node = pending.pop()
            if isinstance(node, TaskGroup):
                pending.extend(reversed(node.children.values()))
            else:
                yield node

    def iter_tasks(self) -> Iterator[BaseOperator]:
        """All tasks inside: first those directly in the group, then those of its inner groups, as in Airflow."""
        pending: deque[TaskGroup] = deque([self])
        while pending:
            for child in pending.popleft().children.values():
                if isinstance(child, TaskGroup):
                    pending.append(child)
                else:
                    yield child

    def iter_mapped_task_groups(self) -> Iterator[TaskGroup]:
        """The mapped groups among this group and the groups around it, the innermost first."""
        group: TaskGroup | None = self
        while group is not None:
            if group.expand_input is not None:
                yield group
            group = group.parent_group

    def hierarchical_alphabetical_sort(self) -> list[BaseOperator | TaskGroup]:
        """The children by id: first the groups, then the tasks."""
        return sorted(self.children.values(), key=lambda node: (not isinstance(node, TaskGroup), str(node.node_id)))

    def topological_sort(self, *, group_dict: Mapping[str, TaskGroup] | None = None) -> list[BaseOperator | TaskGroup]:
        """The children, each after the children that it depends on.

        Raises:
            CycleError: the children depend on each other in a circle.
        """
        left = dict(self.children)
        members = {key: list(node) if isinstance(node, TaskGroup) else [node] for key, node in left.items()}
        child_of = {task.task_id: key for key, tasks in members.items() for task in tasks}
        needed = {
            key: {child_of[up] for task in tasks for up in task.upstream_task_ids if up in child_of} - {key}
            for key, tasks in members.items()
        }
        order: list[BaseOperator | TaskGroup] = []
        while left:
            before = len(left)
            for key in list(left):
                if left.keys().isdisjoint(needed[key]):
                    order.append(left.pop(key))
            if len(left) == before:
                raise CycleError(f"the dependencies inside the task group {self.group_id!r} contain a cycle")
        return order

    def has_task(self, task: BaseOperator) -> bool:
        group = task.task_group
        while group is not None:
            if group is self:
                return True
            group = group.parent_group
        return False

    def get_child_by_label(self, label: str) -> BaseOperator | TaskGroup:
        return self.children[self.child_id(label)]

    def __getitem__(self, label: str) -> BaseOperator | TaskGroup:
        """The task or group directly inside with this id, which is given without the prefix of this group.

        Raises:
            NotFound: there is none.
        """
        try:
            return self.get_child_by_label(label)
        except KeyError:
            raise NotFound(f"the task group {self.group_id!r} has no task or group {label!r}") from None

    def get_roots(self) -> list[BaseOperator]:
        """Tasks inside without a direct upstream task inside."""
        tasks = list(self)
        inside = {task.task_id for task in tasks}
        return [task for task in tasks if not task._upstream or inside.isdisjoint(task._upstream)]

    def get_leaves(self) -> list[BaseOperator]:
        """Tasks inside without a direct downstream task inside. Teardowns are replaced with the last tasks before them."""
        tasks = list(self)
        inside = {task.task_id for task in tasks}
        found: dict[str, BaseOperator] = {}
        for task in tasks:
            if not task._downstream or inside.isdisjoint(task._downstream):
                for leaf in _before_teardown(task, inside) if task.is_teardown else (task,):
                    found[leaf.task_id] = leaf
        return list(found.values())

    @property
    def roots(self) -> list[BaseOperator]:
        """The tasks that get the upstream dependencies of the group. Warns if the group has no tasks (yet)."""
        return self._not_empty(self.get_roots())

    @property
    def leaves(self) -> list[BaseOperator]:
        """The tasks that get the downstream dependencies of the group. Warns if the group has no tasks (yet).

        What comes after an empty group runs after what comes before it, as in Airflow.
        """
        return self.get_leaves() or self._not_empty(self.upstream_list)

    def _not_empty(self, ends: list[BaseOperator]) -> list[BaseOperator]:
        if not ends:
            open_dags.warn_author(
                f"DAG {self.dag.dag_id!r}: a dependency was set on the task group {self.group_id!r}, which has no tasks yet, so "
                "it has no effect; set dependencies after the tasks of the group are created"
            )
        return ends

    # --- with block -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        open_dags.open_dags.append(self.dag)
        open_dags.open_groups.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        open_dags.open_groups.pop()
        open_dags.open_dags.pop()

    def __repr__(self) -> str:
        return f"<TaskGroup: {self._group_id}>"


class MappedTaskGroup(TaskGroup):
    """A task group that is mapped over lists: `expand_input`."""


def _doc(text: str | None) -> str | None:
    """The text, or the content of the `.md` file that it names."""
    if text is None or not text.endswith(".md"):
        return text
    try:
        return Path(text).read_text(encoding="utf-8")
    except OSError:
        return text


def _before_teardown(teardown: BaseOperator, inside: set[str]) -> Iterator[BaseOperator]:
    """The last tasks before a teardown that are not teardowns: tasks after a group do not wait for its teardowns."""
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
