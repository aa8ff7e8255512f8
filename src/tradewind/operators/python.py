"""Tasks that call a Python function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tradewind.authoring.calling import arguments_for, know_signature
from tradewind.authoring.context import get_current_context
from tradewind.authoring.decorators import DecoratedOperator
from tradewind.authoring.operator import BaseOperator
from tradewind.authoring.run import finished
from tradewind.authoring.task_instance import Branch
from tradewind.model.errors import DefinitionError
from tradewind.operators.branch import BaseBranchOperator, BranchMixIn, SkipMixin

__all__ = [
    "BaseBranchOperator",
    "BranchPythonDecoratedOperator",
    "BranchPythonOperator",
    "PythonDecoratedOperator",
    "PythonOperator",
    "ShortCircuitDecoratedOperator",
    "ShortCircuitOperator",
    "get_current_context",
]


class PythonOperator(BaseOperator):
    """Calls a function; what it returns is pushed as XCom.

    Args:
        python_callable: the function, which may be `async`. Parameters named like context variables (`ds`, `ti`, …) receive
            them; with `**kwargs` it receives them all.
        op_args, op_kwargs: what it is called with; templates in them are rendered.
        templates_dict: a dictionary of templates, handed to the function as `templates_dict`.
        templates_exts: endings of template files that may be named there.
        show_return_value_in_logs: write the result into the log.
        provide_context: Airflow 1's request for what is always given here.
    """

    template_fields: Collection[str] = ("templates_dict", "op_args", "op_kwargs")
    template_fields_renderers: Mapping[str, str] = {"templates_dict": "json", "op_args": "py", "op_kwargs": "py"}
    ui_color = "#ffefeb"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        templates_dict: dict[str, Any] | None = None,
        templates_exts: Sequence[str] | None = None,
        show_return_value_in_logs: bool = True,
        provide_context: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(python_callable):
            raise DefinitionError(f"{self._called()}: python_callable is {python_callable!r}; it must be a function")
        self.python_callable = python_callable
        self.op_args: Any = op_args if op_args is not None else ()
        self.op_kwargs: Any = op_kwargs if op_kwargs is not None else {}
        self.templates_dict = templates_dict
        if templates_exts:
            self.template_ext = tuple(templates_exts)
        self.show_return_value_in_logs = show_return_value_in_logs

    def warm_up(self) -> None:
        know_signature(self.python_callable)

    def execute(self, context: Any) -> Any:
        if self.templates_dict is not None:
            context["templates_dict"] = self.templates_dict
        self.op_kwargs = self.determine_kwargs(context)
        result = self.execute_callable()
        # A function that returns nothing says nothing: a silent task then has no log file to write.
        if result is not None:
            if self.show_return_value_in_logs:
                self.log.info("Done. Returned value was: %s", result)
            else:
                self.log.info("Done. Returned value not shown")
        return result

    def determine_kwargs(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keyword arguments of the call."""
        return arguments_for(self.python_callable, self.op_args, self.op_kwargs, context)

    def execute_callable(self) -> Any:
        """Call the function; an `async` one is run to its end."""
        return finished(self.python_callable(*self.op_args, **self.op_kwargs))


class BranchPythonOperator(BranchMixIn, PythonOperator):
    """Calls a function that returns the ids of the tasks or groups, directly downstream, that go on.

    The others are skipped, unless they are also downstream of a chosen one. None chooses nothing.
    """

    def execute(self, context: Any) -> Any:
        return self.do_branch(context, super().execute(context))


class ShortCircuitOperator(SkipMixin, PythonOperator):
    """Goes on only if the function returns something true.

    Args:
        ignore_downstream_trigger_rules: True: everything downstream is skipped; False: only what is directly downstream,
            and the rest follows its trigger rules.
    """

    def __init__(self, *, ignore_downstream_trigger_rules: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules

    def execute(self, context: Any) -> Any:
        condition = super().execute(context)
        if condition:
            self.log.info("The condition holds: downstream tasks go on")
        elif not self.downstream_task_ids:
            self.log.info("The condition does not hold, but there are no downstream tasks")
        else:
            direct_only = not self.ignore_downstream_trigger_rules
            self.log.info("The condition does not hold: %s downstream tasks are skipped", "direct" if direct_only else "all")
            context["ti"].branch = Branch("stop", direct_only=direct_only)
        return condition


# --- behind the decorators --------------------------------------------------------------------------------------------


class PythonDecoratedOperator(DecoratedOperator, PythonOperator):
    """Behind `@task`."""

    template_fields: Collection[str] = ("templates_dict", "op_args", "op_kwargs")
    custom_operator_name = "@task"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            kwargs_to_upstream={"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs},
            **kwargs,
        )


class BranchPythonDecoratedOperator(PythonDecoratedOperator, BranchPythonOperator):
    """Behind `@task.branch`."""

    custom_operator_name = "@task.branch"


class ShortCircuitDecoratedOperator(PythonDecoratedOperator, ShortCircuitOperator):
    """Behind `@task.short_circuit`."""

    custom_operator_name = "@task.short_circuit"
