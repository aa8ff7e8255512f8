"""Tests of provider packages put a stand-in for Airflow's supervisor where it answers requests of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from tradewind.airflow.compat.supervisor_comms import SupervisorRuntime
from tradewind.sdk.exceptions import AirflowNotFoundException
from tradewind.sdk.variables import Connection, Variable
from tradewind.wire import runtime
from tradewind.wire.messages import FindRuns

from airflow.models.xcom import XCom  # isort: skip
from airflow.sdk.exceptions import ErrorType  # isort: skip
from airflow.sdk.execution_time import comms, task_runner  # isort: skip


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    made: mock.Mock = mock.create_autospec(comms.CommsDecoder)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", made, raising=False)
    return made


@pytest.fixture
def without_stand_in() -> Iterator[None]:
    yield
    assert not runtime.is_installed(), "the stand-in still answers after the test that set it"


def test_a_connection_comes_from_the_stand_in(without_stand_in: None, supervisor: mock.Mock) -> None:
    supervisor.send.return_value = comms.ConnectionResult(
        conn_id="c", conn_type="aws", host="h", schema="s", port=5, extra="{}"
    )
    found = Connection.get("c")
    assert (found.conn_type, found.host, found.schema, found.port, found.login) == ("aws", "h", "s", 5, None)
    assert supervisor.send.call_args.args[0] == comms.GetConnection(conn_id="c")


def test_an_error_response_means_that_the_connection_is_missing(supervisor: mock.Mock) -> None:
    supervisor.send.return_value = comms.ErrorResponse(error=ErrorType.CONNECTION_NOT_FOUND)
    with pytest.raises(AirflowNotFoundException, match="no connection 'c'"):
        Connection.get("c")


def test_an_answer_that_a_test_did_not_set_is_no_value(supervisor: mock.Mock) -> None:
    assert Variable.get("v", default="mine") == "mine"
    assert XCom.get_one(key="k", dag_id="d", run_id="r", task_id="t") is None


def test_variables_are_read_and_stored_through_the_stand_in(supervisor: mock.Mock) -> None:
    supervisor.send.return_value = comms.VariableResult(key="v", value="text")
    assert Variable.get("v") == "text"
    supervisor.send.return_value = comms.OKResponse(ok=True)
    Variable.set("v", "new")
    assert supervisor.send.call_args.args[0] == comms.PutVariable(key="v", value="new")


def test_an_xcom_comes_from_the_stand_in(supervisor: mock.Mock) -> None:
    supervisor.send.return_value = comms.XComResult(key="k", value={"a": [1]})
    key: Any = mock.Mock(dag_id="d", task_id="t", run_id="r", map_index=-1)
    assert XCom.get_value(key="k", ti_key=key) == {"a": [1]}
    asked = supervisor.send.call_args.args[0]
    assert (asked.key, asked.dag_id, asked.task_id, asked.run_id) == ("k", "d", "t", "r")


def test_other_questions_go_to_what_answered_before() -> None:
    behind: Any = mock.Mock()
    made = SupervisorRuntime(mock.Mock(), behind)
    assert made.ask(FindRuns(0, "d")) is behind.ask.return_value
    assert made.read_spill("file") is behind.read_spill.return_value


def test_a_process_of_a_scheduler_keeps_its_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = mock.Mock(spec=["ask", "read_spill"])
    with runtime.installed(real):
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", mock.Mock(), raising=False)
        assert runtime.current() is real
        monkeypatch.undo()
        assert runtime.current() is real
