"""`@task`, `@task_group`, `@dag`: decorators that turn functions into tasks, task groups and DAGs.

`@task.bash` and the others find their operator class in `TASK_DECORATORS` (`"module:Class"`) and import it when the decorator is
used. Such a class derives from `DecoratedOperator` and from the operator that does the work.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from tradewind.model.errors import NotYetSupported, TradewindError, UnknownArgument, did_you_mean
from tradewind.provider_packages import offers
from tradewind.sdk import open_dags
from tradewind.sdk.dag import DAG
from tradewind.sdk.default_args import signature_of
from tradewind.sdk.mapping import (
    ExpandInput,
    MappedArgument,
    check_dict_of_lists,
    check_list_of_dicts,
    fill_group,
    make_mapped,
)
from tradewind.sdk.names import check_task_id, with_suffix
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.sdk.xcom_arg import XComArg, is_return_value

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

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
    "stub": "tradewind.operators.stub:StubDecoratedOperator",
}
"""Name after `@task.` → import path of the operator class. Packages may add names."""

MODIFIERS = ("run_if", "skip_if")
"""Names after `@task.` of decorators for `@task` functions; each is a function of `sdk.conditions`."""

PROVIDER_FIRST = ("sql",)
"""Decorators here that an installed provider package replaces, as its operators and hooks do."""

PROVIDER_OF_DECORATOR = {
    "agent": "common-ai",
    "analytics": "common-sql",
    "cohere_embed": "cohere",
    "docker": "docker",
    "embed": "common-ai",
    "kubernetes": "cncf-kubernetes",
    "kubernetes_cmd": "cncf-kubernetes",
    "llm": "common-ai",
    "llm_branch": "common-ai",
    "llm_sql": "common-ai",
    "pyspark": "apache-spark",
    "sftp_sensor": "sftp",
    "snowpark": "snowflake",
}
"""Names after `@task.` of decorators in provider packages, and the package to install."""


# --- operators of decorated functions ---------------------------------------------------------------------------------


class ArgNotSet:
    """Type of `NOTSET`: an argument that was not given, where None is a value."""


class SetDuringExecution(ArgNotSet):
    """Type of `SET_DURING_EXECUTION`."""

    def __repr__(self) -> str:
        return "DYNAMIC (set during execution)"


SET_DURING_EXECUTION = SetDuringExecution()
"""The value of an argument that a decorated function gives when the task runs."""


class DecoratedOperator(BaseOperator):
    """Base class of the operators that `@task` creates from a function and the arguments of its call.

    It comes before the operator that does the work: `class BashDecoratedOperator(DecoratedOperator, BashOperator)`.

    Args:
        python_callable: the decorated function.
        op_args, op_kwargs: the arguments of the call. Results of other tasks among them become dependencies; when the task runs,
            they are replaced with the values.
        task_id: if the DAG already has this id, `__1`, `__2`, … is appended.
        kwargs_to_upstream: further arguments for the next class's `__init__`.

    Raises:
        TypeError: the arguments do not fit the function's signature.
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
        if kwargs.get("default_args"):
            self._fill_arguments(kwargs["default_args"])
        check_call(python_callable, self.op_args, self.op_kwargs)
        _add_doc(python_callable, kwargs)
        unique = unique_task_id(task_id, kwargs.get("dag"), kwargs.get("task_group"))
        super().__init__(task_id=unique, **(kwargs_to_upstream or {}), **kwargs)

    def _fill_arguments(self, defaults: Mapping[str, Any]) -> None:
        """Give the function the arguments that are missing in the call, and that `default_args` has, as in Airflow."""
        try:
            names = list(_signature_of(self.python_callable).parameters)
        except (TypeError, ValueError):
            return  # some functions written in C have no signature
        for name in names[len(self.op_args) :]:
            if name in defaults:
                self.op_kwargs.setdefault(name, defaults[name])

    @property
    def is_async(self) -> bool:
        """True if the decorated function is a coroutine function."""
        return inspect.iscoroutinefunction(self.python_callable)

    def get_python_source(self) -> str:
        """The source of the decorated function without comment lines and without its task decorators: what operators write into
        the container or virtual environment that calls the function.
        """
        lines = [line for line in inspect.getsource(self.python_callable).splitlines() if not line.strip().startswith("#")]
        source = textwrap.dedent("\n".join(lines)) + "\n"
        node = next(one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        written = source.splitlines(keepends=True)
        for decorator in reversed(node.decorator_list):
            if _is_task_decorator(decorator):
                del written[decorator.lineno - 1 : decorator.end_lineno]
        return "".join(written)

    def determine_kwargs(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keyword arguments of the call: `op_kwargs` and the context variables that the decorated function takes."""
        return _arguments_for()(self.python_callable, self.op_args, self.op_kwargs, context)


@functools.cache
def _arguments_for() -> Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]:
    """Return `arguments_for`. Cached, because each import writes to eight memory pages, which every forked task has to copy."""
    # lazy import: needed only where a task runs
    from tradewind.execution.call_arguments import arguments_for

    return arguments_for


def _is_task_decorator(node: ast.expr) -> bool:
    """True for `@task…`, `@setup` and `@teardown` in the source of a function, with or without arguments."""
    called = node.func if isinstance(node, ast.Call) else node
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in ("task", "dag", "setup", "teardown")


def unique_task_id(task_id: str, dag: DAG | None = None, group: TaskGroup | None = None) -> str:
    """`task_id`, with `__1`, `__2`, … appended if the DAG already has this id; without the prefix of the group."""
    check_task_id(task_id)
    dag = group.dag if group is not None else dag or open_dags.current_dag()
    if dag is None:
        return task_id
    group = group or open_dags.current_group(dag)
    full = with_suffix(group.child_id(task_id), dag.ids, dag.suffixes)
    return full if group.prefix is None else full.removeprefix(f"{group.prefix}.")


@functools.cache
def _context_names() -> frozenset[str]:
    """Parameters of a task function that may be missing in its call: at run time they come from the context."""
    # lazy import: most files pass all arguments in the call
    from tradewind.execution import context

    common = context.COMMON_NAMES - {"conf", "partition_key", "partition_date"}
    return frozenset({*context.ALWAYS, *context.WITH_LOGICAL_DATE, "test_mode"}) - common


_signature_of = functools.lru_cache(maxsize=1024)(signature_of)


def check_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the arguments of a call against the function's signature. Parameters named like context variables may be missing.

    Raises:
        TypeError: the call does not fit; the message names the function and the argument.
    """
    name = getattr(function, "__name__", repr(function))
    try:
        signature = _signature_of(function)
    except (TypeError, ValueError):
        return  # some functions written in C have no signature
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
            raise TypeError(f"@task function {name!r} is called without the argument {parameter.name!r}")


def _add_doc(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Make the docstring of a function the documentation of its task, unless the author gives one of any kind."""
    doc = function.__doc__
    if doc and not any(arguments.get(name) for name in ("doc", "doc_md", "doc_json", "doc_yaml", "doc_rst")):
        arguments["doc_md"] = textwrap.dedent(doc).strip()


def _returns_mapping(function: Callable[..., Any]) -> bool:
    """True if the return annotation is a mapping type. Then each key of the result becomes an XCom."""
    try:
        written = _signature_of(function).return_annotation
        if written is inspect.Signature.empty:  # the check below would examine each subclass of Mapping
            return False
        if isinstance(written, str):
            written = eval(written, getattr(function, "__globals__", {}))
    except Exception:  # a name that exists only for type checkers, or a function without a signature
        return False
    base = typing.get_origin(written) or written
    return isinstance(base, type) and (issubclass(base, Mapping) or typing.is_typeddict(base))


# --- @task ------------------------------------------------------------------------------------------------------------


class TaskFunction(Generic[_P, _R]):
    """A function decorated with `@task`. Calling it creates a task and returns its future result (`XComArg`).

    `function` is the undecorated function, for tests. `override(retries=3)` returns a copy with other operator arguments.

    For type checkers a call accepts any arguments: results of other tasks stand for their values, and parameters named like context
    variables may be left out. Wrong calls are reported when the file is parsed.
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
        self.returns_dag_result = False
        self.kwargs: dict[str, Any] = dict(arguments)
        self.kwargs.setdefault("task_id", function.__name__)
        if self.kwargs.get("multiple_outputs") is None:
            if _returns_mapping(function):
                self.kwargs["multiple_outputs"] = True
            else:
                self.kwargs.pop("multiple_outputs", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operator = self.operator_class(python_callable=self.function, op_args=args, op_kwargs=kwargs, **self.kwargs)
        self.mark(operator)
        return XComArg(operator)

    def mark(self, operator: BaseOperator) -> None:
        """Give a new task what the decorators above `@task` say: `@setup`, `@teardown` and `@result`."""
        if self.is_setup:
            operator.as_setup()
        if self.is_teardown:
            operator.as_teardown(on_failure_fail_dagrun=self.on_failure_fail_dagrun)
        if self.returns_dag_result:
            operator.returns_dag_result = True

    def override(self, **arguments: Any) -> TaskFunction[_P, _R]:
        """A copy with other operator arguments."""
        copied = TaskFunction(self.function, self.operator_class, self.decorator, {**self.kwargs, **arguments})
        copied.is_setup, copied.is_teardown = self.is_setup, self.is_teardown
        copied.on_failure_fail_dagrun = self.on_failure_fail_dagrun
        copied.returns_dag_result = self.returns_dag_result
        return copied

    @property
    def task_id(self) -> str:
        return str(self.kwargs["task_id"])

    @property
    def multiple_outputs(self) -> bool:
        """True if each key of the result becomes an XCom: by the argument of this name, or by the return annotation."""
        return bool(self.kwargs.get("multiple_outputs"))

    def partial(self, **kwargs: Any) -> TaskPartial:
        """Set the arguments that all instances of a mapped task share."""
        return TaskPartial(self, kwargs)

    def expand(self, **lists: Any) -> XComArg:
        """Map the task: one task instance for each element of the cross product of the lists."""
        return TaskPartial(self, {}).expand(**lists)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> XComArg:
        """Map the task: one task instance for each dictionary of arguments."""
        return TaskPartial(self, {}).expand_kwargs(kwargs, strict=strict)

    def __repr__(self) -> str:
        return f"<{self.decorator} {self.task_id}>"


class TaskPartial:
    """A `@task` function with some of its arguments; call `expand` or `expand_kwargs` on it."""

    def __init__(self, task: TaskFunction[..., Any], arguments: Mapping[str, Any]) -> None:
        self.task = task
        self.arguments = dict(arguments)
        _check_names(self._label, task.function, self.arguments, "partial")

    @property
    def _label(self) -> str:
        return f"{self.task.decorator} {self.task.task_id!r}"

    def partial(self, **kwargs: Any) -> TaskPartial:
        return TaskPartial(self.task, {**self.arguments, **kwargs})

    def expand(self, **lists: Any) -> XComArg:
        expand_input = check_dict_of_lists(self._label, lists)
        _check_names(self._label, self.task.function, lists, "expand")
        twice = self.arguments.keys() & lists.keys()
        if twice:
            raise TypeError(f"{self._label}: {', '.join(sorted(twice))} is given both to partial() and to expand()")
        check_call(self.task.function, (), {**self.arguments, **lists})
        return self._mapped(expand_input)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> XComArg:
        expand_input = check_list_of_dicts(self._label, kwargs)
        for one in kwargs if strict and isinstance(kwargs, list | tuple) else ():
            if isinstance(one, Mapping):
                check_call(self.task.function, (), {**self.arguments, **one})
        return self._mapped(expand_input)

    def _mapped(self, expand_input: ExpandInput) -> XComArg:
        task = self.task
        common = dict(task.kwargs)
        _add_doc(task.function, common)
        common["task_id"] = unique_task_id(task.task_id, common.get("dag"), common.get("task_group"))
        own = {"python_callable": task.function, "op_args": [], "op_kwargs": self.arguments}
        mapped = make_mapped(task.operator_class, {**common, **own}, expand_input, "op_kwargs")
        task.mark(mapped)
        return XComArg(mapped)


def _check_names(label: str, function: Callable[..., Any], given: Mapping[str, Any], where: str) -> None:
    """Raises TypeError for an argument that the function does not accept."""
    try:
        parameters = _signature_of(function).parameters
    except (TypeError, ValueError):
        return
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in given:
        if name not in parameters:
            raise TypeError(
                f"{label}: {where}() got {name!r}, which the function does not accept.{did_you_mean(name, parameters)}"
            )


class TaskDecorator:
    """One decorator such as `@task.branch`, used bare or with operator arguments."""

    def __init__(self, name: str, dag: DAG | None = None) -> None:
        """`dag`: the DAG of `@dag.task`."""
        self._name = name
        self._given: dict[str, Any] = {} if dag is None else {"dag": dag}

    @property
    def _label(self) -> str:
        return f"@task.{self._name}"

    @overload
    def __call__(self, function: Callable[_P, _R]) -> TaskFunction[_P, _R]: ...
    @overload
    def __call__(self, **arguments: Any) -> Callable[[Callable[_P, _R]], TaskFunction[_P, _R]]: ...

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        if not args and callable(
            arguments.get("python_callable")
        ):  # task(python_callable=f, retries=2), as generators of DAGs call it
            function = arguments.pop("python_callable")
            return self._decorate(function, arguments)
        if not args:
            return lambda function: self._decorate(function, arguments)
        if len(args) > 1 or not callable(args[0]):
            raise TypeError(f"{self._label} accepts only keyword arguments, such as {self._label}(retries=2)")
        return self._decorate(args[0], arguments)

    def _decorate(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> TaskFunction[..., Any]:
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"{self._label} can decorate only a function, not {function!r}")
        if isinstance(function, TaskFunction):
            raise TypeError(f"{self._label}: {function!r} is already a task")
        return TaskFunction(function, self._operator_class(), self._label, {**self._given, **arguments})

    def _operator_class(self) -> type[DecoratedOperator]:
        module, _, name = TASK_DECORATORS[self._name].partition(":")
        # lazy import: a DAG file imports only the operators that it uses
        return cast("type[DecoratedOperator]", getattr(importlib.import_module(module), name))


class TaskDecorators(TaskDecorator):
    """`@task`, which is the same as `@task.python`; its attributes are the other decorators."""

    def __init__(self, dag: DAG | None = None) -> None:
        super().__init__("python", dag)

    @property
    def _label(self) -> str:
        return "@task"

    def __getattr__(self, name: str) -> Any:
        if name in TASK_DECORATORS and name not in PROVIDER_FIRST:
            return TaskDecorator(name, self._given.get("dag"))
        if name in MODIFIERS:
            # lazy import: few tasks have conditions
            return getattr(importlib.import_module("tradewind.sdk.conditions"), name)
        offered = {} if name.startswith("__") else offers.task_decorators()
        if name in offered:
            return self._of_provider(offered[name])
        if name in TASK_DECORATORS:
            return TaskDecorator(name, self._given.get("dag"))
        if name in PROVIDER_OF_DECORATOR:
            raise NotYetSupported(
                f"@task.{name} comes with a provider package: tradewind providers install {PROVIDER_OF_DECORATOR[name]}"
            )
        known = [*TASK_DECORATORS, *offered, *MODIFIERS]
        raise AttributeError(f"there is no @task.{name}.{did_you_mean(name, known)}")

    def _of_provider(self, path: str) -> Any:
        """The decorator of an installed provider package; `dag.task` gives its tasks the DAG."""
        module, _, name = path.rpartition(".")
        # lazy import: a DAG file imports only the operators that it uses
        decorator = getattr(importlib.import_module(module), name)
        return functools.partial(decorator, **self._given) if self._given else decorator

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TASK_DECORATORS, *offers.task_decorators(), *MODIFIERS]


def task_decorator_factory(
    python_callable: Callable[..., Any] | None = None,
    *,
    multiple_outputs: bool | None = None,
    decorated_operator_class: type[DecoratedOperator],
    **arguments: Any,
) -> Any:
    """A task decorator for an operator class: what packages call in a decorator of their own.

    Args:
        python_callable: the decorated function; None where the decorator is used with arguments.
        decorated_operator_class: makes the task; a subclass of `DecoratedOperator`.
        arguments: of the operator.
    """
    shown = decorated_operator_class.custom_operator_name or decorated_operator_class.__name__
    if multiple_outputs is not None:
        arguments["multiple_outputs"] = multiple_outputs
    if python_callable is None:
        return lambda function: TaskFunction(function, decorated_operator_class, shown, arguments)
    if not callable(python_callable):
        raise TypeError(f"{shown} takes keyword arguments only, such as {shown}(retries=2)")
    return TaskFunction(python_callable, decorated_operator_class, shown, arguments)


task = TaskDecorators()
"""`@task`, `@task(retries=2)`, `@task.branch`, …"""


# --- @task_group ------------------------------------------------------------------------------------------------------


class TaskGroupFunction(Generic[_P, _R]):
    """A function decorated with `@task_group`. Calling it creates a task group and runs the function inside the group.

    The call returns the function's return value, or the group if the function returns None.
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
        """A copy with other arguments of `TaskGroup`."""
        return TaskGroupFunction(self.function, {**self.kwargs, **arguments})

    def partial(self, **kwargs: Any) -> TaskGroupFunction[..., _R]:
        """Set the arguments that all instances of a mapped group share."""
        _check_names(self._label, self.function, kwargs, "partial")
        return TaskGroupFunction(functools.partial(self.function, **kwargs), self.kwargs)

    def expand(self, **lists: Any) -> Any:
        """Map the group: each of its tasks has one instance for each element of the cross product of the lists."""
        expand_input = check_dict_of_lists(self._label, lists)
        _check_names(self._label, self.function, lists, "expand")
        return self._mapped(expand_input, lists)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> Any:
        """Map the group: each of its tasks has one instance for each dictionary of arguments."""
        expand_input = check_list_of_dicts(self._label, kwargs)
        taken = _signature_of(self.function).parameters
        already = getattr(self.function, "keywords", {})
        return self._mapped(expand_input, [name for name in taken if name not in already])

    @property
    def _label(self) -> str:
        return f"@task_group {self.kwargs['group_id']!r}"

    def _mapped(self, expand_input: ExpandInput, names: Iterable[str]) -> Any:
        arguments: dict[str, Any] = {name: MappedArgument(expand_input, name) for name in names}
        group = TaskGroup(**self.kwargs)
        result = fill_group(group, expand_input, lambda: self.function(**arguments))  # type: ignore[call-arg]
        return group if result is None else result


@overload
def task_group(group_id: Callable[_P, _R]) -> TaskGroupFunction[_P, _R]: ...
@overload
def task_group(group_id: str | None = None, **arguments: Any) -> Callable[[Callable[_P, _R]], TaskGroupFunction[_P, _R]]: ...


def task_group(group_id: Any = None, **arguments: Any) -> Any:
    """Decorator that turns a function into a task group, used bare or with the arguments of `TaskGroup`."""
    _check_arguments("@task_group", arguments, inspect.signature(TaskGroup.__init__).parameters)
    if callable(group_id):
        return TaskGroupFunction(group_id, arguments)
    if group_id is not None:
        arguments["group_id"] = group_id
    return lambda function: TaskGroupFunction(function, arguments)


def _check_arguments(label: str, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in arguments:
        if name not in known:
            raise UnknownArgument(f"{label} takes no argument {name!r}.{did_you_mean(name, known)}")


# --- @dag -------------------------------------------------------------------------------------------------------------


@overload
def dag(dag_id: Callable[_P, Any]) -> Callable[_P, DAG]: ...
@overload
def dag(dag_id: str = "", **arguments: Any) -> Callable[[Callable[_P, Any]], Callable[_P, DAG]]: ...


def dag(dag_id: Any = "", **arguments: Any) -> Any:
    """Decorator that turns a function into a DAG factory, used bare or with the arguments of `DAG`.

    The default of dag_id is the function's name, the default of doc_md its docstring. The arguments of the function become
    parameters of the DAG: inside the function they can be passed to tasks, and they are replaced with values when the tasks run.
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
            returned = function(**{name: _as_param(made, name, value) for name, value in bound.arguments.items()})
            if is_return_value(returned):
                made.add_result(returned)
        return made

    return factory


def result(function: _T) -> _T:
    """Decorator above `@task`: the return value of the task is a result of each run, as with `DAG.add_result`."""
    if not isinstance(function, TaskFunction):
        raise TypeError(f"@result has to be above @task; got {function!r}")
    function.returns_dag_result = True
    return function


def _as_param(made: DAG, name: str, value: Any) -> Any:
    """An argument of a `@dag` function as a DAG parameter. None keeps a default from `params=`."""
    if value is None and name in made.params:
        return made.param(name)
    try:
        return made.param(name, value)
    except TradewindError as error:
        raise type(error)(f"DAG {made.dag_id!r}: the argument {name} cannot be a parameter: {error}") from None
