"""Assets with the real command line and processes: producers, consumers, aliases, external events, materialize."""

from __future__ import annotations

import pytest

from tests.acceptance.harness import Standalone

SOURCE = """
from tradewind import DAG, Asset, AssetAlias, Metadata, asset, task
from tradewind.operators.bash import BashOperator

orders, prices = Asset("orders", uri="s3://shop/orders"), Asset("prices", uri="s3://shop/prices")
files = AssetAlias("files")

with DAG("load_orders", schedule=None):
    @task(outlets=[orders, files])
    def load(outlet_events):
        yield Metadata(orders, extra={"rows": 120})
        outlet_events[files].add(Asset("part-1", uri="file:///part/1"), extra={"part": 1})
        return "loaded"

    load()

with DAG("report", schedule=orders & prices):
    @task
    def write(triggering_asset_events, dag_run):
        found = {one.name: events[-1].extra.get("rows") for one, events in triggering_asset_events.items()}
        source = triggering_asset_events[orders][0].source_task_instance
        return [found, dag_run.logical_date, source.xcom_pull() if source else None]

    write() >> BashOperator(
        task_id="shell",
        bash_command="echo {{ (triggering_asset_events.values() | first | first).uri }}",
        outlets=[Asset("report")],
    )

with DAG("audit", schedule=files):
    @task(inlets=[files])
    def look(inlet_events):
        return [event.extra["part"] for event in inlet_events[files]]

    look()

@asset(schedule=Asset.ref(name="report"))
def archive(report, context):
    return [report.uri, context["run_id"][:16]]
"""


@pytest.fixture(scope="module", autouse=True)
def shop(standalone: Standalone) -> None:
    standalone.write_dag("shop.py", SOURCE)
    for dag_id in ("load_orders", "report", "audit", "archive"):
        standalone.wait_dag(dag_id)
    standalone.cli("dags", "unpause", "load_orders", "report", "audit", "archive")


def runs(standalone: Standalone, dag_id: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = standalone.json("dags", "list-runs", dag_id)
    return found


def test_a_success_and_an_external_event_start_the_report(standalone: Standalone) -> None:
    run_id = standalone.trigger("load_orders")
    assert standalone.wait_run("load_orders", run_id) == "success"
    (audit,) = standalone.succeeded_runs("audit", 1)
    assert standalone.return_value("audit", audit, "look") == [1]
    assert runs(standalone, "report") == []
    assert "1 of 2 assets updated; missing: prices" in standalone.cli("assets", "queued", "report")
    standalone.cli("assets", "create-event", "--name", "prices", "--extra", '{"rows": 30}')
    (report,) = standalone.succeeded_runs("report", 1)
    assert report.startswith("asset_triggered__")
    assert standalone.return_value("report", report, "write") == [{"orders": 120, "prices": 30}, None, "loaded"]
    assert "s3://shop/orders" in standalone.cli("tasks", "logs", "report", "shell")
    (archive,) = standalone.succeeded_runs("archive", 1)
    assert standalone.return_value("archive", archive, "archive") == ["report", "asset_triggered_"]
    began = {event["name"]: event["began"] for event in standalone.json("assets", "events")}
    assert began["orders"] == began["prices"] == [f"report {report}"]


def test_queued_asset_events_survive_a_restart_of_the_scheduler(standalone: Standalone) -> None:
    standalone.cli("assets", "create-event", "--name", "prices")
    standalone.stop()
    assert "1 of 2 assets updated; missing: orders" in standalone.cli("assets", "queued", "report")
    standalone.cli("assets", "create-event", "--uri", "s3://shop/orders")
    standalone.start()
    standalone.succeeded_runs("report", 2)


def test_materialize_runs_the_producer(standalone: Standalone) -> None:
    before = len(runs(standalone, "load_orders"))
    made = standalone.json("assets", "materialize", "--name", "orders")
    assert standalone.wait_run("load_orders", made["run_id"]) == "success"
    assert len(standalone.succeeded_runs("audit", before + 1)) == before + 1
    kinds = {row["run_id"]: row["run_type"] for row in runs(standalone, "load_orders")}
    assert kinds[made["run_id"]] == "asset_materialization"
