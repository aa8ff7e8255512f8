"""DAGs with operators and hooks of genuine provider packages, against the systems of this machine, through `dag.test()`.

They need provider packages beside Tradewind: `make test-providers` installs them into an environment of their own. A test whose
package or system is missing is skipped, and says what is missing.
"""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

REQUIRED = bool(os.environ.get("PROVIDERS_REQUIRED"))
"""Set where all packages are installed: a missing one fails the test."""

HEAD = """
import sys
from datetime import datetime
from airflow.sdk import DAG, BaseHook, task
"""

STANDARD = """
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import BranchPythonOperator, PythonOperator, ShortCircuitOperator
from airflow.providers.standard.operators.python import BranchExternalPythonOperator, ExternalPythonOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.sensors.date_time import DateTimeSensorAsync
from airflow.providers.standard.sensors.python import PythonSensor

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None) as dag:
    bash = BashOperator(task_id="bash", bash_command="echo {{ dag.dag_id }}")
    twice = PythonOperator(task_id="twice", python_callable=lambda x: x * 2, op_args=[bash.output])
    branch = BranchPythonOperator(task_id="branch", python_callable=lambda: "left")
    twice >> branch >> [EmptyOperator(task_id="left"), EmptyOperator(task_id="right")]
    ShortCircuitOperator(task_id="stop", python_callable=lambda: False) >> EmptyOperator(task_id="never")
    PythonSensor(task_id="sensor", python_callable=lambda: True)
    DateTimeSensorAsync(task_id="deferred", target_time="2020-01-01T00:00:00+00:00")
    TriggerDagRunOperator(task_id="trigger", trigger_dag_id="other")

    def chosen():
        return "outside"

    def same(x):
        return x

    choose = BranchExternalPythonOperator(task_id="choose", python=sys.executable, python_callable=chosen)
    outside = ExternalPythonOperator(task_id="outside", python=sys.executable, python_callable=same, op_args=[1])
    choose >> [outside, EmptyOperator(task_id="inside")]
"""
STANDARD_STATES = {
    **dict.fromkeys(
        ("bash", "twice", "branch", "left", "stop", "sensor", "deferred", "trigger", "choose", "outside"), "success"
    ),
    **dict.fromkeys(("right", "never", "inside"), "skipped"),
}

SQL = """
from airflow.providers.common.sql.operators.sql import SQLColumnCheckOperator, SQLExecuteQueryOperator
from airflow.providers.common.sql.sensors.sql import SqlSensor

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None) as dag:
    make = SQLExecuteQueryOperator(
        task_id="make", conn_id="db", autocommit=True, split_statements=True,
        sql="drop table if exists tw_providers; create table tw_providers (a int); insert into tw_providers values (1), (2)",
    )
    check = SQLColumnCheckOperator(
        task_id="check", conn_id="db", table="tw_providers", column_mapping={"a": {"max": {"equal_to": 2}}}
    )
    sensor = SqlSensor(task_id="sensor", conn_id="db", sql="select count(*) from tw_providers")

    @task
    def hook():
        found = BaseHook.get_hook("db")
        assert type(found).__module__.startswith("airflow.providers."), type(found)
        assert [int(row[0]) for row in found.get_records("select a from tw_providers order by a")] == [1, 2]
        found.run("drop table tw_providers", autocommit=True)

    make >> [check, sensor] >> hook()
"""
SQL_STATES = dict.fromkeys(("make", "check", "sensor", "hook"), "success")

REDIS = """
from airflow.providers.redis.hooks.redis import RedisHook
from airflow.providers.redis.operators.redis_publish import RedisPublishOperator
from airflow.providers.redis.sensors.redis_key import RedisKeySensor

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None) as dag:
    @task
    def put():
        RedisHook("db").get_conn().set("tw:providers", "1", ex=60)

    publish = RedisPublishOperator(task_id="publish", redis_conn_id="db", channel="tw", message="{{ ti.task_id }}")
    put() >> RedisKeySensor(task_id="key", redis_conn_id="db", key="tw:providers") >> publish
"""
REDIS_STATES = dict.fromkeys(("put", "key", "publish"), "success")

HTTP = """
from airflow.providers.http.operators.http import HttpOperator
from airflow.providers.http.sensors.http import HttpSensor

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None) as dag:
    HttpSensor(task_id="sensor", http_conn_id="db", endpoint="/") >> [
        HttpOperator(task_id="get", http_conn_id="db", endpoint="/", method="GET"),
        HttpOperator(task_id="deferred", http_conn_id="db", endpoint="/", method="GET", deferrable=True),
    ]
"""
HTTP_STATES = dict.fromkeys(("sensor", "get", "deferred"), "success")

TAIL = """
run = dag.test()
for ti in run.get_task_instances():
    print("STATE", ti.task_id, str(getattr(ti.state, "value", ti.state)))
"""


def installed(*names: str) -> None:
    """Skip unless these packages are installed, `airflow.providers.redis` or a library. `make test-providers` has all of them."""
    for name in names:
        if not any((Path(entry or ".") / name.replace(".", "/")).is_dir() for entry in sys.path):
            if REQUIRED:
                pytest.fail(f"{name} is not installed: requirements-providers.lock lacks it")
            pytest.skip(f"{name} is not installed; run these tests with: make test-providers")


def listening(port: int, name: str) -> None:
    """Skip unless a server listens on this machine."""
    with socket.socket() as client:
        client.settimeout(1)
        if client.connect_ex(("127.0.0.1", port)):
            pytest.skip(f"no {name} server listens on 127.0.0.1:{port}")


def states(tmp_path: Path, body: str, connection: str = "") -> dict[str, str]:
    """Run a DAG file in a process of its own; the states of its tasks."""
    file = tmp_path / "dag.py"
    file.write_text(f"import tradewind.airflow\n{HEAD}{body}{TAIL}")
    environ = {name: value for name, value in os.environ.items() if name not in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")}
    environ |= {"TRADEWIND_HOME": str(tmp_path), "AIRFLOW_CONN_DB": connection}
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env=environ, timeout=110, check=False)
    found = dict(line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("STATE "))
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    return found


def test_standard(tmp_path: Path) -> None:
    installed("airflow.providers.standard")
    assert states(tmp_path, STANDARD) == STANDARD_STATES


def test_sqlite(tmp_path: Path) -> None:
    installed("airflow.providers.sqlite", "airflow.providers.common.sql")
    path = str(tmp_path / "db").replace("/", "%2F")
    assert states(tmp_path, SQL, f"sqlite://{path}") == SQL_STATES


def test_postgres(tmp_path: Path) -> None:
    installed("airflow.providers.postgres", "psycopg2")
    listening(5432, "PostgreSQL")
    assert states(tmp_path, SQL, "postgres://root@127.0.0.1:5432/test") == SQL_STATES


def test_mysql(tmp_path: Path) -> None:
    installed("airflow.providers.mysql", "mysql.connector")
    listening(3306, "MySQL")
    connection = '{"conn_type": "mysql", "host": "127.0.0.1", "port": 3306, "login": "root", "password": "", "schema": "test"'
    assert states(tmp_path, SQL, connection + ', "extra": {"client": "mysql-connector-python"}}') == SQL_STATES


def test_redis(tmp_path: Path) -> None:
    installed("airflow.providers.redis", "redis")
    listening(6379, "Redis")
    assert states(tmp_path, REDIS, "redis://127.0.0.1:6379/0") == REDIS_STATES


class _Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written."""


@pytest.fixture
def web() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_http(tmp_path: Path, web: int) -> None:
    installed("airflow.providers.http")
    assert states(tmp_path, HTTP, f"http://127.0.0.1:{web}") == HTTP_STATES
