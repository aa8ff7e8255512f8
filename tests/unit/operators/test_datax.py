"""The DataX operator: its job and command line, against a metastore in SQLite and a recorder in place of DataX."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, workload
from tests.unit.operators.datax_installation import install
from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.model.states import Outcome
from tradewind.operators.datax import HiveToMysqlByDataxOperator


@pytest.fixture
def datax(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The connections of a transfer, through a recorder in place of DataX. Returns the file that it writes."""
    world.connections |= install(tmp_path)
    monkeypatch.setenv("RECORD", str(tmp_path / "record.json"))
    return tmp_path / "record.json"


NEEDED: dict[str, Any] = {
    "hive_table": "sales.orders",
    "partition_path": "ds={{ ds }}",
    "mysql_table": "orders",
    "mysql_conn": "shop",
    "columns_map": {"id": "order_id", "ds": "day", "price": "price"},
}


def _operator(**changes: Any) -> HiveToMysqlByDataxOperator:
    return HiveToMysqlByDataxOperator(task_id="t", **{**NEEDED, **changes})


def _run(**changes: Any) -> TaskResult:
    return carry_out(_operator(**changes))


def _recorded(record: Path, **changes: Any) -> dict[str, Any]:
    result = _run(**changes)
    assert result.outcome is Outcome.SUCCESS, result.reason
    found: dict[str, Any] = json.loads(record.read_text())
    return found


@pytest.mark.spec("S413", "S488")
def test_a_partition_is_copied(datax: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The metastore says where the files are; the job and the command line are DataX's."""
    found = _recorded(datax)
    assert found["arguments"] == []
    assert found["job"] == {
        "job": {
            "setting": {"speed": {"channel": 1}, "errorLimit": {"record": 0, "percentage": 0.0}},
            "content": [
                {
                    "reader": {
                        "name": "hdfsreader",
                        "parameter": {
                            "defaultFS": "hdfs://nn:8020",
                            "path": "/warehouse/sales.db/orders/ds=2024-03-05/*",
                            "fileType": "text",
                            "column": [
                                {"index": 0, "type": "long"},
                                {"type": "string", "value": "2024-03-05"},
                                {"index": 2, "type": "string"},
                            ],
                            "fieldDelimiter": ",",
                            "encoding": "utf-8",
                            "nullFormat": "\\N",
                            "hadoopConfig": {"dfs.ha": "yes"},
                        },
                    },
                    "writer": {
                        "name": "mysqlwriter",
                        "parameter": {
                            "writeMode": "insert",
                            "username": "u",
                            "password": "secret",
                            "column": ["`order_id`", "`day`", "`price`"],
                            "connection": [
                                {"jdbcUrl": "jdbc:mysql://db:3307/shop?characterEncoding=utf-8", "table": ["orders"]}
                            ],
                        },
                    },
                }
            ],
        }
    }
    assert found["mode"] == "600"
    assert not os.path.exists(found["path"])
    assert "Percentage 100.00%" in capfd.readouterr().out


READER, WRITER = ("content", 0, "reader", "parameter"), ("content", 0, "writer", "parameter")


def _value(job: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        job = job[step]
    return job


@pytest.mark.parametrize(
    ("changes", "path", "value"),
    [
        pytest.param(
            {"hive_table": "sales.archive", "partition_path": "", "columns_map": {"id": "id"}, "datax_conn_id": "other"},
            (*READER, "path"),
            "/warehouse/archive/*",
            marks=pytest.mark.spec("S415", "S423"),
        ),
        pytest.param(
            {"partition_path": "/ds=x/hour={{ ds }}/"},
            (*READER, "path"),
            "/warehouse/sales.db/orders/ds=x/hour=2024-03-05/*",
            marks=pytest.mark.spec("S416", "S485"),
        ),
        pytest.param({"mysql_table": "a.b"}, (*WRITER, "connection", 0, "table"), ["a.b"], marks=pytest.mark.spec("S417")),
        pytest.param({"mysql_conn": "shop"}, (*WRITER, "username"), "u", marks=pytest.mark.spec("S418")),
        pytest.param(
            {"columns_map": '{"ID": "{{ ds }}"}'}, (*WRITER, "column"), ["`2024-03-05`"], marks=pytest.mark.spec("S419")
        ),
        pytest.param(
            {"clear_where_condition": "day = '{{ ds }}'"},
            (*WRITER, "preSql"),
            ["DELETE FROM orders WHERE day = '2024-03-05'"],
            marks=pytest.mark.spec("S420"),
        ),
        pytest.param({"write_mode": "replace"}, (*WRITER, "writeMode"), "replace", marks=pytest.mark.spec("S421")),
        pytest.param({"channel": 4}, ("setting", "speed", "channel"), 4, marks=pytest.mark.spec("S422")),
        pytest.param(
            {"hive_metastore_conn_id": "metastore"},
            (*READER, "column", 0),
            {"index": 0, "type": "long"},
            marks=pytest.mark.spec("S424", "S481", "S487"),
        ),
        pytest.param({"hdfs_file_encoding": "gbk"}, (*READER, "encoding"), "gbk", marks=pytest.mark.spec("S425")),
        pytest.param({"null_format": "NULL"}, (*READER, "nullFormat"), "NULL", marks=pytest.mark.spec("S426")),
        pytest.param({"compress": "gzip"}, (*READER, "compress"), "gzip", marks=pytest.mark.spec("S427")),
        pytest.param(
            {"jdbc_url_suffix": "useSSL=false"},
            (*WRITER, "connection", 0, "jdbcUrl"),
            "jdbc:mysql://db:3307/shop?useSSL=false",
            marks=pytest.mark.spec("S428", "S505"),
        ),
        pytest.param({"error_limit_record": 5}, ("setting", "errorLimit", "record"), 5, marks=pytest.mark.spec("S433")),
        pytest.param(
            {"error_limit_percentage": 0.02}, ("setting", "errorLimit", "percentage"), 0.02, marks=pytest.mark.spec("S434")
        ),
    ],
)
def test_each_argument_reaches_the_job(
    world: World, datax: Path, changes: dict[str, Any], path: tuple[Any, ...], value: Any
) -> None:
    installation = world.connections["datax_default"]
    with_fs = json.dumps(json.loads(installation["extra"]) | {"default_fs": "hdfs://other:8020"})
    world.connections |= {"other": installation | {"extra": with_fs}, "metastore": world.connections["metastore_default"]}
    assert _value(_recorded(datax, **changes)["job"]["job"], path) == value


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        pytest.param({"datax_jvm_para": "-Xms1g -Xmx1g"}, "--jvm=-Xms1g -Xmx1g", marks=pytest.mark.spec("S429")),
        pytest.param({"datax_run_mode": "standalone"}, "--mode=standalone", marks=pytest.mark.spec("S430")),
        pytest.param({"datax_loglevel": "debug"}, "--loglevel=debug", marks=pytest.mark.spec("S431")),
        pytest.param({"datax_debug": True}, "--debug", marks=pytest.mark.spec("S432")),
    ],
)
def test_each_option_reaches_the_command_line(datax: Path, changes: dict[str, Any], option: str) -> None:
    assert _recorded(datax, **changes)["arguments"] == [option]


@pytest.mark.spec("S414", "S435")
def test_templates_and_arguments_of_every_operator() -> None:
    assert tuple(HiveToMysqlByDataxOperator.template_fields) == (
        *("hive_table", "partition_path", "mysql_table", "columns_map", "clear_where_condition", "write_mode"),
    )
    assert HiveToMysqlByDataxOperator.ui_color == "#eddede"
    assert _operator(retries=3, owner="etl").retries == 3


def test_a_table_of_orc_files_whose_location_names_no_file_system(world: World, datax: Path) -> None:
    changes = {"hive_table": "sales.archive", "partition_path": "", "columns_map": '[["ID", "id"]]'}
    assert "default_fs" in str(_run(**changes).reason)
    extra = json.loads(world.connections["datax_default"]["extra"]) | {"default_fs": "hdfs://other:8020"}
    world.connections["datax_default"]["extra"] = json.dumps(extra)
    reader = _recorded(datax, **changes)["job"]["job"]["content"][0]["reader"]["parameter"]
    assert reader == {
        "defaultFS": "hdfs://other:8020",
        "path": "/warehouse/archive/*",
        "fileType": "orc",
        "column": [{"index": 0, "type": "long"}],
        "hadoopConfig": {"dfs.ha": "yes"},
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hive_table": "sales.order"}, "has no table sales.order"),
        ({"columns_map": {"ids": "id"}}, "has no column 'ids'. Did you mean 'id'?"),
        ({"columns_map": {}}, "columns_map must be"),
        ({"columns_map": "id"}, "no JSON"),
        ({"columns_map": {"ds": "day"}, "partition_path": "x"}, "does not contain the value of the column 'ds'"),
        ({"write_mode": "upsert"}, "DataX knows insert, replace, update"),
    ],
)
def test_wrong_arguments(datax: Path, changes: dict[str, Any], words: str) -> None:
    result = _run(**changes)
    assert result.outcome is not Outcome.SUCCESS
    assert words in str(result.reason)
    assert not datax.exists()


def test_the_task_fails_if_datax_fails(datax: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXIT_CODE", "2")
    assert "DataX ended with exit code 2" in str(_run().reason)
    assert not os.path.exists(json.loads(datax.read_text())["path"])


@pytest.mark.spec("S413")
def test_stopping_ends_datax_and_what_it_started(datax: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(ready)!r}, 'w').write(str(child.pid))\nchild.wait()\n"
    )
    (tmp_path / "datax" / "bin" / "datax.py").write_text(script)
    operator = _operator()
    found: list[TaskResult] = []
    worker = threading.Thread(daemon=True, target=lambda: found.append(execute_task(operator, workload("t"))))
    worker.start()
    child = int(ready.read_text())
    operator.on_kill()
    worker.join(30)
    assert found[0].outcome is Outcome.FAILED
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
