"""What a user does in the first ten minutes, in the page alone: from the login to a repaired run, and the four actions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit


def chip(visit: Visit, word: str) -> None:
    """Wait until the header of the run or the task shows this state. Nothing is read again by hand."""
    visit.page.locator("header").get_by_text(word, exact=True).first.wait_for()


def switch(visit: Visit, word: str) -> None:
    """Press the switch that pauses the DAG, and wait until it says `word`."""
    visit.page.locator("header label", has=visit.page.get_by_role("switch")).click()
    visit.page.locator("header").get_by_text(word, exact=True).wait_for()


def trigger(visit: Visit, dag_id: str, conf: str = "") -> None:
    """Trigger by the dialog of the DAG's page; its run is shown then."""
    visit.page.goto(f"/dags/{dag_id}/grid")
    visit.page.locator("header").get_by_role("button", name="Trigger", exact=True).click()
    dialog = visit.page.get_by_role("dialog")
    if conf:
        dialog.get_by_label("Configuration").fill(conf)
    dialog.get_by_role("button", name="Trigger", exact=True).click()
    visit.page.wait_for_url(f"**/dags/{dag_id}/runs/**")


def test_from_the_login_to_a_repaired_run(windows: Callable[..., Visit], server: Standalone) -> None:
    visit = windows()
    page = visit.page
    page.goto("/dags?q=broken")
    page.wait_for_url("**/login?next=**")
    assert visit.axe_in_both_themes() == []
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(server.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/dags?q=broken")
    visit.problems.clear()  # before the login, the page asked for what it may not see

    page.get_by_role("link", name="broken_load").click()
    switch(visit, "Active")
    trigger(visit, "broken_load")
    chip(visit, "failed")
    row = page.get_by_role("row").filter(has=page.get_by_text("load", exact=True))
    assert visit.axe_in_both_themes() == []

    row.click()
    page.wait_for_url("**/tasks/load*")
    log = page.get_by_role("log")
    log.get_by_text("reading the table").wait_for()
    log.get_by_text("KeyError: 'sku'").first.wait_for()
    page.get_by_role("button", name="Next error").click()
    page.wait_for_url(re.compile(r"#\d+$"))
    assert visit.axe_in_both_themes() == []

    server.dags_folder.joinpath("fixed.marker").touch()
    page.get_by_role("button", name="Clear…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("heading", name="2 task instances in 1 run will run again").wait_for()
    assert visit.axe_in_both_themes() == []
    dialog.get_by_role("button", name="Clear 2 task instances").click()
    page.get_by_text("2 task instances were cleared.").wait_for()
    chip(visit, "success")
    page.get_by_role("link", name="Try 2: success").wait_for()
    page.wait_for_url(lambda url: "#" not in url)  # the line that was marked is one of the first try
    page.locator("header").get_by_role("link", name="broken_load").click()
    page.get_by_role("heading", name="Last run").wait_for()


def test_a_clear_offers_the_newest_version_of_a_bundle_that_has_versions(visit: Visit) -> None:
    """A DAG folder has no versions: there each run follows its file anyway."""
    page = visit.page
    asked: list[dict[str, Any]] = []
    page.on("request", lambda one: asked.append(one.post_data_json) if one.url.endswith("/clear/preview") else None)

    def in_git(route: Any) -> None:
        answer = route.fetch()
        head = answer.json()
        head["details"]["bundle_version"] = "4be21f0"
        route.fulfill(response=answer, json=head)

    run = visit.get("/api/v2/dags/billing_daily/dagRuns?order_by=-run_after&limit=1")["dag_runs"][0]["dag_run_id"]
    address = f"/dags/billing_daily/runs/{quote(run, safe='')}"
    page.goto(address)
    page.get_by_role("button", name="Clear…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("will run again").wait_for()
    assert dialog.get_by_text("Newest version of the DAG bundle").count() == 0
    assert asked[-1]["run_on_latest_version"] is None
    page.route("**/api/tradewind/v1/dags/billing_daily", in_git)
    page.goto(address)
    page.get_by_role("button", name="Clear…").click()
    with page.expect_request(
        lambda one: one.url.endswith("/clear/preview") and one.post_data_json["run_on_latest_version"] is True
    ):
        dialog.get_by_text("Newest version of the DAG bundle").click()
    assert visit.axe_in_both_themes() == []


@pytest.mark.spec("S457")
def test_why_a_task_waits_names_the_task_that_holds_the_slot(visit: Visit, server: Standalone, tmp_path: Path) -> None:
    """The message after an action leaves the page as it is."""
    server.cli("pools", "set", "narrow", "1", "one slot")
    page = visit.page
    page.goto("/dags/waiting_for_a_pool")
    switch(visit, "Active")
    gate = tmp_path / "gate"
    trigger(visit, "waiting_for_a_pool", f'{{"gate": "{gate}"}}')
    page.get_by_text("was created.").wait_for()
    page.get_by_role("row").filter(has_text="second").click()
    page.wait_for_url("**/tasks/second*")
    reasons = page.get_by_role("list", name="Reasons")
    reasons.get_by_role("heading", name="The pool has too few free slots").wait_for()
    reasons.get_by_role("link", name="waiting_for_a_pool.first").wait_for()
    page.get_by_text("tradewind why waiting_for_a_pool second").wait_for()
    assert visit.axe_in_both_themes() == []
    gate.touch()
    chip(visit, "success")
    page.get_by_role("link", name="Log", exact=True).click()
    page.get_by_role("log").get_by_text("done", exact=True).wait_for()


def test_the_trigger_form_is_made_from_the_params(visit: Visit) -> None:
    visit.expected = ("400",)  # the server refuses a name of one letter
    page = visit.page
    page.goto("/dags/hello_page")
    page.locator("header").get_by_role("button", name="Trigger", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("name").fill("x")
    dialog.get_by_label("copies").fill("3")
    assert visit.axe_in_both_themes() == []
    dialog.get_by_role("button", name="Trigger", exact=True).click()
    dialog.get_by_role("alert").wait_for()
    dialog.get_by_label("name").fill("page")
    dialog.get_by_role("tab", name="JSON").click()
    assert '"copies": 3' in dialog.get_by_label("Configuration").input_value()
    dialog.get_by_role("tab", name="Form").click()
    dialog.get_by_role("button", name="Trigger", exact=True).click()
    page.wait_for_url("**/dags/hello_page/runs/**")
    chip(visit, "success")
    run = visit.get("/api/v2/dags/hello_page/dagRuns?order_by=-run_after&limit=1")["dag_runs"][0]
    assert run["conf"] == {"name": "page", "copies": 3}
    page.get_by_role("row").filter(has_text="greet").click()
    page.get_by_role("log").get_by_text("hello page").first.wait_for()


def test_the_values_of_a_former_run_fill_the_trigger_form(visit: Visit, server: Standalone) -> None:
    headers = {"X-Tradewind-Request": "1", "Origin": server.address}
    asked = {"logical_date": None, "dag_run_id": "former", "conf": {"name": "former", "copies": 4}}
    made = visit.context.request.post("/api/v2/dags/hello_page/dagRuns", data=asked, headers=headers)
    assert made.ok, made.text()
    page = visit.page
    page.goto("/dags/hello_page/details")
    page.locator("header").get_by_role("button", name="Trigger", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Values").click()
    page.get_by_role("option", name="former").click()
    assert dialog.get_by_label("name").input_value() == "former"
    assert dialog.get_by_label("copies").input_value() == "4"
    assert visit.axe_in_both_themes() == []
    dialog.get_by_role("button", name="Save as preset").click()
    dialog.get_by_label("Name of the preset").fill("evening")
    assert visit.axe_in_both_themes() == []
    dialog.get_by_role("button", name="Save", exact=True).click()
    dialog.get_by_role("button", name="Values").click()
    page.get_by_role("option", name="Default values").click()
    assert dialog.get_by_label("name").input_value() == "world"
    page.reload()
    page.locator("header").get_by_role("button", name="Trigger", exact=True).click()
    dialog.get_by_role("button", name="Values").click()
    page.get_by_role("option", name="evening").click()
    assert dialog.get_by_label("copies").input_value() == "4"
    dialog.get_by_role("button", name="Delete the preset evening").click()
    dialog.get_by_role("button", name="Delete the preset evening").wait_for(state="detached")


def test_a_dag_is_deleted_after_the_page_said_what_is_lost(visit: Visit, server: Standalone) -> None:
    visit.expected = ("/dags/short_lived", "status of 404", "There is no DAG")  # the page may ask once more for the deleted DAG
    path = server.write_dag("short_lived.py", NEW.replace("brand_new_dag", "short_lived"))
    server.wait_dag("short_lived")
    path.unlink()
    visit.page.goto("/dags/short_lived/details")
    visit.page.get_by_role("button", name="Delete DAG…").click()
    dialog = visit.page.get_by_role("dialog")
    dialog.get_by_text("All its runs, task instances and XComs are deleted.").wait_for()
    assert visit.axe_in_both_themes() == []
    dialog.get_by_role("button", name="Delete", exact=True).click()
    visit.page.get_by_role("heading", name="DAGs", level=1).wait_for()
    assert visit.context.request.get("/api/v2/dags/short_lived").status == 404


def test_a_backfill_shows_its_runs_before_it_creates_them(visit: Visit, server: Standalone) -> None:
    page = visit.page
    server.cli("dags", "unpause", "daily_sums")
    page.goto("/dags/daily_sums")

    def open_dialog() -> Any:
        page.locator("header").get_by_role("button", name="Backfill").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("First day (UTC)").fill("2024-03-01")
        dialog.get_by_label("Last day (UTC)").fill("2024-03-03")
        return dialog

    dialog = open_dialog()
    dialog.get_by_text("2024-03-02").wait_for()
    assert visit.axe_in_both_themes() == []
    dialog.get_by_role("button", name="Create 3 runs").click()
    page.get_by_text("The backfill with 3 runs was created.").wait_for()
    runs = visit.get("/api/v2/dags/daily_sums/dagRuns?run_type=backfill")["dag_runs"]
    assert sorted(run["logical_date"][:10] for run in runs) == ["2024-03-01", "2024-03-02", "2024-03-03"]
    for run in runs:
        assert server.wait_run("daily_sums", run["dag_run_id"]) == "success"
    page.goto("/dags/daily_sums/runs?type=backfill")
    page.get_by_role("row").filter(has_text="2024-03-02").wait_for()
    dialog = open_dialog()
    dialog.get_by_text("its run exists").first.wait_for()
    assert dialog.get_by_role("button", name="Create 0 runs").get_attribute("aria-disabled") == "true"


def test_pausing_is_seen_at_once_and_kept(visit: Visit, server: Standalone) -> None:
    page = visit.page
    server.cli("dags", "pause", "daily_sums")
    page.goto("/dags/daily_sums")
    page.locator("header").get_by_text("Paused", exact=True).wait_for()
    for word, paused in (("Active", False), ("Paused", True)):
        with page.expect_response(lambda answer: answer.request.method == "PATCH") as answered:
            switch(visit, word)
        assert answered.value.json()["is_paused"] is paused
        assert visit.get("/api/v2/dags/daily_sums")["is_paused"] is paused
    page.reload()
    page.locator("header").get_by_text("Paused", exact=True).wait_for()


@pytest.mark.spec("S454")
def test_a_new_file_appears_in_the_list_of_dags(visit: Visit, server: Standalone) -> None:
    page = visit.page
    page.goto("/dags?q=brand_new")
    page.get_by_role("heading", name="No DAG matches").wait_for()
    server.write_dag("brand_new.py", NEW)
    page.get_by_role("link", name="brand_new_dag").wait_for()


NEW = """
import datetime
from airflow import DAG
from airflow.operators.bash import BashOperator

with DAG("brand_new_dag", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    BashOperator(task_id="only", bash_command="true")
"""
