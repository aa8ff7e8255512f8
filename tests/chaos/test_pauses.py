"""A process hangs for longer than the interval of every safety net and continues: nothing is lost, nothing runs twice.

A machine that swaps, a virtual machine that is moved, a debugger: whoever stood still must not act on what it believed before.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.dags.chaos_plan import PLAN
from tests.chaos.judge import judge
from tests.chaos.killer import SETTINGS
from tests.chaos.world import World, until

PAUSE = 4.0
"""Seconds: longer than all intervals of resubmission, reconciliation, repeated start requests and repeated reports."""
DAG = "diamond"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("pauses")
    (folder / "marks" / "locks").mkdir(parents=True)
    found = World(folder / "home", {**SETTINGS, "CHAOS_MARKS": str(folder / "marks")})
    for path in (Path(__file__).parent / "dags").iterdir():
        if path.is_file():
            shutil.copy(path, found.home / "dags")
    try:
        found.start()
        found.await_ready()
        until("the DAG is known", 60, lambda: DAG in {row["dag_id"] for row in found.get("/api/v2/dags?limit=100")["dags"]})
        yield found
        found.stop()
        assert found.census() == []
    finally:
        found.kill_everything()


@pytest.mark.parametrize(
    "kind",
    [
        "scheduler",
        "host",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("image", "template", "runner", "parser", "api", "supervisor")
        ),
    ],
)
def test_a_process_that_hangs_for_a_while(world: World, kind: str, tmp_path: Path) -> None:
    run = f"{kind}-still"
    marks = world.home.parent / "marks"
    world.trigger(DAG, run)
    until("a task has begun", 30, (marks / f"{DAG}.{run}").exists)
    still = until(f"there is a {kind}", 20, lambda: world.find(kind))
    for process in still:
        process.kill(signal.SIGSTOP)
    time.sleep(PAUSE)  # this is the fault: time passes while the process hangs
    for process in still:
        process.kill(signal.SIGCONT)
    until("the run has ended", 60, lambda: world.run_state(DAG, run) in ("success", "failed"))
    end = {"state": world.run_state(DAG, run), "tasks": world.task_states(DAG, run)}
    shutil.copy(marks / f"{DAG}.{run}", tmp_path)
    verdict = judge(tmp_path, [], [(DAG, run)], {(DAG, run): end})
    assert verdict.problems == []
    assert (verdict.attempts, verdict.unended) == (len(PLAN[DAG]), 0)
