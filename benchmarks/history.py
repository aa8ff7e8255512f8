"""Compares the speed with ten million finished task instances to that with an empty database.

The rows are made by SQL, not by running: 100,000 runs of the same chain with 100 task instances each, their attempts left out.
"""

from __future__ import annotations

import itertools
import sqlite3
import time

from benchmarks import dagfiles
from benchmarks.bench import Bench
from benchmarks.deployment import Deployment
from benchmarks.hot import run_checked
from benchmarks.measure import Result

RUNS, TASKS = 100_000, 100
_DAY = 86_400 * 1_000_000

_COUNT = "WITH RECURSIVE n (i) AS (SELECT {low} UNION ALL SELECT i + 1 FROM n WHERE i < {high})"
_INSERT_RUNS = (
    _COUNT
    + """
INSERT INTO dag_run (dag_id, run_id, run_type, state, version, logical_date, run_after, queued_at, started_at, ended_at,
  triggered_by, task_count, rows_created, revision, journal_seq)
SELECT 'chain', 'scheduled__' || i, 'scheduled', 2, (SELECT version FROM dag WHERE dag_id = 'chain'), i * 60000000,
  i * 60000000, {now}, {now}, {now}, 'timetable', {tasks}, {tasks}, 120, 400 FROM n"""
)
_INSERT_TASKS = (
    _COUNT
    + """
INSERT INTO task_instance (run, slot, task_id, state, fence, try_number, queued_at, started_at, ended_at)
SELECT r.id, n.i, 't' || n.i, 4, 1, 1, {now}, {now}, {now} FROM dag_run r CROSS JOIN n WHERE r.id BETWEEN {first} AND {last}"""
)


def history(bench: Bench) -> list[Result]:
    """Hops and trigger latency with and without history, interleaved."""
    result = Result("history")
    if bench.quick:
        result.problem = "left out by --quick"
        return [result]
    old, new = Deployment(standalone=False), Deployment(standalone=False)
    for deployment in (old, new):
        deployment.add_file("chain.py", dagfiles.chain("chain", deployment.marks.path, 40, 10))
    with old, new:
        old.stop()
        began = time.monotonic()
        result.facts["task_instances"] = _fill(old, bench)
        result.facts["fill_s"] = round(time.monotonic() - began, 1)
        result.facts["database_mb"] = round((old.home / "tradewind.db").stat().st_size / 1e6)
        began = time.monotonic()
        old.start()
        result.add("start_s", [time.monotonic() - began])
        for deployment in (old, new):
            run_checked(deployment, "chain", 40, result)
        for _ in range(8):
            for name, deployment in (("with", old), ("without", new)):
                began_ns = time.monotonic_ns()
                marks, total = run_checked(deployment, "chain", 40, result)
                result.add(f"{name}_total_s", [total])
                result.add(f"{name}_to_code_ms", [(marks[0].started - began_ns) / 1e6])
                result.add(f"{name}_hop_ms", [(b.started - a.ended) / 1e6 for a, b in itertools.pairwise(marks)])
    if result.facts["task_instances"] != RUNS * TASKS:
        result.problem = f"only {result.facts['task_instances']} task instances were preloaded"
    bench.say(f"history: hop {result.median('with_hop_ms'):.2f} ms with, {result.median('without_hop_ms'):.2f} ms without")
    return [result]


def _fill(deployment: Deployment, bench: Bench) -> int:
    database = sqlite3.connect(deployment.home / "tradewind.db", isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    now = time.time_ns() // 1000 - _DAY
    first = database.execute("SELECT coalesce(max(id), 0) + 1 FROM dag_run").fetchone()[0]
    database.execute(_INSERT_RUNS.format(low=1, high=RUNS, now=now, tasks=TASKS))
    step = 5000
    for start in range(first, first + RUNS, step):
        database.execute(_INSERT_TASKS.format(low=0, high=TASKS - 1, now=now, first=start, last=start + step - 1))
        if (start - first) % 20_000 == 0:
            bench.say(f"history: {start - first} of {RUNS} runs written")
    found: int = database.execute("SELECT count(*) FROM task_instance WHERE ended_at = ?", (now,)).fetchone()[0]
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return found
