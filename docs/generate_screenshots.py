"""`.venv/bin/python docs/generate_screenshots.py`: the pictures of docs/images, made in Chromium from a real server.

The data is generated: the same DAGs, runs and states each time, with dates that end today. Some DAGs really run, so that tasks
wait and fail. Needs Chromium and what `make setup-dev` installs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import page_data  # noqa: E402  # the folder of the checkout is on the path only now
from tests.acceptance.harness import Standalone  # noqa: E402
from tests.browser import dags  # noqa: E402

IMAGES = ROOT / "docs" / "images"
MAX_BYTES = 150_000
PATIENCE = 120.0
DAG = "orders_nightly"
ERROR = "role=button[name='Next error']"
HEADERS = {"X-Tradewind-Request": "1"}


class Picture(NamedTuple):
    """One picture: a page at an address."""

    name: str
    address: str
    ready: str
    """A selector that shows that the page has its content."""
    click: str = ""
    """Pressed before the picture is taken."""
    dark: bool = False
    phone: bool = False
    height: int = 800


def pictures(run: str, task: str, waiting: str) -> list[Picture]:
    """All pictures.

    Args:
        run, task: a failed task of the generated DAG.
        waiting: a run of the DAG whose second task waits for a pool.
    """
    dag = f"/dags/{DAG}"
    grid = f"{dag}/grid?run={run}&task={task}"
    return [
        Picture("triage", "/", "role=heading[name='Triage']"),
        Picture("triage-phone", "/", "role=heading[name='Triage']", phone=True),
        Picture("dags", "/dags", f"role=link[name='{DAG}']"),
        Picture("grid-light", grid, "role=grid"),
        Picture("grid-dark", grid, "role=grid", dark=True),
        Picture("graph", f"{dag}/graph", "main svg[role] >> nth=0"),
        Picture("gantt", f"{dag}/runs/{run}/gantt", "role=group[name=/^Gantt chart/]"),
        Picture(
            "log",
            f"{dag}/runs/{run}/tasks/{task}",
            "role=button[name='Next error']",
            "role=button[name='Next error']",
            height=460,
        ),
        Picture(
            "why", f"/dags/waiting_for_a_pool/runs/{waiting}/tasks/second", "role=list[name='Reasons'] >> role=heading >> nth=0"
        ),
        Picture("calendar", f"{dag}/calendar", "main h3"),
        Picture(
            "trigger",
            "/dags/hello_page",
            "main h2 >> nth=0",
            "header >> role=button[name='Trigger']",
        ),
        Picture("pool", "/pools/narrow", "h1"),
    ]


def start(home: Path) -> Standalone:
    """A server with the generated data and the DAGs of the browser tests."""
    page_data.fill(home, page_data.Wanted(24, 24, 40, unfinished=3, attempts=40, paused=True))
    server = Standalone(home)
    for name in ("hello_page.py", "waiting.py", "broken_load.py"):
        server.write_dag(name, dags.FILES[name])
    server.start(PATIENCE)
    for dag_id in ("hello_page", "waiting_for_a_pool", "broken_load"):
        server.wait_dag(dag_id, PATIENCE)
        server.cli("dags", "unpause", dag_id)
    server.cli("pools", "set", "narrow", "1", "one slot")
    server.wait_run("broken_load", server.trigger("broken_load"), deadline=PATIENCE)
    server.wait_run("hello_page", server.trigger("hello_page"), deadline=PATIENCE)
    return server


def take(context: Any, picture: Picture) -> None:
    """Open the page, wait for its content, and write the picture."""
    page = context.new_page()
    page.goto(picture.address)
    page.locator(picture.ready).first.wait_for()
    page.get_by_role("status", name="Loading").first.wait_for(state="detached")
    if picture.click:
        page.locator(picture.click).first.click()
        page.wait_for_timeout(500)  # the dialog, or the scrolled log, has been drawn
    page.evaluate("document.fonts.ready.then(() => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 400)))")
    path = IMAGES / f"{picture.name}.png"
    page.screenshot(path=path)
    page.close()
    if path.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, more than {MAX_BYTES}")
    sys.stdout.write(f"{path.relative_to(ROOT)} {path.stat().st_size}\n")


def main() -> None:
    """Start the server, and take all pictures, or those that the arguments name."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("There is no Chromium on this machine. On Debian and Ubuntu: apt-get install chromium fonts-noto-cjk")
    IMAGES.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="tradewind-pictures-"))
    server = None
    try:
        server = start(home / "home")
        gate = home / "gate"
        waiting = quote(server.trigger("waiting_for_a_pool", conf={"gate": str(gate)}), safe="")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            first = browser.new_context(base_url=server.address)
            body = {"username": "admin", "password": server.password}
            answer = first.request.post("/auth/login", data=body, headers={**HEADERS, "Origin": server.address})
            if not answer.ok:
                raise SystemExit(f"The login failed: {answer.status} {answer.text()}")
            runs = first.request.get(f"/api/v2/dags/{DAG}/dagRuns?state=failed&order_by=-run_after&limit=1").json()
            run = quote(runs["dag_runs"][0]["dag_run_id"], safe="")
            tasks = first.request.get(f"/api/v2/dags/{DAG}/dagRuns/{run}/taskInstances?state=failed&limit=1").json()
            task = tasks["task_instances"][0]["task_id"]
            session = first.storage_state()
            for picture in pictures(run, task, waiting):
                if sys.argv[1:] and picture.name not in sys.argv[1:]:
                    continue
                screen = {"width": 390, "height": 844} if picture.phone else {"width": 1280, "height": picture.height}
                context = browser.new_context(
                    base_url=server.address,
                    storage_state=session,
                    viewport=screen,
                    color_scheme="dark" if picture.dark else "light",
                    reduced_motion="reduce",
                )
                context.set_default_timeout(PATIENCE * 1000)
                take(context, picture)
                context.close()
            browser.close()
        gate.touch()
    finally:
        if server is not None:
            server.close()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
