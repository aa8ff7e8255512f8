"""Scheduler and store without processes: CPU time, memory and writes per task, for growing sizes and numbers of runs.

`python -m benchmarks.scale MODE DAG` runs in $TRADEWIND_HOME, in a process of its own, with an executor in the same process that
starts and ends every attempt at once, 32 at a time. MODE: cpu, beside, memory, traced, statements. It prints one JSON object.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from tests.unit.scheduler.bench import StubExecutor

from benchmarks import dagfiles
from benchmarks.bench import Bench
from benchmarks.deployment import REPOSITORY, Deployment
from benchmarks.measure import Result, rss_mb
from benchmarks.steps import lines_of
from tradewind.cli.compose.database import open_store
from tradewind.cli.compose.scheduler_settings import scheduler_config
from tradewind.model.moments import DAY
from tradewind.model.states import Outcome
from tradewind.platform.clock import SystemClock
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.inbox import FromWorker
from tradewind.settings import load
from tradewind.store.sql.dialects.sqlite import SqliteEngine
from tradewind.store.sql.store import SqlStore
from tradewind.wire.commands import IncomingCommand, build, result_of
from tradewind.wire.messages import Report, Start

RUNS_BESIDE = 50


class SchedulerRun:
    """The scheduler over the store of $TRADEWIND_HOME."""

    def __init__(self) -> None:
        settings = load()
        self.config = scheduler_config(settings)
        self.store, self.clock = open_store(settings), SystemClock()
        epoch = self.store.begin_epoch("localhost", os.getpid(), "boot", self.clock.wall())
        self.stub = StubExecutor()
        self.scheduler = Scheduler(self.store, self.clock, self.config, self.stub, epoch, lambda notice: None)
        self.scheduler.load()
        self.commands = Commands(self.store, self.clock, self.config, lambda text: text.encode())

    def begin(self, dag: str, **more: Any) -> int:
        """Create a run and dispatch its first tasks. Returns its number."""
        number: int = self.command("trigger", dag_id=dag, **more).id
        return number

    def command(self, name: str, **args: Any) -> Any:
        """Execute a command with its effects. Returns its value."""
        command = build(name, args)
        answer, effects = self.commands.run(IncomingCommand(f"{time.time_ns()}", command, "benchmark"))
        result = result_of(answer, command)
        effects.apply(self.scheduler)
        self.scheduler.process()
        return result

    def finish(self) -> int:
        """Act as the task processes until no workload is left. Returns the number of attempts."""
        played, scheduler = 0, self.scheduler
        while given := self.stub.submitted:
            self.stub.submitted = []
            for workload in given:
                scheduler.push(FromWorker(workload.key, "stub", Start(1, f"{played:016x}", 4711, "localhost")))
                played += 1
            scheduler.process()
            ended = self.clock.wall()
            for workload in given:
                scheduler.push(FromWorker(workload.key, "stub", Report(2, Outcome.SUCCESS, ended=ended)))
            scheduler.process()
        return played

    def state(self, run: int) -> int:
        row = self.store.run(run)
        return -1 if row is None else row.state.code


def cpu(dag: str) -> dict[str, float]:
    """CPU and wall milliseconds per task, from the trigger to the end of the second run of the DAG in this process."""
    scheduling = SchedulerRun()
    scheduling.begin(dag)
    scheduling.finish()
    began, at = time.process_time(), time.monotonic()
    run = scheduling.begin(dag)
    tasks = scheduling.finish()
    spent, seconds = time.process_time() - began, time.monotonic() - at
    return {
        "tasks": tasks,
        "state": scheduling.state(run),
        "cpu_ms": spent / tasks * 1e3,
        "wall_ms": seconds / tasks * 1e3,
        "rss_mb": rss_mb(),
    }


def beside(dag: str) -> dict[str, float]:
    """The cost of a run with one task, from the trigger to its end, with a note and a clear, beside a number of other running runs.

    `dag`: "DAG:NUMBER". One of the other runs has an attempt, the rest wait for the run before them; they stay in the database.
    Lines are those of Tradewind's own code; they do not vary with the load of the machine.
    """
    name, _, others = dag.partition(":")
    scheduling = SchedulerRun()
    for number in range(len(scheduling.scheduler.active_runs_by_id), int(others)):
        scheduling.begin("crowd", logical_date=(1 + number) * DAY)
    scheduling.stub.submitted.clear()  # its one attempt keeps running

    def work() -> None:
        run_id = f"r{time.time_ns()}"
        scheduling.begin(name, run_id=run_id, logical_date=scheduling.clock.wall())
        scheduling.command("note_run", dag_id=name, run_id=run_id, note="so")
        scheduling.finish()
        scheduling.command("clear", dag_id=name, run_id=run_id)
        scheduling.finish()

    work()
    began = time.process_time()
    for _ in range(RUNS_BESIDE):
        work()
    spent = time.process_time() - began
    return {
        "runs": len(scheduling.scheduler.active_runs_by_id),
        "cpu_ms": spent / RUNS_BESIDE * 1e3,
        "lines": lines_of(work).total(),
    }


def memory(dag: str) -> dict[str, float]:
    """Growth of the process in bytes per task, when a run has started and no task has ended."""
    return _growth(dag, lambda: rss_mb() * 1e6)


def traced(dag: str) -> dict[str, float]:
    """As `memory`, counted by Python's allocator (without SQLite's page cache, which is limited)."""
    tracemalloc.start()
    return _growth(dag, lambda: float(tracemalloc.get_traced_memory()[0]))


def _growth(dag: str, weigh: Callable[[], float]) -> dict[str, float]:
    scheduling = SchedulerRun()
    _tidy()
    before = weigh()
    run = scheduling.begin(dag)
    _tidy()
    after = weigh()
    tasks = len(scheduling.scheduler.active_runs_by_id[run].topology.tasks)
    scheduling.finish()
    return {"tasks": tasks, "bytes_per_task": (after - before) / tasks}


def _tidy() -> None:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def statements(dag: str) -> dict[str, Any]:
    """Statements, transactions and bytes of WAL per task, and the pragmas of the connection."""
    scheduling = SchedulerRun()
    assert isinstance(scheduling.store, SqlStore)
    engine = scheduling.store.engine
    assert isinstance(engine, SqliteEngine)
    run = scheduling.begin(dag)
    engine.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.db.execute("PRAGMA wal_autocheckpoint = 0")
    counted = {"statements": 0, "commits": 0}

    def note(sql: str) -> None:
        counted["commits" if sql.startswith("COMMIT") else "statements"] += 1

    engine.db.set_trace_callback(note)
    tasks = scheduling.finish()
    engine.db.set_trace_callback(None)
    return {
        "tasks": tasks,
        "state": scheduling.state(run),
        "statements": counted["statements"] / tasks,
        "commits": counted["commits"] / tasks,
        "wal_bytes": os.path.getsize(engine.path + "-wal") / tasks,
        "pragmas": engine.settings(),
    }


MODES: dict[str, Callable[[str], dict[str, Any]]] = {
    "cpu": cpu,
    "beside": beside,
    "memory": memory,
    "traced": traced,
    "statements": statements,
}


def scale(bench: Bench) -> list[Result]:
    """All measurements of this module for runs of growing size."""
    result = Result("scale")
    sizes = [100, 1000, 5000] if bench.quick else [100, 1000, 10_000, 100_000]
    deployment = Deployment(standalone=False)
    marks = deployment.marks.path
    for size in sizes:
        deployment.add_file(f"l{size}.py", dagfiles.layered(f"l{size}", marks, size))
    deployment.add_file("chain.py", dagfiles.chain("chain", marks, 100, 0))
    deployment.add_file("fan.py", dagfiles.fan("fan", marks, 998))
    crowds = [10, 100] if bench.quick else [10, 1000]
    deployment.add_file("crowd.py", dagfiles.crowd("crowd", marks, crowds[-1]))
    deployment.add_file("past.py", dagfiles.crowd("past", marks, 16))
    with deployment.unstarted():
        for size in sizes:
            for _ in range(max(1, min(5, 30_000 // size))):
                found = _ask(deployment, "cpu", f"l{size}")
                if found["state"] != 2 or found["tasks"] != size:
                    result.problem = f"l{size}: state {found['state']} after {found['tasks']} tasks"
                result.add(f"cpu_ms_{size}", [found["cpu_ms"]])
                result.add(f"wall_ms_{size}", [found["wall_ms"]])
            bench.say(f"scheduler and store, {size} tasks: {result.median(f'cpu_ms_{size}'):.3f} ms CPU a task")
        for mode in ("traced", "memory"):
            for size in sizes[1:]:
                result.add(f"{mode}_bytes_{size}", [_ask(deployment, mode, f"l{size}")["bytes_per_task"]])
        for dag in ("chain", "fan"):
            found = _ask(deployment, "statements", dag)
            result.facts[f"statements_{dag}"] = found
            result.facts["pragmas"] = found["pragmas"]
        for others in crowds:
            found = _ask(deployment, "beside", f"past:{others}")
            if found["runs"] != others:
                result.problem = f"{found['runs']} other runs are running in place of {others}"
            result.add(f"beside_cpu_ms_{others}", [found["cpu_ms"]])
            result.add(f"beside_lines_{others}", [found["lines"]])
            bench.say(f"beside {others} running runs: {found['cpu_ms']:.3f} ms CPU, {found['lines']:.0f} lines a run")
    result.facts["sizes"] = sizes
    bench.say(f"memory: {result.median(f'traced_bytes_{sizes[-1]}'):.0f} bytes an unfinished task")
    return [result]


def _ask(deployment: Deployment, mode: str, dag: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", mode, dag],
        env=deployment.environment,
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.PIPE,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(MODES[sys.argv[1]](sys.argv[2])))
