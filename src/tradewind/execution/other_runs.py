"""Runs of other DAGs that a task triggers or reads. A task only sends requests; the scheduler creates the runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tradewind.execution.task_instance import TaskInstance
from tradewind.sdk.variables import request_value
from tradewind.wire.messages import TriggerRun


class TriggerResult(NamedTuple):
    """The result of a request for a run.

    `done`: `created`; `cleared`: the run existed and was cleared; `exists`: the run existed and was not changed; `paused`: the DAG
    is paused and nothing was created; `rehearsed`: in `dag.test()`, which creates no runs of other DAGs.
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
) -> TriggerResult:
    """Request a run of a DAG. Each request creates at most one run in one try: if the attempt is lost, the next one finds that run.

    Args:
        ti: the task instance that sends the request.
        run_id: id of the run. None: derived from the logical date.
        logical_date: microseconds. None: a run without a logical date.
        conf: values that can be written as JSON.
        reset: clear an existing run with this id or logical date.
        fail_when_paused: create no run if the DAG is paused.

    Raises:
        AirflowException: there is no such DAG, `conf` does not fit its params, or this attempt is not the current one.
    """
    ti.triggered += 1
    request = TriggerRun(
        0, dag_id, ti.triggered, run_id, logical_date, dict(conf or {}), note, reset=reset, fail_when_paused=fail_when_paused
    )
    result = request_value(request, f"cannot trigger DAG {dag_id!r}").value
    return TriggerResult(result["done"], result["run_id"] or "", result["logical_date"])
