"""The result of a task, before it exists: a promise that can be handed to other tasks.

Handing it to a task's templated argument makes an arrow; when that task runs, the promise is replaced by the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

from tradewind.model.errors import DefinitionError
from tradewind.sdk.dependencies import EdgeModifier, Node
from tradewind.sdk.exceptions import AirflowException, XComNotFound
from tradewind.sdk.lazy_list import LazyList

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tradewind.model.definition import MapSource
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator
    from tradewind.sdk.setup_teardown import Scope

XCOM_RETURN_KEY = "return_value"


class _Absent:
    """Nothing was pushed: not the same as a pushed None."""


_ABSENT = _Absent()


class ResolveMixin:
    """A value that is known only while a task runs. Templates call `resolve` instead of rendering it."""

    def iter_references(self) -> Iterator[BaseOperator]:
        """The tasks whose results are needed."""
        yield from ()

    def resolve(self, context: Mapping[str, Any]) -> Any:
        """The value, in the context of a running task."""
        raise NotImplementedError


class LiteralValue(ResolveMixin):
    """A value that is handed to the task as it is, whatever looks like a template in it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def resolve(self, context: Mapping[str, Any]) -> Any:
        return self.value


def literal(value: Any) -> LiteralValue:
    """Keep `value` from being rendered: `bash_command=literal("echo {{ not_a_template }}")`."""
    return LiteralValue(value)


class PromisedList(ResolveMixin, Node):
    """A promise of a list: tasks can be mapped over it, and it can be mapped, zipped and joined before."""

    __slots__ = ()

    def source(self) -> MapSource:
        """What the scheduler has to know to work out its length. Raises DefinitionError where it cannot."""
        raise NotImplementedError

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        """Its elements, in the context of a running task."""
        raise NotImplementedError

    @property
    def roots(self) -> Sequence[BaseOperator]:
        return tuple(dict.fromkeys(self.iter_references()))

    @property
    def leaves(self) -> Sequence[BaseOperator]:
        return self.roots

    @property
    def dag(self) -> DAG | None:
        return next((operator.get_dag() for operator in self.roots), None)

    def set_downstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        for operator in self.roots:
            operator.set_downstream(other, edge_modifier)

    def set_upstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        for operator in self.roots:
            operator.set_upstream(other, edge_modifier)

    def resolve(self, context: Mapping[str, Any]) -> Any:
        return list(self.items(context))

    def map(self, f: Callable[[Any], Any]) -> PromisedList:
        """The list with `f` applied to each element, in the task that uses it. `AirflowSkipException` skips an instance."""
        if not callable(f) or hasattr(f, "operator_class"):
            raise TypeError(f"map() takes a plain function, not {f!r}; a @task is a task of its own: use expand() for it")
        return MappedXCom(self, f)

    def zip(self, *others: PromisedList, fillvalue: Any = _ABSENT) -> PromisedList:
        """Tuples of the elements of this list and others; as long as the shortest, or with `fillvalue` as the longest."""
        return ZippedXCom(_promises("zip", self, others), fillvalue)

    def concat(self, *others: PromisedList) -> PromisedList:
        """This list, and behind it others."""
        return JoinedXCom(_promises("concat", self, others))


class XComArg(PromisedList):
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

    def as_setup(self) -> Self:
        """Make its task a setup."""
        self.operator.as_setup()
        return self

    def as_teardown(self, **arguments: Any) -> Self:
        """Make its task a teardown: see `BaseOperator.as_teardown`."""
        self.operator.as_teardown(**arguments)
        return self

    def __enter__(self) -> Scope:
        return self.operator.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        self.operator.__exit__(*exc_info)

    def resolve(self, context: Mapping[str, Any]) -> Any:
        """Pull the value. A task that returned nothing gives None.

        Raises:
            XComNotFound: nothing was pushed under a key other than the return value's.
        """
        found = context["ti"].xcom_pull(task_ids=self.operator.task_id, key=self.key, default=_ABSENT)
        if found is not _ABSENT:
            return found
        if self.key == XCOM_RETURN_KEY:
            return [] if self.operator.has_instances(getattr(context["ti"], "task", None)) else None
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

    def source(self) -> MapSource:
        if self.key != XCOM_RETURN_KEY:
            raise DefinitionError(
                f"the XCom {self.key!r} of task {self.operator.task_id!r} cannot be mapped over, only what a task returns can"
            )
        # lazy door: definitions bring msgspec, and only mapped tasks need them here
        from tradewind.model.definition import MapXCom

        return MapXCom(self.operator.task_id)

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        return as_items(self.resolve(context), f"what task {self.operator.task_id!r} returned")

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


class MappedXCom(PromisedList):
    """`arg.map(f)`."""

    __slots__ = ("of", "with_")

    def __init__(self, of: PromisedList, with_: Callable[[Any], Any]) -> None:
        self.of = of
        self.with_ = with_

    def iter_references(self) -> Iterator[BaseOperator]:
        yield from self.of.iter_references()

    def source(self) -> MapSource:
        return self.of.source()

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        items, f = self.of.items(context), self.with_
        return LazyList(len(items), lambda index: f(items[index]))


class ZippedXCom(PromisedList):
    """`arg.zip(other)`."""

    __slots__ = ("fillvalue", "of")

    def __init__(self, of: Sequence[PromisedList], fillvalue: Any) -> None:
        self.of = of
        self.fillvalue = fillvalue

    def iter_references(self) -> Iterator[BaseOperator]:
        for part in self.of:
            yield from part.iter_references()

    def source(self) -> MapSource:
        # lazy door: definitions bring msgspec, and only mapped tasks need them here
        from tradewind.model.definition import MapZip

        return MapZip(tuple(part.source() for part in self.of), longest=self.fillvalue is not _ABSENT)

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        parts, fill = [part.items(context) for part in self.of], self.fillvalue
        lengths = [len(part) for part in parts]
        return LazyList(
            min(lengths) if fill is _ABSENT else max(lengths),
            lambda index: tuple(part[index] if index < len(part) else fill for part in parts),
        )


class JoinedXCom(PromisedList):
    """`arg.concat(other)`."""

    __slots__ = ("of",)

    def __init__(self, of: Sequence[PromisedList]) -> None:
        self.of = of

    def iter_references(self) -> Iterator[BaseOperator]:
        for part in self.of:
            yield from part.iter_references()

    def source(self) -> MapSource:
        # lazy door: definitions bring msgspec, and only mapped tasks need them here
        from tradewind.model.definition import MapConcat

        return MapConcat(tuple(part.source() for part in self.of))

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        parts = [part.items(context) for part in self.of]

        def at(index: int) -> Any:
            for part in parts:
                if index < len(part):
                    return part[index]
                index -= len(part)
            raise IndexError(index)

        return LazyList(sum(len(part) for part in parts), at)


def _promises(what: str, first: PromisedList, others: Sequence[Any]) -> tuple[PromisedList, ...]:
    for other in others:
        if not isinstance(other, PromisedList):
            raise TypeError(f"{what}() takes results of tasks, not {other!r}")
    return (first, *others)


def as_items(value: Any, what: str) -> Sequence[Any]:
    """A list as it is, a dictionary as pairs. Raises AirflowException for what is neither."""
    if isinstance(value, dict):
        return list(value.items())
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise AirflowException(f"{what} cannot be mapped over: it is {type(value).__name__}, not a list or a dictionary")
    return value


def promised(value: PromisedList, context: Mapping[str, Any]) -> Sequence[Any]:
    return value.items(context)


def element(items: Sequence[Any], index: int, context: Mapping[str, Any]) -> Any:
    """One of them. A promise among literal values is kept now."""
    try:
        found = items[index]
    except IndexError:
        raise AirflowException(
            f"map index {index} has no element any more: the list it is mapped over has {len(items)} now"
        ) from None
    return found.resolve(context) if isinstance(found, ResolveMixin) else found


def referenced_operators(value: Any) -> Iterator[BaseOperator]:
    """The tasks whose results occur in `value`: in itself, in containers, in objects with templated fields of their own.

    Containers and objects may hold each other.
    """
    seen: set[int] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, ResolveMixin):
            yield from one.iter_references()
            continue
        inside: list[Any]
        if isinstance(one, dict):
            inside = [part for item in one.items() for part in item]
        elif isinstance(one, list | tuple | set | frozenset):
            inside = list(one)
        elif not isinstance(one, Node | type) and getattr(one, "template_fields", None):
            inside = [getattr(one, name, None) for name in one.template_fields]
        else:
            continue
        if id(one) not in seen:
            seen.add(id(one))
            pending.extend(reversed(inside))
