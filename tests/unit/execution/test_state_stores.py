"""State stores as a task uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out
from tradewind.airflow.compat.resumable_job import ResumableJobMixin
from tradewind.execution.state_stores import NEVER_EXPIRE, AssetStateStores, TaskStateStore
from tradewind.model.moments import to_micros
from tradewind.model.states import Outcome
from tradewind.operators.python import PythonOperator
from tradewind.sdk.assets import Asset, AssetAlias
from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator

ORDERS, STOCK = Asset("orders", uri="s3://lake/orders"), Asset("stock", uri="s3://lake/stock")


def run(function: Callable[..., Any], **arguments: Any) -> Any:
    with DAG("d", schedule=None):
        task = PythonOperator(task_id="t", python_callable=function, **arguments)
    return carry_out(task)


def test_a_task_keeps_values_for_its_next_try(world: World) -> None:
    def work(task_state_store: TaskStateStore) -> Any:
        page = task_state_store.get("page", default=0)
        task_state_store.set("page", page + 1)
        task_state_store.set("plan", {"rows": [1, None, "ä"]})
        return task_state_store.get("plan")

    for number in (1, 2, 3):
        assert run(work).outcome is Outcome.SUCCESS
        assert world.kept["", "", "page"][0] == str(number)
    store = TaskStateStore()
    store.delete("page")
    assert (store.get("page"), store.get("page", "none")) == (None, "none")
    store.clear()
    assert world.kept == {}


def test_when_a_value_expires(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = TaskStateStore(), to_micros(datetime.now(UTC))

    def days(**more: Any) -> int | None:
        store.set("k", 1, **more)
        expires_at = world.kept["", "", "k"][1]
        return None if expires_at is None else round((expires_at - now) / 86_400e6)

    assert days() == 30
    assert days(retention=timedelta(days=2)) == 2
    assert days(retention=NEVER_EXPIRE) is None
    monkeypatch.setenv("AIRFLOW__STATE_STORE__DEFAULT_RETENTION_DAYS", "7")
    assert days() == 7
    monkeypatch.setenv("AIRFLOW__STATE_STORE__DEFAULT_RETENTION_DAYS", "0")
    assert days() is None
    with pytest.raises(TypeError, match="retention is 7; it must be a timedelta"):
        store.set("k", 1, retention=7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "sentence"), [(None, "cannot keep None"), ({1, 2}, "no JSON value"), (float("nan"), "no JSON")]
)
def test_values_that_cannot_be_kept(world: World, value: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        TaskStateStore().set("k", value)
    assert world.kept == {}


def test_coroutines_of_a_task_keep_values_at_the_same_time(world: World) -> None:
    async def work(task_state_store: TaskStateStore) -> Any:
        await asyncio.gather(*(task_state_store.aset(f"k{number}", number) for number in range(5)))
        await task_state_store.adelete("k0")
        found = [await task_state_store.aget(f"k{number}", "gone") for number in range(5)]
        await task_state_store.aclear()
        return found

    store = TaskStateStore()
    assert asyncio.run(work(store)) == ["gone", 1, 2, 3, 4]
    assert world.kept == {}


def test_values_of_the_assets_of_a_task(world: World) -> None:
    def work(asset_state_store: AssetStateStores) -> None:
        asset_state_store[ORDERS].set("seen", 7)
        asset_state_store[STOCK].set("seen", asset_state_store[ORDERS].get("seen") + 1)

    assert run(work, inlets=[STOCK], outlets=[ORDERS, AssetAlias("any")]).outcome is Outcome.SUCCESS
    assert world.kept == {("orders", ORDERS.uri, "seen"): ("7", None), ("stock", STOCK.uri, "seen"): ("8", None)}


def test_a_task_with_one_asset_need_not_name_it(world: World) -> None:
    stores = AssetStateStores([ORDERS], [ORDERS])
    stores.set("seen", 7)
    assert stores.get("seen") == 7
    with pytest.raises(KeyError, match="'stocks' is no inlet or outlet of this task"):
        stores[Asset("stocks")]
    with pytest.raises(ValueError, match=r"2 assets: write asset_state_store\[asset\]\.get"):
        AssetStateStores([ORDERS], [STOCK]).get("seen")
    with pytest.raises(KeyError, match="no asset among its inlets and outlets"):
        AssetStateStores([], []).get("seen")
    with pytest.raises(AttributeError):
        stores.sett("seen", 1)


@pytest.mark.parametrize(("clears", "kept"), [("true", 0), ("false", 1)])
def test_success_clears_the_store_if_it_is_configured(
    world: World, monkeypatch: pytest.MonkeyPatch, clears: str, kept: int
) -> None:
    monkeypatch.setenv("AIRFLOW__STATE_STORE__CLEAR_ON_SUCCESS", clears)
    world.kept["orders", ORDERS.uri, "seen"] = "1", None
    assert run(lambda task_state_store: task_state_store.set("k", 1)).outcome is Outcome.SUCCESS
    assert len(world.kept) == 1 + kept

    def fails(task_state_store: TaskStateStore) -> None:
        task_state_store.set("k", 1)
        raise ValueError("away")

    assert run(fails).outcome is Outcome.FAILED
    assert len(world.kept) == 2, "the next try needs it"


class Job(ResumableJobMixin, BaseOperator):
    """Submits a job and loses its worker, once."""

    submitted: list[str] = []

    def execute(self, context: Any) -> Any:
        return self.execute_resumable(context)

    def submit_job(self, context: Any) -> str:
        self.submitted.append(f"job {len(self.submitted) + 1}")
        return self.submitted[-1]

    def get_job_status(self, external_id: Any, context: Any) -> str:
        return "RUNNING"

    def is_job_active(self, status: str) -> bool:
        return status == "RUNNING"

    def is_job_succeeded(self, status: str) -> bool:
        return status == "DONE"

    def poll_until_complete(self, external_id: Any, context: Any) -> None:
        if context["ti"].try_number == 1:
            raise ConnectionError("the worker was lost")

    def get_job_result(self, external_id: Any, context: Any) -> Any:
        return external_id


def test_a_resumable_job_is_found_again_by_the_next_try(world: World) -> None:
    Job.submitted.clear()
    with DAG("d", schedule=None):
        task = Job(task_id="t", retries=1)
    assert carry_out(task, try_number=1).outcome is Outcome.FAILED
    assert carry_out(task, try_number=2).outcome is Outcome.SUCCESS
    assert Job.submitted == ["job 1"]
