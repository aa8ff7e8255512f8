"""Metrics of a real run arrive at a StatsD server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tests.otel_collector import started_collector
from tests.statsd_server import StatsdServer

DAG_FILE = """
from airflow.sdk import DAG, Asset, task
from airflow.stats import Stats

with DAG("measured", schedule=None, is_paused_upon_creation=False):

    @task(outlets=[Asset("orders")])
    def load(): ...

    @task
    def good():
        Stats.incr("orders", 3, tags={"shop": "north"})
        with Stats.timer("import.duration"):
            pass

    @task
    def bad():
        raise ValueError("no")

    load()
    good()
    bad()
"""


@pytest.mark.spec("S372", "S471", "S503")
def test_metrics_of_a_run_arrive_at_a_statsd_server(tmp_path: Path) -> None:
    """The settings and the names are those of Airflow, so its dashboards go on working."""
    with StatsdServer() as server:
        standalone = Standalone(
            tmp_path / "home",
            environment={
                "AIRFLOW__METRICS__STATSD_ON": "True",
                "AIRFLOW__METRICS__STATSD_PORT": str(server.port),
                "AIRFLOW__METRICS__STATSD_PREFIX": "flows",
                "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
            },
        )
        standalone.write_dag("measured.py", DAG_FILE)
        with standalone.started():
            standalone.wait_dag("measured")
            run = standalone.trigger("measured")
            assert standalone.wait_run("measured", run) == "failed"
            server.wait_for(
                "flows.ti.start.measured.good:1|c",
                "flows.ti.start,dag_id=measured,task_id=good:1|c",
                "flows.ti.finish.measured.good.success:1|c",
                "flows.ti.finish.measured.bad.failed:1|c",
                "flows.ti_failures,dag_id=measured,task_id=bad:1|c",
                "flows.dag.measured.good.duration:",
                "flows.dagrun.duration.failed.measured,run_type=manual:",
                "flows.orders,shop=north:3|c",
                "flows.import.duration:",
                "flows.scheduler_heartbeat:1|c",
                "flows.pool.open_slots.default_pool:128|g",
                "flows.dag_processor_heartbeat:1|c",
                "flows.dag_processing.processes,file_path=measured.py,action=start:1|c",
                "flows.dag_processing.processes,file_path=measured.py,action=stop:-1|c",
                "flows.dag_processing.last_duration.dags-folder.measured:",
                "flows.dagbag_size:1|g",
                "flows.job_start:1|c",
                "flows.asset.updates:1|c",
            )
            standalone.call("create_asset_event", name="orders")
            server.wait(lambda lines: lines.count("flows.asset.updates:1|c") == 2, "the update by a person")


def test_metrics_are_off_by_default(tmp_path: Path) -> None:
    with StatsdServer() as server:
        environment = {"AIRFLOW__METRICS__STATSD_PORT": str(server.port)}
        standalone = Standalone(tmp_path / "home", environment=environment)
        standalone.write_dag("measured.py", DAG_FILE)
        with standalone.started():
            standalone.wait_dag("measured")
            standalone.wait_run("measured", standalone.trigger("measured"))
        assert server.lines == []


def test_metrics_of_a_run_arrive_at_a_collector_of_opentelemetry(tmp_path: Path) -> None:
    with started_collector() as collector:
        standalone = Standalone(
            tmp_path / "home",
            environment={
                "AIRFLOW__METRICS__OTEL_ON": "True",
                "AIRFLOW__METRICS__OTEL_HOST": "127.0.0.1",
                "AIRFLOW__METRICS__OTEL_PORT": str(collector.server_port),
                "AIRFLOW__METRICS__OTEL_INTERVAL_MILLISECONDS": "500",
            },
        )
        standalone.write_dag("measured.py", DAG_FILE)
        with standalone.started():
            standalone.wait_dag("measured")
            assert standalone.wait_run("measured", standalone.trigger("measured")) == "failed"
            wanted = {
                "airflow.ti.start",
                "airflow.ti.finish.measured.bad.failed",
                "airflow.task.duration",
                "airflow.pool.open_slots",
                "airflow.dag_processing.last_duration",
                "airflow.orders",
            }
            standalone.wait(lambda: wanted <= collector.metrics().keys(), f"the export of {wanted}")
        (orders,) = collector.metrics()["airflow.orders"].sum.data_points
        assert {one.key: one.value.string_value for one in orders.attributes} == {"shop": "north"}
