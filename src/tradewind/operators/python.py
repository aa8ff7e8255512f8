"""Tasks that call a Python function."""

from __future__ import annotations

import importlib
from typing import Any

from tradewind.execution.context import get_current_context
from tradewind.execution.run_task import finished
from tradewind.execution.task_instance import Branch
from tradewind.operators.branch import BaseBranchOperator, BranchMixIn, SkipMixin
from tradewind.operators.callables import CallsFunction, DecoratedCall

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

_ELSEWHERE = {
    "BranchExternalPythonOperator": "external_python",
    "ExternalPythonOperator": "external_python",
    "BranchPythonVirtualenvOperator": "virtualenv",
    "PythonVirtualenvOperator": "virtualenv",
}


def __getattr__(name: str) -> Any:
    """Lazy door: few files have tasks in other interpreters."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tradewind.operators.{_ELSEWHERE[name]}"), name)


def is_venv_installed() -> bool:
    """Airflow 2's question: can virtual environments be made here?"""
    try:
        importlib.import_module("venv")
    except ModuleNotFoundError:
        return False
    return True


class PythonOperator(CallsFunction):
    """Calls a function; what it returns is pushed as XCom.

    Args:
        show_return_value_in_logs: write the result into the log.
        provide_context: Airflow 1's request for what is always given here.
        others: see `CallsFunction`.
    """

    ui_color = "#ffefeb"

    def __init__(self, *, show_return_value_in_logs: bool = True, provide_context: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.show_return_value_in_logs = show_return_value_in_logs

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

    def execute_callable(self) -> Any:
        """Call the function; an `async` one is run to its end."""
        return finished(self.python_callable(*self.op_args, **self.op_kwargs))

    def on_kill(self) -> None:
        """End the processes that the function has started, children of children too: TERM, then KILL."""
        from tradewind.execution.end_children import stop_children  # lazy door: only for a task that is stopped

        stop_children()


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


class PythonDecoratedOperator(DecoratedCall, PythonOperator):
    """Behind `@task`."""


class BranchPythonDecoratedOperator(DecoratedCall, BranchPythonOperator):
    """Behind `@task.branch`."""

    custom_operator_name = "@task.branch"


class ShortCircuitDecoratedOperator(DecoratedCall, ShortCircuitOperator):
    """Behind `@task.short_circuit`."""

    custom_operator_name = "@task.short_circuit"
