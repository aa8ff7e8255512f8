"""The connections that a new database of Airflow has: `tradewind connections create-default-connections` adds them."""

from __future__ import annotations

import os
import tempfile
from typing import Any

_EMR_JOB_FLOW = {
    "Name": "default_job_flow_name",
    "LogUri": "s3://my-emr-log-bucket/default_job_flow_location",
    "ReleaseLabel": "emr-4.6.0",
    "Instances": {
        "Ec2KeyName": "mykey",
        "Ec2SubnetId": "somesubnet",
        "InstanceGroups": [
            {"Name": name, "Market": "ON_DEMAND", "InstanceRole": role, "InstanceType": "r3.2xlarge", "InstanceCount": 1}
            for name, role in (("Master nodes", "MASTER"), ("Core nodes", "CORE"))
        ],
        "TerminationProtected": False,
        "KeepJobFlowAliveWhenNoSteps": False,
    },
    "Applications": [{"Name": "Spark"}],
    "VisibleToAllUsers": True,
    "JobFlowRole": "EMR_EC2_DefaultRole",
    "ServiceRole": "EMR_DefaultRole",
    "Tags": [{"Key": "app", "Value": "analytics"}, {"Key": "environment", "Value": "development"}],
}


def _at(conn_type: str, host: str | None = None, port: int | None = None, **parts: Any) -> dict[str, Any]:
    """The parts of a connection that are set."""
    return {"conn_type": conn_type, **({"host": host} if host is not None else {}), **({"port": port} if port else {}), **parts}


_KEY_FILE = {"key_file": "~/.ssh/id_rsa", "no_host_key_check": True}

DEFAULT_CONNECTIONS: dict[str, dict[str, Any]] = {
    "airflow_db": _at("mysql", "mysql", login="root", password="", schema="airflow"),
    "athena_default": _at("athena"),
    "aws_default": _at("aws"),
    "azure_batch_default": _at("azure_batch", login="<ACCOUNT_NAME>", password="", extra={"account_url": "<ACCOUNT_URL>"}),
    "azure_cosmos_default": _at(
        "azure_cosmos", extra={"database_name": "<DATABASE_NAME>", "collection_name": "<COLLECTION_NAME>"}
    ),
    "azure_data_explorer_default": _at(
        "azure_data_explorer",
        "https://<CLUSTER>.kusto.windows.net",
        extra={
            "auth_method": "<AAD_APP | AAD_APP_CERT | AAD_CREDS | AAD_DEVICE>",
            "tenant": "<TENANT ID>",
            "certificate": "<APPLICATION PEM CERTIFICATE>",
            "thumbprint": "<APPLICATION CERTIFICATE THUMBPRINT>",
        },
    ),
    "azure_data_lake_default": _at("azure_data_lake", extra={"tenant": "<TENANT>", "account_name": "<ACCOUNTNAME>"}),
    "azure_default": _at("azure"),
    "cassandra_default": _at("cassandra", "cassandra", 9042),
    "databricks_default": _at("databricks", "localhost"),
    "dingding_default": _at("http", "", password=""),
    "drill_default": _at("drill", "localhost", 8047, extra={"dialect_driver": "drill+sadrill", "storage_plugin": "dfs"}),
    "druid_broker_default": _at("druid", "druid-broker", 8082, extra={"endpoint": "druid/v2/sql"}),
    "druid_ingest_default": _at("druid", "druid-overlord", 8081, extra={"endpoint": "druid/indexer/v1/task"}),
    "elasticsearch_default": _at("elasticsearch", "localhost", 9200, schema="http"),
    "emr_default": _at("emr", extra=_EMR_JOB_FLOW),
    "facebook_default": _at(
        "facebook_social",
        extra={
            "account_id": "<AD_ACCOUNT_ID>",
            "app_id": "<FACEBOOK_APP_ID>",
            "app_secret": "<FACEBOOK_APP_SECRET>",
            "access_token": "<FACEBOOK_AD_ACCESS_TOKEN>",
        },
    ),
    "fs_default": _at("fs", extra={"path": "/"}),
    "ftp_default": _at("ftp", "localhost", 21, login="airflow", password="airflow", extra=_KEY_FILE),
    "google_cloud_default": _at("google_cloud_platform", schema="default"),
    "gremlin_default": _at("gremlin", "gremlin", 8182),
    "hive_cli_default": _at("hive_cli", "localhost", 10000, schema="default", extra={"use_beeline": True, "auth": ""}),
    "hiveserver2_default": _at("hiveserver2", "localhost", 10000, schema="default"),
    "http_default": _at("http", "https://www.httpbin.org/"),
    "iceberg_default": _at("iceberg", "https://api.iceberg.io/ws/v1"),
    "impala_default": _at("impala", "localhost", 21050),
    "kafka_default": _at("kafka", extra={"bootstrap.servers": "broker:29092", "group.id": "my-group"}),
    "kubernetes_default": _at("kubernetes"),
    "kylin_default": _at("kylin", "localhost", 7070, login="ADMIN", password="KYLIN"),
    "leveldb_default": _at("leveldb", "localhost"),
    "livy_default": _at("livy", "livy", 8998),
    "local_mysql": _at("mysql", "localhost", login="airflow", password="airflow", schema="airflow"),
    "metastore_default": _at("hive_metastore", "localhost", 9083, extra={"authMechanism": "PLAIN"}),
    "mongo_default": _at("mongo", "mongo", 27017),
    "mssql_default": _at("mssql", "localhost", 1433),
    "mysql_default": _at("mysql", "mysql", login="root", schema="airflow"),
    "opensearch_default": _at("opensearch", "localhost", 9200, schema="http"),
    "opsgenie_default": _at("http", "", password=""),
    "oracle_default": _at("oracle", "localhost", 1521, login="root", password="password", schema="schema"),
    "oss_default": _at(
        "oss",
        extra={
            "auth_type": "AK",
            "access_key_id": "<ACCESS_KEY_ID>",
            "access_key_secret": "<ACCESS_KEY_SECRET>",
            "region": "<YOUR_OSS_REGION>",
        },
    ),
    "pig_cli_default": _at("pig_cli", schema="default"),
    "pinot_admin_default": _at("pinot", "localhost", 9000),
    "pinot_broker_default": _at("pinot", "localhost", 9000, extra={"endpoint": "/query", "schema": "http"}),
    "postgres_default": _at("postgres", "postgres", login="postgres", password="airflow", schema="airflow"),
    "presto_default": _at("presto", "localhost", 3400, schema="hive"),
    "qdrant_default": _at("qdrant", "qdrant", 6333),
    "redis_default": _at("redis", "redis", 6379, extra={"db": 0}),
    "redshift_default": _at(
        "redshift",
        extra={
            "iam": True,
            "cluster_identifier": "<REDSHIFT_CLUSTER_IDENTIFIER>",
            "port": 5439,
            "profile": "default",
            "db_user": "awsuser",
            "database": "dev",
            "region": "",
        },
    ),
    "salesforce_default": _at("salesforce", login="username", password="password", extra={"security_token": "security_token"}),
    "segment_default": _at("segment", extra={"write_key": "my-segment-write-key"}),
    "sftp_default": _at("sftp", "localhost", 22, login="airflow", extra=_KEY_FILE),
    "spark_default": _at("spark", "yarn", extra={"queue": "root.default"}),
    "sqlite_default": _at("sqlite", os.path.join(tempfile.gettempdir(), "sqlite_default.db")),
    "ssh_default": _at("ssh", "localhost"),
    "tableau_default": _at(
        "tableau", "https://tableau.server.url", login="user", password="password", extra={"site_id": "my_site"}
    ),
    "teradata_default": _at("teradata", "localhost", login="user", password="password", schema="schema"),
    "trino_default": _at("trino", "localhost", 3400, schema="hive"),
    "vertica_default": _at("vertica", "localhost", 5433),
    "wasb_default": _at("wasb", extra={"sas_token": None}),
    "webhdfs_default": _at("hdfs", "localhost", 50070),
    "yandexcloud_default": _at("yandexcloud", schema="default"),
    "ydb_default": _at("ydb", "grpc://localhost", 2135, extra={"database": "/local"}),
}
"""Connection id → its parts."""
