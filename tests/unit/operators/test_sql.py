"""SQL operators, hook and sensor, on real SQLite files."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, pushed
from tradewind import DAG, task
from tradewind.execution.run_task import TaskResult
from tradewind.hooks.sql import DbApiHook, fetch_one_handler, split_sql_string
from tradewind.model.branch import Branch
from tradewind.model.errors import DefinitionError
from tradewind.model.states import Outcome
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.sql import (
    BranchSQLOperator,
    SQLCheckOperator,
    SQLColumnCheckOperator,
    SQLExecuteQueryOperator,
    SQLIntervalCheckOperator,
    SQLTableCheckOperator,
    SQLThresholdCheckOperator,
    SQLValueCheckOperator,
)
from tradewind.sdk.variables import Connection
from tradewind.sensors import base
from tradewind.sensors.sql import SqlSensor


@pytest.fixture
def database(world: World, tmp_path: Path) -> Path:
    """A database with the rain of three days; its connection is `sql_default`."""
    path = tmp_path / "weather.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE rain (day TEXT, mm REAL)")
        connection.executemany("INSERT INTO rain VALUES (?, ?)", [("2024-03-04", 0), ("2024-03-05", 2.5), ("2024-03-06", 4)])
    connection.close()
    world.connections["sql_default"] = {"conn_type": "sqlite", "host": str(path)}
    return path


def _run(cls: Any, **kwargs: Any) -> TaskResult:
    with DAG("d", schedule=None):
        operator = cls(task_id="t", **kwargs)
        operator >> [EmptyOperator(task_id="a"), EmptyOperator(task_id="b")]
    return carry_out(operator)


def _told(**kwargs: Any) -> Any:
    result = _run(SQLExecuteQueryOperator, **kwargs)
    assert result.outcome is Outcome.SUCCESS, result.reason
    return pushed(result).get("return_value")


def _rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM rain").fetchone()
    connection.close()
    return int(count)


# --- statements --------------------------------------------------------------------------------------------------------


def test_rows_are_pushed(database: Path) -> None:
    query = "SELECT mm FROM rain WHERE day = '{{ ds }}'"
    assert [tuple(row) for row in _told(sql=query)] == [(2.5,)]
    assert tuple(_told(sql=query, handler=fetch_one_handler)) == (2.5,)
    assert _told(sql="SELECT mm FROM rain WHERE day = ?", parameters=["{{ ds }}"])[0][0] == 2.5
    assert _told(sql="SELECT mm FROM rain WHERE day = :day", parameters={"day": "{{ ds }}"})[0][0] == 2.5
    assert _told(sql="DELETE FROM rain WHERE mm > 3") is None
    assert _rows(database) == 2


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"sql": ["SELECT 1", "SELECT 2"]}, [[(1,)], [(2,)]]),
        ({"sql": "SELECT 1; SELECT ';' -- 2;\n;", "split_statements": True}, [(";",)]),
        ({"sql": "SELECT 1; SELECT 2", "split_statements": True, "return_last": False}, [[(1,)], [(2,)]]),
        ({"sql": ["SELECT 1"]}, [[(1,)]]),
        (
            {"sql": "SELECT 1", "output_processor": lambda results, descriptions: [(results, descriptions[0][0][0])]},
            ([[(1,)]], "1"),
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_several_statements_are_executed(database: Path, kwargs: Any, expected: Any) -> None:
    def lists(value: Any) -> Any:
        return [lists(one) for one in value] if isinstance(value, list | tuple) else value

    assert lists(_told(**kwargs)) == lists(expected)


def test_all_statements_are_one_transaction_without_autocommit(database: Path) -> None:
    both = ["INSERT INTO rain VALUES ('2024-03-07', 1)", "INSERT INTO nowhere VALUES (1)"]
    assert "no such table: nowhere" in str(_run(SQLExecuteQueryOperator, sql=both).reason)
    assert _rows(database) == 3
    assert _run(SQLExecuteQueryOperator, sql=both, autocommit=True).outcome is Outcome.FAILED
    assert _rows(database) == 4


def test_sql_can_be_in_a_file(database: Path, tmp_path: Path) -> None:
    (tmp_path / "rain.sql").write_text("SELECT count(*) FROM rain WHERE day <= '{{ ds }}'")
    with DAG("d", schedule=None, template_searchpath=str(tmp_path)):
        operator = SQLExecuteQueryOperator(task_id="t", sql="rain.sql")
    assert pushed(carry_out(operator))["return_value"][0][0] == 2


def test_a_decorated_function_returns_the_statements(database: Path) -> None:
    with DAG("d", schedule=None):

        @task.sql
        def wet(least: float) -> str:
            return f"SELECT day FROM rain WHERE mm > {least} AND day = '{{{{ ds }}}}'"

        @task.sql(handler=fetch_one_handler)
        def two() -> list[str]:
            return ["DELETE FROM rain", "SELECT count(*) FROM rain"]

        @task.sql
        def nothing() -> str:
            return " "

        results = [carry_out(promise.operator) for promise in (wet(1), two(), nothing())]
    assert [tuple(row) for row in pushed(results[0])["return_value"]] == [("2024-03-05",)]
    assert [None if row is None else tuple(row) for row in pushed(results[1])["return_value"]] == [None, (0,)]
    assert "the @task.sql function nothing returned ' '" in str(results[2].reason)


def test_results_are_not_fetched_if_they_are_not_needed(database: Path) -> None:
    def never(cursor: Any) -> None:
        raise AssertionError("it was fetched")

    assert _run(SQLExecuteQueryOperator, sql="SELECT 1", handler=never, do_xcom_push=False).outcome is Outcome.SUCCESS
    result = _run(SQLExecuteQueryOperator, sql="SELECT 1", handler=never, do_xcom_push=False, requires_result_fetch=True)
    assert "it was fetched" in str(result.reason)
    assert "sql contains no statement" in str(_run(SQLExecuteQueryOperator, sql=" ").reason)


def test_the_argument_database_and_missing_values(database: Path, tmp_path: Path, world: World) -> None:
    other = str(tmp_path / "other.db")
    _told(sql="CREATE TABLE x (a)", database=other)
    assert Path(other).exists()
    world.connections["fs"] = {"conn_type": "fs"}
    world.connections["mail"] = {"conn_type": "http"}
    for conn_id in ("fs", "mail"):
        assert "which is not a supported database" in str(_run(SQLExecuteQueryOperator, sql="SELECT 1", conn_id=conn_id).reason)


# --- the hook ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"conn_type": "postgres", "host": "h", "login": "u", "password": "p@", "schema": "s"}, "postgresql://u:p%40@h/s"),
        ({"conn_type": "mysql", "host": "h", "port": 3306, "extra": '{"charset": "utf8"}'}, "mysql://h:3306?charset=utf8"),
        (
            {"conn_type": "postgres", "host": "h", "extra": '{"sqlalchemy_scheme": "postgresql+psycopg"}'},
            "postgresql+psycopg://h",
        ),
        ({"conn_type": "sqlite", "schema": "/tmp/x.db"}, "sqlite:////tmp/x.db"),
    ],
)
def test_urls_of_connections(world: World, parts: Any, url: str) -> None:
    world.connections["c"] = parts
    assert DbApiHook("c").get_uri() == url


def test_a_missing_driver_is_an_error(world: World) -> None:
    world.connections["c"] = {"conn_type": "mysql", "host": "h"}
    assert "driver 'MySQLdb' for connection 'c' is not installed" in str(
        _run(SQLExecuteQueryOperator, sql="SELECT 1", conn_id="c").reason
    )


def test_insert_rows_writes_rows(database: Path) -> None:
    hook = DbApiHook()
    assert hook.insert_rows("rain", (("x", number) for number in range(5)), ["day", "mm"], commit_every=2) == 5
    assert hook.get_first("SELECT sum(mm) FROM rain WHERE day = 'x'") == (10.0,)
    assert hook.get_records("SELECT 1 WHERE 0") == []
    assert Connection.get("sql_default").test_connection() == (True, "the database responds")


def test_statements_are_split() -> None:
    text = "-- one;\nSELECT ';'; /* ; */ INSERT INTO x VALUES ('a;b')\n;;"
    assert split_sql_string(text) == ["SELECT ';';", "INSERT INTO x VALUES ('a;b')\n;"]


def test_the_error_of_a_missing_package_names_the_pip_command(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    assert "pip install 'tradewind[sql]'" in str(_run(SQLExecuteQueryOperator, sql="SELECT 1").reason)


# --- checks and branches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "kwargs", "words"),
    [
        (SQLCheckOperator, {"sql": "SELECT 1, 'x'"}, None),
        (SQLCheckOperator, {"sql": "SELECT 1, 0"}, "returned (1, 0)"),
        (SQLCheckOperator, {"sql": "SELECT 1 WHERE 0"}, "returned no row"),
        (SQLValueCheckOperator, {"sql": "SELECT count(*) FROM rain", "pass_value": 3}, None),
        (SQLValueCheckOperator, {"sql": "SELECT count(*) FROM rain", "pass_value": "{{ 2 }}"}, "expected '2'"),
        (SQLValueCheckOperator, {"sql": "SELECT 95, 109", "pass_value": 100, "tolerance": 0.1}, None),
        (SQLValueCheckOperator, {"sql": "SELECT 95, 111", "pass_value": 100, "tolerance": 0.1}, "within 10%"),
        (SQLValueCheckOperator, {"sql": "SELECT 'a'", "pass_value": "a"}, None),
        (SQLThresholdCheckOperator, {"sql": "SELECT 3", "min_threshold": 3, "max_threshold": "SELECT max(mm) FROM rain"}, None),
        (
            SQLThresholdCheckOperator,
            {"sql": "SELECT 5", "min_threshold": 1, "max_threshold": 4},
            "5, which is not between 1 and 4",
        ),
    ],
)
def test_check_operators(database: Path, cls: Any, kwargs: Any, words: str | None) -> None:
    result = _run(cls, **kwargs)
    assert result.outcome is (Outcome.SUCCESS if words is None else Outcome.FAILED), result.reason
    assert (words or "") in (result.reason or "")
    if words is not None:
        assert _run(cls, **kwargs, retry_on_failure=False).outcome is Outcome.FAILED_FINAL


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        (
            {"mm": {"min": {"equal_to": 0}, "max": {"geq_to": 4, "less_than": 5}}, "day": {"unique_check": {"equal_to": 0}}},
            None,
        ),
        ({"day": {"min": {"equal_to": "2024-03-04"}, "distinct_check": {"greater_than": 2}}}, None),
        ({"mm": {"max": {"equal_to": 4.3, "tolerance": 0.1}}}, None),
        ({"mm": {"max": {"equal_to": 4.5, "tolerance": 0.1}}}, "max of mm is 4.0, expected equal_to 4.5"),
        ({"mm": {"max": {"leq_to": 3}, "min": {"greater_than": 0}}}, "2 checks of rain failed"),
        ({"mm": {"max": {"leq_to": 3, "partition_clause": "day < '2024-03-06'"}}}, None),
        ({"mm": {"null_check": {"equal_to": 0, "partition_clause": "mm > 100"}}}, None),
    ],
    ids=str,
)
def test_column_checks(database: Path, checks: Any, words: str | None) -> None:
    result = _run(SQLColumnCheckOperator, table="rain", column_mapping=checks)
    assert result.outcome is (Outcome.SUCCESS if words is None else Outcome.FAILED), result.reason
    assert (words or "") in (result.reason or "")


def test_accept_none_treats_null_as_zero(database: Path) -> None:
    checks = {"mm": {"max": {"leq_to": 3}}}
    nowhere: Any = {"table": "rain", "column_mapping": checks, "partition_clause": "day > '{{ ds }}9'"}
    assert _run(SQLColumnCheckOperator, **nowhere).outcome is Outcome.FAILED, "the day after is there"
    nowhere["partition_clause"] = "day > '2025'"
    assert _run(SQLColumnCheckOperator, **nowhere).outcome is Outcome.SUCCESS
    assert _run(SQLColumnCheckOperator, **nowhere, accept_none=False).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"mni": {"equal_to": 1}}, "Did you mean 'min'"),
        ({"min": {"eqal_to": 1}}, "Did you mean 'equal_to'"),
        ({"min": {"tolerance": 1}}, "no condition"),
        ({"min": {"geq_to": 1, "greater_than": 1}}, "remove one of them"),
        ({"min": {"geq_to": 1, "equal_to": 1}}, "remove the others"),
    ],
    ids=str,
)
def test_invalid_column_checks_are_errors(check: Any, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        _run(SQLColumnCheckOperator, table="rain", column_mapping={"mm": check})


def test_table_checks(database: Path) -> None:
    good = {"rows": {"check_statement": "COUNT(*) = 3"}, "each": {"check_statement": "mm >= 0"}}
    assert _run(SQLTableCheckOperator, table="rain", checks=good).outcome is Outcome.SUCCESS
    bad = {**good, "wet": {"check_statement": "mm > 0"}}
    assert "1 checks of rain failed: wet (mm > 0)" in str(_run(SQLTableCheckOperator, table="rain", checks=bad).reason)
    later: Any = {"table": "{{ 'rain' }}", "checks": {"wet": bad["wet"]}, "partition_clause": "day >= '{{ ds }}'"}
    assert _run(SQLTableCheckOperator, **later).outcome is Outcome.SUCCESS
    with pytest.raises(DefinitionError, match="no check_statement"):
        _run(SQLTableCheckOperator, table="rain", checks={"x": {}})


@pytest.mark.parametrize(("value", "chosen"), [("1", "a"), ("0", "b"), ("'Yes'", "a"), ("'off'", "b"), ("2.5", "a")])
def test_branch_sql_operator_chooses_a_branch(database: Path, value: str, chosen: str) -> None:
    result = _run(BranchSQLOperator, sql=f"SELECT {value}", follow_task_ids_if_true="a", follow_task_ids_if_false=["b"])
    assert result.branch == Branch("follow", (chosen,))


def test_a_branch_needs_a_boolean_result(database: Path) -> None:
    branch: Any = {"follow_task_ids_if_true": "a", "follow_task_ids_if_false": "b"}
    assert "neither true nor false" in str(_run(BranchSQLOperator, sql="SELECT 'maybe'", **branch).reason)
    assert "returned no row" in str(_run(BranchSQLOperator, sql="SELECT 1 WHERE 0", **branch).reason)
    with pytest.raises(DefinitionError, match="one query"):
        _run(BranchSQLOperator, sql=["SELECT 1"], **branch)


# --- sensor ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S6", "S409")
def test_a_sensor_waits_for_a_result(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rain(seconds: float) -> None:
        connection = sqlite3.connect(database)
        connection.execute("INSERT INTO rain VALUES ('2024-03-07', 1)")
        connection.commit()
        connection.close()

    monkeypatch.setattr(base, "_sleep", rain)
    count = "SELECT count(*) > 4 FROM rain"
    assert _run(SqlSensor, conn_id="sql_default", sql=count).outcome is Outcome.SUCCESS
    assert _rows(database) == 5
    enough: Any = {"sql": "SELECT day, count(*) FROM rain", "selector": lambda row: row[1], "success": lambda n: n > 5}
    assert _run(SqlSensor, conn_id="sql_default", **enough).outcome is Outcome.SUCCESS
    assert _rows(database) == 6


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"sql": "SELECT 1 WHERE 0"}, None),
        ({"sql": "SELECT 1 WHERE 0", "fail_on_empty": True}, "fail_on_empty"),
        ({"sql": "SELECT '0'"}, None),
        ({"sql": "SELECT ''"}, None),
        ({"sql": "SELECT NULL"}, None),
        ({"sql": "SELECT -1", "failure": lambda value: value < 0}, "returned -1, for which the function failure is true"),
    ],
)
def test_results_after_which_a_sensor_continues_to_wait(database: Path, kwargs: Any, words: str | None) -> None:
    result = _run(SqlSensor, conn_id="sql_default", mode="reschedule", **kwargs)
    assert result.outcome is (Outcome.RESCHEDULE if words is None else Outcome.FAILED)
    assert (words or "") in (result.reason or "")
    with pytest.raises(DefinitionError, match="success is 1"):
        _run(SqlSensor, conn_id="sql_default", sql="SELECT 1", success=1)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"days_back": 4, "metrics_thresholds": {"SUM(mm)": 3, "COUNT(*)": 1.5}}, None),
        ({"days_back": -4, "metrics_thresholds": {"SUM(mm)": 2}}, "SUM(mm) is 2.5; 4 days before it was 1.0"),
        ({"days_back": 4, "metrics_thresholds": {"SUM(mm)": 1.6}, "ratio_formula": "relative_diff"}, None),
        ({"days_back": 1, "metrics_thresholds": {"SUM(mm)": 2}}, None),
        ({"days_back": 1, "metrics_thresholds": {"SUM(mm)": 2}, "ignore_zero": False}, "it was 0.0"),
        ({"days_back": 9, "metrics_thresholds": {"mm": 2}}, "returned no row"),
    ],
)
def test_metrics_are_compared_with_those_of_an_earlier_day(database: Path, kwargs: Any, words: str | None) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO rain VALUES ('2024-03-01', 1)")
    connection.close()
    result = _run(SQLIntervalCheckOperator, table="rain", date_filter_column="day", **kwargs)
    assert result.outcome is (Outcome.SUCCESS if words is None else Outcome.FAILED), result.reason
    assert (words or "") in (result.reason or "")


def test_an_unknown_ratio_formula_is_an_error() -> None:
    with DAG("d"), pytest.raises(DefinitionError, match="Did you mean 'max_over_min'"):
        SQLIntervalCheckOperator(task_id="u", table="sales", metrics_thresholds={}, ratio_formula="max_over_mni")
