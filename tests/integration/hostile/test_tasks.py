"""Misbehaving tasks: their errors, and other tasks that still work (`Hostile.run` runs a harmless task after each)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.world import began, until
from tests.integration.hostile.conftest import Hostile


def gone(pid: str) -> None:
    until(f"process {pid} is gone", 5, lambda: began(int(pid)) is None)


def resident(pid: int) -> int:
    """Maximum memory of a process in kilobytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def test_xcom_that_cannot_be_stored(hostile: Hostile) -> None:
    ended = hostile.run("lambda_xcom", "return_value")
    assert ended.state == "failed"
    assert "return_value" in ended.reason
    assert "function" in ended.reason


def test_xcom_of_100_mb(hostile: Hostile) -> None:
    ended = hostile.run("huge_xcom", "core.xcom_max_bytes")
    assert ended.state == "failed"
    assert "100 MB, more than the limit of 67.11 MB" in ended.reason


@pytest.mark.parametrize(
    "dag",
    [
        pytest.param("ignores_term", marks=pytest.mark.spec("S83", "S378")),
        pytest.param("blocks_term", marks=pytest.mark.spec("S84")),
        "stopped",
    ],
)
def test_task_that_ignores_sigterm(hostile: Hostile, dag: str) -> None:
    ended = hostile.run(dag, "The task is stopped: it ran longer than its execution_timeout")
    assert ended.state == "failed"
    assert "it ran longer than its execution_timeout of 0.3 s" in ended.reason
    if dag == "ignores_term":
        assert (hostile.notes / "on_kill").exists()
        assert "ignoring AirflowTaskTimeout" in ended.text


@pytest.mark.parametrize(
    ("dag", "state", "tries", "reason"),
    [
        ("returns_at_its_limit", "success", 1, ""),
        ("skips_at_its_limit", "skipped", 1, "enough is done"),
        ("gives_up_at_its_limit", "failed", 1, "no use to try again"),
        ("breaks_at_its_limit", "failed", 2, "it ran longer than its execution_timeout of 0.3 s"),
    ],
)
def test_a_task_can_catch_its_time_limit(hostile: Hostile, dag: str, state: str, tries: int, reason: str) -> None:
    """The task may catch AirflowTaskTimeout, as in Airflow, and its result counts."""
    ended = hostile.run(dag, "The task is stopped: it ran longer than its execution_timeout")
    assert ended.state == state
    assert reason in ended.reason
    (run,) = hostile.world.get(f"/api/v2/dags/{dag}/dagRuns")["dag_runs"]
    (row,) = hostile.world.get(f"/api/v2/dags/{dag}/dagRuns/{run['dag_run_id']}/taskInstances")["task_instances"]
    assert row["try_number"] == tries
    assert "AirflowTaskTimeout: it ran longer than its execution_timeout of 0.3 s" in ended.text


@pytest.mark.spec("S90", "S379", "S467")
@pytest.mark.parametrize("dag", ["double_forks", "setsid_child"])
def test_daemon_of_a_task_is_killed_after_the_task(hostile: Hostile, dag: str) -> None:
    assert hostile.run(dag).state == "success"
    gone(hostile.noted(dag))


def test_task_without_memory(hostile: Hostile) -> None:
    ended = hostile.run("out_of_memory", "MemoryError")
    assert ended.state == "failed"
    assert "MemoryError" in ended.reason


def test_task_that_prints_a_gigabyte(hostile: Hostile) -> None:
    host = hostile.world.find("host")[0]
    before = resident(host.pid)
    ended = hostile.run("prints_much", "the very last line", seconds=100)
    assert ended.state == "success"
    assert resident(host.pid) - before < 20_000
    (path,) = (hostile.world.home / "logs" / "prints_much").rglob("*.log")
    assert path.stat().st_size < 300_000
    assert "line 000000" in ended.log[0]["event"]
    assert "bytes of output are left out here" in ended.text
    assert [record["event"] for record in ended.log[-2:]] == ["the very last line", "Marking task as SUCCESS."]


def test_output_that_is_not_text(hostile: Hostile) -> None:
    ended = hostile.run("invalid_utf8", "after")
    assert ended.state == "success"
    assert ended.log[0]["event"] == "before \\xff\\xfe\x00 \x1b[31m after"


def test_line_without_an_end(hostile: Hostile) -> None:
    ended = hostile.run("long_line", "more bytes")
    assert ended.state == "success"
    line = ended.log[0]["event"]
    assert line.startswith("yyyy")
    assert line.endswith("… (990000 more bytes in this line)")


@pytest.mark.spec("S380")
@pytest.mark.parametrize(
    ("dag", "reason"),
    [
        ("exits", "the task called sys.exit('enough'); any exit code fails a task, use return instead"),
        ("exits_at_once", "the task's process ended with exit code 0 and without a result"),
        ("segfaults", "the task's process was killed by SIGSEGV"),
        ("aborts", "the task's process was killed by SIGABRT"),
        ("kills_its_group", "the task's process was killed by SIGKILL"),
        ("closes_descriptors", "the task's process ended with exit code 1 and without a result"),
    ],
)
def test_process_that_ends_itself(hostile: Hostile, dag: str, reason: str) -> None:
    ended = hostile.run(dag)
    assert ended.state == "failed"
    assert reason in ended.reason


def test_task_that_closes_its_output(hostile: Hostile) -> None:
    assert hostile.run("closes_output").state == "success"


def test_task_that_writes_nonsense_to_its_host(hostile: Hostile) -> None:
    ended = hostile.run("forges")
    assert ended.state == "failed"
    assert "its connection to the worker host broke: a frame of" in ended.reason


def test_task_that_kills_its_template(hostile: Hostile) -> None:
    """The task continues as a child of the worker host, which receives its report."""
    ended = hostile.run("kills_template", "adopted")
    assert ended.state == "success"


@pytest.mark.parametrize("dag", ["leaves_thread", "exit_function_hangs"])
def test_process_that_continues_after_its_report(hostile: Hostile, dag: str) -> None:
    assert hostile.run(dag, "The task is stopped: it went on after its result").state == "success"
    gone(hostile.noted(dag))


def test_file_that_raises_only_where_tasks_run(hostile: Hostile) -> None:
    ended = hostile.run("breaks_in_worker", "line 12, in <module>")
    assert ended.state == "failed"
    assert "breaks_in_worker.py cannot be imported: RuntimeError: the warehouse driver is not installed here" in ended.reason


def test_file_that_ends_the_process_only_where_tasks_run(hostile: Hostile) -> None:
    ended = hostile.run("dies_in_worker")
    assert ended.state == "failed"
    assert "the task's process ended with exit code 7 and without a result" in ended.reason


def test_pool_that_does_not_exist(hostile: Hostile) -> None:
    run = hostile.begin("unknown_pool")

    def pool_is_named() -> bool:
        return any("There is no pool 'no_such_pool'" in sentence for sentence in hostile.why("unknown_pool", run))

    until("why names the pool", 10, pool_is_named)
    hostile.still_works()
    hostile.world.control.call("set_pool", name="no_such_pool", slots=1)
    assert hostile.end("unknown_pool", run).state == "success"


def test_schedule_that_cannot_be_read(hostile: Hostile) -> None:
    errors = hostile.world.get("/api/v2/importErrors")["import_errors"]
    (problem,) = [one for one in errors if one["filename"].endswith("invalid_cron.py")]
    assert "61 * * * *" in problem["stack_trace"]
    hostile.still_works()


@pytest.mark.spec("S500")
def test_no_process_of_these_tasks_is_left(hostile: Hostile) -> None:
    """The last test of the module: no task process is left, no orphan, and the host has no more open files than at its start."""
    until("all runners have ended", 10, lambda: not hostile.world.find("runner"))
    names = {process.name for process in hostile.world.census()}
    assert names <= {"tw-supervisor", "tw-scheduler", "tw-host", "tw-image", "tw-template", "tw-api", "tw-parser", "tw-zygote"}
    host = hostile.world.find("host")[0]
    assert len(os.listdir(f"/proc/{host.pid}/fd")) < 40


def test_callback_that_never_returns(hostile: Hostile) -> None:
    """The callback can still read variables, and it is stopped after the time limit for the end of a process."""
    ended = hostile.run("callback_hangs", "it went on after its result")
    assert ended.state == "success"
    assert "called back: success" in ended.text
    assert hostile.noted("callback") == "the scheduler answers"


def test_callback_that_fails(hostile: Hostile) -> None:
    """Errors have the level ERROR in the log, also if they are longer than the maximum line."""
    ended = hostile.run("callback_raises", "cannot tell of deep")
    assert ended.state == "failed"
    levels = {str(record["level"]) for record in ended.log if "Traceback" in str(record["event"])}
    assert levels == {"error"}
    assert not [record for record in ended.log if str(record["event"]).startswith("{")]
