"""The base class and the workloads of Airflow's executors, as executors of provider packages and their tests use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

import tradewind.airflow  # noqa: F401  Airflow's names
from tradewind.model.errors import NotYetSupported
from tradewind.model.states import TaskState

from airflow.executors import workloads  # isort: skip
from airflow.executors.base_executor import BaseExecutor  # isort: skip
from airflow.executors.executor_loader import ExecutorLoader  # isort: skip
from airflow.executors.executor_utils import ExecutorName  # isort: skip
from airflow.executors.workloads.callback import CallbackDTO, CallbackFetchMethod  # isort: skip
from airflow.models.callback import CallbackKey  # isort: skip
from airflow.models.taskinstancekey import TaskInstanceKey  # isort: skip
from airflow.utils.state import CallbackState  # isort: skip

ID = UUID("12345678-1234-5678-1234-567812345678")


class Executor(BaseExecutor):
    supports_callbacks = True

    def __init__(self, parallelism: int) -> None:
        super().__init__(parallelism)
        self.started: list[Any] = []

    def _process_workloads(self, workloads: Any) -> None:
        for workload in workloads:
            (self.queued_tasks if workload.key in self.queued_tasks else self.queued_callbacks).pop(workload.key)
            self.running.add(workload.key)
            self.started.append(workload.key)


def task(task_id: str, priority: int = 1, dag_id: str = "etl") -> Any:
    ti = workloads.TaskInstance(id=ID, task_id=task_id, dag_id=dag_id, run_id="r", try_number=2, priority_weight=priority)
    place = {"dag_rel_path": Path("etl.py"), "bundle_info": workloads.BundleInfo(name="dags"), "log_path": "etl.log"}
    return workloads.ExecuteTask(ti=ti, token="secret", **place)


def callback() -> Any:
    made = CallbackDTO(id=ID, fetch_method=CallbackFetchMethod.IMPORT_PATH, data={"path": "alerts.mail"})
    return workloads.ExecuteCallback(callback=made)


def test_callbacks_start_first_then_tasks_by_priority_and_as_many_as_there_are_slots() -> None:
    executor = Executor(parallelism=2)
    low, high, mail = task("low"), task("high", 9), callback()
    for workload in (low, high, mail):
        executor.queue_workload(workload, session=None)
    assert (executor.slots_occupied, executor.slots_available) == (3, -1)
    executor.heartbeat()
    assert executor.started == [mail.key, high.key]
    executor.heartbeat()
    assert executor.started == [mail.key, high.key], "no slot is free"
    executor.success(high.key)
    executor.heartbeat()
    assert executor.started == [mail.key, high.key, low.key]


def test_events_have_the_state_of_their_kind_and_are_read_by_dag() -> None:
    executor = Executor(parallelism=4)
    first, other, mail = task("a"), task("a", dag_id="other"), callback()
    executor.fail(first.key, "lost")
    executor.success(other.key)
    executor.success(mail.key)
    assert executor.get_event_buffer(["etl"]) == {
        first.key: (TaskState.FAILED, "lost"),
        mail.key: (CallbackState.SUCCESS, None),
    }
    assert executor.get_event_buffer() == {other.key: (TaskState.SUCCESS, None)}
    assert executor.get_event_buffer() == {}


def test_events_of_task_instances_are_recorded() -> None:
    executor = Executor(parallelism=1)
    key = TaskInstanceKey.from_dict({"dag_id": "etl", "task_id": "a", "run_id": "r", "try_number": 2})
    executor.log_task_event(event="submit failure", extra="no capacity", ti_key=key)
    executor.log_task_event(event="submit failure", extra="no capacity", ti_key=callback().key)
    assert [(one.event, one.task_id, one.try_number) for one in executor._task_event_logs] == [("submit failure", "a", 2)]


def test_a_workload_is_the_same_after_json_and_its_token_is_not_shown() -> None:
    workload = task("a")
    read = workloads.ExecuteTask.model_validate_json(workload.model_dump_json())
    assert (read, read.key.try_number, read.success_state) == (workload, 2, TaskState.SUCCESS)
    assert "secret" not in repr(workload)
    assert (callback().key, callback().display_name) == (CallbackKey(str(ID)), "mail")
    with pytest.raises(ValidationError, match="task_id"):
        workloads.TaskInstance(dag_id="etl", run_id="r")


def test_what_an_executor_does_not_support_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="BaseExecutor does not support ExecuteCallback"):
        BaseExecutor().queue_workload(callback())
    with pytest.raises(ValueError, match="'RunTrigger' in Executor"):
        Executor(1).queue_workload(workloads.RunTrigger())
    with pytest.raises(ValueError, match="is 0; it must be 1 or more"):
        Executor(0)
    with pytest.raises(NotYetSupported, match=r"setting core\.executor"):
        BaseExecutor.run_workload(task("a"))


def test_the_setting_names_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", f"CeleryExecutor,mine:{__name__}.Executor,{__name__}.Executor")
    celery, mine, last = ExecutorLoader.get_executor_names()
    assert celery == ExecutorName("airflow.providers.celery.executors.celery_executor.CeleryExecutor", "CeleryExecutor")
    assert (mine.alias, last.alias) == ("mine", None)
    assert ExecutorLoader.import_executor_cls(mine)[0] is Executor
    assert ExecutorLoader.get_default_executor_name(team_name="a") == celery._replace(team_name="a")
    with pytest.raises(ImportError, match="no_such"):
        ExecutorLoader.import_executor_cls(ExecutorName("no_such.Executor"))
