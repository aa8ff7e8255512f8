"""Rows of what Airflow records beside runs, for queries of user code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.store.suite.build import NOW, with_dag, with_run
from tradewind.model.moments import SECOND
from tradewind.model.rows import DeadlineMiss, NewJob
from tradewind.scheduler.attempts.record_rows import RECORDS
from tradewind.scheduler.attempts.task_requests import answer
from tradewind.store.memory import MemoryStore
from tradewind.testing.inline_runtime import PlainCipher
from tradewind.wire.messages import ListRows, Value


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    with_dag(store)
    with_run(store, day=5)
    return store


def rows(store: MemoryStore, table: str, **where: Any) -> list[dict[str, Any]]:
    found = answer(store, PlainCipher(), ListRows(0, table, **where), (1, 0, 1), NOW)
    assert isinstance(found, Value)
    return list(found.value)


@pytest.mark.parametrize("table", sorted(RECORDS))
def test_each_table_of_an_empty_database_has_no_rows(table: str) -> None:
    assert rows(MemoryStore(), table) == []
    assert rows(MemoryStore(), table, dag_id="nothing", run_ids=("r",)) == []


def test_services_and_the_audit_log(store: MemoryStore) -> None:
    store.begin_job(NewJob("s", "SchedulerJob", "h", "u", 7, None), NOW)
    (job,) = rows(store, "job")
    assert (job["job_type"], job["state"], job["latest_heartbeat"]) == ("SchedulerJob", "running", NOW)
    store.set_paused("d", True, "ada", NOW)
    latest = rows(store, "log", dag_id="d")[0]
    assert (latest["dag_id"], latest["owner"], latest["dttm"]) == ("d", "ada", NOW)
    assert rows(store, "log", dag_id="other") == []


def test_versions_of_one_dag_and_of_all(store: MemoryStore) -> None:
    (version,) = rows(store, "dag_version", dag_id="d")
    assert (version["dag_id"], version["version_number"]) == ("d", 1)
    assert rows(store, "dag_version") == [version]


def test_missed_deadlines_of_tasks(store: MemoryStore) -> None:
    store.record_deadline_miss(DeadlineMiss(1, "d", "r1", "t0", "sla/60", None, NOW, NOW + SECOND))
    store.record_deadline_miss(DeadlineMiss(1, "d", "r1", None, "alert/0", None, NOW, NOW + SECOND))
    (miss,) = rows(store, "sla_miss", dag_id="d")
    assert (miss["task_id"], miss["timestamp"]) == ("t0", NOW + SECOND)
    run = store.find_run("d", "r1")
    assert run is not None
    assert miss["execution_date"] == run.logical_date
    assert rows(store, "sla_miss", dag_id="other") == []
