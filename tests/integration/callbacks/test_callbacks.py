"""Callbacks that the task process could not call, and callbacks of runs."""

from __future__ import annotations

import pytest

from tests.chaos.world import until
from tests.integration.callbacks.conftest import Instance


def log_of(instance: Instance, dag: str, run: str) -> str:
    page = instance.world.get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/t/logs/1?full_content=true")
    return "\n".join(str(record["event"]) for record in page["content"])


@pytest.mark.spec("S393", "S390")
def test_the_callback_of_a_killed_task_runs_in_another_process(instance: Instance) -> None:
    run = instance.begin("killed")
    assert instance.ended("killed", run) == "failed"
    (result,) = instance.wait_for_lines("killed")
    assert result["state"] == "failed"
    assert "killed by SIGKILL" in result["exception"]
    assert result["duration"] > 0
    instance.nothing_left()
    until("its log shows what the callback printed", 10, lambda: "called for t" in log_of(instance, "killed", run))
    assert len(instance.lines("killed")) == 1


@pytest.mark.spec("S393", "S389")
def test_a_killed_task_calls_its_retry_callback(instance: Instance) -> None:
    run = instance.begin("killed_retry")
    assert instance.ended("killed_retry", run) == "failed"
    (result,) = instance.wait_for_lines("killed_retry")
    assert (result["state"], result["try_number"]) == ("up_for_retry", 1)


def test_a_failing_task_calls_its_callback_itself_and_once(instance: Instance) -> None:
    assert instance.ended("in_process", instance.begin("in_process")) == "failed"
    (result,) = instance.wait_for_lines("in_process")
    assert result["exception"] == "boom"
    instance.nothing_left()
    assert len(instance.lines("in_process")) == 1


def test_no_callback_is_lost_when_its_process_dies_during_the_call(instance: Instance) -> None:
    """The task has succeeded. Callbacks without confirmation are called in another process at once, not only after a time limit."""
    assert instance.ended("dies_calling", instance.begin("dies_calling")) == "success"
    until("the second callback is called", 20, lambda: any(line.get("second") for line in instance.lines("dies_calling")))
    instance.nothing_left()
    assert {line["exception"] for line in instance.lines("dies_calling") if "exception" in line} == {"None"}


def test_the_callbacks_of_a_run_receive_its_result(instance: Instance) -> None:
    instance.begin("run_failed")
    (result,) = instance.wait_for_lines("run_failed")
    assert (result["reason"], result["run_state"], result["state"]) == ("task_failure", "failed", "failed")
    instance.begin("run_succeeded")
    first, second = instance.wait_for_lines("run_succeeded", 2)
    assert (first["reason"], first["run_state"], first["state"]) == ("success", "success", "success")
    assert first["pid"] != second["pid"]
    instance.begin("run_late")
    (late,) = instance.wait_for_lines("run_late")
    assert (late["reason"], late["run_state"]) == ("timed_out", "failed")
    instance.nothing_left()


def test_a_dag_without_tasks_calls_its_callback(instance: Instance) -> None:
    instance.begin("nothing")
    assert instance.wait_for_lines("nothing")[0]["reason"] == "success"


def test_the_callback_of_a_task_stopped_by_fail_fast_is_called(instance: Instance) -> None:
    run = instance.begin("fails_fast")
    instance.ended("fails_fast", run)
    (result,) = instance.wait_for_lines("fails_fast")
    assert result["exception"] == "quick_one failed and the DAG is fail_fast"


def test_a_callback_can_read_variables(instance: Instance) -> None:
    instance.world.control.call("set_variable", key="greeting", value="hello")
    before = len(instance.lines("run_failed"))
    instance.begin("run_failed")
    assert instance.wait_for_lines("run_failed", before + 1)[-1]["greeting"] == "hello"


def test_a_failing_callback_is_tried_again_then_parked_and_blocks_no_other(instance: Instance) -> None:
    run = instance.begin("breaks")
    instance.ended("breaks", run)
    until("it is parked", 20, lambda: [post["parked"] for post in instance.outbox_items()] == [True])
    assert len(instance.lines("breaks")) == 4  # three tries, and the other callback of the same task
    (post,) = instance.outbox_items()
    assert post["problem"] == "RuntimeError: the pager is away"
    assert post["what"] == "on_failure_callback"
    why = instance.world.control.call("why", dag_id="breaks", task_id="t", run_id=run)
    assert any("RuntimeError: the pager is away" in sentence for sentence in why["callbacks"])
    (instance.notes / "mended").touch()
    instance.world.control.call("retry_callbacks", ids=[post["id"]])
    instance.nothing_left()
    assert len(instance.lines("breaks")) == 5


def test_a_callback_whose_process_is_killed_is_called_again(instance: Instance) -> None:
    instance.begin("lingers")
    (first,) = instance.wait_for_lines("lingers")
    process = next(process for process in instance.world.census() if process.pid == first["pid"])
    process.kill()
    _, second = instance.wait_for_lines("lingers", 2)
    assert second["pid"] != first["pid"]
    (instance.notes / "go_on").touch()
    instance.nothing_left()
    assert [line.get("done") for line in instance.lines("lingers")] == [None, None, True]


def test_no_callback_is_lost_or_called_twice_when_the_scheduler_dies(instance: Instance) -> None:
    (instance.notes / "go_on").unlink(missing_ok=True)
    before = len(instance.lines("lingers"))
    instance.begin("lingers")
    instance.wait_for_lines("lingers", before + 1)
    instance.world.find("scheduler")[0].kill()
    (instance.notes / "go_on").touch()
    instance.wait_for_lines("lingers", before + 2)
    until("the scheduler is back", 30, lambda: instance.world.ping() is not None)
    instance.nothing_left()
    assert [line.get("done") for line in instance.lines("lingers")[before:]] == [None, True]


def test_no_callback_is_lost_when_the_worker_host_dies(instance: Instance) -> None:
    (instance.notes / "go_on").unlink(missing_ok=True)
    before = len(instance.lines("lingers"))
    instance.begin("lingers")
    instance.wait_for_lines("lingers", before + 1)
    instance.world.find("host")[0].kill()
    instance.wait_for_lines("lingers", before + 2)
    (instance.notes / "go_on").touch()
    instance.nothing_left()
    assert [line.get("done") for line in instance.lines("lingers")[before:]] == [None, None, True]
