"""Callbacks that the task process could not call, and callbacks of runs."""

from __future__ import annotations

import pytest

from tests.chaos.world import until
from tests.integration.callbacks.conftest import Told


def log_of(told: Told, dag: str, run: str) -> str:
    page = told.world.get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/t/logs/1?full_content=true")
    return "\n".join(str(record["event"]) for record in page["content"])


@pytest.mark.spec("S393", "S390")
def test_the_callback_of_a_killed_task_runs_in_another_process(told: Told) -> None:
    run = told.begin("killed")
    assert told.ended("killed", run) == "failed"
    (result,) = told.heard("killed")
    assert result["state"] == "failed"
    assert "killed by SIGKILL" in result["exception"]
    assert result["duration"] > 0
    told.nothing_left()
    until("its log shows what the callback printed", 10, lambda: "told of t" in log_of(told, "killed", run))
    assert len(told.lines("killed")) == 1


@pytest.mark.spec("S393", "S389")
def test_a_killed_task_calls_its_retry_callback(told: Told) -> None:
    run = told.begin("killed_retry")
    assert told.ended("killed_retry", run) == "failed"
    (result,) = told.heard("killed_retry")
    assert (result["state"], result["try_number"]) == ("up_for_retry", 1)


def test_a_failing_task_calls_its_callback_itself_and_once(told: Told) -> None:
    assert told.ended("in_process", told.begin("in_process")) == "failed"
    (result,) = told.heard("in_process")
    assert result["exception"] == "boom"
    told.nothing_left()
    assert len(told.lines("in_process")) == 1


def test_no_callback_is_lost_when_its_process_dies_during_the_call(told: Told) -> None:
    """The task has succeeded. Callbacks without confirmation are called in another process at once, not only after a time limit."""
    assert told.ended("dies_calling", told.begin("dies_calling")) == "success"
    until("the second callback is called", 20, lambda: any(line.get("second") for line in told.lines("dies_calling")))
    told.nothing_left()
    assert {line["exception"] for line in told.lines("dies_calling") if "exception" in line} == {"None"}


def test_the_callbacks_of_a_run_receive_its_result(told: Told) -> None:
    told.begin("run_failed")
    (result,) = told.heard("run_failed")
    assert (result["reason"], result["run_state"], result["state"]) == ("task_failure", "failed", "failed")
    told.begin("run_succeeded")
    first, second = told.heard("run_succeeded", 2)
    assert (first["reason"], first["run_state"], first["state"]) == ("success", "success", "success")
    assert first["pid"] != second["pid"]
    told.begin("run_late")
    (late,) = told.heard("run_late")
    assert (late["reason"], late["run_state"]) == ("timed_out", "failed")
    told.nothing_left()


def test_a_dag_without_tasks_calls_its_callback(told: Told) -> None:
    told.begin("nothing")
    assert told.heard("nothing")[0]["reason"] == "success"


def test_the_callback_of_a_task_stopped_by_fail_fast_is_called(told: Told) -> None:
    run = told.begin("fails_fast")
    told.ended("fails_fast", run)
    (result,) = told.heard("fails_fast")
    assert result["exception"] == "quick_one failed and the DAG is fail_fast"


def test_a_callback_can_read_variables(told: Told) -> None:
    told.world.control.call("set_variable", key="greeting", value="hello")
    before = len(told.lines("run_failed"))
    told.begin("run_failed")
    assert told.heard("run_failed", before + 1)[-1]["greeting"] == "hello"


def test_a_failing_callback_is_tried_again_then_parked_and_blocks_no_other(told: Told) -> None:
    run = told.begin("breaks")
    told.ended("breaks", run)
    until("it is parked", 20, lambda: [post["parked"] for post in told.outbox_items()] == [True])
    assert len(told.lines("breaks")) == 4  # three tries, and the other callback of the same task
    (post,) = told.outbox_items()
    assert post["problem"] == "RuntimeError: the pager is away"
    assert post["what"] == "on_failure_callback"
    why = told.world.control.call("why", dag_id="breaks", task_id="t", run_id=run)
    assert any("RuntimeError: the pager is away" in sentence for sentence in why["callbacks"])
    (told.notes / "mended").touch()
    told.world.control.call("retry_callbacks", ids=[post["id"]])
    told.nothing_left()
    assert len(told.lines("breaks")) == 5


def test_a_callback_whose_process_is_killed_is_called_again(told: Told) -> None:
    told.begin("lingers")
    (first,) = told.heard("lingers")
    process = next(process for process in told.world.census() if process.pid == first["pid"])
    process.kill()
    _, second = told.heard("lingers", 2)
    assert second["pid"] != first["pid"]
    (told.notes / "go_on").touch()
    told.nothing_left()
    assert [line.get("done") for line in told.lines("lingers")] == [None, None, True]


def test_no_callback_is_lost_or_called_twice_when_the_scheduler_dies(told: Told) -> None:
    (told.notes / "go_on").unlink(missing_ok=True)
    before = len(told.lines("lingers"))
    told.begin("lingers")
    told.heard("lingers", before + 1)
    told.world.find("scheduler")[0].kill()
    (told.notes / "go_on").touch()
    told.heard("lingers", before + 2)
    until("the scheduler is back", 30, lambda: told.world.ping() is not None)
    told.nothing_left()
    assert [line.get("done") for line in told.lines("lingers")[before:]] == [None, True]


def test_no_callback_is_lost_when_the_worker_host_dies(told: Told) -> None:
    (told.notes / "go_on").unlink(missing_ok=True)
    before = len(told.lines("lingers"))
    told.begin("lingers")
    told.heard("lingers", before + 1)
    told.world.find("host")[0].kill()
    told.heard("lingers", before + 2)
    (told.notes / "go_on").touch()
    told.nothing_left()
    assert [line.get("done") for line in told.lines("lingers")[before:]] == [None, None, True]
