"""Tasks whose worker host is killed, and tasks that run while the services are stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone

SOURCE = """
import os
import pathlib
from datetime import timedelta

from tradewind import DAG, task

HERE = pathlib.Path(os.environ["LOST_HERE"])


def callback(context):
    with (HERE / "callback").open("a") as file:
        file.write(f"{context['ti'].state} {context['ti'].try_number} {context['reason'] if 'reason' in context else ''}\\n")


def work(name):
    with (HERE / f"{name}.begun").open("a") as file:
        file.write("begun\\n")
    gate = os.open(HERE / "gate", os.O_RDONLY)  # a fifo: opens when the test opens its other end
    os.close(gate)


with DAG("lost", schedule=None, is_paused_upon_creation=False):
    common = {"on_retry_callback": callback, "on_failure_callback": callback, "retry_delay": timedelta(seconds=0.1)}

    @task(**common)
    def once():
        work("once")

    @task(retries=1, **common)
    def twice():
        work("twice")

    @task(lost_attempts="repeat", **common)
    def repeated():
        work("repeated")

    once(), twice(), repeated()

with DAG("short", schedule=None, is_paused_upon_creation=False):

    @task
    def held():
        work("held")

    held()
"""


class Lost:
    """An instance whose tasks wait at a gate."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        os.mkfifo(folder / "gate")
        self.standalone = Standalone(folder / "home", environment={"LOST_HERE": str(folder), **settings})
        self.standalone.write_dag("lost.py", SOURCE)

    def begun(self, name: str) -> int:
        path = self.folder / f"{name}.begun"
        return path.read_text().count("begun") if path.exists() else 0

    def open_gate(self) -> None:
        """Whoever waits goes on, and whoever comes finds it open."""
        self.gate = os.open(self.folder / "gate", os.O_RDWR)


@pytest.mark.spec("S183", "S207", "S393")
def test_tasks_that_ran_on_a_killed_worker_host(tmp_path: Path) -> None:
    """A task without retries fails, one with a retry is tried again, one that asked for it is repeated. Each callback gets the
    reason.
    """
    lost = Lost(tmp_path, TRADEWIND__SCHEDULER__SWEEP_INTERVAL="1")
    standalone = lost.standalone
    with standalone.started():
        standalone.wait_dag("lost")
        run = standalone.trigger("lost")
        standalone.wait(lambda: all(lost.begun(name) == 1 for name in ("once", "twice", "repeated")), "all tasks have begun")
        host = standalone.child("host")
        assert host is not None
        os.kill(host, signal.SIGKILL)
        standalone.wait(lambda: lost.begun("twice") == 2 and lost.begun("repeated") == 2, "they have begun again")
        lost.open_gate()
        assert standalone.wait_run("lost", run) == "failed"

        assert [lost.begun(name) for name in ("once", "twice", "repeated")] == [1, 2, 2]
        why = f"the worker host that ran it (process {host}) was killed"
        tries = {name: standalone.json("tasks", "tries", "lost", name) for name in ("once", "twice", "repeated")}
        shown = {
            name: [(one["try_number"], one["state"], one["lost_attempts"], one["reason"]) for one in rows]
            for name, rows in tries.items()
        }
        assert shown == {
            "once": [(1, "failed", 1, why)],
            "twice": [(1, "failed", 1, why), (2, "success", 0, None)],
            "repeated": [(1, "success", 1, None)],
        }
        assert why in standalone.cli("why", "lost", "once")
        standalone.wait(
            lambda: (tmp_path / "callback").exists() and (tmp_path / "callback").read_text().count("\n") == 2, "the callbacks"
        )
        assert sorted(line.split()[0] for line in (tmp_path / "callback").read_text().splitlines()) == [
            "failed",
            "up_for_retry",
        ]


def test_sigterm_waits_for_running_tasks_and_loses_none(tmp_path: Path) -> None:
    """A task that ends in time has run once and counts; what follows runs in the next life."""
    lost = Lost(tmp_path, TRADEWIND__RUNNER__DRAIN_TIMEOUT="30")
    standalone = lost.standalone
    with standalone.started():
        standalone.wait_dag("short")
        run = standalone.trigger("short")
        standalone.wait(lambda: lost.begun("held") == 1, "the task has begun")
        assert standalone.process is not None
        standalone.process.send_signal(signal.SIGTERM)
        standalone.wait_line("running tasks get 30 s to finish")
        queued = standalone.trigger("short")  # the scheduler still takes it
        lost.open_gate()
        assert standalone.process.wait(30) == 0
        assert standalone.processes() == {}
        assert lost.begun("held") == 1
        assert [row["state"] for row in standalone.json("tasks", "tries", "short", "held", run)] == ["success"]
        standalone.start()
        assert standalone.wait_run("short", queued) == "success"
        assert [
            (row["try_number"], row["lost_attempts"]) for row in standalone.json("tasks", "tries", "short", "held", queued)
        ] == [(1, 0)]


def test_ctrl_c_stops_a_running_task_with_a_reason(tmp_path: Path) -> None:
    lost = Lost(tmp_path, TRADEWIND__RUNNER__DRAIN_TIMEOUT="600")
    standalone = lost.standalone
    with standalone.started():
        standalone.wait_dag("short")
        run = standalone.trigger("short")
        standalone.wait(lambda: lost.begun("held") == 1, "the task has begun")
        assert standalone.process is not None
        standalone.process.send_signal(signal.SIGTERM)
        standalone.wait_line("running tasks get 600 s to finish")
        assert standalone.stop(signal.SIGINT) == 0
        (tried,) = standalone.json("tasks", "tries", "short", "held", run)
        assert (tried["state"], tried["lost_attempts"]) == ("failed", 1)
        assert tried["reason"] == "the worker host that ran it was stopped"
