"""Writes raw/*.json and RESULTS.md. It shows figures with a failed check as failed, and exceeded budgets as exceeded."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import math
import os
import platform
import sqlite3
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bench import Bench
from benchmarks.measure import LOAD, Result, median
from benchmarks.peers import CONDITIONS, FIGURES

Results = dict[str, Result]


class Row(NamedTuple):
    budget: str
    measured: str
    limit: str
    ratio: str
    holds: bool | None
    """None: not measured."""
    peers: str = ""


def write_raw(folder: Path, day: str, result: Result, bench: Bench) -> None:
    """Write all samples of one workload. Older files of the same workload are deleted."""
    for old in folder.glob(f"*-{result.name}.json"):
        if old.name[11:] == f"{result.name}.json":
            old.unlink()
    facts = {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": bench.quick,
        "full": bench.full,
        "machine": machine(),
        **dataclasses.asdict(result),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(_rounded(value), default=str)}" for key, value in facts.items()]
    (folder / f"{day}-{result.name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 5)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def write(folder: Path) -> None:
    """Write RESULTS.md of a folder from its `raw` folder.

    Other sections stay, because `make simulate` writes into the same file.
    """
    path = folder / "RESULTS.md"
    text, old = render(read_raw(folder / "raw")), path.read_text(encoding="utf-8") if path.exists() else ""
    others = [part for part in old.split("\n## ")[1:] if f"\n## {part.partition(chr(10))[0]}\n" not in text]
    path.write_text(text.rstrip() + "\n" + "".join(f"\n## {part.rstrip()}\n" for part in others), encoding="utf-8")


def read_raw(folder: Path) -> Results:
    """The newest figures of all workloads, including earlier runs."""
    found = {}
    names = {field.name for field in dataclasses.fields(Result)}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text())
        result = Result(**{name: data[name] for name in names if name in data})
        result.facts.update(measured_at=data["at"], quick=data["quick"])
        found[result.name] = result
    return found


def machine() -> dict[str, object]:
    model = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = next((int(line.split()[1]) // 1024 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    packages = ("tradewind", "msgspec", "jinja2", "pendulum", "fastapi", "uvicorn")
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": memory,
        "linux": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "load_average": os.getloadavg()[0],
        "packages": {name: version(name) for name in packages},
    }


def _lines(path: str) -> list[str]:
    with open(path) as file:
        return file.read().splitlines()


# --- the budgets -------------------------------------------------------------------------------------------------------


def budgets(results: Results) -> list[Row]:
    """One row for each budget, in the order of the design."""
    rows = []
    for name, make in _ROWS:
        result = results.get(name)
        for row in make(result or Result(name)):
            if result is None:
                row = row._replace(measured="not measured", limit="", ratio="", holds=None)
            elif result.problem is not None:
                row = row._replace(measured=f"failed: {_short(result.problem)}", limit="", ratio="", holds=False)
            rows.append(row)
    return rows


def _short(problem: str) -> str:
    return " ".join(problem.split())[:120].replace("|", "/")


def _both(result: Result, key: str, unit: str, digits: int = 2) -> str:
    if not result.samples.get(key):
        return "not measured"
    return f"{result.median(key):.{digits}f} {unit} ({result.p95(key):.{digits}f})"


def _chain(r: Result) -> list[Row]:
    hop, bare, ratio = r.median("hop_ms"), r.median("bare_hop_ms"), r.median("ratio")
    holds = hop <= 3 * bare and (bare > 3 or hop <= 10)
    return [
        Row(
            "chain of 40: hop ≤ 3 × the bare hop, and ≤ 10 ms where that is ≤ 3 ms",
            _both(r, "hop_ms", "ms"),
            f"bare hop {_both(r, 'bare_hop_ms', 'ms')}",
            f"{ratio:.2f} × (rounds {_range(r, 'ratio')})",
            holds,
            FIGURES["chain"],
        )
    ]


def _range(r: Result, key: str) -> str:
    samples = r.samples.get(key) or [float("nan")]
    return f"{min(samples):.2f}–{max(samples):.2f}"


def _fan(r: Result) -> list[Row]:
    ratio = r.median("ratio")
    return [
        Row(
            "1 → 1,000 → 1: ≥ 40 % of the bare fork rate",
            _both(r, "rate_per_s", "tasks/s", 0),
            f"bare rate {_both(r, 'bare_rate_per_s', '/s', 0)}",
            f"{ratio * 100:.0f} % (rounds {_range(r, 'ratio')})",
            ratio >= 0.4,
            FIGURES["fan"],
        )
    ]


def _growth(r: Result, prefix: str) -> dict[int, float]:
    sizes = sorted(int(key.rsplit("_", 1)[1]) for key in r.samples if key.startswith(prefix))
    return {size: r.median(f"{prefix}{size}") for size in sizes}


def _shown(growth: dict[int, float], unit: str, digits: int = 2) -> str:
    return "; ".join(f"{size:,}: {value:.{digits}f}" for size, value in growth.items()) + f" {unit}"


def _marginal(each: dict[int, float]) -> dict[int, float]:
    """The cost of one more task between two sizes. It does not contain the cost of the run itself."""
    sizes = sorted(each)
    steps = itertools.pairwise(sizes)
    return {large: (each[large] * large - each[small] * small) / (large - small) for small, large in steps}


def _scale(r: Result) -> list[Row]:
    cpu, memory, rss = _growth(r, "cpu_ms_"), _growth(r, "traced_bytes_"), _growth(r, "memory_bytes_")
    marginal = _marginal(cpu)
    flat = max(marginal.values()) / min(marginal.values()) if marginal else float("nan")
    largest = max(rss, default=0)
    weight = max(memory.get(largest, float("nan")), rss.get(largest, float("nan")))
    return [
        Row(
            "scheduler + store CPU of one more task flat within 20 %, 100 → 100,000",
            _shown(cpu, "ms", 3),
            f"of one more task: {_shown(marginal, 'ms', 3)}",
            f"{flat:.2f} ×",
            flat <= 1.2,
            FIGURES["scale"],
        ),
        Row(
            "scheduler memory ≤ 1.5 kB an unfinished task",
            f"{weight / 1000:.2f} kB at {largest:,} (resident)",
            f"traced {_shown(memory, 'bytes', 0)}",
            "",
            weight <= 1500,
        ),
        _beside(r),
    ]


def _beside(r: Result) -> Row:
    """The cost of a run must not grow with the number of other running runs."""
    budget = "lines of code that a run of one task takes beside 1,000 other running runs ≤ 1.01 × those beside 10"
    lines, cpu = _growth(r, "beside_lines_"), _growth(r, "beside_cpu_ms_")
    if not lines:
        return Row(budget, "not measured", "", "", None)
    ratio = lines[max(lines)] / lines[min(lines)]
    return Row(budget, _shown(lines, "lines", 0), f"scheduler CPU {_shown(cpu, 'ms', 3)}", f"{ratio:.3f} ×", ratio <= 1.01)


def _layered(r: Result) -> list[Row]:
    cpu = _growth(r, "cpu_ms_per_task_")
    small = {size: value for size, value in cpu.items() if size <= 10_000}
    flat = max(small.values()) / small[min(small)] if small else float("nan")
    holds = flat <= 1.2 and all(value <= 2 * cpu[min(cpu)] for value in cpu.values())
    return [
        Row(
            "CPU a task with processes flat to 10,000 (and ≤ 2 × at 100,000)",
            _shown(cpu, "ms"),
            "",
            f"{flat:.2f} ×",
            holds,
            FIGURES["layered"],
        )
    ]


def _files(r: Result) -> list[Row]:
    known, idle, pss = r.median("known_s"), r.median("idle_percent"), r.median("pss_mb")
    count = r.facts.get("files", "?")
    return [
        Row(f"1,000 files × 10 tasks known in < 10 s ({count})", f"{known:.1f} s", "", "", known < 10, FIGURES["files_known"]),
        Row("then < 1 % of a core", f"{idle:.2f} %", "", "", idle < 1, FIGURES["files_idle"]),
        Row(
            "deployment < 150 MB PSS after 1,000 tasks (idle again)",
            f"{pss:.0f} MB (5 s after the last task, with warm templates: {r.median('pss_just_after_mb'):.0f} MB)",
            "",
            "",
            pss < 150,
            FIGURES["files_pss"],
        ),
    ]


def _airflow_files(r: Result) -> list[Row]:
    known, idle, ratio = r.median("airflow_known_s"), r.median("airflow_idle_percent"), r.median("cpu_ratio")
    cpu = f"CPU a file {r.median('airflow_cpu_ms'):.2f} ms, with tradewind {r.median('tradewind_cpu_ms'):.2f} ms"
    count = r.facts.get("files", "?")
    what = f"1,000 files that import airflow known in < 10 s ({count})"
    return [
        Row(what, f"{known:.1f} s; {cpu}", "", f"{ratio:.2f} ×", known < 10, FIGURES["files_known"]),
        Row("then < 1 % of a core (files that import airflow)", f"{idle:.2f} %", "", "", idle < 1, FIGURES["files_idle"]),
    ]


def _minute(r: Result) -> list[Row]:
    lags = r.samples.get("lag_s") or [float("nan")]
    return [
        Row(
            "200 DAGs due each minute: p95 lag < 1 s",
            f"{_both(r, 'lag_s', 's')}, max {max(lags):.2f}",
            "",
            "",
            r.p95("lag_s") < 1,
            FIGURES["minute"],
        )
    ]


def _start_up(r: Result) -> list[Row]:
    def row(name: str, key: str, below: float, unit: str, peers: str) -> Row:
        digits = 2 if unit == "s" else 0
        return Row(name, _both(r, key, unit, digits), "", "", r.median(key) < below, peers)

    return [
        row("`standalone` from nothing to healthy < 2 s", "healthy_s", 2, "s", FIGURES["healthy"]),
        row("`--help` < 150 ms", "help_ms", 150, "ms", FIGURES["help"]),
        row("`import tradewind` < 50 ms", "import_ms", 50, "ms", FIGURES["import"]),
        *_import_of_airflow(r),
        row("`dags list` < 400 ms", "dags_list_ms", 400, "ms", FIGURES["dags_list"]),
    ]


def _import_of_airflow(r: Result) -> list[Row]:
    if not r.samples.get("airflow_import_ms"):
        return []
    ours, theirs = r.median("dag_import_ms"), r.median("airflow_import_ms")
    name = "`from airflow import DAG` ≤ 1.5 × `from tradewind import DAG`"
    return [
        Row(name, _both(r, "airflow_import_ms", "ms", 0), f"{ours:.0f} ms", f"{theirs / ours:.2f} ×", theirs <= 1.5 * ours, "")
    ]


def _weather(r: Result) -> list[Row]:
    seconds, ratio = r.median("seconds"), r.median("ratio")
    return [
        Row(
            "1,461-run catch-up ≤ 60 s and ≤ 3 × (tasks ÷ bare fork rate)",
            f"{seconds:.1f} s for {r.facts.get('tasks', '?')} tasks",
            f"bare {r.median('bare_seconds'):.1f} s",
            f"{ratio:.2f} ×",
            seconds <= 60 and ratio <= 3,
        )
    ]


def _history(r: Result) -> list[Row]:
    ratio = r.median("with_hop_ms") / r.median("without_hop_ms")
    latency = r.median("with_to_code_ms") / r.median("without_to_code_ms")
    return [
        Row(
            "10 million finished task instances: no effect on a hop",
            _both(r, "with_hop_ms", "ms"),
            f"without {_both(r, 'without_hop_ms', 'ms')}",
            f"{ratio:.2f} ×",
            ratio <= 1.15,
            FIGURES["history"],
        ),
        Row(
            "10 million finished task instances: no effect on trigger → user code",
            _both(r, "with_to_code_ms", "ms"),
            f"without {_both(r, 'without_to_code_ms', 'ms')}",
            f"{latency:.2f} ×",
            latency <= 1.25,
        ),
    ]


def _postgres(r: Result) -> list[Row]:
    ratio = r.median("ratio")
    return [
        Row(
            "chain of 40 on PostgreSQL: hop ≤ 2 × that on SQLite",
            _both(r, "postgres_hop_ms", "ms"),
            f"SQLite {_both(r, 'sqlite_hop_ms', 'ms')}",
            f"{ratio:.2f} × (rounds {_range(r, 'ratio')})",
            ratio <= 2,
        )
    ]


def _postgres_history(r: Result) -> list[Row]:
    ratio = r.median("with_hop_ms") / r.median("without_hop_ms")
    count = r.facts.get("task_instances")
    return [
        Row(
            f"{count:,} finished task instances on PostgreSQL: a hop within 10 %"
            if isinstance(count, int)
            else "finished task instances on PostgreSQL: a hop within 10 % of one without them",
            _both(r, "with_hop_ms", "ms"),
            f"without {_both(r, 'without_hop_ms', 'ms')}",
            f"{ratio:.2f} ×",
            ratio <= 1.1,
        )
    ]


def _celery(r: Result) -> list[Row]:
    hop, rate = r.median("hop_ratio"), r.median("rate_ratio")
    return [
        Row(
            "chain over Celery + Redis + PostgreSQL: end → start ≤ 3 × send → start of bare Celery",
            _both(r, "hop_ms", "ms"),
            f"bare {_both(r, 'bare_trip_ms', 'ms')}",
            f"{hop:.2f} × (rounds {_range(r, 'hop_ratio')})",
            hop <= 3,
        ),
        Row(
            "400 tasks over Celery, 4 at a time: ≥ 60 % of the no-ops of bare Celery with 4 processes",
            _both(r, "rate", "tasks/s", 0),
            f"bare {_both(r, 'bare_rate', 'no-ops/s', 0)}",
            f"{rate:.2f} × (rounds {_range(r, 'rate_ratio')})",
            rate >= 0.6,
        ),
    ]


def _in_browser(r: Result) -> list[Row]:
    """The grid in Chromium beside a bare page that draws the same cells. The least of several visits, because other load of the
    machine only increases it.
    """
    size = "1k" if r.samples.get("1k grid drawn") and not r.samples.get("1M grid drawn") else "1M"
    frame, drawn, bare = (
        min(r.samples.get(f"{size} {what}") or [math.nan]) for what in ("grid frame", "grid drawn", "bare drawn")
    )
    return [
        Row(
            f"web page, grid of {_INSTANCES[size]} task instances: frame < 0.5 s",
            _both(r, f"{size} grid frame", "ms", 0),
            f"bare page {_both(r, f'{size} bare frame', 'ms', 0)}",
            f"least {frame:.0f} ms",
            frame < 500,
        ),
        Row(
            f"web page, grid of {_INSTANCES[size]} task instances: cells drawn ≤ 2 × a bare page that draws the same cells",
            _both(r, f"{size} grid drawn", "ms", 0),
            f"bare page {_both(r, f'{size} bare drawn', 'ms', 0)}",
            f"{drawn / bare:.2f} × (least of each{_load_note(r)})",
            drawn <= 2 * bare,
        ),
    ]


def _load_note(r: Result) -> str:
    loads = r.samples.get(LOAD)
    return f"; load average {max(loads):.0f} on {r.facts.get('cores')} cores" if loads else ""


_INSTANCES = {"1M": "1,000,000", "1k": "1,000"}

_ROWS: list[tuple[str, Callable[[Result], list[Row]]]] = [
    ("chain", _chain),
    ("fan", _fan),
    ("scale", _scale),
    ("layered", _layered),
    ("files", _files),
    ("airflow_files", _airflow_files),
    ("minute", _minute),
    ("start_up", _start_up),
    ("weather", _weather),
    ("history", _history),
    ("postgres", _postgres),
    ("postgres_history", _postgres_history),
    ("celery", _celery),
    ("page_in_browser", _in_browser),
]


def budget_table(results: Results) -> list[str]:
    lines = ["| budget | measured: median (p95) | limit | ratio | holds? |", "|---|---|---|---|---|"]
    words = {True: "yes", False: "**no**", None: "–"}
    for row in budgets(results):
        lines.append(f"| {row.budget} | {row.measured} | {row.limit} | {row.ratio} | {words[row.holds]} |")
    return lines


# --- the page ----------------------------------------------------------------------------------------------------------


def render(results: Results) -> str:
    """The text of RESULTS.md."""
    here = machine()
    pragmas = results["scale"].facts.get("pragmas") if "scale" in results else None
    packages = here["packages"]
    assert isinstance(packages, dict)
    lines = [
        "# Measured",
        "",
        "Written by `make bench`; do not edit. Every sample is in `raw/`.",
        "",
        f"- Machine: {here['cores']} cores ({here['cpu']}), {here['memory_mb']} MB, Linux {here['linux']}.",
        f"- Python {here['python']}, SQLite {here['sqlite']}, " + ", ".join(f"{k} {v}" for k, v in packages.items()) + ".",
        f"- Pragmas of the live connection: {pragmas if pragmas else 'not measured'}.",
        "- Stock settings, one process a task. A figure counts only when the tasks' own marker lines show as many distinct",
        "  (pid, start time) as there are tasks, and the run succeeded.",
        "- *ext* is CPU that others used meanwhile: with much of it, wall times are upper bounds.",
        "",
        "## Budgets",
        "",
        *budget_table(results),
        "",
        *_quick_note(results),
        "## Kill test",
        "",
        *_kill_test(results),
        "",
        "## Also measured",
        "",
        *_also(results),
        "",
        "## The data of the web page: medians of the server's answers, ms (CPU of the API)",
        "",
        *_page(results),
        "",
        "## The grid in Chromium, ms: median (least)",
        "",
        *_grid_in_browser(results),
        "",
        "## CPU by role, ms a task",
        "",
        *_accounts(results),
        "",
        "## The machine's limits, in the same run",
        "",
        *_limits(results),
        "",
        "## Peers",
        "",
        CONDITIONS,
        "",
        "| workload | peers |",
        "|---|---|",
        *(f"| {row.budget} | {row.peers} |" for row in budgets(results) if row.peers),
        f"| trigger → user code | {FIGURES['latency']} |",
        f"| 200 bash tasks | {FIGURES['bash']} |",
        f"| 10 × fib(33) | {FIGURES['chain_long']} |",
        "",
        "## How to repeat",
        "",
        '`make bench` (about ten minutes); `make bench ARGS="chain fan"` for some of it, `ARGS=--quick` to see that it works,',
        "`ARGS=--full` for 100,000 tasks with processes as well. `python -m benchmarks.profile_hotpath` shows",
        "where a task's time goes. Leave the machine alone meanwhile.",
        "",
        "| workload | measured at (UTC) |",
        "|---|---|",
        *(f"| {name} | {result.facts.get('measured_at')} |" for name, result in results.items()),
    ]
    return "\n".join(lines) + "\n"


def _quick_note(results: Results) -> list[str]:
    quick = [name for name, result in results.items() if result.facts.get("quick")]
    return [f"Measured with `--quick`, not to be quoted: {', '.join(quick)}.", ""] if quick else []


def _kill_test(results: Results) -> list[str]:
    """The last `make chaos` with each number of worker hosts, evaluated from the marker lines of the tasks and a list of
    processes.
    """
    names = sorted(name for name in results if name.startswith("kill_test"))
    if not names:
        return ["Not run yet: `make chaos`."]
    return [line for name in names for line in _one_kill_test(results[name])]


def _one_kill_test(result: Result) -> list[str]:
    facts: dict[str, Any] = result.facts
    workers = facts.get("workers", 1)
    hosts = "one worker host" if workers == 1 else f"{workers} worker hosts"
    more = "" if workers == 1 else f" --workers {workers}"
    kinds = ", ".join(f"{kind} {number}" for kind, number in facts["kills"].items())
    ending = (
        result.problem
        or "no second accepted attempt, no overlap, no lost task, no process left, every run ended as its script says"
    )
    return [
        f"With {hosts}: {sum(facts['kills'].values())} times SIGKILL under load in {facts['seconds']:.0f} s,",
        f"seed {facts['seed']}: {kinds}.",
        f"{facts['runs']} runs, {facts['attempts']} attempts, {facts['killed_attempts']} of them killed, {facts['repeated']} done",
        "again because their report was killed on its way. Judged only from marker lines that the tasks sync themselves and",
        f"from a census of processes: {ending}.",
        "",
        f"Repeat with `python -m tests.chaos --kills {sum(facts['kills'].values())} --seed {facts['seed']}{more}`.",
        "",
    ]


def _also(results: Results) -> list[str]:
    lines = ["| what | median (p95) |", "|---|---|"]

    def add(what: str, name: str, text: Callable[[Result], str]) -> None:
        result = results.get(name)
        if result is not None:
            lines.append(f"| {what} | {'failed: ' + _short(result.problem) if result.problem else text(result)} |")

    add("10 × fib(33): total", "chain_long", lambda r: _both(r, "total_s", "s"))
    add("10 × fib(33): all but the tasks' own code", "chain_long", lambda r: _both(r, "overhead_s", "s", 3))
    add("chain of 40: total", "chain", lambda r: _both(r, "total_s", "s"))
    add("trigger → user code", "latency", lambda r: _both(r, "to_code_ms", "ms", 1))
    add("trigger → user code, first task of a DAG", "latency", lambda r: _both(r, "first_to_code_ms", "ms", 1))
    add("trigger → run ended", "latency", lambda r: _both(r, "to_end_ms", "ms", 1))
    add("200 bash tasks", "bash", lambda r: _both(r, "rate_per_s", "tasks/s", 0))
    add("fan: CPU a task, whole deployment", "fan", lambda r: _both(r, "cpu_ms_per_task", "ms"))
    add("tasks/s by size of run", "layered", lambda r: _shown(_growth(r, "rate_per_s_"), "tasks/s", 0))
    what = "statements, commits, bytes of WAL a task, in-process executor"
    add(f"{what}, chain", "scale", lambda r: _statements(r, "chain"))
    add(f"{what}, fan", "scale", lambda r: _statements(r, "fan"))
    add("`tradewind version`", "start_up", lambda r: _both(r, "version_ms", "ms", 0))
    add("PSS by role after 1,000 tasks, MB", "files", lambda r: str(r.facts.get("pss_mb")))
    return lines


def _statements(result: Result, dag: str) -> str:
    found = result.facts.get(f"statements_{dag}")
    if not isinstance(found, dict):
        return "not measured"
    return f"{found['statements']:.1f}, {found['commits']:.2f}, {found['wal_bytes']:,.0f}"


_PAGE = ("cells first", "cells", "cells, nothing new", "structure first", "structure", "dags", "triage", "run", "gantt")


def _page(results: Results) -> list[str]:
    result = results.get("page")
    if result is None or result.problem is not None:
        return ["not measured"]
    lines = ["| task instances | " + " | ".join(_PAGE) + " |", "|---|" + "---|" * len(_PAGE)]
    sizes = dict.fromkeys(key.rsplit(" triage", 1)[0] for key in result.samples if key.endswith(" triage"))
    for size in sizes:
        cells = " | ".join(
            f"{result.median(f'{size} {what}'):.0f} ({result.median(f'{size} {what} cpu'):.0f})" for what in _PAGE
        )
        lines.append(f"| {size} | {cells} |")
    return [*lines, *_load_lines(result)]


def _load_lines(result: Result) -> list[str]:
    """How busy other programs kept the machine, if it was noted."""
    loads = result.samples.get(LOAD)
    if not loads:
        return []
    cores = int(str(result.facts.get("cores") or 1))
    busy = " Other programs used the cores meanwhile, so all times are upper bounds." if max(loads) > 2 * cores else ""
    return ["", f"Load average of the machine, which has {cores} cores: {min(loads):.0f} to {max(loads):.0f}.{busy}"]


def _grid_in_browser(results: Results) -> list[str]:
    result = results.get("page_in_browser")
    if result is None or result.problem is not None:
        return ["not measured"]
    shown = ("grid frame", "grid drawn", "bare drawn", "grid first drawn", "bare first drawn", "grid frames", "bare frames")
    lines = [
        "| task instances | frame | drawn | bare page | drawn, empty cache | bare, empty cache | scrolling, a frame | bare |"
    ]
    lines.append("|---|" + "---|" * len(shown))
    for size in dict.fromkeys(key.removesuffix(" grid drawn") for key in result.samples if key.endswith(" grid drawn")):
        cells = (result.samples.get(f"{size} {what}") for what in shown)
        lines.append(f"| {size} | " + " | ".join(f"{median(one):.0f} ({min(one):.0f})" if one else "–" for one in cells) + " |")
    return [*lines, *_load_lines(result)]


def _accounts(results: Results) -> list[str]:
    roles = ("runners", "templates", "host", "scheduler", "image", "parser", "api", "supervisor", "all")
    lines = ["| run | " + " | ".join(roles) + " | ext, CPU s |", "|---|" + "---|" * (len(roles) + 1)]
    for name in ("chain", "chain_long", "fan", "layered", "bash", "minute", "weather"):
        result = results.get(name)
        if result is None or result.problem is not None:
            continue
        for key, account in sorted(result.facts.items(), key=lambda item: (len(item[0]), item[0])):
            if not key.endswith("account") or not isinstance(account, dict):
                continue
            each = account.get("cpu_ms_per_task")
            if each:
                label = f"{name} {key.removesuffix('account').strip('.')}".strip()
                cells = " | ".join(f"{each.get(role, 0.0):.2f}" for role in roles)
                lines.append(f"| {label} | {cells} | {account['ext_cpu_s']} |")
    return lines


def _limits(results: Results) -> list[str]:
    lines = ["| what | median (p95) |", "|---|---|"]
    shown = (
        ("fan", "fork_ms", "fork + exit + wait, our template image", "ms", 2),
        ("fan", "bare_rate_per_s", "the same, one parent per core", "/s", 0),
        ("chain", "bare_hop_ms", "bare hop", "ms", 2),
        ("chain", "bare_dispatch_ms", "its dispatch commit", "ms", 2),
        ("chain", "bare_accept_ms", "its accept commit", "ms", 2),
        ("chain", "bare_report_ms", "its report commit", "ms", 2),
        ("limits", "commit_full_ms", "SQLite WAL commit, synchronous=FULL", "ms", 3),
        ("limits", "commit_normal_ms", "SQLite WAL commit, synchronous=NORMAL", "ms", 3),
        ("limits", "round_trip_us", "Unix socket round trip to another process", "us", 1),
    )
    for name, key, what, unit, digits in shown:
        if name in results and results[name].samples.get(key):
            lines.append(f"| {what} | {_both(results[name], key, unit, digits)} |")
    if "fan" in results:
        lines.append(
            f"| size of that template image, resident | {median(results['fan'].samples.get('fork_rss_mb', [])):.0f} MB |"
        )
    limits = results.get("limits")
    for size in (30, 100, 250) if limits is not None else ():
        assert limits is not None
        default, huge = (_both(limits, f"fork_{size}_{kind}_ms", "ms") for kind in ("default", "hugetlb"))
        lines.append(f"| fork + exit + wait at {size} MB, default malloc / malloc with huge pages | {default} / {huge} |")
    return lines
