"""`run_dag` and `run_task`: one run, or one task alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from tradewind.model.definition import DagDefinition
from tradewind.model.states import TriggerRule
from tradewind.sdk.dag import DAG
from tradewind.sdk.xcom_arg import XComArg
from tradewind.testing.dag_test import run_dag_test
from tradewind.testing.frozen_clock import frozen_now
from tradewind.testing.inline_triggers import Answer, answer_with
from tradewind.testing.results import TestedRun
from tradewind.testing.simulation import Simulation

if TYPE_CHECKING:
    from tradewind.sdk.operator import BaseOperator


NOT_GIVEN = object()


def run_dag(dag: DAG, **arguments: Any) -> TestedRun:
    """Run a DAG once in this process, silently, and keep what its tasks printed. Arguments, result and errors: `dag.test()`."""
    return run_dag_test(dag, **{"say": _nothing, "keep_logs": True, **arguments})


def _nothing(line: str) -> None:
    """Nobody listens."""


def run_task(
    task: BaseOperator | XComArg,
    *,
    xcoms: Mapping[Any, Any] | None = None,
    logical_date: datetime | None = None,
    now: datetime | None = None,
    show_output: bool = False,
    event: Any = NOT_GIVEN,
    **run: Any,
) -> TestedRun:
    """Carry out one task alone, whatever stands before it, with its retries and waits, in virtual time.

    Args:
        task: an operator, or what calling a `@task` function gave.
        xcoms: what the tasks before it are taken to have pushed: task id, or (task id, key), → value.
        logical_date: the run's date; the present unless given.
        now: when that is; a frozen clock's present, or the real one, unless given.
        event: what its trigger fires, where it defers itself: a payload, a TriggerEvent, or an exception that the trigger is
            taken to have raised (TimeoutError: the wait took too long). Every wait of the task comes to this at once. Unless
            given, the trigger itself runs, in real time, and not longer than a minute.
        run: more about the run, as `Simulation.trigger` takes it: `run_id`, `conf`, `data_interval`, `run_type` …

    Returns:
        A run of the one task; `state_of`, `xcom_of`, `rendered` and `log_of` say what it came to.
    """
    operator: BaseOperator = task.operator if isinstance(task, XComArg) else task
    if not operator.has_dag():
        DAG(f"test_{operator.task_id}", schedule=None).add_task(operator)
    clock = frozen_now()
    present = now or (clock.now if clock is not None else datetime.now(UTC))
    world = _OneTask(operator, start=present, show_output=show_output)
    if event is not NOT_GIVEN:
        world.answer_waits(answer_with(event))
    world.trigger(operator.dag_id, logical_date=logical_date or present, run_after=present, xcoms=xcoms, **run)
    world.play()
    return world.runs()[0]


class _OneTask(Simulation):
    """A DAG of which only one task is there."""

    def __init__(self, task: BaseOperator, **arguments: Any) -> None:
        self._only = task.task_id
        super().__init__(task.dag, **arguments)

    def answer_waits(self, answer: Answer) -> None:
        self._time.answer = answer

    def _adjusted(self, definition: DagDefinition) -> DagDefinition:
        task = next(one for one in definition.tasks if one.task_id == self._only)
        alone = msgspec.structs.replace(
            task,
            upstream=(),
            trigger_rule=TriggerRule.ALL_SUCCESS,
            group=None,
            is_setup=False,
            is_teardown=False,
            depends_on_past=False,
            wait_for_downstream=False,
            empty=False,
            wait=None,
            start_date=None,
            end_date=None,
        )
        whole = super()._adjusted(definition)
        return msgspec.structs.replace(whole, tasks=(alone,), groups=(), edge_labels=(), max_active_runs=1, catchup=False)
