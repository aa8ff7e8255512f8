"""What command line and API show of deferred tasks: logs of several attempts, the triggerer, setups and teardowns."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.acceptance.harness import Standalone

DAG_FILE = '''
import asyncio
import os
import time
from datetime import datetime

from tradewind import DAG, BaseOperator
from tradewind.triggers.base import TriggerEvent
from standalone_triggers import Arrived

START = datetime(2026, 1, 1)


def note(text):
    with open("FOLDER/notes", "a") as file:
        file.write(text + "\\n")


class Waits(BaseOperator):
    """Defers `times` times, each time for a file of its own."""

    def __init__(self, *, times=1, hangs=False, fails=False, **kwargs):
        super().__init__(**kwargs)
        self.times = times
        self.hangs = hangs
        self.fails = fails

    def execute(self, context):
        print("part 0")
        note(f"{self.task_id} begins")
        self.wait_for(context, 1)

    def wait_for(self, context, number):
        path = f"FOLDER/{context['run_id']}.{self.task_id}.{number}"
        self.defer(trigger=Arrived(path, "s3cret-33"), method_name="go_on", kwargs={"number": number})

    def go_on(self, context, event, number):
        print(f"part {number}")
        if number < self.times:
            self.wait_for(context, number + 1)
        if self.hangs:
            note(f"{self.task_id} hangs")
            while True:
                time.sleep(600)
        if self.fails:
            raise ValueError("it fails")
        note(f"{self.task_id} ends")

    def on_kill(self):
        note(f"{self.task_id} is killed")


class Works(BaseOperator):
    def execute(self, context):
        note(f"{self.task_id} ends")


def dag(dag_id, **more):
    return DAG(dag_id, schedule=None, start_date=START, is_paused_upon_creation=False, **more)


with dag("parts"):
    Waits(task_id="one", times=2)

with dag("hangs"):
    Waits(task_id="one", hangs=True)

with dag("scope"):
    up, work, down = Waits(task_id="up").as_setup(), Waits(task_id="work"), Waits(task_id="down")
    up >> work >> down.as_teardown(setups=up)

with dag("hasty", fail_fast=True):
    up, down = Works(task_id="up").as_setup(), Waits(task_id="down")
    up >> [Waits(task_id="waits"), Waits(task_id="fails", fails=True)] >> down.as_teardown(setups=up)
'''

PLUGIN = """
import asyncio
import os

from tradewind.triggers.base import BaseTrigger, TriggerEvent


class Arrived(BaseTrigger):
    def __init__(self, path, secret_token):
        super().__init__()
        self.path = path
        self.secret_token = secret_token

    def serialize(self):
        return "standalone_triggers.Arrived", {"path": self.path, "secret_token": self.secret_token}

    async def run(self):
        print("the trigger looks for", self.path.rpartition(".")[2])
        while not os.path.exists(self.path):
            await asyncio.sleep(0.02)
        yield TriggerEvent(self.path)
"""


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    standalone = Standalone(tmp_path_factory.mktemp("waiting") / "home")
    (standalone.home / "plugins").mkdir(exist_ok=True)
    (standalone.home / "plugins" / "standalone_triggers.py").write_text(PLUGIN)
    standalone.write_dag("waiting.py", DAG_FILE.replace("FOLDER", str(standalone.home)))
    with standalone.started():
        standalone.wait_dag("scope")
        yield standalone


@pytest.fixture(autouse=True)
def _no_notes(waiting: Standalone) -> None:
    (waiting.home / "notes").unlink(missing_ok=True)


def _notes(standalone: Standalone) -> list[str]:
    path = standalone.home / "notes"
    return path.read_text().splitlines() if path.exists() else []


def _arrives(standalone: Standalone, run: str, task_id: str, number: int = 1) -> None:
    (standalone.home / f"{run}.{task_id}.{number}").touch()


def _deferred(standalone: Standalone, dag_id: str, run: str, task_id: str) -> None:
    standalone.wait_task(dag_id, run, task_id, ("deferred",))


def _said(text: str) -> list[str]:
    """What the task and its triggers said, in order."""
    lines = [line.strip() for line in text.splitlines()]
    return [line[line.index(mark) :] for line in lines for mark in ("part ", "the trigger looks for") if mark in line]


def test_all_attempts_of_a_try_are_one_log_that_can_be_followed(waiting: Standalone) -> None:
    run = waiting.trigger("parts")
    _deferred(waiting, "parts", run, "one")
    followed: list[str] = []
    follower = threading.Thread(
        target=lambda: followed.append(waiting.cli("tasks", "logs", "parts", "one", run, "--follow")), daemon=True
    )
    follower.start()

    def is_in_log(text: str) -> bool:
        return text in waiting.cli("tasks", "logs", "parts", "one", run)

    for number in (1, 2):
        looks = f"the trigger looks for {number}"
        waiting.wait(partial(is_in_log, looks), looks)
        _arrives(waiting, run, "one", number)
    assert waiting.wait_run("parts", run) == "success"
    whole = ["part 0", "the trigger looks for 1", "part 1", "the trigger looks for 2", "part 2"]
    assert _said(waiting.cli("tasks", "logs", "parts", "one", run, "--try", "1")) == whole
    path = f"/api/v2/dags/parts/dagRuns/{run}/taskInstances/one/logs/1"
    events = [record["event"] for record in json.loads(waiting.get(path))["content"]]
    assert _said("\n".join(events)) == whole
    streamed = waiting.get(path, "application/x-ndjson").splitlines()
    assert _said("\n".join(json.loads(line)["event"] for line in streamed)) == whole
    follower.join(60)
    assert [_said(text) for text in followed] == [whole]


def test_the_triggerer_is_shown_and_no_secret_of_a_trigger(waiting: Standalone) -> None:
    run = waiting.trigger("parts")
    _deferred(waiting, "parts", run, "one")
    shown: dict[str, Any] = json.loads(waiting.get(f"/api/v2/dags/parts/dagRuns/{run}/taskInstances/one"))
    assert shown["trigger"]["classpath"] == "standalone_triggers.Arrived"
    assert json.loads(shown["trigger"]["kwargs"]) == {"path": str(waiting.home / f"{run}.one.1"), "secret_token": "***"}
    (host,) = waiting.json("jobs", "check", "--job-type", "TriggererJob")
    assert (host["state"], host["hostname"]) == ("running", shown["triggerer_job"]["hostname"])
    health = json.loads(waiting.get("/api/v2/monitor/health"))
    assert health["triggerer"]["status"] == "healthy"
    assert health["triggerer"]["latest_triggerer_heartbeat"] is not None
    assert json.loads(waiting.cli("info", "-o", "json"))["running"]["deferred tasks"] == "1, 1 of them in triggers"
    for number in (1, 2):
        _arrives(waiting, run, "one", number)
    assert waiting.wait_run("parts", run) == "success"
    shown = json.loads(waiting.get(f"/api/v2/dags/parts/dagRuns/{run}/taskInstances/one"))
    assert (shown["trigger"], shown["triggerer_job"]) == (None, None)


def test_stopping_a_resumed_attempt_calls_on_kill(waiting: Standalone) -> None:
    run = waiting.trigger("hangs")
    _arrives(waiting, run, "one")
    waiting.wait(lambda: "one hangs" in _notes(waiting), "the resumed attempt")
    waiting.call("set_run_state", dag_id="hangs", run_id=run, state="failed")
    waiting.wait(lambda: "one is killed" in _notes(waiting), "on_kill")
    assert waiting.wait_run("hangs", run) == "failed"
    assert _notes(waiting) == ["one begins", "one hangs", "one is killed"]


def test_a_scope_whose_setup_and_teardown_wait_keeps_its_order(waiting: Standalone) -> None:
    run = waiting.trigger("scope")
    for task_id in ("up", "work", "down"):
        _deferred(waiting, "scope", run, task_id)
        _arrives(waiting, run, task_id)
    assert waiting.wait_run("scope", run) == "success"
    assert _notes(waiting) == [f"{task_id} {what}" for task_id in ("up", "work", "down") for what in ("begins", "ends")]


def test_fail_fast_ends_a_wait_and_the_teardown_still_waits_and_runs(waiting: Standalone) -> None:
    run = waiting.trigger("hasty")
    for task_id in ("waits", "fails"):
        _deferred(waiting, "hasty", run, task_id)
    _arrives(waiting, run, "fails")
    _deferred(waiting, "hasty", run, "down")
    assert waiting.wait_task("hasty", run, "waits", ("skipped",)) == "skipped"
    _arrives(waiting, run, "waits")
    _arrives(waiting, run, "down")
    assert waiting.wait_run("hasty", run) == "failed"
    assert _notes(waiting)[-2:] == ["down begins", "down ends"]
    assert "waits ends" not in _notes(waiting)
