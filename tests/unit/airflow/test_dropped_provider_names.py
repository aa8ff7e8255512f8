"""Names that provider packages dropped, with made-up packages of Google, HTTP and Snowflake that have the names of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.airflow import own_process
from tradewind.airflow import dropped_provider_names, names

RECORDING = """
OF_ALL = ("task_id", "dag", "params", "default_args", "task_group")
from airflow.models import BaseOperator
from airflow.sensors.base import BaseSensorOperator


class {name}({base}):
    def __init__(self, **kwargs):
        self.given = {{name: kwargs.pop(name) for name in list(kwargs) if name not in OF_ALL}}
        self.__dict__.update(self.given)
        super().__init__(**kwargs)
"""
PACKAGES = {
    "google/cloud/operators/bigquery.py": ("BigQueryCreateTableOperator", "BigQueryUpdateDatasetOperator"),
    "google/cloud/operators/dataproc.py": ("DataprocSubmitJobOperator", "DataprocUpdateClusterOperator"),
    "google/cloud/sensors/bigquery.py": ("BigQueryTableExistenceSensor", "BigQueryTablePartitionExistenceSensor"),
    "google/cloud/sensors/gcs.py": ("GCSObjectExistenceSensor",),
    "google/cloud/hooks/bigquery.py": ("BigQueryHook",),
    "google/cloud/hooks/gcs.py": ("GCSHook",),
    "http/operators/http.py": ("HttpOperator",),
    "databricks/operators/databricks.py": ("DatabricksRunNowOperator", "DatabricksSubmitRunOperator"),
    "microsoft/azure/sensors/wasb.py": ("WasbBlobSensor",),
    "microsoft/azure/sensors/data_factory.py": ("AzureDataFactoryPipelineRunStatusSensor",),
    "slack/transfers/sql_to_slack_webhook.py": ("SqlToSlackWebhookOperator",),
    "slack/notifications/slack.py": ("SlackNotifier",),
    "ssh/operators/ssh.py": ("SSHOperator",),
    "ssh/hooks/ssh.py": ("SSHHook",),
}


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of provider packages whose operators keep what they are given."""
    files = {}
    for path, classes in PACKAGES.items():
        bases = ("BaseSensorOperator" if name.endswith("Sensor") else "BaseOperator" for name in classes)
        texts = (RECORDING.format(name=name, base=base) for name, base in zip(classes, bases, strict=True))
        files[f"airflow/providers/{path}"] = "".join(texts)
    return own_process.install(tmp_path, files)


def run(packages: Path, code: str) -> None:
    own_process.run(packages, code, "from airflow import DAG\ndag = DAG('d', schedule=None)\n")


def test_a_renamed_class_is_the_class_of_today(packages: Path) -> None:
    run(
        packages,
        "from airflow.providers.http.operators.http import SimpleHttpOperator as old, HttpOperator as new\nassert old is new\n",
    )


def test_a_name_that_never_was_there_is_an_import_error(packages: Path) -> None:
    code = (
        "try: from airflow.providers.http.operators.http import Nothing\nexcept ImportError: pass\nelse: raise SystemExit(1)\n"
    )
    run(packages, code)


def test_tables_and_queries_of_bigquery(packages: Path) -> None:
    run(
        packages,
        """
from airflow.contrib.operators.bigquery_operator import BigQueryOperator
from airflow.providers.google.cloud.operators.bigquery import (
    BigQueryCreateEmptyTableOperator, BigQueryCreateExternalTableOperator, BigQueryPatchDatasetOperator)
table = BigQueryCreateEmptyTableOperator(task_id="table", dag=dag, dataset_id="ds", table_id="t", exists_ok=True,
                                         schema_fields=[{"name": "a"}], view={"query": "select 1"})
assert table.given == {"dataset_id": "ds", "table_id": "t", "if_exists": "ignore",
                       "table_resource": {"schema": {"fields": [{"name": "a"}]}, "view": {"query": "select 1"}}}, table.given
query = BigQueryOperator(task_id="query", dag=dag, bql="select 1", destination_dataset_table="ds.t", use_legacy_sql=False)
job = query.configuration("select 1", "p")["query"]
assert job["destinationTable"] == {"projectId": "p", "datasetId": "ds", "tableId": "t"}, job
assert job["query"] == "select 1" and job["useLegacySql"] is False and job["writeDisposition"] == "WRITE_EMPTY"
external = BigQueryCreateExternalTableOperator(task_id="external", dag=dag, bucket="b", source_objects=["o"],
                                               destination_project_dataset_table="p:ds.t")
resource = external.resource(None, None)
assert resource["tableReference"]["projectId"] == "p"
assert resource["externalDataConfiguration"]["sourceUris"] == ["gs://b/o"]
patch = BigQueryPatchDatasetOperator(task_id="patch", dag=dag, dataset_id="ds", dataset_resource={"labels": {}})
assert patch.given["fields"] == ["labels"]
from tradewind.airflow.compat.dropped_google import table_reference
assert table_reference("p.ds.t", None) == table_reference("p:ds.t", "other")
assert table_reference("p.ds.t", None) == {"projectId": "p", "datasetId": "ds", "tableId": "t"}
try: table_reference("t", None)
except Exception as error: assert "is no table" in str(error)
else: raise SystemExit(1)
""",
    )


def test_jobs_of_dataproc_and_sensors_in_the_triggerer(packages: Path) -> None:
    run(
        packages,
        """
from airflow.contrib.operators.dataproc_operator import DataProcPySparkOperator, DataProcHiveOperator, DataprocClusterScaleOperator
from airflow.providers.google.cloud.sensors.gcs import GCSObjectExistenceAsyncSensor
job = DataProcPySparkOperator(task_id="job", dag=dag, main="gs://b/j.py", arguments=["x"], cluster_name="c",
                              region="r", project_id="p")
assert job.given["job"] == {"placement": {"cluster_name": "c"}, "reference": {"project_id": "p"},
                            "pyspark_job": {"main_python_file_uri": "gs://b/j.py", "args": ["x"]}}, job.given
hive = DataProcHiveOperator(task_id="hive", dag=dag, query="select 1", variables={"a": "1"}, region="r")
assert hive.generate_job()["hive_job"] == {"query_list": {"queries": ["select 1"]}, "script_variables": {"a": "1"}}
scale = DataprocClusterScaleOperator(task_id="scale", dag=dag, cluster_name="c", num_workers=5, graceful_decommission_timeout="10m")
assert scale.given["graceful_decommission_timeout"] == {"seconds": 600}
assert scale.given["cluster"]["config"]["worker_config"] == {"num_instances": 5}
assert GCSObjectExistenceAsyncSensor(task_id="wait", dag=dag, bucket="b", object="o").given["deferrable"] is True
""",
    )


def test_deferrable_versions_are_the_present_classes_with_deferrable(packages: Path) -> None:
    run(
        packages,
        """
from airflow.providers.databricks.operators.databricks import (
    DatabricksRunNowDeferrableOperator, DatabricksRunNowOperator, DatabricksSubmitRunDeferrableOperator)
from airflow.providers.microsoft.azure.sensors.data_factory import AzureDataFactoryPipelineRunStatusAsyncSensor
from airflow.providers.microsoft.azure.sensors.wasb import WasbBlobAsyncSensor
now = DatabricksRunNowDeferrableOperator(task_id="now", dag=dag, job_id=1)
assert isinstance(now, DatabricksRunNowOperator) and now.given == {"deferrable": True, "job_id": 1}, now.given
assert DatabricksSubmitRunDeferrableOperator(task_id="submit", dag=dag, json={}).given["deferrable"] is True
assert WasbBlobAsyncSensor(task_id="blob", dag=dag, blob_name="b").given == {"deferrable": True, "blob_name": "b"}
assert AzureDataFactoryPipelineRunStatusAsyncSensor(task_id="run", dag=dag, run_id="r").given["deferrable"] is True
""",
    )


def test_older_names_of_slack(packages: Path) -> None:
    run(
        packages,
        """
from airflow.providers.slack.notifications.slack import SlackNotifier
from airflow.providers.slack.notifications.slack_notifier import SlackNotifier as Older
from airflow.providers.slack.transfers.sql_to_slack import SqlToSlackOperator
assert Older is SlackNotifier
task = SqlToSlackOperator(task_id="t", dag=dag, sql="select 1", slack_conn_id="ours")
assert task.given == {"slack_webhook_conn_id": "ours", "sql": "select 1"}, task.given
""",
    )


def test_the_operator_for_ssh_of_airflow_1_8(packages: Path) -> None:
    run(
        packages,
        """
from airflow.contrib.hooks import SSHHook
from airflow.contrib.operators import SSHExecuteOperator
from airflow.contrib.operators.ssh_execute_operator import SSHExecuteOperator as Other
from airflow.providers.ssh.hooks import ssh
assert SSHHook is ssh.SSHHook and Other is SSHExecuteOperator
task = SSHExecuteOperator(task_id="t", dag=dag, ssh_hook="hook", bash_command="ls", env={"A": "b"})
assert task.given == {"ssh_hook": "hook", "command": "ls", "environment": {"A": "b"}}, task.given
""",
    )


def test_volumes_of_the_package_of_kubernetes_are_those_of_airflow_1_10() -> None:
    from tradewind.airflow.compat import kubernetes_objects

    home = "airflow.providers.cncf.kubernetes.backcompat"
    for module, name in (("volume", "Volume"), ("volume_mount", "VolumeMount"), ("pod", "Resources")):
        assert names.find(f"{home}.{module}", name) == f"{kubernetes_objects.__name__}:{name}"


def test_an_operator_of_a_service_that_ended_loads_and_its_task_fails(packages: Path) -> None:
    run(
        packages,
        """
from airflow.providers.google.cloud.operators.automl import AutoMLTrainModelOperator
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    task = AutoMLTrainModelOperator(task_id="t", dag=dag, model={"a": 1}, location="here", retries=3)
assert task.retries == 3 and task.dropped_arguments == {"model": {"a": 1}, "location": "here"}
assert any("does not have this operator any more" in str(one.message) for one in seen)
try: task.execute({})
except Exception as error: assert type(error).__name__ == "AirflowFailException" and "AutoMLTrainModelOperator" in str(error)
else: raise SystemExit(1)
""",
    )


def test_operators_of_one_database_whose_package_has_dropped_them(packages: Path) -> None:
    files = {
        "airflow/providers/oracle/operators/oracle.py": "class OracleStoredProcedureOperator: ...",
        "airflow/providers/trino/hooks/trino.py": "class TrinoHook: ...",
        "airflow/providers/elasticsearch/hooks/elasticsearch.py": "class ElasticsearchSQLHook: ...",
    }
    run(
        own_process.install(packages, files),
        """
from airflow.providers.oracle.operators.oracle import OracleOperator, OracleStoredProcedureOperator
from airflow.providers.trino.operators.trino import TrinoOperator
from airflow.providers.elasticsearch.hooks.elasticsearch import ElasticsearchHook, ElasticsearchSQLHook
assert ElasticsearchHook is ElasticsearchSQLHook
one = OracleOperator(task_id="o", sql="select 1 from dual", oracle_conn_id="ora", dag=dag)
other = TrinoOperator(task_id="t", sql="select 1", trino_conn_id="tri", handler=list, dag=dag)
assert (one.conn_id, other.conn_id, other.sql) == ("ora", "tri", "select 1")
""",
    )


def test_hooks_and_sensors_that_the_package_of_hdfs_dropped_load(packages: Path) -> None:
    """Airflow 1.10 had them for the library snakebite, which only Python 2 can use."""
    run(
        own_process.install(
            packages, {f"airflow/providers/apache/hdfs/{name}.py": "" for name in ("hooks/webhdfs", "sensors/web_hdfs")}
        ),
        """
from airflow.hooks.hdfs_hook import HDFSHook
from airflow.operators.sensors import HdfsSensor
from airflow.contrib.sensors.hdfs_sensor import HdfsSensorFolder, HdfsSensorRegex
assert HdfsSensor(task_id="t", filepath="/x", hdfs_conn_id="hdfs", dag=dag).task_id in dag.task_dict
""",
    )


def test_every_dropped_name_has_a_place() -> None:
    for module in dropped_provider_names.modules():
        for name in dropped_provider_names.names_of(module):
            target = names.find(module, name)
            assert target not in (None, f"{module}:{name}"), (module, name)


def test_the_helper_of_the_dropped_automl_hook_works() -> None:
    """Templates of DAG files use it; the hook itself has no service to talk to."""
    from tradewind.airflow.compat.dropped_automl import CloudAutoMLHook
    from tradewind.sdk.exceptions import AirflowFailException

    assert names.provider_target("airflow.providers.google.cloud.hooks.automl", "CloudAutoMLHook") == (
        "tradewind.airflow.compat.dropped_automl:CloudAutoMLHook"
    )
    assert CloudAutoMLHook.extract_object_id({"name": "projects/p/locations/l/datasets/TBL1"}) == "TBL1"
    with pytest.raises(AirflowFailException, match="Use Vertex AI"):
        CloudAutoMLHook()
