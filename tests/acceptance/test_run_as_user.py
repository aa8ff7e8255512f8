"""Tasks with run_as_user: they run as that user if the tests run as root; otherwise they fail with a reason."""

from __future__ import annotations

import os

import pytest

from tests.acceptance.harness import Standalone

DAG_FILE = """
import os
import subprocess

from tradewind import DAG
from tradewind.operators.python import PythonOperator


def who():
    names = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"uid {os.getuid()} groups {sorted(os.getgroups())} is {names}, at home in {os.environ['HOME']}")
    return os.getuid()


with DAG("as_others", schedule=None, is_paused_upon_creation=False):
    PythonOperator(task_id="nobody", python_callable=who, run_as_user="nobody")
    PythonOperator(task_id="myself", python_callable=who)
    PythonOperator(task_id="stranger", python_callable=who, run_as_user="no-such-user", retries=3)
"""


@pytest.mark.spec("S381", "S506")
def test_a_task_runs_as_its_run_as_user(fresh: Standalone) -> None:
    fresh.write_dag("as_others.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("as_others")
    run = fresh.trigger("as_others")
    assert fresh.wait_run("as_others", run) == "failed"
    tasks = {row["task_id"]: row for row in fresh.json("tasks", "states-for-dag-run", "as_others", run)}
    assert tasks["myself"]["state"] == "success"
    assert tasks["stranger"]["state"] == "failed"
    logs = {name: "".join(p.read_text() for p in (fresh.home / "logs").rglob(f"*{name}*.log")) for name in tasks}
    assert "there is no such user on this machine" in logs["stranger"]
    if os.geteuid() != 0:
        assert "only a worker that runs as root" in logs["nobody"]
        pytest.skip("the rest needs root")
    assert tasks["nobody"]["state"] == "success"
    assert "is nobody, at home in" in logs["nobody"]
    assert f"uid {os.getuid()} " in logs["myself"]
