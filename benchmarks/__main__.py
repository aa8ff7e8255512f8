"""`python -m benchmarks [NAME …] [--quick] [--full] [--out FOLDER]`: measure, and write RESULTS.md and raw/*.json."""

from __future__ import annotations

import argparse
import datetime
import os
import traceback
from collections.abc import Callable
from pathlib import Path

from benchmarks import celery, history, hot, installation, limits, page, page_in_browser, postgres, report, scale
from benchmarks.bench import Bench, Workload
from benchmarks.deployment import REPOSITORY
from benchmarks.measure import Result


def machine_limits(bench: Bench) -> list[Result]:
    """Commits, messages, and forks by size. Limits that belong to one workload are measured together with it."""
    result = Result("limits")
    for _ in range(bench.pick(3, 1)):
        limits.commits(bench.pick(500, 200), result)
        limits.round_trips(bench.pick(5000, 1000), result)
    limits.fork_sizes(bench.pick(150, 40), result)
    bench.say(f"commit FULL {result.median('commit_full_ms'):.2f} ms, round trip {result.median('round_trip_us'):.0f} us")
    return [result]


WORKLOADS: dict[str, Workload] = {
    "limits": machine_limits,
    "chain": hot.chain,
    "fan": hot.fan,
    "latency": hot.latency,
    "bash": hot.bash,
    "layered": hot.layered,
    "scale": scale.scale,
    "start_up": installation.start_up,
    "files": installation.files,
    "airflow_files": installation.airflow_files,
    "minute": installation.minute,
    "weather": installation.weather,
    "history": history.history,
    "postgres": postgres.postgres,
    "postgres_history": postgres.postgres_history,
    "celery": celery.celery,
    "page": page.page,
    "page_in_browser": page_in_browser.page_in_browser,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(WORKLOADS)}")
    parser.add_argument("--quick", action="store_true", help="few repetitions, small sizes: not for results")
    parser.add_argument("--full", action="store_true", help="also 100,000 tasks with processes (six minutes more)")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "benchmarks", help="folder for RESULTS.md and raw/")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in WORKLOADS]
    if unknown:
        parser.error(f"there is no workload {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    bench = Bench(options.quick, options.full)
    raw = options.out / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    for name in options.names or WORKLOADS:
        bench.say(f"--- {name}")
        for result in _attempt(name, WORKLOADS[name], bench):
            if result.problem:
                bench.say(f"{result.name} FAILED: {result.problem}")
            report.write_raw(raw, day, result, bench)
    report.write(options.out)
    bench.say(f"written: {options.out / 'RESULTS.md'}")
    print("\n".join(report.budget_table(report.read_raw(raw))))
    return 0


def _attempt(name: str, workload: Callable[[Bench], list[Result]], bench: Bench) -> list[Result]:
    """Run one workload. An exception fails only this workload."""
    try:
        return workload(bench)
    except Exception as error:
        traceback.print_exc()
        return [Result(name, problem=f"{type(error).__name__}: {error}"[:500])]


if __name__ == "__main__":
    raise SystemExit(main())
