"""The commands that `tradewind why` prints work as printed and remove the blocker."""

from __future__ import annotations

import shlex
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
def mended(house: Standalone) -> Path:
    """The file whose presence lets the tasks succeed; it is not there yet."""
    path = house.home / "mended"
    path.unlink(missing_ok=True)
    house.write_dag("why.py", SOURCE.format(mended=str(path)))
    for dag_id in ("tree", "past", "choice", "pools", "dates"):
        house.wait_dag(dag_id)
        house.call("set_paused", dag_id=dag_id, is_paused=dag_id == "dates")
    return path


def told(house: Standalone, rule: str, *words: str) -> dict[str, Any]:
    """The blocker of this rule."""
    found = house.json("why", *words)["blockers"]
    return next(one for one in found if one["rule"] == rule)


def obey(house: Standalone, blocker: dict[str, Any]) -> None:
    """Carry out the command of a blocker, as a shell would."""
    name, *words = shlex.split(blocker["command"])
    assert name == "tradewind"
    house.cli(*words, *(["-y"] if "clear" in words else []))


def test_a_failed_root_is_cleared_with_downstream_tasks(house: Standalone, mended: Path) -> None:
    run_id = house.trigger("tree", run_id="~one")
    assert house.wait_run("tree", run_id) == "failed"
    mended.touch()
    obey(house, told(house, "finished", "tree", "leaf", "--run-id", run_id))
    house.wait(lambda: house.cli("dags", "state", "tree", run_id).strip() == "success", "the cleared run succeeds")
    assert house.cli("tasks", "state", "tree", "leaf", run_id).strip() == "success"


def test_a_chain_of_depends_on_past_continues(house: Standalone, mended: Path) -> None:
    runs = [house.trigger("past", run_id=f"p{day}", logical_date=day * 86_400_000_000) for day in (1, 2, 3)]
    for run_id in runs:
        house.wait_task("past", run_id, "first", ("failed",))
    mended.touch()
    house.cli("tasks", "clear", "past", "-t", "^first$", "--downstream", "--run-id", runs[2], "-y")
    house.wait_task("past", runs[2], "first", ("success",))
    house.cli("tasks", "clear", "past", "-t", "^first$", "--downstream", "--run-id", runs[1], "-y")
    house.wait_task("past", runs[1], "first", ("success",))
    blocker = told(house, "past", "past", "second", "--run-id", runs[2])
    assert (
        "The cause is 2 runs back in p1, where second is upstream_failed. The root cause is first (failed)"
        in blocker["sentence"]
    )
    obey(house, blocker)
    for run_id in runs:
        house.wait_task("past", run_id, "second", ("success",))


def test_a_branch_chooses_again(house: Standalone, mended: Path) -> None:
    run_id = house.trigger("choice", run_id="c")
    assert house.wait_run("choice", run_id) == "success"
    mended.touch()
    obey(house, told(house, "finished", "choice", "left", "--run-id", run_id))
    house.wait_task("choice", run_id, "left", ("success",))


def test_pools_are_created_and_enlarged(house: Standalone, mended: Path) -> None:
    house.cli("pools", "set", "narrow", "1", "too narrow")
    run_id = house.trigger("pools", run_id="w")
    for task_id in ("nowhere", "wide"):
        house.wait_task("pools", run_id, task_id, ("scheduled",))
        obey(house, told(house, "pool", "pools", task_id, "--run-id", run_id))
    assert house.wait_run("pools", run_id) == "success"


def test_runs_for_dates_are_created(house: Standalone, mended: Path) -> None:
    obey(house, told(house, "paused", "dates"))
    for date, rule in (("2025-12-01", "before_start"), ("2026-01-02", "catchup"), ("2026-01-02T03:00:00", "no_such_date")):
        obey(house, told(house, rule, "dates", "--run-id", date))
        house.wait(lambda date=date: house.run("dags", "state", "dates", date).returncode == 0, f"the run of {date}")  # type: ignore[misc]


def test_a_finished_run_runs_again(house: Standalone, mended: Path) -> None:
    run_id = house.trigger("tree", run_id="again")
    assert house.wait_run("tree", run_id) == "failed"
    mended.touch()
    obey(house, told(house, "run_finished", "tree", "--run-id", run_id))
    house.wait(lambda: house.cli("dags", "state", "tree", run_id).strip() == "success", "the cleared run succeeds")
