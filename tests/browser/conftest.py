from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import Standalone
from tests.browser import dags

ROOT = Path(__file__).parents[2]
REQUIRED = bool(os.environ.get("TESTS_REQUIRE_BROWSER"))
"""True on a machine on which the browser tests must run: a missing program fails the tests there instead of skipping them."""
TIMEOUT = 60.0
"""Seconds to wait for anything: a browser and two servers are slow on a busy machine."""


IN_THE_SUITE = {"test_first_visit.py"}
"""The files that `make test` runs. Browser and server need so much time that the other files, a test for each page, are among the
tests that take long.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in IN_THE_SUITE:
            item.add_marker(pytest.mark.long)


def _missing(reason: str) -> Any:
    if REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def built_page() -> None:
    """The web page, built from the present sources."""
    with (ROOT / "ui" / ".build-lock").open("w") as lock:  # with several test processes, only the first one builds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "ui/build.py"]
        done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        _missing(f"The web page cannot be built here:\n{done.stdout}{done.stderr}")


@pytest.fixture(scope="module")
def chromium(built_page: None) -> Iterator[Any]:
    """A browser: Chromium of the system, without its own window.

    Each file of tests starts one and ends it. Playwright keeps an event loop running in the main thread, and a later test of the
    same process that calls `asyncio.run` would fail.
    """
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        _missing("There is no Chromium on this machine. On Debian and Ubuntu: apt-get install chromium fonts-noto-cjk")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("The package playwright is not installed: make setup-dev")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def generated_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with generated history: 24 DAGs of 40 runs. Each server starts with a copy."""
    home = tmp_path_factory.mktemp("generated") / "home"
    made = [sys.executable, "-m", "benchmarks.page_data", "--home", str(home), "--dags", "24", "--tasks", "120"]
    subprocess.run([*made, "--runs", "40", "--unfinished", "4"], cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL)
    return home


@pytest.fixture(scope="module")
def server(built_page: None, generated_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A running Tradewind with generated history, and some DAGs that run quickly.

    Each file of tests has its own: between two files, the same process runs other tests, and some of those end its children.
    """
    home = tmp_path_factory.mktemp("page") / "home"
    shutil.copytree(generated_home, home)
    server = Standalone(home)
    for name, source in dags.FILES.items():
        server.write_dag(name, source)
    try:
        server.start(TIMEOUT)
        for dag_id in dags.IDS:
            server.wait_dag(dag_id, TIMEOUT)
        yield server
    finally:
        server.close()


def report(server: Standalone) -> str:
    """What the server is doing: its processes, and the end of its output and of the log of its API."""
    log = server.home / "logs" / "processes" / "api.log"
    tail = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else [f"{log} does not exist"]
    code = None if server.process is None else server.process.poll()
    state = "The server runs." if code is None else f"The server has ended with {code}."
    processes = [f"{pid} {words}" for pid, words in server.processes().items()]
    return "\n".join([state, *processes, "Its output:", *server.lines[-20:], "The log of its API:", *tail])


SCREEN: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


class Visit:
    """One browser window of a user.

    `problems` lists errors in the console, failed scripts, and error responses of the server. No page may have any.
    """

    def __init__(self, browser: Any, server: Standalone, **options: Any) -> None:
        # While a dialog fades in, its colours are not yet the final ones that axe has to check.
        self.context = browser.new_context(base_url=server.address, **{"reduced_motion": "reduce", **SCREEN, **options})
        self.context.set_default_timeout(TIMEOUT * 1000)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.expected: tuple[str, ...] = ()
        self.page.on("console", lambda message: self._note(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("response", lambda answer: self._note(f"{answer.status} {answer.url}") if answer.status >= 400 else None)

    def _note(self, text: str) -> None:
        self.problems.append(text)

    def log_in(self, server: Standalone) -> Visit:
        headers = {"X-Tradewind-Request": "1", "Origin": server.address}
        answer = self.context.request.post(
            "/auth/login", data={"username": "admin", "password": server.password}, headers=headers
        )
        assert answer.ok, f"{answer.status} {answer.text()}\n{report(server)}"
        return self

    def get(self, path: str) -> Any:
        """The JSON of an answer of the API."""
        answer = self.context.request.get(path)
        assert answer.ok, answer.text()
        return answer.json()

    def axe_in_both_themes(self) -> list[str]:
        """Violations in the light and in the dark theme."""
        found = []
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)
            self.page.locator(f"html[data-theme={theme}]").wait_for(state="attached")
            found += [f"{theme}: {one}" for one in self.axe()]
        return found

    def check(self) -> None:
        """Fail if there was a problem that the test did not expect."""
        found = [one for one in self.problems if not any(part in one for part in self.expected)]
        assert found == []

    def axe(self) -> list[str]:
        """Violations of WCAG 2.2 AA that axe finds in the page as it is now.

        React Aria's announcer is left out: it refers to the text of a pressed button for some seconds after the button was removed.
        """
        if not self.page.evaluate("typeof window.axe === 'object'"):
            source = (ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js").read_text()
            self.page.evaluate(source)
        found = self.page.evaluate(
            "axe.run({exclude: ['[data-live-announcer]']}, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
            ".then(r => r.violations.map(v => [v.id,"
            " v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' — ' + n.failureSummary)]))"
        )
        return [f"{rule}: {nodes}" for rule, nodes in found]


@pytest.fixture
def windows(chromium: Any, server: Standalone) -> Iterator[Callable[..., Visit]]:
    """Opens windows in which nobody is logged in: `windows(**PHONE)`. At the end the test fails if a window had a problem.

    If the shared server has ended, each later test fails with its output instead of a refused connection.
    """
    if server.process is None or server.process.poll() is not None:
        pytest.fail(report(server), pytrace=False)
    opened: list[Visit] = []

    def open_one(**options: Any) -> Visit:
        opened.append(Visit(chromium, server, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.context.close()
    for one in opened:
        one.check()


@pytest.fixture
def visit(windows: Callable[..., Visit], server: Standalone) -> Visit:
    """A window with a logged-in administrator, 1440 × 900."""
    return windows().log_in(server)
