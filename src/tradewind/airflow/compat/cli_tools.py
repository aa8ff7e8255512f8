"""`airflow.utils.cli`, `airflow.sentry`, `airflow.sdk.log`, `airflow.logging_config`: helpers that provider packages import.

They have no effect outside of Airflow's own services: decorators return functions unchanged, and nothing is configured.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from tradewind.model.errors import NotYetSupported

__all__ = [
    "Sentry",
    "action_cli",
    "configure_logging",
    "ctx_indiv_trigger",
    "get_bagged_dag",
    "get_dag",
    "get_dags",
    "get_remote_task_log",
    "logger_at_level",
    "process_subdir",
    "relative_path_from_logger",
    "run_command_with_daemon_option",
    "set_component_mp_start_method",
    "setup_locations",
    "suppress_logs_and_warning",
]

ctx_indiv_trigger: ContextVar[Any] = ContextVar("ctx_indiv_trigger", default=None)


def action_cli(func: Callable[..., Any] | None = None, check_db: bool = True) -> Any:
    """Return a command unchanged: Tradewind's command line writes its own audit log."""
    return func if func is not None else lambda function: function


def suppress_logs_and_warning(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command unchanged."""
    return func


def run_command_with_daemon_option(*, args: Any, process_name: str, callback: Callable[[], Any], **_options: Any) -> None:
    """Run a command of a provider package in the foreground.

    Raises:
        NotYetSupported: the command shall run in the background.
    """
    if getattr(args, "daemon", False):
        raise NotYetSupported(
            f"{process_name} cannot be started in the background with --daemon; use a service manager such as systemd"
        )
    callback()


def setup_locations(*_args: Any, **_kwargs: Any) -> Any:
    """Refuse to choose the files of a background service.

    Raises:
        NotYetSupported: always.
    """
    raise NotYetSupported("services of Airflow are not started here; Tradewind's are: tradewind standalone")


def get_dag(*_args: Any, **_kwargs: Any) -> Any:
    """Refuse to find a DAG by its id.

    Raises:
        NotYetSupported: always.
    """
    raise NotYetSupported("get_dag of airflow.utils.cli is not available; import the DAG from its file")


get_bagged_dag = get_dags = get_dag


def process_subdir(subdir: str | None) -> str | None:
    """Return the value of the option `--subdir` unchanged."""
    return subdir


def configure_logging(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing: the worker has configured the logs."""


@contextlib.contextmanager
def logger_at_level(name: str, level: int) -> Iterator[None]:
    """Set another level of a logger inside a `with` block."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


def relative_path_from_logger(logger: Any) -> None:
    """Return None: this process does not know the path of the task's log file."""


def set_component_mp_start_method(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing: there is no choice how a service starts its processes."""


def get_remote_task_log() -> None:
    """Return None: no remote log is configured in this process."""


class _ActiveLoggingConfig:
    """The remote log that provider packages configure."""

    remote_task_log: Any = None
    default_remote_conn_id: str | None = None

    @classmethod
    def set(cls, remote_task_log: Any, default_remote_conn_id: str | None) -> None:
        """Store the remote log that a package configures."""
        cls.remote_task_log, cls.default_remote_conn_id = remote_task_log, default_remote_conn_id


class _NoSentry:
    """A connection to Sentry that sends nothing."""

    def enrich_errors(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function unchanged."""
        return func

    def add_tagging(self, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing."""

    add_breadcrumbs = flush = add_tagging


Sentry = _NoSentry()
