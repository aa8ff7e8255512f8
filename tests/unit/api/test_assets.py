"""Assets over the API: lists, events from outside, materialising, what waits for whom."""

from __future__ import annotations

import pytest

from tests.unit.api.conftest import World
from tradewind.model.accounts import TeamDags
from tradewind.model.assets import AllOf, AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import CronSchedule, DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import NewAssetEvent, NewRun, ParsedDag, ParsedFile
from tradewind.model.states import RunType

A, B = AssetKey("a", "s3://b/a", "g", b'{"team":"ops"}'), AssetKey("b", "s3://b/b")
BASE = "/api/v2"


def register(world: World, definition: DagDefinition) -> None:
    data = encode_definition(definition)
    dag = ParsedDag(definition.dag_id, data, version_hash(data))
    world.store.register_file(
        ParsedFile("dags", f"{definition.dag_id}.py", "h", (dag,), None, 9, False, 1), paused_at_creation=False
    )


@pytest.fixture
def assets(world: World) -> World:
    """`make` produces a and reads b; `report` waits for both."""
    tasks = (TaskDefinition("t"),)
    register(world, DagDefinition("make", tasks, asset_uses=(AssetUse("t", "outlet", A), AssetUse("t", "inlet", B))))
    condition = AssetSchedule(AllOf((A, B)))
    register(
        world, DagDefinition("report", tasks, assets=condition, schedule=CronSchedule(("0 6 * * *",)), display_name="Report")
    )
    return world


def number(world: World, name: str = "a") -> int:
    found = world.store.find_asset(name=name)
    assert found is not None
    return found.id


def test_assets_are_listed_with_producers_and_consumers(assets: World) -> None:
    found = assets.json(f"{BASE}/assets")
    assert found["total_entries"] == 2
    one = found["assets"][0]
    assert (one["name"], one["uri"], one["group"], one["extra"]) == ("a", "s3://b/a", "g", {"team": "ops"})
    assert [task["task_id"] for task in one["producing_tasks"]] == ["t"]
    assert [dag["dag_id"] for dag in one["scheduled_dags"]] == ["report"]
    assert one["last_asset_event"] == {"id": None, "timestamp": None}
    assert [task["dag_id"] for task in found["assets"][1]["consuming_tasks"]] == ["make"]
    assert [asset["name"] for asset in assets.json(f"{BASE}/assets?name_pattern=b")["assets"]] == ["b"]
    assert assets.json(f"{BASE}/assets?dag_ids=nobody")["total_entries"] == 0
    assert assets.json(f"{BASE}/assets/{number(assets)}") == one
    assets.json(f"{BASE}/assets/999", 404)
    assets.json(f"{BASE}/assets?order_by=nothing", 400)


def test_an_asset_that_no_dag_names_any_more_is_listed_on_demand(assets: World) -> None:
    assets.store.forget_files("dags", ["make.py", "report.py"], 1)
    assert assets.json(f"{BASE}/assets")["total_entries"] == 0
    assert assets.json(f"{BASE}/assets?only_active=false")["total_entries"] == 2


def test_create_asset_event(assets: World) -> None:
    made = assets.request("POST", f"{BASE}/assets/events", json={"asset_id": number(assets), "extra": {"k": 1}}, role="op")
    assert made.status_code == 200, made.text
    event = made.json()
    assert (event["id"], event["name"], event["extra"]) == (1, "a", {"k": 1, "from_rest_api": True})
    assert (event["source_dag_id"], event["created_dagruns"]) == (None, [])
    assert assets.json(f"{BASE}/assets/events?asset_id={number(assets)}")["asset_events"] == [event]
    assert assets.json(f"{BASE}/assets/events?source_dag_id=x")["total_entries"] == 0
    assert assets.json(f"{BASE}/assets/{number(assets)}")["last_asset_event"]["id"] == 1
    assert assets.request("POST", f"{BASE}/assets/events", json={"asset_id": 999}).status_code == 404


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("user", 403), ("op", 200)])
def test_roles_that_may_create_asset_events(assets: World, role: str, status: int) -> None:
    answer = assets.request("POST", f"{BASE}/assets/events", role, json={"asset_id": number(assets)})
    assert answer.status_code == status
    assert assets.get(f"{BASE}/assets", role).status_code == 200


def test_queued_events_are_listed_and_deleted(assets: World) -> None:
    one = number(assets)
    for path in (f"dags/report/assets/{one}", "dags/report/assets", f"assets/{one}"):
        of_one_pair = path.count("/") == 3
        assert assets.get(f"{BASE}/{path}/queuedEvents").status_code == (404 if of_one_pair else 200)
    for path in (f"dags/report/assets/{one}", "dags/report/assets", f"assets/{one}"):
        assets.request("POST", f"{BASE}/assets/events", json={"asset_id": one})
        assets.request("POST", f"{BASE}/assets/events", json={"asset_id": one})
        found = assets.json(f"{BASE}/{path}/queuedEvents")
        entry = found if "asset_id" in found else found["queued_events"][0]
        assert (entry["dag_id"], entry["asset_id"], entry["dag_display_name"]) == ("report", one, "Report")
        assert found.get("total_entries", 1) == 1, "one entry for each asset, however often it was updated"
        assert assets.request("DELETE", f"{BASE}/{path}/queuedEvents", "user").status_code == 403
        assert assets.request("DELETE", f"{BASE}/{path}/queuedEvents").status_code == 204
        assert assets.request("DELETE", f"{BASE}/{path}/queuedEvents").status_code == 404


def test_materialize_triggers_the_producing_dag(assets: World) -> None:
    made = assets.request("POST", f"{BASE}/assets/{number(assets)}/materialize", json={"note": "again"})
    assert made.status_code == 200, made.text
    run = made.json()
    assert (run["dag_id"], run["run_type"], run["triggered_by"], run["note"]) == (
        "make",
        "asset_materialization",
        "rest_api",
        "again",
    )
    assert assets.request("POST", f"{BASE}/assets/{number(assets, 'b')}/materialize").status_code == 404
    assert assets.request("POST", f"{BASE}/assets/{number(assets)}/materialize", "user").status_code == 403


def test_upstream_asset_events_of_a_run(assets: World) -> None:
    numbers, _ = assets.store.record_asset_events(
        [
            NewAssetEvent("a", "s3://b/a", "g", b'{"n":1}', 5, None, (), "make", "r1", "t"),
            NewAssetEvent("b", "s3://b/b", "asset", None, 6, aliases=("x",)),
        ]
    )
    version = assets.store.need_dag("report").version
    new = NewRun("report", "r", RunType.ASSET_TRIGGERED, version, None, None, None, 6, 6, "asset")
    assets.store.create_asset_run(new, numbers[-1])
    found = assets.json(f"{BASE}/dags/report/dagRuns/r/upstreamAssetEvents")
    assert [(one["name"], one["source_task_id"], one["extra"]) for one in found["asset_events"]] == [
        ("a", "t", {"n": 1}),
        ("b", None, {}),
    ]
    runs = [[(run["run_id"], run["triggering"]) for run in one["created_dagruns"]] for one in found["asset_events"]]
    assert runs == [[("r", False)], [("r", True)]], "the latest event that the run consumed has triggered it"
    assets.json(f"{BASE}/dags/report/dagRuns/nobody/upstreamAssetEvents", 404)
    (alias,) = assets.json(f"{BASE}/assets/aliases")["asset_aliases"]
    assert assets.json(f"{BASE}/assets/aliases/{alias['id']}") == alias == {"id": alias["id"], "name": "x", "group": "asset"}


def test_a_dag_shows_its_condition(assets: World) -> None:
    found = assets.json(f"{BASE}/dags/report/details")
    assert [one["asset"]["name"] for one in found["asset_expression"]["all"]] == ["a", "b"]
    assert found["timetable_description"] == "Triggered by assets or every day at 06:00 (UTC)."
    assert assets.json(f"{BASE}/dags/make/details")["asset_expression"] is None


@pytest.fixture
def teams(assets: World) -> World:
    """`make` and `report` belong to different teams; `second` also waits for a. Ann has the role op in the team of `make`, Bob
    in the one of `report`, Cid has none in any team."""
    register(assets, DagDefinition("second", (TaskDefinition("t"),), assets=AssetSchedule(A)))
    for team, dag_ids, member in (("makers", ["make"], "ann"), ("readers", ["report"], "bob"), ("others", ["second"], "cid")):
        assets.accounts.create_team(team, "", at=1, actor="test")
        for dag_id in dag_ids:
            assets.accounts.assign_dags(TeamDags(team, "dag", dag_id), at=1, actor="test")
        assets.accounts.create_account(member, "op", stamp="s", at=1, actor="test")
        if member != "cid":
            assets.accounts.set_member(team, member, "op", at=1, actor="test")
    return assets


@pytest.mark.parametrize("body", [{}, {"note": "x"}, {"dag_run_id": "mine"}])
def test_materialize_needs_permission_to_run_the_producing_dag(teams: World, body: dict[str, str]) -> None:
    path = f"{BASE}/assets/{number(teams)}/materialize"
    for account in ("bob", "cid"):
        refused = teams.request("POST", path, account, json=body)
        assert refused.status_code == 404
        assert "make" not in refused.json()["detail"]
    assert teams.control.calls == []
    assert teams.request("POST", path, "ann", json=body).status_code == 200


def test_materialize_needs_more_than_permission_to_read_the_producing_dag(teams: World) -> None:
    teams.accounts.create_role("guests", "", at=1, actor="test")
    teams.accounts.set_grants("guests", [("make", "read")], at=1, actor="test")
    teams.accounts.set_roles("bob", ["guests"], at=1, actor="test")
    path = f"{BASE}/assets/{number(teams)}/materialize"
    assert teams.request("POST", path, "bob").status_code == 403
    assert teams.control.calls == []
    teams.accounts.set_grants("guests", [("make", "run")], at=1, actor="test")
    assert teams.request("POST", path, "bob").status_code == 200


def test_events_are_dropped_only_for_the_dags_that_the_account_may_edit(teams: World) -> None:
    one = number(teams)
    assert teams.request("POST", f"{BASE}/assets/events", json={"asset_id": one}).status_code == 200
    path = f"{BASE}/assets/{one}/queuedEvents"
    assert [row["dag_id"] for row in teams.json(path)["queued_events"]] == ["report", "second"]
    assert teams.request("DELETE", path, "ann").status_code == 404
    assert teams.request("DELETE", path, "bob").status_code == 204
    assert [row["dag_id"] for row in teams.json(path)["queued_events"]] == ["second"]
    assert teams.request("DELETE", path, "bob").status_code == 404
    assert teams.request("DELETE", path).status_code == 204
