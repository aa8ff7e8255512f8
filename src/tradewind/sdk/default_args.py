"""`default_args`: filled in by name, for every `__init__` between an author's operator class and `BaseOperator`.

`BaseOperator` wraps the `__init__` of each subclass when the class is created. The outermost call merges the default
arguments of the DAG, of the groups and of the operator; it and every call inside take from them what they were not given.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import DefinitionError
from tradewind.sdk import open_dags
from tradewind.sdk.arguments import KNOWN

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator
    from tradewind.sdk.taskgroup import TaskGroup


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """What a function takes, also when its annotations name things that only type checkers know."""
    if sys.version_info >= (3, 14):
        # lazy door: new in Python 3.14, where annotations are evaluated when they are asked for
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


class Takes:
    """What one `__init__` takes, read from its signature once."""

    __slots__ = ("any_keyword", "names", "positional", "required")

    def __init__(self, init: Callable[..., None]) -> None:
        parameters = list(signature_of(init).parameters.values())[1:]
        self.positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self.names = frozenset(p.name for p in named)
        self.required = frozenset(p.name for p in named if p.default is p.empty)
        self.any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)


def accepted_names(cls: type[BaseOperator]) -> frozenset[str]:
    """Every argument that some `__init__` of an operator class takes, `BaseOperator`'s among them."""
    found: set[str] = set(KNOWN)
    for base in cls.__mro__:
        takes = base.__dict__.get("_takes")
        if isinstance(takes, Takes):
            found |= takes.names
    return frozenset(found)


def wrap_init(cls: type[BaseOperator], takes: Takes) -> None:
    """Make the `__init__` of `cls` fill in `default_args`, and check what it is given."""
    init: Callable[..., None] = cls.__dict__["__init__"]
    names, required, any_keyword = takes.names, takes.required, takes.any_keyword
    cls._takes = takes

    @functools.wraps(init)
    def filled(self: BaseOperator, *args: Any, **kwargs: Any) -> None:
        if args:
            _name_positionals(self, takes, args, kwargs)
        state = self.__dict__
        outermost = "_default_args" not in state
        if outermost:
            defaults = state["_default_args"] = _merged_defaults(kwargs)
            state["_task_id_given"] = kwargs.get("task_id")
        else:
            defaults = state["_default_args"]
        for name in defaults:
            if name in names and name not in kwargs:
                kwargs[name] = defaults[name]
        if not any_keyword and not names.issuperset(kwargs):
            raise self._unknown_argument(next(name for name in kwargs if name not in names))
        if not required.issubset(kwargs):
            raise _missing(self, required.difference(kwargs), kwargs)
        init(self, **kwargs)
        if outermost:
            del state["_default_args"], state["_task_id_given"]
            if "task_id" not in state:
                raise DefinitionError(f"{cls.__name__}.__init__ does not call super().__init__(**kwargs)")
            self.draw_xcom_edges()

    cls.__init__ = filled  # type: ignore[method-assign]


def _missing(operator: BaseOperator, names: Iterable[str], given: Iterable[str]) -> TypeError:
    """A required argument is not there: because it is misspelt, or because it was left out."""
    known = accepted_names(type(operator))
    for name in given:
        if name not in known:
            return operator._unknown_argument(name)
    return TypeError(f"{operator._called()} needs the argument {', '.join(sorted(names))}")


def _name_positionals(operator: BaseOperator, takes: Takes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if len(args) > len(takes.positional):
        raise TypeError(f"{operator._called()}: use keyword arguments; {args[len(takes.positional)]!r} has no name")
    for name, value in zip(takes.positional, args, strict=False):
        if name in kwargs:
            raise TypeError(f"{operator._called()}: {name} is given twice")
        kwargs[name] = value


def _merged_defaults(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """`default_args` of the DAG, over them the group's, over them the operator's own."""
    dag, group = place_of(kwargs.get("dag"), kwargs.get("task_group"))
    found: Mapping[str, Any] = dag.default_args if dag is not None else {}
    if group is not None and group.default_args:
        found = {**found, **group.default_args}
    own = kwargs.get("default_args")
    if own:
        found = {**found, **own}
    return found


def place_of(dag: DAG | None, group: TaskGroup | None) -> tuple[DAG | None, TaskGroup | None]:
    """The DAG and group that a new task joins: as given, else the innermost open ones."""
    if group is not None:
        if dag is not None and dag is not group.dag:
            raise DefinitionError(
                f"dag= names DAG {dag.dag_id!r}, but the task group {group.group_id!r} belongs to DAG {group.dag.dag_id!r}"
            )
        return group.dag, group
    if dag is None:
        dag = open_dags.current_dag()
    return dag, None if dag is None else open_dags.current_group(dag)
