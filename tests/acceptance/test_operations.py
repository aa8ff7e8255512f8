"""Changes of task instances and runs by hand, with the real command line against a real standalone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone

STUBBORN = """
import datetime, pathlib, subprocess
from tradewind import DAG, task
from tradewind.operators.bash import BashOperator
from tradewind.sdk.operator import BaseOperator


class Stubborn(BaseOperator):
    template_fields = ("folder",)

    def __init__(self, *, folder, **more):
        super().__init__(**more)
        self.folder = folder

    def execute(self, context):
        child = subprocess.Popen(["sleep", "600"])
        self.tell("started", str(child.pid))
        child.wait()

    def on_kill(self):
        self.tell("killed", "yes")

    def tell(self, name, text):
        folder = pathlib.Path(self.folder)
        (folder / "new").write_text(text)
        (folder / "new").rename(folder / name)


with DAG("stubborn", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    long = Stubborn(task_id="long", folder="{{ dag_run.conf['folder'] }}")
    long >> BashOperator(task_id="after", bash_command="echo after")
"""


@pytest.fixture(scope="module", autouse=True)
def stubborn(standalone: Standalone) -> None:
    standalone.write_dag("stubborn.py", STUBBORN)
    standalone.wait_dag("stubborn")
    standalone.cli("dags", "unpause", "stubborn", "failing")


def begin(standalone: Standalone, run_id: str, folder: Path) -> int:
    """The pid of what the task of a run has started."""
    standalone.trigger("stubborn", run_id=run_id, conf={"folder": str(folder)})
    standalone.wait_task("stubborn", run_id, "long", ("running",))
    started = folder / "started"
    return int(standalone.wait(lambda: started.read_text() if started.exists() else None, "the task has started its child"))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.spec("S451", "S464")
def test_a_running_task_that_is_marked_is_stopped_through_on_kill(standalone: Standalone, tmp_path: Path) -> None:
    """Its run goes on at once, nothing of its processes is left, and what it still says does not count."""
    child = begin(standalone, "marked", tmp_path)
    answer = standalone.json(
        "tasks", "mark", "stubborn", "success", "-t", "^long$", "--run-id", "marked", "-y", "--reason", "enough"
    )
    assert [(row["state"], row["to"]) for row in answer] == [("running", "success")]
    assert standalone.wait_run("stubborn", "marked") == "success"
    standalone.wait(lambda: (tmp_path / "killed").exists() or None, "on_kill was called")
    standalone.wait(lambda: None if alive(child) else True, "what the task had started is gone")
    with standalone.store() as store:
        (attempt,) = store.attempts("stubborn", "marked", "long")
        assert (attempt.outcome, (attempt.reason or "").endswith(": enough")) == ("stopped", True)
    assert standalone.cli("tasks", "state", "stubborn", "long", "marked").strip() == "success"


@pytest.mark.spec("S191", "S464")
def test_a_run_that_is_failed_by_hand_is_stopped(standalone: Standalone, tmp_path: Path) -> None:
    child = begin(standalone, "failed", tmp_path)
    result = standalone.cli("dags", "set-state", "stubborn", "failed", "failed", "-y")
    assert result.split() == ["failed", "failed", "(2", "task", "instances", "marked)"]
    standalone.wait(lambda: (tmp_path / "killed").exists() or None, "on_kill was called")
    standalone.wait(lambda: None if alive(child) else True, "what the task had started is gone")
    states = {row["task_id"]: row["state"] for row in standalone.json("tasks", "states-for-dag-run", "stubborn", "failed")}
    assert states == {"long": "failed", "after": "skipped"}


@pytest.mark.spec("S182", "S447")
def test_a_failed_task_is_marked_success_and_its_run_continues(standalone: Standalone) -> None:
    standalone.wait_run("failing", standalone.trigger("failing", run_id="repaired"))
    answer = standalone.run("tasks", "run", "failing", "bad", "repaired", "-m")
    assert answer.stdout.splitlines() == [
        "failing.bad in repaired is success (it was failed)",
        "failing.after in repaired is evaluated again (it was upstream_failed)",
    ]
    standalone.wait_task("failing", "repaired", "after", ("success",))
    assert standalone.wait_run("failing", "repaired", ("success",)) == "success"
    with standalone.store() as store:
        assert [one.outcome for one in store.attempts("failing", "repaired", "bad")] == ["failed"], "history is kept"
    events = [getattr(view, "event", "") for view in _audit(standalone)]
    assert "mark" in events


def _audit(standalone: Standalone) -> list[object]:
    with standalone.store() as store:
        return list(store.event_logs(limit=None).rows)
