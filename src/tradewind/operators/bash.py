"""Operators that run a shell command."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.operators.callables import rendered_result
from tradewind.operators.subprocess_hook import SubprocessHook
from tradewind.operators.subprocesses import Command, attempt_environment, check_encoding, describe_exit, exit_codes
from tradewind.sdk.decorators import SET_DURING_EXECUTION, DecoratedOperator
from tradewind.sdk.exceptions import AirflowException, AirflowSkipException
from tradewind.sdk.operator import BaseOperator

if TYPE_CHECKING:
    from collections.abc import Iterator


class BashOperator(BaseOperator):
    """Runs a command in bash, in its own session. The output is written to the task log as it is produced.

    The last line of the output is pushed as XCom. The task fails if the exit code is not 0. If an earlier part of the command may
    fail, use `set -e` for sequences and `set -o pipefail` for pipes.

    Args:
        bash_command: the command, or the name of a `.sh` or `.bash` file that contains it; a template. A file name followed by a
            space is run as a command, without rendering.
        env: environment variables of the command. None: the environment of the task.
        append_env: add `env` to the environment of the task instead of replacing it.
        output_encoding: encoding of the output.
        skip_on_exit_code: exit codes after which the task becomes skipped. Default: 99.
        cwd: working directory. None: an empty temporary folder.
        output_processor: function from the last line to the XCom, such as `json.loads`.
    """

    template_fields: Collection[str] = ("bash_command", "env", "cwd")
    template_fields_renderers: Mapping[str, str] = {"bash_command": "bash", "env": "json"}
    template_ext: Sequence[str] = (".sh", ".bash")
    ui_color = "#f0ede4"

    def __init__(
        self,
        *,
        bash_command: Any,
        env: dict[str, str] | None = None,
        append_env: bool = False,
        output_encoding: str = "utf-8",
        skip_on_exit_code: int | Collection[int] | None = 99,
        cwd: str | os.PathLike[str] | None = None,
        output_processor: Callable[[str], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_encoding(self._name_in_errors(), output_encoding)
        self.bash_command = bash_command
        self.env = env
        self.append_env = append_env
        self.output_encoding = output_encoding
        self.skip_on_exit_code = exit_codes(skip_on_exit_code)
        self.cwd = cwd
        self.output_processor = output_processor
        self._command: Command | None = None

    def execute(self, context: Any) -> Any:
        command = self.bash_command
        if not isinstance(command, str) or not command.strip():
            raise AirflowException(f"bash_command of task {self.task_id!r} is {command!r}; it must be a non-empty string")
        self._command = Command(self.log, encoding=self.output_encoding, keep_last_line=bool(self.do_xcom_push))
        with self._folder() as folder:
            code, last_line = self._command.run([bash_path(), "-c", command], cwd=folder, env=self.get_env(context))
        if code in self.skip_on_exit_code:
            raise AirflowSkipException(f"the command ended with exit code {code}; skipped because of skip_on_exit_code")
        if code != 0:
            raise AirflowException(f"the command {describe_exit(code)}")
        return self.output_processor(last_line) if self.output_processor is not None else last_line

    def get_env(self, context: Any) -> dict[str, str]:
        """The environment of the command: the task's, replaced or extended by `env`, and the variables of the attempt."""
        inherits = self.env is None or self.append_env
        env = dict(os.environ) if inherits else attempt_environment()
        env.update(context["ti"].environment())
        for name, value in (self.env or {}).items():
            if not isinstance(value, str):
                raise AirflowException(f"env of task {self.task_id!r} has the value {value!r} for {name}; it must be a string")
            env[name] = value
        return env

    @contextmanager
    def _folder(self) -> Iterator[str]:
        if self.cwd is None:
            with tempfile.TemporaryDirectory(prefix="tradewind-bash-", ignore_cleanup_errors=True) as folder:
                yield folder
            return
        path = Path(self.cwd)
        if not path.exists():
            raise AirflowException(f"cwd of task {self.task_id!r} is {str(path)!r}, which does not exist")
        if not path.is_dir():
            raise AirflowException(f"cwd of task {self.task_id!r} is {str(path)!r}, which is not a folder")
        yield str(path)

    @functools.cached_property
    def subprocess_hook(self) -> SubprocessHook:
        """Runs commands for operators that are derived from this one: `self.subprocess_hook.run_command([...])`."""
        return SubprocessHook()

    def on_kill(self) -> None:
        if self._command is not None:
            self._command.stop()
        if "subprocess_hook" in self.__dict__:
            self.subprocess_hook.send_sigterm()


def bash_path() -> str:
    found = shutil.which("bash")
    if found is None:
        raise AirflowException("bash is not on the PATH of this machine; install bash, or add its folder to PATH")
    return found


class BashDecoratedOperator(DecoratedOperator, BashOperator):
    """The operator of `@task.bash`: the function returns the command, which may contain templates."""

    template_fields: Collection[str] = ("op_args", "op_kwargs", "env", "cwd")
    custom_operator_name = "@task.bash"
    overwrite_rtif_after_execution = True
    """Airflow's operators have it: the rendered fields are stored again after the execution."""
    _is_inline_cmd: bool | None = None

    def __init__(self, *, python_callable: Callable[..., Any], **kwargs: Any) -> None:
        to_upstream = {"bash_command": SET_DURING_EXECUTION}
        super().__init__(python_callable=python_callable, kwargs_to_upstream=to_upstream, **kwargs)

    def execute(self, context: Any) -> Any:
        self.bash_command = rendered_result(self, context)
        return super().execute(context)
