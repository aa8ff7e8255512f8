"""Services in the background, with pid files, log files and a run duration."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.acceptance.dags import CHAIN
from tests.acceptance.harness import Standalone
from tradewind.cli.commands.scheduler import scheduler

WHILE = 3.0
"""Seconds for which a scheduler runs; long enough to start and to be asked."""


@pytest.fixture
def tasks_may_finish(fresh: Standalone) -> None:
    """As without a setting: running tasks get time when a service stops."""
    fresh.environment["TRADEWIND__RUNNER__DRAIN_TIMEOUT"] = "60"


@pytest.mark.spec("S22")
def test_services_started_one_by_one_work_together(fresh: Standalone, tmp_path: Path) -> None:
    """The parser reads the folder that it names, the web server listens where it says, and the worker host runs the tasks."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "chain.py").write_text(CHAIN)
    (fresh.home / "tradewind.toml").write_text(f'[core]\ndags_folder = "{folder}"\n\n[api]\nport = {port}\n')
    alone = ("scheduler", "--no-dag-processor", "--no-worker-host")
    with ThreadPoolExecutor() as starts:
        list(starts.map(lambda words: fresh.cli(*words, "-D"), (alone, ("worker-host",), ("dag-processor",), ("api-server",))))
    fresh.address = f"http://127.0.0.1:{port}"
    fresh.wait(lambda: fresh.run("dags", "details", "chain").returncode == 0, "the parser has read the file")
    fresh.cli("dags", "unpause", "chain")
    assert fresh.run("dags", "trigger", "chain", "-r", "one", "--wait").returncode == 0

    def healthy() -> bool:
        with suppress(urllib.error.URLError):
            return fresh.health() == {"metadatabase": "healthy", "scheduler": "healthy"}
        return False

    fresh.wait(healthy, "the web server sees the scheduler")


class Life(NamedTuple):
    """What was seen of a scheduler that was started in the background and stopped by its pid file."""

    said: str
    pid: int
    parent: int
    session: int
    streams: list[str]
    """Files behind the standard input, output and error."""
    scheduler: int
    """Process id of the scheduler below it, as `jobs check` names it."""
    second: subprocess.CompletedProcess[str]
    """A second start with the same pid file."""
    lives_on: bool
    """Did it still answer after SIGQUIT?"""
    log: str
    output: str
    there: list[str]
    """Files of the background in the home folder while it lived."""


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def live(standalone: Standalone, pid_file: Path, log: Path, output: Path, *words: str) -> Life:
    """Start a scheduler with these words, look at it, start another one, send the first SIGQUIT, and stop it by SIGTERM."""
    (standalone.home / "tradewind-scheduler.err").unlink(missing_ok=True)  # of the life before
    result = standalone.cli("scheduler", "-D", *words)
    pid = int(pid_file.read_text())
    standalone.wait(lambda: standalone.run("jobs", "check").returncode == 0, "the scheduler answers")
    (job,) = standalone.json("jobs", "check", "--job-type", "SchedulerJob")
    parent = parent_of(pid)
    assert parent_of(job["pid"]) == pid
    streams = [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)]
    session, there = os.getsid(pid), sorted(path.name for path in standalone.home.glob("tradewind-scheduler.*"))
    second = standalone.run("scheduler", "-D", *words)
    os.kill(pid, signal.SIGQUIT)
    standalone.wait(lambda: "run_scheduler" in log.read_text(), "the frames of its threads are in the log")
    lives_on = standalone.run("jobs", "check").returncode == 0
    os.kill(pid, signal.SIGTERM)
    standalone.wait(lambda: not pid_file.exists(), "the pid file is gone")
    standalone.wait_gone()
    return Life(result, pid, parent, session, streams, job["pid"], second, lives_on, log.read_text(), output.read_text(), there)


class Lives(NamedTuple):
    """Of one home folder, one after the other."""

    folder: Path
    home: Path
    named: Life
    """With --pid, --stdout and -l."""
    one_file: Life
    """With one file for --stdout and --stderr."""
    at_home: Life
    """With no file named; a pid file of a dead process was there."""
    jobs: list[dict[str, Any]]
    """What `jobs list` showed when all had ended, the newest first."""


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    folder = tmp_path_factory.mktemp("lives")
    standalone = Standalone(folder / "home")
    home = standalone.home
    pid_file, log, output, both = (folder / name for name in ("scheduler.pid", "scheduler.log", "scheduler.out", "both"))
    pid_at_home = home / "tradewind-scheduler.pid"
    try:
        named = live(standalone, pid_file, log, output, "--pid", str(pid_file), "--stdout", str(output), "-l", str(log))
        one_file = live(standalone, pid_at_home, both, both, "--stdout", str(both), "--stderr", str(both))
        pid_at_home.write_text(f"{named.pid}\n")
        at_home = live(standalone, pid_at_home, home / "tradewind-scheduler.err", home / "tradewind-scheduler.out")
        yield Lives(folder, home, named, one_file, at_home, standalone.json("jobs", "list"))
    finally:
        standalone.close()


@pytest.mark.spec("S48")
def test_the_command_runs_the_job_of_the_scheduler(lives: Lives) -> None:
    assert lives.named.scheduler not in (0, lives.named.pid)


@pytest.mark.spec("S54")
def test_the_pid_file_has_the_given_name(lives: Lives) -> None:
    assert f"process {lives.named.pid} " in lives.named.said
    assert "tradewind-scheduler.pid" not in lives.named.there


@pytest.mark.spec("S23", "S58")
def test_a_daemon_survives_its_command_in_its_own_session(lives: Lives) -> None:
    """The way without a supervisor; the one below a common parent is in test_standalone.py."""
    assert lives.named.parent != os.getpid()
    assert lives.named.session not in (lives.named.pid, os.getsid(0))
    assert lives.named.streams[0] == os.devnull


@pytest.mark.spec("S60", "S499")
def test_a_live_pid_file_refuses_the_start_and_a_stale_one_is_replaced(lives: Lives) -> None:
    assert lives.named.second.returncode == 1
    assert str(lives.named.pid) in lives.named.second.stderr
    assert lives.at_home.pid != lives.named.pid
    assert lives.at_home.lives_on


@pytest.mark.spec("S61", "S80")
def test_sigterm_to_the_pid_in_the_file_stops_a_daemon(lives: Lives) -> None:
    assert not (lives.folder / "scheduler.pid").exists()
    assert not Path(f"/proc/{lives.named.pid}").exists()
    assert "Traceback" not in lives.named.log


@pytest.mark.spec("S196", "S198")
def test_the_job_of_a_stopped_scheduler_is_success_with_an_end_date(lives: Lives) -> None:
    jobs = [job for job in lives.jobs if job["job_type"] == "SchedulerJob"]
    assert [job["pid"] for job in jobs] == [life.scheduler for life in (lives.at_home, lives.one_file, lives.named)]
    assert {job["state"] for job in jobs} == {"success"}
    assert all(job["start_date"] < job["end_date"] for job in jobs)


@pytest.mark.spec("S57")
def test_the_log_is_written_to_the_given_file(lives: Lives) -> None:
    """With no --stderr, which has a file of its own; the file of its output stays empty."""
    assert lives.named.streams[1:] == [str(lives.folder / "scheduler.out"), str(lives.home / "tradewind-scheduler.err")]
    assert "run_scheduler" in lives.named.log
    assert lives.named.output == ""


@pytest.mark.spec("S81")
def test_sigquit_writes_stacks_and_the_scheduler_continues(lives: Lives) -> None:
    """At SIGQUIT: the frames of all threads."""
    assert "thread 0x" in lives.named.log
    assert lives.named.lives_on


@pytest.mark.spec("S103")
def test_a_scheduler_without_run_duration_runs_until_stopped(lives: Lives) -> None:
    """Nothing but SIGTERM ended the ones in the background, and no timer was set."""
    assert all(life.lives_on for life in (lives.named, lives.one_file, lives.at_home))
    assert scheduler.make_context("scheduler", []).params["run_duration"] is None


@pytest.mark.spec("S103")
def test_run_duration_and_num_runs_of_minus_one_are_unlimited(fresh: Standalone) -> None:
    command = [*fresh.command, "scheduler", "--run-duration", "-1", "-r", "-1", "-n", "-1", "-l", str(fresh.home / "log")]
    process = subprocess.Popen(command, env=fresh.environment)
    fresh.wait(lambda: fresh.run("jobs", "check").returncode == 0, "the scheduler answers")
    fresh.wait(lambda: "watching DAG files" in (fresh.home / "log").read_text(), "the parser is up")
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    fresh.wait_gone()


@pytest.mark.spec("S55", "S56")
def test_stdout_and_stderr_can_be_one_file(lives: Lives) -> None:
    both = str(lives.folder / "both")
    assert lives.one_file.streams[1:] == [both, both]
    assert lives.one_file.there == ["tradewind-scheduler.pid"]


@pytest.mark.spec("S59")
def test_files_of_a_daemon_are_in_the_home_folder_by_default(lives: Lives) -> None:
    assert lives.at_home.there == [f"tradewind-scheduler.{ending}" for ending in ("err", "out", "pid")]
    assert lives.at_home.streams[1:] == [str(lives.home / f"tradewind-scheduler.{ending}") for ending in ("out", "err")]


@pytest.mark.spec("S50", "S213")
def test_a_scheduler_stops_after_its_run_duration(fresh: Standalone) -> None:
    """It hands over no sooner than that, and nobody has to stop it."""
    began = time.monotonic()
    process = subprocess.Popen([*fresh.command, "scheduler", "--run-duration", str(WHILE)], env=fresh.environment)
    assert process.wait(60) == 0
    assert time.monotonic() - began >= WHILE
    jobs = json.loads(fresh.run("jobs", "list", "-o", "json").stdout)
    assert [job["state"] for job in jobs if job["job_type"] == "SchedulerJob"] == ["success"]
    assert fresh.run("jobs", "check").returncode == 1
    fresh.wait_gone()


def test_a_stop_during_the_start_stops_the_service(fresh: Standalone, tmp_path: Path) -> None:
    """The time is over while the scheduler still imports its modules."""
    pid_file = tmp_path / "scheduler.pid"
    done = fresh.run("scheduler", "--run-duration", "0.001", "--pid", str(pid_file), timeout=30)
    assert done.returncode == 0, done.stderr
    assert not pid_file.exists()
    fresh.wait_gone()


@pytest.mark.spec("S62")
def test_a_web_server_in_the_background(fresh: Standalone, tmp_path: Path) -> None:
    fresh.cli("db", "migrate")
    pid_file = tmp_path / "web.pid"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    fresh.cli("api-server", "-D", "-p", str(port), "--pid", str(pid_file))

    def answers() -> bool:
        with suppress(urllib.error.URLError), urllib.request.urlopen(health, timeout=10) as answer:
            return bool(json.load(answer)["metadatabase"]["status"] == "healthy")
        return False

    health = f"http://127.0.0.1:{port}/api/v2/monitor/health"
    fresh.wait(answers, "the web server answers")
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    fresh.wait(lambda: not pid_file.exists(), "the pid file is gone")


NOTES_READINGS = """
from datetime import datetime
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
with open({notes!r}, "a") as notes:
    notes.write({name!r} + "\\n")
with DAG({name!r}, schedule=None, start_date=datetime(2026, 1, 1)):
    EmptyOperator(task_id="t")
"""


@pytest.mark.spec("S51")
def test_num_runs_reads_every_dag_file_that_many_times(fresh: Standalone, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    for name in ("one", "two"):
        fresh.write_dag(f"{name}.py", NOTES_READINGS.format(name=name, notes=str(notes)))
    done = fresh.run("scheduler", "-n", "3", timeout=30)
    assert done.returncode == 0, done.stderr
    assert sorted(notes.read_text().split()) == ["one"] * 3 + ["two"] * 3
    notes.unlink()
    fresh.cli("scheduler", "-n", "2")
    assert sorted(notes.read_text().split()) == ["one"] * 2 + ["two"] * 2, "files that are known already are read, too"
    fresh.wait_gone()


@pytest.mark.spec("S213", "S226")
@pytest.mark.usefixtures("tasks_may_finish")
def test_num_runs_stops_although_tasks_are_waiting(fresh: Standalone) -> None:
    """What is running ends in order; the task after it waits for the next scheduler."""
    (fresh.home / "log").touch()
    fresh.write_dag("gate.py", WAITS_FOR_A_FILE.format(gate=str(fresh.home / "gate"), begun=str(fresh.home / "begun")))
    command = [*fresh.command, "scheduler", "-n", "1", "-l", str(fresh.home / "log")]
    process = subprocess.Popen(command, env=fresh.environment)
    fresh.wait(lambda: "running tasks may finish" in (fresh.home / "log").read_text(), "the service ends")
    assert (fresh.home / "begun").exists()
    (fresh.home / "gate").touch()
    assert process.wait(30) == 0
    (run,) = fresh.json("dags", "list-runs", "gate")
    assert run["state"] == "running"
    tasks = {row["task_id"]: row["state"] for row in fresh.json("tasks", "states-for-dag-run", "gate", run["run_id"])}
    assert (tasks["first"], tasks["second"]) == ("success", "queued")
    fresh.wait_gone()


@pytest.mark.spec("S226")
@pytest.mark.parametrize("words", [(), ("--no-worker-host",)], ids=" ".join)
def test_num_runs_stops_a_scheduler_with_nothing_to_do(fresh: Standalone, words: tuple[str, ...]) -> None:
    done = fresh.run("scheduler", "-n", "2", *words, timeout=30)
    assert done.returncode == 0, done.stderr
    assert fresh.run("jobs", "check").returncode == 1
    fresh.wait_gone()


def test_num_runs_fails_if_another_parser_reads_the_files(fresh: Standalone) -> None:
    fresh.cli("dag-processor", "-D")
    pid_file, stamp = fresh.home / "tradewind-parser.pid", fresh.home / "run" / "parser.progress"
    fresh.wait(stamp.exists, "the parser is up")
    done = fresh.run("scheduler", "-n", "1", timeout=30)
    assert (done.returncode, "cannot be counted" in done.stderr) == (1, True)
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    fresh.wait(lambda: not pid_file.exists(), "the parser has ended")
    fresh.wait_gone()


def test_the_log_file_has_the_records_of_the_service_and_its_children(fresh: Standalone, tmp_path: Path) -> None:
    log, out, err = (tmp_path / name for name in ("the.log", "the.out", "the.err"))
    fresh.cli("scheduler", "-n", "1", "-l", str(log), "--stdout", str(out), "--stderr", str(err))
    assert "watching DAG files" in log.read_text()
    assert (out.read_text(), err.read_text()) == ("", "")


@pytest.mark.spec("S477")
def test_log_and_streams_of_the_background_are_three_files(fresh: Standalone, tmp_path: Path) -> None:
    names = {name: tmp_path / f"scheduler.{name}" for name in ("log", "out", "err")}
    pid_file = tmp_path / "scheduler.pid"
    words = ("-l", str(names["log"]), "--stdout", str(names["out"]), "--stderr", str(names["err"]), "--pid", str(pid_file))
    fresh.cli("scheduler", "-D", *words)
    fresh.wait(lambda: "watching DAG files" in names["log"].read_text(), "the parser is up")
    pid = int(pid_file.read_text())
    assert [os.readlink(f"/proc/{pid}/fd/{number}") for number in (1, 2)] == [str(names["out"]), str(names["err"])]
    os.kill(pid, signal.SIGTERM)
    fresh.wait(lambda: not pid_file.exists(), "the pid file is gone")


WAITS_FOR_A_FILE = """
import pathlib, time
from datetime import datetime
from tradewind import DAG, task
with DAG("gate", schedule="@once", start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    @task
    def first():
        pathlib.Path({begun!r}).touch()
        while not pathlib.Path({gate!r}).exists():
            time.sleep(0.01)
    @task
    def second():
        pass
    first() >> second()
"""


RUNS_AT_ONCE = """
import signal
from datetime import datetime
from tradewind import DAG, task
with DAG({name!r}, schedule="@once", start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    @task
    def t():
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR2):
            assert signal.getsignal(number) == signal.SIG_DFL, number
    t()
"""


@pytest.mark.usefixtures("tasks_may_finish")
def test_num_runs_runs_due_tasks_of_the_files_that_were_read(fresh: Standalone) -> None:
    fresh.write_dag("one.py", RUNS_AT_ONCE.format(name="one"))
    fresh.cli("scheduler", "-n", "1")
    (run,) = fresh.json("dags", "list-runs", "one")
    assert run["state"] == "success"
    fresh.wait_gone()


@pytest.mark.spec("S52")
@pytest.mark.usefixtures("tasks_may_finish")
def test_do_pickle_is_accepted_and_has_no_effect(fresh: Standalone) -> None:
    fresh.write_dag("one.py", RUNS_AT_ONCE.format(name="one"))
    done = fresh.run("scheduler", "-p", "-n", "1")
    assert (done.returncode, "code is not pickled" in done.stderr) == (0, True)
    (run,) = fresh.json("dags", "list-runs", "one")
    assert run["state"] == "success"


@pytest.mark.spec("S49")
@pytest.mark.usefixtures("tasks_may_finish")
def test_subdir_limits_the_scheduler_to_a_folder(fresh: Standalone, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    fresh.write_dag("same_name.py", RUNS_AT_ONCE.format(name="home"))
    (other / "same_name.py").write_text(RUNS_AT_ONCE.format(name="away"))
    fresh.cli("dags", "reserialize")
    fresh.cli("dags", "trigger", "home", "-r", "r")
    fresh.cli("scheduler", "-sd", str(other), "-n", "1")
    assert fresh.cli("dags", "state", "home", "r").strip() == "queued"
    assert [run["state"] for run in fresh.json("dags", "list-runs", "away")] == ["success"]
    fresh.cli("scheduler", "-S", str(fresh.dags_folder / "same_name.py"), "-n", "1")
    assert fresh.cli("dags", "state", "home", "r").strip() == "success"


@pytest.mark.spec("S53")
def test_dag_id_limits_the_scheduler_to_one_dag(fresh: Standalone) -> None:
    for name in ("one", "two"):
        fresh.write_dag(f"{name}.py", RUNS_AT_ONCE.format(name=name))
    fresh.cli("scheduler", "-d", "two", "-n", "1")
    assert [len(fresh.json("dags", "list-runs", name)) for name in ("one", "two")] == [0, 1]


def test_a_scheduler_alone_parses_schedules_and_runs(fresh: Standalone) -> None:
    """No worker beside them: LocalExecutor."""
    fresh.write_dag("chain.py", CHAIN)
    fresh.cli("scheduler", "-D")
    try:
        fresh.wait_dag("chain")
        fresh.cli("dags", "unpause", "chain")
        fresh.cli("dags", "trigger", "chain", "--wait", "--timeout", "30")
    finally:
        os.kill(int((fresh.home / "tradewind-scheduler.pid").read_text()), signal.SIGTERM)
    fresh.wait_gone()


def test_a_running_worker_host_is_used(fresh: Standalone) -> None:
    fresh.write_dag("one.py", RUNS_AT_ONCE.format(name="one"))
    fresh.cli("worker-host", "-D")
    pid_file, stamp = fresh.home / "tradewind-host.pid", fresh.home / "run" / "host.progress"
    fresh.wait(stamp.exists, "the worker host is up")
    fresh.cli("db", "migrate")
    process = subprocess.Popen([*fresh.command, "scheduler", "-l", str(fresh.home / "log")], env=fresh.environment)
    try:
        fresh.wait_dag("one")
        fresh.wait(lambda: [run["state"] for run in fresh.json("dags", "list-runs", "one")] == ["success"], "the run has ended")
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0
    assert f"pid={pid_file.read_text().strip()}" in (fresh.home / "log").read_text()
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    fresh.wait(lambda: not pid_file.exists(), "the worker host has ended")


@pytest.mark.spec("S89")
@pytest.mark.usefixtures("tasks_may_finish")
def test_tasks_of_a_service_in_the_background_have_default_signals(fresh: Standalone) -> None:
    """A shell without job control ignores INT and QUIT in what it starts with `&`."""
    fresh.write_dag("one.py", RUNS_AT_ONCE.format(name="one"))
    command = " ".join([*fresh.command, "scheduler", "-n", "1"])
    subprocess.run(["sh", "-c", f"{command} & wait $!"], env=fresh.environment, check=True, timeout=60)
    assert [run["state"] for run in fresh.json("dags", "list-runs", "one")] == ["success"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("worker-host", "-n", "5"), "--run-duration"),
        (("scheduler", "-n", "0"), "at least 1"),
        (("scheduler", "-n", "1", "--no-dag-processor"), "--no-dag-processor"),
        (("scheduler", "--run-duration", "0"), "0"),
        (("scheduler", "-S", "/no/such/folder"), "does not exist"),
        (("worker-host", "-S", "/tmp"), "-S"),
    ],
)
def test_options_without_meaning_are_refused(fresh: Standalone, words: tuple[str, ...], hint: str) -> None:
    done = fresh.run(*words)
    assert (done.returncode, hint in done.stderr) == (2, True)


def test_a_daemon_that_ends_at_once_prints_its_error(fresh: Standalone, tmp_path: Path) -> None:
    (fresh.home / "tradewind.db").write_bytes(b"this is no database" * 100)
    done = fresh.run("scheduler", "-D")
    assert done.returncode == 1
    assert "ended at once" in done.stderr
    assert "tradewind.db" in done.stderr
