"""Filters of lists with unusual values: they have the effect that they have in Airflow, and none is a fault of the server."""

from __future__ import annotations

import pytest

from tests.unit.api import full_world
from tests.unit.api.conftest import World

CRON, ASSETS = "airflow.timetables.trigger.CronTriggerTimetable", "airflow.timetables.simple.AssetTriggeredTimetable"
RUN = "/api/v2/dags/sales/dagRuns/r1"


@pytest.fixture
def full(world: World) -> World:
    full_world.fill(world)
    return world


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (f"/dags?timetable_type={CRON}", ["sales"]),
        (f"/dags?timetable_type={ASSETS}", ["report"]),
        (f"/dags?timetable_type={ASSETS}&timetable_type={CRON}", ["report", "sales"]),
        ("/dags?timetable_type=none", []),
        ("/dags?dag_id_prefix_pattern=sa|rep", ["report", "sales"]),
        ("/dags?dag_id_prefix_pattern=sa|", ["sales"]),
        ("/dags?dag_display_name_prefix_pattern=~", ["report", "sales"]),
        ("/dags?dag_display_name_prefix_pattern=none|rep", ["report"]),
        ("/dags?bundle_name=", ["report", "sales"]),
        ("/dags?owners=", ["report", "sales"]),
    ],
)
def test_filters_of_dags(full: World, query: str, names: list[str]) -> None:
    assert [dag["dag_id"] for dag in full.get(f"/api/v2{query}").json()["dags"]] == names


@pytest.mark.parametrize(
    "query",
    [
        "/dagTags?tag_name_prefix_pattern=~",
        "/importErrors?filename=&bundle_name=",
        "/eventLogs?dag_id=&task_id=&run_id=&owner=&event=",
        "/jobs?job_state=&job_type=&hostname=&executor_class=",
        "/assets/events?source_dag_id=&source_task_id=&source_run_id=",
        "/dags/sales/dagVersions?bundle_name=&bundle_version=",
        "/dags/sales/dagRuns/r1/taskInstances?task_id=",
        "/dags/sales/dagRuns/r1/taskInstances?pool_name_pattern=",
        "/dags/sales/dagRuns/r1/taskInstances?pool_name_pattern=|&queue_name_prefix_pattern=|",
        "/dags/sales/dagRuns/r1/taskInstances?task_display_name_prefix_pattern=t|g|many|ask",
    ],
)
def test_an_empty_filter_is_no_filter(full: World, query: str) -> None:
    found = full.get(f"/api/v2{query}").json()
    assert found["total_entries"] > 0
    assert found == full.get(f"/api/v2{query.partition('?')[0]}").json()


def test_a_date_may_be_a_unix_time(full: World) -> None:
    now = full.clock.wall() // 1_000_000
    runs = "/api/v2/dags/~/dagRuns"
    assert full.get(f"{runs}?run_after_gte={now}.5").json()["total_entries"] == 0
    assert full.get(f"{runs}?run_after_gte={now - 3600}").json()["total_entries"] == 2
    assert full.get(f"{runs}?run_after_gte=17").status_code == 422


@pytest.mark.parametrize("field", ["ui_color", "-ui_fgcolor"])
def test_orders_of_tasks(full: World, field: str) -> None:
    assert full.get(f"/api/v2/dags/sales/tasks?order_by={field}").status_code == 200


@pytest.mark.parametrize("path", ["/dags/sales/tasks", f"{RUN[7:]}/taskInstances/t0/tries", f"{RUN[7:]}", "/version"])
def test_a_route_without_pages_ignores_their_parameters(full: World, path: str) -> None:
    answer = full.get(f"/api/v2{path}?limit=100&offset=0")
    assert answer.status_code == 200
    assert answer.json() == full.get(f"/api/v2{path}").json()
    assert full.get(f"/api/v2{path}?colour=red").status_code == 400
