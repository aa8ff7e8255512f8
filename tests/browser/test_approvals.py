"""Questions of tasks to people, answered in a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit

SOURCE = """
from datetime import datetime
from tradewind import DAG, Param, task
from tradewind.operators.hitl import ApprovalOperator, HITLEntryOperator

with DAG("page_asks", start_date=datetime(2024, 1, 1), schedule=None, is_paused_upon_creation=False):
    fill_in = HITLEntryOperator(
        task_id="fill_in", subject="How many copies?", params={"copies": Param(1, type="integer", minimum=1, maximum=9)}
    )
    approve = ApprovalOperator(task_id="approve", subject="Publish the report?", body="<b>Three</b> copies")

    @task
    def publish(answer):
        print("copies:", answer["params_input"]["copies"])

    fill_in >> approve >> publish(fill_in.output)
"""


@pytest.fixture
def asked(server: Standalone) -> Iterator[str]:
    """The id of a run that waits for the first answer."""
    path = server.write_dag("page_asks.py", SOURCE)
    server.wait_dag("page_asks")
    run = server.trigger("page_asks")
    server.wait_task("page_asks", run, "fill_in", ("awaiting_input",))
    yield run
    path.unlink()


def test_questions_are_answered_until_the_run_succeeds(visit: Visit, server: Standalone, asked: str) -> None:
    visit.page.goto("/approvals")
    card = visit.page.get_by_role("listitem", name="How many copies?")
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        card.wait_for()
        assert visit.axe() == []
    visit.page.keyboard.press("j")  # the first question
    assert card.evaluate("one => one === document.activeElement")
    card.get_by_label("copies").fill("10")
    card.get_by_text("Enter a value that fits the field.").wait_for()
    card.get_by_label("copies").fill("3")
    card.get_by_role("button", name="OK").click()
    card = visit.page.get_by_role("listitem", name="Publish the report?")  # comes without a reload
    card.get_by_text("<b>Three</b> copies").wait_for()
    card.get_by_role("button", name="Approve").click()
    assert server.wait_run("page_asks", asked) == "success"
    assert "copies: 3" in server.cli("tasks", "logs", "page_asks", "publish", asked)
    visit.page.get_by_role("button", name="Answered", exact=True).click()
    card.get_by_text("admin answered: Approve").wait_for()
    assert "show=answered" in visit.page.url
    # React Aria announces a pending button for some seconds, in an invisible element that names the button
    visit.page.locator("[data-live-announcer] [role=img]").first.wait_for(state="detached")
    assert visit.axe() == []


def test_without_questions_the_page_says_where_they_come_from(visit: Visit) -> None:
    visit.page.goto("/approvals?q=nobody+asks+this")
    visit.page.get_by_text("HITLOperator").wait_for()
    assert visit.axe() == []
