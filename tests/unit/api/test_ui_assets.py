"""The page of an asset, and the graph of assets and DAGs."""

from __future__ import annotations

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, register
from tradewind.model.assets import AllOf, AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import DagDefinition, TaskDefinition

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


def test_a_viewer_may_see_both(lake: World) -> None:
    for path in ("graph", str(number(lake, "raw"))):
        assert lake.request("GET", f"{PAGE}/assets/{path}", "viewer").status_code == 200
