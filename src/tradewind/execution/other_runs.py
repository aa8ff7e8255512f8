"""Runs of other DAGs, asked for by a running task. The scheduler makes them: a task never writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tradewind.execution.task_instance import TaskInstance
from tradewind.sdk.variables import request_value
from tradewind.wire.messages import GetTaskStates, TriggerRun


class Triggered(NamedTuple):
    """What came of asking for a run.

    `done`: `created`; `cleared`, a run that existed; `exists`, and was left alone; `paused`, the DAG, so nothing was made;
    `rehearsed`, in `dag.test()`, which makes no runs of other DAGs.
    """

    done: str
    run_id: str
    logical_date: int | None


def trigger_run(
    ti: TaskInstance,
    dag_id: str,
    *,
    run_id: str | None = None,
    logical_date: int | None = None,
    conf: Mapping[str, Any] | None = None,
    note: str | None = None,
    reset: bool = False,
    fail_when_paused: bool = False,
) -> Triggered:
    """Ask for a run of a DAG. In each try of a task it is made once: an attempt that follows a lost one finds it made.

    Args:
        ti: the task that asks.
        run_id: None: made from the date.
        logical_date: microseconds; None: a run without one.
        conf: values that JSON knows.
        reset: clear the run of this id or date, if there is one.
        fail_when_paused: make none while the DAG is paused.

    Raises:
        AirflowException: there is no such DAG, `conf` does not fit its params, or this attempt is not the current one.
    """
    ti.triggered += 1
    question = TriggerRun(
        0, dag_id, ti.triggered, run_id, logical_date, dict(conf or {}), note, reset=reset, fail_when_paused=fail_when_paused
    )
    told = request_value(question, f"cannot trigger DAG {dag_id!r}").value
    return Triggered(told["done"], told["run_id"] or "", told["logical_date"])


def run_state(dag_id: str, run_id: str) -> str | None:
    """The state of a run now; None: there is no such run."""
    answer = request_value(GetTaskStates(0, dag_id, run_ids=(run_id,)), f"cannot look at run {run_id!r} of DAG {dag_id!r}")
    return next((state for _, _, state in answer.value or ()), None) if answer.found else None
