"""XCom backends: what is stored, what is read, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, workload
from tradewind.airflow.compat.xcom import BaseXCom, resolve_xcom_backend
from tradewind.execution import xcom_backend
from tradewind.execution.task_instance import TaskInstance
from tradewind.execution.xcom_codec import decode_xcom
from tradewind.model.states import Outcome
from tradewind.operators.python import PythonOperator
from tradewind.sdk.dag import DAG

ELSEWHERE: dict[str, Any] = {}


class Elsewhere(BaseXCom):
    """Keeps values in a mapping, as a backend with an object store does."""

    @staticmethod
    def serialize_value(value: Any, key: str = "", task_id: str = "", run_id: str = "", **_more: Any) -> Any:
        if value == "refused":
            raise ValueError("the store is full")
        ELSEWHERE[f"{run_id}/{task_id}/{key}"] = value
        return BaseXCom.serialize_value(f"{run_id}/{task_id}/{key}")

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        return ELSEWHERE[BaseXCom.deserialize_value(result)]


class Plain(BaseXCom):
    """Accepts only the value."""

    @staticmethod
    def serialize_value(value: Any) -> Any:  # type: ignore[override]
        return json.dumps([value])

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        return json.loads(result.value)[0]


@pytest.fixture(autouse=True)
def configure(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the backend by the name of its class."""
    ELSEWHERE.clear()
    return lambda name: monkeypatch.setenv("AIRFLOW__CORE__XCOM_BACKEND", name and f"{__name__}.{name}")


def run(value: Any) -> Any:
    with DAG("d", schedule=None):
        task = PythonOperator(task_id="t", python_callable=lambda: value)
    return carry_out(task)


@pytest.mark.parametrize("name", ["Elsewhere", "Plain"])
def test_a_value_goes_through_the_backend(world: World, configure: Callable[[str], None], name: str) -> None:
    configure(name)
    (pushed,) = run({"n": [1, 2]}).pushed
    stored = decode_xcom(pushed.value)
    assert stored[xcom_backend.TAG] == f"{__name__}.{name}"
    assert (ELSEWHERE == {"r1/t/return_value": {"n": [1, 2]}}) is (name == "Elsewhere")
    with DAG("d", schedule=None):
        reader = PythonOperator(task_id="reader", python_callable=print)
    world.xcoms["t", "return_value", -1] = stored
    assert TaskInstance(reader, workload("reader")).xcom_pull("t") == {"n": [1, 2]}
    assert resolve_xcom_backend().__name__ == name


def test_values_of_before_can_still_be_read(world: World, configure: Callable[[str], None]) -> None:
    configure("Elsewhere")
    assert xcom_backend.decode(b'{"a": 1}') == {"a": 1}
    assert xcom_backend.decode(b'{"__xcom_backend": "x", "value": 1, "more": 2}')["more"] == 2, "a value of the author"


def test_an_error_of_the_backend_fails_the_task(world: World, configure: Callable[[str], None]) -> None:
    configure("Elsewhere")
    result = run("refused")
    assert (result.outcome, result.reason) == (Outcome.FAILED, "ValueError: the store is full")


@pytest.mark.parametrize(("name", "says"), [("Nothing", "cannot be imported"), ("Callable", "must have the functions")])
def test_a_wrong_setting_fails_the_task(world: World, configure: Callable[[str], None], name: str, says: str) -> None:
    configure(name)
    assert says in (run(1).reason or "")


def test_without_the_backend_its_values_are_an_error(world: World, configure: Callable[[str], None]) -> None:
    configure("")
    with pytest.raises(Exception, match=r"was written by the backend ours\.Backend; set core\.xcom_backend"):
        xcom_backend.decode(b'{"__xcom_backend":"ours.Backend","value":"x"}')
