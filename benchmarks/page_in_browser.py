"""The grid of the web page in Chromium, beside a bare page that draws the same cells: when each has painted, and how it scrolls.

The bare page has no library: it asks the same server for the same two answers, unpacks them, and fills one rectangle for each
stretch of equal states that is in view. The difference to the web page is the cost of the page's code. The two are opened in
turn, so that other load of the machine affects both. `first` is a visit with an empty cache; later visits find the files in the
cache.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from benchmarks import page_data
from benchmarks.bench import Bench
from benchmarks.measure import Result
from benchmarks.page import served

SIZES: dict[str, tuple[int, int]] = {
    "10": (10, 1),
    "1k": (100, 10),
    "10k": (100, 100),
    "100k": (1_000, 100),
    "1M": (10_000, 100),
}
"""Task instances → tasks and runs of the DAG."""
PATIENCE_MS = 60_000
SCREEN = {"width": 1440, "height": 900}

WATCH = """
(() => {
  const seen = window.measured = { drawn: null, shift: 0, inputs: [] };
  seen.whenDrawn = new Promise((done, failed) => {
    seen.done = done;
    setTimeout(() => failed(new Error("no cell was drawn within a minute")), 60_000);
  });
  const fill = CanvasRenderingContext2D.prototype.fillRect;
  CanvasRenderingContext2D.prototype.fillRect = function (...place) {
    fill.apply(this, place);
    if (seen.drawn === null && this.canvas.isConnected) {
      seen.drawn = 0;  // the first cells: on the screen after the next frame
      requestAnimationFrame(() => setTimeout(() => seen.done(seen.drawn = performance.now())));
    }
  };
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) seen.shift += one.value;
  }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (one.interactionId) seen.inputs.push(one.duration);
  }).observe({ type: "event", durationThreshold: 16, buffered: true });
})();
"""
"""Records when the first cells are on the screen, sums the shifts of the layout, and keeps the times from an input to its paint."""

BARE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bare</title><style>
html,body{margin:0;height:100%}p{margin:0;height:24px}#box{position:relative;height:calc(100% - 24px);overflow:auto}
canvas{position:sticky;top:0;left:0;display:block}</style></head>
<body><p>bare</p><div id="box"><canvas id="cells"></canvas></div><script>
const ROW = 24, COLUMN = 22, box = document.getElementById("box"), canvas = document.getElementById("cells");
const colours = ["#fff","#d0b28e","#767b82","#bbfd61","#40a666","#cb0316",
  "#f89ec1","#e97f1d","#edb700","#5bdcd7","#8462cd","#6098b9","#d48de9"];
const get = (path) => fetch(path).then((answer) => answer.json());
const dag = "/api/tradewind/v1/dags/" + new URLSearchParams(location.search).get("dag");
Promise.all([get(dag + "/structure"), get(dag + "/cells?runs=100&head=true")]).then(([structure, answer]) => {
  const columns = answer.runs.map((run) => {
    const states = new Int8Array(answer.rows).fill(-1);
    for (let place = 0, at = 0; place + 1 < run.cells.length; place += 2) {
      states.fill(run.cells[place + 1], at, at += run.cells[place]);
    }
    return states;
  });
  const context = canvas.getContext("2d");
  const sizer = document.createElement("div");
  sizer.style.cssText = `position:absolute;top:0;left:0;width:${columns.length * COLUMN}px;height:${answer.rows * ROW}px`;
  const width = canvas.width = box.clientWidth, height = canvas.height = box.clientHeight;
  box.append(sizer);
  function draw() {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(-box.scrollLeft, -box.scrollTop);
    const first = Math.floor(box.scrollTop / ROW), last = Math.min(answer.rows, Math.ceil((box.scrollTop + height) / ROW));
    columns.forEach((states, column) => {
      for (let from = first; from < last;) {
        let to = from + 1;
        while (to < last && states[to] === states[from]) to += 1;
        context.fillStyle = colours[states[from]] ?? "#fff";
        context.fillRect(column * COLUMN, from * ROW, COLUMN - 2, (to - from) * ROW - 2);
        from = to;
      }
    });
  }
  box.addEventListener("scroll", draw);
  draw();
});
</script></body></html>"""

SCROLL = """async (frames) => {
  const box = [...document.querySelectorAll("*")].find((one) => one.scrollHeight > one.clientHeight + 1000
    && ["auto", "scroll"].includes(getComputedStyle(one).overflowY));
  if (!box) throw new Error("nothing scrolls");
  const took = [];
  let before = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < frames; frame += 1) {
    box.scrollTop += 96;
    const now = await new Promise(requestAnimationFrame);
    took.push(now - before);
    before = now;
  }
  return took;
}"""
"""Scrolls by four rows in each frame. Returns the milliseconds from each frame to the next."""


class Painted(NamedTuple):
    """One opened page; milliseconds since the start of the navigation."""

    frame: float
    """The first paint: the static frame."""
    drawn: float
    """The cells are on the screen."""
    shift: float
    """Sum of the shifts of the layout."""


def grid_of(dag_id: str) -> str:
    """The address of the grid with 100 runs."""
    return f"/dags/{quote(dag_id, safe='')}/grid?runs=100"


def bare_of(dag_id: str) -> str:
    """The address of the bare page for the same cells."""
    return f"/bare?dag={quote(dag_id, safe='')}"


class Windows:
    """Opens windows of a logged-in browser.

    Args:
        browser: Chromium, from Playwright.
        address: of the server, `http://127.0.0.1:8080`.
        log_in: logs a new browser context in.
    """

    def __init__(self, browser: Any, address: str, log_in: Callable[[Any], None]) -> None:
        first = browser.new_context(base_url=address)
        log_in(first)
        self._session = first.storage_state()
        first.close()
        self._browser = browser
        self._address = address

    def open(self, path: str = "") -> Any:
        """A page in a context of its own: nothing is in its cache. It ends with `page.context.close()`."""
        context = self._browser.new_context(
            base_url=self._address, storage_state=self._session, viewport=SCREEN, reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(WATCH)
        page = context.new_page()
        if path.startswith("/bare?"):  # a page with a route has no cache: the others get none
            page.route("**/bare?*", lambda route: route.fulfill(body=BARE, content_type="text/html"))
        if path:
            page.goto(path)
        return page

    def scrolled(self, path: str, frames: int = 90) -> list[float]:
        """Milliseconds from frame to frame while the cells scroll."""
        page = self.open(path)
        try:
            painted(page)
            page.evaluate(SCROLL, 10)
            found: list[float] = page.evaluate(SCROLL, frames)
            return found
        finally:
            page.context.close()


def painted(page: Any) -> Painted:
    """Wait until the cells of the opened page are on the screen."""
    drawn = page.evaluate("window.measured.whenDrawn")
    frame = page.evaluate("performance.getEntriesByName('first-paint')[0]?.startTime ?? -1")
    return Painted(frame, drawn, page.evaluate("window.measured.shift"))


def in_turn(windows: Windows, dag_id: str, times: int) -> tuple[list[Painted], list[Painted]]:
    """The grid and the bare page, opened in turn: (grid, bare). The first visit of each is at the start of its list."""
    pages = [windows.open(path) for path in (grid_of(dag_id), bare_of(dag_id))]
    found = [[painted(page)] for page in pages]
    for _ in range(times):
        for page, figures in zip(pages, found, strict=True):
            page.goto(page.url)
            figures.append(painted(page))
    for page in pages:
        page.context.close()
    return found[0], found[1]


def quickest(visits: list[Painted]) -> Painted:
    """The least of each figure: other work on the machine only adds to it."""
    return Painted(*map(min, zip(*visits, strict=True)))


def page_in_browser(bench: Bench) -> list[Result]:
    """First paint, drawn grid and frames by size of the DAG."""
    from playwright.sync_api import sync_playwright  # lazy import: only this workload needs the browser

    result = Result("page_in_browser")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise RuntimeError("there is no Chromium on this machine; on Debian and Ubuntu: apt-get install chromium")
    home = Path(tempfile.mkdtemp(prefix="twb-browser-"))
    try:
        sizes = {name: size for name, size in SIZES.items() if not bench.quick or name in ("10", "1k")}
        page_data.fill(home / "home", *(page_data.Wanted(1, *size, paused=True) for size in sizes.values()))
        with served(home / "home") as client, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            windows = Windows(browser, client.address, lambda context: client.log_in(context.request))
            for name, dag_id in zip(sizes, page_data.dag_ids(len(sizes)), strict=True):
                grid, bare = in_turn(windows, dag_id, bench.pick(9, 2))
                for what, (first, *later) in (("grid", grid), ("bare", bare)):
                    result.add(f"{name} {what} first drawn", [first.drawn])
                    result.add(f"{name} {what} frame", [one.frame for one in later])
                    result.add(f"{name} {what} drawn", [one.drawn for one in later])
                result.note_load()
                result.add(f"{name} grid shift", [one.shift for one in grid])
                if sizes[name][0] >= 100:
                    result.add(f"{name} grid frames", windows.scrolled(grid_of(dag_id)))
                    result.add(f"{name} bare frames", windows.scrolled(bare_of(dag_id)))
                bench.say(f"page in Chromium {name}: drawn after {result.median(f'{name} grid drawn'):.0f} ms")
            browser.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return [result]
