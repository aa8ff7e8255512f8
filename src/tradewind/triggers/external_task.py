"""Triggers that wait for tasks and runs of DAGs. They never run: the scheduler waits in their place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from datetime import datetime
from typing import Any

from tradewind.execution.task_instance import micros_of
from tradewind.execution.xcom_codec import encode_xcom
from tradewind.model.waits import TasksWait, Wait
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.trigger import BaseTrigger, TriggerEvent


class SchedulerWaitTrigger(BaseTrigger):
    """Base class of triggers that the scheduler replaces with its own wait. A subclass with its own `run` is not replaced."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        raise AirflowException(f"{type(self).__name__} cannot run without a scheduler, which would wait in its place")
        yield TriggerEvent()

    def as_wait(self) -> Wait | None:
        return self._wait() if type(self).run is SchedulerWaitTrigger.run else None

    def _wait(self) -> TasksWait:
        raise NotImplementedError


class WorkflowTrigger(SchedulerWaitTrigger):
    """Fires `{"status": "success"}`, `"failed"` or `"skipped"` when tasks, a task group or whole runs of a DAG reach such states.

    Args:
        external_dag_id: the DAG.
        run_ids, logical_dates: the runs. `execution_dates` is Airflow 2's name for `logical_dates`.
        external_task_ids, external_task_group_id: tasks or task group in these runs. None of them: the whole runs.
        allowed_states: success when all have one of these states. Default: `["success"]`.
        failed_states, skipped_states: failed or skipped when one of them has one of these states.
        poke_interval, soft_fail: accepted without effect; the scheduler checks after each change.
    """

    def __init__(
        self,
        external_dag_id: str,
        run_ids: Collection[str] | None = None,
        execution_dates: Iterable[datetime] | None = None,
        logical_dates: Iterable[datetime] | None = None,
        external_task_ids: Collection[str] | None = None,
        external_task_group_id: str | None = None,
        failed_states: Iterable[str] | None = None,
        skipped_states: Iterable[str] | None = None,
        allowed_states: Iterable[str] | None = None,
        poke_interval: float = 2.0,
        soft_fail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.external_dag_id = external_dag_id
        self.run_ids = list(run_ids or ())
        self.logical_dates = _dates(self, [*(logical_dates or ()), *(execution_dates or ())])
        self.external_task_ids = list(external_task_ids or ())
        self.external_task_group_id = external_task_group_id
        self.failed_states = _state_names(failed_states)
        self.skipped_states = _state_names(skipped_states)
        self.allowed_states = _state_names(allowed_states) or ["success"]
        self.poke_interval = poke_interval
        self.soft_fail = soft_fail
        _need_runs(self, self.external_dag_id, self.run_ids, self.logical_dates)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = (
            *("external_dag_id", "run_ids", "logical_dates", "external_task_ids", "external_task_group_id"),
            *("failed_states", "skipped_states", "allowed_states", "poke_interval", "soft_fail"),
        )
        return "tradewind.triggers.external_task.WorkflowTrigger", {name: getattr(self, name) for name in names}

    def _wait(self) -> TasksWait:
        return TasksWait(
            self.external_dag_id,
            logical_dates=tuple(map(micros_of, self.logical_dates)),
            run_ids=tuple(self.run_ids),
            task_ids=tuple(self.external_task_ids),
            group=self.external_task_group_id,
            allowed=tuple(self.allowed_states),
            skipped=tuple(self.skipped_states),
            failed=tuple(self.failed_states),
            events={word: encode_xcom({"status": word}) for word in ("success", "failed", "skipped")},
        )


class DagStateTrigger(SchedulerWaitTrigger):
    """Fires when all given runs of a DAG have one of some states. The event is what `serialize` returns.

    Args:
        dag_id: the DAG.
        states: all runs must have one of these states.
        run_ids, logical_dates: the runs. `execution_dates` is Airflow 2's name for `logical_dates`.
        poll_interval: accepted without effect; the scheduler checks after each change.
    """

    def __init__(
        self,
        dag_id: str,
        states: Iterable[str],
        logical_dates: Iterable[datetime] | None = None,
        execution_dates: Iterable[datetime] | None = None,
        run_ids: Collection[str] | None = None,
        poll_interval: float = 5.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dag_id = dag_id
        self.states = _state_names(states)
        self.logical_dates = _dates(self, [*(logical_dates or ()), *(execution_dates or ())])
        self.run_ids = list(run_ids or ())
        self.poll_interval = poll_interval
        _need_runs(self, dag_id, self.run_ids, self.logical_dates)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("dag_id", "states", "logical_dates", "run_ids", "poll_interval")
        return "tradewind.triggers.external_task.DagStateTrigger", {name: getattr(self, name) for name in names}

    def _wait(self) -> TasksWait:
        return TasksWait(
            self.dag_id,
            logical_dates=tuple(map(micros_of, self.logical_dates)),
            run_ids=tuple(self.run_ids),
            allowed=tuple(self.states),
            events={"success": encode_xcom(self.serialize())},
        )


def _state_names(states: Iterable[str] | None) -> list[str]:
    """States as strings; also accepts enum members."""
    return [str(getattr(state, "value", state)) for state in states or ()]


def _dates(trigger: BaseTrigger, dates: list[datetime]) -> list[datetime]:
    for date in dates:
        if not isinstance(date, datetime) or date.tzinfo is None:
            raise AirflowException(
                f"{type(trigger).__name__}: {date!r} is not a logical date; it must be a datetime with a time zone"
            )
    return dates


def _need_runs(trigger: BaseTrigger, dag_id: str, run_ids: list[str], dates: list[datetime]) -> None:
    if not run_ids and not dates:
        raise AirflowException(f"{type(trigger).__name__}: give logical_dates or run_ids, to say which runs of DAG {dag_id!r}")
