"""`run_dag` and `run_task`: run one DAG, or one task alone."""

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
    """Run a DAG once in this process, without output, and record what its tasks print. Arguments, result, errors: `dag.test()`."""
    return run_dag_test(dag, **{"say": _nothing, "keep_logs": True, **arguments})


def _nothing(line: str) -> None:
    """Print nothing."""


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
    """Run one task without its upstream tasks, with its retries and waits, in virtual time.

    Args:
        task: an operator, or the result of a call of a `@task` function.
        xcoms: the XComs of the upstream tasks: task id, or (task id, key), → value.
        logical_date: the logical date of the run. Default: the present.
        now: the present. Default: the time of the frozen clock, or the real time.
        event: the event of the trigger, if the task defers itself: a payload, a TriggerEvent, or an exception, as if the trigger
            had raised it (TimeoutError stands for a timeout). Every wait of the task has this result at once. Without it, the
            trigger itself runs, in real time, for one minute at most.
        run: more arguments of the run, as in `Simulation.trigger`: `run_id`, `conf`, `data_interval`, `run_type` …

    Returns:
        A run with this one task; `state_of`, `xcom_of`, `rendered` and `log_of` read its results.
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
    """Runs a DAG with only one of its tasks."""

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
