"""What the API answers, as Airflow's clients ask it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.commands import WORKER, ping_result
from tests.unit.api import full_world
from tests.unit.api.conftest import World
from tradewind.api.routes.monitor import Component, _of_host, _of_triggerer
from tradewind.model.errors import StoreError
from tradewind.model.moments import HOUR, MINUTE, SECOND, iso
from tradewind.model.rows import ImportProblem, NewJob, ParsedFile
from tradewind.platform.progress import Stamp
from tradewind.store.sql.store import SqlStore


def test_health_has_airflows_shape(world: World) -> None:
    world.store.begin_epoch("box", 1, "boot", world.clock.wall())
    answer = world.bare("GET", "/api/v2/monitor/health")
    assert answer.json() == {
        "metadatabase": {"status": "healthy"},
        "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": "2026-01-01T00:00:00Z"},
        "triggerer": {"status": "healthy", "latest_triggerer_heartbeat": "2026-01-01T00:00:00Z"},
        "dag_processor": {"status": None, "latest_dag_processor_heartbeat": None},
        "worker_host": {"status": "healthy", "latest_worker_host_heartbeat": "2026-01-01T00:00:00Z"},
    }


def _stamped(world: World, tmp_path: Path) -> dict[str, Stamp]:
    """Have worker host and parser report progress."""
    files = {kind: str(tmp_path / kind) for kind in ("host", "parser")}
    services = world.app.state.services
    services.config = dataclasses.replace(services.config, progress=files)
    stamps = {kind: Stamp(path, world.clock) for kind, path in files.items()}
    for stamp in stamps.values():
        stamp.stamp()
    return stamps


def test_host_and_parser_are_healthy_while_their_loops_make_progress(world: World, tmp_path: Path) -> None:
    def status() -> dict[str, str]:
        return {name: part["status"] for name, part in world.bare("GET", "/api/v2/monitor/health").json().items()}

    stamps = _stamped(world, tmp_path)
    assert set(status().values()) == {"healthy"}
    world.clock.advance(31 * SECOND)
    assert status() == {
        "metadatabase": "healthy",
        "scheduler": "healthy",
        "triggerer": None,
        "dag_processor": "unhealthy",
        "worker_host": "unhealthy",
    }
    stamps["parser"].stamp()
    assert status()["dag_processor"] == "healthy"
    stamps["host"].end()
    world.control.workers = []
    world.clock.advance(2 * SECOND)
    assert status()["worker_host"] == "unhealthy"


def test_readiness_names_unhealthy_components(world: World, tmp_path: Path) -> None:
    stamps = _stamped(world, tmp_path)
    answer = world.bare("GET", "/api/tradewind/v1/ready")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "reasons": [], "warnings": []})
    world.clock.advance(40 * SECOND)
    stamps["parser"].stamp()
    world.control.gone = True
    answer = world.bare("GET", "/api/tradewind/v1/ready")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == [
        "the scheduler does not answer",
        f"the worker host (process {os.getpid()}) has made no progress for 40 s",
    ]


def test_the_triggerer_has_the_health_of_the_worker_host() -> None:
    well, none, dead = Component("healthy", 5), Component(None, None), Component("unhealthy", 3, "it has died")
    assert _of_triggerer(well, ping_result(triggers=2)) == well
    assert _of_triggerer(none, None).status is None
    assert _of_triggerer(dead, ping_result(triggers=0)).status is None
    assert _of_triggerer(dead, ping_result(triggers=2)).status == "unhealthy"


def test_scheduler_without_a_worker_host_is_not_ready(world: World) -> None:
    assert _of_host(world.app.state.services, ping_result()).problem == "no worker host is connected to the scheduler"
    assert _of_host(world.app.state.services, ping_result(workers=[WORKER])) == Component("healthy", 7)


def test_health_pings_the_scheduler_at_most_once_a_second(world: World) -> None:
    def status() -> Any:
        return world.bare("GET", "/api/v2/monitor/health").json()["scheduler"]["status"]

    assert status() == "healthy"
    world.control.gone = True
    assert status() == "healthy"
    world.clock.advance(2 * SECOND)
    assert status() == "unhealthy"


def test_a_scheduler_in_trouble_is_not_healthy(world: World) -> None:
    world.control.trouble = "the disk is full"
    assert world.bare("GET", "/api/v2/monitor/health").json()["scheduler"]["status"] == "unhealthy"


def test_health_without_a_database_still_answers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> SqlStore:
        raise StoreError("the database cannot be opened")

    monkeypatch.setattr(world.app.state.services, "_readers", broken)
    assert world.bare("GET", "/api/v2/monitor/health").json()["metadatabase"] == {"status": "unhealthy"}
    answer = world.get("/api/v2/dags")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the database cannot be opened")
    assert answer.headers["retry-after"] == "2"


def test_version_is_open(world: World) -> None:
    assert set(world.bare("GET", "/api/v2/version").json()) == {"version", "git_version"}


def test_the_page_of_all_routes_needs_no_script(world: World) -> None:
    page = world.bare("GET", "/docs")
    assert page.status_code == 200
    assert 'href="openapi.json"' in page.text
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert world.bare("GET", "/style.css").headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/api/v1/datasets", "/api/v2/assets"),
        ("/api/experimental/dags/d/dag_runs", "use /api/v2"),
        ("/health", "/api/v2/monitor/health"),
        ("/nowhere", "Not Found"),
    ],
)
def test_other_addresses_are_404_with_a_hint(world: World, path: str, hint: str) -> None:
    answer = world.bare("GET", path)
    assert answer.status_code == 404
    assert hint in answer.json()["detail"]


# --- DAGs ---------------------------------------------------------------------------------------------------------------


def test_dags_are_listed_and_paged(world: World) -> None:
    for n in range(3):
        world.dag(f"d{n}")
    page = world.json("/api/v2/dags?limit=2&offset=1&order_by=-dag_id")
    assert ([dag["dag_id"] for dag in page["dags"]], page["total_entries"]) == (["d1", "d0"], 3)
    assert world.json("/api/v2/dags?tags=money&tags_match_mode=all&paused=true")["total_entries"] == 3
    assert world.json("/api/v2/dags?dag_id_pattern=D1")["total_entries"] == 1
    assert world.json("/api/v2/dags/d1")["fileloc"] == "/dags/d1.py"
    assert world.json("/api/v2/dags/d1/details")["concurrency"] == 16
    world.dag("chain", bundle="example_dags")
    assert world.json("/api/v2/dags/chain")["fileloc"] == "/examples/chain.py"


def test_limits_follow_airflow(world: World) -> None:
    world.dag(tasks=120)
    world.run()
    path = "/api/v2/dags/sales/dagRuns/r1/taskInstances"
    assert [len(world.json(f"{path}{query}")["task_instances"]) for query in ("", "?limit=0", "?limit=7", "?limit=9999")] == [
        50,
        0,
        7,
        100,
    ]
    assert world.get(f"{path}?limit=-1").status_code == 422


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/api/v2/dags?pausd=true", "Did you mean 'paused'"),
        ("/api/v2/dags?is_favourite=true", "Did you mean 'is_favorite'"),
        ("/api/v2/dags?order_by=nothing", "cannot be ordered by 'nothing'"),
        ("/api/v2/dags/~/dagRuns/~/taskInstances?order_by=pool", "cannot be ordered by 'pool'"),
    ],
)
def test_unknown_parameters_are_refused(world: World, path: str, says: str) -> None:
    assert says in world.json(path, 400)["detail"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/api/v2/dags/~/dagRuns?state=runing", "Did you mean 'running'"),
        ("/api/v2/dags/~/dagRuns?run_type=manuel", "Did you mean 'manual'"),
        ("/api/v2/dags/~/dagRuns/~/taskInstances?state=runing", "is not a state of a task instance"),
    ],
)
def test_unknown_states_and_types_are_unprocessable_as_in_airflow(world: World, path: str, says: str) -> None:
    (problem,) = world.json(path, 422)["detail"]
    assert (problem["loc"], says in problem["msg"]) == (["query"], True)


def test_404_names_the_nearest(world: World) -> None:
    world.dag()
    world.run()
    for path, near in (
        ("/api/v2/dags/sale", "'sales'"),
        ("/api/v2/dags/sale/details", "'sales'"),
        ("/api/v2/dags/sale/dagRuns", "'sales'"),
        ("/api/v2/dags/sales/dagRuns/r2", "r1"),
        ("/api/v2/dags/sales/dagRuns/r1/taskInstances/t11", "'t1'"),
        ("/api/v2/dags/sales/dagRuns/r2/taskInstances", "r1"),
        ("/api/v2/pools/default", "'default_pool'"),
        ("/api/v2/dags/sales/dagRuns/r1/taskInstances/t1/tries/4", "none yet"),
    ):
        assert near in world.json(path, 404)["detail"], path


@pytest.mark.spec("S77")
def test_pause_is_a_command_in_the_name_of_the_caller(world: World) -> None:
    world.dag()
    answer = world.request("PATCH", "/api/v2/dags/sales", "user", json={"is_paused": False})
    assert (answer.status_code, answer.json()["is_paused"]) == (200, False)
    assert world.control.calls == [("set_paused", "user", {"dag_id": "sales", "is_paused": False})]
    assert world.request("PATCH", "/api/v2/dags/sale", json={"is_paused": True}).status_code == 404
    assert world.request("PATCH", "/api/v2/dags/sales?update_mask=tags", json={"is_paused": True}).status_code == 400
    assert world.request("PATCH", "/api/v2/dags/sales", json={"is_paused": True, "tags": []}).status_code == 422
    (event,) = world.json("/api/v2/eventLogs?dag_id=sales")["event_logs"]
    assert (event["owner"], event["event"]) == ("user", "unpause")


def test_without_a_scheduler_reads_work_and_changes_are_503(world: World) -> None:
    world.dag()
    world.control.gone = True
    answer = world.request("PATCH", "/api/v2/dags/sales", json={"is_paused": False})
    assert (answer.status_code, "no live scheduler" in answer.json()["detail"]) == (503, True)
    assert world.json("/api/v2/dags/sales")["is_paused"] is True


def test_versions_and_stats(world: World) -> None:
    world.dag()
    world.run()
    assert world.json("/api/v2/dags/sales/dagVersions")["total_entries"] == 1
    assert world.json("/api/v2/dags/~/dagVersions")["dag_versions"][0]["dag_id"] == "sales"
    assert world.json("/api/v2/dags/sales/dagVersions/1")["version_number"] == 1
    (stats,) = world.json("/api/v2/dagStats?dag_ids=sales")["dags"]
    assert {one["state"]: one["count"] for one in stats["stats"]} == {"queued": 1, "running": 0, "success": 0, "failed": 0}


# --- runs ---------------------------------------------------------------------------------------------------------------


def test_a_run_is_triggered_with_airflows_body(world: World) -> None:
    world.dag()
    body = {
        "logical_date": "2026-03-01T06:00:00+01:00",
        "data_interval_start": "2026-02-28T00:00:00Z",
        "data_interval_end": "2026-03-01T00:00:00Z",
        "conf": {"n": [1, {"a": None}]},
        "note": "again",
        "dag_run_id": "mine~1",
    }
    answer = world.request("POST", "/api/v2/dags/sales/dagRuns", "user", json=body)
    assert answer.status_code == 200, answer.text
    run = answer.json()
    assert (run["dag_run_id"], run["logical_date"], run["conf"]) == (
        "mine~1",
        "2026-03-01T05:00:00Z",
        {"n": [1, {"a": None}]},
    )
    assert (run["data_interval_start"], run["note"]) == ("2026-02-28T00:00:00Z", "again")
    assert (run["triggering_user_name"], run["triggered_by"]) == ("user", "rest_api")


def test_logical_date_is_required_and_nullable(world: World) -> None:
    world.dag()
    url = "/api/v2/dags/sales/dagRuns"
    assert world.request("POST", url, json={}).status_code == 422
    answer = world.request("POST", url, json={"logical_date": None})
    assert (answer.status_code, answer.json()["logical_date"]) == (200, None)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"execution_date": "2026-01-01T00:00:00Z"}, "use logical_date"),
        ({"logical_date": "2026-01-01T00:00:00"}, "timezone"),
        ({"logical_date": None, "data_interval_start": "2026-01-01T00:00:00Z"}, "both data_interval_start"),
        (
            {
                "logical_date": None,
                "data_interval_start": "2026-01-02T00:00:00Z",
                "data_interval_end": "2026-01-01T00:00:00Z",
            },
            "is before",
        ),
        ({"logical_date": None, "conf": [1]}, "dict"),
        ({"logical_date": None, "nonsense": 1}, "nonsense"),
        ({"logical_date": None, "partition_key": 1}, "partition_key"),
        ({"logical_date": None, "partition_key": "a" * 251}, "partition_key"),
    ],
)
def test_an_invalid_body_is_422_with_the_reason(world: World, body: dict[str, Any], says: str) -> None:
    world.dag()
    answer = world.request("POST", "/api/v2/dags/sales/dagRuns", json=body)
    assert answer.status_code == 422
    assert says in answer.text
    assert world.control.calls == []


def test_a_conf_that_does_not_fit_the_params_is_400(world: World) -> None:
    """As in Airflow: clients take 409 as the answer that the run exists."""
    full_world.fill(world)
    answer = world.request("POST", "/api/v2/dags/sales/dagRuns", json={"logical_date": None, "conf": {"day": 1}})
    assert (answer.status_code, answer.json()["detail"]) == (400, "parameter 'day': 1 is not of type string")


def test_a_run_id_with_other_characters_is_a_bad_request(world: World) -> None:
    """As in Airflow: 409 would say that the run exists."""
    world.dag()
    answer = world.request("POST", "/api/v2/dags/sales/dagRuns", json={"logical_date": None, "dag_run_id": "a/b"})
    assert (answer.status_code, "may only have letters" in answer.json()["detail"]) == (400, True)


def test_a_dag_without_dates_cannot_be_backfilled(world: World) -> None:
    world.dag()
    body = {"dag_id": "sales", "from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-02T00:00:00Z", "dag_run_conf": None}
    assert world.request("POST", "/api/v2/backfills", json=body).status_code == 422
    assert world.request("POST", "/api/v2/backfills", json={**body, "reprocess_behavior": "all"}).status_code == 422


def test_a_partition_key_is_only_for_a_dag_with_partitions(world: World) -> None:
    world.dag()
    answer = world.request("POST", "/api/v2/dags/sales/dagRuns", json={"logical_date": None, "partition_key": "eu"})
    assert answer.status_code == 400
    assert "not partitioned" in answer.text


def test_runs_are_found_and_cleared_by_partition(world: World) -> None:
    world.dag()
    now = world.clock.wall()
    for hour in range(3):
        world.run(run_id=f"h{hour}", partition_key=f"key{hour}", partition_date=now + hour * HOUR)
    at = iso(now + HOUR)
    listed = world.get("/api/v2/dags/sales/dagRuns", params={"partition_date_gte": at}).json()["dag_runs"]
    assert [(run["partition_key"], run["partition_date"]) for run in listed] == [
        ("key1", at),
        ("key2", iso(now + 2 * HOUR)),
    ]
    answer = world.request("POST", "/api/v2/dags/sales/clearPartitions", json={"partition_date_end": at})
    assert answer.json() == {"dag_runs_cleared": 2, "task_instances_cleared": 0, "dry_run": True}
    answer = world.request("POST", "/api/v2/dags/sales/clearPartitions", json={"partition_key": "key2"})
    assert answer.json()["dag_runs_cleared"] == 1


def test_a_second_run_of_the_same_id_or_date_is_409(world: World) -> None:
    world.dag()
    url = "/api/v2/dags/sales/dagRuns"
    first = {"logical_date": "2026-01-01T00:00:00Z", "dag_run_id": "a"}
    assert world.request("POST", url, json=first).status_code == 200
    for again in ({"logical_date": None, "dag_run_id": "a"}, {**first, "dag_run_id": "b"}):
        answer = world.request("POST", url, json=again)
        assert (answer.status_code, "already" in answer.json()["detail"]) == (409, True)


def test_triggering_an_unknown_dag_is_404(world: World) -> None:
    world.dag()
    answer = world.request("POST", "/api/v2/dags/salse/dagRuns", json={"logical_date": None})
    assert (answer.status_code, "'sales'" in answer.json()["detail"]) == (404, True)


def test_runs_are_listed_with_ranges_and_wildcards(world: World) -> None:
    for dag in ("a", "b"):
        world.dag(dag)
        for n in range(3):
            world.run(dag, f"{dag}{n}", logical_date=world.clock.wall() + n * HOUR, run_after=world.clock.wall() + n * HOUR)

    def ids(query: str) -> list[str]:
        return [run["dag_run_id"] for run in world.json(f"/api/v2/dags/{query}")["dag_runs"]]

    assert ids("~/dagRuns") == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert ids("a/dagRuns?order_by=-run_after&limit=2") == ["a2", "a1"]
    assert ids("~/dagRuns?logical_date_gte=2026-01-01T02:00:00Z") == ["a2", "b2"]
    assert ids("b/dagRuns?run_after_gt=2026-01-01T00:00:00Z&run_after_lt=2026-01-01T02:00:00Z") == ["b1"]
    assert ids("b/dagRuns?run_after_gte=2026-01-01T03:00:00+01:00") == ["b2"], "a plus that became a blank"
    assert ids("~/dagRuns?state=queued&state=running&run_id_pattern=1") == ["a1", "b1"]
    assert world.json("/api/v2/dags/~/dagRuns?end_date_lte=tomorrow", 422)["detail"][0]["loc"] == ["query", "end_date_lte"]


# --- task instances -------------------------------------------------------------------------------------------------------


def test_task_instances_are_shown_for_a_run_and_across(world: World) -> None:
    world.dag()
    world.run()
    world.run(run_id="r2")
    path = "/api/v2/dags/sales/dagRuns/r1/taskInstances"
    page = world.json(path)
    assert ([ti["task_id"] for ti in page["task_instances"]], page["total_entries"]) == (["t0", "t1", "t2"], 3)
    assert page["task_instances"][0]["state"] is None
    assert world.json("/api/v2/dags/~/dagRuns/~/taskInstances")["total_entries"] == 6
    assert world.json("/api/v2/dags/sales/dagRuns/~/taskInstances?task_id=t1&state=none")["total_entries"] == 2
    one = world.json(f"{path}/t1")
    assert one == world.json(f"{path}/t1/-1")
    (itself,) = world.json(f"{path}/t1/tries")["task_instances"]
    assert (itself["state"], itself["try_number"]) == (None, 0), "it has had no try"


@pytest.mark.spec("S440")
def test_clear_sends_one_command_with_its_fields(world: World) -> None:
    world.dag()
    world.run()
    for task_id in ("t1", "t2"):
        world.request("PATCH", f"/api/v2/dags/sales/dagRuns/r1/taskInstances/{task_id}", json={"new_state": "success"})
    url = "/api/v2/dags/sales/clearTaskInstances"
    body = {"dag_run_id": "r1", "task_ids": ["t1", ["t2", -1]], "dry_run": False, "only_failed": False, "note": "bad data"}
    answer = world.request("POST", url, "user", json=body)
    assert answer.status_code == 200, answer.text
    assert [ti["task_id"] for ti in answer.json()["task_instances"]] == ["t1", "t2"]
    command, actor, args = world.control.calls[-1]
    assert (command, actor) == ("clear", "user")
    assert args == {
        "dag_id": "sales",
        "run_id": "r1",
        "task_ids": ["t1", "t2"],
        "reason": "bad data",
        "note": "bad data",
    }


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"only_failed": True, "only_running": True}, 422, "exclude each other"),
        ({"task_ids": []}, 422, "at least 1"),
        ({"dag_run_id": "r1", "start_date": "2026-01-01T00:00:00Z"}, 422, "either dag_run_id"),
        ({"dag_run_id": "r9"}, 404, "r9"),
    ],
)
def test_an_invalid_clear_is_refused(world: World, body: dict[str, Any], status: int, says: str) -> None:
    world.dag()
    answer = world.request("POST", "/api/v2/dags/sales/clearTaskInstances", json=body)
    assert (answer.status_code, says in answer.text) == (status, True), answer.text
    assert world.control.calls == []


# --- the rest -------------------------------------------------------------------------------------------------------------


def test_plugins_and_their_import_errors_are_listed(world: World) -> None:
    assert world.json("/api/v2/plugins") == {"plugins": [], "total_entries": 0}
    world.store.set_plugins('[{"name": "ours", "source": "$PLUGINS_FOLDER/ours.py", "macros": ["ours.double"]}]')
    trouble = ImportProblem("ValueError: no", "line 3: no", 3)
    world.store.register_file(
        ParsedFile("plugins", "bad.py", "", (), trouble, duration=0, is_dynamic=False, at=0), paused_at_creation=True
    )
    found = world.json("/api/v2/plugins")
    (plugin,) = found["plugins"]
    assert (plugin["name"], plugin["macros"], plugin["timetables"]) == ("ours", ["ours.double"], [])
    (error,) = world.json("/api/v2/plugins/importErrors")["import_errors"]
    assert error == {"source": "bad.py", "error": "line 3: no"}


def test_import_errors_are_shown(world: World) -> None:
    problem = ImportProblem("SyntaxError: invalid syntax", 'File "bad.py", line 7', 7)
    world.store.register_file(ParsedFile("dags", "bad.py", "h", (), problem, 0, False, 1), paused_at_creation=True)
    (error,) = world.json("/api/v2/importErrors?filename_pattern=bad")["import_errors"]
    assert (error["filename"], error["line"], error["stack_trace"]) == ("bad.py", 7, 'File "bad.py", line 7')
    assert world.json(f"/api/v2/importErrors/{error['import_error_id']}") == error


def test_pools_are_created_changed_and_deleted(world: World) -> None:
    made = world.request("POST", "/api/v2/pools", json={"name": "small", "slots": 2})
    assert (made.status_code, made.json()["open_slots"]) == (201, 2)
    assert world.request("POST", "/api/v2/pools", json={"name": "small", "slots": 2}).status_code == 409
    changed = world.request("PATCH", "/api/v2/pools/small", json={"slots": 5, "description": "d", "include_deferred": True})
    assert (changed.json()["slots"], changed.json()["include_deferred"]) == (5, True)
    masked = world.request("PATCH", "/api/v2/pools/small?update_mask=slots", json={"slots": 6, "description": "other"})
    assert (masked.json()["slots"], masked.json()["description"]) == (6, "d")
    assert world.request("PATCH", "/api/v2/pools/small", json={"pool": "big"}).status_code == 400
    assert world.json("/api/v2/pools?pool_name_pattern=small")["total_entries"] == 1
    assert world.request("DELETE", "/api/v2/pools/small").status_code == 204
    assert world.get("/api/v2/pools/small").status_code == 404
    assert world.request("DELETE", "/api/v2/pools/default_pool").status_code == 400


def test_variables_are_stored_and_secrets_masked(world: World) -> None:
    def put(key: str, value: Any) -> Any:
        answer = world.request("POST", "/api/v2/variables", json={"key": key, "value": value, "description": "d"})
        assert answer.status_code == 201, answer.text
        return answer.json()["value"]

    assert put("region", "eu") == "eu"
    assert put("nested/key", {"a": 1, "password": "hunter2"}) == '{"a": 1, "password": "***"}'
    assert put("api_token", "hunter2") == "***"
    assert world.json("/api/v2/variables/nested/key")["key"] == "nested/key"
    assert world.json("/api/v2/variables?variable_key_pattern=reg")["total_entries"] == 1
    assert "hunter2" not in world.get("/api/v2/variables").text
    assert world.request("POST", "/api/v2/variables", json={"key": "region", "value": 1}).status_code == 409
    changed = world.request("PATCH", "/api/v2/variables/region", json={"key": "region", "value": "us"})
    assert changed.json()["value"] == "us"
    noted = world.request(
        "PATCH", "/api/v2/variables/region?update_mask=description", json={"key": "region", "value": "x", "description": "n"}
    )
    assert (noted.json()["value"], noted.json()["description"]) == ("us", "n")
    masked = world.request("PATCH", "/api/v2/variables/region?update_mask=value", json={"key": "region", "value": "de"})
    assert (masked.json()["value"], masked.json()["description"]) == ("de", "n"), "the mask does not name the description"
    assert world.request("PATCH", "/api/v2/variables/region", json={"key": "other", "value": 1}).status_code == 400
    assert world.request("DELETE", "/api/v2/variables/region").status_code == 204
    assert "'api_token'" in world.json("/api/v2/variables/api_tokn", 404)["detail"]


def test_secrets_of_connections_are_never_shown(world: World) -> None:
    body = {
        "connection_id": "warehouse",
        "conn_type": "postgres",
        "host": "db",
        "port": 5432,
        "schema": "public",
        "password": "hunter2",
        "extra": '{"sslmode": "require", "private_key": "hunter2", "deep": [{"api-key": "hunter2"}]}',
    }
    answer = world.request("POST", "/api/v2/connections", json=body)
    assert answer.status_code == 201, answer.text
    shown = answer.json()
    assert (shown["password"], shown["schema"], shown["port"]) == ("***", "public", 5432)
    assert shown["extra"] == '{"sslmode": "require", "private_key": "***", "deep": [{"api-key": "***"}]}'
    assert "hunter2" not in world.get("/api/v2/connections").text
    assert world.request("POST", "/api/v2/connections", json=body).status_code == 409
    for bad in ({"extra": "[1]"}, {"extra": "x=1"}, {"connection_id": "a b"}, {"port": 99999}):
        assert world.request("POST", "/api/v2/connections", json={**body, **bad}).status_code == 422
    assert world.request("DELETE", "/api/v2/connections/warehouse").status_code == 204
    assert world.get("/api/v2/connections/warehouse").status_code == 404


def test_bodies_are_bounded(world: World) -> None:
    world.dag()
    big = {"logical_date": None, "note": "x" * 200_000}
    answer = world.request("POST", "/api/v2/dags/sales/dagRuns", json=big)
    assert (answer.status_code, "100000 bytes" in answer.json()["detail"]) == (413, True)

    async def chunks() -> Any:
        for _ in range(20):
            yield b" " * 10_000

    headers = {"Content-Type": "application/json"}
    assert world.request("POST", "/api/v2/dags/sales/dagRuns", content=chunks(), headers=headers).status_code == 413
    assert world.control.calls == []


def test_responses_are_not_cached_and_have_the_security_headers(world: World) -> None:
    for path in ("/api/v2/dags", "/api/v2/monitor/health", "/nowhere", "/docs"):
        headers = world.get(path).headers
        assert headers["cache-control"] == "no-store", path
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_response_keeps_its_own_content_security_policy(world: World) -> None:
    async def page(request: Request) -> Response:
        return Response("page", headers={"Content-Security-Policy": "default-src 'self'"})

    world.app.add_route("/page-for-test", page, ["GET"])
    headers = world.bare("GET", "/page-for-test").headers
    assert headers.get_list("content-security-policy") == ["default-src 'self'"]
    assert headers["x-content-type-options"] == "nosniff"


def test_the_history_of_a_task_is_under_a_prefix_of_our_own(world: World) -> None:
    world.dag()
    world.run()
    path = "/api/tradewind/v1/dags/sales/dagRuns/r1/taskInstances"
    assert world.json(f"{path}/t0/history") == {"steps": [], "total_entries": 0}
    assert world.get(f"{path}/t9/history").status_code == 404
    assert world.bare("GET", f"{path}/t0/history").status_code == 401


@pytest.mark.spec("S115")
def test_jobs_are_listed_with_airflows_fields(world: World) -> None:
    now = world.clock.wall()
    world.store.begin_job(NewJob("a", "SchedulerJob", "box", "ada", 7, "LocalExecutor"), now)
    world.store.begin_job(NewJob("b", "LocalExecutorJob", "box", "ada", 8), now)
    world.store.end_job("b", False, now, "it broke")
    found = world.json("/api/v2/jobs")
    assert found["total_entries"] == 2
    first, second = found["jobs"]
    assert (first["job_type"], first["state"], first["end_date"], first["executor_class"]) == (
        "SchedulerJob",
        "running",
        None,
        "LocalExecutor",
    )
    assert (second["state"], second["latest_heartbeat"] == second["end_date"], second["reason"]) == ("failed", True, "it broke")
    airflows = "id dag_id state job_type start_date end_date latest_heartbeat executor_class hostname unixname"
    assert set(airflows.split()) <= set(first)
    for query, types in (("is_alive=true", 1), ("is_alive=false", 1), ("job_type=SchedulerJob", 1), ("job_state=lost", 0)):
        assert world.json(f"/api/v2/jobs?{query}")["total_entries"] == types, query
    world.clock.advance(MINUTE)
    assert world.json("/api/v2/jobs?is_alive=true")["total_entries"] == 0


def test_a_refused_query_is_repeated_with_its_limits(world: World) -> None:
    """As in Airflow, whose clients read `input`."""
    (found,) = world.json("/api/v2/dags?limit=x", status=422)["detail"]
    assert (found["loc"], found["type"], found["input"]) == (["query", "limit"], "int_parsing", "x")


def test_a_dag_becomes_a_favorite_once(world: World) -> None:
    """As in Airflow, a repetition is a conflict."""
    world.dag()
    answers = [
        world.request("POST", f"/api/v2/dags/sales/{path}") for path in ("favorite", "favorite", "unfavorite", "unfavorite")
    ]
    assert [answer.status_code for answer in answers] == [204, 409, 204, 409]
    assert "is already a favorite of admin" in answers[1].json()["detail"]
