"""The page of an asset, and the graph of assets and DAGs."""

from __future__ import annotations

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, register
from tradewind.model.assets import AliasKey, AllOf, AnyOf, AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import iso
from tradewind.model.partitions import Fixed, PartitionRules, Rollup, SegmentWindow, StartOf, TimeWindow
from tradewind.model.rows import NewAssetEvent

RAW, CLEAN = AssetKey("raw", "s3://b/raw"), AssetKey("clean", "s3://b/clean")


@pytest.fixture
def lake(world: World) -> World:
    """load → raw → scrub → clean"""
    tasks = (TaskDefinition("t"), TaskDefinition("u"))
    register(world, DagDefinition("load", tasks, asset_uses=(AssetUse("t", "outlet", RAW), AssetUse("u", "outlet", RAW))))
    waits = AssetSchedule(AllOf((RAW,)))
    register(world, DagDefinition("scrub", tasks, assets=waits, asset_uses=(AssetUse("t", "outlet", CLEAN),)))
    return world


def number(world: World, name: str) -> int:
    found = world.store.find_asset(name=name)
    assert found is not None
    return found.id


def test_the_graph_names_each_producing_and_consuming_dag_once(lake: World) -> None:
    found = lake.json(f"{PAGE}/assets/graph")
    assert found["total_entries"] == 2
    links = {one["name"]: (one["producers"], one["consumers"], one["last_event_at"]) for one in found["assets"]}
    assert links == {"clean": (["scrub"], [], None), "raw": (["load"], ["scrub"], None)}


def test_the_page_of_an_asset_has_its_events_and_what_is_queued(lake: World) -> None:
    path = f"{PAGE}/assets/{number(lake, 'raw')}"
    before = lake.json(path)
    assert (before["asset"]["name"], before["events"], before["queued"]) == ("raw", [], [])
    for extra in ({"n": 1}, {"n": 2}):
        made = lake.request("POST", "/api/v2/assets/events", json={"asset_id": number(lake, "raw"), "extra": extra}, role="op")
        assert made.status_code == 200, made.text
    after = lake.json(path)
    assert [one["extra"]["n"] for one in after["events"]] == [2, 1]  # the newest first
    assert after["asset"]["last_asset_event"]["id"] == after["events"][0]["id"]
    assert lake.json(f"{PAGE}/assets/999", 404)["detail"]


def emit(world: World, asset: AssetKey, at: int, key: str | None = None) -> None:
    world.store.record_asset_events([NewAssetEvent(asset.name, asset.uri, asset.group, None, at, partition_key=key)])


def test_a_run_waits_for_the_assets_that_were_not_updated(lake: World) -> None:
    both = AssetSchedule(AllOf((RAW, AnyOf((CLEAN, AliasKey("late"))))))
    register(lake, DagDefinition("report", (TaskDefinition("t"),), assets=both))
    emit(lake, RAW, lake.clock.wall())
    found = lake.json(f"{PAGE}/dags/report/awaitedAssets")
    assert (found["rule"], found["is_partitioned"], found["is_paused"], found["dropped"]) == ("mixed", False, False, None)
    (run,) = found["runs"]
    assert (run["partition_key"], run["since"], run["is_due"]) == (None, iso(lake.clock.wall()), False)
    assert [(one["name"], one["id"], one["is_alias"], one["is_complete"]) for one in run["assets"]] == [
        ("raw", number(lake, "raw"), False, True),
        ("clean", number(lake, "clean"), False, False),
        ("late", None, True, False),
    ]


def test_a_run_of_a_partition_key_names_the_missing_keys(lake: World) -> None:
    daily = Rollup(StartOf("day", "UTC", "%Y-%m-%dT%H", "%Y-%m-%d"), TimeWindow("day"))
    regions = Rollup(Fixed("all"), SegmentWindow(("eu", "us")))
    rules = PartitionRules(daily, by_name=(("clean", regions),))
    schedule = AssetSchedule(AllOf((RAW, CLEAN)), partitions=rules)
    register(lake, DagDefinition("report", (TaskDefinition("t"),), assets=schedule))
    path = f"{PAGE}/dags/report/awaitedAssets"
    assert lake.json(path) | {"is_paused": False} == {
        "rule": "all",
        "is_partitioned": True,
        "is_paused": False,
        "runs": [],
        "has_more": False,
        "dropped": None,
    }
    emit(lake, RAW, lake.clock.wall(), "2026-03-01T00")
    emit(lake, RAW, lake.clock.wall(), "2026-03-01T01")
    (run,) = lake.json(path)["runs"]
    assert (run["partition_key"], run["is_due"]) == ("2026-03-01", False)
    raw = run["assets"][0]
    assert (raw["name"], raw["is_complete"], raw["arrived"], raw["needed"], raw["missing_count"]) == ("raw", False, 2, 24, 22)
    assert raw["missing"][0] == "2026-03-01T02"
    assert len(raw["missing"]) == 20
    emit(lake, CLEAN, lake.clock.wall(), "eu")
    second = lake.json(path)["runs"][1]
    assert second["partition_key"] == "all"
    assert [(one["name"], one["missing"]) for one in second["assets"]][1] == ("clean", ["us"])
    assert second["assets"][0]["problem"], "the key of the other asset is no day"


def test_a_dag_without_assets_waits_for_none(lake: World) -> None:
    assert lake.json(f"{PAGE}/dags/load/awaitedAssets")["runs"] == []
    assert lake.json(f"{PAGE}/dags/nothing/awaitedAssets", 404)["detail"]


def test_a_viewer_may_see_all(lake: World) -> None:
    for path in ("assets/graph", f"assets/{number(lake, 'raw')}", "dags/scrub/awaitedAssets"):
        assert lake.request("GET", f"{PAGE}/{path}", "viewer").status_code == 200
