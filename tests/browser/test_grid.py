"""The grid of a DAG in a browser: drawn from the server's answer, by pointer and by keys, with few requests."""

from __future__ import annotations

import re

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit

GRID = "/dags/billing_daily/grid"


def open_grid(visit: Visit, path: str = GRID) -> None:
    visit.page.goto(path)
    visit.page.get_by_role("grid", name="Tasks and runs").wait_for()


def test_opening_the_grid_costs_two_requests(visit: Visit) -> None:
    """At a first visit the page also asks for the account, and once for what has changed before its stream was open."""
    asked: list[str] = []
    visit.page.on("request", lambda one: asked.append(one.url.split("/api/", 1)[1]) if "/api/" in one.url else None)
    open_grid(visit)
    visit.page.get_by_role("link", name="Triage").wait_for()
    own = [path for path in asked if "/dags/billing_daily" in path and "since=" not in path]
    assert len(own) == 2, own


def test_a_click_chooses_a_cell_and_the_address_keeps_it(visit: Visit) -> None:
    open_grid(visit)
    box = visit.page.locator("canvas").bounding_box()
    assert box is not None
    visit.page.mouse.click(box["x"] + box["width"] - 120, box["y"] + 60)
    aside = visit.page.get_by_role("complementary", name="Selection")
    name = aside.get_by_role("heading").inner_text()
    aside.get_by_text("default_pool").wait_for()
    assert "task=" in visit.page.url
    assert "run=" in visit.page.url
    visit.page.reload()
    assert visit.page.get_by_role("complementary", name="Selection").get_by_role("heading").inner_text() == name


def test_the_cells_of_few_runs_stand_beside_the_names(visit: Visit, server: Standalone) -> None:
    server.cli("dags", "unpause", "hello_page")
    server.wait_run("hello_page", server.trigger("hello_page"))
    open_grid(visit, "/dags/hello_page/grid")
    box = visit.page.locator("canvas").bounding_box()
    assert box is not None
    visit.page.mouse.click(box["x"] + 11, box["y"] + 12)  # the oldest run
    visit.page.get_by_role("complementary", name="Selection").get_by_role("heading", name="greet").wait_for()


def test_keys_move_the_active_cell_and_find_failures(visit: Visit) -> None:
    open_grid(visit)
    grid = visit.page.get_by_role("grid", name="Tasks and runs")
    grid.focus()
    active = visit.page.locator("#grid-active")
    before = active.inner_text()
    visit.page.keyboard.press("ArrowDown")
    assert active.inner_text() != before
    visit.page.keyboard.press("[")
    assert active.inner_text().endswith("failed")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**/tasks/**")


def test_a_count_leads_to_its_task_instances(visit: Visit) -> None:
    open_grid(visit, f"{GRID}?fold=*")
    visit.page.get_by_role("button", name=re.compile("^failed ")).click()
    visit.page.wait_for_url("**task=**")
    first = visit.page.url
    aside = visit.page.get_by_role("complementary", name="Selection")
    aside.get_by_text("failed", exact=True).first.wait_for()
    assert visit.page.locator("#grid-active").inner_text().endswith("failed")
    visit.page.get_by_role("button", name=re.compile("^failed ")).click()
    visit.page.wait_for_url(lambda url: url != first)


def test_folds_and_filter_are_in_the_address(visit: Visit) -> None:
    open_grid(visit)
    rows = visit.page.get_by_role("grid", name="Tasks and runs")
    every = int(rows.get_attribute("aria-rowcount") or 0)
    visit.page.get_by_role("button", name="Close groups").click()
    visit.page.wait_for_url("**fold=*")
    assert int(rows.get_attribute("aria-rowcount") or 0) < every
    visit.page.get_by_role("searchbox", name="Filter tasks").fill("00007")
    visit.page.wait_for_url("**filter=00007*")
    visit.page.get_by_text("extract_billing_00007").wait_for()


def test_a_dag_without_runs_says_how_to_get_one(visit: Visit) -> None:
    visit.page.goto("/dags/never_ran/grid")
    visit.page.get_by_role("heading", name="No runs yet").wait_for()
    visit.page.get_by_role("button", name="Trigger the first run").wait_for()
