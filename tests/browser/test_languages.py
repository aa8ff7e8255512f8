"""The page in Chinese and Korean: no English is left on the main pages, and a state keeps Airflow's word in its tooltip."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import Visit
from tests.browser.test_pages import DAG, PAGES, fill_in

MESSAGES = Path(__file__).parents[2] / "ui" / "messages"
SHOWN = ("/", "/dags", "/runs", "/pools", "/dags/$dagId", "/dags/$dagId/grid", "/dags/$dagId/runs/$runId")


WARNED = """
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator

with DAG("warned", schedule=None):
    EmptyOperator(task_id="a") > EmptyOperator(task_id="b")
"""


@cache
def texts(language: str) -> dict[str, str]:
    """All messages of a language: `shell.triage` → text."""
    return {
        f"{path.stem}.{key}": text
        for path in sorted((MESSAGES / language).glob("*.json"))
        for key, text in json.loads(path.read_text()).items()
    }


def english_left(shown: str, language: str) -> set[str]:
    """Lines of the page that are an English message which is translated otherwise."""
    translated = texts(language)
    english = {text for key, text in texts("en").items() if translated[key] != text and "{" not in text}
    return {line.strip() for line in shown.splitlines()} & english - set(translated.values())


@pytest.mark.parametrize("language", ["zh-CN", "ko"])
@pytest.mark.parametrize("route", SHOWN)
def test_a_page_is_shown_in_the_language_of_the_browser(
    windows: Callable[..., Visit], server: Standalone, language: str, route: str
) -> None:
    visit = windows(locale=language).log_in(server)
    page = visit.page
    page.goto(fill_in(visit, PAGES[route][0]))
    page.get_by_role("link", name=texts(language)["shell.triage"]).first.wait_for()
    page.locator("h1").wait_for()
    assert page.evaluate("document.documentElement.lang") == language
    assert english_left(page.locator("body").inner_text(), language) == set()
    assert visit.axe() == []


@pytest.mark.parametrize("language", ["zh-CN", "ko"])
def test_what_the_server_says_is_translated(windows: Callable[..., Visit], server: Standalone, language: str) -> None:
    """Why a task ended as it did, and the schedule of its DAG."""
    visit = windows(locale=language).log_in(server)
    page, words = visit.page, texts(language)
    address = fill_in(visit, PAGES["/dags/$dagId/runs/$runId/tasks/$taskId"][0])
    page.goto(f"{address}?tab=why")
    page.get_by_text(words["phrases.clear_it"]).wait_for()
    assert "Clear it to run it again" not in page.locator("body").inner_text()
    english = visit.get(f"/api/tradewind/v1/dags/{DAG}")["schedule_text"]
    for place in ("", "/details"):
        page.goto(f"/dags/{DAG}{place}")
        page.get_by_text(re.compile(schedule_pattern(words))).first.wait_for()
        assert english.removesuffix(".") not in page.locator("body").inner_text()


@pytest.mark.parametrize("language", ["zh-CN", "ko"])
def test_stored_causes_and_refusals_are_translated(windows: Callable[..., Visit], server: Standalone, language: str) -> None:
    """They are English in the database and in answers; the page recognises them."""
    visit = windows(locale=language).log_in(server)
    visit.expected = ("404", "no_such_dag")
    page, words = visit.page, texts(language)
    server.cli("dags", "unpause", "hello_page")
    run = server.trigger("hello_page")
    server.wait_run("hello_page", run)
    address = f"/dags/hello_page/runs/{quote(run, safe='')}"
    page.goto(f"{address}/tasks/greet?tab=details")
    for cause in ("cause_met", "cause_slot_free", "cause_started", "cause_success"):
        page.get_by_text(words[f"phrases.{cause}"], exact=True).wait_for()
    page.goto("/dags/no_such_dag")
    page.get_by_text(words["phrases.no_dag"].replace("''", "'").replace("{dag}", "no_such_dag")).first.wait_for()
    page.goto(fill_in(visit, PAGES["/dags/$dagId/runs/$runId"][0]))
    assert "is failed" not in page.locator("header").first.inner_text()


@pytest.mark.parametrize("language", ["en", "zh-CN", "ko"])
def test_the_warnings_about_a_file_are_shown_with_its_dag(
    windows: Callable[..., Visit], server: Standalone, language: str
) -> None:
    server.write_dag("warned.py", WARNED)
    server.wait_dag("warned")
    visit = windows(locale=language).log_in(server)
    visit.page.goto("/dags/warned")
    words = texts(language)
    sentence = words["phrases.warning_compared_tasks"]
    for name, value in {"task": "a", "other": "b", "meant": "a >> b"}.items():
        sentence = sentence.replace(f"{{{name}}}", value)
    visit.page.get_by_role("region", name=words["overview.warnings"]).get_by_text(sentence).wait_for()


def schedule_pattern(words: dict[str, str]) -> str:
    """The schedule of the DAG, daily at some time, in another language."""
    return words["phrases.cron_at_daily"].replace("{times}", r"\d\d:\d\d")


@pytest.mark.parametrize("language", ["en", "zh-CN", "ko"])
def test_a_state_is_translated_and_its_tooltip_has_airflows_word(
    windows: Callable[..., Visit], server: Standalone, language: str
) -> None:
    visit = windows(locale=language).log_in(server)
    page = visit.page
    words = texts(language)
    page.goto("/")
    page.get_by_role("link", name=words["shell.triage"]).wait_for()
    page.keyboard.press("?")
    legend = page.get_by_role("list", name=words["shell.states"])
    entry = legend.get_by_role("listitem").filter(has=page.locator("code", has_text=re.compile("^upstream_failed$")))
    entry.get_by_text(words["state.upstream_failed"], exact=True).wait_for()
    page.goto("/runs")
    titles = page.locator("main svg title")
    titles.first.wait_for(state="attached")
    found = {title.text_content() for title in titles.all()}
    if language == "en":
        assert found & {"success", "failed"}
    else:
        assert found & {f"{words['state.success']} (success)", f"{words['state.failed']} (failed)"}


def test_the_language_is_chosen_in_the_bar_and_kept(visit: Visit) -> None:
    page = visit.page
    page.goto("/dags")
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitem", name="한국어").click()
    page.get_by_role("link", name=texts("ko")["shell.pools"]).wait_for()
    page.get_by_role("columnheader", name=texts("ko")["dags.schedule"]).wait_for()
    page.reload()
    page.get_by_role("link", name=texts("ko")["shell.pools"]).wait_for()
