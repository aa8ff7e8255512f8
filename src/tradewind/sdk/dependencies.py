"""Dependencies between tasks: `>>`, `<<`, `set_upstream`, `chain`, `cross_downstream`, `Label`.

A `Node` is an object that can have dependencies: a task, a task group, the result of a task, a label. A dependency of a node on
another one means: the `roots` of the downstream node depend on the `leaves` of the upstream node. Both are read when the dependency
is set, so tasks that are added to a group later are not affected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from tradewind.model.errors import DefinitionError
from tradewind.sdk import open_dags

if TYPE_CHECKING:
    from tradewind.sdk.operator import BaseOperator

_T = TypeVar("_T")


class Node:
    """An object that can have upstream and downstream dependencies."""

    def update_relative(self, other: Node, upstream: bool = True, edge_modifier: EdgeModifier | None = None) -> None:
        """Called when `other` is set before this node (after it, with `upstream=False`). Task groups and labels record it."""

    @property
    def roots(self) -> Sequence[BaseOperator]:
        """The tasks that get the node's upstream dependencies."""
        raise NotImplementedError

    @property
    def leaves(self) -> Sequence[BaseOperator]:
        """The tasks that get the node's downstream dependencies."""
        raise NotImplementedError

    def set_downstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        """Run `other` (a node or a list of nodes) after this node."""
        _connect(self, other, False, edge_modifier)

    def set_upstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        """Run `other` (a node or a list of nodes) before this node."""
        _connect(self, other, True, edge_modifier)

    def __rshift__(self, other: _T) -> _T:
        self.set_downstream(other)  # type: ignore[arg-type]
        return other

    def __lshift__(self, other: _T) -> _T:
        self.set_upstream(other)  # type: ignore[arg-type]
        return other

    def __rrshift__(self, other: Any) -> Any:
        """`[a, b] >> node`."""
        self.set_upstream(other)
        return self

    def __rlshift__(self, other: Any) -> Any:
        """`[a, b] << node`."""
        self.set_downstream(other)
        return self


class EdgeModifier(Node):
    """A label on a dependency: `a >> Label("when it rains") >> b`. It collects both sides and then connects them.

    As in Airflow, a labelled dependency between a task in a group and a node outside of this group belongs to the group:
    `group_task >> Label("x") >> b` makes all last tasks of the group upstream tasks of `b`.
    """

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self._upstream: list[Node] = []
        self._downstream: list[Node] = []

    @property
    def roots(self) -> Sequence[BaseOperator]:
        return ()

    @property
    def leaves(self) -> Sequence[BaseOperator]:
        return ()

    def update_relative(self, other: Node, upstream: bool = True, edge_modifier: EdgeModifier | None = None) -> None:
        self._extend(other, upstream)

    def set_downstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self._extend(other, False)

    def set_upstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self._extend(other, True)

    def _extend(self, other: Node | Iterable[Node], upstream: bool) -> None:
        """Add nodes to one side, and connect them with the nodes of the other side."""
        added = list(_nodes(other))
        (self._upstream if upstream else self._downstream).extend(added)
        if not self._upstream or not self._downstream:
            return
        if len({_group_key(node) for node in (*self._upstream, *self._downstream)}) != 1:
            self._upstream = [_group_of(node) for node in self._upstream]
            self._downstream = [_group_of(node) for node in self._downstream]
        for node in self._downstream if upstream else self._upstream:
            _connect(node, added, upstream, self)


def _group_key(node: Node) -> str | None:
    """The id of the group that a node belongs to, or of the node if it is a group; None: the DAG itself."""
    if isinstance(node, TaskGroupLike):
        return node.group_id
    group = getattr(getattr(node, "operator", node), "task_group", None)
    return None if group is None else group.group_id


def _group_of(node: Node) -> Node:
    """The group of a task; other nodes, and tasks outside of groups, unchanged."""
    group: Any = getattr(node, "task_group", None)
    return node if group is None or isinstance(node, TaskGroupLike) or group.group_id is None else group


class TaskGroupLike(Node):
    """The base class of `TaskGroup`, which this module cannot import."""

    @property
    def group_id(self) -> str | None:
        """The id; None for the group that contains the whole DAG."""
        raise NotImplementedError


def Label(label: str) -> EdgeModifier:
    """A label for the dependency in which it stands: `a >> Label("text") >> b`."""
    return EdgeModifier(label)


def link(upstream: BaseOperator, downstream: BaseOperator, label: str | None = None) -> None:
    """Set one dependency between two tasks. Setting it again changes nothing.

    Raises:
        DefinitionError: the tasks belong to different DAGs, or to no DAG.
    """
    dag = upstream._dag
    if dag is None or dag is not downstream._dag:
        dag = _common_dag(upstream, downstream)
    if upstream._downstream is None:
        upstream._downstream = {}
    if downstream._upstream is None:
        downstream._upstream = {}
    upstream._downstream[downstream.task_id] = downstream
    downstream._upstream[upstream.task_id] = upstream
    if label is not None:
        dag.edge_info.setdefault(upstream.task_id, {})[downstream.task_id] = {"label": label}


def _common_dag(upstream: BaseOperator, downstream: BaseOperator) -> Any:
    one, other = upstream._dag, downstream._dag
    if one is None and other is None:
        raise DefinitionError(
            f"the dependency {upstream.task_id} >> {downstream.task_id} connects two tasks that are in no DAG; create them inside "
            "`with DAG(...)` or pass the argument dag"
        )
    if one is None:
        assert other is not None
        other.add_task(upstream)
        return other
    if other is None:
        one.add_task(downstream)
        return one
    raise DefinitionError(
        f"the dependency {upstream.task_id} >> {downstream.task_id} connects DAG {one.dag_id!r} with DAG {other.dag_id!r}; "
        "both tasks must be in the same DAG. To wait for another DAG, use ExternalTaskSensor or assets"
    )


def _connect(one: Node, others: Node | Iterable[Node], upstream: bool, label: EdgeModifier | None) -> None:
    """Set `others` before (with `upstream`) or after a node. A label is recorded at the edges that Airflow records it at."""
    try:
        found = list(_nodes(others))
    except DefinitionError:
        if open_dags.generation() == 1 and _assign_dag(one, others):
            return
        raise
    ends: Sequence[BaseOperator]
    if isinstance(one, TaskGroupLike):
        ends = one.roots if upstream else one.leaves
        for other in found:
            one.update_relative(other, upstream, label)
        label = None
    else:
        ends = one.roots if upstream else one.leaves
    text = label.label if label is not None else None
    for end in ends:
        for other in found:
            other.update_relative(end, not upstream, label)
            for relative in other.leaves if upstream else other.roots:
                if upstream:
                    link(relative, end, text)
                else:
                    link(end, relative, text)


def _nodes(nodes: Node | Iterable[Node]) -> Iterator[Node]:
    """The nodes of (nested) lists of nodes.

    Raises:
        DefinitionError: one is no node.
    """
    if isinstance(nodes, Node):
        yield nodes
    elif isinstance(nodes, list | tuple | set | frozenset) or (hasattr(nodes, "__iter__") and not isinstance(nodes, str)):
        for node in nodes:
            yield from _nodes(node)
    else:
        raise DefinitionError(
            f"a dependency can be set on a task, a task group, the result of a @task function, or a list of these, "
            f"not to {nodes!r} ({type(nodes).__name__})"
        )


def _assign_dag(upstream: Any, downstream: Any) -> bool:
    """`task << dag` and `task >> dag` of Airflow 1: put the task into the DAG. False if no side is a DAG."""
    task, dag = (downstream, upstream) if hasattr(upstream, "register_task") else (upstream, downstream)
    if not hasattr(dag, "register_task") or not hasattr(task, "has_dag"):
        return False
    task.dag = dag
    return True


# --- helper functions -------------------------------------------------------------------------------------------------


def chain(*tasks: Node | Sequence[Node]) -> None:
    """`chain(a, [b, c], [d, e], f)`: each element runs after the one before. Two adjacent lists are connected pairwise.

    Raises:
        DefinitionError: two adjacent lists have different lengths.
    """
    for before, after in pairwise(tasks):
        if isinstance(before, Node):
            before.set_downstream(after)
        elif isinstance(after, Node):
            after.set_upstream(before)
        elif len(before) != len(after):
            raise DefinitionError(
                f"chain connects adjacent lists pairwise, but they have {len(before)} and {len(after)} tasks; "
                "use cross_downstream or chain_linear to connect every task with every task"
            )
        else:
            for up, down in zip(before, after, strict=True):
                up.set_downstream(down)


def chain_linear(*elements: Node | Sequence[Node]) -> None:
    """`chain_linear(a, [b, c], [d, e], f)`: like `chain`, but every task of a list is connected with every task of the next list.

    Raises:
        DefinitionError: there are fewer than two elements with tasks.
    """
    steps = [step for step in elements if isinstance(step, Node) or len(step) > 0]
    if len(steps) < 2:
        raise DefinitionError("chain_linear needs at least two non-empty elements")
    for before, after in pairwise(steps):
        cross_downstream(before, after)


def cross_downstream(from_tasks: Node | Sequence[Node], to_tasks: Node | Sequence[Node]) -> None:
    """Run every task of `from_tasks` before every task of `to_tasks`."""
    for node in _nodes(from_tasks):
        node.set_downstream(to_tasks)
