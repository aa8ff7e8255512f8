"""Triggers that wait for tasks and runs of DAGs. The scheduler sees these change by itself: they never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from datetime import datetime
from typing import Any

from tradewind.execution.task_instance import micros_of
from tradewind.execution.xcom_codec import encode_xcom
from tradewind.model.waits import TasksWait, Wait
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.trigger import BaseTrigger, TriggerEvent


class _OfTheScheduler(BaseTrigger):
    """Base of what the scheduler waits for. A subclass that writes its own `run` is a trigger like any other."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        raise AirflowException(f"{type(self).__name__} does not run: the scheduler waits in its place, where there is one")
        yield TriggerEvent()

    def as_wait(self) -> Wait | None:
        return self._wait() if type(self).run is _OfTheScheduler.run else None

    def _wait(self) -> TasksWait:
        raise NotImplementedError


class WorkflowTrigger(_OfTheScheduler):
    """Fires `{"status": "success"}`, `"failed"` or `"skipped"` when tasks, a task group or whole runs of a DAG came to that.

    Args:
        external_dag_id: the DAG.
        run_ids, logical_dates: which runs; `execution_dates` is Airflow 2's name of the dates.
        external_task_ids, external_task_group_id: what there; neither: the runs themselves.
        allowed_states: all in one of these: success. `["success"]` unless given.
        failed_states, skipped_states: one in one of these: failed, skipped.
        poke_interval, soft_fail: taken and not needed; the scheduler looks when something changes.
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
        self.failed_states = _words(failed_states)
        self.skipped_states = _words(skipped_states)
        self.allowed_states = _words(allowed_states) or ["success"]
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
            told={word: encode_xcom({"status": word}) for word in ("success", "failed", "skipped")},
        )


class DagStateTrigger(_OfTheScheduler):
    """Fires when runs of a DAG are in one of some states, with what made it: (import path, arguments).

    Args:
        dag_id: the DAG.
        states: all runs in one of these.
        run_ids, logical_dates: which runs; `execution_dates` is Airflow 2's name of the dates.
        poll_interval: taken and not needed; the scheduler looks when something changes.
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
        self.states = _words(states)
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
            told={"success": encode_xcom(self.serialize())},
        )


def _words(states: Iterable[str] | None) -> list[str]:
    """States as texts; members of an enumeration, too."""
    return [str(getattr(state, "value", state)) for state in states or ()]


def _dates(trigger: BaseTrigger, dates: list[datetime]) -> list[datetime]:
    for date in dates:
        if not isinstance(date, datetime) or date.tzinfo is None:
            raise AirflowException(f"{type(trigger).__name__}: {date!r} is no logical date; it must be a datetime with a zone")
    return dates


def _need_runs(trigger: BaseTrigger, dag_id: str, run_ids: list[str], dates: list[datetime]) -> None:
    if not run_ids and not dates:
        raise AirflowException(f"{type(trigger).__name__}: of which runs of DAG {dag_id!r}? Give logical_dates or run_ids")
