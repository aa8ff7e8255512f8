"""A sensor that runs a shell command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tradewind.operators.bash import bash_path
from tradewind.operators.subprocesses import Command, attempt_environment, check_encoding, describe_exit
from tradewind.sdk.exceptions import AirflowException, AirflowFailException
from tradewind.sensors.base import BaseSensorOperator


class BashSensor(BaseSensorOperator):
    """Waits until a command ends with exit code 0. The command runs in bash, in an empty temporary folder.

    Args:
        bash_command: the command, or the name of a `.sh` or `.bash` file that contains it; a template.
        env: environment variables of the command. None: the environment of the task.
        output_encoding: encoding of the output.
        retry_exit_code: the exit code after which the sensor continues to wait; any other code except 0 fails the task without a
            retry. None: the sensor continues to wait after any exit code except 0.
    """

    template_fields: Collection[str] = ("bash_command", "env")
    template_fields_renderers: Mapping[str, str] = {"bash_command": "bash", "env": "json"}
    template_ext: Sequence[str] = (".sh", ".bash")

    def __init__(
        self,
        *,
        bash_command: str,
        env: Mapping[str, str] | None = None,
        output_encoding: str = "utf-8",
        retry_exit_code: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_encoding(self._name_in_errors(), output_encoding)
        self.bash_command = bash_command
        self.env = env
        self.output_encoding = output_encoding
        self.retry_exit_code = retry_exit_code
        self._command: Command | None = None

    def poke(self, context: Any) -> bool:
        command = self.bash_command
        if not isinstance(command, str) or not command.strip():
            raise AirflowFailException(f"bash_command of task {self.task_id!r} is {command!r}; it must be a non-empty string")
        self._command = Command(self.log, encoding=self.output_encoding, keep_last_line=False)
        env = {**os.environ} if self.env is None else {**attempt_environment(), **self.env}
        with tempfile.TemporaryDirectory(prefix="tradewind-bash-", ignore_cleanup_errors=True) as folder:
            try:
                code, _ = self._command.run([bash_path(), "-c", command], cwd=folder, env=env)
            except (OSError, TypeError) as error:
                raise AirflowException(f"cannot start the command of task {self.task_id!r}: {error}") from error
        if code == 0:
            return True
        if self.retry_exit_code is not None and code != self.retry_exit_code:
            raise AirflowFailException(
                f"the command {describe_exit(code)}; the sensor waits only after exit code {self.retry_exit_code} (retry_exit_code)"
            )
        self.log.info("The command %s: not yet", describe_exit(code))
        return False

    def on_kill(self) -> None:
        if self._command is not None:
            self._command.stop()
