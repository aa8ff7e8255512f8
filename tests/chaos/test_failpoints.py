"""Die once at every place of the hot path that is worth dying at: the run ends well, each task once, unless its report died too."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.dags.chaos_plan import PLAN
from tests.chaos.judge import Kill, judge
from tests.chaos.killer import SETTINGS
from tests.chaos.world import World, until

AGAIN = frozenset({"runner.before_report", "host.before_verdict", "host.launch"})
"""Where a task may rightly run twice: the runner had said nothing yet, so its host could only see that it died; or the host died,
with a verdict that nobody had heard and with every task that was running below it."""

SCHEDULER = ("scheduler.before_commit", "scheduler.after_commit", "scheduler.before_submit", "scheduler.before_answer")
CASES = [
    *((name, hit) for name in SCHEDULER for hit in (1, 2, 4)),
    *((name, hit) for name in ("host.launch", "host.before_verdict") for hit in (1, 3, 5)),
    *((name, 1) for name in ("runner.before_start", "runner.accepted", "runner.before_report", "runner.after_report")),
    ("template.before_import", 1),
]
"""Hits are counted in each process: a fresh runner always makes its first."""


class Instance:
    """One home folder; started anew, with other failpoints, for each case."""

    def __init__(self, folder: Path) -> None:
        self.marks = folder / "marks"
        (self.marks / "locks").mkdir(parents=True)
        self.once = folder / "once"
        self.world = World(folder / "home", {**SETTINGS, "CHAOS_MARKS": str(self.marks)})
        for path in (Path(__file__).parent / "dags").iterdir():
            if path.is_file():
                shutil.copy(path, self.world.home / "dags")
        self.count = 0

    def run(self, failpoints: str) -> tuple[str, dict[str, Any]]:
        """Start with these failpoints, run the six tasks to their end, stop; the run and how it ended."""
        shutil.rmtree(self.once, ignore_errors=True)
        self.once.mkdir()
        self.count += 1
        run, world = f"r{self.count}", self.world
        world.start({"TRADEWIND_FAILPOINTS": failpoints, "TRADEWIND_FAILPOINTS_ONCE": str(self.once)})
        try:
            world.await_ready()
            until("the DAG is known", 20, self._known)
            world.trigger("six", run)
            until("the run has ended", 40, lambda: self._state(run) in ("success", "failed"))
            end = {"state": world.run_state("six", run), "tasks": world.task_states("six", run)}
            world.stop()
            assert world.census() == []
        finally:
            world.kill_everything()
        return run, end

    def _known(self) -> bool:
        try:
            return any(row["dag_id"] == "six" for row in self.world.get("/api/v2/dags?limit=100")["dags"])
        except OSError:
            return False

    def _state(self, run: str) -> str:
        try:
            return self.world.run_state("six", run)
        except OSError:
            return ""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Instance:
    return Instance(tmp_path_factory.mktemp("failpoints"))


@pytest.mark.parametrize(("name", "hit"), CASES, ids=str)
def test_death_at(instance: Instance, name: str, hit: int) -> None:
    run, end = instance.run(f"{name}=kill9@{hit}")
    assert (instance.once / name).exists(), "the failpoint was never reached"
    assert end == {"state": "success", "tasks": dict.fromkeys(PLAN["six"], "success")}
    kills = [Kill("host", 0, 1 << 62, ())] if name in AGAIN else []
    folder = instance.marks / "judged"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(instance.marks / f"six.{run}", folder)
    shutil.rmtree(instance.once)
    verdict = judge(folder, kills, [("six", run)], {("six", run): end})
    assert verdict.problems == []
    if name in AGAIN:
        assert verdict.attempts <= len(PLAN["six"]) + 2  # at most what ran beside it
    else:
        assert verdict.attempts == len(PLAN["six"])
        assert verdict.unended == 0
