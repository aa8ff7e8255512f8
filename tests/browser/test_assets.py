"""Assets in a browser: the list, one asset with its events, materialising, the graph of assets and DAGs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit

SOURCE = """
import datetime
from airflow.sdk import FixedKeyMapper, PartitionedAssetTimetable, RollupMapper, SegmentWindow
from tradewind import DAG, Asset
from tradewind.operators.bash import BashOperator

raw, other, clean, apart = (Asset(f"s3://page/{name}") for name in ("raw", "other", "clean", "apart"))
with DAG("page_ingest", start_date=datetime.datetime(2024, 1, 1), schedule=None, is_paused_upon_creation=False):
    BashOperator(task_id="load", bash_command="echo", outlets=[raw])
with DAG("page_clean", start_date=datetime.datetime(2024, 1, 1), schedule=[raw, other], is_paused_upon_creation=False):
    BashOperator(task_id="scrub", bash_command="echo", outlets=[clean])
with DAG(
    "page_regions", start_date=datetime.datetime(2024, 1, 1), is_paused_upon_creation=False,
    schedule=PartitionedAssetTimetable(
        assets=Asset("s3://page/regions"),
        default_partition_mapper=RollupMapper(upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(["eu", "us"])),
    ),
):
    BashOperator(task_id="join", bash_command="echo")
with DAG("page_apart", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    BashOperator(task_id="load", bash_command="echo", outlets=[apart])
"""


@pytest.fixture(scope="module")
def lake(server: Standalone) -> Iterator[Standalone]:
    """page_ingest → raw → page_clean → clean; page_clean also waits for other, which nobody produces; page_apart → apart.

    page_regions waits for both partition keys of regions.
    """
    path = server.write_dag("page_assets.py", SOURCE)
    for dag_id in ("page_ingest", "page_clean", "page_apart", "page_regions"):
        server.wait_dag(dag_id)
    yield server
    path.unlink()


def open_asset(visit: Visit, name: str) -> None:
    visit.page.goto("/assets")
    visit.page.get_by_role("table", name="Assets").get_by_role("link", name=name, exact=True).click()
    visit.page.get_by_role("heading", level=1, name=name).wait_for()


def axe_in_both_themes(visit: Visit) -> list[str]:
    found = []
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found += visit.axe()
    return found


def graph(visit: Visit) -> Any:
    return visit.page.get_by_role("group", name="Graph", exact=True)


def test_an_asset_is_materialised_and_its_event_arrives_by_itself(visit: Visit, lake: Standalone) -> None:
    open_asset(visit, "s3://page/raw")
    assert axe_in_both_themes(visit) == []
    visit.page.get_by_role("button", name="Materialise").click()
    visit.page.get_by_text("This starts a run of page_ingest, whose task load produces the asset.").wait_for()
    visit.page.get_by_role("dialog").get_by_role("button", name="Materialise").click()
    visit.page.get_by_role("link", name="page_ingest · load").first.wait_for()
    visit.page.get_by_text(re.compile("^event queued")).wait_for()
    visit.page.get_by_role("button", name="Discard the queued events").click()
    visit.page.get_by_text("no event queued").wait_for()


def test_an_event_is_added_by_hand(visit: Visit, lake: Standalone) -> None:
    open_asset(visit, "s3://page/apart")
    visit.page.get_by_role("button", name="Add event").click()
    form = visit.page.get_by_role("dialog")
    form.get_by_label("Extra").fill("[1]")
    form.get_by_text("This is no JSON object.").wait_for()
    form.get_by_label("Extra").fill('{"rows": 5}')
    assert visit.axe() == []
    form.get_by_role("button", name="Add event").click()
    visit.page.get_by_text('"rows":5').wait_for()


def test_the_graph_shows_assets_and_dags_and_narrows_to_one_asset(visit: Visit, lake: Standalone) -> None:
    open_asset(visit, "s3://page/clean")
    visit.page.get_by_role("link", name="Graph").click()
    boxes = graph(visit).get_by_role("listitem")
    boxes.first.wait_for()
    assert sorted(box.get_by_role("link").get_attribute("aria-label") for box in boxes.all()) == [
        "Asset s3://page/clean",
        "Asset s3://page/other",
        "Asset s3://page/raw",
        "DAG page_clean",
        "DAG page_ingest",
    ]
    assert axe_in_both_themes(visit) == []
    visit.page.get_by_role("button", name="Show all assets").click()
    graph(visit).get_by_role("link", name="Asset s3://page/apart").wait_for()
    visit.page.get_by_role("button", name="List").click()
    visit.page.get_by_placeholder("Search assets").fill("nothing is called like this")
    visit.page.get_by_role("heading", name="No asset matches").wait_for()
    assert visit.axe() == []


def test_a_dag_with_partitions_names_the_keys_that_are_missing(visit: Visit, lake: Standalone) -> None:
    visit.page.goto("/dags/page_regions")
    card = visit.page.get_by_role("region", name="What the next run waits for")
    card.get_by_text("No partition key waits.").wait_for()
    asset = next(one for one in visit.get("/api/v2/assets")["assets"] if one["name"] == "s3://page/regions")["id"]
    visit.page.goto(f"/assets/{asset}")
    visit.page.get_by_role("button", name="Add event").click()
    form = visit.page.get_by_role("dialog")
    form.get_by_label("Partition key").fill("eu")
    form.get_by_role("button", name="Add event").click()
    visit.page.get_by_text("Partition key eu").wait_for()
    visit.page.goto("/dags/page_regions")
    card.get_by_text("1 of 2 keys").wait_for()
    card.get_by_text("us", exact=True).wait_for()
    assert visit.axe_in_both_themes() == []
    visit.page.goto("/dags/page_regions/details")
    visit.page.get_by_text("For each partition key, when its assets were updated").first.wait_for()
    keys = visit.page.get_by_role("region", name="Assets of the schedule")
    keys.get_by_text("1 of 2 keys").wait_for()
    keys.get_by_text("us", exact=True).wait_for()
    assert visit.axe_in_both_themes() == []
    visit.page.goto("/dags/page_regions")
    card.get_by_role("link", name="s3://page/regions").click()
    visit.page.get_by_text("Partition key eu").wait_for()
    visit.page.get_by_text("What it waits for").click()
    visit.page.get_by_text("1 of 2 keys").wait_for()
    assert visit.axe_in_both_themes() == []


def test_opening_an_asset_needs_one_address(visit: Visit, lake: Standalone) -> None:
    """The page asks a second time when its stream opens: something may have changed before that."""
    open_asset(visit, "s3://page/raw")
    asked: list[str] = []
    visit.page.on("request", lambda one: asked.append(one.url) if "/api/" in one.url and "asset" in one.url else None)
    visit.page.reload()
    visit.page.get_by_role("heading", name="Events").wait_for()
    assert len(set(asked)) == 1, asked
