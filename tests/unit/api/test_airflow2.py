"""`/api/v1`, as clients of Airflow 2 use it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.api.conftest import PASSWORD, World
from tradewind.api.airflow2 import FORMS, find, replacement
from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule, NoSchedule, Schedule

BASIC = {"Authorization": "Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()).decode()}


def v1(world: World, method: str, path: str, **more: Any) -> Any:
    return world.bare(method, f"/api/v1/{path}", headers=BASIC, **more)


def test_runs_have_an_execution_date(world: World) -> None:
    world.dag()
    world.run(logical_date=world.clock.wall())
    (run,) = v1(world, "GET", "dags/sales/dagRuns").json()["dag_runs"]
    assert run["execution_date"] == run["logical_date"] == "2026-01-01T00:00:00Z"
    assert run["external_trigger"] is True
    found = v1(world, "GET", "dags/sales/dagRuns?execution_date_gte=2026-01-02T00:00:00Z").json()
    assert {name: found[name] for name in ("dag_runs", "total_entries")} == {"dag_runs": [], "total_entries": 0}


def test_a_run_is_triggered_without_a_date_and_marked(world: World) -> None:
    world.dag()
    made = v1(world, "POST", "dags/sales/dagRuns", json={"conf": {"a": 1}, "dag_run_id": "mine"})
    assert made.status_code == 200, made.text
    assert made.json()["execution_date"] == "2026-01-01T00:00:00Z"
    dated = v1(world, "POST", "dags/sales/dagRuns", json={"execution_date": "2020-05-05T00:00:00Z"})
    assert dated.json()["logical_date"] == "2020-05-05T00:00:00Z"
    assert dated.json()["dag_run_id"] == "manual__2020-05-05T00:00:00+00:00", "as in Airflow 2"
    assert v1(world, "PATCH", "dags/sales/dagRuns/mine/setNote", json={"note": "x"}).json()["note"] == "x"
    assert v1(world, "PATCH", "dags/sales/dagRuns/mine", json={"state": "failed"}).status_code == 200


def test_dags_have_the_fields_of_airflow_2(world: World) -> None:
    world.dag()
    (dag,) = v1(world, "GET", "dags?only_active=true&tags=money").json()["dags"]
    assert dag["is_active"] is True
    assert dag["root_dag_id"] is None
    assert dag["tags"] == [{"name": "money"}]


@pytest.mark.parametrize(
    ("schedule", "written", "shown"),
    [
        (CronSchedule(("0 0 * * *",)), "@daily", {"__type": "CronExpression", "value": "@daily"}),
        (CronSchedule(("0 6 * * *",)), "0 6 * * *", {"__type": "CronExpression", "value": "0 6 * * *"}),
        (
            DeltaSchedule(Delta(90_000_000_000)),
            "1 day, 1:00:00",
            {"__type": "TimeDelta", "days": 1, "seconds": 3600, "microseconds": 0},
        ),
        (NoSchedule(), None, None),
    ],
)
def test_a_schedule_is_shown_as_it_is_written(world: World, schedule: Schedule, written: str | None, shown: Any) -> None:
    world.dag(schedule=schedule, schedule_summary=written)
    assert v1(world, "GET", "dags/sales").json()["schedule_interval"] == shown
    assert v1(world, "GET", "dags").json()["dags"][0]["schedule_interval"] == shown


def test_keys_are_managed(world: World) -> None:
    assert v1(world, "POST", "variables", json={"key": "color", "value": "red"}).status_code == 201
    assert v1(world, "GET", "variables/color").json()["value"] == "red"
    assert v1(world, "DELETE", "variables/color").status_code == 204
    assert v1(world, "POST", "pools", json={"name": "small", "slots": 2}).status_code == 201
    assert v1(world, "GET", "pools/small").json()["open_slots"] == 2


def test_errors_have_the_form_of_airflow_2(world: World) -> None:
    answer = v1(world, "GET", "dags/nobody")
    assert answer.status_code == 404
    assert answer.json()["title"] == "Not Found"
    assert answer.json()["status"] == 404
    wrong = {"Authorization": "Basic " + base64.b64encode(b"admin:wrong").decode()}
    assert world.bare("GET", "/api/v1/dags", headers=wrong).status_code == 401
    assert world.bare("GET", "/api/v1/dags").status_code == 401


def test_basic_authentication_is_for_airflow_2_only(world: World) -> None:
    assert world.bare("GET", "/api/v2/dags", headers=BASIC).status_code == 401


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("datasets", "use /api/v2/assets."),
        ("users/ann", "users and roles are managed with: tradewind users."),
        ("what/ever", "use /api/v2/what/ever (see /docs)."),
    ],
)
def test_other_paths_name_their_replacement(world: World, path: str, sentence: str) -> None:
    assert replacement(path).endswith(sentence)
    answer = v1(world, "GET", path)
    assert (answer.status_code, answer.json()["detail"].endswith(sentence)) == (404, True)
    assert (answer.json()["status"], answer.json()["title"]) == (404, "Not Found")


def test_health_and_version_need_no_login(world: World) -> None:
    assert world.bare("GET", "/api/v1/health").json()["metadatabase"] == {"status": "healthy"}
    assert world.bare("GET", "/api/v1/version").status_code == 200


def test_a_path_with_a_word_wins_over_one_with_an_index() -> None:
    found = find("GET", "dags/d/dagRuns/r/taskInstances/t/links")
    assert found is not None
    assert found[1].endswith("/links")
    assert len(FORMS) > 50
