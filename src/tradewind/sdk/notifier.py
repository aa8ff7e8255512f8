"""`BaseNotifier`: base class of notifications that can be used as callbacks."""

from __future__ import annotations

import functools
import logging
from collections.abc import Generator, Mapping
from typing import Any

from tradewind.sdk.templater import Templater


class BaseNotifier(Templater):
    """Subclasses define `notify(context)`. Attributes named in `template_fields` are rendered before the call.

        with DAG("d", default_args={"on_failure_callback": ChatNotifier(text="{{ ti.task_id }} failed")}):

    An exception in `notify` is logged and has no other effect.
    """

    dag: Any = None
    task_id = "notifier"
    context: Any = None
    _last: Mapping[str, tuple[Any, Any]] = {}
    """Name of an attribute → (its template, its rendered value in the last call)."""

    def __init__(self, context: Any = None, **kwargs: Any) -> None:
        """Keyword arguments that a subclass passes on are ignored.

        Args:
            context: for `await notifier`, which takes no arguments.
        """
        self.context = context or {}

    @functools.cached_property
    def log(self) -> logging.Logger:
        """The logger of the notifier. Notifiers written for Airflow 2 may assign their own."""
        return logging.getLogger(f"tradewind.task.notifiers.{type(self).__name__}")

    def notify(self, context: Any) -> None:
        """Send the message."""
        raise NotImplementedError(f"{type(self).__name__} does not define notify(context)")

    async def async_notify(self, context: Any) -> None:
        """Send the message from an event loop."""
        raise NotImplementedError(f"{type(self).__name__} does not define async_notify(context)")

    def get_dag(self) -> Any:
        """The DAG whose folder, macros and filters the notifier's templates use."""
        return self.dag

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Replace the templated attributes with their rendered values."""
        if self.template_fields:
            # lazy import: jinja2 is needed only where a task runs
            from tradewind.execution.templates import render_fields

            render_fields(self, context, jinja_env)

    def __call__(self, *args: Any) -> None:
        names = ("dag", "task_list", "blocking_task_list", "blocking_tis")  # how Airflow 2 calls an SLA callback
        context = args[0] if len(args) == 1 else dict(zip(names, args, strict=False))
        self.notify(self._rendered(context))

    def __await__(self) -> Generator[Any, None, None]:
        return self.async_notify(self._rendered(self.context)).__await__()

    def _rendered(self, context: Any) -> Any:
        """Render the attributes. Returns the context with the attributes as further variables.

        The same object may be called for other tasks: attributes that still have the value of the last call are templates again.
        """
        for name, (template, value) in self._last.items():
            if getattr(self, name, None) is value:
                setattr(self, name, template)
        self.dag = context.get("dag")
        templates = {name: getattr(self, name) for name in self.template_fields}
        self._update_context(context)
        self.render_template_fields(context)
        self._last = {name: (template, getattr(self, name)) for name, template in templates.items()}
        return context

    def _update_context(self, context: Any) -> Any:
        """Add the templated attributes to the variables, so that one may use another: `{{ username }}`."""
        for name in self.template_fields:
            context[name] = getattr(self, name)
        return context
