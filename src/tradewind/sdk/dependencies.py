"""Dependencies between tasks: `>>`, `<<`, `set_upstream`, `chain`, `cross_downstream`, `Label`.

A `Node` is an object that can have dependencies: a task, a task group, the result of a task, a label. A dependency of a node on
another one means: the `roots` of the downstream node depend on the `leaves` of the upstream node. Both are read when the dependency
is set, so tasks that are added to a group later are not affected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tradewind.model.errors import DefinitionError
from tradewind.sdk import open_dags

if TYPE_CHECKING:
    from tradewind.sdk.operator import BaseOperator

_T = TypeVar("_T")


class Node:
    """An object that can have upstream and downstream dependencies."""

    records_relatives: ClassVar[bool] = False
    """True for task groups: they know what was set before and after the group as a whole."""

    def record_relative(self, other: Node, upstream: bool) -> None:
        """Record that `other` was set before (with `upstream`) or after this node."""

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
        _connect(self, other, edge_modifier)

    def set_upstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        """Run `other` (a node or a list of nodes) before this node."""
        _connect(other, self, edge_modifier)

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
    """A label on a dependency: `a >> Label("when it rains") >> b`. It collects both sides and then connects them."""

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self._upstream: list[BaseOperator] = []
        self._downstream: list[BaseOperator] = []

    @property
    def roots(self) -> Sequence[BaseOperator]:
        return self._downstream

    @property
    def leaves(self) -> Sequence[BaseOperator]:
        return self._upstream

    def set_downstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self._downstream.extend(_ends(other, "roots"))
        self._join()

    def set_upstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self._upstream.extend(_ends(other, "leaves"))
        self._join()

    def _join(self) -> None:
        for upstream in self._upstream:
            for downstream in self._downstream:
                link(upstream, downstream, self.label)


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


def _connect(upstream: Node | Iterable[Node], downstream: Node | Iterable[Node], label: EdgeModifier | None) -> None:
    if isinstance(downstream, EdgeModifier):
        downstream.set_upstream(upstream)
        return
    if isinstance(upstream, EdgeModifier):
        upstream.set_downstream(downstream)
        return
    text = label.label if label is not None else None
    try:
        starts = list(_ends(upstream, "leaves"))
        ends = list(_ends(downstream, "roots"))
    except DefinitionError:
        if open_dags.generation() == 1 and _assign_dag(upstream, downstream):
            return
        raise
    for start in starts:
        for end in ends:
            link(start, end, text)
    _record_relatives(upstream, downstream)


def _record_relatives(upstream: Node | Iterable[Node], downstream: Node | Iterable[Node]) -> None:
    """Tell the task groups on both sides what was set before and after them."""
    before, after = list(_nodes(upstream)), list(_nodes(downstream))
    if any(node.records_relatives for node in (*before, *after)):
        for first in before:
            for second in after:
                first.record_relative(second, upstream=False)
                second.record_relative(first, upstream=True)


def _nodes(nodes: Node | Iterable[Node]) -> Iterator[Node]:
    if isinstance(nodes, Node):
        yield nodes
    else:
        for node in nodes:
            yield from _nodes(node)


def _assign_dag(upstream: Any, downstream: Any) -> bool:
    """`task << dag` and `task >> dag` of Airflow 1: put the task into the DAG. False if no side is a DAG."""
    task, dag = (downstream, upstream) if hasattr(upstream, "register_task") else (upstream, downstream)
    if not hasattr(dag, "register_task") or not hasattr(task, "has_dag"):
        return False
    task.dag = dag
    return True


def _ends(nodes: Node | Iterable[Node], side: str) -> Iterator[BaseOperator]:
    """The tasks on one side (`roots` or `leaves`) of a node or of (nested) lists of nodes."""
    if isinstance(nodes, Node):
        yield from getattr(nodes, side)
    elif isinstance(nodes, list | tuple | set | frozenset) or (hasattr(nodes, "__iter__") and not isinstance(nodes, str)):
        for node in nodes:
            yield from _ends(node, side)
    else:
        raise DefinitionError(
            f"a dependency can be set on a task, a task group, the result of a @task function, or a list of these, "
            f"not to {nodes!r} ({type(nodes).__name__})"
        )


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
        _connect(before, after, None)


def cross_downstream(from_tasks: Sequence[Node], to_tasks: Node | Sequence[Node]) -> None:
    """Run every task of `from_tasks` before every task of `to_tasks`."""
    _connect(from_tasks, to_tasks, None)
