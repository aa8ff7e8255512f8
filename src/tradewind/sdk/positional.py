"""Positional arguments of `DAG(...)` in the order of Airflow 1.10 and 2.0."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Init = TypeVar("Init", bound=Callable[..., None])

_FIRST = 5
"""`dag_id` to `end_date`: these have the same order in all releases that take more of them."""

_FURTHER = (
    *("full_filepath", "template_searchpath", "template_undefined", "user_defined_macros", "user_defined_filters"),
    *("default_args", "concurrency", "max_active_runs", "dagrun_timeout", "sla_miss_callback", "default_view"),
    *("orientation", "catchup", "on_success_callback", "on_failure_callback", "doc_md", "params", "access_control"),
    *("is_paused_upon_creation", "jinja_environment_kwargs", "render_template_as_native_obj", "tags"),
)


def positional_as_in_airflow_1(init: Init) -> Init:
    """Let `DAG.__init__` take its further arguments by position too. Airflow 3 takes them only by name."""

    @functools.wraps(init)
    def wrapper(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if len(args) <= _FIRST:
            return init(self, *args, **kwargs)
        most = _FIRST + len(_FURTHER)
        if len(args) > most:
            raise TypeError(f"DAG() takes at most {most} positional arguments, but {len(args)} were given")
        given: dict[str, Any] = dict(zip(_FURTHER, args[_FIRST:], strict=False))
        twice = sorted(given.keys() & kwargs.keys())
        if twice:
            raise TypeError(f"DAG() got multiple values for argument {twice[0]!r}")
        # None was the default of most arguments in those releases; here an argument may have another default
        given = {name: value for name, value in given.items() if value is not None}
        return init(self, *args[:_FIRST], **kwargs, **given)

    return cast(Init, wrapper)
