"""Links of plugins: in the bar of the page, and on the page of a task instance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import TIMEOUT, Visit

PLUGIN = """
from airflow.models import BaseOperatorLink
from airflow.plugins_manager import AirflowPlugin

class Wiki(BaseOperatorLink):
    name = "Wiki of the task"

    def get_link(self, operator, *, ti_key):
        return f"https://wiki.example/{ti_key.dag_id}/{operator.task_id}"

class Bad(BaseOperatorLink):
    name = "Script"

    def get_link(self, operator, *, ti_key):
        return "javascript:alert(1)"

class Links(AirflowPlugin):
    name = "links"
    global_operator_extra_links = [Wiki(), Bad()]
    external_views = [
        {"name": "Costs", "href": "https://costs.example/", "category": "Company"},
        {"name": "Script", "href": "javascript:alert(1)"},
    ]
    appbuilder_menu_items = [{"name": "Lake", "href": "https://lake.example/"}]
"""

DAG = """
from airflow import DAG
from airflow.operators.bash import BashOperator

with DAG("page_linked", schedule=None, is_paused_upon_creation=False):
    BashOperator(task_id="hello", bash_command="echo hello")
"""


@pytest.fixture
def plugin(server: Standalone) -> Iterator[None]:
    """The plugin, from the moment when the parser has listed it until the end of the test."""
    file = server.home / "plugins" / "links_of_ours.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(PLUGIN)
    server.wait(lambda: "links_of_ours" in server.cli("plugins", "-o", "json"), "the plugin", TIMEOUT)
    yield
    file.unlink()
    server.wait(lambda: "links_of_ours" not in server.cli("plugins", "-o", "json"), "the end of the plugin", TIMEOUT)


def test_links_of_plugins_are_in_the_bar_and_on_the_task(visit: Visit, server: Standalone, plugin: None) -> None:
    server.write_dag("page_linked.py", DAG)
    server.wait_dag("page_linked", TIMEOUT)
    run = server.trigger("page_linked")
    server.wait_run("page_linked", run, deadline=TIMEOUT)
    page = visit.page
    page.goto(f"/dags/page_linked/runs/{run}/tasks/hello")
    link = page.get_by_role("link", name="Wiki of the task")
    assert link.get_attribute("href") == "https://wiki.example/page_linked/hello"
    bar = page.get_by_role("navigation", name="Places")
    assert (
        bar.get_by_role("region", name="Company").get_by_role("link", name="Costs").get_attribute("href")
        == "https://costs.example/"
    )
    assert bar.get_by_role("link", name="Lake").get_attribute("href") == "https://lake.example/"
    assert page.get_by_role("link", name="Script").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    assert visit.axe_in_both_themes() == []
