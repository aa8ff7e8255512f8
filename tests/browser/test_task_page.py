"""The page of a task instance in a browser: links of its operator, and the answer to its question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import TIMEOUT, Visit

SOURCE = """
import os, signal, time
from datetime import datetime
from tradewind import DAG, BaseOperator, BaseOperatorLink
from tradewind.operators.hitl import ApprovalOperator

class JobLink(BaseOperatorLink):
    name = "Job page"

    def get_link(self, operator, *, ti_key):
        return "https://jobs.example.com/7"

class BadLink(BaseOperatorLink):
    name = "Script"

    def get_link(self, operator, *, ti_key):
        return "javascript:window.attacked=1"

class Submit(BaseOperator):
    operator_extra_links = (JobLink(), BadLink())

    def execute(self, context):
        print("submitted")

class KilledInItsWork(BaseOperator):
    def execute(self, context):
        held = bytearray(80_000_000)
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        os.kill(os.getpid(), signal.SIGKILL)

with DAG("page_killed", start_date=datetime(2024, 1, 1), schedule=None, is_paused_upon_creation=False):
    KilledInItsWork(task_id="hungry")

with DAG("page_task", start_date=datetime(2024, 1, 1), schedule=None, is_paused_upon_creation=False):
    Submit(task_id="submit") >> ApprovalOperator(task_id="approve", subject="Pay the invoice?")
"""


@pytest.fixture(scope="module")
def task_run(server: Standalone) -> Iterator[str]:
    """The address of a run whose first task set its links, and whose second one asks a question."""
    path = server.write_dag("page_task.py", SOURCE)
    server.wait_dag("page_task", TIMEOUT)
    run = server.trigger("page_task")
    server.wait_task("page_task", run, "approve", ("awaiting_input",))
    yield f"/dags/page_task/runs/{quote(run, safe='')}"
    path.unlink()


def test_links_of_the_operator_lead_out_of_the_page(visit: Visit, task_run: str) -> None:
    """A task writes the address: one that is a script is only a word."""
    visit.page.goto(f"{task_run}/tasks/submit")
    link = visit.page.get_by_role("link", name="Job page")
    link.wait_for()
    assert link.get_attribute("href") == "https://jobs.example.com/7"
    assert link.get_attribute("rel") == "noreferrer"
    visit.page.locator("header").get_by_text("Script", exact=True).wait_for()
    assert visit.page.get_by_role("link", name="Script").count() == 0
    assert visit.axe_in_both_themes() == []


def attempt_of(visit: Visit, task: str) -> Any:
    """The last attempt of a task instance; `task` is the address of its page."""
    return visit.get(f"/api/tradewind/v1{task}")["attempts"][-1]


def test_an_attempt_shows_what_it_has_used(visit: Visit, task_run: str) -> None:
    attempt = attempt_of(visit, f"{task_run}/tasks/submit")
    assert 0 < attempt["cpu_seconds"] < TIMEOUT
    assert 5_000_000 < attempt["peak_memory_bytes"] < 2_000_000_000
    visit.page.goto(f"{task_run}/tasks/submit?tab=details")
    row = visit.page.get_by_role("row").filter(has_text="success").first
    row.get_by_text(" MB").wait_for()


def test_an_attempt_that_was_killed_shows_what_it_had_used(visit: Visit, server: Standalone, task_run: str) -> None:
    """It sends no report: its parent has measured it. Memory is what people ask for after such an end."""
    run = server.trigger("page_killed")
    server.wait_task("page_killed", run, "hungry", ("failed",))
    attempt = attempt_of(visit, f"/dags/page_killed/runs/{quote(run, safe='')}/tasks/hungry")
    assert attempt["signal"] == 9
    assert attempt["cpu_seconds"] >= 0.1
    assert attempt["peak_memory_bytes"] >= 80_000_000


def test_a_question_is_answered_on_the_page_of_its_task(visit: Visit, task_run: str) -> None:
    visit.page.goto(f"{task_run}/tasks/approve")
    question = visit.page.get_by_role("region", name="Pay the invoice?")
    question.wait_for()
    assert visit.axe_in_both_themes() == []
    question.get_by_role("button", name="Approve").click()
    question.wait_for(state="detached")
    visit.page.locator("header").get_by_text("success", exact=True).first.wait_for()


def test_an_xcom_is_edited_and_deleted(visit: Visit, server: Standalone) -> None:
    server.cli("dags", "unpause", "hello_page")
    run = server.trigger("hello_page")
    server.wait_run("hello_page", run, deadline=TIMEOUT)
    visit.page.goto(f"/dags/hello_page/runs/{quote(run, safe='')}/tasks/numbers?tab=xcom")
    value = visit.page.get_by_role("region", name="return_value")
    value.get_by_role("button", name="Edit").click()
    field = value.get_by_label("Value, as JSON")
    field.fill("[4, 5")
    value.get_by_text("This is not JSON.").wait_for()
    field.fill('["***"]')
    value.get_by_text("The value has masked parts").wait_for()
    assert visit.axe_in_both_themes() == []
    field.fill("[4, 5]")
    value.get_by_role("button", name="Save").click()
    field.wait_for(state="detached")
    path = f"/api/v2/dags/hello_page/dagRuns/{quote(run, safe='')}/taskInstances/numbers/xcomEntries/return_value"
    assert visit.get(path)["value"] == [4, 5]
    value.get_by_role("button", name="Delete this XCom").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    visit.page.get_by_text("It has pushed no XComs").wait_for()


RETRY = """
from datetime import datetime, timedelta
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("page_retry", start_date=datetime(2024, 1, 1), schedule=None, is_paused_upon_creation=False):
    BashOperator(task_id="later", bash_command="exit 1", retries=1, retry_delay=timedelta(hours=5))
"""


def test_the_reasons_tell_moments_in_the_chosen_zone(windows: Callable[..., Visit], server: Standalone) -> None:
    path = server.write_dag("page_retry.py", RETRY)
    server.wait_dag("page_retry", TIMEOUT)
    run = server.trigger("page_retry")
    server.wait_task("page_retry", run, "later", ("up_for_retry",))
    path.unlink()
    visit = windows(timezone_id="Asia/Seoul").log_in(server)
    address = f"/api/v2/dags/page_retry/dagRuns/{quote(run, safe='')}/taskInstances/later/why"
    due = datetime.fromisoformat(visit.get(address)["blockers"][0]["not_before"])
    visit.page.goto(f"/dags/page_retry/runs/{quote(run, safe='')}/tasks/later?tab=why")
    reasons = visit.page.get_by_role("list", name="Reasons")
    for button, zone in (("", UTC), ("Local (Asia/Seoul)", ZoneInfo("Asia/Seoul"))):
        if button:
            visit.page.get_by_role("navigation", name="Places").get_by_role("button", name="UTC").click()
            visit.page.get_by_role("menuitem", name=button).click()
        shown = due.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")
        reasons.get_by_text(f"It waits for its next try at {shown}").wait_for()
