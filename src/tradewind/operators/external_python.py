"""Tasks whose function runs in another Python interpreter. DAG files import these from `tradewind.operators.python`."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import sys
import tempfile
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.execution.call_arguments import arguments_for
from tradewind.execution.context import reveal
from tradewind.execution.task_instance import micros_of
from tradewind.model.errors import ConfigError, DefinitionError, NotYetSupported, did_you_mean
from tradewind.model.moments import from_micros
from tradewind.operators import foreign_call
from tradewind.operators.branch import BranchMixIn
from tradewind.operators.callables import DecoratedCall
from tradewind.operators.python import PythonOperator
from tradewind.operators.subprocesses import Command, ending, exit_codes, marks
from tradewind.sdk.exceptions import AirflowException, AirflowSkipException

if TYPE_CHECKING:
    from collections.abc import Iterator

SERIALIZERS = ("pickle", "cloudpickle", "dill")

_TEXTS = frozenset(
    {"ds", "ds_nodash", "run_id", "task_instance_key_str", "test_mode", "ts", "ts_nodash", "ts_nodash_with_tz"}
    | {"next_ds", "next_ds_nodash", "prev_ds", "prev_ds_nodash", "tomorrow_ds", "tomorrow_ds_nodash"}
    | {"yesterday_ds", "yesterday_ds_nodash", "expanded_ti_count", "task_reschedule_count", "map_index", "try_number"}
)
_DATES = frozenset(
    {"data_interval_end", "data_interval_start", "logical_date", "prev_data_interval_end_success"}
    | {"prev_data_interval_start_success", "prev_start_date_success", "prev_end_date_success", "execution_date"}
    | {"next_execution_date", "prev_execution_date", "prev_execution_date_success"}
)
HANDED_OVER = _TEXTS | _DATES | {"params", "templates_dict"}
"""Context variables that can be handed to another interpreter."""


class ForeignPythonOperator(PythonOperator):
    """Base of tasks whose function runs in another interpreter: subclasses write `interpreter()`.

    Its source alone is taken there: it imports what it needs inside, and sees nothing else of the file. Arguments and the result
    are pickled.

    Args:
        python_callable: a function made with `def`; no lambda, method or generator.
        serializer: `pickle`, `cloudpickle` or `dill`; the latter two must be installed on both sides.
        use_dill: Airflow 2's name of `serializer="dill"`.
        string_args: texts that the function finds in the global `virtualenv_string_args`.
        skip_on_exit_code: exit codes of the interpreter (`sys.exit(code)`) that skip the task.
        env_vars: environment variables of the interpreter.
        inherit_env: it has the task's environment, too.
        expect_airflow: Airflow's check for its own presence; nothing is checked.
        others: see `PythonOperator`.
    """

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        serializer: str | None = None,
        use_dill: bool = False,
        string_args: Iterable[str] | None = None,
        skip_on_exit_code: int | Collection[int] | None = None,
        env_vars: Mapping[str, str] | None = None,
        inherit_env: bool = True,
        expect_airflow: bool = True,
        use_airflow_context: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, **kwargs)
        if not isinstance(python_callable, types.FunctionType) or python_callable.__name__ == "<lambda>":
            raise DefinitionError(
                f"{self._name_in_errors()}: python_callable is {python_callable!r}; it must be a function made with def"
            )
        if inspect.isgeneratorfunction(python_callable) or inspect.isasyncgenfunction(python_callable):
            raise DefinitionError(f"{self._name_in_errors()}: python_callable is a generator; it must return a value")
        if use_airflow_context:
            raise NotYetSupported(
                f"{self._name_in_errors()}: use_airflow_context needs a line to the scheduler from another interpreter"
            )
        serializer = serializer or ("dill" if use_dill else "pickle")
        if serializer not in SERIALIZERS:
            raise DefinitionError(
                f"{self._name_in_errors()}: serializer is {serializer!r}; it must be {' or '.join(SERIALIZERS)}."
                f"{did_you_mean(serializer, SERIALIZERS)}"
            )
        self.serializer = serializer
        self.string_args = [str(text) for text in string_args or ()]
        self.skip_on_exit_code = exit_codes(skip_on_exit_code)
        self.env_vars = env_vars
        self.inherit_env = inherit_env
        self.expect_airflow = expect_airflow
        self._command: Command | None = None

    @contextmanager
    def interpreter(self) -> Iterator[str]:
        """The path of the interpreter, as long as it is needed."""
        raise NotImplementedError(f"{type(self).__name__} does not define interpreter()")
        yield ""

    def warm_up(self) -> None:
        """Nothing is called in this process."""

    def determine_kwargs(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        handed = {name: context[name] for name in context if name in HANDED_OVER}
        found = arguments_for(self.python_callable, self.op_args, self.op_kwargs, handed)
        try:
            inspect.signature(self.python_callable).bind(*self.op_args, **found)
        except TypeError as error:
            raise AirflowException(
                f"{self.python_callable.__name__} runs in another interpreter, with what can be taken there: {error}. Of the "
                f"context these can: {', '.join(sorted(handed))}"
            ) from None
        return found

    def execute_callable(self) -> Any:
        self._command = Command(self.log, keep_last_line=False)
        with self.interpreter() as python, tempfile.TemporaryDirectory(prefix="tradewind-python-") as folder:
            self._write_call(Path(folder))
            try:
                code, _ = self._command.run([python, foreign_call.__file__, folder], env=self._env())
            except OSError as error:
                raise AirflowException(f"the interpreter {python!r} cannot be started: {error}") from error
            return self._read_result(Path(folder), code)

    def on_kill(self) -> None:
        if self._command is not None:
            self._command.stop()

    def _env(self) -> dict[str, str]:
        env = dict(os.environ) if self.inherit_env else marks()
        for name in ("__PYVENV_LAUNCHER__", "PYTHONHOME"):
            env.pop(name, None)
        return {**env, **(self.env_vars or {})}

    # --- there and back -----------------------------------------------------------------------------------------------

    def _library(self) -> Any:
        try:
            return importlib.import_module(self.serializer)
        except ModuleNotFoundError:
            raise ConfigError(
                f"{self._name_in_errors()}: {self.serializer} is not installed; install it with: pip install {self.serializer}"
            ) from None

    def _write_call(self, folder: Path) -> None:
        function, library = self.python_callable, self._library()
        call = {
            "function": function.__name__,
            "serializer": self.serializer,
            "string_args": self.string_args,
            "is_async": inspect.iscoroutinefunction(function),
        }
        (folder / "call.json").write_text(json.dumps(call), encoding="utf-8")
        (folder / "function.py").write_text(source_of(function), encoding="utf-8")
        arguments = ([_plain(value) for value in self.op_args], {name: _plain(value) for name, value in self.op_kwargs.items()})
        try:
            data = library.dumps(arguments, protocol=4)
        except Exception as error:
            raise AirflowException(
                f"the arguments of {function.__name__} cannot be taken to another interpreter with {self.serializer}: {error}"
            ) from error
        (folder / "arguments").write_bytes(data)

    def _read_result(self, folder: Path, code: int) -> Any:
        if code in self.skip_on_exit_code:
            raise AirflowSkipException(f"the interpreter ended with exit code {code}, which means: skip")
        problem = folder / "problem"
        if problem.exists():
            raise AirflowException(problem.read_text(encoding="utf-8"))
        if code != 0:
            raise AirflowException(f"the interpreter {ending(code)}")
        result = folder / "result"
        if not result.exists():
            raise AirflowException("the interpreter ended before the function did; was sys.exit() called?")
        try:
            return self._library().loads(result.read_bytes())
        except Exception as error:
            name = self.python_callable.__name__
            raise AirflowException(f"what {name} returned cannot be read here: {type(error).__name__}: {error}") from error


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function without its decorators.

    Raises:
        AirflowException: its file is not there.
    """
    try:
        written = inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise AirflowException(f"the source of {function.__name__} cannot be read: {error}") from error
    # not dedented: that would change texts of several lines
    head = "if True:\n" if written[:1].isspace() else ""
    source = head + written
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    node = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds) and node.name == function.__name__)
    lines = source.splitlines(keepends=True)
    return head + "".join(lines[node.lineno - 1 : node.end_lineno])


def _plain(value: Any) -> Any:
    """A value without classes that another interpreter may not have: pendulum's dates, our params."""
    value = reveal(value)
    if isinstance(value, datetime):
        return value if type(value) is datetime else from_micros(micros_of(value))
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain(one) for one in value)
    return value


class ExternalPythonOperator(ForeignPythonOperator):
    """Calls a function in another interpreter that is there already.

    Args:
        python: path of the interpreter; a template.
        others: see `ForeignPythonOperator`.
    """

    template_fields: Collection[str] = ("python", *PythonOperator.template_fields)

    def __init__(self, *, python: str | os.PathLike[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not python:
            raise DefinitionError(f"{self._name_in_errors()}: python is {python!r}; it must be the path of an interpreter")
        self.python = python

    @contextmanager
    def interpreter(self) -> Iterator[str]:
        path = os.fspath(self.python)
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            raise AirflowException(
                f"python of task {self.task_id!r} is {path!r}, which is no program; this one is {sys.executable}"
            )
        yield path


class BranchExternalPythonOperator(BranchMixIn, ExternalPythonOperator):
    """Chooses, as `BranchPythonOperator` does, by a function in another interpreter."""

    def execute(self, context: Any) -> Any:
        return self.do_branch(context, super().execute(context))


class ExternalPythonDecoratedOperator(DecoratedCall, ExternalPythonOperator):
    """Behind `@task.external_python`."""

    template_fields: Collection[str] = ExternalPythonOperator.template_fields
    custom_operator_name = "@task.external_python"


class BranchExternalPythonDecoratedOperator(DecoratedCall, BranchExternalPythonOperator):
    """Behind `@task.branch_external_python`."""

    template_fields: Collection[str] = ExternalPythonOperator.template_fields
    custom_operator_name = "@task.branch_external_python"
