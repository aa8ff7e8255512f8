"""Queries of failed tries, versions, assets and their events in a DAG run in this process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy

import tradewind.airflow  # noqa: F401  Airflow's names
from tradewind import DAG, Asset, TriggerRule, task
from tradewind.model.errors import NotYetSupported
from tradewind.testing import run_dag


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the defaults."""
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))


def ask(function: Any) -> Any:
    """What a function returns in a task, after a task that fails and one that has an asset."""
    with DAG("d", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC), default_args={"retries": 1}) as dag:

        @task(task_id="fails")
        def fails() -> None:
            raise ValueError("no")

        @task(task_id="makes", outlets=[Asset("orders", uri="s3://bucket/orders")])
        def makes() -> None: ...

        [fails(), makes()] >> task(task_id="asks", trigger_rule=TriggerRule.ALL_DONE)(function)()
    run = run_dag(dag)
    assert run.tasks["asks"].state.value == "success", run.tasks["asks"].reason
    return run.tasks["asks"].xcom_pull()


def test_failed_tries() -> None:
    def tries() -> list[Any]:
        from airflow.models import TaskFail
        from airflow.utils.session import create_session

        with create_session() as session:
            found = session.query(TaskFail).filter(TaskFail.dag_id == "d", TaskFail.duration < 60).all()
            return [(one.dag_id, one.task_id, one.end_date >= one.start_date) for one in found]

    assert ask(tries) == [("d", "fails", True), ("d", "fails", True)]


def test_assets_and_their_events_under_both_names() -> None:
    def assets() -> list[Any]:
        from airflow.models.asset import AssetEvent, AssetModel
        from airflow.models.dataset import DatasetModel
        from airflow.settings import Session

        events = Session.scalars(sqlalchemy.select(AssetEvent).where(AssetEvent.source_task_id == "makes")).all()
        models = Session.query(AssetModel.name, AssetModel.uri).all()
        return [
            list(models[0]),
            len(events),
            events[0].timestamp > datetime(2024, 1, 1, tzinfo=UTC),
            DatasetModel is AssetModel,
        ]

    assert ask(assets) == [["orders", "s3://bucket/orders"], 1, True, True]


def test_versions_warnings_services_and_the_audit_log() -> None:
    def others() -> list[Any]:
        from airflow.jobs.base_job import BaseJob
        from airflow.models import Log, SlaMiss
        from airflow.models.dag_version import DagVersion
        from airflow.models.dagwarning import DagWarning
        from airflow.models.trigger import Trigger
        from airflow.settings import Session

        counts = [Session.query(table).count() for table in (BaseJob, SlaMiss, DagWarning, Trigger)]
        version = Session.query(DagVersion).filter_by(dag_id="d").one()
        return [counts, version.version_number, Session.query(Log).filter(Log.event == "none").count()]

    assert ask(others) == [[0, 0, 0, 0], 1, 0]


def test_loading_options_of_sqlalchemy_have_no_effect() -> None:
    def loaded() -> list[Any]:
        from airflow.models import DagRun, TaskInstance
        from airflow.settings import Session
        from sqlalchemy.orm import joinedload, load_only

        query = Session.query(DagRun).options(load_only(DagRun.execution_date, DagRun.run_id)).filter(DagRun.dag_id == "d")
        found = Session.scalars(
            sqlalchemy.select(TaskInstance)
            .options(joinedload(TaskInstance.dag_run).joinedload(DagRun.dag_model))
            .where(TaskInstance.dag_id == "d", TaskInstance.task_id == "makes")
        )
        return [query.count(), found.one().state]

    assert ask(loaded) == [1, "success"]


def test_loading_options_of_other_tables_are_those_of_sqlalchemy() -> None:
    from sqlalchemy.orm import Load, declarative_base, load_only

    base: Any = declarative_base()
    rows: Any = type("Rows", (base,), {"__tablename__": "rows", "id": sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)})
    assert isinstance(load_only(rows.id), Load)


def test_a_table_that_cannot_be_read_says_where_its_data_are() -> None:
    def refused() -> str:
        from airflow.models import TaskReschedule
        from airflow.settings import Session

        with pytest.raises(NotYetSupported) as caught:
            Session.query(TaskReschedule).all()
        return str(caught.value)

    sentence = ask(refused)
    assert "the table TaskReschedule of Airflow's metadata database cannot be read here" in sentence
    assert "has the state up_for_reschedule. Queries can read XCom, AssetEvent, AssetModel, Connection" in sentence
