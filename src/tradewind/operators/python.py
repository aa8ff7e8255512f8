"""Operators that call a Python function."""

from __future__ import annotations

import importlib
import time
from typing import Any

from tradewind.execution.context import get_current_context
from tradewind.execution.run_task import run_to_end
from tradewind.execution.task_instance import Branch
from tradewind.lazy_names import import_name
from tradewind.operators.branch import DECISION, BaseBranchOperator, BranchOnResult, SkipMixin
from tradewind.operators.callables import CallableOperator, DecoratedCallableOperator

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
    "BranchExternalPythonOperator": "operators.external_python",
    "ExternalPythonOperator": "operators.external_python",
    "BranchPythonVirtualenvOperator": "operators.virtualenv",
    "PythonVirtualenvOperator": "operators.virtualenv",
}


def __getattr__(name: str) -> Any:
    """Lazy import: few DAG files use other interpreters."""
    return import_name(__name__, _ELSEWHERE, name)


def is_venv_installed() -> bool:
    """Airflow 2's function: True if the module venv is installed."""
    try:
        importlib.import_module("venv")
    except ModuleNotFoundError:
        return False
    return True


class PythonOperator(CallableOperator):
    """Calls a function. The result is pushed as XCom.

    Args:
        show_return_value_in_logs: write the result to the log.
        provide_context: Airflow 1's argument; accepted without effect, because the context is always provided.
        others: see `CallableOperator`.
    """

    ui_color = "#ffefeb"
    _began: float | None = None
    """When `execute` began, on the monotonic clock in seconds; None before that."""

    def __init__(self, *, show_return_value_in_logs: bool = True, provide_context: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.show_return_value_in_logs = show_return_value_in_logs

    def execute(self, context: Any) -> Any:
        self._began = time.monotonic()
        self.op_kwargs = self.call_kwargs(context)
        result = self.execute_callable()
        # Without a result nothing is logged, so that a task without output needs no log file.
        if result is not None:
            if self.show_return_value_in_logs:
                self.log.info("Done. Returned value was: %s", result)
            else:
                self.log.info("Done. Returned value not shown")
        return result

    def execute_callable(self) -> Any:
        """Call the function; the coroutine of an `async` function is run to its end."""
        return run_to_end(self.python_callable(*self.op_args, **self.op_kwargs))

    def on_kill(self) -> None:
        """Stop all processes that the function has started, with SIGTERM, then SIGKILL.

        Older children of this process are not stopped: they belong to other code, such as the program that tests a DAG.
        """
        from tradewind.execution.end_children import stop_children  # lazy import: needed only when a task is stopped

        if self._began is not None:
            stop_children(self._began)


class BranchPythonOperator(BranchOnResult, PythonOperator):
    """Calls a function that returns the ids of the direct downstream tasks or task groups to run. None chooses no task.

    Direct downstream tasks that are not chosen are skipped, unless they are also downstream of a chosen task.
    """


class ShortCircuitOperator(SkipMixin, PythonOperator):
    """Calls a function. If the result is false, downstream tasks are skipped.

    Args:
        ignore_downstream_trigger_rules: True: skip all downstream tasks. False: skip only the direct downstream tasks; the others
            follow their trigger rules.
    """

    def __init__(self, *, ignore_downstream_trigger_rules: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules

    def execute(self, context: Any) -> Any:
        condition = super().execute(context)
        if condition:
            self.log.info("The condition is true: downstream tasks continue")
        elif not self.downstream_task_ids:
            self.log.info("The condition is false, but there are no downstream tasks")
        else:
            direct_only = not self.ignore_downstream_trigger_rules
            self.log.info("The condition is false: skipping %s downstream tasks", "direct" if direct_only else "all")
            context["ti"].branch = Branch("stop", direct_only=direct_only)
            below = self.get_direct_relatives() if direct_only else self.get_flat_relatives()
            skipped = sorted(task.task_id for task in below if not task.is_teardown)
            if skipped:
                context["ti"].xcom_push(DECISION, {"skipped": skipped})
        return condition


# --- operators of the decorators --------------------------------------------------------------------------------------


class PythonDecoratedOperator(DecoratedCallableOperator, PythonOperator):
    """The operator of `@task`."""


class BranchPythonDecoratedOperator(DecoratedCallableOperator, BranchPythonOperator):
    """The operator of `@task.branch`."""

    custom_operator_name = "@task.branch"


class ShortCircuitDecoratedOperator(DecoratedCallableOperator, ShortCircuitOperator):
    """The operator of `@task.short_circuit`."""

    custom_operator_name = "@task.short_circuit"
