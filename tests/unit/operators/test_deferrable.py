"""Operators and sensors that wait in a trigger: the trigger's arguments, its work, and how the task continues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, pushed
from tests.unit.operators.servers import HttpServer, http_server
from tradewind import DAG
from tradewind.execution.deferral_request import trigger_wait
from tradewind.execution.run_task import TaskResult
from tradewind.execution.run_trigger import make_trigger, wait_for_end
from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.states import Outcome
from tradewind.model.waits import TIMEOUT, Deferral, Resumption, TasksWait, TriggerEnd, TriggerWait
from tradewind.operators.http import HttpOperator
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.trigger import BaseTrigger, StartTriggerArgs
from tradewind.sensors.base import BaseSensorOperator
from tradewind.sensors.filesystem import FileSensor
from tradewind.sensors.http import HttpSensor
from tradewind.triggers.external_task import DagStateTrigger, WorkflowTrigger
from tradewind.triggers.file import FileDeleteTrigger, FileTrigger
from tradewind.triggers.testing import FailureTrigger, SuccessTrigger

DATE = datetime(2026, 1, 1, tzinfo=UTC)


def _run(cls: Any, resumption: Resumption | None = None, **kwargs: Any) -> TaskResult:
    with DAG("d", schedule=None):
        return carry_out(cls(task_id="t", **kwargs), resumption=resumption)


def _end(wait: Any) -> TriggerEnd:
    """Create the trigger from its serialized form and run it to its end."""

    async def to_its_end() -> TriggerEnd:
        return await asyncio.wait_for(wait_for_end(make_trigger(wait)), 20)

    return asyncio.run(to_its_end())


def _told(deferral: Deferral, end: TriggerEnd) -> Resumption:
    assert deferral.method is not None
    return Resumption(deferral.method, deferral.kwargs, end.event, end.error)


def _to_its_end(cls: Any, **kwargs: Any) -> tuple[TaskResult, int]:
    """Run attempts and waits in turn. Returns the last result, and the number of waits."""
    waits = 0
    result = _run(cls, **kwargs)
    while result.deferral is not None:
        waits += 1
        result = _run(cls, _told(result.deferral, _end(result.deferral.wait)), **kwargs)
    return result, waits


# --- files ----------------------------------------------------------------------------------------------------------------


def test_a_file_sensor_pokes_once_and_then_waits_in_a_trigger(tmp_path: Path) -> None:
    path = tmp_path / "here"
    result = _run(FileSensor, filepath=str(path), deferrable=True, poke_interval=0.01, timeout=60)
    assert result.outcome is Outcome.DEFERRED
    assert result.deferral is not None
    wait = result.deferral.wait
    assert isinstance(wait, TriggerWait)
    assert decode_xcom(wait.kwargs) == {"filepath": str(path), "recursive": False, "poke_interval": 0.01}
    assert result.deferral.timeout_at is not None
    path.touch()
    again = _run(FileSensor, _told(result.deferral, _end(wait)), filepath=str(path), deferrable=True)
    assert again.outcome is Outcome.SUCCESS
    assert _run(FileSensor, filepath=str(path), deferrable=True).outcome is Outcome.SUCCESS, "it is there at the first look"
    begun = _run(FileSensor, filepath=str(path), deferrable=True, start_from_trigger=True)
    assert begun.outcome is Outcome.DEFERRED, "the trigger looks"


def test_the_default_of_deferrable_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRADEWIND__OPERATORS__DEFAULT_DEFERRABLE", raising=False)  # ours comes first
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    assert FileSensor(task_id="a", filepath="/x").deferrable
    assert not FileSensor(task_id="b", filepath="/x", deferrable=False).deferrable
    monkeypatch.delenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE")
    assert not HttpSensor(task_id="c", endpoint="x").deferrable


def test_file_delete_trigger_deletes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "signal"
    path.touch()
    assert decode_xcom(_end(trigger_wait(FileDeleteTrigger(str(path), 0.01))).event) is True
    assert not path.exists()


def test_triggers_for_use_in_tests() -> None:
    assert decode_xcom(_end(trigger_wait(SuccessTrigger())).event) is True
    assert "Deferred trigger failed" in (_end(trigger_wait(FailureTrigger())).error or "")


# --- what went wrong --------------------------------------------------------------------------------------------------------


class Patient(BaseSensorOperator):
    def execute(self, context: Any) -> Any:
        self.defer(trigger=SuccessTrigger(), method_name="go_on")

    def again(self, context: Any, event: Any) -> Any:
        self.execute(context)

    def go_on(self, context: Any, event: Any) -> Any:
        raise ValueError("odd") if event == "odd" else AirflowException("no such thing")


@pytest.mark.parametrize(
    ("resumption", "options", "outcome", "sentence"),
    [
        (Resumption("go_on", error=TIMEOUT), {}, Outcome.FAILED_FINAL, "AirflowSensorTimeout: The sensor waited"),
        (Resumption("go_on", error=TIMEOUT), {"soft_fail": True}, Outcome.SKIPPED, "soft_fail"),
        (Resumption("go_on", error="it broke"), {}, Outcome.FAILED, "it broke"),
        (Resumption("go_on", error="it broke"), {"soft_fail": True}, Outcome.SKIPPED, "it broke"),
        (Resumption("go_on"), {}, Outcome.FAILED, "no such thing"),
        (Resumption("go_on"), {"soft_fail": True}, Outcome.SKIPPED, "no such thing"),
        (Resumption("go_on", event=b'"odd"'), {"soft_fail": True}, Outcome.FAILED, "odd"),
        (Resumption("go_on", event=b'"odd"'), {"never_fail": True}, Outcome.SKIPPED, "odd"),
    ],
)
def test_a_continued_sensor_ends_like_one_that_pokes(
    resumption: Resumption, options: dict[str, Any], outcome: Outcome, sentence: str
) -> None:
    result = _run(Patient, resumption, timeout=5, **options)
    assert result.outcome is outcome
    assert sentence in (result.reason or "")


# --- limits of a try ----------------------------------------------------------------------------------------------------------


def test_execution_timeout_applies_to_all_attempts_of_a_try_and_limits_each_wait() -> None:
    with DAG("d", schedule=None):
        task = Patient(task_id="t")
    limit = 100_000_000
    first = carry_out(task, execution_timeout=limit).deferral
    assert first is not None
    assert first.timeout_at is not None
    assert 0 <= first.active < limit
    result = Resumption("again", active=60_000_000)
    second = carry_out(task, execution_timeout=limit, resumption=result).deferral
    assert second is not None
    assert second.timeout_at is not None
    assert second.active >= 60_000_000
    assert second.timeout_at - first.timeout_at < -50_000_000


def test_arguments_for_the_next_attempt_have_a_size_limit() -> None:
    class Heavy(BaseOperator):
        def execute(self, context: Any) -> Any:
            self.defer(trigger=SuccessTrigger(), method_name="execute", kwargs={"all": "x" * 70_000_000})

    assert "core.xcom_max_bytes" in (_run(Heavy).reason or "")


def test_a_task_can_start_from_its_trigger() -> None:
    class Begins(BaseOperator):
        start_from_trigger = True
        start_trigger_args = StartTriggerArgs(
            "tradewind.triggers.file.FileTrigger", "found", {"filepath": "/data/{{ ds }}"}, {"number": 1}, timedelta(hours=1)
        )

        def execute(self, context: Any) -> Any:
            raise AssertionError("never called")

        def found(self, context: Any, event: Any, number: int) -> Any:
            return [event, number]

    result = _run(Begins)
    assert result.deferral is not None
    assert isinstance(result.deferral.wait, TriggerWait)
    assert decode_xcom(result.deferral.wait.kwargs) == {"filepath": "/data/2024-03-05"}
    assert pushed(_run(Begins, _told(result.deferral, TriggerEnd(b"true"))))["return_value"] == [True, 1]


# --- other DAGs: the scheduler waits ----------------------------------------------------------------------------------------


def test_the_scheduler_waits_for_tasks_of_another_dag() -> None:
    trigger = WorkflowTrigger("other", logical_dates=[DATE], external_task_ids=["a"], failed_states=["failed"])
    wait = trigger_wait(trigger)
    assert isinstance(wait, TasksWait)
    assert (wait.dag_id, wait.task_ids, wait.allowed, wait.failed) == ("other", ("a",), ("success",), ("failed",))
    assert decode_xcom(wait.events["failed"]) == {"status": "failed"}
    classpath, kwargs = trigger.serialize()
    assert trigger_wait(make_trigger(TriggerWait(classpath, encode_xcom(kwargs)))) == wait
    runs = trigger_wait(DagStateTrigger("other", ["success", "failed"], run_ids=["r"]))
    assert isinstance(runs, TasksWait)
    assert (runs.run_ids, runs.allowed, runs.task_ids) == (("r",), ("success", "failed"), ())
    assert decode_xcom(runs.events["success"])[1]["run_ids"] == ["r"]


def test_a_wait_for_no_runs_is_an_error() -> None:
    for make in (lambda: WorkflowTrigger("other"), lambda: DagStateTrigger("other", ["success"])):
        with pytest.raises(AirflowException, match="give logical_dates or run_ids"):
            make()


# --- HTTP ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(world: World) -> Iterator[HttpServer]:
    with http_server() as found:
        world.connections["http_default"] = {"conn_type": "http", "host": found.url}
        yield found


def test_a_trigger_sends_the_request(server: HttpServer) -> None:
    result, waits = _to_its_end(
        HttpOperator,
        endpoint="/at/{{ ds }}",
        data={"a": "b"},
        deferrable=True,
        response_filter=lambda response: response.json(),
    )
    assert waits == 1
    found = pushed(result)["return_value"]
    assert (found["method"], found["path"], found["body"]) == ("POST", "/at/2024-03-05", "a=b")


def test_a_trigger_requests_every_page(server: HttpServer) -> None:
    def following(response: Any) -> Any:
        page = int(response.json()["query"].get("page", "0"))
        return {"data": {"page": str(page + 1)}} if page < 2 else None

    result, waits = _to_its_end(HttpOperator, endpoint="x", method="GET", pagination_function=following, deferrable=True)
    assert waits == 3
    assert [json.loads(text)["query"] for text in pushed(result)["return_value"]] == [{}, {"page": "1"}, {"page": "2"}]


def test_an_unreachable_server_fails_the_task(world: World) -> None:
    world.connections["http_default"] = {"conn_type": "http", "host": "127.0.0.1", "port": 1}
    result, _ = _to_its_end(HttpOperator, endpoint="x", deferrable=True)
    assert result.outcome is Outcome.FAILED
    assert "the request failed: POST http://127.0.0.1:1/x: ConnectError" in (result.reason or "")


def test_arguments_that_cannot_be_serialized_are_named(server: HttpServer) -> None:
    result = _run(HttpOperator, endpoint="x", deferrable=True, auth_type=lambda: None)
    assert "auth_type" in (result.reason or "")


def test_an_http_sensor_waits_in_a_trigger(server: HttpServer) -> None:
    server.statuses = [404, 404, 404]
    result, waits = _to_its_end(HttpSensor, endpoint="x", deferrable=True, poke_interval=0.01)
    assert (result.outcome, waits) == (Outcome.SUCCESS, 1)
    assert len(server.asked) == 4


def test_every_built_in_trigger_can_be_serialized() -> None:
    made: list[BaseTrigger] = [FileTrigger("/x"), FileDeleteTrigger("/x"), SuccessTrigger(), FailureTrigger()]
    for trigger in made:
        classpath, kwargs = trigger.serialize()
        again = make_trigger(TriggerWait(classpath, encode_xcom(kwargs)))
        assert again.serialize() == (classpath, kwargs)
