"""Task processes: what ps shows, and what is kept of a killed one."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.harness import Standalone
from tradewind.platform import HAVE_LINUX

DAG_FILE = """
from datetime import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("titles", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    BashOperator.partial(task_id="look").expand(
        bash_command=[
            "tr '\\\\0' ' ' < /proc/$PPID/cmdline",
            "tr '\\\\0' '\\\\n' < /proc/$PPID/environ | grep -c TRADEWIND",
        ]
    )

with DAG("killed", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    BashOperator(task_id="kills", bash_command="echo {{ run_id }}; kill -9 $PPID; sleep 60")
"""


@pytest.mark.skipif(not HAVE_LINUX, reason="titles are written on Linux only")
@pytest.mark.spec("S500")
def test_ps_shows_the_task_of_a_process(fresh: Standalone) -> None:
    fresh.write_dag("titles.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("titles")
    run = fresh.trigger("titles")
    assert fresh.wait_run("titles", run) == "success"  # grep fails where the title has eaten the environment
    logs = "".join(path.read_text() for path in (fresh.home / "logs" / "titles").rglob("*.log"))
    assert f"tradewind task titles.look[0] {run} try 1" in logs


def test_rendered_fields_of_a_killed_task_are_kept(fresh: Standalone) -> None:
    fresh.write_dag("titles.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("killed")
    run = fresh.trigger("killed")
    assert fresh.wait_run("killed", run) == "failed"
    answer = json.loads(fresh.get(f"/api/v2/dags/killed/dagRuns/{run}/taskInstances/kills"))
    assert answer["rendered_fields"]["bash_command"] == f"echo {run}; kill -9 $PPID; sleep 60"
