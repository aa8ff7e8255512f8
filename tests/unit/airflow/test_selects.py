"""Queries with SQLAlchemy's `select`, and queries of several tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import and_, desc, func, or_, select
from sqlalchemy.exc import MultipleResultsFound, NoResultFound

import tradewind.airflow  # noqa: F401 (activates the namespace)
from tests.unit.execution.world import World, installed
from tradewind.model.errors import NotYetSupported
from tradewind.model.moments import SECOND
from tradewind.sdk.columns import Condition

DAYS = [int(datetime(2024, 1, day, tzinfo=UTC).timestamp()) * SECOND for day in (1, 2, 3)]


@pytest.fixture
def world() -> Iterator[World]:
    with installed() as world:
        world.runs = [
            {"run_id": f"r{at + 1}", "run_type": "scheduled", "state": state, "logical_date": day, "start_date": day}
            for at, (day, state) in enumerate(zip(DAYS, ("success", "failed", "running"), strict=True))
        ]
        world.tables = {
            "dag": [
                {
                    "dag_id": "etl",
                    "is_paused": False,
                    "is_active": True,
                    "fileloc": "etl.py",
                    "owners": "data",
                    "tags": ["team"],
                },
                {"dag_id": "old", "is_paused": True, "is_active": False, "fileloc": "old.py", "owners": "", "tags": []},
            ],
            "task_instance": [
                {
                    "dag_id": "etl",
                    "run_id": f"r{run}",
                    "task_id": task,
                    "map_index": -1,
                    "state": state,
                    "started_at": DAYS[run - 1],
                    "ended_at": DAYS[run - 1] + seconds * SECOND,
                }
                for run, task, state, seconds in (
                    (1, "load", "success", 5),
                    (1, "end", "success", 1),
                    (2, "load", "failed", 9),
                    (3, "load", "success", 7),
                )
            ],
            "import_error": [{"bundle_name": "dags", "filename": "bad.py", "stacktrace": "SyntaxError"}],
        }
        yield world


@pytest.fixture
def session(world: World) -> Any:
    from airflow import settings

    return settings.Session()


def test_the_forms_of_a_result(session: Any) -> None:
    from airflow.models import DagRun

    runs = select(DagRun).where(DagRun.dag_id == "etl").order_by(DagRun.execution_date.desc())
    assert [run.run_id for run in session.scalars(runs).all()] == ["r3", "r2", "r1"]
    assert [run.run_id for run in session.execute(runs.limit(2)).scalars()] == ["r3", "r2"]
    assert session.scalars(runs.limit(1).offset(1)).one().run_id == "r2"
    assert [run.run_id for (run,) in session.execute(runs.filter(DagRun.state != "running"))] == ["r2", "r1"]
    columns = session.execute(
        select(DagRun.run_id, DagRun.state.label("how")).where(DagRun.dag_id == "etl").order_by(DagRun.run_id)
    )
    assert columns.keys() == ("run_id", "how")
    first, *_ = columns
    assert (first.run_id, first.how, first[1], tuple(first), first._mapping["how"]) == (
        "r1",
        "success",
        "success",
        ("r1", "success"),
        "success",
    )
    with pytest.raises(AttributeError, match="no column 'state'; it has run_id, how"):
        _ = first.state
    assert session.scalar(select(DagRun.run_id).where(DagRun.dag_id == "etl", DagRun.state == "failed")) == "r2"
    assert session.scalars(select(DagRun).filter_by(dag_id="etl", state="failed")).one().run_id == "r2"
    assert (
        session.execute(select(DagRun.run_id).where(DagRun.dag_id == "etl", DagRun.run_id == "r9")).scalar_one_or_none() is None
    )
    assert session.execute(runs.limit(1)).mappings().all()[0]["DagRun"].run_id == "r3"


def test_one_result_with_sqlalchemys_exceptions(session: Any) -> None:
    from airflow.models import DagRun

    with pytest.raises(NoResultFound):
        session.scalars(select(DagRun).where(DagRun.dag_id == "etl", DagRun.run_id == "r9")).one()
    with pytest.raises(MultipleResultsFound):
        session.query(DagRun).filter(DagRun.dag_id == "etl").one()


def test_conditions_functions_and_groups(session: Any) -> None:
    from airflow.models import DagModel, TaskInstance

    of_dag = TaskInstance.dag_id == "etl"
    assert session.scalar(select(func.count()).select_from(TaskInstance).where(of_dag)) == 4
    assert session.scalar(select(func.count(TaskInstance.task_id.distinct())).where(of_dag)) == 2
    assert session.scalar(select(func.count(sqlalchemy.distinct(TaskInstance.task_id))).where(of_dag)) == 2
    counted = select(TaskInstance.state, func.count(TaskInstance.task_id).label("n")).where(of_dag).group_by(TaskInstance.state)
    assert {row.state: row.n for row in session.execute(counted)} == {"success": 3, "failed": 1}
    assert session.scalar(select(func.avg(TaskInstance.duration)).where(of_dag, TaskInstance.task_id == "load")) == 7.0
    either = or_(TaskInstance.run_id == "r2", and_(TaskInstance.run_id == "r1", TaskInstance.task_id == "end"))
    assert session.scalars(select(TaskInstance.task_id).where(of_dag, either).order_by(desc(TaskInstance.run_id))).all() == [
        "load",
        "end",
    ]
    assert session.scalars(select(DagModel.dag_id).where(DagModel.is_active, ~DagModel.is_paused)).all() == ["etl"]
    assert session.scalars(select(TaskInstance.state).where(of_dag).distinct()).all() == ["success", "failed"]


def test_runs_with_their_task_instances(session: Any) -> None:
    from airflow.models import DagRun, TaskInstance

    pairs = session.query(TaskInstance, DagRun).join(
        DagRun, and_(DagRun.dag_id == TaskInstance.dag_id, DagRun.run_id == TaskInstance.run_id)
    )
    found = pairs.filter(DagRun.dag_id == "etl", TaskInstance.state == "success").order_by(DagRun.execution_date.desc()).all()
    assert [(ti.task_id, run.run_id) for ti, run in found] == [("load", "r3"), ("load", "r1"), ("end", "r1")]
    ran = session.query(TaskInstance).join(TaskInstance.dag_run).filter(DagRun.dag_id == "etl", DagRun.state == "failed")
    assert [(ti.task_id, ti.run_id) for ti in ran] == [("load", "r2")]
    chosen = (
        select(TaskInstance.task_id, DagRun.state).join(DagRun).where(DagRun.dag_id == "etl", TaskInstance.task_id == "end")
    )
    assert session.execute(chosen).all() == [("end", "success")]
    linked = session.query(DagRun.run_id, TaskInstance.duration).filter(
        TaskInstance.dag_id == DagRun.dag_id, TaskInstance.run_id == DagRun.run_id, DagRun.dag_id == "etl"
    )
    assert sorted(linked.all()) == [("r1", 1.0), ("r1", 5.0), ("r2", 9.0), ("r3", 7.0)]
    outer = session.query(DagRun.run_id, TaskInstance.task_id).outerjoin(
        TaskInstance,
        and_(TaskInstance.run_id == DagRun.run_id, TaskInstance.dag_id == DagRun.dag_id, TaskInstance.task_id == "end"),
    )
    assert sorted(outer.filter(DagRun.dag_id == "etl"), key=str) == [("r1", "end"), ("r2", None), ("r3", None)]
    assert session.query(session.query(DagRun).filter(DagRun.dag_id == "etl").exists()).scalar() is True


def test_two_tables_that_nothing_links_are_refused(session: Any) -> None:
    from airflow.models import DagRun, Variable

    with pytest.raises(NotYetSupported, match="without a condition that links"):
        session.query(DagRun, Variable).filter(DagRun.dag_id == "etl").all()


def test_dags_with_owners_and_tags_and_import_errors(session: Any) -> None:
    from airflow.models import DagModel, DagTag
    from airflow.models.errors import ImportError as FileError

    assert session.get(DagModel, "etl").owners == "data"
    assert [tag.dag_id for tag in session.query(DagTag).filter(DagTag.name == "team")] == ["etl"]
    assert session.scalars(select(DagModel.dag_id).where(DagModel.tags.any(DagTag.name == "team"))).all() == ["etl"]
    assert session.query(DagModel).join(DagTag).filter(DagTag.name == "team").count() == 1
    assert [(one.filename, one.stacktrace) for one in session.scalars(select(FileError))] == [("bad.py", "SyntaxError")]


def test_statements_that_change_rows_and_text_are_refused(session: Any) -> None:
    from airflow.models import DagRun, TaskInstance, XCom

    assert session.execute(sqlalchemy.delete(XCom).where(XCom.dag_id == "etl")).all() == [], "XComs go with their run"
    for statement in (
        sqlalchemy.update(TaskInstance).where(TaskInstance.dag_id == "etl").values(state="success"),
        sqlalchemy.delete(DagRun).where(DagRun.dag_id == "etl"),
        sqlalchemy.text("SELECT 1"),
        "SELECT 1",
        select(func.count(DagRun.run_id)).group_by(DagRun.state).having(func.count() > 1),
    ):
        with pytest.raises(NotYetSupported, match="REST API"):
            session.execute(statement)


def test_conditions_narrow_what_is_requested(world: World, session: Any) -> None:
    from airflow.models import DagRun, TaskInstance

    condition: Condition = (DagRun.dag_id == "etl") & (TaskInstance.state == "failed")
    assert condition.equal_of(DagRun) == {"dag_id": frozenset({"etl"})}
    assert condition.equal_of(TaskInstance) == {"state": frozenset({"failed"})}
