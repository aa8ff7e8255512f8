"""`BaseNotifier`: base class of notifications that can be used as callbacks."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Sequence
from typing import Any


class BaseNotifier:
    """Subclasses define `notify(context)`. Attributes named in `template_fields` are rendered before the call.

        with DAG("d", default_args={"on_failure_callback": ChatNotifier(text="{{ ti.task_id }} failed")}):

    An exception in `notify` is logged and has no other effect.
    """

    template_fields: Collection[str] = ()
    template_ext: Sequence[str] = ()

    dag: Any = None
    task_id = "notifier"

    def __init__(self, **kwargs: Any) -> None:
        """Keyword arguments that a subclass passes on are ignored, as in Airflow."""

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"tradewind.task.notifiers.{type(self).__name__}")

    def notify(self, context: Any) -> None:
        """Send the message."""
        raise NotImplementedError(f"{type(self).__name__} does not define notify(context)")

    def get_dag(self) -> Any:
        """The DAG whose folder, macros and filters the notifier's templates use."""
        return self.dag

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Replace the templated attributes with their rendered values."""
        if self.template_fields:
            # lazy import: jinja2 is needed only where a task runs
            from tradewind.execution.templates import render_fields

            render_fields(self, context, jinja_env)

    def __call__(self, context: Any) -> None:
        # work on a copy: the same object may be called for other tasks
        message = copy.copy(self)
        message.dag = context.get("dag")
        message.render_template_fields(context)
        message.notify(context)
