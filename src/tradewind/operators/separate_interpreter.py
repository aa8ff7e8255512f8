"""The base of `ExternalPythonOperator` and `PythonVirtualenvOperator`: calls a function in another Python interpreter."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import tempfile
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.execution.call_arguments import arguments_for
from tradewind.execution.context import resolve_lazy
from tradewind.execution.task_instance import micros_of
from tradewind.model.errors import ConfigError, DefinitionError, NotYetSupported, did_you_mean
from tradewind.model.moments import from_micros
from tradewind.operators import interpreter_call
from tradewind.operators.python import PythonOperator
from tradewind.operators.subprocesses import Command, attempt_environment, describe_exit, exit_codes
from tradewind.sdk.exceptions import AirflowException, AirflowSkipException

if TYPE_CHECKING:
    from collections.abc import Iterator

SERIALIZERS = ("pickle", "cloudpickle", "dill")

_STRING_VARIABLES = frozenset(
    {"ds", "ds_nodash", "run_id", "task_instance_key_str", "test_mode", "ts", "ts_nodash", "ts_nodash_with_tz"}
    | {"next_ds", "next_ds_nodash", "prev_ds", "prev_ds_nodash", "tomorrow_ds", "tomorrow_ds_nodash"}
    | {"yesterday_ds", "yesterday_ds_nodash", "expanded_ti_count", "task_reschedule_count", "map_index", "try_number"}
)
_DATE_VARIABLES = frozenset(
    {"data_interval_end", "data_interval_start", "logical_date", "prev_data_interval_end_success"}
    | {"prev_data_interval_start_success", "prev_start_date_success", "prev_end_date_success", "execution_date"}
    | {"next_execution_date", "prev_execution_date", "prev_execution_date_success"}
)
PASSED_VARIABLES = _STRING_VARIABLES | _DATE_VARIABLES | {"params", "templates_dict"}
"""Context variables that can be passed to another interpreter."""


class SeparateInterpreterOperator(PythonOperator):
    """Base class of operators whose function runs in another interpreter. Subclasses define `interpreter()`.

    Only the source of the function is passed to the interpreter: the function has to import what it needs, and cannot use other
    names of the DAG file. Arguments and the result are pickled.

    Args:
        python_callable: a function defined with `def`; not a lambda, method or generator.
        serializer: `pickle`, `cloudpickle` or `dill`; the last two must be installed in both interpreters.
        use_dill: Airflow 2's name for `serializer="dill"`.
        string_args: strings that the function reads from the global variable `virtualenv_string_args`.
        skip_on_exit_code: exit codes of the interpreter (`sys.exit(code)`) after which the task becomes skipped.
        env_vars: environment variables of the interpreter.
        inherit_env: the interpreter also gets the environment of the task.
        expect_airflow, expect_pendulum: accepted without effect; in Airflow, they check what is installed there.
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
        expect_pendulum: bool = False,
        use_airflow_context: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, **kwargs)
        if not isinstance(python_callable, types.FunctionType) or python_callable.__name__ == "<lambda>":
            raise DefinitionError(
                f"{self._name_in_errors()}: python_callable is {python_callable!r}; it must be a function defined with def"
            )
        if inspect.isgeneratorfunction(python_callable) or inspect.isasyncgenfunction(python_callable):
            raise DefinitionError(
                f"{self._name_in_errors()}: python_callable is a generator; use a function that returns a value"
            )
        if use_airflow_context:
            raise NotYetSupported(
                f"{self._name_in_errors()}: use_airflow_context=True is not supported, because another interpreter has no "
                "connection to the scheduler; remove it"
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
        self.expect_pendulum = expect_pendulum
        self._command: Command | None = None

    @contextmanager
    def interpreter(self) -> Iterator[str]:
        """A context manager that gives the path of the interpreter and keeps the interpreter available while it is open."""
        raise NotImplementedError(f"{type(self).__name__} does not define interpreter()")
        yield ""

    def warm_up(self) -> None:
        """The function is not called in this process, so there is nothing to prepare."""

    def determine_kwargs(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        passed = {name: context[name] for name in context if name in PASSED_VARIABLES}
        found = arguments_for(self.python_callable, self.op_args, self.op_kwargs, passed)
        try:
            inspect.signature(self.python_callable).bind(*self.op_args, **found)
        except TypeError as error:
            raise AirflowException(
                f"the arguments do not fit {self.python_callable.__name__}, which runs in another interpreter: {error}. "
                f"Only these context variables can be passed to it: {', '.join(sorted(passed))}"
            ) from None
        return found

    def execute_callable(self) -> Any:
        self._command = Command(self.log, keep_last_line=False)
        with self.interpreter() as python, tempfile.TemporaryDirectory(prefix="tradewind-python-") as folder:
            self._write_call(Path(folder))
            code = self._run_program(self._command, [python, interpreter_call.__file__, folder], self._env())
            return self._read_result(Path(folder), code)

    def _run_program(self, command: Command, arguments: list[str], env: Mapping[str, str]) -> int:
        """Run a program and copy its output to the task log. Returns the exit code."""
        try:
            code, _ = command.run(arguments, env=env)
        except OSError as error:
            raise AirflowException(f"cannot start {arguments[0]!r}: {error}") from error
        return code

    def on_kill(self) -> None:
        if self._command is not None:
            self._command.stop()

    def _env(self) -> dict[str, str]:
        env = dict(os.environ) if self.inherit_env else attempt_environment()
        for name in ("__PYVENV_LAUNCHER__", "PYTHONHOME"):
            env.pop(name, None)
        return {**env, **(self.env_vars or {})}

    # --- files of the call --------------------------------------------------------------------------------------------

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
                f"cannot serialize the arguments of {function.__name__} with {self.serializer}: {error}"
            ) from error
        (folder / "arguments").write_bytes(data)

    def _read_result(self, folder: Path, code: int) -> Any:
        if code in self.skip_on_exit_code:
            raise AirflowSkipException(f"the interpreter ended with exit code {code}; skipped because of skip_on_exit_code")
        problem = folder / "problem"
        if problem.exists():
            raise AirflowException(problem.read_text(encoding="utf-8"))
        if code != 0:
            raise AirflowException(f"the interpreter {describe_exit(code)}")
        result = folder / "result"
        if not result.exists():
            raise AirflowException("the interpreter ended before the function returned; does the function call sys.exit()?")
        try:
            return self._library().loads(result.read_bytes())
        except Exception as error:
            name = self.python_callable.__name__
            raise AirflowException(f"cannot read the result of {name}: {type(error).__name__}: {error}") from error


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function without its decorators.

    Raises:
        AirflowException: the source is not available.
    """
    try:
        written = inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise AirflowException(f"cannot read the source of {function.__name__}: {error}") from error
    # textwrap.dedent would also change multi-line strings, so an indented function is put into a block instead
    head = "if True:\n" if written[:1].isspace() else ""
    source = head + written
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    node = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds) and node.name == function.__name__)
    lines = source.splitlines(keepends=True)
    return head + "".join(lines[node.lineno - 1 : node.end_lineno])


def _plain(value: Any) -> Any:
    """A value without classes that another interpreter may not have, such as pendulum's dates and Tradewind's params."""
    value = resolve_lazy(value)
    if isinstance(value, datetime):
        return value if type(value) is datetime else from_micros(micros_of(value))
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain(one) for one in value)
    return value
