"""Each page of the router: it shows what it is for, says no error, asks for nothing that fails, and can be read by everybody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import TIMEOUT, Visit

ROUTER = Path(__file__).parents[2] / "ui" / "src" / "router.tsx"
DAG = "billing_daily"


def routes() -> set[str]:
    """Addresses of the router with the names of their parameters: `/dags/$dagId/grid`."""
    found = re.findall(
        r"const (\w+) = createRoute\(\{ getParentRoute: \(\) => (\w+), (?:path: \"([^\"]*)\")?", ROUTER.read_text()
    )
    parents = {name: (parent, path) for name, parent, path in found}

    def whole(name: str) -> str:
        if name not in parents:
            return ""
        parent, path = parents[name]
        return (whole(parent) + path).rstrip("/") if path else whole(parent)

    return {whole(name) or "/" for name, (_, path) in parents.items() if path}


PAGES: dict[str, tuple[str, str]] = {
    "/": ("/", "role=heading[name='Triage']"),
    "/login": ("/login", "role=button[name='Sign in']"),
    "/dags": ("/dags", f"role=link[name='{DAG}']"),
    "/runs": ("/runs", "role=table >> role=row >> nth=3"),
    "/approvals": ("/approvals", "h1"),
    "/assets": ("/assets", "h1"),
    "/assets/$assetId": ("/assets/1", "h1"),
    "/pools": ("/pools", "text=default_pool"),
    "/pools/$pool": ("/pools/default_pool", "h1"),
    "/admin": ("/admin", "role=heading[name='Variables']"),
    "/admin/$section": ("/admin/jobs", "h1"),
    "/$": ("/nowhere/at/all", "role=heading[name='This page does not exist']"),
    "/dags/$dagId": ("/dags/{dag}", "role=heading[name='What failed most']"),
    "/dags/$dagId/grid": ("/dags/{dag}/grid", "role=grid"),
    "/dags/$dagId/graph": ("/dags/{dag}/graph", "main svg[role] >> nth=0"),
    "/dags/$dagId/runs": ("/dags/{dag}/runs", "role=table >> role=row >> nth=3"),
    "/dags/$dagId/calendar": ("/dags/{dag}/calendar", "main h3"),
    "/dags/$dagId/code": ("/dags/{dag}/code", ".cm-content"),
    "/dags/$dagId/details": ("/dags/{dag}/details", "text=Generated with"),
    "/dags/$dagId/runs/$runId": ("/dags/{dag}/runs/{run}", "role=table >> role=row >> nth=3"),
    "/dags/$dagId/runs/$runId/gantt": ("/dags/{dag}/runs/{run}/gantt", "role=group[name=/^Gantt chart/]"),
    "/dags/$dagId/runs/$runId/graph": ("/dags/{dag}/runs/{run}/graph", "main svg[role] >> nth=0"),
    "/dags/$dagId/runs/$runId/events": ("/dags/{dag}/runs/{run}/events", "h1"),
    "/dags/$dagId/runs/$runId/details": ("/dags/{dag}/runs/{run}/details", "text=scheduled__ >> nth=0"),
    "/dags/$dagId/runs/$runId/tasks/$taskId": ("/dags/{dag}/runs/{run}/tasks/{task}", "role=button[name='Next error']"),
}
"""Route → an address of it, and what shows that the page has its content."""

TABS = {
    "why": "role=heading[name='What decided its state']",
    "rendered": "main pre, main h2",
    "xcom": "main h2",
    "details": "text=Pool",
}


def fill_in(visit: Visit, address: str) -> str:
    """The address of the newest failed run and its failed task."""
    if "{" not in address:
        return address
    runs = visit.get(f"/api/v2/dags/{DAG}/dagRuns?state=failed&order_by=-run_after&limit=1")["dag_runs"]
    run = quote(runs[0]["dag_run_id"], safe="")
    task = visit.get(f"/api/v2/dags/{DAG}/dagRuns/{run}/taskInstances?state=failed&limit=1")["task_instances"][0]["task_id"]
    return address.replace("{dag}", DAG).replace("{run}", run).replace("{task}", task)


def test_each_address_of_the_router_has_a_test() -> None:
    assert routes() == set(PAGES)


@pytest.mark.parametrize("route", PAGES)
def test_a_page_shows_its_content_without_faults(visit: Visit, route: str) -> None:
    address, content = PAGES[route]
    if route in ("/assets/$assetId", "/$"):  # the generated data has no asset: the page has to say so
        visit.expected = ("404",)
    address = fill_in(visit, address)
    visit.page.goto(address)
    visit.page.locator(content).first.wait_for()
    visit.page.locator("h1").wait_for()
    assert "Tradewind" in visit.page.title()
    assert visit.axe_in_both_themes() == []


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_of_a_task(visit: Visit, tab: str) -> None:
    visit.page.goto(fill_in(visit, PAGES["/dags/$dagId/runs/$runId/tasks/$taskId"][0]) + f"?tab={tab}")
    visit.page.locator(TABS[tab]).first.wait_for()
    assert visit.axe_in_both_themes() == []


def test_the_open_tab_of_a_run_is_marked(visit: Visit) -> None:
    """Ids of scheduled runs have a colon and a plus sign, which an address may have in more than one form."""
    for route in ("/dags/$dagId/runs/$runId", "/dags/$dagId/runs/$runId/gantt", "/dags/$dagId/runs/$runId/details"):
        visit.page.goto(fill_in(visit, PAGES[route][0]))
        tabs = visit.page.get_by_role("navigation", name="Views of the run")
        marked = tabs.locator("[aria-current=page]")
        marked.wait_for()
        assert marked.all_inner_texts() == [{"gantt": "Gantt", "details": "Details"}.get(route.rsplit("/", 1)[1], "Tasks")]


@pytest.mark.parametrize("route", ["/dags/$dagId/runs/$runId/details", "/dags/$dagId/runs/$runId/tasks/$taskId"])
def test_the_version_of_a_run_leads_to_its_definition(visit: Visit, route: str) -> None:
    visit.page.goto(fill_in(visit, PAGES[route][0]) + ("?tab=details" if "tasks" in route else ""))
    visit.page.get_by_role("main").get_by_role("link", name="v1", exact=True).click()
    visit.page.get_by_role("button", name="Definition, version 1").wait_for()


@pytest.mark.spec("S458")
@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("/dags?q=billing#here", "/dags?q=billing#here"),
        ("https://example.com/", "/"),
        ("//example.com/dags", "/"),
        ("/\\example.com", "/"),
        ("/\t/example.com", "/"),
        ("javascript:alert(1)", "/"),
        ("/login?next=/dags", "/"),
    ],
)
def test_the_login_returns_to_own_pages_only(windows: Callable[..., Visit], server: Standalone, wanted: str, path: str) -> None:
    visit = windows()
    visit.page.goto("/login?next=" + quote(wanted, safe=""))
    visit.page.get_by_label("User name").fill("admin")
    visit.page.get_by_label("Password").fill(server.password)
    visit.page.get_by_role("button", name="Sign in").click()
    visit.page.get_by_role("navigation", name="Places").wait_for()
    assert visit.page.url == server.address + path


def test_a_wrong_password_is_refused_in_words(windows: Callable[..., Visit]) -> None:
    visit = windows()
    visit.expected = ("401",)
    visit.page.goto("/login")
    visit.page.get_by_label("User name").fill("admin")
    visit.page.get_by_label("Password").fill("wrong")
    visit.page.get_by_role("button", name="Sign in").click()
    visit.page.get_by_role("alert").get_by_text("The user name or the password is wrong.").wait_for()
    assert visit.axe_in_both_themes() == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/nowhere/at/all", ""),
        ("/dags/no_such_dag", "There is no DAG 'no_such_dag'."),
        ("/dags/no_such_dag/details", "There is no DAG 'no_such_dag'."),
        (f"/dags/{DAG}/runs/no_such_run", "no_such_run"),
        ("{run}/tasks/no_such_task", "no_such_task"),
    ],
)
def test_what_does_not_exist_is_named_and_leads_back(visit: Visit, address: str, reason: str) -> None:
    """There is nothing to trigger or to clear then, and the places of the bar are there."""
    visit.expected = ("404", reason or "404")
    visit.page.goto(address.replace("{run}", fill_in(visit, "/dags/{dag}/runs/{run}")))
    main = visit.page.get_by_role("main")
    main.get_by_role("heading", name="This page does not exist").wait_for()
    main.get_by_text(reason).first.wait_for()
    assert main.get_by_role("button").count() == 0
    assert visit.axe_in_both_themes() == []
    main.get_by_role("link", name="DAGs").click()
    visit.page.get_by_role("heading", name="DAGs", level=1).wait_for()


LONG = "n" * 250
LONG_NAMES = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("n" * 250, start_date=datetime.datetime(2024, 1, 1), schedule=None, tags=["t" * 90], is_paused_upon_creation=False):
    BashOperator(task_id="u" * 250, bash_command="exit 1")
"""


@pytest.fixture(scope="module")
def long_run(server: Standalone) -> Iterator[str]:
    """The address of a failed run whose DAG and task have the longest names."""
    path = server.write_dag("long_names.py", LONG_NAMES)
    server.wait_dag(LONG, TIMEOUT)
    run = server.trigger(LONG)
    server.wait_run(LONG, run)
    yield f"/dags/{LONG}/runs/{quote(run, safe='')}"
    path.unlink()


@pytest.mark.parametrize("width", [390, 1024])
def test_long_names_are_cut_and_never_widen_the_page(
    windows: Callable[..., Visit], server: Standalone, long_run: str, width: int
) -> None:
    visit = windows(viewport={"width": width, "height": 800}).log_in(server)
    dag = long_run.partition("/runs/")[0]
    for address in (
        "/",
        dag,
        dag + "/grid",
        dag + "/details",
        long_run,
        long_run + "/details",
        f"{long_run}/tasks/{'u' * 250}",
    ):
        visit.page.goto(address)
        visit.page.locator("h1").wait_for()
        visit.page.get_by_role("status", name="Loading").first.wait_for(state="detached")
        beyond = visit.page.evaluate(TOO_WIDE)
        assert beyond == [], address


TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll("main *")]
    .filter((one) => !one.closest("nav, pre, code, [role=table], [role=grid], [role=log], [data-sideways]"))
    .filter((one) => /auto|scroll|visible/.test(getComputedStyle(one).overflowX) && getComputedStyle(one).display !== "inline")
    .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 200))"""
"""Elements whose content is wider than they are. Tables, logs, code, tabs and the options of a log scroll by themselves."""


def test_texts_of_authors_and_tasks_never_run_as_scripts(visit: Visit, server: Standalone) -> None:
    """Descriptions, docs, tags, names, notes, params and logs that try to run a script: each is shown as text."""
    attack = "<img src=x onerror='window.attacked=1'><script>window.attacked=1</script>"
    server.cli("dags", "unpause", "hostile_texts")
    headers = {"X-Tradewind-Request": "1", "Origin": server.address}
    asked = {"logical_date": None, "note": attack, "conf": {"x": attack}}
    made = visit.context.request.post("/api/v2/dags/hostile_texts/dagRuns", data=asked, headers=headers)
    assert made.ok, made.text()
    run = quote(made.json()["dag_run_id"], safe="")
    server.wait_run("hostile_texts", made.json()["dag_run_id"])
    dag = "/dags/hostile_texts"
    shown = {
        "/dags?q=hostile": "<img src=x",
        dag: "<img src=x",
        dag + "/details": "<img src=x",
        dag + "/runs": "<img src=x",
        dag + "/grid": "<img src=x",
        f"{dag}/runs/{run}": "<img src=x",
        f"{dag}/runs/{run}/details": "<img src=x",
        f"{dag}/runs/{run}/tasks/shout?tab=log": "<script>window.attacked=1</script>",
        f"{dag}/runs/{run}/tasks/shout?tab=rendered": "<script>window.attacked=1</script>",
        f"{dag}/runs/{run}/tasks/shout?tab=details": "<img src=x",
    }
    for address, text in shown.items():
        visit.page.goto(address)
        visit.page.get_by_text(text).first.wait_for(state="attached")
        assert visit.page.evaluate("window.attacked") is None, address
        assert visit.page.locator("img").count() == 0, address


def test_the_palette_finds_a_dag_and_opens_it(visit: Visit) -> None:
    page = visit.page
    page.goto("/")
    page.get_by_role("navigation", name="Places").wait_for()
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search or jump to")
    field.fill("weather_night")
    page.get_by_role("option", name="weather_nightly").wait_for()
    assert visit.axe_in_both_themes() == []
    page.keyboard.press("Enter")
    page.wait_for_url("**/dags/weather_nightly/grid")
    page.keyboard.press("Control+k")
    field.fill("nothing has this name")
    page.get_by_text("Nothing has the name").wait_for()
    page.keyboard.press("Escape")
    assert field.input_value() == ""
    page.keyboard.press("Escape")
    field.wait_for(state="detached")


def test_keys_lead_to_the_places(visit: Visit) -> None:
    page = visit.page
    page.goto("/")
    page.get_by_role("heading", name="Triage").wait_for()
    for key, heading in {"d": "DAGs", "r": "Runs", "p": "Pools", "h": "Triage"}.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.get_by_role("heading", name=heading, exact=True, level=1).wait_for()
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.get_by_role("link", name=DAG, exact=True).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("ledger_night")
    page.wait_for_url("**/dags?q=ledger_night")
    page.get_by_role("link", name=DAG, exact=True).wait_for(state="detached")
    for key in ("ArrowDown", "ArrowDown", "Enter"):  # to the list, to its first row, into it
        page.keyboard.press(key)
    page.wait_for_url("**/dags/ledger_nightly*")


def test_without_the_stream_the_page_polls_and_says_so(visit: Visit, server: Standalone) -> None:
    """A proxy that lets no stream pass: a change still appears."""
    visit.expected = ("ERR_FAILED", "/api/tradewind/v1/events")
    visit.page.route("**/api/tradewind/v1/events*", lambda route: route.abort())
    visit.page.goto("/dags/daily_sums")
    visit.page.get_by_role("status").get_by_text("Updates every 10 s").wait_for()
    visit.page.locator("header").get_by_text("Paused", exact=True).wait_for()
    server.cli("dags", "unpause", "daily_sums")
    visit.page.locator("header").get_by_text("Active", exact=True).wait_for()
    server.cli("dags", "pause", "daily_sums")
    assert visit.axe_in_both_themes() == []


def test_a_part_that_cannot_be_loaded_says_what_to_do(visit: Visit) -> None:
    """An upgraded server has other files than the page that is open."""
    visit.page.goto(f"/dags/{DAG}/grid")
    visit.page.get_by_role("grid").wait_for()
    visit.expected = ("ERR_FAILED", "preload CSS", "dynamically imported")
    visit.page.route("**/static/**", lambda route: route.abort())
    visit.page.get_by_role("link", name="Calendar").click()
    alert = visit.page.get_by_role("alert")
    alert.get_by_text("This part of the page could not be loaded.").wait_for()
    assert visit.page.get_by_role("navigation", name="Places").is_visible()
    visit.page.unroute("**/static/**")
    alert.get_by_role("button", name="Try again").click()
    visit.page.get_by_role("heading", level=3).first.wait_for()


def test_times_are_shown_in_the_zone_that_was_chosen(windows: Callable[..., Visit], server: Standalone) -> None:
    visit = windows(timezone_id="Asia/Seoul").log_in(server)
    page = visit.page
    page.goto(f"/dags/{DAG}/runs?state=failed")
    page.get_by_text("02:00").first.wait_for()
    bar = page.get_by_role("navigation", name="Places")
    bar.get_by_role("button", name="UTC").click()
    page.get_by_role("menuitem", name="Local (Asia/Seoul)").click()
    page.get_by_text("11:00").first.wait_for()
    page.reload()
    page.get_by_text("11:00").first.wait_for()
