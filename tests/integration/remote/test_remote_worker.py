"""Workers on other machines: real processes, home folders of their own, and a gateway between them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.harness import COMMAND
from tests.integration.remote.slow_dag import slow_dag
from tests.integration.remote.world import World, read_marks

pytest.importorskip("websockets", reason="tests of remote workers need websockets: pip install 'tradewind[remote]'")

CHAIN = """
import os
from datetime import datetime
from tradewind import DAG
from tradewind.sdk.decorators import task
from tradewind.sdk.variables import Variable

with DAG("chain", schedule=None, start_date=datetime(2026, 1, 1)):
    @task(queue="far")
    def make():
        print("made in", os.environ["TRADEWIND_HOME"], "for", Variable.get("customer"))
        return "x" * 2_000_000

    @task(queue="far")
    def measure(text):
        return len(text)

    @task
    def check(length):
        print("checked in", os.environ["TRADEWIND_HOME"])
        assert length == 2_000_000

    check(measure(make()))
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path).started() as made:
        yield made


HELPED = """
from datetime import datetime
from tradewind import DAG
from tradewind.sdk.decorators import task
from helpers.words import WORD

with DAG("helped", schedule=None, start_date=datetime(2026, 1, 1)):
    @task(queue="far")
    def say():
        import os
        print("the word is", WORD, "in", os.path.dirname(__file__))
        return WORD

    say()
"""


def begin_slow(world: World) -> tuple[str, Path, Path]:
    """Start the DAG `slow` and wait for its task. Returns the run, the file of marks, and the file that lets the task end."""
    marks, go = world.folder / "marks", world.folder / "go"
    world.write_dag("slow.py", slow_dag(marks, go, queue="far", seconds=180))
    world.standalone.wait_dag("slow")
    world.standalone.cli("dags", "unpause", "slow")
    run = world.standalone.trigger("slow")
    world.wait_mark(marks, "begin", "nap1")
    return run, marks, go


@pytest.mark.spec("S24", "S46")
def test_tasks_run_on_another_machine(world: World) -> None:
    """Variables and XComs, also large ones, travel through the gateway, and the logs are read where the scheduler is."""
    standalone = world.standalone
    worker = world.worker("etl-1", "--queues", "far")
    world.write_dag("chain.py", CHAIN)
    standalone.wait_dag("chain")
    standalone.cli("variables", "set", "customer", "Ada")
    standalone.cli("dags", "unpause", "chain")
    run = standalone.trigger("chain")
    assert standalone.wait_run("chain", run) == "success"

    standalone.wait(
        lambda: "Marking task as SUCCESS" in standalone.cli("tasks", "logs", "chain", "make", check=False) or None, "the log"
    )
    log = standalone.cli("tasks", "logs", "chain", "make")
    assert f"made in {worker.home} for Ada" in log
    assert f"checked in {standalone.home}" in standalone.cli("tasks", "logs", "chain", "check")
    assert worker.stop() == 0
    assert "etl-1@remote" not in world.connected()


def test_a_token_opens_only_what_it_says(world: World) -> None:
    """Without a token, with one of another scheduler, or for a queue that it does not allow, no worker connects."""
    good = world.token("etl-1", "--queues", "far")
    bad = good[:-4] + ("AAAA" if not good.endswith("AAAA") else "BBBB")
    for token, queues, reason in ((bad, "far", "another key"), (good, "near", "does not allow the queue near")):
        environment = {**os.environ, "TRADEWIND_HOME": str(world.folder / "w"), "TRADEWIND__WORKER__TOKEN": token}
        with subprocess.Popen(
            [*COMMAND, "worker", "--gateway", world.address, "-q", queues],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                lines: list[str] = []
                while not any(reason in line for line in lines):
                    line = process.stdout.readline()
                    assert line, f"it ended without the reason: {lines}"
                    lines.append(line)
                    if "connected to the gateway" in line:
                        gateway_log = world.standalone.home / "logs" / "processes" / "gateway.log"
                        world.standalone.wait(lambda: reason in gateway_log.read_text() or None, reason, 20)  # noqa: B023
                        break
            finally:
                process.send_signal(signal.SIGINT)
        assert "etl-1@remote" not in world.connected()


def test_dag_files_come_through_the_gateway(world: World) -> None:
    """With the modules that they import. A change reaches the next run, and the version before stays as it was."""
    standalone = world.standalone
    worker = world.worker("etl-1", "--queues", "far")
    helpers = standalone.dags_folder / "helpers"
    helpers.mkdir()
    (helpers / "__init__.py").touch()
    (standalone.dags_folder / ".secret").write_text("never sent")
    for word in ("first", "second"):
        (helpers / "words.py").write_text(f"WORD = {word!r}\n")
        if word == "first":
            standalone.write_dag("helped.py", HELPED)
            standalone.wait_dag("helped")
            standalone.cli("dags", "unpause", "helped")
        run = standalone.trigger("helped")
        assert standalone.wait_run("helped", run) == "success"
        world.wait_log(f"the word is {word}", "helped", "say", run)
    versions = sorted((worker.home / "bundles" / "versions").iterdir())
    assert sorted((one / "helpers" / "words.py").read_text() for one in versions) == ["WORD = 'first'\n", "WORD = 'second'\n"]
    assert not list((worker.home / "bundles").rglob(".secret"))
    assert not list((worker.home / "dags").iterdir())


def test_a_worker_may_keep_its_own_dag_files(world: World) -> None:
    """`worker.dag_files = local`: nothing is sent, and the file in its DAG folder runs."""
    standalone = world.standalone
    worker = world.worker("etl-1", "--queues", "far", environment={"TRADEWIND__WORKER__DAG_FILES": "local"})
    for folder, word in ((standalone.dags_folder, "there"), (worker.home / "dags", "here")):
        (folder / "helpers").mkdir()
        (folder / "helpers" / "words.py").write_text(f"WORD = {word!r}\n")
        (folder / "helped.py").write_text(HELPED)
    standalone.wait_dag("helped")
    standalone.cli("dags", "unpause", "helped")
    run = standalone.trigger("helped")
    assert standalone.wait_run("helped", run) == "success"
    world.wait_log(f"the word is here in {worker.home / 'dags'}", "helped", "say", run)
    assert not (worker.home / "bundles").exists()


@pytest.mark.parametrize("victim", ["gateway", "scheduler"])
def test_an_outage_kills_no_running_task(world: World, victim: str) -> None:
    """The gateway or the scheduler is killed and starts again; the task ends in its first try, and its result counts."""
    world.worker("etl-1", "--queues", "far")
    run, marks, go = begin_slow(world)
    pid = world.process_of_gateway() if victim == "gateway" else world.standalone.call("ping")["pid"]
    os.kill(pid, signal.SIGKILL)
    world.wait_connected("etl-1")
    go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
    assert [mark[:2] for mark in read_marks(marks)] == [("begin", "nap1"), ("end", "nap1")]


def test_a_result_that_is_ready_during_an_outage_is_not_lost(world: World) -> None:
    """The task ends while its gateway is stopped."""
    world.worker("etl-1", "--queues", "far")
    run, marks, go = begin_slow(world)
    gateway = world.process_of_gateway()
    os.kill(gateway, signal.SIGSTOP)
    try:
        go.touch()
        world.wait_mark(marks, "end", "nap1")
    finally:
        os.kill(gateway, signal.SIGCONT)
    assert world.standalone.wait_run("slow", run) == "success"
    assert [mark[:2] for mark in read_marks(marks)] == [("begin", "nap1"), ("end", "nap1")]


def test_a_worker_that_drains_finishes_its_task(world: World) -> None:
    """At SIGTERM the running task may end, and new tasks wait for another worker."""
    worker = world.worker("etl-1", "--queues", "far", environment={"TRADEWIND__RUNNER__DRAIN_TIMEOUT": "60"})
    run, marks, go = begin_slow(world)
    assert worker.process is not None
    worker.process.send_signal(signal.SIGTERM)
    world.standalone.wait(lambda: "running tasks may finish" in worker.output or None, "the worker to drain")
    go.touch()
    assert worker.process.wait(30) == 0
    assert world.standalone.wait_run("slow", run) == "success"
    assert [mark[:2] for mark in read_marks(marks)] == [("begin", "nap1"), ("end", "nap1")]


def test_a_worker_that_drains_delivers_its_reports(world: World) -> None:
    """The task ends while no gateway runs, and the worker is told to stop: it waits for a gateway, so that the result counts."""
    worker = world.worker("etl-1", "--queues", "far", environment={"TRADEWIND__RUNNER__DRAIN_TIMEOUT": "60"})
    run, marks, go = begin_slow(world)
    assert worker.process is not None
    assert world.standalone.process is not None
    supervisor = world.standalone.process.pid
    os.kill(supervisor, signal.SIGSTOP)
    try:
        os.kill(world.process_of_gateway(), signal.SIGKILL)
        go.touch()
        world.wait_mark(marks, "end", "nap1")
        worker.process.send_signal(signal.SIGTERM)
        world.standalone.wait(lambda: "running tasks may finish" in worker.output or None, "the worker to drain")
        with pytest.raises(subprocess.TimeoutExpired):
            worker.process.wait(2)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert worker.process.wait(60) == 0
    assert world.standalone.wait_run("slow", run) == "success"
    assert [mark[:2] for mark in read_marks(marks)] == [("begin", "nap1"), ("end", "nap1")]


@pytest.mark.slow  # the outage lasts three leases
@pytest.mark.timeout(240)
def test_ninety_seconds_without_any_part_of_the_scheduler_kill_no_task(world: World) -> None:
    """Scheduler, gateway, parser and web server are killed and stay away; then the machine comes back."""
    worker = world.worker("etl-1", "--queues", "far")
    run, marks, go = begin_slow(world)
    for pid in sorted(world.standalone.processes()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert worker.process is not None
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(90)
    assert [mark[:2] for mark in read_marks(marks)] == [("begin", "nap1")]
    world.standalone.start()
    world.wait_connected("etl-1")
    go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
    assert [mark[:2] for mark in read_marks(marks)] == [("begin", "nap1"), ("end", "nap1")]


@pytest.mark.slow  # a lease lasts 30 s
@pytest.mark.timeout(180)
def test_the_loss_of_a_worker_is_decided_within_forty_seconds(world: World) -> None:
    """A worker is killed; the next try runs on another one, when nothing of the first can be left, at most 40 s later."""
    first = world.worker("etl-1", "--queues", "far")
    run, marks, go = begin_slow(world)
    world.worker("etl-2", "--queues", "far")
    assert first.process is not None
    killed = time.monotonic()
    os.killpg(first.process.pid, signal.SIGKILL)
    world.wait_mark(marks, "begin", "nap2", 60)
    begun = next(at for what, name, at in read_marks(marks) if (what, name) == ("begin", "nap2"))
    assert begun - killed <= 41.0
    go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
