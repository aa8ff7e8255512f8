"""Waiting for other DAGs with the real command line and processes: no process waits, and all waits end at once."""

from __future__ import annotations

from tests.acceptance.harness import Standalone

DATE = 1_767_225_600_000_000
"""2026-01-01, the logical date of every run here."""

DAG_FILE = """
from datetime import datetime, timedelta

from tradewind import DAG
from tradewind.operators.cross_dag import CrossDagDepPythonOperator
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.python import PythonOperator
from tradewind.operators.trigger_dagrun import TriggerDagRunOperator
from tradewind.sensors.external_task import ExternalTaskMarker, ExternalTaskSensor
from tradewind.sensors.time_delta import WaitSensor

GIVEN = {"schedule": None, "start_date": datetime(2026, 1, 1), "is_paused_upon_creation": False}

with DAG("load", **GIVEN):
    load = PythonOperator(task_id="load", python_callable=lambda: None)
    load >> ExternalTaskMarker(task_id="mark", external_dag_id="report", external_task_id="plain")

with DAG("report", **GIVEN):
    # nothing but the definition; a template, so one look is needed; a function behind two conditions
    plain = ExternalTaskSensor(task_id="plain", external_dag_id="load", external_task_id="mark")
    looks = ExternalTaskSensor(task_id="looks", external_dag_id="{{ 'load' }}", mode="poke", poke_interval=600)
    both = CrossDagDepPythonOperator(
        task_id="both",
        python_callable=lambda: "all in",
        dag_dep_conditions=[("load", "load"), ("load", None, None, ["success", "failed"])],
    )
    [plain, looks, both] >> EmptyOperator(task_id="done")

with DAG("lost", **GIVEN):
    ExternalTaskSensor(task_id="wait", external_dag_id="laod")

with DAG("night", **GIVEN):
    TriggerDagRunOperator(task_id="order", trigger_dag_id="short", wait_for_completion=True, deferrable=True)

with DAG("short", **GIVEN):
    WaitSensor(task_id="breath", time_to_wait=timedelta(milliseconds=300))
"""


def test_no_process_waits_and_everything_wakes_at_once(fresh: Standalone) -> None:
    fresh.write_dag("dags.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("report")
    report = fresh.trigger("report", logical_date=DATE)
    for task_id in ("plain", "looks", "both"):
        fresh.wait_task("report", report, task_id, ("deferred",))
    waiting = {row["task_id"]: row for row in fresh.json("waits", "list", "report")}
    assert waiting["plain"]["waits_for"].startswith("'mark' of DAG 'load' to be success")
    assert "has no run of 2026-01-01T00:00:00Z" in waiting["plain"]["impossible"][0]["sentence"]
    assert "It waits without a process until 'mark' of DAG 'load' is success" in fresh.cli("why", "report", "plain", report)

    load = fresh.trigger("load", logical_date=DATE)
    assert fresh.wait_run("report", report) == "success"
    with fresh.store() as store:
        assert store.task_instance("report", report, "plain").try_number == 1
    logs = [path.name for path in (fresh.home / "logs" / "report").rglob("*")]
    assert any("looks" in name for name in logs)
    assert not any("plain" in name for name in logs), "no process was ever started for it"

    fresh.cli("tasks", "clear", "load", "--run-id", load, "-t", "^load$", "--downstream", "-y")
    fresh.wait_run("load", load, ("success",))
    assert fresh.wait_run("report", report, ("success",)) == "success"
    with fresh.store() as store:
        assert store.task_instance("report", report, "plain").try_number == 2, "the marker cleared it"


def test_waiting_for_a_triggered_run_survives_a_restart(fresh: Standalone) -> None:
    fresh.write_dag("dags.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("night")
    fresh.cli("dags", "pause", "short")
    night = fresh.trigger("night")
    fresh.wait_task("night", night, "order", ("deferred",))
    assert fresh.stop() == 0
    fresh.start()
    fresh.wait(lambda: fresh.json("waits", "list", "night") or None, "the wait after the restart")
    fresh.cli("dags", "unpause", "short")
    assert fresh.wait_run("night", night) == "success"


def test_waits_that_can_never_end_are_shown(fresh: Standalone) -> None:
    fresh.write_dag("dags.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("lost")
    run = fresh.trigger("lost", logical_date=DATE)
    fresh.wait_task("lost", run, "wait", ("deferred",))
    (found,) = fresh.json("waits", "list", "--impossible")
    assert found["impossible"][0]["sentence"] == "There is no DAG 'laod'. Did you mean 'load'?"
