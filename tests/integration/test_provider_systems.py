"""DAG files with operators of genuine provider packages, run by `tradewind dags test` against real or nearly real systems.

They need provider packages beside Tradewind: `make test-providers` installs them into an environment of their own.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import Standalone
from tests.integration import kubernetes_server, provider_servers
from tests.integration.test_provider_packages import installed

LIMIT_S = 280
"""Of one DAG run: importing the packages of Amazon takes a while on a busy machine."""

pytestmark = pytest.mark.timeout(300)

HEAD = """
from datetime import datetime
from airflow.sdk import DAG, BaseHook, task
"""


def run(
    tmp_path: Path, body: str, connections: Mapping[str, Any], *, failed: Collection[str] = (), **environment: str
) -> dict[str, str]:
    """Run a DAG file through the command line; the states of its tasks.

    Args:
        body: the DAG `d`, after the imports of `HEAD`.
        connections: id → fields.
        failed: the tasks that fail; all others succeed.
    """
    file = tmp_path / "dag.py"
    file.write_text(HEAD + body)
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_CA_BUNDLE")}
    environ |= {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections.items()}
    environ |= {"TRADEWIND_HOME": str(tmp_path / "home"), **environment}
    command = [sys.executable, "-m", "tradewind", "dags", "test", str(file), "2024-03-05"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=LIMIT_S, check=False)
    (tmp_path / "output").write_text(done.stdout + done.stderr)
    found = {
        words[0]: words[1]
        for line in done.stdout.splitlines()
        if len(words := line.split()) >= 2
        and words[1] in ("success", "failed", "skipped", "upstream_failed")
        and line[0] != "["
    }
    assert found, done.stdout[-3000:] + done.stderr[-3000:]
    assert {name for name, state in found.items() if state != "success"} == set(failed), (
        done.stdout[-3000:] + done.stderr[-3000:]
    )
    return found


TOOLS = """
from airflow.providers.apache.hive.operators.hive import HiveOperator
from airflow.providers.apache.pig.operators.pig import PigOperator
from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    PigOperator(task_id="pig", pig="orders = load '{{ ds }}';", pig_opts="-x local")
    HiveOperator(task_id="hive", hql="select '{{ ds }}'", hiveconfs={"queue": "etl"})
    SparkSqlOperator(
        task_id="spark_sql", sql="select '{{ ds }}'", master="yarn", yarn_queue="default", executor_memory="6G", num_executors=5,
        executor_cores=3, conf={"spark.driver.memory": "2G"},
    )
"""
TOOL_CONNECTIONS = {
    "hive_cli_default": {"conn_type": "hive_cli", "host": "localhost", "port": 10000, "schema": "default"},
    "pig_cli_default": {"conn_type": "pig_cli"},
    "spark_sql_default": {"conn_type": "spark_sql", "host": "yarn"},
}


@pytest.mark.spec("S10", "S486", "S489")
def test_the_command_lines_of_hadoop(tmp_path: Path) -> None:
    """Pig, Hive and Spark SQL are started with the arguments of their operators and the rendered statements."""
    installed("airflow.providers.apache.pig", "airflow.providers.apache.hive", "airflow.providers.apache.spark")
    provider_servers.install_tools(tmp_path / "bin", "pig", "hive", "spark-sql")
    record = tmp_path / "record"
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    run(tmp_path, TOOLS, TOOL_CONNECTIONS, PATH=path, RECORD=str(record))
    found = provider_servers.recorded(record)
    assert found["pig"]["arguments"][:2] == ["-x", "local"]
    assert "orders = load '2024-03-05';" in found["pig"]["files"][0]
    assert "queue=etl" in found["hive"]["arguments"]
    assert "select '2024-03-05'" in found["hive"]["files"][0]
    words = " ".join(found["spark-sql"]["arguments"])
    for part in (
        "--queue default",
        "--executor-memory 6G",
        "--num-executors 5",
        "--executor-cores 3",
        "-e select '2024-03-05'",
    ):
        assert part in words
    assert "--conf spark.driver.memory=2G" in words


S3 = """
from airflow.providers.amazon.aws.hooks.s3 import S3Hook
from airflow.providers.amazon.aws.operators.s3 import S3CreateBucketOperator, S3CreateObjectOperator, S3ListOperator
from airflow.providers.amazon.aws.operators.sqs import SqsPublishOperator
from airflow.providers.amazon.aws.hooks.sqs import SqsHook
from airflow.providers.amazon.aws.sensors.s3 import S3KeySensor
from airflow.providers.amazon.aws.sensors.sqs import SqsSensor

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    bucket = S3CreateBucketOperator(task_id="bucket", bucket_name="orders")
    put = S3CreateObjectOperator(task_id="put", s3_bucket="orders", s3_key="{{ ds }}.csv", data="1,2")
    sensor = S3KeySensor(task_id="sensor", bucket_key="s3://orders/{{ ds }}.csv")
    listed = S3ListOperator(task_id="listed", bucket="orders")

    @task
    def check(keys):
        assert keys == ["2024-03-05.csv"], keys
        assert S3Hook().read_key("2024-03-05.csv", "orders") == "1,2"

    @task
    def queue():
        return SqsHook().create_queue("q")["QueueUrl"]

    bucket >> put >> sensor >> listed
    check(listed.output)
    url = queue()
    publish = SqsPublishOperator(task_id="publish", sqs_queue=url, message_content="{{ ds }}")
    publish >> SqsSensor(task_id="received", sqs_queue=url, wait_time_seconds=0, poke_interval=0.2)
"""


@pytest.mark.spec("S10", "S482")
def test_s3_and_sqs(tmp_path: Path) -> None:
    """Buckets, objects and queues of moto's server."""
    installed("airflow.providers.amazon", "moto", "boto3")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        _, port = server.get_host_and_port()
        extra = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
        aws = {"conn_type": "aws", "login": "key", "password": "secret", "extra": json.dumps(extra)}
        states = run(tmp_path, S3, {"aws_default": aws})
    finally:
        server.stop()
    assert set(states) == {"bucket", "put", "sensor", "listed", "check", "queue", "publish", "received"}


HDFS = """
from airflow.providers.apache.hdfs.hooks.webhdfs import WebHDFSHook
from airflow.providers.apache.hdfs.sensors.web_hdfs import WebHdfsSensor

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    @task
    def upload():
        with open("{file}") as _:
            WebHDFSHook().load_file("{file}", "/warehouse/orders/part-0")

    @task
    def read():
        assert WebHDFSHook().read_file("/warehouse/orders/part-0") == b"1,2"

    upload() >> WebHdfsSensor(task_id="sensor", filepath="/warehouse/orders/part-0") >> read()
"""


@pytest.mark.spec("S10", "S485")
def test_hdfs(tmp_path: Path) -> None:
    """A file goes to a WebHDFS server and comes back."""
    installed("airflow.providers.apache.hdfs", "hdfs")
    (tmp_path / "part").write_text("1,2")
    with provider_servers.webhdfs() as (port, files):
        connection = {"conn_type": "webhdfs", "host": "127.0.0.1", "port": port, "login": "me"}
        run(tmp_path, HDFS.replace("{file}", str(tmp_path / "part")), {"webhdfs_default": connection})
    assert files == {"/warehouse/orders/part-0": b"1,2"}


SSH = """
from airflow.providers.sftp.operators.sftp import SFTPOperator
from airflow.providers.sftp.sensors.sftp import SFTPSensor
from airflow.providers.ssh.operators.ssh import SSHOperator

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    command = SSHOperator(task_id="command", ssh_conn_id="host", command="echo {{ ds }} > {folder}/out", cmd_timeout=30)
    put = SFTPOperator(
        task_id="put", ssh_conn_id="host", local_filepath="{folder}/out", remote_filepath="{folder}/copy", operation="put"
    )
    sensor = SFTPSensor(task_id="sensor", sftp_conn_id="sftp", path="{folder}/copy")
    get = SFTPOperator(
        task_id="get", ssh_conn_id="host", local_filepath="{folder}/back", remote_filepath="{folder}/copy", operation="get"
    )
    command >> put >> sensor >> get
"""


@pytest.mark.parametrize("server", ["asyncssh", "sshd"])
def test_ssh_and_sftp(tmp_path: Path, server: str) -> None:
    """A command on an SSH host, and a file that goes there and comes back: with a stand-in, and with OpenSSH's server."""
    installed("airflow.providers.ssh", "airflow.providers.sftp", "asyncssh")
    if server == "sshd" and provider_servers.sshd_program() is None:
        pytest.skip("sshd is not installed: apt-get install openssh-server")
    login = getpass.getuser() if server == "sshd" else "me"
    with (provider_servers.sshd if server == "sshd" else provider_servers.ssh)(tmp_path) as (port, key):
        extra = json.dumps({"key_file": str(key), "no_host_key_check": "true"})
        host = {"conn_type": "ssh", "host": "127.0.0.1", "port": port, "login": login, "extra": extra}
        run(tmp_path, SSH.replace("{folder}", str(tmp_path)), {"host": host, "sftp": {**host, "conn_type": "sftp"}})
    assert (tmp_path / "back").read_text() == "2024-03-05\n"


FTP = """
from airflow.providers.ftp.operators.ftp import FTPFileTransmitOperator
from airflow.providers.ftp.sensors.ftp import FTPSensor

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    put = FTPFileTransmitOperator(
        task_id="put", ftp_conn_id="ftp", local_filepath="{folder}/local", remote_filepath="/remote", operation="put"
    )
    put >> FTPSensor(task_id="sensor", ftp_conn_id="ftp", path="/remote")
"""


def test_ftp(tmp_path: Path) -> None:
    """A file goes to an FTP server."""
    installed("airflow.providers.ftp", "pyftpdlib")
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import ThreadedFTPServer

    (tmp_path / "root").mkdir()
    (tmp_path / "local").write_text("1,2")
    authorizer = DummyAuthorizer()
    authorizer.add_user("me", "secret", str(tmp_path / "root"), perm="elradfmwMT")
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer})
    server = ThreadedFTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        connection = {"conn_type": "ftp", "host": "127.0.0.1", "port": server.address[1], "login": "me", "password": "secret"}
        run(tmp_path, FTP.replace("{folder}", str(tmp_path)), {"ftp": connection})
    finally:
        server.close_all()
    assert (tmp_path / "root" / "remote").read_text() == "1,2"


MAIL = """
from airflow.providers.imap.hooks.imap import ImapHook
from airflow.providers.imap.sensors.imap_attachment import ImapAttachmentSensor
from airflow.providers.smtp.operators.smtp import EmailOperator

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    send = EmailOperator(
        task_id="send", conn_id="smtp_default", from_email="me@example.org", to="you@example.org", subject="on {{ ds }}",
        html_content="x",
    )
    found = ImapAttachmentSensor(task_id="found", conn_id="imap_default", attachment_name="orders.csv")

    @task
    def attachment():
        with ImapHook() as hook:
            assert hook.retrieve_mail_attachments("orders.csv") == [("orders.csv", b"1,2")]

    send >> found >> attachment()
"""


def test_mail(tmp_path: Path) -> None:
    """A mail goes out, and an attachment of another one comes in."""
    installed("airflow.providers.smtp", "airflow.providers.imap", "aiosmtpd")
    from tests.unit.operators.servers import mail_server

    received = EmailMessage()
    received["Subject"] = "orders"
    received.set_content("text")
    received.add_attachment(b"1,2", maintype="text", subtype="csv", filename="orders.csv")
    with mail_server() as out, provider_servers.imap(received.as_bytes()) as port:
        smtp = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": out.port,
            "extra": '{"disable_ssl": true, "disable_tls": true}',
        }
        plain = {
            "conn_type": "imap",
            "host": "127.0.0.1",
            "port": port,
            "login": "me",
            "password": "x",
            "extra": '{"use_ssl": false}',
        }
        run(tmp_path, MAIL, {"smtp_default": smtp, "imap_default": plain})
        assert [str(mail["Subject"]) for _, _, mail in out.mails] == ["on 2024-03-05"]


PODS = """
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator

def pod(task_id, **more):
    given = {"image": "alpine", "cmds": ["sh", "-c"], "get_logs": True, "startup_timeout_seconds": 60, "poll_interval": 1}
    return KubernetesPodOperator(task_id=task_id, name="{{ ds_nodash }}", namespace="jobs", **given, **more)

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    command = 'echo "word $WORD of {{ ds }}"'
    plain = pod("plain", arguments=[command], env_vars={"WORD": "{{ task.task_id }}"}, labels={"team": "etl"})
    mapped = KubernetesPodOperator.partial(task_id="mapped", image="alpine", cmds=["sh", "-c"], namespace="jobs", name="m")
    plain >> mapped.expand(arguments=[["echo first"], ["echo second"]])
    kept = pod("kept", arguments=["true"], on_finish_action="keep_pod")
    deferred = pod("deferred", arguments=[command], env_vars={"WORD": "later"}, deferrable=True)
    failing = pod("failing", arguments=["echo broken pipe; exit 3"])
    failing >> EmptyOperator(task_id="after", trigger_rule="one_failed")
"""


def test_pods_of_kubernetes(tmp_path: Path) -> None:
    """Pods that really run: arguments, logs, mapped, deferred, failed; each is deleted, unless it is to be kept."""
    installed("airflow.providers.cncf.kubernetes", "kubernetes")
    with kubernetes_server.kubernetes() as (pods, config):
        fields = {"conn_type": "kubernetes", "extra": json.dumps({"kube_config": json.dumps(config)})}
        body = f"from airflow.providers.standard.operators.empty import EmptyOperator\n{PODS}"
        found = run(tmp_path, body, {"kubernetes_default": fields}, failed={"failing"})
    assert found["after"] == "success"
    assert sorted(pods.output.values()) == [
        *(b"", b"broken pipe\n", b"first\n", b"second\n", b"word later of 2024-03-05\n", b"word plain of 2024-03-05\n")
    ]
    assert "broken pipe" in (tmp_path / "output").read_text()
    (kept,) = pods.pods.values()
    assert kept["metadata"]["labels"]["task_id"] == "kept"
    assert len(pods.deleted) == 5
    assert "team" in pods.labels["plain"]


STOPPED_POD = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    quick = KubernetesPodOperator(task_id="quick", name="quick", image="alpine", cmds=["echo", "it is done"], namespace="jobs")
    quick >> KubernetesPodOperator(
        task_id="slow", name="slow", image="alpine", cmds=["sleep", "50"], namespace="jobs",
        execution_timeout=timedelta(seconds=5), termination_grace_period=1,
    )
"""


def test_the_pod_of_a_task_that_times_out_is_deleted(tmp_path: Path) -> None:
    """In a real deployment: the task is stopped, and its `on_kill` deletes the pod."""
    installed("airflow.providers.cncf.kubernetes", "kubernetes")
    with kubernetes_server.kubernetes() as (pods, config):
        fields = {"conn_type": "kubernetes", "extra": json.dumps({"kube_config": json.dumps(config)})}
        standalone = Standalone(tmp_path / "home", environment={"AIRFLOW_CONN_KUBERNETES_DEFAULT": json.dumps(fields)})
        standalone.write_dag("d.py", STOPPED_POD)
        try:
            with standalone.started():
                standalone.wait_dag("d", deadline=120)
                standalone.cli("dags", "unpause", "d")
                run_id = standalone.trigger("d")
                assert standalone.wait_run("d", run_id, deadline=120) == "failed"
                assert "it is done" in standalone.cli("tasks", "logs", "d", "quick", run_id)
        finally:
            standalone.close()
        assert [name.partition("-")[0] for name in pods.deleted] == ["quick", "slow"]
        assert not pods.pods


DBT = """
from pathlib import Path
from cosmos import DbtDag, ExecutionConfig, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import InvocationMode, LoadMode

shop, own = Path("{folder}"), InvocationMode.SUBPROCESS
d = DbtDag(
    dag_id="d", start_date=datetime(2024, 1, 1), schedule=None, project_config=ProjectConfig(shop),
    profile_config=ProfileConfig(profile_name="shop", target_name="dev", profiles_yml_filepath=shop / "profiles.yml"),
    execution_config=ExecutionConfig(invocation_mode=own, dbt_executable_path="{dbt}"),
    render_config=RenderConfig(load_method=LoadMode.DBT_LS, invocation_mode=own, dbt_executable_path="{dbt}"),
)
"""
DBT_PROJECT = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodel-paths: [models]\n",
    "profiles.yml": "shop:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: shop.duckdb}\n",
    "models/orders.sql": "select 1 as id",
    "models/totals.sql": "select count(*) as n from {{ ref('orders') }}",
    "models/schema.yml": "models: [{name: orders, columns: [{name: id, data_tests: [unique]}]}]",
}


def test_dbt_with_cosmos(tmp_path: Path) -> None:
    """A project of dbt becomes a DAG: each model is run, and its tests after it."""
    pytest.importorskip("cosmos", reason="astronomer-cosmos is not installed")
    dbt = os.environ.get("DBT_EXECUTABLE") or shutil.which("dbt")
    if dbt is None:
        pytest.skip(
            "dbt is not installed: pip install 'dbt-core<1.11' dbt-duckdb, in an environment of its own ($DBT_EXECUTABLE)"
        )
    for name, text in DBT_PROJECT.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("path: shop.duckdb", f"path: {tmp_path / 'shop.duckdb'}"))
    found = run(tmp_path, DBT.format(folder=tmp_path / "shop", dbt=dbt), {})
    assert set(found) == {"orders.run", "orders.test", "totals_run"}
    assert (tmp_path / "shop.duckdb").stat().st_size


HIVE = """
from airflow.providers.apache.hive.hooks.hive import HiveServer2Hook
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator

with DAG("d", start_date=datetime(2024, 1, 1), schedule=None):
    table = "orders_{{ ds_nodash }}"
    make = SQLExecuteQueryOperator(task_id="make", conn_id="hive", sql=f"create table {table} (id int) stored as parquet")
    put = SQLExecuteQueryOperator(
        task_id="put", conn_id="hive", sql=[f"insert into {table} values (1)", f"insert into {table} values (2)"]
    )

    @task
    def count(ds_nodash=None):
        rows = HiveServer2Hook(hiveserver2_conn_id="hive").get_records(f"select count(*) from orders_{ds_nodash}")
        assert list(rows[0]) == [2], rows

    make >> put >> count()
"""


def test_hive_through_the_thrift_server_of_spark(tmp_path: Path) -> None:
    """Statements of templates on a server that speaks the protocol of HiveServer2."""
    installed("airflow.providers.apache.hive", "pyhive")
    spark = os.environ.get("SPARK_HOME")
    if spark is None or shutil.which("java") is None:
        pytest.skip(
            "Spark or Java is not installed: pip install pyspark, in an environment of its own ($SPARK_HOME: its folder)"
        )
    with provider_servers.hive_server(Path(spark), tmp_path) as port:
        extra = json.dumps({"auth_mechanism": "NONE"})
        fields = {"conn_type": "hiveserver2", "host": "127.0.0.1", "port": port, "login": "me", "schema": "default"}
        run(tmp_path, HIVE, {"hive": {**fields, "extra": extra}})
