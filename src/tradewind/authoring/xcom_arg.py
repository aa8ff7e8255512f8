"""The result of a task, before it exists: a promise that can be handed to other tasks.

Handing it to a task's templated argument makes an arrow; when that task runs, the promise is replaced by the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tradewind.authoring.edges import EdgeModifier, Node
from tradewind.authoring.exceptions import XComNotFound
from tradewind.model.errors import NotYetSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tradewind.authoring.dag import DAG
    from tradewind.authoring.operator import BaseOperator

XCOM_RETURN_KEY = "return_value"


class ResolveMixin:
    """A value that is known only while a task runs. Templates call `resolve` instead of rendering it."""

    def iter_references(self) -> Iterator[BaseOperator]:
        """The tasks whose results are needed."""
        yield from ()

    def resolve(self, context: Mapping[str, Any]) -> Any:
        """The value, in the context of a running task."""
        raise NotImplementedError


class XComArg(ResolveMixin, Node):
    """What `operator` will push under `key`. `arg["other"]` is what it will push under another key.

    In a text it turns into the Jinja expression that pulls the value.
    """

    __slots__ = ("key", "operator")

    def __init__(self, operator: BaseOperator, key: str = XCOM_RETURN_KEY) -> None:
        self.operator = operator
        self.key = key

    @property
    def roots(self) -> Sequence[BaseOperator]:
        return (self.operator,)

    @property
    def leaves(self) -> Sequence[BaseOperator]:
        return (self.operator,)

    @property
    def dag(self) -> DAG | None:
        return self.operator.get_dag()

    def set_downstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self.operator.set_downstream(other, edge_modifier)

    def set_upstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self.operator.set_upstream(other, edge_modifier)

    def iter_references(self) -> Iterator[BaseOperator]:
        yield self.operator

    def resolve(self, context: Mapping[str, Any]) -> Any:
        """Pull the value. A task that returned nothing gives None.

        Raises:
            XComNotFound: nothing was pushed under a key other than the return value's.
        """
        found = context["ti"].xcom_pull(task_ids=self.operator.task_id, key=self.key, default=_ABSENT)
        if found is not _ABSENT:
            return found
        if self.key == XCOM_RETURN_KEY:
            return None
        raise XComNotFound(
            f"task {self.operator.task_id!r} pushed nothing under the key {self.key!r}; a dictionary returned by a @task "
            "function is split into keys only with multiple_outputs=True"
        )

    def __getitem__(self, key: str) -> XComArg:
        if not isinstance(key, str):
            raise TypeError(
                f"the result of task {self.operator.task_id!r} was indexed with {key!r}; before the task has run it can only "
                "be indexed with the key of an XCom, a text. Index the value inside the task that receives it."
            )
        return XComArg(self.operator, key)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"the result of task {self.operator.task_id!r} cannot be looped over while the DAG is built: it does not exist yet"
        )

    def map(self, f: Any) -> NoReturn:
        raise NotYetSupported("XComArg.map belongs to dynamic task mapping, which comes with a later release")

    def zip(self, *others: Any, fillvalue: Any = None) -> NoReturn:
        raise NotYetSupported("XComArg.zip belongs to dynamic task mapping, which comes with a later release")

    def concat(self, *others: Any) -> NoReturn:
        raise NotYetSupported("XComArg.concat belongs to dynamic task mapping, which comes with a later release")

    def __str__(self) -> str:
        dag = self.operator.get_dag()
        dag_id = f", dag_id={dag.dag_id!r}" if dag is not None else ""
        key = f", key={self.key!r}"
        return f"{{{{ task_instance.xcom_pull(task_ids={self.operator.task_id!r}{dag_id}{key}) }}}}"

    def __repr__(self) -> str:
        shown = "" if self.key == XCOM_RETURN_KEY else f"[{self.key!r}]"
        return f"XComArg({self.operator!r}){shown}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XComArg):
            return NotImplemented
        return self.operator is other.operator and self.key == other.key

    def __hash__(self) -> int:
        return hash((id(self.operator), self.key))


class _Absent:
    """Nothing was pushed: not the same as a pushed None."""


_ABSENT = _Absent()


def referenced_operators(value: Any) -> Iterator[BaseOperator]:
    """The tasks whose results occur in `value`: in itself, in containers, in objects with templated fields of their own."""
    if isinstance(value, ResolveMixin):
        yield from value.iter_references()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from referenced_operators(key)
            yield from referenced_operators(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from referenced_operators(item)
    elif not isinstance(value, Node | type) and getattr(value, "template_fields", None):
        for name in value.template_fields:
            yield from referenced_operators(getattr(value, name, None))
