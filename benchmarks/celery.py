"""The CeleryExecutor with PostgreSQL beside bare Celery, with the same Redis server.

* the time from the end of a task to the start of the next one, against the time from `send_task` to the start of a no-op;
* tasks per second of a fan, against no-ops per second of a bare worker with as many processes;
* CPU time per task, which hardly depends on other load of the machine.

Both run in turn on the same machine, so their ratio is more reliable than either figure. A no-op of bare Celery is a call of a
function in a process that continues to run; a task has a process of its own, a log and three committed transitions.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.harness import Standalone
from tests.integration.celery.brokers import Broker, redis_broker
from tests.integration.celery.test_celery_executor import World
from tests.postgres_server import private_server

from benchmarks.bench import Bench
from benchmarks.measure import Result, Span
from benchmarks.postgres import SERVER

HOPS, FAN, PROCESSES = 30, 400, 4

BARE = """
import os, time
from celery import Celery
app = Celery("bare", broker={broker!r})
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=4)

@app.task(name="bare.noop")
def noop(name):
    with open({marks!r}, "a") as file:
        file.write(f"begin {{name}} {{time.monotonic()}}\\n")
"""

DAGS = """
import time
from datetime import datetime
from tradewind import DAG
from tradewind.operators.python import PythonOperator

def mark(name):
    with open({marks!r}, "a") as file:
        file.write(f"begin {{name}} {{time.monotonic()}}\\nend {{name}} {{time.monotonic()}}\\n")

with DAG("chain", schedule=None, start_date=datetime(2026, 1, 1)):
    before = None
    for number in range({hops}):
        task = PythonOperator(task_id=f"t{{number}}", python_callable=mark, op_args=[f"chain{{number}}"])
        if before is not None:
            before >> task
        before = task

with DAG("fan", schedule=None, start_date=datetime(2026, 1, 1), max_active_tasks=10_000):
    for number in range({fan}):
        PythonOperator(task_id=f"t{{number}}", python_callable=mark, op_args=[f"fan{{number}}"])
"""


def read(marks: Path) -> dict[tuple[str, str], float]:
    """(begin or end, name) → monotonic seconds."""
    found = {}
    for line in marks.read_text().splitlines() if marks.exists() else ():
        what, name, at = line.split()
        found[what, name] = float(at)
    return found


def wait_for(marks: Path, names: list[str], seconds: float = 120.0) -> dict[tuple[str, str], float]:
    """Wait until these tasks have begun."""
    until = time.monotonic() + seconds
    while True:
        found = read(marks)
        if all(("begin", name) in found for name in names):
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"{sum(('begin', name) in found for name in names)} of {len(names)} tasks after {seconds} s")
        time.sleep(0.005)


@contextmanager
def bare_worker(folder: Path, broker: Broker) -> Iterator[subprocess.Popen[bytes]]:
    """A bare Celery worker for the block."""
    (folder / "bare.py").write_text(BARE.format(broker=broker.url, marks=str(folder / "bare.marks")))
    with (folder / "bare.out").open("ab") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "bare", "worker", "-c", str(PROCESSES), "-Q", "bare", "--without-mingle"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield worker
    finally:
        worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def measure_bare(folder: Path, broker: Broker, result: Result, name: str) -> float:
    """Bare Celery: add the times from send to start, and no-ops per second. Returns the median of the times, ms."""
    import celery

    marks = folder / "bare.marks"
    with bare_worker(folder, broker) as worker:
        app = celery.Celery("sender", broker=broker.url)
        app.send_task("bare.noop", ("warm",), queue="bare")
        wait_for(marks, ["warm"])
        trips = []
        for number in range(HOPS):
            sent = time.monotonic()
            app.send_task("bare.noop", (f"trip{number}",), queue="bare")
            trips.append((wait_for(marks, [f"trip{number}"])["begin", f"trip{number}"] - sent) * 1000)
        assert broker.process is not None
        span = Span([worker.pid, broker.process.pid])
        names = [f"noop{number}" for number in range(FAN)]
        with app.producer_pool.acquire(block=True) as producer:
            began = time.monotonic()
            for one in names:
                app.send_task("bare.noop", (one,), queue="bare", producer=producer)
        found = wait_for(marks, names)
        span.end().into(result, f"bare.{name}.", FAN)
    result.add("bare_trip_ms", trips)
    result.add("bare_rate", [FAN / (max(found["begin", one] for one in names) - began)])
    marks.unlink()
    return statistics.median(trips)


def measure_ours(standalone: Standalone, marks: Path, roots: list[int], result: Result, name: str) -> float:
    """CeleryExecutor: add the times from the end of a task to the start of the next, and tasks per second."""
    run = standalone.trigger("chain")
    if standalone.wait_run("chain", run) != "success":
        result.problem = "the chain failed"
    found = read(marks)
    hops = [(found["begin", f"chain{n + 1}"] - found["end", f"chain{n}"]) * 1000 for n in range(HOPS - 1)]
    marks.unlink()
    span = Span(roots)
    run = standalone.trigger("fan")
    if standalone.wait_run("fan", run, deadline=180) != "success":
        result.problem = "the fan failed"
    span.end().into(result, f"ours.{name}.", FAN)
    begun = sorted(at for (what, _), at in read(marks).items() if what == "begin")
    if len(begun) != FAN:
        result.problem = f"{len(begun)} of {FAN} tasks ran"
    marks.unlink()
    result.add("hop_ms", hops)
    result.add("rate", [(FAN - 1) / (begun[-1] - begun[0])])
    return statistics.median(hops)


def celery(bench: Bench) -> list[Result]:
    """Hops and throughput over Celery + Redis + PostgreSQL, and of bare Celery, in turn."""
    result = Result("celery")
    with tempfile.TemporaryDirectory(prefix="tw-celery-") as name, private_server(SERVER) as server:
        folder = Path(name)
        (folder / "redis").mkdir()
        broker = redis_broker(folder / "redis")
        world = World(folder, broker, {"TRADEWIND__DATABASE__URL": server.create_database()})
        marks = folder / "ours.marks"
        try:
            broker.start()
            world.standalone.write_dag("both.py", DAGS.format(marks=str(marks), hops=HOPS, fan=FAN))
            world.standalone.start()
            worker = world.worker("one", "-c", str(PROCESSES))
            for dag in ("chain", "fan"):
                world.standalone.wait_dag(dag)
                world.standalone.cli("dags", "unpause", dag)
            assert world.standalone.process is not None
            assert broker.process is not None
            database = int((server.data / "postmaster.pid").read_text().split()[0])
            roots = [world.standalone.process.pid, worker.pid, broker.process.pid, database]
            measure_ours(world.standalone, marks, roots, Result("warm"), "warm")  # warms the template of the file
            for number in range(bench.pick(5, 1)):
                trip = measure_bare(folder, broker, result, str(number))
                hop = measure_ours(world.standalone, marks, roots, result, str(number))
                rate, bare_rate = result.samples["rate"][-1], result.samples["bare_rate"][-1]
                result.add("hop_ratio", [hop / trip])
                result.add("rate_ratio", [rate / bare_rate])
                bench.say(
                    f"Celery {number + 1}: end → start {hop:.1f} ms, bare {trip:.1f} ms; {rate:.0f} tasks/s, bare {bare_rate:.0f}"
                )
        finally:
            world.close()
            broker.close()
    return [result]
