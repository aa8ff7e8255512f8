"""The same chain on PostgreSQL and on SQLite, hop by hop in turn; and PostgreSQL with and without ten million finished rows.

The server is a private one on this machine, with its own defaults: each commit waits for the disk, as SQLite's do.
"""

from __future__ import annotations

import itertools
import time

from tests.postgres_server import PostgresServer, private_server

from benchmarks import dagfiles
from benchmarks.bench import Bench
from benchmarks.deployment import Deployment
from benchmarks.history import RUNS, TASKS
from benchmarks.hot import run_checked
from benchmarks.measure import Result, median

SERVER = "-c listen_addresses='' -c shared_buffers=256MB -c max_wal_size=4GB"
LENGTH = 40
_DAY = 86_400 * 1_000_000

_INSERT_RUNS = """
INSERT INTO tradewind.dag_run (id, dag_id, run_id, run_type, state, version, logical_date, run_after, queued_at, started_at,
  ended_at, triggered_by, task_count, rows_created, revision, journal_seq)
SELECT i, 'chain', 'scheduled__' || i, 'scheduled', 2, (SELECT version FROM tradewind.dag WHERE dag_id = 'chain'), i * 60000000,
  i * 60000000, {now}, {now}, {now}, 'timetable', {tasks}, {tasks}, 120, 400
FROM generate_series(CAST(1000 AS BIGINT), 999 + {runs}) i"""
_INSERT_TASKS = """
INSERT INTO tradewind.task_instance (run, slot, task_id, state, fence, try_number, queued_at, started_at, ended_at)
SELECT r, n, 't' || n, 4, 1, 1, {now}, {now}, {now}
FROM generate_series(CAST({first} AS BIGINT), {last}) r, generate_series(0, {tasks} - 1) n"""


def postgres(bench: Bench) -> list[Result]:
    """End → start on PostgreSQL and on SQLite, in turn."""
    result = Result("postgres")
    with private_server(SERVER) as server:
        result.facts["server"] = _settings(server)
        here, there = Deployment(standalone=False), Deployment(standalone=False, database_url=server.create_database())
        for deployment in (here, there):
            deployment.add_file("chain.py", dagfiles.chain("chain", deployment.marks.path, LENGTH, 10))
        with here, there:
            for deployment in (here, there):
                run_checked(deployment, "chain", LENGTH, result)
            result.facts["connections"] = _connections(server)
            for repetition in range(bench.pick(12, 4)):
                medians = {}
                for name, deployment in (("sqlite", here), ("postgres", there)):
                    span = deployment.span()
                    marks, total = run_checked(deployment, "chain", LENGTH, result)
                    span.end().into(result, f"{name}.{repetition}.", LENGTH)
                    hops = [(after.started - before.ended) / 1e6 for before, after in itertools.pairwise(marks)]
                    result.add(f"{name}_hop_ms", hops)
                    result.add(f"{name}_total_s", [total])
                    medians[name] = median(hops)
                result.add("ratio", [medians["postgres"] / medians["sqlite"]])
                bench.say(f"chain {repetition + 1}: PostgreSQL {medians['postgres']:.2f} ms, SQLite {medians['sqlite']:.2f} ms")
    return [result]


def postgres_history(bench: Bench) -> list[Result]:
    """Hops on PostgreSQL with and without ten million finished task instances, in turn."""
    result = Result("postgres_history")
    runs = bench.pick(RUNS, RUNS // 100)
    with private_server(SERVER) as server:
        full, empty = (Deployment(standalone=False, database_url=server.create_database()) for _ in range(2))
        for deployment in (full, empty):
            deployment.add_file("chain.py", dagfiles.chain("chain", deployment.marks.path, LENGTH, 10))
        with full, empty:
            full.stop()
            began = time.monotonic()
            assert full.database_url is not None
            database = full.database_url.partition("?")[0].rpartition("/")[2]
            result.facts["task_instances"] = _fill(server, database, runs, bench)
            result.facts["fill_s"] = round(time.monotonic() - began, 1)
            ((size,),) = server.execute("SELECT pg_database_size(current_database()) / 1000000", database)
            result.facts["database_mb"] = size
            began = time.monotonic()
            full.start()
            result.add("start_s", [time.monotonic() - began])
            for deployment in (full, empty):
                run_checked(deployment, "chain", LENGTH, result)
            for _ in range(bench.pick(12, 2)):
                for name, deployment in (("with", full), ("without", empty)):
                    began_ns = time.monotonic_ns()
                    marks, total = run_checked(deployment, "chain", LENGTH, result)
                    result.add(f"{name}_total_s", [total])
                    result.add(f"{name}_to_code_ms", [(marks[0].started - began_ns) / 1e6])
                    result.add(f"{name}_hop_ms", [(b.started - a.ended) / 1e6 for a, b in itertools.pairwise(marks)])
    if result.facts["task_instances"] != runs * TASKS:
        result.problem = f"only {result.facts['task_instances']} task instances were preloaded"
    bench.say(f"history: hop {result.median('with_hop_ms'):.2f} ms with, {result.median('without_hop_ms'):.2f} ms without")
    return [result]


def _settings(server: PostgresServer) -> dict[str, object]:
    names = "'server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method'"
    return {
        str(name): value for name, value in server.execute(f"SELECT name, setting FROM pg_settings WHERE name IN ({names})")
    }


def _connections(server: PostgresServer) -> int:
    """Connections of the scheduler; the worker host has none."""
    ((found,),) = server.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tradewind%'")
    assert isinstance(found, int)
    return found


def _fill(server: PostgresServer, database: str, runs: int, bench: Bench) -> int:
    """Write finished runs with `TASKS` task instances each. Returns the number of rows."""
    now = time.time_ns() // 1000 - _DAY
    server.execute(_INSERT_RUNS.format(now=now, tasks=TASKS, runs=runs), database)
    step = 5000
    for first in range(1000, 1000 + runs, step):
        last = min(first + step, 1000 + runs) - 1
        server.execute(_INSERT_TASKS.format(first=first, last=last, now=now, tasks=TASKS), database)
        if (first - 1000) % 20_000 == 0:
            bench.say(f"history: {first - 1000} of {runs} runs written")
    server.execute("VACUUM (ANALYZE)", database)
    server.execute("CHECKPOINT", database)
    ((found,),) = server.execute(f"SELECT count(*) FROM tradewind.task_instance WHERE ended_at = {now}", database)
    assert isinstance(found, int)
    return found
