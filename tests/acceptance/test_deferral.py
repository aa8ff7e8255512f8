"""Deferred tasks with the real command line and processes: the triggerer starts, dies and ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.acceptance.harness import Standalone

TRIGGERS = """
import asyncio
import os

from tradewind import BaseHook
from tradewind.triggers.base import BaseTrigger, TriggerEvent


class FileArrived(BaseTrigger):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def serialize(self):
        return "arrivals.FileArrived", {"path": self.path}

    async def run(self):
        host = (await asyncio.to_thread(BaseHook.get_connection, "warehouse")).host
        self.log.info("looking for %s beside %s", self.path, host)
        print("printed by the trigger")
        while not os.path.exists(self.path):
            await asyncio.sleep(0.02)
        yield TriggerEvent({"path": self.path})


class Broken(BaseTrigger):
    def serialize(self):
        return "arrivals.Broken", {}

    async def run(self):
        raise RuntimeError("the server is gone")
        yield
"""

DAG_FILE = """
from datetime import datetime

from arrivals import Broken, FileArrived
from tradewind import DAG
from tradewind.operators.python import PythonOperator
from tradewind.sdk.operator import BaseOperator


class Arrival(BaseOperator):
    def __init__(self, *, path=None, **kwargs):
        super().__init__(**kwargs)
        self.path = path

    def execute(self, context):
        trigger = FileArrived(self.path) if self.path else Broken()
        self.defer(trigger=trigger, method_name="arrived", kwargs={"count": 7})

    def arrived(self, context, event, count):
        print(f"it came: {event['path']} {count}")
        return event["path"]


with DAG("arrivals", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    for number in range(20):
        Arrival(task_id=f"wait_{number}", path="FOLDER/here")

with DAG("breaks", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    Arrival(task_id="wait")
"""


def _states(standalone: Standalone, run: str) -> set[str]:
    return {row["state"] for row in standalone.json("tasks", "states-for-dag-run", "arrivals", run)}


def _triggerer(standalone: Standalone) -> int | None:
    named = {pid: Path(f"/proc/{pid}/comm") for pid in standalone.processes()}
    return next((pid for pid, name in named.items() if name.exists() and name.read_text().strip() == "tw-triggerer"), None)


def test_twenty_tasks_wait_in_one_triggerer_that_may_die(fresh: Standalone) -> None:
    fresh.write_dag("arrivals.py", TRIGGERS)
    fresh.write_dag("waiting.py", DAG_FILE.replace("FOLDER", str(fresh.home)))
    fresh.start()
    fresh.cli("connections", "add", "warehouse", "--conn-uri", "postgres://me:hunter-22@db.example:5432/x")
    fresh.wait_dag("arrivals")
    run = fresh.trigger("arrivals")
    fresh.wait(lambda: _states(fresh, run) == {"deferred"}, "twenty tasks that wait")
    first = fresh.wait(lambda: _triggerer(fresh), "the triggerer")

    def looks() -> int:
        logs = "".join(path.read_text() for path in (fresh.home / "logs" / "arrivals").rglob("*.log"))
        return logs.count("beside db.example")

    fresh.wait(lambda: looks() >= 20, "every trigger looks")
    os.kill(first, signal.SIGKILL)
    fresh.wait(lambda: looks() >= 40, "another triggerer runs them all again")
    (fresh.home / "here").touch()
    assert fresh.wait_run("arrivals", run) == "success"
    logs = "".join(path.read_text() for path in (fresh.home / "logs" / "arrivals").rglob("*.log"))
    assert logs.count(f"it came: {fresh.home}/here 7") == 20
    assert "printed by the trigger" in logs
    assert "hunter-22" not in logs
    assert fresh.stop() == 0
    fresh.wait_gone()


def test_a_failed_trigger_gives_its_reason(fresh: Standalone) -> None:
    fresh.write_dag("arrivals.py", TRIGGERS)
    fresh.write_dag("waiting.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("breaks")
    run = fresh.trigger("breaks")
    assert fresh.wait_run("breaks", run) == "failed"
    assert "the server is gone" in fresh.cli("tasks", "logs", "breaks", "wait", run)
