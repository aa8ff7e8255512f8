"""The commands that `tradewind why` prints work as printed and remove the blocker."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import Standalone

SOURCE = """
import os
from datetime import datetime
from tradewind import DAG, task
from tradewind.operators.empty import EmptyOperator

MENDED = {mended!r}

def mended():
    return os.path.exists(MENDED)

with DAG("tree", schedule=None):
    @task
    def root():
        assert mended(), "not mended"

    @task
    def middle(): ...

    @task
    def leaf(): ...

    root() >> middle() >> leaf()

with DAG("past", schedule=None, max_active_runs=5):
    @task
    def first():
        assert mended(), "not mended"

    @task(depends_on_past=True)
    def second(): ...

    first() >> second()

with DAG("choice", schedule=None):
    @task.branch
    def choose():
        return "left" if mended() else "right"

    left, right = task(task_id="left")(lambda: None)(), task(task_id="right")(lambda: None)()
    choose() >> [left, right]

with DAG("pools", schedule=None):
    task(task_id="nowhere", pool="nowhere")(lambda: None)()
    task(task_id="wide", pool="narrow", pool_slots=3)(lambda: None)()

with DAG("dates", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False):
    EmptyOperator(task_id="one")
"""


@pytest.fixture
def mended(standalone: Standalone) -> Path:
    """The file whose presence lets the tasks succeed; it is not there yet."""
    path = standalone.home / "mended"
    path.unlink(missing_ok=True)
    standalone.write_dag("why.py", SOURCE.format(mended=str(path)))
    for dag_id in ("tree", "past", "choice", "pools", "dates"):
        standalone.wait_dag(dag_id)
        standalone.call("set_paused", dag_id=dag_id, is_paused=dag_id == "dates")
    return path


def blocker_of(standalone: Standalone, rule: str, *words: str) -> dict[str, Any]:
    """The blocker of this rule."""
    found = standalone.json("why", *words)["blockers"]
    return next(one for one in found if one["rule"] == rule)


def obey(standalone: Standalone, blocker: dict[str, Any]) -> None:
    """Carry out the command of a blocker, as a shell would."""
    name, *words = shlex.split(blocker["command"])
    assert name == "tradewind"
    standalone.cli(*words, *(["-y"] if "clear" in words else []))


def test_a_failed_root_is_cleared_with_downstream_tasks(standalone: Standalone, mended: Path) -> None:
    run_id = standalone.trigger("tree", run_id="~one")
    assert standalone.wait_run("tree", run_id) == "failed"
    mended.touch()
    obey(standalone, blocker_of(standalone, "finished", "tree", "leaf", "--run-id", run_id))
    standalone.wait(lambda: standalone.cli("dags", "state", "tree", run_id).strip() == "success", "the cleared run succeeds")
    assert standalone.cli("tasks", "state", "tree", "leaf", run_id).strip() == "success"


def test_a_chain_of_depends_on_past_continues(standalone: Standalone, mended: Path) -> None:
    runs = [standalone.trigger("past", run_id=f"p{day}", logical_date=day * 86_400_000_000) for day in (1, 2, 3)]
    for run_id in runs:
        standalone.wait_task("past", run_id, "first", ("failed",))
    mended.touch()
    standalone.cli("tasks", "clear", "past", "-t", "^first$", "--downstream", "--run-id", runs[2], "-y")
    standalone.wait_task("past", runs[2], "first", ("success",))
    standalone.cli("tasks", "clear", "past", "-t", "^first$", "--downstream", "--run-id", runs[1], "-y")
    standalone.wait_task("past", runs[1], "first", ("success",))
    blocker = blocker_of(standalone, "past", "past", "second", "--run-id", runs[2])
    assert (
        "The cause is 2 runs back in p1, where second is upstream_failed. The root cause is first (failed)"
        in blocker["sentence"]
    )
    obey(standalone, blocker)
    for run_id in runs:
        standalone.wait_task("past", run_id, "second", ("success",))


def test_a_branch_chooses_again(standalone: Standalone, mended: Path) -> None:
    run_id = standalone.trigger("choice", run_id="c")
    assert standalone.wait_run("choice", run_id) == "success"
    mended.touch()
    obey(standalone, blocker_of(standalone, "finished", "choice", "left", "--run-id", run_id))
    standalone.wait_task("choice", run_id, "left", ("success",))


def test_pools_are_created_and_enlarged(standalone: Standalone, mended: Path) -> None:
    standalone.cli("pools", "set", "narrow", "1", "too narrow")
    run_id = standalone.trigger("pools", run_id="w")
    for task_id in ("nowhere", "wide"):
        standalone.wait_task("pools", run_id, task_id, ("scheduled",))
        obey(standalone, blocker_of(standalone, "pool", "pools", task_id, "--run-id", run_id))
    assert standalone.wait_run("pools", run_id) == "success"


def test_runs_for_dates_are_created(standalone: Standalone, mended: Path) -> None:
    def has_run(date: str) -> bool:
        return standalone.run("dags", "state", "dates", date).returncode == 0

    obey(standalone, blocker_of(standalone, "paused", "dates"))
    for date, rule in (("2025-12-01", "before_start"), ("2026-01-02", "catchup"), ("2026-01-02T03:00:00", "no_such_date")):
        obey(standalone, blocker_of(standalone, rule, "dates", "--run-id", date))
        standalone.wait(partial(has_run, date), f"the run of {date}")


def test_a_finished_run_runs_again(standalone: Standalone, mended: Path) -> None:
    run_id = standalone.trigger("tree", run_id="again")
    assert standalone.wait_run("tree", run_id) == "failed"
    mended.touch()
    obey(standalone, blocker_of(standalone, "run_finished", "tree", "--run-id", run_id))
    standalone.wait(lambda: standalone.cli("dags", "state", "tree", run_id).strip() == "success", "the cleared run succeeds")
