"""DAG files from a git repository: each version of the source is shown, and a failed run is repaired with the newest version."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.acceptance.harness import Standalone
from tests.browser.conftest import TIMEOUT, Visit

BROKEN = """
import datetime
from tradewind import DAG, task

with DAG("from_git", start_date=datetime.datetime(2024, 1, 1), schedule=None, is_paused_upon_creation=False):
    @task
    def load():
        raise ValueError("the first version is broken")

    load()
"""
REPAIRED = BROKEN.replace('raise ValueError("the first version is broken")', 'print("the second version works")').replace(
    "@task", "@task(retries=1)"
)
"""Another definition, too: a DAG gets a new version only then."""


def commit(repository: Path, source: str, message: str) -> None:
    (repository / "dags").mkdir(exist_ok=True)
    (repository / "dags" / "from_git.py").write_text(source)
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "a"), ("EMAIL", "a@b"))}
    for words in (("add", "-A"), ("commit", "-q", "-m", message)):
        subprocess.run(["git", *words], cwd=repository, check=True, timeout=60, env={**os.environ, **who})


@pytest.fixture(scope="module")
def git_server(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    folder = tmp_path_factory.mktemp("git")
    repository = folder / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True, timeout=60)
    commit(repository, BROKEN, "one")
    bundle = f"shop=git+file://{repository}@main#subdir=dags"
    environment = {"TRADEWIND__BUNDLES__LIST": bundle, "TRADEWIND__BUNDLES__REFRESH_INTERVAL": "1"}
    server = Standalone(folder / "home", environment=environment)
    try:
        server.start(TIMEOUT)
        server.wait_dag("from_git", TIMEOUT)
        yield server
    finally:
        server.close()


def test_a_failed_run_is_repaired_with_the_newest_version(chromium: Any, git_server: Standalone) -> None:
    run = git_server.trigger("from_git")
    assert git_server.wait_run("from_git", run) == "failed"
    commit(Path(git_server.environment["TRADEWIND__BUNDLES__LIST"].partition("file://")[2].partition("@")[0]), REPAIRED, "two")
    visit = Visit(chromium, git_server).log_in(git_server)
    page = visit.page

    page.goto("/dags/from_git/code")
    page.get_by_role("button", name="Source file").wait_for()
    page.get_by_role("button", name="Source file").click()
    page.get_by_role("option", name="Source, version 2").click()  # appears without reloading
    page.get_by_role("button", name="against version 1").wait_for()
    code = page.locator(".cm-content")
    code.get_by_text("the second version works").wait_for()
    code.get_by_text("the first version is broken").wait_for()
    assert visit.axe_in_both_themes() == []

    page.goto(f"/dags/from_git/runs/{quote(run, safe='')}/tasks/load")
    page.get_by_role("log").get_by_text("the first version is broken").first.wait_for()
    page.get_by_role("button", name="Clear…").click()
    newest = page.get_by_role("dialog").get_by_text("Newest version of the DAG bundle")
    newest.click()
    page.get_by_role("dialog").get_by_role("button", name="Clear 1 task instance").click()
    page.locator("header").get_by_text("success").first.wait_for()
    page.get_by_role("log").get_by_text("the second version works").first.wait_for()
    visit.context.close()
    visit.check()
