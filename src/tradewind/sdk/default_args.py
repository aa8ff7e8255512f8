"""`default_args`: default values, by name, for the arguments of every `__init__` between an operator class and `BaseOperator`.

`BaseOperator` wraps the `__init__` of each subclass when the class is created. The outermost call merges the default arguments of
the DAG, of the task groups and of the operator. This call and each call of a base class take missing arguments from them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import DefinitionError
from tradewind.sdk import open_dags
from tradewind.sdk.arguments import KNOWN_ARGUMENTS, NO_EFFECT
from tradewind.sdk.generation import CURRENT
from tradewind.sdk.older_arguments import (
    OLDER_VALUES,
    RENAMED_ARGUMENTS,
    WITHOUT_EFFECT,
    add_older_defaults,
    rename,
    replace_values,
    with_present_names,
)
from tradewind.sdk.older_names import IN_DEFAULT_ARGS

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator
    from tradewind.sdk.taskgroup import TaskGroup

_RENAMED = frozenset(RENAMED_ARGUMENTS) | WITHOUT_EFFECT
_RENAMED_DEFAULTS = frozenset(IN_DEFAULT_ARGS)


IGNORED = "_ignored_arguments"
"""Attribute of an operator: the names of its arguments that neither it nor its base classes take."""


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, also if its annotations use names that exist only for type checkers."""
    if sys.version_info >= (3, 14):
        # lazy import: new in Python 3.14, which evaluates annotations on access
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


class InitParameters:
    """The parameters of one `__init__`, read from its signature once."""

    __slots__ = ("any_keyword", "names", "positional", "required")

    def __init__(self, init: Callable[..., None]) -> None:
        parameters = list(signature_of(init).parameters.values())[1:]
        self.positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self.names = frozenset(p.name for p in named)
        self.required = frozenset(p.name for p in named if p.default is p.empty)
        self.any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)


def accepted_names(cls: type[BaseOperator]) -> frozenset[str]:
    """All argument names that the `__init__` methods of an operator class accept, including those of `BaseOperator`."""
    return _accepted_from(cls, cls)


def _accepted_from(cls: type[BaseOperator], first: type[BaseOperator]) -> frozenset[str]:
    """The names that the `__init__` methods of `first` and of the classes after it in the order of `cls` accept."""
    found: set[str] = set(KNOWN_ARGUMENTS)
    bases = cls.__mro__ if issubclass(cls, first) else first.__mro__
    for base in bases[bases.index(first) :]:
        parameters = base.__dict__.get("_init_parameters")
        if isinstance(parameters, InitParameters):
            found |= parameters.names
    return frozenset(found)


def wrap_init(cls: type[BaseOperator], parameters: InitParameters) -> None:
    """Wrap the `__init__` of `cls`: fill in `default_args` and check the arguments."""
    init: Callable[..., None] = cls.__dict__["__init__"]
    names, required, any_keyword = parameters.names, parameters.required, parameters.any_keyword
    cls._init_parameters = parameters

    @functools.wraps(init)
    def filled(self: BaseOperator, *args: Any, **kwargs: Any) -> None:
        if args:
            _name_positionals(self, parameters, args, kwargs)
        state = self.__dict__
        outermost = "_default_args" not in state
        if outermost:
            open_dags.operator_begins(kwargs.get("dag"))
            defaults = state["_default_args"] = _merged_defaults(kwargs)
            state["_task_id_given"] = kwargs.get("task_id")
            if any_keyword:
                kwargs["default_args"] = defaults  # as Airflow: operators may hand them to operators that they make
        else:
            defaults = state["_default_args"]
        if not _RENAMED.isdisjoint(kwargs):
            rename(self._name_in_errors(), _accepted_from(type(self), cls), kwargs)
        for name in defaults:
            if name in names and name not in kwargs:
                kwargs[name] = defaults[name]
        if not OLDER_VALUES.keys().isdisjoint(kwargs):
            replace_values(self._name_in_errors(), init, kwargs)
        if not any_keyword and not names.issuperset(kwargs):
            _drop_unknown(self, names, kwargs)
        if not required.issubset(kwargs) and open_dags.generation() < CURRENT:
            add_older_defaults(self._name_in_errors(), cls.__module__, required.difference(kwargs), kwargs)
        if not required.issubset(kwargs):
            raise _missing(self, required.difference(kwargs), kwargs)
        init(self, **kwargs)
        if outermost:
            open_dags.operator_begins(None)
            del state["_default_args"], state["_task_id_given"]
            if "task_id" not in state and not _has_mocked_init(cls):
                raise DefinitionError(f"{cls.__name__}.__init__ does not call super().__init__(**kwargs)")
            self.add_xcom_dependencies()

    cls.__init__ = filled  # type: ignore[method-assign]


def replace_init(cls: type[BaseOperator], init: Callable[..., None]) -> None:
    """Give an operator class another `__init__`, which hands on what it does not take to the present one."""
    present = cls._init_parameters
    parameters = InitParameters(init)
    parameters.names |= present.names
    cls.__init__ = init  # type: ignore[method-assign]
    wrap_init(cls, parameters)


def _drop_unknown(operator: BaseOperator, names: frozenset[str], kwargs: dict[str, Any]) -> None:
    """Remove arguments that neither the operator nor its base classes take, with a warning, as Airflow 1 does.

    Raises:
        UnknownArgument: the file was not written for Airflow 1.
    """
    for name in [name for name in kwargs if name not in names]:
        refuse_or_warn(operator, name)
        del kwargs[name]


def refuse_or_warn(operator: BaseOperator, name: str) -> None:
    """Handle an argument that neither the operator nor its base classes take.

    Warn in a file for Airflow 1, and in one for Airflow 2 if the operator is one of a provider package.

    Raises:
        UnknownArgument: in other files.
    """
    error = operator._unknown_argument(name)
    generation = open_dags.generation()
    if generation == 1:
        reason = "Airflow 1 ignored it, and it has no effect"
    elif generation < CURRENT and name in NO_EFFECT:
        reason = "It has no effect"
    elif generation < CURRENT and _is_of_provider(type(operator)):
        reason = "An older release of the provider package may have taken it; it has no effect with the installed one"
    else:
        raise error
    if name not in NO_EFFECT:
        operator.__dict__.setdefault(IGNORED, []).append(name)
    open_dags.warn_author(f"{error} {reason}", DeprecationWarning)


def _is_of_provider(cls: type) -> bool:
    """Whether a class, or one that it is derived from, is an operator of an installed provider package."""
    return any(base.__module__.startswith("airflow.providers.") for base in cls.__mro__)


def _has_mocked_init(cls: type) -> bool:
    """True if a unit test replaced the `__init__` of a base class by a mock."""
    return any(not isinstance(base.__dict__.get("__init__", wrap_init), FunctionType) for base in cls.__mro__[:-1])


def _missing(operator: BaseOperator, names: Iterable[str], given: Iterable[str]) -> TypeError:
    """The error for a missing argument: either it is misspelt, or it was not given."""
    known = accepted_names(type(operator))
    for name in given:
        if name not in known:
            return operator._unknown_argument(name)
    missing = sorted(names)
    airflow_message = f"missing keyword argument{'s' if len(missing) > 1 else ''} {', '.join(repr(name) for name in missing)}"
    return TypeError(f"{operator._name_in_errors()} needs the argument {', '.join(missing)} ({airflow_message})")


def _name_positionals(
    operator: BaseOperator, parameters: InitParameters, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    if len(args) > len(parameters.positional):
        raise TypeError(
            f"{operator._name_in_errors()}: too many positional arguments, from {args[len(parameters.positional)]!r} on; "
            "pass the arguments by name"
        )
    for name, value in zip(parameters.positional, args, strict=False):
        if name in kwargs:
            raise TypeError(f"{operator._name_in_errors()} got two values for the argument {name}")
        kwargs[name] = value


def _merged_defaults(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The default arguments of the DAG, overridden by those of the task group, overridden by those of the operator."""
    dag, group = dag_and_group_of(kwargs.get("dag"), kwargs.get("task_group"))
    found: Mapping[str, Any] = dag.default_args if dag is not None else {}
    if group is not None and group.default_args:
        found = {**found, **group.default_args}
    own = kwargs.get("default_args")
    if own:
        found = {**found, **own}
    return found if _RENAMED_DEFAULTS.isdisjoint(found) else with_present_names(found)


def dag_and_group_of(dag: DAG | None, group: TaskGroup | None) -> tuple[DAG | None, TaskGroup | None]:
    """The DAG and the task group of a new task: the given ones, or the innermost open ones."""
    if group is not None:
        if dag is not None and dag is not group.dag:
            raise DefinitionError(
                f"dag= is DAG {dag.dag_id!r}, but the task group {group.group_id!r} belongs to DAG {group.dag.dag_id!r}"
            )
        return group.dag, group
    if dag is None:
        dag = open_dags.current_dag()
    return dag, None if dag is None else open_dags.current_group(dag)
