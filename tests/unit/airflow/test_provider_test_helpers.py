"""What the helpers of provider packages' own tests need: settings by name, default connections, loggers, lineage."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import tradewind.airflow  # noqa: F401  serves the namespace
from tradewind import DAG, Param, TaskGroup
from tradewind.execution import local_database
from tradewind.execution.context import DagRun, TaskInstance
from tradewind.hooks.http import HttpHook
from tradewind.model.errors import NotYetSupported
from tradewind.operators.empty import EmptyOperator
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.variables import BaseHook, Connection
from tradewind.triggers.temporal import DateTimeTrigger
from tradewind.wire import runtime
from tradewind.wire.messages import Value

from airflow import models, settings  # isort: skip
from airflow.cli.commands.daemon_utils import run_command_with_daemon_option  # isort: skip
from airflow.configuration import conf  # isort: skip
from airflow.lineage.hook import HookLineageCollector  # isort: skip
from airflow.jobs.triggerer_job_runner import TriggerRunner  # isort: skip
from airflow.models import Trigger  # isort: skip
from airflow.models.dag_version import DagVersion  # isort: skip
from airflow.observability.metrics.stats_utils import get_stats_factory  # isort: skip
from airflow.sdk.api.datamodels import _generated as datamodels  # isort: skip
from airflow.sdk.execution_time import task_runner  # isort: skip
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance  # isort: skip
from airflow.serialization.serialized_objects import BaseSerialization  # isort: skip
from airflow.utils import db  # isort: skip


@pytest.fixture
def database() -> Iterator[None]:
    yield
    local_database.close_database()


def test_a_helper_sets_a_setting_and_takes_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    name = conf._env_var_name("celery.broker", "pool")
    assert name == "AIRFLOW__CELERY_BROKER__POOL"
    monkeypatch.setenv(name, "from the environment")
    assert conf.get("celery.broker", "pool") == "from the environment"
    monkeypatch.delenv(name)
    conf.add_section("celery.broker")
    conf.set("celery.broker", "pool", "solo")
    settings.configure_vars()
    assert conf.get("celery.broker", "pool") == "solo"
    conf.remove_option("celery.broker", "pool")
    assert not conf.has_option("celery.broker", "pool")


@pytest.mark.parametrize(
    ("conn_id", "kind", "host", "port", "extra"),
    [
        ("druid_ingest_default", "druid", "druid-overlord", 8081, {"endpoint": "druid/indexer/v1/task"}),
        ("spark_default", "spark", "yarn", None, {"queue": "root.default"}),
        ("wasb_default", "wasb", None, None, {"sas_token": None}),
    ],
)
def test_a_new_database_has_default_connections(
    database: None, conn_id: str, kind: str, host: str | None, port: int | None, extra: dict[str, Any]
) -> None:
    db.initdb()
    found = Connection.get(conn_id)
    assert (found.conn_type, found.host, found.port, found.extra_dejson) == (kind, host, port, extra)


def test_hooks_log_below_the_logger_of_tasks() -> None:
    class Own(BaseHook):
        pass

    assert Own().log.name == f"airflow.task.hooks.{__name__}.{Own.__qualname__}"
    assert Own(logger_name="mine").log.name == "airflow.task.hooks.mine"
    assert HttpHook().log.name == "tradewind.hooks.HttpHook"


def test_the_collector_keeps_a_hundred_assets_and_refuses_a_name_that_is_too_long() -> None:
    collector = HookLineageCollector()
    for number in range(150):
        collector.add_input_asset(None, uri=f"s3://bucket/{number}")
        collector.add_extra(None, f"key {number}", number + 1)
        collector.add_extra(None, f"other {number}", number + 1)
    found = collector.collected_assets
    assert (len(found.inputs), len(found.outputs), len(found.extra)) == (100, 0, 200)
    with pytest.raises(ValueError, match="cannot exceed 1500"):
        collector.add_output_asset(None, uri="s3://bucket/" + "a" * 2000)


def test_values_of_the_execution_api_are_checked_and_keep_further_fields() -> None:
    run = datamodels.DagRun.model_validate(
        {"dag_id": "d", "run_id": "r", "logical_date": "2026-01-01T00:00:00Z", "run_after": "2026-01-01T00:00:00Z", "new": 1}
    )
    context = datamodels.TIRunContext(dag_run=run, max_tries=2)
    assert context.dag_run.logical_date.year == 2026
    assert context.dag_run.new == 1
    with pytest.raises(ValueError, match="task_id"):
        datamodels.TaskInstance(dag_id="d", run_id="r")


def test_a_test_sets_the_dates_of_a_run_and_of_a_task_instance() -> None:
    run = DagRun()
    run.logical_date = run.data_interval_start = run.run_after = datetime(2026, 1, 2, tzinfo=UTC)
    run.end_date = None
    assert run.logical_date == run.execution_date == datetime(2026, 1, 2, tzinfo=UTC)
    assert run.end_date is None
    with DAG("d", schedule=None):
        ti = TaskInstance(EmptyOperator(task_id="t"))
    ti.start_date, ti.end_date = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, 0, 1, tzinfo=UTC)
    assert ti.duration == 60
    assert str(DagRun.logical_date) != str(DagRun.run_after), "the class has columns for queries"


def test_the_ends_of_a_group_in_a_graph_have_ids() -> None:
    with DAG("d", schedule=None), TaskGroup("outer"), TaskGroup("inner") as group:
        EmptyOperator(task_id="t")
    assert (group.upstream_join_id, group.downstream_join_id) == (
        "outer.inner.upstream_join_id",
        "outer.inner.downstream_join_id",
    )


def test_a_parameter_keeps_its_source() -> None:
    assert Param(1, source="task").serialize()["source"] == "task"
    assert Param(1).serialize()["source"] is None


def constructed(task: EmptyOperator, **fields: Any) -> Any:
    run = datamodels.DagRun(
        dag_id="d",
        run_id="r",
        logical_date=datetime(2026, 1, 2, tzinfo=UTC),
        data_interval_start=datetime(2026, 1, 1, tzinfo=UTC),
        run_type="scheduled",
        conf={"a": 1},
    )
    answer = datamodels.TIRunContext(dag_run=run, task_reschedule_count=2)
    return RuntimeTaskInstance.model_construct(
        task=task, task_id="t", dag_id="d", run_id="r", try_number=3, _ti_context_from_server=answer, **fields
    )


def test_a_runtime_task_instance_is_made_from_the_values_of_the_execution_api(database: None) -> None:
    with DAG("d", schedule=None):
        task = EmptyOperator(task_id="t")
    ti = constructed(task, start_date=datetime(2026, 1, 3, tzinfo=UTC))
    context = ti.get_template_context()
    assert (ti.state, ti.try_number, ti.map_index, ti.start_date.day) == ("running", 3, -1, 3)
    assert (context["ds"], context["dag_run"].run_type, context["dag_run"].conf) == ("2026-01-02", "scheduled", {"a": 1})
    assert context["task_reschedule_count"] == 2
    assert ti._ti_context_from_server.dag_run.run_id == "r"
    assert not isinstance(ti, models.TaskInstance)  # listeners tell a running task from a row of the database by it


def test_the_task_runner_runs_a_task_and_returns_its_error(database: None) -> None:
    error = ValueError("bad value")

    class Fails(EmptyOperator):
        def execute(self, context: Any) -> None:
            raise error

    with DAG("d", schedule=None):
        good, bad = EmptyOperator(task_id="t"), Fails(task_id="f")
    for task, expected in ((good, ("success", None, None)), (bad, ("failed", None, error))):
        ti = constructed(task)
        assert task_runner.run(ti, ti.get_template_context(), None) == expected


def test_a_command_of_a_package_runs_only_in_the_foreground() -> None:
    called: list[str] = []
    run_command_with_daemon_option(args=SimpleNamespace(), process_name="flower", callback=lambda: called.append("run"))
    assert called == ["run"]
    with pytest.raises(NotYetSupported, match="flower cannot be started in the background"):
        run_command_with_daemon_option(args=SimpleNamespace(daemon=True), process_name="flower", callback=lambda: None)


class Copies(BaseOperator):
    def __init__(self, name: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.name = name


def test_a_task_can_be_mapped_before_it_is_added_to_a_dag() -> None:
    mapped = Copies.partial(task_id="copy").expand(name=["a", "b"])
    assert (mapped.get_dag(), mapped.task_type) == (None, "Copies")
    with DAG("d", schedule=None) as dag:
        names = EmptyOperator(task_id="names")
    over_result = Copies.partial(task_id="over").expand(name=names.output)
    dag.add_tasks([mapped, over_result])
    assert sorted(dag.task_ids) == ["copy", "names", "over"]
    assert dag.map_provider_ids == {"names"}


def test_metrics_have_a_factory() -> None:
    stats = get_stats_factory()
    stats.initialize(factory=stats)
    with stats.timer("x"):
        stats.incr("x")


def test_a_dag_has_one_version_in_tests() -> None:
    first = DagVersion.get_latest_version("d", session=None)
    assert (first.dag_id, first.version_number) == ("d", 1)
    assert first.id == DagVersion.get_latest_version("d").id != DagVersion.get_latest_version("other").id
    assert DagVersion.bundle_name.name == "bundle_name", "the class has columns"
    with DAG("d", schedule=None):
        ti = TaskInstance(EmptyOperator(task_id="t"), dag_version_id=first.id)
    assert ti.task_id == "t"


def test_a_task_of_a_deployment_sees_the_latest_version() -> None:
    rows = [{"id": "a", "dag_id": "d", "version_number": number} for number in (1, 3, 2)]
    real: Any = mock.Mock(spec=["ask", "read_spill"])
    real.ask.return_value = Value(0, True, rows)
    with runtime.installed(real):
        assert DagVersion.get_latest_version("d").version_number == 3


def test_a_trigger_is_made_again_from_what_it_serializes() -> None:
    trigger = DateTimeTrigger(moment=datetime(2026, 1, 2, tzinfo=UTC))
    row = Trigger.from_object(trigger)
    arguments = BaseSerialization.deserialize(BaseSerialization.serialize(row.kwargs))
    made = TriggerRunner().get_trigger_by_classpath(row.classpath)(**arguments)
    assert type(made) is DateTimeTrigger
    assert Trigger.from_object(made).kwargs == row.kwargs
    assert Trigger.triggerer_id.name == "triggerer_id", "the class has columns"
