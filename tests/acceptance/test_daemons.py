"""Processes in the background, with pid files, for a while."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.acceptance.dags import CHAIN
from tests.acceptance.harness import Standalone


@pytest.mark.spec("S23", "S48", "S54", "S57", "S58", "S60", "S61", "S80", "S499")
def test_a_scheduler_in_the_background_has_a_pid_file_and_ends_by_it(fresh: Standalone, tmp_path: Path) -> None:
    pid_file = tmp_path / "scheduler.pid"
    said = fresh.cli("scheduler", "-D", "--pid", str(pid_file), "-l", str(tmp_path / "scheduler.log"))
    pid = int(pid_file.read_text())
    assert f"process {pid} " in said
    assert os.readlink(f"/proc/{pid}/fd/2") == str(tmp_path / "scheduler.log")
    fresh.wait(lambda: fresh.run("jobs", "check").returncode == 0, "the scheduler answers")
    again = fresh.run("scheduler", "-D", "--pid", str(pid_file))
    assert (again.returncode, str(pid) in again.stderr) == (1, True)
    os.kill(pid, signal.SIGTERM)
    fresh.wait(lambda: not pid_file.exists(), "the pid file is gone")


@pytest.mark.spec("S50", "S103", "S213")
def test_a_scheduler_for_a_while_ends_by_itself(fresh: Standalone) -> None:
    done = fresh.run("scheduler", "--run-duration", "0.5", timeout=30)
    assert done.returncode == 0, done.stderr
    fresh.wait_gone()


@pytest.mark.spec("S81")
def test_a_scheduler_says_what_it_is_doing_and_goes_on(fresh: Standalone) -> None:
    fresh.cli("scheduler", "-D")
    fresh.wait(lambda: fresh.run("jobs", "check").returncode == 0, "the scheduler answers")
    pid_file, log = (fresh.home / f"tradewind-scheduler.{ending}" for ending in ("pid", "err"))
    os.kill(int(pid_file.read_text()), signal.SIGQUIT)
    fresh.wait(lambda: "run_scheduler" in log.read_text(), "the frames are in the log")
    assert fresh.run("jobs", "check").returncode == 0
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    fresh.wait(lambda: not pid_file.exists(), "the pid file is gone")


@pytest.mark.spec("S62")
def test_a_web_server_in_the_background(fresh: Standalone, tmp_path: Path) -> None:
    fresh.cli("db", "migrate")
    pid_file = tmp_path / "web.pid"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    fresh.cli("api-server", "-D", "-p", str(port), "--pid", str(pid_file))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/monitor/health", timeout=10) as answer:
        assert json.load(answer)["metadatabase"]["status"] == "healthy"
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    fresh.wait(lambda: not pid_file.exists(), "the pid file is gone")


@pytest.mark.spec("S55", "S56", "S59", "S477")
def test_the_files_of_the_background_lie_at_home_unless_named(fresh: Standalone, tmp_path: Path) -> None:
    at_home = [fresh.home / f"tradewind-scheduler.{ending}" for ending in ("pid", "out", "err")]
    both = tmp_path / "said"
    for words, there in ((("--stdout", str(both), "--stderr", str(both)), [True, False, False]), ((), [True] * 3)):
        fresh.cli("scheduler", "-D", *words)
        fresh.wait(lambda: fresh.run("jobs", "check").returncode == 0, "the scheduler answers")
        assert [path.exists() for path in at_home] == there
        pid = int(at_home[0].read_text())
        assert [os.readlink(f"/proc/{pid}/fd/{number}") for number in (1, 2)] == (
            [str(path) for path in at_home[1:]] if there[1] else [str(both)] * 2
        )
        os.kill(pid, signal.SIGTERM)
        fresh.wait(lambda: not at_home[0].exists(), "the pid file is gone")


@pytest.mark.spec("S51", "S226")
def test_a_scheduler_for_so_many_turns_ends_by_itself(fresh: Standalone) -> None:
    """What there is to do makes a turn; with nothing to do it would stay."""
    fresh.write_dag("chain.py", CHAIN)
    fresh.cli("dags", "reserialize")
    fresh.cli("dags", "unpause", "chain")
    fresh.cli("dags", "trigger", "chain", "-r", "r")
    done = fresh.run("scheduler", "-n", "1", timeout=30)
    assert done.returncode == 0, done.stderr
    assert fresh.cli("dags", "state", "chain", "r").strip() == "running"
    fresh.wait_gone()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("worker-host", "-n", "5"), "--run-duration"),
        (("scheduler", "-n", "0"), "at least one turn"),
        (("scheduler", "--run-duration", "0"), "0"),
    ],
)
def test_what_has_no_meaning_is_refused(fresh: Standalone, words: tuple[str, ...], hint: str) -> None:
    done = fresh.run(*words)
    assert (done.returncode, hint in done.stderr) == (2, True)


def test_one_that_dies_at_once_says_why(fresh: Standalone, tmp_path: Path) -> None:
    (fresh.home / "tradewind.db").write_bytes(b"this is no database" * 100)
    done = fresh.run("scheduler", "-D")
    assert done.returncode == 1
    assert "ended at once" in done.stderr
    assert "tradewind.db" in done.stderr
