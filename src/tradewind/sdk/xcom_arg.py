"""`XComArg`: the future result of a task, for use as an argument of other tasks.

A task that gets an `XComArg` in a templated field depends on the task of the result. When it runs, the value replaces the
`XComArg`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeGuard

from tradewind.model.errors import DefinitionError
from tradewind.sdk.dependencies import EdgeModifier, Node
from tradewind.sdk.exceptions import AirflowException, XComNotFound
from tradewind.sdk.lazy_list import LazyList
from tradewind.sdk.templater import nested_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tradewind.model.definition import MapSource
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator
    from tradewind.sdk.setup_teardown import Scope

XCOM_RETURN_KEY = "return_value"


class _Absent:
    """Marks an XCom that was not pushed, as opposed to a pushed None."""


_ABSENT = _Absent()


class ResolveMixin:
    """A value that is known only while a task runs. Rendering a templated field calls `resolve`."""

    def iter_references(self) -> Iterator[BaseOperator]:
        """The tasks whose results are needed for the value."""
        yield from ()

    def resolve(self, context: Mapping[str, Any]) -> Any:
        """The value, in the context of a running task."""
        raise NotImplementedError


class LiteralValue(ResolveMixin):
    """A value that is passed to the task unchanged, even if it contains a template."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def resolve(self, context: Mapping[str, Any]) -> Any:
        return self.value


def literal(value: Any) -> LiteralValue:
    """Prevent `value` from being rendered: `bash_command=literal("echo {{ not_a_template }}")`."""
    return LiteralValue(value)


class BaseXComArg(ResolveMixin, Node):
    """The future value of a list. Tasks can be mapped over it; `map`, `zip` and `concat` derive other lists from it."""

    __slots__ = ()

    def source(self) -> MapSource:
        """What the scheduler needs to compute the length. Raises DefinitionError if the length cannot be computed."""
        raise NotImplementedError

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        """The elements, in the context of a running task."""
        raise NotImplementedError

    @property
    def roots(self) -> Sequence[BaseOperator]:
        return list(dict.fromkeys(self.iter_references()))

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

    def map(self, f: Callable[[Any], Any]) -> BaseXComArg:
        """The list with `f` applied to each element, in the task that uses it. `AirflowSkipException` in `f` skips the instance."""
        if not callable(f) or hasattr(f, "operator_class"):
            raise TypeError(f"map() needs a plain function, not {f!r}; to run a @task for each element, use its expand()")
        return MapXComArg(self, f)

    def zip(self, *others: BaseXComArg, fillvalue: Any = _ABSENT) -> BaseXComArg:
        """Tuples of the elements of several lists. As long as the shortest list; with `fillvalue` as long as the longest."""
        return ZipXComArg(_checked_results("zip", self, others), fillvalue)

    def concat(self, *others: BaseXComArg) -> BaseXComArg:
        """The elements of this list, followed by those of the others."""
        return ConcatXComArg(_checked_results("concat", self, others))


class XComArg(BaseXComArg):
    """The XCom that `operator` will push under `key`. `arg["other"]` is its XCom with another key.

    Converted to a string, it is the Jinja expression that pulls the value.
    """

    __slots__ = ("key", "operator")

    def __init__(self, operator: BaseOperator, key: str = XCOM_RETURN_KEY) -> None:
        self.operator = operator
        self.key = key

    @property
    def roots(self) -> Sequence[BaseOperator]:
        return [self.operator]

    @property
    def leaves(self) -> Sequence[BaseOperator]:
        return [self.operator]

    @property
    def dag(self) -> DAG | None:
        return self.operator.get_dag()

    def set_downstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self.operator.set_downstream(other, edge_modifier)

    def set_upstream(self, other: Node | Iterable[Node], edge_modifier: EdgeModifier | None = None) -> None:
        self.operator.set_upstream(other, edge_modifier)

    def iter_references(self) -> Iterator[BaseOperator]:
        yield self.operator

    @property
    def is_setup(self) -> bool:
        """Whether its task is a setup."""
        return self.operator.is_setup

    @is_setup.setter
    def is_setup(self, value: bool) -> None:
        self.operator.is_setup = value

    @property
    def is_teardown(self) -> bool:
        """Whether its task is a teardown."""
        return self.operator.is_teardown

    @is_teardown.setter
    def is_teardown(self, value: bool) -> None:
        self.operator.is_teardown = value

    @property
    def on_failure_fail_dagrun(self) -> bool:
        """Whether a failure of its teardown fails the run."""
        return self.operator.on_failure_fail_dagrun

    @on_failure_fail_dagrun.setter
    def on_failure_fail_dagrun(self, value: bool) -> None:
        self.operator.on_failure_fail_dagrun = value

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
        """Pull the value. The result is None if the task returned nothing.

        Raises:
            XComNotFound: nothing was pushed under this key (only for keys other than the return value's).
        """
        found = context["ti"].xcom_pull(task_ids=self.operator.task_id, key=self.key, default=_ABSENT)
        if found is not _ABSENT:
            return found
        if self.key == XCOM_RETURN_KEY:
            return [] if self.operator.result_is_list_for(getattr(context["ti"], "task", None)) else None
        raise XComNotFound(
            f"task {self.operator.task_id!r} pushed nothing under the key {self.key!r}; a dictionary that a @task function "
            "returns is split into keys only with multiple_outputs=True"
        )

    def __getitem__(self, key: str) -> XComArg:
        if not isinstance(key, str):
            raise TypeError(
                f"the result of task {self.operator.task_id!r} was indexed with {key!r}; before the task has run, the index can "
                "only be an XCom key, a string. Index the value inside the task that receives it."
            )
        return XComArg(self.operator, key)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"the result of task {self.operator.task_id!r} cannot be iterated over while the DAG file is parsed: the task "
            "has not run yet; use expand() to start one task for each element"
        )

    def source(self) -> MapSource:
        if self.key != XCOM_RETURN_KEY:
            raise DefinitionError(
                f"the XCom {self.key!r} of task {self.operator.task_id!r} cannot be mapped over; only the return value can"
            )
        # lazy import: definitions need msgspec, and only mapped tasks need them here
        from tradewind.model.definition import MapXCom

        return MapXCom(self.operator.task_id)

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        return as_items(self.resolve(context), f"the result of task {self.operator.task_id!r}")

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


class MapXComArg(BaseXComArg):
    """The result of `arg.map(f)`."""

    __slots__ = ("of", "with_")

    def __init__(self, of: BaseXComArg, with_: Callable[[Any], Any]) -> None:
        self.of = of
        self.with_ = with_

    def iter_references(self) -> Iterator[BaseOperator]:
        yield from self.of.iter_references()

    def source(self) -> MapSource:
        return self.of.source()

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        items, f = self.of.items(context), self.with_
        return LazyList(len(items), lambda index: f(items[index]))


class ZipXComArg(BaseXComArg):
    """The result of `arg.zip(other)`."""

    __slots__ = ("fillvalue", "of")

    def __init__(self, of: Sequence[BaseXComArg], fillvalue: Any) -> None:
        self.of = of
        self.fillvalue = fillvalue

    def iter_references(self) -> Iterator[BaseOperator]:
        for part in self.of:
            yield from part.iter_references()

    def source(self) -> MapSource:
        # lazy import: definitions need msgspec, and only mapped tasks need them here
        from tradewind.model.definition import MapZip

        return MapZip(tuple(part.source() for part in self.of), longest=self.fillvalue is not _ABSENT)

    def items(self, context: Mapping[str, Any]) -> Sequence[Any]:
        parts, fill = [part.items(context) for part in self.of], self.fillvalue
        lengths = [len(part) for part in parts]
        return LazyList(
            min(lengths) if fill is _ABSENT else max(lengths),
            lambda index: tuple(part[index] if index < len(part) else fill for part in parts),
        )


class ConcatXComArg(BaseXComArg):
    """The result of `arg.concat(other)`."""

    __slots__ = ("of",)

    def __init__(self, of: Sequence[BaseXComArg]) -> None:
        self.of = of

    def iter_references(self) -> Iterator[BaseOperator]:
        for part in self.of:
            yield from part.iter_references()

    def source(self) -> MapSource:
        # lazy import: definitions need msgspec, and only mapped tasks need them here
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


def is_return_value(value: Any) -> TypeGuard[XComArg]:
    """True for the future return value of a task."""
    return isinstance(value, XComArg) and value.key == XCOM_RETURN_KEY


def _checked_results(what: str, first: BaseXComArg, others: Sequence[Any]) -> tuple[BaseXComArg, ...]:
    for other in others:
        if not isinstance(other, BaseXComArg):
            raise TypeError(f"{what}() accepts only results of tasks, not {other!r}")
    return (first, *others)


def as_items(value: Any, what: str) -> Sequence[Any]:
    """A list unchanged, a dictionary as a list of (key, value) pairs. Raises AirflowException for any other value."""
    if isinstance(value, dict):
        return list(value.items())
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise AirflowException(f"{what} cannot be mapped over: it is {type(value).__name__}, not a list or a dictionary")
    return value


def resolved_items(value: BaseXComArg, context: Mapping[str, Any]) -> Sequence[Any]:
    return value.items(context)


def element(items: Sequence[Any], index: int, context: Mapping[str, Any]) -> Any:
    """One of the items. An XComArg in a list of literal values is resolved now."""
    try:
        found = items[index]
    except IndexError:
        raise AirflowException(
            f"there is no element for map index {index}: the list that the task is mapped over has only {len(items)} elements now"
        ) from None
    return found.resolve(context) if isinstance(found, ResolveMixin) else found


def referenced_operators(value: Any) -> Iterator[BaseOperator]:
    """The tasks whose results occur in `value`: the value itself, elements of containers, templated fields of objects.

    Containers and objects may contain each other.
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
        elif not isinstance(one, Node | type) and (fields := nested_fields(one)):
            inside = [getattr(one, name, None) for name in fields]
        else:
            continue
        if id(one) not in seen:
            seen.add(id(one))
            pending.extend(reversed(inside))
