"""Task instances and runs that are not the running ones, as callbacks and tasks read them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.execution.world import DAY, World, installed, workload
from tradewind.execution.context import build_context
from tradewind.execution.older_instance_methods import OlderInstanceMethods
from tradewind.execution.task_instance import DagRun, TaskInstance
from tradewind.model.errors import NotYetSupported
from tradewind.model.moments import SECOND, parse_moment
from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator
from tradewind.wire.messages import ListRows

START = parse_moment(DAY)

ATTRIBUTES = (
    "task_id",
    "dag_id",
    "run_id",
    "map_index",
    "start_date",
    "end_date",
    "duration",
    "state",
    "try_number",
    "max_tries",
    "hostname",
    "unixname",
    "job_id",
    "pool",
    "pool_slots",
    "queue",
    "priority_weight",
    "operator",
    "custom_operator_name",
    "queued_dttm",
    "queued_by_job_id",
    "pid",
    "executor",
    "executor_config",
    "updated_at",
    "rendered_map_index",
    "external_executor_id",
    "trigger_id",
    "trigger_timeout",
    "next_method",
    "next_kwargs",
    "task_display_name",
    "dag_version_id",
    "prev_attempted_tries",
    "next_try_number",
    "key",
    "is_premature",
    "log_url",
    "mark_success_url",
    "execution_date",
    "logical_date",
    "note",
    "operator_name",
    "run_as_user",
    "dag_model",
    "triggerer_job",
    "previous_ti",
    "previous_ti_success",
    "previous_start_date_success",
    "stats_tags",
    "context_carrier",
    "bundle_instance",
    "sentry_integration",
    "is_mapped",
    "run_after",
    "scheduled_dttm",
)


def row(task_id: str, state: str | None, index: int = -1, **more: Any) -> dict[str, Any]:
    return {"run_id": "r1", "task_id": task_id, "map_index": index, "state": state, **more}


@pytest.fixture
def world() -> Iterator[World]:
    with installed() as found:
        found.tables["task_instance"] = [
            row(
                "load",
                "failed",
                try_number=2,
                max_tries=1,
                started_at=START,
                ended_at=START + 3 * SECOND,
                queued_at=START - SECOND,
                hostname="vm-1",
                operator="BashOperator",
                pool="small",
            ),
            row("t", "running", try_number=1, started_at=START),
            row("double", "success", 0),
            row("double", "failed", 1, map_label="two"),
        ]
        yield found


@pytest.fixture
def ti(world: World) -> TaskInstance:
    with DAG("d", schedule="@daily") as dag:
        task = BaseOperator("t", retries=2)
        load = BaseOperator("load", owner="data")
        task >> load >> BaseOperator("double")
    found: TaskInstance = build_context(dag.get_task("t"), workload())["ti"]
    return found


def test_a_report_about_the_tasks_of_a_run(ti: TaskInstance) -> None:
    load = ti.dag_run.get_task_instance("load")
    assert load is not None
    assert (load.try_number, load.max_tries, load.prev_attempted_tries, load.duration) == (2, 1, 2, 3.0)
    assert (load.hostname, load.operator, load.pool, load.state) == ("vm-1", "BashOperator", "small", "failed")
    assert (load.start_date.isoformat(), load.queued_dttm < load.start_date < load.end_date) == (  # type: ignore[union-attr, operator]
        "2024-03-05T00:00:00+00:00",
        True,
    )
    assert load.execution_date == ti.execution_date
    assert (load.task.owner, load.dag_run, load.key.try_number) == ("data", ti.dag_run, 2)
    assert load.log_url.endswith("/dags/d/runs/r1/tasks/load?try_number=2")
    still = ti.dag_run.get_task_instance("t")
    assert still is not None
    assert (still.end_date, still.duration) == (None, None)


def test_instances_of_a_mapped_task(ti: TaskInstance) -> None:
    found = [one for one in ti.dag_run.get_task_instances() if one.task_id == "double"]
    assert [(one.map_index, one.state, one.rendered_map_index) for one in found] == [(0, "success", "0"), (1, "failed", "two")]
    assert "/tasks/double/mapped/1" in found[1].log_url
    failed = ti.dag_run.get_task_instances(state=["failed"])
    assert [(one.task_id, one.map_index) for one in failed] == [("load", -1), ("double", 1)]


def test_only_the_wanted_tasks_are_requested(world: World, ti: TaskInstance) -> None:
    ti.dag_run.get_task_instance("double", map_index=1)
    assert world.questions == [ListRows(0, "task_instance", "d", ("r1",), ("double",))]


def test_the_xcoms_of_another_task_instance(world: World, ti: TaskInstance) -> None:
    world.xcoms["load", "return_value", -1] = {"rows": 3}
    world.xcoms["load", "k", -1] = 5
    load = ti.dag_run.get_task_instance("load")
    assert load is not None
    assert load.xcom_pull() == {"rows": 3}
    assert load.xcom_pull(task_ids="load", key="k") == 5
    assert load.xcom_pull(task_ids=["load", "t"], key="k", default=0) == [5, 0]


def test_a_change_is_refused_and_an_unknown_name_has_the_nearest(ti: TaskInstance) -> None:
    load = ti.dag_run.get_task_instances()[0]
    with pytest.raises(NotYetSupported, match=r"cannot be changed.*REST API"):
        load.state = "success"
    with pytest.raises(NotYetSupported, match=r"cannot be changed.*command line"):
        load.set_state("success")
    with pytest.raises(AttributeError, match=r"'end_dat'.*end_date"):
        _ = load.end_dat
    load.task = ti.task  # as code does before it renders templates
    assert load.task is ti.task


def test_a_run_knows_its_duration_and_refuses_the_work_of_the_scheduler(ti: TaskInstance) -> None:
    run = DagRun(dag_id="d", run_id="r0", dates={"start_date": START, "end_date": START + 90 * SECOND, "queued_at": START})
    assert (run.duration, run.updated_at, run.created_at) == (90.0, run.end_date, run.queued_at)
    assert (run.last_scheduling_decision, run.dag_hash, run.backfill_id) == (None, None, None)
    assert run.model_dump(include={"run_id", "clear_number"}) == {"run_id": "r0", "clear_number": 0}
    with pytest.raises(NotYetSupported, match=r"DagRun.update_state\(\) .*tradewind tasks clear"):
        run.update_state()
    with pytest.raises(AttributeError, match=r"'logical_dat'.*logical_date"):
        _ = run.logical_dat


def test_other_runs_of_the_dag(world: World, ti: TaskInstance) -> None:
    day = 86_400 * SECOND
    world.runs = [
        {"run_id": "r_1", "run_type": "scheduled", "state": "failed", "logical_date": START - 2 * day, "id": 7, "note": "n"},
        {"run_id": "r0", "run_type": "scheduled", "state": "success", "logical_date": START - day},
    ]
    found = ti.dag_run.get_previous_scheduled_dagrun()
    assert found is not None
    assert found.run_id == "r0"
    duplicate = DagRun.find_duplicate("d", "r_1")
    assert duplicate is not None
    assert (duplicate.id, duplicate.note) == (7, "n")
    on_date = DagRun.get_run("d", found.logical_date)
    assert on_date is not None
    assert on_date.run_id == "r0"


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_running_task_instance_has_the_attributes_of_all_generations(ti: TaskInstance, name: str) -> None:
    getattr(ti, name)


def test_names_of_the_operator(ti: TaskInstance) -> None:
    assert (ti.operator, ti.operator_name, ti.pool_slots, ti.stats_tags) == (
        "BaseOperator",
        "BaseOperator",
        1,
        {"dag_id": "d", "task_id": "t"},
    )


def test_methods_of_a_running_task_instance(world: World, ti: TaskInstance) -> None:
    assert not ti.are_dependents_done()
    assert [(one["task_id"], one["duration"]) for one in ti.get_task_breadcrumbs("d", "r1")] == [
        ("double", None),
        ("double", None),
        ("load", 3.0),
    ]
    world.xcoms["load", "return_value", -1] = 4
    assert asyncio.run(ti.axcom_pull(task_ids="load")) == 4
    assert ti.get_dag().dag_id == "d"
    with pytest.raises(NotYetSupported, match="cannot read another DAG"):
        ti.get_dag("other")
    subject, text, without = ti.get_email_subject_content(ValueError("a < b\nsecond"))
    assert subject.startswith("Airflow alert: <TaskInstance: d.t")
    assert "Try 1 out of" in text
    assert "a &lt; b<br>second" in text
    assert "a &lt;" not in without
    with pytest.raises(NotYetSupported, match="raise TaskDeferred"):
        ti.defer_task(None)
    with pytest.raises(AttributeError, match=r"'xcom_pul'.*xcom_pull"):
        _ = ti.xcom_pul


def test_the_traceback_from_a_function_on(ti: TaskInstance) -> None:
    def outer() -> None:
        inner()

    def inner() -> None:
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside") as caught:
        outer()
    trace = OlderInstanceMethods.get_truncated_error_traceback(caught.value, truncate_to=outer)
    assert trace.tb_frame.f_code is inner.__code__
