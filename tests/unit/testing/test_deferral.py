"""Tasks that wait without a process, in tests: triggers run here, or the test says what they fire."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tradewind import DAG, BaseHook
from tradewind.sdk.operator import BaseOperator
from tradewind.testing import fake_connections, log_of, run_dag, run_task, state_of, xcom_of
from tradewind.triggers.base import BaseTrigger, TaskSkippedEvent, TriggerEvent


class Looks(BaseTrigger):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.Looks", {"path": self.path}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        host = (await asyncio.to_thread(BaseHook.get_connection, "store")).host
        self.log.info("looking beside %s", host)
        if not os.path.exists(self.path):
            await asyncio.Event().wait()
        yield TriggerEvent(self.path)


class Waits(BaseOperator):
    def __init__(self, path: str, most: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.path = path
        self.most = most

    def execute(self, context: Any) -> None:
        context["ti"].xcom_push("before", 1)
        self.defer(trigger=Looks(self.path), method_name="go_on", kwargs={"number": 7}, timeout=self.most)

    def go_on(self, context: Any, event: Any, number: int) -> Any:
        return [event, number, context["ti"].xcom_pull(self.task_id, key="before")]


@pytest.fixture(autouse=True)
def connection() -> Any:
    with fake_connections({"store": "http://far.example"}):
        yield


def test_a_dag_runs_its_triggers_here_with_its_connections(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    with DAG("d", schedule=None) as dag:
        Waits(task_id="t", path=str(tmp_path / "here"))
    run = run_dag(dag)
    assert xcom_of(run, "t") == [str(tmp_path / "here"), 7, 1]
    first, second = run.attempts
    assert first.waits is not None
    assert (first.waits.trigger, first.waits.trigger_kwargs) == (f"{__name__}.Looks", {"path": str(tmp_path / "here")})
    assert (first.waits.method, first.waits.kwargs, second.waits) == ("go_on", {"number": 7}, None)


def test_a_trigger_is_not_waited_for_longer_than_its_task_may() -> None:
    with DAG("d", schedule=None) as dag:
        Waits(task_id="t", path="/never/there", most=0.05)
    assert "TaskDeferralTimeout" in log_of(run_dag(dag), "t")


def test_one_task_hears_what_the_test_says() -> None:
    def run(event: Any) -> Any:
        return run_task(Waits(task_id="t", path="/never/there"), event=event)

    assert xcom_of(run({"a": 1}), "t") == [{"a": 1}, 7, 1]
    assert xcom_of(run(TriggerEvent("x")), "t") == ["x", 7, 1]
    assert state_of(run(TaskSkippedEvent()), "t") == "skipped"
    assert "the server is gone" in log_of(run(RuntimeError("the server is gone")), "t")
    assert "TaskDeferralTimeout" in log_of(run(TimeoutError()), "t")


def test_one_task_runs_its_trigger(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    assert state_of(run_task(Waits(task_id="t", path=str(tmp_path / "here"))), "t") == "success"
