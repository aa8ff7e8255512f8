"""The CeleryExecutor with real brokers and real Celery workers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import COMMAND, Standalone
from tests.chaos.world import has_ended, until
from tests.integration.celery.brokers import Broker, rabbitmq_broker, redis_broker
from tests.integration.remote.slow_dag import slow_dag
from tests.integration.remote.world import read_marks

pytest.importorskip("celery", reason="tests of the CeleryExecutor need celery: pip install 'tradewind[celery]'")

from tradewind.executors.celery_publisher import CeleryPublisher
from tradewind.model.errors import Unreachable
from tradewind.wire.messages import Workload
from tradewind.worker.celery_pool import make_app

MAKERS = {"redis": redis_broker, "rabbitmq": rabbitmq_broker}
BROKERS = ["redis", pytest.param("rabbitmq", marks=pytest.mark.long)]

CHAIN = """
from datetime import datetime
from tradewind import DAG
from tradewind.sdk.decorators import task

with DAG("chain", schedule=None, start_date=datetime(2026, 1, 1)):
    @task
    def make():
        return [1, 2, 3, 4, 5, 6]

    @task(queue="far")
    def double(x):
        print("doubling", x)
        return 2 * x

    @task(executor="LocalExecutor")
    def check(values):
        assert sorted(values) == [2, 4, 6, 8, 10, 12]

    check(double.expand(x=make()))
"""


RANKED = """
import time
from datetime import datetime
from tradewind import DAG
from tradewind.operators.python import PythonOperator

def mark(name):
    with open({marks!r}, "a") as file:
        file.write(f"begin {{name}} {{time.monotonic()}}\\n")

with DAG("ranked", schedule=None, start_date=datetime(2026, 1, 1)):
    for weight in (3, 9, 1, 5, 7, 2, 8, 4, 6):
        PythonOperator(task_id=f"p{{weight}}", python_callable=mark, op_args=[f"p{{weight}}"], priority_weight=weight)
"""


class World:
    """A scheduler with a CeleryExecutor, its broker, and Celery workers on the same home folder."""

    def __init__(self, folder: Path, broker: Broker, environment: Mapping[str, str] = {}) -> None:
        self.broker = broker
        self.folder = folder
        self.marks, self.go = folder / "marks", folder / "go"
        self.standalone = Standalone(
            folder / "home",
            environment={
                "TRADEWIND__CORE__EXECUTOR": "CeleryExecutor,LocalExecutor",
                "AIRFLOW__CELERY__BROKER_URL": broker.url,
                "TRADEWIND__SCHEDULER__RESUBMIT_INTERVAL": "1",
                **environment,
            },
        )
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def worker(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a Celery worker, and wait until the scheduler knows it."""
        process = self.start_worker(name, *arguments)
        self.wait_connected(name, process)
        return process

    def start_worker(self, name: str, *arguments: str, named: bool = True) -> subprocess.Popen[bytes]:
        """Start a Celery worker."""
        given = ["--name", name] if named else []
        with (self.folder / f"{name}.out").open("ab") as output:
            process = subprocess.Popen(
                [*COMMAND, "celery", "worker", *given, "--pid", str(self.folder / f"{name}.pid"), *arguments],
                env=self.standalone.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.workers[name] = process
        return process

    def wait_connected(self, name: str, process: subprocess.Popen[bytes] | None = None) -> None:
        """Wait until the scheduler knows this worker.

        Args:
            process: of the worker; its end ends the wait.
        """

        def look() -> bool | None:
            if process is not None:
                assert process.poll() is None, "".join(one.read_text() for one in self.folder.glob("*.out"))
            return name in self.connected() or None

        self.standalone.wait(look, f"the Celery worker {name}")

    def connected(self) -> dict[str, int]:
        """Worker → process id of its worker host; none while no scheduler answers."""
        try:
            return {one["worker"]: one["pid"] for one in self.standalone.call("ping")["workers"]}
        except Unreachable:
            return {}

    def write_slow(self) -> None:
        """Add the DAG `slow`, whose task runs until the file `go` exists."""
        self.standalone.write_dag("slow.py", slow_dag(self.marks, self.go))
        self.standalone.wait_dag("slow")
        self.standalone.cli("dags", "unpause", "slow")

    def begin_slow(self) -> str:
        """Start the DAG `slow`, and wait for its task. Returns the run."""
        self.write_slow()
        run = self.standalone.trigger("slow")
        self.wait_mark("begin", "nap1")
        return run

    def wait_mark(self, what: str, name: str, deadline: float = 30.0) -> None:
        def look() -> bool | None:
            return any(mark[:2] == (what, name) for mark in read_marks(self.marks)) or None

        self.standalone.wait(look, f"the mark {what} {name}", deadline)

    def marked(self) -> list[tuple[str, str]]:
        return [mark[:2] for mark in read_marks(self.marks)]

    def close(self) -> None:
        for process in self.workers.values():
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        self.standalone.close()


@pytest.fixture(scope="session", params=BROKERS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Each kind of broker in turn; RabbitMQ takes long to start."""
    made = MAKERS[request.param](tmp_path_factory.mktemp(request.param))
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def world(broker: Broker, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, broker)
    try:
        made.standalone.start()
        yield made
    finally:
        made.close()


@pytest.fixture(params=BROKERS)
def own_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world with a broker of its own, which may be killed."""
    (tmp_path / "broker").mkdir()
    broker = MAKERS[request.param](tmp_path / "broker")
    made = World(tmp_path, broker)
    try:
        broker.start()
        made.standalone.start()
        yield made
    finally:
        made.close()
        broker.close()


@pytest.mark.spec("S13", "S47", "S490")
def test_tasks_run_on_celery_workers(world: World) -> None:
    """Each queue on a worker that consumes it; a task of the LocalExecutor on the worker host of the scheduler."""
    standalone = world.standalone
    world.worker("one", "-c", "2")
    world.worker("two", "-q", "far", "-c", "2", "--without-mingle")
    standalone.write_dag("chain.py", CHAIN)
    standalone.wait_dag("chain")
    standalone.cli("dags", "unpause", "chain")
    run = standalone.trigger("chain")
    assert standalone.wait_run("chain", run) == "success"
    with standalone.store() as store:
        row = store.find_run("chain", run)
        assert row is not None
        attempts = store.attempts_of_run(row.id)
    hosts = {one.executor + " " + (one.host or "").partition(".")[0] for one in attempts}
    assert hosts == {"CeleryExecutor one", "CeleryExecutor two", "LocalExecutor w1"}
    assert len(attempts) == 8
    assert "doubling" in standalone.cli("tasks", "logs", "chain", "double", "--map-index", "0")


def test_a_warm_shutdown_lets_the_task_finish(world: World) -> None:
    """`celery stop`: the running task ends, and its result counts; the message is not delivered again."""
    process = world.worker("one", "-c", "2")
    run = world.begin_slow()
    world.standalone.cli("celery", "stop", "--pid", str(world.folder / "one.pid"))
    world.standalone.wait(
        lambda: "running tasks may finish" in (world.folder / "one.out").read_text() or None, "the warm shutdown"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    world.go.touch()
    assert process.wait(30) == 0
    assert world.standalone.wait_run("slow", run) == "success"
    assert world.marked() == [("begin", "nap1"), ("end", "nap1")]


@pytest.mark.spec("S44")
def test_a_killed_celery_worker_loses_its_try(world: World) -> None:
    """The next try runs on the other worker when nothing of the first is left."""
    first = world.worker("one", "-c", "2")
    run = world.begin_slow()
    world.worker("two", "-c", "2")
    os.kill(first.pid, signal.SIGKILL)
    world.wait_mark("begin", "nap2", 60)
    world.go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
    assert world.marked() == [("begin", "nap1"), ("begin", "nap2"), ("end", "nap2")]


@pytest.mark.long
@pytest.mark.spec("S108", "S353")
def test_a_killed_broker_delays_tasks_and_loses_none(own_world: World) -> None:
    """The running task ends while the broker is away; the next one waits for the broker."""
    world = own_world
    world.worker("one", "-c", "2")
    run = world.begin_slow()
    world.broker.kill()
    world.go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
    second = world.standalone.trigger("slow")
    world.standalone.wait_run("slow", second, ("running",))
    world.broker.start()
    assert world.standalone.wait_run("slow", second, deadline=60) == "success"


@pytest.mark.long
def test_messages_that_the_broker_loses_are_sent_again(own_world: World) -> None:
    """The only worker is stopped, messages wait in the broker, and the broker forgets everything."""
    world = own_world
    process = world.worker("one", "-c", "1")
    world.go.touch()
    world.write_slow()
    process.send_signal(signal.SIGSTOP)
    try:
        runs = [world.standalone.trigger("slow") for _ in range(4)]
        world.standalone.wait(lambda: world.broker.waiting("default") or None, "a message in the broker")
        world.broker.lose_everything()
    finally:
        process.send_signal(signal.SIGCONT)
    begun = time.monotonic()
    assert [world.standalone.wait_run("slow", run, deadline=60) for run in runs] == 4 * ["success"]
    assert time.monotonic() - begun < 45
    assert world.marked() == 4 * [("begin", "nap1"), ("end", "nap1")]


def test_a_cold_shutdown_stops_the_task_and_costs_a_try(world: World) -> None:
    """SIGQUIT, as in Celery: the task is stopped at once, and its next try runs on another worker."""
    first = world.worker("one", "-c", "2")
    run = world.begin_slow()
    world.worker("two", "-c", "2")
    first.send_signal(signal.SIGQUIT)
    first.wait(30)
    world.wait_mark("begin", "nap2")
    world.go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
    assert world.marked() == [("begin", "nap1"), ("begin", "nap2"), ("end", "nap2")]


def test_a_scheduler_that_takes_over_adopts_the_running_task(world: World) -> None:
    """kill -9 of the scheduler: the task goes on in its first try, and its result counts. A queued task is published again."""
    world.worker("one", "-c", "1")
    run = world.begin_slow()
    second = world.standalone.trigger("slow")
    world.standalone.wait_run("slow", second, ("running",))
    before = world.standalone.call("ping")["pid"]
    os.kill(before, signal.SIGKILL)
    world.wait_connected("one")
    assert world.standalone.call("ping")["pid"] != before
    world.go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
    assert world.standalone.wait_run("slow", second) == "success"
    assert world.marked() == 2 * [("begin", "nap1"), ("end", "nap1")]


def active_tasks(app: Any) -> list[dict[str, Any]]:
    """Tasks that the workers of a Celery application run now, as they answer themselves."""
    answers: dict[str, list[dict[str, Any]]] = app.control.inspect(timeout=2).active() or {}
    return [task for tasks in answers.values() for task in tasks]


def test_a_revoked_celery_task_is_stopped(world: World) -> None:
    """`celery control revoke --terminate` ends the process of the attempt, and the scheduler decides about the next try."""
    world.worker("one", "-c", "2")
    run = world.begin_slow()
    with make_app(world.broker.url) as app:
        # The first question may find no listener, or a worker that has not yet noted that the attempt began.
        (task,) = world.standalone.wait(lambda: active_tasks(app), "a worker that names its active task", 60)
        assert task["name"] == "slow.nap"
        app.control.revoke(task["id"], terminate=True)
    world.wait_mark("begin", "nap2")
    world.go.touch()
    assert world.standalone.wait_run("slow", run) == "success"
    assert world.marked() == [("begin", "nap1"), ("begin", "nap2"), ("end", "nap2")]


def test_tasks_start_in_the_order_of_their_priorities(world: World) -> None:
    """One slot: what waits for it is chosen by the scheduler, whatever the order in which the DAG file names the tasks."""
    world.standalone.write_dag("ranked.py", RANKED.format(marks=str(world.marks)))
    world.standalone.wait_dag("ranked")
    world.standalone.cli("dags", "unpause", "ranked")
    run = world.standalone.trigger("ranked")
    world.standalone.wait_run("ranked", run, ("running",))
    world.worker("one", "-c", "1")
    assert world.standalone.wait_run("ranked", run, deadline=60) == "success"
    assert [name for what, name in world.marked() if what == "begin"] == ["p9", "p8", "p7", "p6", "p5", "p4", "p3", "p2", "p1"]


def test_a_celery_worker_on_another_machine(broker: Broker, tmp_path: Path) -> None:
    """It shares the broker with the scheduler, and nothing else: no home folder, no DAG files, no database, no signing key."""
    pytest.importorskip("websockets", reason="a gateway needs websockets: pip install 'tradewind[remote]'")
    from tests.integration.remote.world import RULE, free_port

    port = free_port()
    world = World(tmp_path, broker, {f"{RULE}GATEWAY__ENABLED": "true", f"{RULE}GATEWAY__PORT": str(port)})
    far, standalone = tmp_path / "far", world.standalone
    (far / "dags").mkdir(parents=True)
    try:
        standalone.start()
        standalone.wait_line("Gateway for workers on other machines", 30)
        (far / "token").write_text(standalone.cli("workers", "token", "etl-1"))
        standalone.environment, near = {**standalone.environment, "TRADEWIND_HOME": str(far)}, standalone.environment
        words = ("--gateway", f"ws://127.0.0.1:{port}", "--token-file", str(far / "token"), "-q", "default,far", "-c", "2")
        try:
            worker = world.start_worker("etl-1", *words, named=False)
        finally:
            standalone.environment = near
        world.wait_connected("etl-1@remote", worker)
        standalone.write_dag("chain.py", CHAIN)
        standalone.wait_dag("chain")
        standalone.cli("dags", "unpause", "chain")
        run = standalone.trigger("chain")
        assert standalone.wait_run("chain", run) == "success"
        with standalone.store() as store:
            row = store.find_run("chain", run)
            assert row is not None
            hosts = {one.executor + " " + (one.host or "").rpartition(".")[0] for one in store.attempts_of_run(row.id)}
        assert hosts == {"CeleryExecutor etl-1@remote", "LocalExecutor w1"}
        show_log = ("tasks", "logs", "chain", "double", "--map-index", "0")
        standalone.wait(
            lambda: "doubling" in standalone.cli(*show_log, check=False) or None, "the log, which is sent after the result"
        )
        assert not list((far / "dags").iterdir())
        assert not (far / "worker.key").exists()
    finally:
        world.close()


def test_a_worker_in_the_background_scales_and_stops_by_its_pid_file(world: World) -> None:
    """`celery worker -D --autoscale --pid`, then `celery stop --pid`: the process ends, and its pid file is gone."""
    standalone, pid_file = world.standalone, world.folder / "far.pid"
    standalone.cli("celery", "worker", "-q", "far,default", "--autoscale", "3,1", "--name", "far", "--pid", str(pid_file), "-D")
    standalone.wait(lambda: "far" in world.connected() or None, "the worker far")
    number = int(pid_file.read_text())
    try:
        run = world.begin_slow()
        second = standalone.trigger("slow")
        standalone.wait(lambda: world.marked().count(("begin", "nap1")) == 2 or None, "two tasks at a time, after scaling up")
    finally:
        standalone.cli("celery", "stop", "--pid", str(pid_file))
        world.go.touch()
    assert standalone.wait_run("slow", run) == "success"
    assert standalone.wait_run("slow", second) == "success"
    assert sorted(world.marked()) == 2 * [("begin", "nap1")] + 2 * [("end", "nap1")]
    standalone.wait(lambda: not pid_file.exists() or None, "the end of the worker")
    standalone.wait(lambda: has_ended(number) or None, "the end of its process")


@pytest.mark.long
def test_a_queue_that_exists_with_other_arguments_holds_up_no_other_queue(tmp_path: Path) -> None:
    """RabbitMQ refuses a second declaration that differs, such as one of an older installation with priorities."""
    import kombu

    broker = rabbitmq_broker(tmp_path)
    publisher = CeleryPublisher(broker.url, b"key")
    try:
        broker.start()
        with kombu.Connection(broker.url) as connection:
            kombu.Queue("far", durable=True, queue_arguments={"x-max-priority": 10})(connection.default_channel).declare()
        queues = ("default", "far", "default")
        publisher.publish([Workload(1, slot, 1, "etl", "t", "r1", queue=name) for slot, name in enumerate(queues)])
        until("the messages of the other queue", 30, lambda: broker.waiting("default") == 2)
        publisher.publish([Workload(1, 3, 1, "etl", "t", "r1", queue="default")])
        until("a later message", 30, lambda: broker.waiting("default") == 3)
        assert broker.waiting("far") == 0
    finally:
        publisher.stop()
        broker.close()
