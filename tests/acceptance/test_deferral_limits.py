"""Edge cases of deferral: restarts while waiting, clears, order of logs, deaths between two steps."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import Standalone

DAG_FILE = '''
import asyncio
import os
from datetime import datetime, timedelta

from tradewind import DAG, BaseOperator, task
from tradewind.sensors.filesystem import FileSensor
from tradewind.triggers.base import BaseTrigger, TriggerEvent

START = datetime(2026, 1, 1)


class Arrived(BaseTrigger):
    """It stands in the DAG file itself."""

    def __init__(self, path, secret_token="s3cret"):
        super().__init__()
        self.path = path
        self.secret_token = secret_token

    def serialize(self):
        return f"{type(self).__module__}.Arrived", {"path": self.path, "secret_token": self.secret_token}

    async def run(self):
        print("the trigger looks")
        while not os.path.exists(self.path):
            await asyncio.sleep(0.02)
        yield TriggerEvent(self.path)

    async def on_kill(self):
        open("FOLDER/killed", "a").write("killed\\n")

    async def cleanup(self):
        open("FOLDER/cleaned", "a").write("cleaned\\n")


class Waits(BaseOperator):
    template_fields = ("path",)

    def __init__(self, *, path, fail_first=False, **kwargs):
        super().__init__(**kwargs)
        self.path = path
        self.fail_first = fail_first

    def execute(self, context):
        print("the first part")
        context["ti"].xcom_push("before", 1)
        self.defer(trigger=Arrived(self.path), method_name="go_on")

    def go_on(self, context, event):
        ti = context["ti"]
        print("the second part", event, ti.xcom_pull(ti.task_id, key="before", map_indexes=ti.map_index))
        with open("FOLDER/went_on", "a") as file:
            file.write(f"{ti.task_id} {ti.map_index} {ti.try_number}\\n")
        if self.fail_first and ti.try_number == 1:
            raise ValueError("not yet")


with DAG("waits", schedule=None, start_date=START, is_paused_upon_creation=False):
    Waits(task_id="one", path="FOLDER/{{ dag_run.conf['file'] }}", fail_first=True, retries=1, retry_delay=timedelta(0))
    Waits.partial(task_id="many").expand(path=["FOLDER/here"] * 3)
    FileSensor(task_id="file", filepath="FOLDER/here", deferrable=True, poke_interval=0.05)

with DAG("short", schedule=None, start_date=START, dagrun_timeout=timedelta(seconds=3), is_paused_upon_creation=False):
    Waits(task_id="one", path="FOLDER/never")

with DAG("lone", schedule=None, start_date=START, is_paused_upon_creation=False):
    Waits(task_id="one", path="FOLDER/go")
'''


def _write(standalone: Standalone) -> None:
    (standalone.dags_folder / "team").mkdir()
    (standalone.dags_folder / "team" / "waiting.py").write_text(DAG_FILE.replace("FOLDER", str(standalone.home)))


def _states(standalone: Standalone, dag_id: str, run: str) -> list[str]:
    return [row["state"] for row in standalone.json("tasks", "states-for-dag-run", dag_id, run)]


def _waits(standalone: Standalone, dag_id: str, run: str, count: int) -> None:
    standalone.wait(lambda: _states(standalone, dag_id, run) == ["deferred"] * count, f"{count} tasks that wait")


def _said(standalone: Standalone, dag_id: str, text: str) -> int:
    return sum(path.read_text().count(text) for path in (standalone.home / "logs" / dag_id).rglob("*.log"))


def _named(standalone: Standalone, name: str, other_than: int | None = None) -> int | None:
    return next((pid for pid in standalone.processes() if pid != other_than and _comm(pid) == name), None)


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _lines(standalone: Standalone, name: str) -> list[str]:
    path = standalone.home / name
    return sorted(path.read_text().splitlines()) if path.exists() else []


def test_waits_survive_restarts_and_each_task_resumes_once(fresh: Standalone) -> None:
    _write(fresh)
    fresh.start()
    fresh.wait_dag("waits")
    run = fresh.trigger("waits", conf={"file": "here"})
    _waits(fresh, "waits", run, 5)
    fresh.wait(lambda: _said(fresh, "waits", "the trigger looks") >= 4, "every trigger looks")
    for name in ("tw-scheduler", "tw-host"):
        pid = fresh.wait(partial(_named, fresh, name), name)
        os.kill(pid, signal.SIGKILL)
        fresh.wait(partial(_named, fresh, name, other_than=pid), f"another {name}")
    fresh.wait(lambda: _said(fresh, "waits", "the trigger looks") >= 8, "the triggers look again, in another triggerer")
    assert _states(fresh, "waits", run) == ["deferred"] * 5
    (fresh.home / "here").touch()
    assert fresh.wait_run("waits", run) == "success"
    assert _lines(fresh, "went_on") == ["many 0 1", "many 1 1", "many 2 1", "one -1 1", "one -1 2"]
    log = fresh.cli("tasks", "logs", "waits", "one", run, "--try", "1")
    assert log.index("the first part") < log.index("the trigger looks") < log.index("the second part")
    assert fresh.stop() == 0
    fresh.wait_gone()


def test_ending_a_task_ends_its_trigger(fresh: Standalone) -> None:
    _write(fresh)
    fresh.start()
    fresh.wait_dag("short")
    assert fresh.wait_run("short", fresh.trigger("short")) == "failed"
    fresh.wait(lambda: _lines(fresh, "cleaned") == ["cleaned"], "the trigger of a run that took too long is cleaned up")
    run = fresh.trigger("lone")
    fresh.wait(lambda: _said(fresh, "lone", "the trigger looks") >= 1, "the trigger looks")
    fresh.cli("tasks", "clear", "lone", "--run-id", run, "-y")
    fresh.wait(lambda: _lines(fresh, "killed") == ["killed", "killed"], "the trigger of a cleared task is told")
    fresh.wait(lambda: _said(fresh, "lone", "the trigger looks") >= 2, "it begins anew")
    (fresh.home / "go").touch()
    assert fresh.wait_run("lone", run) == "success"
    assert _lines(fresh, "went_on") == ["one -1 2"]


@pytest.mark.parametrize("where", ["triggerer.before_fired", "host.trigger_fired"])
def test_a_death_between_firing_and_acknowledgement_fires_once(tmp_path: Path, where: str) -> None:
    once = tmp_path / "once"
    once.mkdir()
    environment: dict[str, Any] = {"TRADEWIND_FAILPOINTS": f"{where}=kill9", "TRADEWIND_FAILPOINTS_ONCE": str(once)}
    standalone = Standalone(tmp_path / "home", environment=environment)
    try:
        _write(standalone)
        standalone.start()
        standalone.wait_dag("lone")
        run = standalone.trigger("lone")
        standalone.wait(lambda: _said(standalone, "lone", "the trigger looks") >= 1, "the trigger looks")
        (standalone.home / "go").touch()
        assert standalone.wait_run("lone", run) == "success"
        assert list(once.iterdir()), "it died"
        assert _lines(standalone, "went_on") == ["one -1 1"]
    finally:
        standalone.close()
