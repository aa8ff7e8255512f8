"""Commands of system tests."""

from __future__ import annotations

import logging
import subprocess


class LoggingCommandExecutor:
    """Runs commands and logs what they print."""

    log = logging.getLogger(__name__)

    def execute_cmd(
        self, cmd: list[str], silent: bool = False, cwd: str | None = None, env: dict[str, str] | None = None
    ) -> int:
        done = subprocess.run(cmd, capture_output=silent, cwd=cwd, env=env, check=False)
        return done.returncode


class CommandExecutionError(Exception):
    """A command failed."""


class CommandExecutor(LoggingCommandExecutor):
    """Runs commands that must succeed."""

    def execute_cmd(
        self, cmd: list[str], silent: bool = False, cwd: str | None = None, env: dict[str, str] | None = None
    ) -> int:
        if code := super().execute_cmd(cmd, silent=silent, cwd=cwd, env=env):
            raise CommandExecutionError(f"{cmd} ended with {code}")
        return 0
