"""DAG files end as in Airflow 3.3.2: states, tries, labels, XComs and decisions of branches.

`recorded.json` has the outcomes of the DAG files in `dags/`, each run once by the scheduler of Airflow 3.3.2 with the LocalExecutor
on PostgreSQL, and read through its REST API. Airflow stored tuples and sets with a type; here they are lists.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text())["dags"]

EITHER = {("kf", "r_all_success"), ("partial_fail", "r_all_success")}
"""Tasks whose state depends on what ends first: a skipped upstream task skips them, a failed one makes them upstream_failed."""


@functools.cache
def outcomes_here() -> dict[str, Any]:
    """All outcomes, from one process that runs all DAGs."""
    command = [sys.executable, "-m", "tests.conformance.dag_files.run_here"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
    return dict(json.loads(done.stdout))


def compared(dag_id: str, outcome: dict[str, Any]) -> dict[str, Any]:
    """What has to be equal.

    Airflow 3.3.2 does not store what a task returned that skips others; Tradewind does, as Airflow 2 did.
    """
    xcoms = {name: value for name, value in outcome["xcoms"].items() if name not in outcome["decisions"]}
    tasks = {name: state for name, state in outcome["tasks"].items() if (dag_id, name) not in EITHER}
    return {**outcome, "xcoms": xcoms, "tasks": tasks}


@pytest.mark.parametrize("dag_id", sorted(RECORDED))
def test_a_run_ends_as_in_airflow(dag_id: str) -> None:
    assert compared(dag_id, outcomes_here()[dag_id]) == compared(dag_id, RECORDED[dag_id])
