"""Two machines with a scheduler each, of which one is active: commands, web pages, gateways and workers of both reach it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.harness import COMMAND, Standalone
from tests.acceptance.test_postgres import epoch_of, scheduler_of
from tests.chaos.namespace import namespace
from tests.integration.remote.slow_dag import slow_dag
from tests.integration.remote.world import RULE, RemoteWorker, World, free_port, read_marks
from tests.postgres_proxy import proxied
from tests.postgres_server import PostgresServer, private_server

pytest.importorskip("websockets", reason="tests of gateways need websockets: pip install 'tradewind[remote]'")

QUICK = """
from datetime import datetime
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator

with DAG("quick", schedule=None, start_date=datetime(2026, 1, 1)):
    EmptyOperator(task_id="one")
"""


class Machines:
    """The first machine is active, the second stands by. They share the database and `worker.key`."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        database = {f"{RULE}DATABASE__URL": url}
        self.first = World(folder / "one", database)
        self.second = World(folder / "two", database)
        self.marks, self.go = folder / "marks", folder / "go"
        self.workers: list[RemoteWorker] = []

    @property
    def standalones(self) -> tuple[Standalone, Standalone]:
        return self.first.standalone, self.second.standalone

    def start(self) -> None:
        for standalone in self.standalones:
            standalone.write_dag("slow.py", slow_dag(self.marks, self.go, queue="far", seconds=180))
            standalone.write_dag("quick.py", QUICK)
        active, standby = self.standalones
        active.start()
        for dag in ("slow", "quick"):
            active.wait_dag(dag)
            active.cli("dags", "unpause", dag)
        for name in ("worker.key", "fernet.key"):
            shutil.copy(active.home / name, standby.home / name)
        standby.launch()
        standby.wait_line("another scheduler is active")

    def worker(self, name: str) -> RemoteWorker:
        """A worker on a third machine, connected to the gateway of the first one."""
        worker = RemoteWorker(self.folder / name, self.first.address, self.first.token(name))
        self.workers.append(worker)
        worker.start("--queues", "far")
        self.first.wait_connected(name)
        return worker

    def close(self) -> None:
        for standalone in self.standalones:
            for pid in standalone.processes():
                os.kill(pid, signal.SIGCONT)
        for worker in self.workers:
            worker.close()
        for standalone in self.standalones:
            standalone.close()


@pytest.fixture
def machines(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path, postgres_server.create_database())
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_commands_and_web_page_of_a_standby_reach_the_active_scheduler(machines: Machines) -> None:
    active, standby = machines.standalones
    standby.cli("dags", "trigger", "quick", "--run-id", "by-command")
    assert active.wait_run("quick", "by-command") == "success"
    standby.wait_line("Ready: ")
    standby.request("POST", "/api/v2/dags/quick/dagRuns", {"dag_run_id": "by-page", "logical_date": None})
    assert standby.wait_run("quick", "by-page") == "success"
    workers = standby.call("ping")["workers"]
    assert {one["pid"] for one in workers} <= set(active.processes()), "the worker host of the standby is not connected"
    assert epoch_of(standby) == 1


def take_over(machines: Machines) -> None:
    """Kill the active scheduler. Its supervisor starts it again as soon as the standby has taken over."""
    active, standby = machines.standalones
    supervisor = active.process
    assert supervisor is not None
    supervisor.send_signal(signal.SIGSTOP)
    os.kill(scheduler_of(active), signal.SIGKILL)
    standby.wait(lambda: epoch_of(standby) == 2 or None, "a new epoch", 20)
    supervisor.send_signal(signal.SIGCONT)


def test_a_takeover_keeps_the_tasks_of_the_worker_beside_the_former_scheduler(machines: Machines) -> None:
    """Its worker host finishes its tasks under the new scheduler. No second attempt starts meanwhile."""
    active, standby = machines.standalones
    run_id = active.trigger("slow")
    machines.first.wait_mark(machines.marks, "begin", "nap1")
    (former,) = machines.first.connected()
    take_over(machines)
    standby.wait(lambda: {former} < machines.second.connected() or None, "the former worker at the new scheduler", 40)
    standby.cli("dags", "trigger", "quick", "--run-id", "meanwhile")
    assert standby.wait_run("quick", "meanwhile") == "success"
    machines.go.touch()
    assert standby.wait_run("slow", run_id) == "success"
    assert [mark[:2] for mark in read_marks(machines.marks)] == [("begin", "nap1"), ("end", "nap1")]


@pytest.mark.long  # a machine that stays away is given up after 40 seconds
@pytest.mark.timeout(300)
def test_tasks_of_a_lost_machine_are_tried_again_by_the_standby(machines: Machines) -> None:
    active, standby = machines.standalones
    run_id = active.trigger("slow")
    machines.first.wait_mark(machines.marks, "begin", "nap1")
    supervisor = active.process
    assert supervisor is not None
    supervisor.send_signal(signal.SIGSTOP)  # it must not start what is killed
    for pid in (*active.processes(), supervisor.pid):
        os.kill(pid, signal.SIGKILL)
    machines.second.wait_mark(machines.marks, "begin", "nap2", 90)
    machines.go.touch()
    assert standby.wait_run("slow", run_id) == "success"
    begin, again, end = read_marks(machines.marks)
    assert [begin[:2], again[:2], end[:2]] == [("begin", "nap1"), ("begin", "nap2"), ("end", "nap2")]


TAKES_LONG = """
import os
import time
from datetime import datetime
from tradewind import DAG
from tradewind.sdk.decorators import task

with DAG("takes_long", schedule=None, start_date=datetime(2026, 1, 1)):
    @task(retries=2, retry_delay=0)
    def write(ti=None):
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and not os.path.exists({go!r}):
            with open({marks!r}, "a") as file:
                file.write(f"{{ti.try_number}} {{time.monotonic()}}\\n")
            time.sleep(0.1)

    write()
"""
"""Each attempt writes ten lines a second as long as it lives: number of the try, monotonic seconds."""


def log_of_host(standalone: Standalone) -> str:
    return (standalone.home / "logs" / "processes" / "host.log").read_text(errors="replace")


def lives(marks: Path) -> dict[int, tuple[float, float]]:
    """The first and the last line of each try of `takes_long`."""
    seen = [line.split() for line in marks.read_text().splitlines() if line.count(" ") == 1] if marks.exists() else []
    times: dict[int, list[float]] = {}
    for number, at in seen:
        times.setdefault(int(number), []).append(float(at))
    return {number: (min(found), max(found)) for number, found in times.items()}


@pytest.mark.long  # the machine that takes over waits for 40 seconds
@pytest.mark.timeout(300)
def test_a_machine_that_is_cut_off_ends_its_tasks_before_another_machine_starts_them(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """The first machine lives on, and reaches neither the database nor the other machine."""
    url, marks, go = postgres_server.create_database(), tmp_path / "marks", tmp_path / "go"
    with namespace() as cable, proxied(postgres_server, cable.host) as network:
        first = World(tmp_path / "one", {f"{RULE}DATABASE__URL": network.url(url)}).standalone
        first.command = (*cable.prefix, *COMMAND)
        second = World(tmp_path / "two", {f"{RULE}DATABASE__URL": url}).standalone
        try:
            for standalone in (first, second):
                standalone.write_dag("takes_long.py", TAKES_LONG.format(marks=str(marks), go=str(go)))
            first.launch()
            first.wait_line("Ready: ")
            first.wait_dag("takes_long")
            first.cli("dags", "unpause", "takes_long")
            for name in ("worker.key", "fernet.key"):
                shutil.copy(first.home / name, second.home / name)
            second.launch()
            second.wait_line("another scheduler is active")
            first.wait(
                lambda: "another scheduler stands by" in log_of_host(first), "its worker host knows of the standby scheduler"
            )
            run_id = first.trigger("takes_long")
            first.wait(lambda: 1 in lives(marks) or None, "the first attempt", 30)
            cable.cut()
            second.wait(lambda: 2 in lives(marks) or None, "the second attempt", 120)
            go.touch()
            assert second.wait_run("takes_long", run_id) == "success"
        finally:
            cable.mend()
            first.close()
            second.close()
    alive = lives(marks)
    assert set(alive) == {1, 2}
    assert alive[1][1] < alive[2][0], "the first attempt has ended before the second one began"


@pytest.mark.slow  # the database hangs for longer than every lease
@pytest.mark.timeout(300)
def test_a_database_that_hangs_ends_no_task(tmp_path: Path) -> None:
    """While the database does not answer, no other scheduler can take over, so the task may go on."""
    marks, go, port = tmp_path / "marks", tmp_path / "go", free_port()
    with private_server(port=port) as server:
        machines = Machines(tmp_path, server.create_database())
        active, standby = machines.standalones
        for standalone in machines.standalones:
            standalone.write_dag("takes_long.py", TAKES_LONG.format(marks=str(marks), go=str(go)))
        try:
            machines.start()
            active.wait_dag("takes_long")
            active.cli("dags", "unpause", "takes_long")
            active.wait(lambda: "another scheduler stands by" in log_of_host(active), "its worker host knows of the standby")
            run_id = active.trigger("takes_long")
            begun = active.wait(lambda: lives(marks).get(1), "the first attempt")[0]
            server.freeze()
            try:
                active.wait(lambda: lives(marks)[1][1] - begun > 75 or None, "75 seconds of the first attempt", 90)
            finally:
                server.thaw()
            standby.wait(lambda: max(epoch_of(one) for one in machines.standalones) or None, "a scheduler", 60)
            go.touch()
            assert standby.wait_run("takes_long", run_id) == "success"
        finally:
            machines.close()
    assert set(lives(marks)) == {1}


def test_a_takeover_keeps_the_tasks_of_workers_on_other_machines(machines: Machines) -> None:
    """The worker stays connected to the gateway of the former machine, which leads it to the new scheduler."""
    active, standby = machines.standalones
    machines.worker("etl-1")
    run_id = active.trigger("slow")
    machines.first.wait_mark(machines.marks, "begin", "nap1")
    take_over(machines)
    standby.wait(lambda: "etl-1@remote" in machines.second.connected() or None, "the worker at the new scheduler", 40)
    machines.go.touch()
    assert standby.wait_run("slow", run_id) == "success"
    assert [mark[:2] for mark in read_marks(machines.marks)] == [("begin", "nap1"), ("end", "nap1")]
    active.cli("dags", "trigger", "quick", "--run-id", "from-the-former")
    assert standby.wait_run("quick", "from-the-former") == "success"
    assert json.loads(active.get("/api/v2/dags/quick/dagRuns/from-the-former"))["state"] == "success"


@pytest.mark.long  # the lease of the worker lasts for 30 seconds
@pytest.mark.timeout(300)
def test_tasks_of_a_worker_that_is_lost_together_with_the_scheduler_are_tried_again(machines: Machines) -> None:
    """The gateway of the worker lives. It tells the new scheduler when the lease ends, which need not wait for an outage."""
    active, standby = machines.standalones
    worker = machines.worker("etl-1")
    run_id = active.trigger("slow")
    machines.first.wait_mark(machines.marks, "begin", "nap1")
    worker.kill()
    take_over(machines)
    machines.second.wait_mark(machines.marks, "begin", "nap2", 90)
    machines.go.touch()
    assert standby.wait_run("slow", run_id) == "success"
    begin, again, end = read_marks(machines.marks)
    assert [begin[:2], again[:2], end[:2]] == [("begin", "nap1"), ("begin", "nap2"), ("end", "nap2")]
