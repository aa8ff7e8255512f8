"""`BaseNotifier`: a message to people, as an object that can stand wherever a callback can."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Sequence
from typing import Any


class BaseNotifier:
    """Subclasses write `notify(context)`; attributes named in `template_fields` are rendered before.

        with DAG("d", default_args={"on_failure_callback": TellChat(text="{{ ti.task_id }} failed")}):

    What `notify` raises is logged and changes nothing.
    """

    template_fields: Collection[str] = ()
    template_ext: Sequence[str] = ()

    dag: Any = None
    task_id = "notifier"

    def __init__(self, **kwargs: Any) -> None:
        """Keyword arguments that a subclass hands on are ignored, as in Airflow."""

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"tradewind.task.notifiers.{type(self).__name__}")

    def notify(self, context: Any) -> None:
        """Send the message."""
        raise NotImplementedError(f"{type(self).__name__} does not define notify(context)")

    def get_dag(self) -> Any:
        """The DAG whose folder and macros its templates use."""
        return self.dag

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Replace the templated attributes by their rendered values."""
        if self.template_fields:
            # lazy door: jinja2 is needed only where a task runs
            from tradewind.execution.templates import render_fields

            render_fields(self, context, jinja_env)

    def __call__(self, context: Any) -> None:
        # a copy: the same object is called again for another task
        message = copy.copy(self)
        message.dag = context.get("dag")
        message.render_template_fields(context)
        message.notify(context)
