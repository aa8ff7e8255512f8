"""`airflow.utils.operator_helpers`: the context as environment variables, and calls of authors' functions with it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar

from tradewind.execution.call_arguments import arguments_for
from tradewind.sdk.policies import context_variables

__all__ = [
    "AIRFLOW_VAR_NAME_FORMAT_MAPPING",
    "DEFAULT_FORMAT_PREFIX",
    "ENV_VAR_FORMAT_PREFIX",
    "KeywordParameters",
    "context_merge",
    "context_to_airflow_vars",
    "determine_kwargs",
    "make_kwargs_callable",
]

R = TypeVar("R")

DEFAULT_FORMAT_PREFIX = "airflow.ctx."
ENV_VAR_FORMAT_PREFIX = "AIRFLOW_CTX_"

_FORMATS = {
    "AIRFLOW_CONTEXT_DAG_ID": "dag_id",
    "AIRFLOW_CONTEXT_TASK_ID": "task_id",
    "AIRFLOW_CONTEXT_EXECUTION_DATE": "execution_date",
    "AIRFLOW_CONTEXT_LOGICAL_DATE": "logical_date",
    "AIRFLOW_CONTEXT_MAP_INDEX": "map_index",
    "AIRFLOW_CONTEXT_TRY_NUMBER": "try_number",
    "AIRFLOW_CONTEXT_DAG_RUN_ID": "dag_run_id",
    "AIRFLOW_CONTEXT_DAG_OWNER": "dag_owner",
    "AIRFLOW_CONTEXT_DAG_EMAIL": "dag_email",
}

AIRFLOW_VAR_NAME_FORMAT_MAPPING: dict[str, dict[str, str]] = {
    key: {"default": DEFAULT_FORMAT_PREFIX + name, "env_var_format": ENV_VAR_FORMAT_PREFIX + name.upper()}
    for key, name in _FORMATS.items()
}
"""Kind of information about a task → its name in configuration files, and its name in the environment."""


def context_to_airflow_vars(context: Mapping[str, Any], in_env_var_format: bool = False) -> dict[str, str]:
    """Information about the running task as texts, for the environment or the configuration of a program that it starts.

    Args:
        in_env_var_format: names such as `AIRFLOW_CTX_DAG_ID`; without, `airflow.ctx.dag_id`.
    """
    kind = "env_var_format" if in_env_var_format else "default"
    found: dict[str, str] = {}
    for key, value in _values_of(context):
        if value:
            found[AIRFLOW_VAR_NAME_FORMAT_MAPPING[f"AIRFLOW_CONTEXT_{key}"][kind]] = _text(key, value)
    return {**found, **context_variables(context)}


def _values_of(context: Mapping[str, Any]) -> list[tuple[str, Any]]:
    task, ti, run = context.get("task"), context.get("ti") or context.get("task_instance"), context.get("dag_run")
    date = getattr(run, "logical_date", None)
    return [
        ("DAG_EMAIL", getattr(task, "email", None)),
        ("DAG_OWNER", getattr(task, "owner", None)),
        ("DAG_ID", getattr(ti, "dag_id", None)),
        ("TASK_ID", getattr(ti, "task_id", None)),
        ("EXECUTION_DATE", date),
        ("LOGICAL_DATE", date),
        ("TRY_NUMBER", getattr(ti, "try_number", None)),
        ("DAG_RUN_ID", getattr(run, "run_id", None)),
    ]


def _text(key: str, value: Any) -> str:
    """One value as a text.

    Raises:
        TypeError: an e-mail address or an owner is not a string.
    """
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple | set):
        wrong = next((one for one in value if not isinstance(one, str)), None)
        if wrong is not None:
            raise TypeError(f"{key.lower()} has {wrong!r}; it must be a text")
        return ",".join(value)
    return str(value)


def context_merge(context: dict[str, Any], *args: Any, **kwargs: Any) -> None:
    """Add values to a context. The arguments are those of `dict.update`."""
    context.update(*args, **kwargs)


class KeywordParameters:
    """The keyword arguments of a call."""

    def __init__(self, kwargs: Mapping[str, Any]) -> None:
        self._kwargs = dict(kwargs)

    @classmethod
    def determine(cls, func: Callable[..., Any], args: Collection[Any], kwargs: Mapping[str, Any]) -> KeywordParameters:
        """The keyword arguments, including context variables, that a function accepts in addition to `args`."""
        return cls(determine_kwargs(func, args, kwargs))

    def unpacking(self) -> Mapping[str, Any]:
        """The arguments, to be written after `**`."""
        return self._kwargs


def determine_kwargs(func: Callable[..., Any], args: Collection[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments, including context variables, that a function accepts in addition to `args`."""
    return arguments_for(func, list(args), {}, kwargs)


def make_kwargs_callable(func: Callable[..., R]) -> Callable[..., R]:
    """A wrapper of the function that ignores keyword arguments which the function does not accept."""

    @functools.wraps(func)
    def called(*args: Any, **kwargs: Any) -> R:
        return func(*args, **determine_kwargs(func, args, kwargs))

    return called
