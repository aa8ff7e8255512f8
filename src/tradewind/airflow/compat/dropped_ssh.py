"""The operator that ran commands over SSH until Airflow 1.8, built on the present one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.providers.ssh.operators.ssh import SSHOperator

__all__ = ["SSHExecuteOperator"]


class SSHExecuteOperator(SSHOperator):  # type: ignore[misc]
    """Runs a command on another machine.

    Args:
        ssh_hook: the connection to the machine.
        bash_command: the command; the present operator calls it `command`.
        env: environment variables of the command; the present operator calls them `environment`.
    """

    def __init__(self, *, ssh_hook: Any, bash_command: str, env: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(ssh_hook=ssh_hook, command=bash_command, environment=env, **kwargs)
