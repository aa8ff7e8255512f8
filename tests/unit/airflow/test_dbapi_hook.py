"""`airflow.hooks.dbapi`: the base of database hooks of Airflow 1 and 2."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from airflow.hooks.dbapi import DbApiHook
from airflow.hooks.dbapi_hook import DbApiHook as FirstDbApiHook

from tradewind.sdk.exceptions import AirflowException


class FileHook(DbApiHook):
    """As hooks of provider packages of 2021 are written."""

    conn_name_attr = "file_conn_id"
    default_conn_name = "file_default"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection = kwargs.pop("connection", None)
        self.schema = kwargs.pop("schema", None)

    def get_conn(self) -> Any:
        return sqlite3.connect(self.get_connection(self.file_conn_id).host)

    @staticmethod
    def _serialize_cell(cell: Any, conn: Any = None) -> Any:
        return cell

    @staticmethod
    def _generate_insert_sql(table: str, values: Any, target_fields: Any, replace: bool, **kwargs: Any) -> str:
        return f"INSERT INTO {table} VALUES ({','.join('?' * len(values))})"


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileHook:
    monkeypatch.setenv("AIRFLOW_CONN_FILE_OURS", f"sqlite:///?host={tmp_path}/db")
    monkeypatch.setattr(FileHook, "get_connection", lambda *_args: mock.Mock(host=str(tmp_path / "db")))
    return FileHook(file_conn_id="file_ours", schema="x")


def test_a_hook_of_2021_runs_statements(hook: FileHook) -> None:
    assert hook.file_conn_id == "file_ours"
    hook.run(["create table t (a, b)", "insert into t values (1, 'x')"])
    hook.insert_rows("t", [(2, None), (3, "z")], commit_every=1)
    assert hook.get_records("select a from t order by a") == [(1,), (2,), (3,)]
    assert hook.get_first("select b from t where a = ?", parameters=(3,)) == ("z",)
    assert hook.run("select count(*) from t", handler=lambda cursor: cursor.fetchone()) == (3,)


def test_the_id_of_the_connection() -> None:
    assert FileHook("one").file_conn_id == "one"
    assert FileHook().file_conn_id == "file_default"
    with pytest.raises(AirflowException, match="conn_name_attr of OlderDbApiHook"):
        DbApiHook()
    assert FirstDbApiHook is DbApiHook


def test_connections_with_autocommit_are_not_committed(hook: FileHook, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = mock.MagicMock(autocommit=False)
    opened.cursor.return_value.rowcount = 0
    monkeypatch.setattr(hook, "get_conn", lambda: opened)
    monkeypatch.setattr(FileHook, "supports_autocommit", True)
    hook.run("select 1", autocommit=True, parameters=("p",))
    opened.cursor.return_value.execute.assert_called_once_with("select 1", ("p",))
    assert opened.autocommit is True
    opened.commit.assert_not_called()
    opened.close.assert_called_once_with()


def test_values_are_written_as_text_unless_the_hook_says_otherwise() -> None:
    assert DbApiHook._serialize_cell(None) is None
    assert DbApiHook._serialize_cell(5) == "5"
    assert DbApiHook._generate_insert_sql("t", ("a", "b"), ["x", "y"], True) == "REPLACE INTO t (x, y) VALUES (%s,%s)"
