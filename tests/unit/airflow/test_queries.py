"""`settings.Session()`: queries that DAG files for Airflow 1 and 2 run, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

import tradewind.airflow  # noqa: F401  Airflow's names
from tests.unit.execution.world import World, carry_out, installed
from tradewind.airflow.compat.queries import MultipleResultsFound, NoResultFound
from tradewind.model.errors import NotYetSupported
from tradewind.model.states import Outcome
from tradewind.sdk import variables
from tradewind.sdk.dag import DAG
from tradewind.sdk.open_dags import collecting
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.variables import Variable
from tradewind.wire.messages import FindRuns, GetConnection

DAYS = [datetime(2024, 3, day, tzinfo=UTC) for day in (1, 2, 3)]


def run(number: int, state: str) -> dict[str, Any]:
    return {
        "run_id": f"r{number}",
        "logical_date": int(DAYS[number - 1].timestamp() * 1_000_000),
        "run_type": "scheduled",
        "state": state,
        "conf": {},
    }


def instance(run_id: str, task_id: str, state: str) -> dict[str, Any]:
    row = {"dag_id": "etl", "task_id": task_id, "run_id": run_id, "map_index": -1, "state": state, "logical_date": None}
    return {**row, "pool": "default_pool", "queue": "default", "operator": "BashOperator"}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(variables, "_of_file", {})
    with installed() as found:
        found.runs = [run(1, "success"), run(2, "failed"), run(3, "success")]
        found.variables = {"bucket": "b", "other": "o"}
        found.connections = {name: {"conn_type": "postgres", "host": f"{name}.example"} for name in ("db_one", "db_two", "web")}
        found.tables = {
            "dag": [
                {"dag_id": "etl", "is_paused": False, "is_active": True, "fileloc": "etl.py"},
                {"dag_id": "old", "is_paused": True, "is_active": True, "fileloc": "old.py"},
            ],
            "variable": [{"key": key, "description": None} for key in found.variables],
            "connection": [{"conn_id": name} for name in found.connections],
            "pool": [{"pool": "default_pool", "slots": 128, "description": "", "include_deferred": False}],
            "task_instance": [
                instance("r2", "load", "failed"),
                instance("r3", "load", "success"),
                instance("r3", "end", "success"),
            ],
        }
        yield found


@pytest.fixture
def session(world: World) -> Any:
    from airflow import settings

    return settings.Session()


def test_the_latest_successful_run(world: World, session: Any) -> None:
    from airflow.models import DagRun
    from airflow.utils.state import State

    latest = (
        session.query(DagRun)
        .filter(DagRun.dag_id == "etl", DagRun.state == State.SUCCESS)
        .order_by(DagRun.execution_date.desc())
        .first()
    )
    assert (latest.run_id, latest.execution_date) == ("r3", DAYS[2])
    assert isinstance(latest, DagRun)
    assert world.questions == [FindRuns(0, "etl", state="success")], "it asks only for these runs"


def test_dates_with_and_without_a_zone(session: Any) -> None:
    from airflow.models import DagRun

    query = session.query(DagRun).filter(DagRun.dag_id == "etl")
    assert [one.run_id for one in query.filter(DagRun.execution_date >= datetime(2024, 3, 2)).all()] == ["r2", "r3"]  # noqa: DTZ001
    assert query.filter(DagRun.execution_date.between(DAYS[0], DAYS[1])).count() == 2
    assert [one.run_id for one in query.filter(DagRun.execution_date == DAYS[1])] == ["r2"]
    assert query.filter(DagRun.end_date.is_(None)).count() == 3
    assert query.filter(DagRun.end_date > DAYS[0]).count() == 0, "NULL is not later"


def test_conditions_combined(session: Any) -> None:
    from airflow.models import DagRun

    query = session.query(DagRun).filter(DagRun.dag_id.in_(["etl"]))
    assert [one.run_id for one in query.filter((DagRun.run_id == "r1") | (DagRun.state == "failed"))] == ["r1", "r2"]
    assert [one.run_id for one in query.filter(~(DagRun.state == "success"))] == ["r2"]
    assert [one.run_id for one in query.filter(DagRun.run_id.like("r_"), DagRun.run_id.notin_(["r1"]))] == ["r2", "r3"]
    assert query.filter(DagRun.state != "failed").limit(1).offset(1).one().run_id == "r3"
    with pytest.raises(TypeError, match="no truth value"):
        bool(DagRun.state == "failed")


def test_task_instances_of_a_run(session: Any) -> None:
    from airflow.models import TaskInstance

    found = session.query(TaskInstance).filter_by(dag_id="etl", run_id="r3").order_by(TaskInstance.task_id).all()
    assert [(one.task_id, one.state, one.dag_run.run_id) for one in found] == [
        ("end", "success", "r3"),
        ("load", "success", "r3"),
    ]
    assert session.query(TaskInstance.state).filter(TaskInstance.dag_id == "etl").distinct().all() == [
        ("failed",),
        ("success",),
    ]
    with pytest.raises(NotYetSupported, match=r"TaskInstance\.state cannot be changed"):
        found[0].state = "failed"


def test_xcoms_of_a_task_instance(world: World, session: Any) -> None:
    from airflow.models import TaskInstance, XCom

    world.xcoms["load", "return_value", -1] = {"rows": 3}
    ti = session.query(TaskInstance).filter(TaskInstance.run_id == "r3", TaskInstance.task_id == "load").first()
    assert ti.xcom_pull(task_ids="load") == {"rows": 3}
    assert ti.xcom_pull(task_ids=["load", "end"]) == [{"rows": 3}, None]
    query = session.query(XCom).filter(XCom.dag_id == "etl", XCom.key == "return_value", XCom.run_id == "r3")
    assert [one.value for one in query] == [{"rows": 3}]
    assert session.query(XCom).filter(XCom.dag_id == "etl").delete() == 0, "they go with their run"


def test_many_xcoms_as_a_query_and_as_a_list(world: World, session: Any) -> None:
    """Airflow 2 returns a query, Airflow 1 a list."""
    from airflow.models import XCom

    world.tables["task_instance"] = [
        {**instance(f"r{day + 1}", task, "success"), "logical_date": int(DAYS[day].timestamp() * 1_000_000)}
        for day in (1, 2)
        for task in ("load", "end")
    ]
    world.xcoms["load", "return_value", -1] = {"rows": 3}
    world.xcoms["end", "error", -1] = "too late"
    world.tables["xcom_key"] = [{"run_id": run, "key": key} for run in ("r2", "r3") for key in ("error", "return_value")]
    found = XCom.get_many(dag_ids="etl", key="return_value", task_ids=["load", "end"], run_id="r3")
    assert (len(found), found[0].value, found.first().task_id, found.count()) == (1, {"rows": 3}, "load", 1)
    (error,) = XCom.get_many(execution_date=DAYS[2], dag_ids=["etl"], key="error")
    assert (error.value, error.run_id, error.execution_date) == ("too late", "r3", DAYS[2])
    earlier = XCom.get_many(DAYS[2], dag_ids="etl", task_ids="load", include_prior_dates=True)
    assert [one.run_id for one in earlier] == ["r3", "r2"], "the latest first"
    assert len(XCom.get_many(DAYS[2], dag_ids="etl", task_ids="load", include_prior_dates=True, limit=1)) == 1
    every = {(one.task_id, one.key): one.value for one in XCom.get_many(dag_ids="etl", run_id="r3")}
    assert every == {("load", "return_value"): {"rows": 3}, ("end", "error"): "too late"}, "without a key: all keys"


def test_connections_make_dags(world: World, session: Any) -> None:
    """As files that make one DAG for each connection do."""
    from airflow.models import Connection

    assert session.query(Connection.conn_id).filter(Connection.conn_id.ilike("%DB_%")).all() == [("db_one",), ("db_two",)]
    assert session.query(Connection).filter(Connection.conn_id == "web").one().host == "web.example"
    assert session.query(Connection).filter_by(conn_id="nothing").one_or_none() is None
    assert [one.conn_id for one in world.questions if isinstance(one, GetConnection)][-2:] == ["web", "nothing"]


def test_variables_are_read_and_written(world: World, session: Any) -> None:
    from airflow.models import Variable as Same

    assert Same is Variable
    found = session.query(Variable).filter(Variable.key == "bucket").first()  # type: ignore[misc]  # a column
    assert (found.key, found.val) == ("bucket", "b")
    found.set_val("c")
    session.add(Variable(key="new", val="n"))
    session.delete(session.query(Variable).get("other"))
    session.commit()
    assert world.variables == {"bucket": "c", "new": "n"}


def test_dags_and_pools(session: Any) -> None:
    from airflow.models import DagModel, Pool

    assert [one.dag_id for one in session.query(DagModel).filter(DagModel.is_paused.is_(True))] == ["old"]
    assert session.query(Pool).filter(Pool.pool == "default_pool").first().slots == 128
    with pytest.raises(NotYetSupported, match="cannot be changed"):
        session.query(DagModel).get("old").is_active = False


def test_the_path_of_a_dag_file_is_absolute_in_a_task(world: World) -> None:
    """Maintenance DAGs ask whether the file is still there. Rows have paths relative to the folder of their bundle."""
    seen: dict[str, str] = {}

    class Asks(BaseOperator):
        def execute(self, context: Any) -> None:
            from airflow.models import DagModel
            from airflow.utils.session import create_session

            with create_session() as session:
                seen.update({row.dag_id: row.fileloc for row in session.query(DagModel).all()})

    world.tables["dag"] = [
        {"dag_id": "etl", "is_paused": False, "is_active": True, "bundle": "git", "fileloc": "airflow/test_queries.py"},
        {"dag_id": "old", "is_paused": False, "is_active": True, "bundle": "git", "fileloc": "sub/old.py"},
        {"dag_id": "far", "is_paused": False, "is_active": True, "bundle": "dags", "fileloc": "far.py"},
    ]
    with DAG("etl", schedule=None):
        task = Asks(task_id="t")
    assert carry_out(task).outcome is Outcome.SUCCESS
    folder = Path(__file__).parents[1]
    assert seen == {"etl": __file__, "old": f"{folder}/sub/old.py", "far": "far.py"}


def test_what_is_refused_says_what_to_use(world: World) -> None:
    from airflow.models import DagModel, DagRun, SlaMiss, TaskInstance, TaskReschedule
    from airflow.utils.session import create_session, provide_session

    with create_session() as session:
        refused: list[Callable[[], object]] = [
            lambda: session.query(DagRun, TaskInstance).all(),
            lambda: session.query(DagRun).join("task_instances"),
            lambda: session.query(DagRun.dag_id).union(session.query(TaskInstance.dag_id)),
            lambda: session.query(DagRun).delete(),
            lambda: session.query(DagModel).update({"is_active": True}),
            lambda: session.delete(session.query(DagModel).first()),
            lambda: session.query(DagModel).delete(),
            lambda: session.add(object.__new__(SlaMiss)),
            lambda: session.query(TaskInstance).delete(),
            lambda: session.execute("select 1"),
            lambda: session.execute(sqlalchemy.text("select 1")),
            lambda: session.scalars(sqlalchemy.select(DagRun, TaskInstance)),
            lambda: session.execute(sqlalchemy.select(DagRun.run_id).having(DagRun.run_id == "r1")),
            lambda: session.scalars(sqlalchemy.select(sqlalchemy.literal_column("1"))),
            lambda: session.execute(sqlalchemy.update(DagModel).where(DagModel.dag_id == "etl").values(is_active=True)),
            lambda: session.execute(sqlalchemy.delete(DagRun)),
        ]
        for wrong in refused:
            with pytest.raises(NotYetSupported, match=r"command line .* or the REST API"):
                wrong()
        with pytest.raises(NotYetSupported, match=r"TaskReschedule .* cannot be read here\. Use session.query\(TaskInstance\)"):
            session.query(TaskReschedule).all()

    @provide_session
    def handed(session: Any = None) -> str:
        return type(session).__name__

    assert handed() == "Session"


def test_conditions_of_sqlalchemy(session: Any) -> None:
    from airflow.models import DagRun, TaskInstance

    query = session.query(DagRun).filter(
        sqlalchemy.and_(DagRun.dag_id == "etl", sqlalchemy.or_(DagRun.run_id == "r1", DagRun.state == "failed"))
    )
    assert [one.run_id for one in query.order_by(sqlalchemy.desc(DagRun.execution_date))] == ["r2", "r1"]
    assert session.query(sqlalchemy.func.count(DagRun.id)).filter(DagRun.dag_id == "etl").scalar() == 0, "the ids are unknown"
    counted = session.query(TaskInstance.state, sqlalchemy.func.count()).filter(TaskInstance.dag_id == "etl")
    assert dict(counted.group_by(TaskInstance.state).all()) == {"failed": 1, "success": 2}
    assert session.query(sqlalchemy.func.max(DagRun.execution_date)).filter(DagRun.dag_id == "etl").scalar() == DAYS[2]


def test_statements_of_sqlalchemy(world: World, session: Any) -> None:
    from airflow.models import DagModel, DagRun, TaskInstance

    select = sqlalchemy.select
    of_dag = select(DagRun).where(DagRun.dag_id == "etl", DagRun.state == "success").where(DagRun.run_id != "r9")
    latest = session.scalars(of_dag.order_by(DagRun.execution_date.desc()).limit(1)).one()
    assert (latest.run_id, type(latest)) == ("r3", DagRun)
    assert world.questions == [FindRuns(0, "etl", state="success")], "it asks only for these runs"
    assert [one.run_id for one in session.scalars(of_dag.order_by(DagRun.execution_date).offset(1))] == ["r3"]
    assert session.execute(of_dag.order_by(DagRun.run_id)).first()[0].run_id == "r1"
    assert session.scalar(select(sqlalchemy.func.count()).select_from(DagRun).where(DagRun.dag_id == "etl")) == 3
    assert session.scalar(select(DagRun).where(DagRun.dag_id == "etl", sqlalchemy.false())) is None
    assert session.scalars(select(DagModel.dag_id).filter_by(is_paused=True)).all() == ["old"]
    assert session.execute(select(DagRun.run_id).filter_by(dag_id="etl", state="failed")).scalar_one() == "r2"
    counted = session.execute(
        select(TaskInstance.state.label("of"), sqlalchemy.func.count().label("tasks"))
        .where(TaskInstance.dag_id == "etl")
        .group_by(TaskInstance.state)
    ).all()
    assert [(row.of, row.tasks) for row in counted] == [("failed", 1), ("success", 2)]
    states = select(TaskInstance.state).where(TaskInstance.dag_id == "etl").distinct()
    assert sorted(row.state for row in session.execute(states)) == ["failed", "success"]
    assert session.execute(states).mappings().all()[0] == {"state": "failed"}


def test_dates_are_compared_with_texts_as_in_sql(session: Any) -> None:
    from airflow.models import DagRun

    runs = session.query(DagRun).filter(DagRun.dag_id == "etl")
    found = runs.filter(DagRun.execution_date.between("2024-03-01 12:00:00", "2024-03-02")).all()
    assert [one.run_id for one in found] == ["r2"]
    assert runs.filter(DagRun.execution_date >= "2024-03-02T00:00:00+00:00").count() == 2
    with pytest.raises(ValueError, match="yesterday"):
        runs.filter(DagRun.execution_date >= "yesterday").all()


def test_a_count_without_a_table_counts_the_table_of_its_conditions(session: Any) -> None:
    """Sensors of users count task instances with the query of Airflow's ExternalTaskSensor."""
    from airflow.models import DagRun, TaskInstance

    of_dag = (TaskInstance.dag_id == "etl", TaskInstance.task_id == "load", TaskInstance.state.in_(["success"]))
    assert session.query(sqlalchemy.func.count()).filter(*of_dag).scalar() == 1
    assert session.scalar(sqlalchemy.select(sqlalchemy.func.count()).where(DagRun.dag_id == "etl")) == 3
    with pytest.raises(NotYetSupported, match="without a table"):
        session.query(sqlalchemy.func.count()).scalar()


def test_results_are_read_once(session: Any) -> None:
    from airflow.models import DagRun

    runs = sqlalchemy.select(DagRun.state).where(DagRun.dag_id == "etl").order_by(DagRun.run_id)
    found = session.scalars(runs)
    assert (found.first(), found.all(), found.all()) == ("success", ["failed", "success"], [])
    assert session.scalars(runs).unique().all() == ["success", "failed"]
    with pytest.raises(MultipleResultsFound, match="3 results"):
        session.scalars(runs).one_or_none()
    with pytest.raises(NoResultFound, match="no results"):
        session.execute(runs.where(DagRun.run_id == "r9")).scalar_one()
    assert session.execute(runs.where(DagRun.run_id == "r9")).scalar_one_or_none() is None


def test_a_connection_added_or_deleted_at_the_top_level_gives_a_warning(session: Any) -> None:
    from airflow.models import Connection

    with (
        collecting(),
        pytest.warns(UserWarning, match="'warehouse' is added at the top level .*connections add warehouse"),
    ):
        session.add(Connection("warehouse", "postgres"))
    with collecting(), pytest.warns(UserWarning, match="'warehouse' is deleted at the top level"):
        session.delete(Connection("warehouse", "postgres"))


def test_a_file_that_changes_tables_at_its_top_level_loads_with_a_warning(world: World, session: Any) -> None:
    from airflow.models import Connection, Pool

    with collecting():
        with pytest.warns(UserWarning, match=r"session.add\(Pool\) at the top level of the file changes nothing"):
            session.add(Pool(pool="wide", slots=4))
        with pytest.warns(UserWarning, match="deleting from Connection at the top level"):
            assert session.query(Connection).filter(Connection.conn_id == "web").delete() == 0
        with pytest.warns(UserWarning, match="changing rows of Pool at the top level"):
            assert session.query(Pool).update({"slots": 1}) == 0
        with pytest.warns(UserWarning, match=r"Pool.create_or_update_pool\('wide'\) at the top level"):
            assert Pool.create_or_update_pool("wide", 4, "for all").slots == 4
        with pytest.warns(UserWarning, match=r"Pool.delete_pool\('default_pool'\) at the top level"):
            assert Pool.delete_pool("default_pool").slots == 128


def test_pools_can_be_read_by_their_methods(world: World) -> None:
    from airflow.models import Pool

    assert Pool.get_pool("default_pool").slots == Pool.get_default_pool().slots == 128
    assert Pool.get_pool("wide") is None
    assert [pool.pool for pool in Pool.get_pools()] == ["default_pool"]
