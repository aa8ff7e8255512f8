"""The grid of a DAG in a browser: drawn from the server's answer, by pointer and by keys, with few requests."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

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


CUT = """() => {
  const bars = [...document.querySelectorAll("[class*=barsView]")].map((one) => one.getBoundingClientRect());
  return [...document.querySelectorAll("[class*=barsView] [class*=date]")]
    .map((one) => [one.textContent, one.getBoundingClientRect()])
    .filter(([, box]) => box.right > bars[0].left && (box.left < bars[0].left || box.right > bars[0].right + 1))
    .map(([text, box]) => `${text} at ${box.left} in ${bars[0].left} to ${bars[0].right}`);
}"""
"""Dates below the bars that are only partly in view."""


@pytest.mark.parametrize("width", [1440, 1280, 1024, 390])
def test_no_date_below_the_bars_is_cut(windows: Callable[..., Visit], server: Standalone, width: int) -> None:
    visit = windows(viewport={"width": width, "height": 800}).log_in(server)
    open_grid(visit)
    visit.page.locator("canvas").wait_for()
    assert visit.page.evaluate("document.querySelectorAll('[class*=barsView] [class*=date]').length") >= 2
    assert visit.page.evaluate(CUT) == []


def test_no_run_is_cut_at_the_left_edge(windows: Callable[..., Visit], server: Standalone) -> None:
    """The newest run is in view, and the width of the names is such that whole columns stand beside them."""
    visit = windows(viewport={"width": 1024, "height": 800}).log_in(server)
    open_grid(visit)
    grid = visit.page.get_by_role("grid", name="Tasks and runs")
    offset = grid.evaluate("(one) => [one.scrollLeft, one.scrollLeft % 22]")
    assert offset[0] > 0, "all runs fit, so the test shows nothing"
    assert offset[1] == 0


def test_runs_of_one_day_show_their_times(visit: Visit, server: Standalone) -> None:
    server.cli("dags", "unpause", "hello_page")
    for _ in range(6):
        server.wait_run("hello_page", server.trigger("hello_page"))
    open_grid(visit, "/dags/hello_page/grid")
    labels = visit.page.locator("[class*=barsView] [class*=date]")
    labels.nth(1).wait_for()
    texts = labels.all_text_contents()
    assert sum("-" in text for text in texts) <= 2, texts
    assert any(re.fullmatch(r"\d\d:\d\d", text) for text in texts), texts
