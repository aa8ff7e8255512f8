"""`@task`, `@task_group`, `@dag`: functions become tasks, boxes and workflows.

`task` is a registry by name: `@task.bash` finds its operator class as `"module:Class"` in `TASK_DECORATORS` and imports it
when the decorator is used. Such a class derives from `DecoratedOperator` and from the operator that does the work.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from tradewind.model.errors import NotYetSupported, TradewindError, UnknownArgument, did_you_mean
from tradewind.sdk import open_dags
from tradewind.sdk.dag import DAG
from tradewind.sdk.default_args import signature_of
from tradewind.sdk.mapping import (
    ExpandInput,
    MappedArgument,
    dict_of_lists,
    fill_group,
    list_of_dicts,
    make_mapped,
)
from tradewind.sdk.names import check_task_id, with_suffix
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.sdk.xcom_arg import XComArg

_P = ParamSpec("_P")
_R = TypeVar("_R")

TASK_DECORATORS: dict[str, str] = {
    "python": "tradewind.operators.python:PythonDecoratedOperator",
    "branch": "tradewind.operators.python:BranchPythonDecoratedOperator",
    "short_circuit": "tradewind.operators.python:ShortCircuitDecoratedOperator",
    "bash": "tradewind.operators.bash:BashDecoratedOperator",
    "sensor": "tradewind.sensors.python:DecoratedSensorOperator",
    "sql": "tradewind.operators.sql:SQLDecoratedOperator",
    "external_python": "tradewind.operators.external_python:ExternalPythonDecoratedOperator",
    "branch_external_python": "tradewind.operators.external_python:BranchExternalPythonDecoratedOperator",
    "virtualenv": "tradewind.operators.virtualenv:VirtualenvDecoratedOperator",
    "branch_virtualenv": "tradewind.operators.virtualenv:BranchVirtualenvDecoratedOperator",
}
"""Name after `@task.` → where its operator class is. Packages may add names."""

MODIFIERS = ("run_if", "skip_if")
"""Names after `@task.` of what stands above another `@task`: functions of `sdk.conditions`."""

_LATER = {
    "docker": "Docker",
    "kubernetes": "Kubernetes",
    "kubernetes_cmd": "Kubernetes",
    "pyspark": "Spark",
    "snowpark": "Snowflake",
    "analytics": "SQL",
    "sftp_sensor": "SFTP",
    "stub": "tasks in other languages",
}
"""Airflow's decorators whose behaviour is not built yet, and what they belong to."""


# --- the operator behind a decorated function -------------------------------------------------------------------------


class DecoratedOperator(BaseOperator):
    """Base of the operators that `@task` makes: a function and what it was called with.

    Mix it in before the operator that does the work: `class BashDecoratedOperator(DecoratedOperator, BashOperator)`.

    Args:
        python_callable: the decorated function.
        op_args, op_kwargs: what it was called with; results of other tasks among them become arrows and, when the task
            runs, values.
        task_id: where it is taken, `__1`, `__2`, … is put behind it.
        kwargs_to_upstream: arguments for the next class's `__init__` besides the usual ones.

    Raises:
        TypeError: the function cannot be called so.
    """

    template_fields: Collection[str] = ("op_args", "op_kwargs")
    template_fields_renderers: Mapping[str, str] = {"op_args": "py", "op_kwargs": "py"}
    custom_operator_name: str | None = "@task"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        task_id: str,
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        kwargs_to_upstream: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.python_callable = python_callable
        self.op_args: list[Any] = list(op_args or ())
        self.op_kwargs: dict[str, Any] = dict(op_kwargs or {})
        check_call(python_callable, self.op_args, self.op_kwargs)
        doc = python_callable.__doc__
        if doc and not kwargs.get("doc_md"):
            kwargs["doc_md"] = textwrap.dedent(doc).strip()
        unique = unique_task_id(task_id, kwargs.get("dag"), kwargs.get("task_group"))
        super().__init__(task_id=unique, **(kwargs_to_upstream or {}), **kwargs)


def unique_task_id(task_id: str, dag: DAG | None = None, group: TaskGroup | None = None) -> str:
    """`task_id`, or with `__1`, `__2`, … behind it where the DAG has it already; without the prefix of the group."""
    check_task_id(task_id)
    dag = group.dag if group is not None else dag or open_dags.current_dag()
    if dag is None:
        return task_id
    group = group or open_dags.current_group(dag)
    full = with_suffix(group.child_id(task_id), dag.ids, dag.suffixes)
    return full if group.prefix is None else full.removeprefix(f"{group.prefix}.")


@functools.cache
def _context_names() -> frozenset[str]:
    """Arguments that a task function need not be called with: they come from the context when it runs."""
    # lazy door: most files call their functions with everything they need
    from tradewind.execution import context

    words = context.COMMON_WORDS - {"conf", "partition_key", "partition_date"}
    return frozenset({*context.ALWAYS, *context.DATED, "test_mode"}) - words


_signature_of = functools.lru_cache(maxsize=1024)(signature_of)


def check_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Can the function be called so? Arguments named like a context variable may be missing.

    Raises:
        TypeError: it cannot; the message names the function and the argument.
    """
    name = getattr(function, "__name__", repr(function))
    try:
        signature = _signature_of(function)
    except (TypeError, ValueError):
        return  # some functions written in C do not say what they take
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError as error:
        guess = ""
        for given in kwargs:
            if given not in signature.parameters:
                guess = did_you_mean(given, signature.parameters)
                break
        raise TypeError(f"@task function {name!r}: {error}.{guess}") from None
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for parameter in signature.parameters.values():
        if (
            parameter.name not in bound.arguments
            and parameter.default is parameter.empty
            and parameter.kind not in variadic
            and parameter.name not in _context_names()
        ):
            raise TypeError(f"@task function {name!r} is called without its argument {parameter.name!r}")


def _returns_mapping(function: Callable[..., Any]) -> bool:
    """Is the return annotation a dictionary? Then each of its keys becomes an XCom of its own."""
    try:
        written = signature_of(function).return_annotation
        if isinstance(written, str):
            written = eval(written, getattr(function, "__globals__", {}))
    except Exception:  # a name that exists only for type checkers, or a function that does not say what it takes
        return False
    base = typing.get_origin(written) or written
    return isinstance(base, type) and (issubclass(base, Mapping) or typing.is_typeddict(base))


# --- @task ------------------------------------------------------------------------------------------------------------


class TaskFunction(Generic[_P, _R]):
    """A function under `@task`. Calling it makes a task and gives the promise of its result.

    `function` is the function itself, for tests. `override(retries=3)` is the same with other arguments.

    To type checkers a call takes anything: results of other tasks stand for their values, and arguments named like context
    variables may be left out. What is wrong with a call is said when the file is read.
    """

    def __init__(
        self,
        function: Callable[_P, _R],
        operator_class: type[DecoratedOperator],
        decorator: str,
        arguments: Mapping[str, Any],
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.operator_class = operator_class
        self.decorator = decorator
        self.is_setup = False
        self.is_teardown = False
        self.on_failure_fail_dagrun = False
        self.kwargs: dict[str, Any] = dict(arguments)
        self.kwargs.setdefault("task_id", function.__name__)
        if self.kwargs.get("multiple_outputs") is None:
            if _returns_mapping(function):
                self.kwargs["multiple_outputs"] = True
            else:
                self.kwargs.pop("multiple_outputs", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operator = self.operator_class(python_callable=self.function, op_args=args, op_kwargs=kwargs, **self.kwargs)
        if self.is_setup:
            operator.as_setup()
        if self.is_teardown:
            operator.as_teardown(on_failure_fail_dagrun=self.on_failure_fail_dagrun)
        return XComArg(operator)

    def override(self, **arguments: Any) -> TaskFunction[_P, _R]:
        """The same function as a task with other arguments."""
        twin = TaskFunction(self.function, self.operator_class, self.decorator, {**self.kwargs, **arguments})
        twin.is_setup, twin.is_teardown = self.is_setup, self.is_teardown
        twin.on_failure_fail_dagrun = self.on_failure_fail_dagrun
        return twin

    @property
    def task_id(self) -> str:
        return str(self.kwargs["task_id"])

    def partial(self, **kwargs: Any) -> TaskPartial:
        """Arguments that all instances of a mapped task share."""
        return TaskPartial(self, kwargs)

    def expand(self, **lists: Any) -> XComArg:
        """One task instance for each element of the cross product of these lists."""
        return TaskPartial(self, {}).expand(**lists)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> XComArg:
        """One task instance for each dictionary of arguments."""
        return TaskPartial(self, {}).expand_kwargs(kwargs, strict=strict)

    def __repr__(self) -> str:
        return f"<{self.decorator} {self.task_id}>"


class TaskPartial:
    """A `@task` function with some of its arguments: call `expand` or `expand_kwargs` on it."""

    def __init__(self, task: TaskFunction[..., Any], arguments: Mapping[str, Any]) -> None:
        self.task = task
        self.arguments = dict(arguments)
        _check_names(self._what, task.function, self.arguments, "partial")

    @property
    def _what(self) -> str:
        return f"{self.task.decorator} {self.task.task_id!r}"

    def partial(self, **kwargs: Any) -> TaskPartial:
        return TaskPartial(self.task, {**self.arguments, **kwargs})

    def expand(self, **lists: Any) -> XComArg:
        given = dict_of_lists(self._what, lists)
        _check_names(self._what, self.task.function, lists, "expand")
        twice = self.arguments.keys() & lists.keys()
        if twice:
            raise TypeError(f"{self._what}: {', '.join(sorted(twice))} is given to partial() and to expand()")
        check_call(self.task.function, (), {**self.arguments, **lists})
        return self._mapped(given)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> XComArg:
        given = list_of_dicts(self._what, kwargs)
        for one in kwargs if strict and isinstance(kwargs, list | tuple) else ():
            if isinstance(one, Mapping):
                check_call(self.task.function, (), {**self.arguments, **one})
        return self._mapped(given)

    def _mapped(self, given: ExpandInput) -> XComArg:
        task = self.task
        common = dict(task.kwargs)
        doc = task.function.__doc__
        if doc and not common.get("doc_md"):
            common["doc_md"] = textwrap.dedent(doc).strip()
        common["task_id"] = unique_task_id(task.task_id, common.get("dag"), common.get("task_group"))
        own = {"python_callable": task.function, "op_kwargs": self.arguments}
        return XComArg(make_mapped(task.operator_class, {**common, **own}, given, "op_kwargs"))


def _check_names(what: str, function: Callable[..., Any], given: Mapping[str, Any], where: str) -> None:
    """Raises TypeError for an argument that the function does not take."""
    try:
        parameters = _signature_of(function).parameters
    except (TypeError, ValueError):
        return
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in given:
        if name not in parameters:
            raise TypeError(f"{what}: {where}() was given {name!r}, which it does not take.{did_you_mean(name, parameters)}")


class TaskDecorator:
    """One decorator: `@task.branch`, used bare or with the arguments of its operator."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _shown(self) -> str:
        return f"@task.{self._name}"

    @overload
    def __call__(self, function: Callable[_P, _R]) -> TaskFunction[_P, _R]: ...
    @overload
    def __call__(self, **arguments: Any) -> Callable[[Callable[_P, _R]], TaskFunction[_P, _R]]: ...

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        if not args:
            return lambda function: self._decorate(function, arguments)
        if len(args) > 1 or not callable(args[0]):
            raise TypeError(f"{self._shown} takes keyword arguments only, such as {self._shown}(retries=2)")
        return self._decorate(args[0], arguments)

    def _decorate(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> TaskFunction[..., Any]:
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"{self._shown} stands above a function, not above {function!r}")
        if isinstance(function, TaskFunction):
            raise TypeError(f"{self._shown}: {function!r} is a task already")
        return TaskFunction(function, self._operator_class(), self._shown, arguments)

    def _operator_class(self) -> type[DecoratedOperator]:
        module, _, name = TASK_DECORATORS[self._name].partition(":")
        # lazy door: a DAG file pays only for the operators that it uses
        return cast("type[DecoratedOperator]", getattr(importlib.import_module(module), name))


class TaskDecorators(TaskDecorator):
    """`@task`, which is `@task.python`, and all the others as its attributes."""

    def __init__(self) -> None:
        super().__init__("python")

    @property
    def _shown(self) -> str:
        return "@task"

    def __getattr__(self, name: str) -> Any:
        if name in TASK_DECORATORS:
            return TaskDecorator(name)
        if name in MODIFIERS:
            # lazy door: few tasks have conditions
            return getattr(importlib.import_module("tradewind.sdk.conditions"), name)
        if name in _LATER:
            raise NotYetSupported(f"@task.{name} belongs to {_LATER[name]}, which comes with a later release")
        raise AttributeError(f"there is no @task.{name}.{did_you_mean(name, [*TASK_DECORATORS, *MODIFIERS])}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TASK_DECORATORS, *MODIFIERS]


task = TaskDecorators()
"""`@task`, `@task(retries=2)`, `@task.branch`, …"""


# --- @task_group ------------------------------------------------------------------------------------------------------


class TaskGroupFunction(Generic[_P, _R]):
    """A function under `@task_group`. Calling it makes a group and fills it by running the function.

    What the function returns is given back; when it returns nothing, the group is.
    """

    def __init__(self, function: Callable[_P, _R], arguments: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.kwargs: dict[str, Any] = dict(arguments)
        if "group_id" not in self.kwargs:
            self.kwargs["group_id"] = function.__name__
        self.kwargs.setdefault("add_suffix_on_collision", True)
        if function.__doc__ and not self.kwargs.get("tooltip"):
            self.kwargs["tooltip"] = textwrap.dedent(function.__doc__).strip()

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        with TaskGroup(**self.kwargs) as group:
            result = self.function(*args, **kwargs)
        return group if result is None else result

    def override(self, **arguments: Any) -> TaskGroupFunction[_P, _R]:
        """The same function as a group with other arguments."""
        return TaskGroupFunction(self.function, {**self.kwargs, **arguments})

    def partial(self, **kwargs: Any) -> TaskGroupFunction[..., _R]:
        """Arguments that all instances of a mapped group share."""
        _check_names(self._what, self.function, kwargs, "partial")
        return TaskGroupFunction(functools.partial(self.function, **kwargs), self.kwargs)

    def expand(self, **lists: Any) -> Any:
        """Every task inside has one instance for each element of the cross product of these lists."""
        given = dict_of_lists(self._what, lists)
        _check_names(self._what, self.function, lists, "expand")
        return self._mapped(given, lists)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> Any:
        """Every task inside has one instance for each dictionary of arguments."""
        given = list_of_dicts(self._what, kwargs)
        taken = _signature_of(self.function).parameters
        already = getattr(self.function, "keywords", {})
        return self._mapped(given, [name for name in taken if name not in already])

    @property
    def _what(self) -> str:
        return f"@task_group {self.kwargs['group_id']!r}"

    def _mapped(self, given: ExpandInput, names: Iterable[str]) -> Any:
        arguments: dict[str, Any] = {name: MappedArgument(given, name) for name in names}
        group = TaskGroup(**self.kwargs)
        result = fill_group(group, given, lambda: self.function(**arguments))  # type: ignore[call-arg]
        return group if result is None else result


@overload
def task_group(group_id: Callable[_P, _R]) -> TaskGroupFunction[_P, _R]: ...
@overload
def task_group(group_id: str | None = None, **arguments: Any) -> Callable[[Callable[_P, _R]], TaskGroupFunction[_P, _R]]: ...


def task_group(group_id: Any = None, **arguments: Any) -> Any:
    """Turn a function into a task group, used bare or with the arguments of `TaskGroup`."""
    _check_arguments("@task_group", arguments, inspect.signature(TaskGroup.__init__).parameters)
    if callable(group_id):
        return TaskGroupFunction(group_id, arguments)
    if group_id is not None:
        arguments["group_id"] = group_id
    return lambda function: TaskGroupFunction(function, arguments)


def _check_arguments(what: str, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in arguments:
        if name not in known:
            raise UnknownArgument(f"{what} takes no argument {name!r}.{did_you_mean(name, known)}")


# --- @dag -------------------------------------------------------------------------------------------------------------


@overload
def dag(dag_id: Callable[_P, Any]) -> Callable[_P, DAG]: ...
@overload
def dag(dag_id: str = "", **arguments: Any) -> Callable[[Callable[_P, Any]], Callable[_P, DAG]]: ...


def dag(dag_id: Any = "", **arguments: Any) -> Any:
    """Turn a function into a factory of a DAG, used bare or with the arguments of `DAG`.

    The function's name is the dag_id and its docstring the documentation, where these are not given. Its arguments become
    parameters of the DAG: inside, they are values to hand to tasks, replaced when the tasks run.
    """
    if callable(dag_id):
        return _dag_factory(dag_id, dag_id.__name__, arguments)
    return lambda function: _dag_factory(function, dag_id or function.__name__, arguments)


def _dag_factory(function: Callable[..., Any], dag_id: str, arguments: Mapping[str, Any]) -> Callable[..., DAG]:
    signature = signature_of(function)

    @functools.wraps(function)
    def factory(*args: Any, **kwargs: Any) -> DAG:
        given = dict(arguments)
        if function.__doc__ and not given.get("doc_md"):
            given["doc_md"] = textwrap.dedent(function.__doc__).strip()
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        with DAG(dag_id, **given) as made:
            function(**{name: _as_param(made, name, value) for name, value in bound.arguments.items()})
        return made

    return factory


def _as_param(made: DAG, name: str, value: Any) -> Any:
    """An argument of a `@dag` function as a parameter of its DAG; None leaves the default of `params=` as it is."""
    if value is None and name in made.params:
        return made.param(name)
    try:
        return made.param(name, value)
    except TradewindError as error:
        raise type(error)(f"DAG {made.dag_id!r}: the argument {name} cannot be a parameter: {error}") from None
