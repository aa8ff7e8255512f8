"""Task logs are uploaded with Airflow's settings, and read there when this machine does not have them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone

pytest.importorskip("fsspec", reason="tests of uploaded logs need fsspec: pip install 'tradewind[remote-logs]'")

SAYS = """
from datetime import datetime
from tradewind import DAG
from tradewind.sdk.decorators import task

with DAG("says", schedule=None, start_date=datetime(2026, 1, 1)):
    @task
    def hello():
        print("a line that is worth keeping")

    hello()
"""
LINE = "a line that is worth keeping"


def test_a_log_is_uploaded_and_read_where_it_is_not(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    settings = {
        "AIRFLOW__LOGGING__REMOTE_LOGGING": "True",
        "AIRFLOW__LOGGING__REMOTE_BASE_LOG_FOLDER": f"file://{remote}",
    }
    standalone = Standalone(tmp_path / "home", environment=settings)
    standalone.write_dag("says.py", SAYS)
    with standalone.started():
        standalone.wait_dag("says")
        standalone.cli("dags", "unpause", "says")
        run_id = standalone.trigger("says")
        assert standalone.wait_run("says", run_id) == "success"
        standalone.wait(lambda: any(LINE in file.read_text() for file in remote.rglob("*.log")) or None, "the uploaded log", 40)
        shutil.rmtree(standalone.home / "logs" / "says")
        assert LINE in standalone.cli("tasks", "logs", "says", "hello")
        page = json.loads(standalone.get(f"/api/v2/dags/says/dagRuns/{run_id}/taskInstances/hello/logs/1"))
        assert any(LINE in json.dumps(record) for record in page["content"])


def test_a_file_system_that_is_not_installed_stops_no_task(tmp_path: Path) -> None:
    settings = {
        "TRADEWIND__LOGGING__REMOTE_LOGGING": "true",
        "TRADEWIND__LOGGING__REMOTE_BASE_LOG_FOLDER": "no-such-system://logs",
    }
    standalone = Standalone(tmp_path / "home", environment=settings)
    standalone.write_dag("says.py", SAYS)
    with standalone.started():
        standalone.wait_line("task logs are not uploaded")
        standalone.wait_dag("says")
        standalone.cli("dags", "unpause", "says")
        run_id = standalone.trigger("says")
        assert standalone.wait_run("says", run_id) == "success"
        assert LINE in standalone.cli("tasks", "logs", "says", "hello")
