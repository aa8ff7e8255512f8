"""`SubprocessHook`: runs a command for operators that are derived from `BashOperator`, and for other code of users."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tradewind.operators.subprocesses import Command
from tradewind.sdk.variables import BaseHook

__all__ = ["SubprocessHook", "SubprocessResult", "working_directory"]


class SubprocessResult(NamedTuple):
    """The result of a command."""

    exit_code: int
    output: str
    """The last line of its output."""


@contextmanager
def working_directory(cwd: str | None = None) -> Iterator[str]:
    """A folder for a `with` block: `cwd`, or a temporary one."""
    if cwd:
        yield cwd
        return
    with TemporaryDirectory(prefix="airflowtmp") as folder:
        yield folder


class SubprocessHook(BaseHook):
    """Runs a command and logs its output."""

    def __init__(self, **_kwargs: Any) -> None:
        super().__init__()
        self._command: Command | None = None

    def run_command(
        self,
        command: list[str],
        env: dict[str, str] | None = None,
        output_encoding: str = "utf-8",
        cwd: str | None = None,
    ) -> SubprocessResult:
        """Run a command and wait for its end."""
        self._command = Command(logging.getLogger(__name__), encoding=output_encoding)
        with working_directory(cwd) as folder:
            code, last = self._command.run(command, cwd=folder, env=env)
        return SubprocessResult(code, last)

    def send_sigterm(self) -> None:
        """End the command and all processes that it has started."""
        if self._command is not None:
            self._command.stop()
