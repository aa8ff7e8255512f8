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
def shop(house: Standalone) -> None:
    house.write_dag("shop.py", SOURCE)
    for dag_id in ("load_orders", "report", "audit", "archive"):
        house.wait_dag(dag_id)
    house.cli("dags", "unpause", "load_orders", "report", "audit", "archive")


def runs(house: Standalone, dag_id: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = house.json("dags", "list-runs", dag_id)
    return found


def test_a_success_and_an_external_event_start_the_report(house: Standalone) -> None:
    run_id = house.trigger("load_orders")
    assert house.wait_run("load_orders", run_id) == "success"
    (audit,) = house.succeeded_runs("audit", 1)
    assert house.return_value("audit", audit, "look") == [1]
    assert runs(house, "report") == []
    assert "1 of 2 assets updated; missing: prices" in house.cli("assets", "queued", "report")
    house.cli("assets", "create-event", "--name", "prices", "--extra", '{"rows": 30}')
    (report,) = house.succeeded_runs("report", 1)
    assert report.startswith("asset_triggered__")
    assert house.return_value("report", report, "write") == [{"orders": 120, "prices": 30}, None, "loaded"]
    assert "s3://shop/orders" in house.cli("tasks", "logs", "report", "shell")
    (archive,) = house.succeeded_runs("archive", 1)
    assert house.return_value("archive", archive, "archive") == ["report", "asset_triggered_"]
    began = {event["name"]: event["began"] for event in house.json("assets", "events")}
    assert began["orders"] == began["prices"] == [f"report {report}"]


def test_queued_asset_events_survive_a_restart_of_the_scheduler(house: Standalone) -> None:
    house.cli("assets", "create-event", "--name", "prices")
    house.stop()
    assert "1 of 2 assets updated; missing: orders" in house.cli("assets", "queued", "report")
    house.cli("assets", "create-event", "--uri", "s3://shop/orders")
    house.start()
    house.succeeded_runs("report", 2)


def test_materialize_runs_the_producer(house: Standalone) -> None:
    before = len(runs(house, "load_orders"))
    made = house.json("assets", "materialize", "--name", "orders")
    assert house.wait_run("load_orders", made["run_id"]) == "success"
    assert len(house.succeeded_runs("audit", before + 1)) == before + 1
    kinds = {row["run_id"]: row["run_type"] for row in runs(house, "load_orders")}
    assert kinds[made["run_id"]] == "asset_materialization"
