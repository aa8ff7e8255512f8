"""Processes that hang are shown as unhealthy, killed and started again. No running task is lost."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tradewind.platform import HAVE_LINUX, linux
from tradewind.platform.clock import SystemClock
from tradewind.platform.progress import read_progress

pytestmark = pytest.mark.skipif(not HAVE_LINUX, reason="processes are looked at in /proc")

DAG_FILE = """
import time
from datetime import datetime
from pathlib import Path
from tradewind import DAG, task

with DAG("waits", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    @task
    def t(folder=FOLDER):
        with open(folder + "/began", "a") as file:
            file.write("!")
        while not Path(folder + "/go").exists():
            time.sleep(0.02)
    t()
"""


def pid_of(standalone: Standalone, kind: str) -> int:
    """The pid of the process that reports progress now; 0: none."""
    found = read_progress(str(standalone.home / "run" / f"{kind}.progress"), SystemClock())
    return found.pid if found is not None and found.alive and found.age < 500_000 else 0


def ready(standalone: Standalone) -> tuple[int, list[str]]:
    try:
        with urllib.request.urlopen(f"{standalone.address}/api/tradewind/v1/ready", timeout=10) as answer:
            return answer.status, json.load(answer)["reasons"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["reasons"]
    except OSError:
        return 0, []


def test_a_stalled_process_is_shown_and_restarted(tmp_path: Path) -> None:
    standalone = Standalone(tmp_path / "home", environment={"TRADEWIND__CORE__STALL_LIMIT": "1.5"})
    standalone.write_dag("waits.py", DAG_FILE.replace("FOLDER", repr(str(tmp_path))))
    with standalone.started():
        standalone.wait_dag("waits")
        run = standalone.trigger("waits")
        standalone.wait((tmp_path / "began").exists, "the task runs")
        standalone.wait(lambda: ready(standalone)[0] == 200, "it is ready")
        kinds = ("scheduler", "parser", "api")
        standalone.wait(lambda: all(pid_of(standalone, kind) for kind in kinds), "all of them work")
        stopped = {kind: pid_of(standalone, kind) for kind in kinds}
        for pid in stopped.values():
            os.kill(pid, signal.SIGSTOP)
        for kind, pid in stopped.items():
            standalone.wait(lambda kind=kind, pid=pid: pid_of(standalone, kind) not in (0, pid), f"there is another {kind}")  # type: ignore[misc]
            assert linux.start_time(pid) is None or linux.is_zombie(pid)
        standalone.wait(lambda: ready(standalone)[0] == 200, "it is ready again")
        host = pid_of(standalone, "host")
        os.kill(host, signal.SIGSTOP)
        standalone.wait(lambda: ready(standalone)[0] == 503, "it is not ready without its host")
        assert any(f"the worker host (process {host}) has made no progress for" in reason for reason in ready(standalone)[1])
        standalone.wait(lambda: ready(standalone)[0] == 200, "the supervisor has continued the host")
        assert pid_of(standalone, "host") == host, "its end would be the end of its tasks"
        (tmp_path / "go").touch()
        assert standalone.wait_run("waits", run) == "success"
        assert (tmp_path / "began").read_text() == "!", "the task ran once"
        result = standalone.cli("info")
        assert f"process {host} is running" in result
