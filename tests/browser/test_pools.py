"""Pools in a browser: the list, who holds slots and who waits, and the form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit

SOURCE = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("page_pool", start_date=datetime.datetime(2024, 1, 1), schedule=None, is_paused_upon_creation=False):
    BashOperator(
        task_id="holder", pool="page_narrow", priority_weight=9,
        bash_command="until [ -e '{{ dag_run.conf['gate'] }}' ]; do read -t 0.05 <> <(:) || true; done",
    )
    BashOperator(task_id="waiter", bash_command="echo", pool="page_narrow")
"""


@pytest.fixture
def gate(server: Standalone, tmp_path: Path) -> Iterator[Path]:
    """A run of which one task holds the only slot of the pool, and one waits, until this file exists."""
    path = server.write_dag("page_pool.py", SOURCE)
    server.cli("pools", "set", "page_narrow", "1", "One at a time")
    server.wait_dag("page_pool")
    gate = tmp_path / "gate"
    run = server.trigger("page_pool", conf={"gate": str(gate)})
    server.wait_task("page_pool", run, "holder", ("running",))
    yield gate
    gate.touch()
    server.wait_run("page_pool", run)
    path.unlink()


def test_a_pool_shows_who_holds_its_slots_and_who_waits(visit: Visit, gate: Path) -> None:
    visit.page.goto("/pools")
    row = visit.page.get_by_role("row").filter(has_text="page_narrow")
    row.get_by_text("1 of 1").wait_for()
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visit.axe() == []
    row.get_by_role("link", name="page_narrow").click()
    visit.page.get_by_role("heading", level=1, name="page_narrow").wait_for()
    visit.page.get_by_role("link", name="holder", exact=True).wait_for()
    visit.page.get_by_role("link", name="waiter", exact=True).wait_for()
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visit.axe() == []
    gate.touch()
    visit.page.get_by_text("Nobody holds a slot.").wait_for()  # without a reload


def test_a_pool_is_added_changed_and_deleted(visit: Visit, server: Standalone) -> None:
    visit.expected = ("/api/tradewind/v1/pools/page_made", "status of 404")  # the page may ask once more for the deleted pool
    visit.page.goto("/pools")
    visit.page.get_by_role("button", name="Add pool").click()
    form = visit.page.get_by_role("dialog")
    form.get_by_label("Name").fill("page_made")
    slots = form.get_by_role("spinbutton", name="Slots")
    slots.fill("-5")
    form.get_by_text("Enter a whole number").wait_for()
    slots.fill("3")
    assert visit.axe() == []
    form.get_by_role("button", name="Save").click()
    visit.page.get_by_role("link", name="page_made").click()
    visit.page.get_by_role("button", name="Edit").click()
    slots.fill("7")
    form.get_by_role("button", name="Save").click()
    visit.page.get_by_text("/ 7").wait_for()
    visit.page.get_by_role("button", name="Delete").click()
    form.get_by_text("Tasks that name this pool will wait").wait_for()
    form.get_by_role("button", name="Delete").click()
    visit.page.get_by_role("heading", level=1, name="Pools").wait_for()
    assert "page_made" not in server.cli("pools", "list")
