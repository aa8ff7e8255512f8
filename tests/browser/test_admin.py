"""The admin page in a browser: each section, and the forms that change something."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit

SECTIONS = {
    "variables": "Variables",
    "connections": "Connections",
    "import-errors": "Import errors",
    "backfills": "Backfills",
    "callbacks": "Failed callbacks",
    "audit": "Audit log",
    "jobs": "Jobs and workers",
    "config": "Configuration",
    "plugins": "Plugins",
    "providers": "Providers",
    "users": "Users and services",
    "roles": "Roles",
    "teams": "Teams",
    "tokens": "Tokens of all users",
    "sessions": "Sessions of all users",
    "account": "Account and tokens",
}
"""The last part of the address of each section → its heading."""


def open_section(visit: Visit, section: str) -> None:
    visit.page.goto(f"/admin/{section}")
    visit.page.get_by_role("heading", level=1, name=SECTIONS[section.partition("?")[0]]).wait_for()


def form(visit: Visit) -> Any:
    """The sheet or dialog that is open."""
    return visit.page.get_by_role("dialog")


def sheet_closed(visit: Visit) -> None:
    visit.page.get_by_role("dialog").wait_for(state="detached")


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_has_no_violation_in_either_theme(visit: Visit, section: str) -> None:
    open_section(visit, section)
    while (loading := visit.page.get_by_role("status", name="Loading")).count():  # a section may have several lists
        loading.first.wait_for(state="detached")
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visit.axe() == []


def test_every_section_is_in_the_list_at_the_side(visit: Visit) -> None:
    open_section(visit, "variables")
    links = visit.page.get_by_role("navigation", name="Sections").get_by_role("link")
    assert [link.get_attribute("href") for link in links.all()] == [f"/admin/{section}" for section in SECTIONS]


def test_a_variable_is_added_changed_found_and_deleted(visit: Visit, server: Standalone) -> None:
    open_section(visit, "variables")
    visit.page.get_by_role("button", name="Add variable").click()
    form(visit).get_by_label("Key", exact=True).fill("page_region")
    form(visit).get_by_label("Value").fill("eu-west-1")
    form(visit).get_by_role("button", name="Save").click()
    sheet_closed(visit)
    visit.page.get_by_role("button", name="page_region").click()
    assert "open=page_region" in visit.page.url  # the address can be sent to a colleague
    form(visit).get_by_label("Value").fill("eu-north-1")
    form(visit).get_by_role("button", name="Save").click()
    sheet_closed(visit)
    assert server.cli("variables", "get", "page_region").strip() == "eu-north-1"
    visit.page.goto("/admin/variables?q=page_reg&open=page_region")
    form(visit).get_by_role("button", name="Delete").click()
    visit.page.get_by_text("Tasks that read this variable will fail").wait_for()
    form(visit).get_by_role("button", name="Delete").click()
    sheet_closed(visit)
    visit.page.get_by_text("Nothing matches").wait_for()


def test_a_variable_beyond_the_first_page_is_found(
    visit: Visit, server: Standalone, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The server gives at most 100 rows in one answer."""
    file = tmp_path_factory.mktemp("variables") / "variables.json"
    file.write_text(json.dumps({f"many_{number:03d}": str(number) for number in range(150)}))
    server.cli("variables", "import", str(file))
    open_section(visit, "variables")
    visit.page.get_by_placeholder("Search keys").fill("many_149")
    visit.page.get_by_role("button", name="many_149").wait_for()


def test_the_form_of_a_connection_follows_its_type_and_hides_the_password(visit: Visit, server: Standalone) -> None:
    open_section(visit, "connections")
    visit.page.get_by_role("button", name="Add connection").click()
    form(visit).get_by_label("Connection id").fill("page_store")
    form(visit).get_by_label("Type").fill("aws")
    form(visit).get_by_label("Access key id").fill("AKIA1")
    form(visit).get_by_label("Secret access key").fill("very secret")
    assert form(visit).get_by_label("Host").count() == 0
    form(visit).get_by_role("button", name="Save").click()
    sheet_closed(visit)
    visit.page.get_by_role("button", name="page_store").click()
    assert form(visit).get_by_label("Secret access key").input_value() == "***"
    form(visit).get_by_label("Access key id").fill("AKIA2")
    form(visit).get_by_role("button", name="Save").click()
    sheet_closed(visit)
    assert "very secret" in server.cli("connections", "export", "-")  # *** keeps the stored password


def test_an_import_error_shows_the_line_of_the_source(visit: Visit, server: Standalone) -> None:
    path = server.write_dag("no_such_argument.py", "from tradewind import DAG\n\nDAG('x', no_such=1)\n")
    try:
        open_section(visit, "import-errors")
        visit.page.get_by_role("button", name="no_such_argument.py").click()
        visit.page.get_by_role("figure").get_by_text("DAG('x', no_such=1)").wait_for()
        visit.page.get_by_role("heading", name="Traceback").wait_for()
        assert visit.axe() == []
    finally:
        path.unlink()


def test_a_user_is_created_with_a_password_that_is_shown_once(visit: Visit, server: Standalone) -> None:
    open_section(visit, "users")
    visit.page.get_by_role("button", name="Add user").click()
    form(visit).get_by_label("User name").fill("page_ann")
    form(visit).get_by_role("button", name="Save").click()
    made = visit.page.get_by_role("dialog", name="The password of page_ann")
    password = made.locator("code").inner_text()
    visit.axe()
    made.get_by_role("button", name="Close").last.click()
    answer = visit.context.request.post("/auth/token", data={"username": "page_ann", "password": password})
    assert answer.ok
    visit.page.get_by_role("button", name="page_ann").click()
    form(visit).get_by_role("button", name="Delete").click()
    visit.page.get_by_text("deleted with all its tokens and sessions").wait_for()
    form(visit).get_by_role("button", name="Delete").click()
    visit.page.get_by_role("button", name="page_ann").wait_for(state="detached")
    assert "page_ann" not in server.cli("users", "list")


def test_a_custom_role_and_a_team_are_made_and_deleted(visit: Visit, server: Standalone) -> None:
    open_section(visit, "roles")
    visit.page.get_by_role("button", name="Add role").click()
    form(visit).get_by_label("Name").fill("page_finance")
    form(visit).get_by_label("DAG id or pattern").fill("invoice_*")
    form(visit).get_by_role("button", name="Save").click()
    sheet_closed(visit)
    visit.page.get_by_text("invoice_*: read").wait_for()
    open_section(visit, "teams")
    visit.page.get_by_role("button", name="Add team").first.click()
    form(visit).get_by_label("Name").fill("page_team")
    form(visit).get_by_role("button", name="Save").click()
    sheet_closed(visit)
    visit.page.get_by_role("button", name="page_team").click()
    form(visit).get_by_role("button", name="Add a member").click()
    form(visit).get_by_label("User name").fill("admin")
    form(visit).get_by_label("DAG ids or patterns").fill("page_only_*")
    form(visit).get_by_role("button", name="Save").click()
    sheet_closed(visit)
    assert "page_only_*" in server.cli("teams", "list")
    assert "page_finance" in server.cli("roles", "list")
    server.cli("teams", "delete", "page_team", "-y")
    server.cli("roles", "delete", "page_finance", "-y")


def test_the_health_of_each_component_stands_above_the_jobs(visit: Visit) -> None:
    open_section(visit, "jobs")
    cards = visit.page.get_by_role("list", name="Health of the components").get_by_role("listitem")
    visit.page.get_by_text("healthy").first.wait_for()
    assert [card.locator("b").inner_text() for card in cards.all()] == [
        "Scheduler",
        "DAG parser",
        "Worker hosts",
        "Triggerer",
        "Database",
    ]
