"""Costs of a whole installation: its start, a thousand DAG files, two hundred DAGs per minute, the example with weather data."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import dagfiles, limits
from benchmarks.bench import Bench
from benchmarks.deployment import REPOSITORY, Deployment, have_standalone, stock_environment, tradewind_command
from benchmarks.measure import Result, pss_mb, running_ns

NEEDS_STANDALONE = "needs `tradewind standalone`, which is not installed"


def start_up(bench: Bench) -> list[Result]:
    """Times: from the start to healthy, of the command line, of the import."""
    result = Result("start_up")
    if not have_standalone():
        result.problem = NEEDS_STANDALONE
        return [result]
    for _ in range(bench.pick(5, 2)):
        deployment = Deployment()
        began = time.monotonic()
        with deployment.unready():
            while not deployment.healthy():
                if time.monotonic() - began > 60:
                    raise RuntimeError(f"not healthy: {deployment.log_tail()}")
                time.sleep(0.01)
            result.add("healthy_s", [time.monotonic() - began])
    deployment = Deployment({f"f{i}.py": dagfiles.ten(f"f{i}") for i in range(5)})
    with deployment:
        for name, words in (("help", ["--help"]), ("dags_list", ["dags", "list"]), ("version", ["version"])):
            for repetition in range(bench.pick(12, 5)):
                began = time.monotonic()
                done = subprocess.run(
                    [*tradewind_command(), *words], env=deployment.environment, capture_output=True, text=True, check=False
                )
                if done.returncode != 0:
                    result.problem = f"`tradewind {' '.join(words)}` failed: {done.stderr.strip()[-300:]}"
                    break
                if repetition:
                    result.add(f"{name}_ms", [(time.monotonic() - began) * 1e3])
    code = "import time; t = time.perf_counter(); import tradewind; print((time.perf_counter() - t) * 1e3)"
    for repetition in range(bench.pick(12, 5)):
        took = subprocess.check_output([sys.executable, "-c", code], env=stock_environment(Path("/tmp")))
        if repetition:
            result.add("import_ms", [float(took)])
    code = "import time; t = time.perf_counter(); {}; print((time.perf_counter() - t) * 1e3)"
    imports = {
        "dag_import_ms": "from tradewind import DAG",
        "airflow_import_ms": "import tradewind.airflow; from airflow import DAG",
    }
    for repetition in range(bench.pick(12, 5)):
        for key, statement in imports.items():
            took = subprocess.check_output([sys.executable, "-c", code.format(statement)], env=stock_environment(Path("/tmp")))
            if repetition:
                result.add(key, [float(took)])
    bench.say(f"healthy after {result.median('healthy_s'):.2f} s, --help {result.median('help_ms'):.0f} ms")
    return [result]


def files(bench: Bench) -> list[Result]:
    """1,000 files × 10 tasks: time until all are registered; then 1,000 tasks; then the cost of being idle."""
    result, number = Result("files"), bench.pick(1000, 200)
    result.facts["files"] = number
    if not have_standalone():
        result.problem = NEEDS_STANDALONE
        return [result]
    deployment = Deployment()
    for i in range(number):
        (deployment.dags / f"p{i:04d}.py").write_text(dagfiles.ten(f"p{i:04d}"))
    began = time.monotonic()
    with deployment.unready():
        span = deployment.span()
        while (known := _count_dags(deployment)) < number:
            if time.monotonic() - began > 120:
                result.problem = f"{known} of {number} files known after 120 s: {deployment.log_tail()[-500:]}"
                return [result]
            time.sleep(0.05)
        result.add("known_s", [time.monotonic() - began])
        span.end().into(result, "known.", number)
        deployment.wait_ready()
        bench.say(f"{number} files known after {result.median('known_s'):.1f} s")
        began = time.monotonic()
        runs = []
        for i in range(number // 10):
            deployment.call("set_paused", dag_id=f"p{i:04d}", is_paused=False)
            runs.append(deployment.trigger(f"p{i:04d}"))
        ended = [deployment.wait(run, every=0.05) for run in runs]
        if set(ended) != {2}:
            result.problem = f"runs ended in states {sorted(set(ended))}"
        result.facts["tasks_s"] = round(time.monotonic() - began, 2)
        time.sleep(bench.pick(5, 2))
        just_after = pss_mb(deployment.members())
        result.add("pss_just_after_mb", [sum(just_after.values())])
        result.facts["pss_just_after_mb"] = {role: round(size, 1) for role, size in sorted(just_after.items())}
        time.sleep(bench.pick(25, 2))  # warm templates of files that import quickly end after 15 to 20 s without a task
        members = deployment.members()
        span, ran = deployment.span(), running_ns(members)
        time.sleep(bench.pick(20, 5))
        ran = running_ns(deployment.members()) - ran
        span.end().into(result, "idle.")
        result.add("idle_percent", [ran / 1e9 / span.seconds * 100])
        by_role = pss_mb(deployment.members())
        result.add("pss_mb", [sum(by_role.values())])
        result.facts["pss_mb"] = {role: round(size, 1) for role, size in sorted(by_role.items())}
        result.facts["processes"] = len(members)
    bench.say(f"idle {result.median('idle_percent'):.2f} % of a core, {result.median('pss_mb'):.0f} MB PSS")
    return [result]


def airflow_files(bench: Bench) -> list[Result]:
    """1,000 files × 10 tasks that import `airflow`, and the same files with `tradewind`, in turns: time and CPU time until all are
    registered, then the cost of being idle.
    """
    result, number = Result("airflow_files"), bench.pick(1000, 200)
    result.facts["files"] = number
    if not have_standalone():
        result.problem = NEEDS_STANDALONE
        return [result]
    for repetition in range(bench.pick(3, 1)):
        for module in ("tradewind", "airflow") if repetition % 2 == 0 else ("airflow", "tradewind"):
            result.problem = _measure_files(bench, result, module, number)
            if result.problem:
                return [result]
    pairs = zip(result.samples["airflow_cpu_ms"], result.samples["tradewind_cpu_ms"], strict=True)
    result.add("cpu_ratio", [airflow / tradewind for airflow, tradewind in pairs])
    bench.say(
        f"files with airflow: {result.median('airflow_cpu_ms'):.2f} ms CPU a file, {result.median('cpu_ratio'):.2f} × tradewind"
    )
    return [result]


def _measure_files(bench: Bench, result: Result, module: str, number: int) -> str | None:
    """Measure an installation whose files import this module; a problem, or None."""
    deployment = Deployment()
    for i in range(number):
        (deployment.dags / f"p{i:04d}.py").write_text(dagfiles.ten(f"p{i:04d}", module))
    began = time.monotonic()
    with deployment.unready():
        span = deployment.span()
        while (known := _count_dags(deployment)) < number:
            if time.monotonic() - began > 240:
                return f"{known} of {number} files with {module} known after 240 s: {deployment.log_tail()[-500:]}"
            time.sleep(0.05)
        result.add(f"{module}_known_s", [time.monotonic() - began])
        span.end().into(result, f"{module}.known.", number)
        result.add(f"{module}_cpu_ms", [span.total / number * 1e3])
        time.sleep(bench.pick(15, 3))
        span = deployment.span()
        time.sleep(bench.pick(20, 5))
        span.end().into(result, f"{module}.idle.")
        result.add(f"{module}_idle_percent", [span.total / span.seconds * 100])
    return None


def _count_dags(deployment: Deployment) -> int:
    try:
        database = deployment.database()
        try:
            found: int = database.execute("SELECT count(*) FROM dag").fetchone()[0]
            return found
        finally:
            database.close()
    except Exception:  # no database yet
        return 0


STAMP = "%Y%m%dT%H%M%S"
"""Airflow's `ts_nodash`."""


def minute(bench: Bench) -> list[Result]:
    """200 DAGs due each minute: time from the full minute to the code of each task."""
    result, number, ticks = Result("minute"), 200, bench.pick(2, 1)
    deployment = Deployment()
    for i in range(number):
        deployment.add_file(f"m{i:03d}.py", dagfiles.minute(f"m{i:03d}", deployment.marks.path))
    with deployment:
        time.sleep(3)
        if time.time() % 60 > 50:
            time.sleep(60 - time.time() % 60 + 8)
        deployment.marks.take()
        first = int(time.time() // 60) + 1
        bench.say(f"200 every-minute DAGs: waiting {first * 60 - time.time():.0f} s for the minute")
        span = deployment.span()
        wanted = {datetime.datetime.fromtimestamp((first + i) * 60, datetime.UTC).strftime(STAMP) for i in range(ticks)}
        time.sleep(first * 60 + (ticks - 1) * 60 + 5 - time.time())
        marks: list[dagfiles.Mark] = []
        while len(marks) < number * ticks and time.time() < (first + ticks) * 60 - 2:
            time.sleep(0.5)
            marks += [mark for mark in deployment.marks.take() if mark.name.partition("@")[2] in wanted]
        span.end().into(result, tasks=number * ticks)
        result.problem = dagfiles.problem_of(marks, number * ticks)
        for mark in marks:
            due = datetime.datetime.strptime(mark.name.partition("@")[2], STAMP).replace(tzinfo=datetime.UTC)
            result.add("lag_s", [(mark.wall - (mark.ended - mark.started)) / 1e9 - due.timestamp()])
    bench.say(f"lag: median {result.median('lag_s'):.2f} s, p95 {result.p95('lag_s'):.2f} s")
    return [result]


def weather(bench: Bench) -> list[Result]:
    """The shipped example: 1,461 runs from one unpause."""
    result = Result("weather")
    if not have_standalone() or bench.quick:
        result.problem = "left out by --quick" if bench.quick else NEEDS_STANDALONE
        return [result]
    deployment = Deployment(examples=True)
    with deployment:
        bare = limits.bare_rate(REPOSITORY / "examples" / "weather_warehouse.py", 400, result)
        deadline = time.monotonic() + 60
        while not _known(deployment, "weather_warehouse"):
            if time.monotonic() > deadline:
                result.problem = f"the example is not known: {deployment.log_tail()[-500:]}"
                return [result]
            time.sleep(0.1)
        tasks_a_run = _task_count(deployment)
        span = deployment.span()
        began = time.monotonic()
        done = subprocess.run(
            [*tradewind_command(), "dags", "unpause", "weather_warehouse"],
            env=deployment.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            deployment.call("set_paused", dag_id="weather_warehouse", is_paused=False)
            result.notes.append("unpaused by the scheduler's command: the command line could not")
        counts = _wait_for_runs(deployment, 1461, bench)
        seconds = time.monotonic() - began
        span.end().into(result, tasks=1461 * tasks_a_run)
        if counts != {2: 1461}:
            result.problem = f"runs by state: {counts}"
        result.add("seconds", [seconds])
        result.add("bare_seconds", [1461 * tasks_a_run / bare])
        result.add("ratio", [seconds / (1461 * tasks_a_run / bare)])
        result.facts["tasks"] = 1461 * tasks_a_run
    bench.say(f"weather: {seconds:.1f} s for {1461 * tasks_a_run} tasks, {result.median('ratio'):.2f} × bare")
    return [result]


def _known(deployment: Deployment, dag_id: str) -> bool:
    database = deployment.database()
    try:
        return database.execute("SELECT 1 FROM dag WHERE dag_id = ?", (dag_id,)).fetchone() is not None
    finally:
        database.close()


def _task_count(deployment: Deployment) -> int:
    database = deployment.database()
    try:
        found: int = database.execute("SELECT task_count FROM dag WHERE dag_id = 'weather_warehouse'").fetchone()[0]
        return found
    finally:
        database.close()


def _wait_for_runs(deployment: Deployment, runs: int, bench: Bench, timeout: float = 300) -> dict[int, int]:
    """Wait until the given number of runs of the example has ended, or until the deadline. Returns the runs by state."""
    database = deployment.database()
    deadline, counts = time.monotonic() + timeout, {}
    try:
        while time.monotonic() < deadline:
            query = "SELECT state, count(*) FROM dag_run WHERE dag_id = 'weather_warehouse' GROUP BY state"
            counts = dict(database.execute(query).fetchall())
            if sum(number for state, number in counts.items() if state >= 2) >= runs:
                break
            time.sleep(0.2)
        return counts
    finally:
        database.close()
