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
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar, cast, overload

from tradewind.authoring import collect
from tradewind.authoring.dag import DAG
from tradewind.authoring.filling import signature_of
from tradewind.authoring.names import check_task_id, with_suffix
from tradewind.authoring.operator import BaseOperator
from tradewind.authoring.taskgroup import TaskGroup
from tradewind.authoring.xcom_arg import XComArg
from tradewind.model.errors import NotYetSupported, TradewindError, UnknownArgument, did_you_mean

_P = ParamSpec("_P")
_R = TypeVar("_R")

TASK_DECORATORS: dict[str, str] = {
    "python": "tradewind.operators.python:PythonDecoratedOperator",
    "branch": "tradewind.operators.python:BranchPythonDecoratedOperator",
    "short_circuit": "tradewind.operators.python:ShortCircuitDecoratedOperator",
    "bash": "tradewind.operators.bash:BashDecoratedOperator",
    "sensor": "tradewind.sensors.python:DecoratedSensorOperator",
}
"""Name after `@task.` → where its operator class is. Packages may add names."""

_LATER = {
    "virtualenv": "tasks in their own virtual environment",
    "external_python": "tasks in another interpreter",
    "branch_virtualenv": "tasks in their own virtual environment",
    "branch_external_python": "tasks in another interpreter",
    "docker": "Docker",
    "kubernetes": "Kubernetes",
    "kubernetes_cmd": "Kubernetes",
    "pyspark": "Spark",
    "snowpark": "Snowflake",
    "sql": "SQL",
    "analytics": "SQL",
    "sftp_sensor": "SFTP",
    "stub": "tasks in other languages",
    "run_if": "conditions on tasks",
    "skip_if": "conditions on tasks",
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
    dag = group.dag if group is not None else dag or collect.current_dag()
    if dag is None:
        return task_id
    group = group or collect.current_group(dag)
    full = with_suffix(group.child_id(task_id), dag.ids, dag.suffixes)
    return full if group.prefix is None else full.removeprefix(f"{group.prefix}.")


@functools.cache
def _context_names() -> frozenset[str]:
    """Arguments that a task function need not be called with: they come from the context when it runs."""
    # lazy door: most files call their functions with everything they need
    from tradewind.authoring import context

    return frozenset({*context.ALWAYS, *context.DATED, "test_mode"}) - (context.COMMON_WORDS - {"conf"})


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
        self.kwargs: dict[str, Any] = dict(arguments)
        self.kwargs.setdefault("task_id", function.__name__)
        if self.kwargs.get("multiple_outputs") is None:
            if _returns_mapping(function):
                self.kwargs["multiple_outputs"] = True
            else:
                self.kwargs.pop("multiple_outputs", None)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        operator = self.operator_class(python_callable=self.function, op_args=args, op_kwargs=kwargs, **self.kwargs)
        return XComArg(operator)

    def override(self, **arguments: Any) -> TaskFunction[_P, _R]:
        """The same function as a task with other arguments."""
        merged = {**self.kwargs, **arguments}
        return TaskFunction(self.function, self.operator_class, self.decorator, merged)

    @property
    def task_id(self) -> str:
        return str(self.kwargs["task_id"])

    def partial(self, **kwargs: Any) -> NoReturn:
        raise _mapping_later(f"{self.decorator} {self.task_id!r}: partial")

    def expand(self, **kwargs: Any) -> NoReturn:
        raise _mapping_later(f"{self.decorator} {self.task_id!r}: expand")

    def expand_kwargs(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _mapping_later(f"{self.decorator} {self.task_id!r}: expand_kwargs")

    def __repr__(self) -> str:
        return f"<{self.decorator} {self.task_id}>"


def _mapping_later(what: str) -> NotYetSupported:
    return NotYetSupported(f"{what} belongs to dynamic task mapping, which comes with a later release")


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

    def __getattr__(self, name: str) -> TaskDecorator:
        if name in TASK_DECORATORS:
            return TaskDecorator(name)
        if name in _LATER:
            raise NotYetSupported(f"@task.{name} belongs to {_LATER[name]}, which comes with a later release")
        raise AttributeError(f"there is no @task.{name}.{did_you_mean(name, TASK_DECORATORS)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TASK_DECORATORS]


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
        self.kwargs.setdefault("group_id", function.__name__)
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

    def partial(self, **kwargs: Any) -> NoReturn:
        raise _mapping_later(f"@task_group {self.kwargs['group_id']!r}: partial")

    def expand(self, **kwargs: Any) -> NoReturn:
        raise _mapping_later(f"@task_group {self.kwargs['group_id']!r}: expand")

    def expand_kwargs(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _mapping_later(f"@task_group {self.kwargs['group_id']!r}: expand_kwargs")


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
