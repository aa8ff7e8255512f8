"""What people know from Airflow's own page: the legend of states, colours of operators, the buttons of a task, the audit log."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit
from tradewind.model.states import TaskState

FAMILIES = {
    "scheduled": (20, 45),  # tan
    "running": (60, 110),  # lime
    "success": (110, 160),  # green
    "failed": (340, 15),  # red
    "up_for_retry": (40, 60),  # gold
    "up_for_reschedule": (160, 190),  # turquoise
    "skipped": (310, 345),  # pink
    "upstream_failed": (20, 40),  # orange
    "deferred": (240, 280),  # purple
}
"""State → the span of hues in which Airflow's colour for it lies, degrees."""

HUE = """(icon) => {
  const [r, g, b] = getComputedStyle(icon.querySelector("rect")).fill.match(/[\\d.]+/g).map((part) => part / 255);
  const most = Math.max(r, g, b), span = most - Math.min(r, g, b);
  const hue = most === r ? ((g - b) / span) % 6 : most === g ? (b - r) / span + 2 : (r - g) / span + 4;
  return (hue * 60 + 360) % 360;
}"""


@pytest.mark.spec("S151", "S455")
def test_the_legend_has_each_state_with_airflows_word_and_colour(visit: Visit) -> None:
    page = visit.page
    page.goto("/")
    page.get_by_role("button", name="Keys and states (?)").click()
    legend = page.get_by_role("list", name="States")
    legend.wait_for()
    words = [code.inner_text() for code in legend.locator("code").all()]
    assert set(words) == {state.value for state in TaskState if state is not TaskState.NONE} | {"null"}
    assert visit.axe_in_both_themes() == []
    for state, (low, high) in FAMILIES.items():
        entry = legend.get_by_role("listitem").filter(has=page.locator("code", has_text=re.compile(f"^{state}$")))
        hue = entry.locator("svg").evaluate(HUE)
        assert low <= hue <= high if low < high else (hue >= low or hue <= high), (state, hue)


COLOURED = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator
from tradewind.operators.empty import EmptyOperator

class Loud(BashOperator):
    ui_color = "#ff8800"

with DAG("coloured", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    Loud(task_id="loud", bash_command="true")
"""


@pytest.mark.spec("S456", "S459")
def test_a_task_has_the_colour_of_its_operator_and_buttons_to_clear_and_mark(visit: Visit, server: Standalone) -> None:
    """A clear runs the task again."""
    server.write_dag("coloured.py", COLOURED)
    server.wait_dag("coloured", 60)
    server.cli("dags", "unpause", "coloured")
    run_id = server.trigger("coloured")
    assert server.wait_run("coloured", run_id) == "success"
    page = visit.page
    page.goto(f"/dags/coloured/runs/{quote(run_id, safe='')}/tasks/loud?tab=details")
    page.locator("[data-color='#ff8800']").wait_for()
    page.get_by_role("button", name="Clear…").click()
    page.get_by_role("dialog").get_by_role("button", name="Clear 1 task instance", exact=True).click()
    page.get_by_role("link", name="Try 2: success").wait_for()
    page.get_by_role("button", name="Mark…").click()
    page.get_by_role("dialog").get_by_role("button", name="New state").click()
    page.get_by_role("option", name="failed", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Mark 1 task instance as failed").click()
    page.locator("header").get_by_text("failed", exact=True).first.wait_for()


@pytest.mark.spec("S460")
def test_an_action_of_the_page_is_in_the_audit_log_with_its_user(visit: Visit, server: Standalone) -> None:
    server.cli("dags", "pause", "never_ran")
    page = visit.page
    page.goto("/dags/never_ran")
    page.locator("header label", has=page.get_by_role("switch")).click()
    page.locator("header").get_by_text("Active", exact=True).wait_for()
    page.goto("/admin/audit?q=never_ran")
    row = page.get_by_role("row").filter(has_text="never_ran").first
    row.wait_for()
    assert "admin" in row.inner_text()
    server.cli("dags", "pause", "never_ran")
