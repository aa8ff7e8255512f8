"""Extras of `apache-airflow` (`apache-airflow[celery,postgres]`) and the provider packages behind them.

Source: Provides-Extra of apache-airflow 1.10.15, 2.2.5, 2.11.0 and 3.3.2.
"""

from __future__ import annotations

import re

PROVIDERS = (
    "airbyte",
    "akeyless",
    "alibaba",
    "amazon",
    "apache-beam",
    "apache-cassandra",
    "apache-drill",
    "apache-druid",
    "apache-flink",
    "apache-hdfs",
    "apache-hive",
    "apache-iceberg",
    "apache-impala",
    "apache-kafka",
    "apache-kylin",
    "apache-livy",
    "apache-pig",
    "apache-pinot",
    "apache-spark",
    "apache-sqoop",
    "apache-tinkerpop",
    "apprise",
    "arangodb",
    "asana",
    "atlassian-jira",
    "celery",
    "clickhousedb",
    "cloudant",
    "cncf-kubernetes",
    "cohere",
    "common-ai",
    "common-compat",
    "common-io",
    "common-messaging",
    "common-sql",
    "databricks",
    "datadog",
    "dbt-cloud",
    "dingding",
    "discord",
    "docker",
    "edge3",
    "elasticsearch",
    "exasol",
    "fab",
    "facebook",
    "ftp",
    "git",
    "github",
    "google",
    "grpc",
    "hashicorp",
    "http",
    "imap",
    "influxdb",
    "informatica",
    "jdbc",
    "jenkins",
    "jira",
    "keycloak",
    "microsoft-azure",
    "microsoft-mssql",
    "microsoft-psrp",
    "microsoft-winrm",
    "mongo",
    "mysql",
    "neo4j",
    "odbc",
    "openai",
    "openfaas",
    "openlineage",
    "opensearch",
    "opsgenie",
    "oracle",
    "pagerduty",
    "papermill",
    "pgvector",
    "pinecone",
    "plexus",
    "postgres",
    "presto",
    "qdrant",
    "qubole",
    "redis",
    "salesforce",
    "samba",
    "segment",
    "sendgrid",
    "sftp",
    "singularity",
    "slack",
    "smtp",
    "snowflake",
    "sqlite",
    "ssh",
    "standard",
    "tableau",
    "tabular",
    "telegram",
    "teradata",
    "trino",
    "vertica",
    "vespa",
    "weaviate",
    "yandex",
    "ydb",
    "zendesk",
)
"""Provider packages whose extra has the same name."""

ALIASES = {
    "atlas": (),
    "aws": ("amazon",),
    "aws-api": ("amazon",),
    "azure": ("microsoft-azure",),
    "azure-blob-storage": ("microsoft-azure",),
    "azure-container-instances": ("microsoft-azure",),
    "azure-cosmos": ("microsoft-azure",),
    "azure-data-lake": ("microsoft-azure",),
    "azure-secrets": ("microsoft-azure",),
    "all-dbs": ("common-sql", "mysql", "postgres", "mongo", "apache-hive", "trino"),
    "cassandra": ("apache-cassandra",),
    "dask": ("daskexecutor",),
    "druid": ("apache-druid",),
    "emr": ("amazon",),
    "gcp": ("google",),
    "gcp-api": ("google",),
    "google-auth": (),
    "hdfs": ("apache-hdfs",),
    "hive": ("apache-hive",),
    "kubernetes": ("cncf-kubernetes",),
    "mssql": ("microsoft-mssql",),
    "pinot": ("apache-pinot",),
    "pig": ("apache-pig",),
    "qds": ("qubole",),
    "s3": ("amazon",),
    "spark": ("apache-spark",),
    "sqoop": ("apache-sqoop",),
    "webhdfs": ("apache-hdfs",),
    "apache-webhdfs": ("apache-hdfs",),
    "winrm": ("microsoft-winrm",),
}
"""Other names of extras → provider packages."""

THIRD_PARTY = {
    "aiobotocore": ("aiobotocore",),
    "cloudpickle": ("cloudpickle",),
    "graphviz": ("graphviz",),
    "kerberos": ("pykerberos", "requests-kerberos"),
    "ldap": ("ldap3",),
    "pandas": ("pandas",),
    "polars": ("polars",),
    "s3fs": ("s3fs",),
    "sentry": ("sentry-sdk",),
    "statsd": ("statsd",),
    "virtualenv": ("virtualenv",),
}
"""Extras of Airflow itself that install third-party packages which DAG files use."""

WITHOUT_EFFECT = (
    "all",
    "all-core",
    "all-task-sdk",
    "amazon-aws-auth",
    "apache-atlas",
    "async",
    "cgroups",
    "crypto",
    "deprecated-api",
    "devel",
    "devel-ci",
    "devel-hadoop",
    "doc",
    "github-enterprise",
    "gunicorn",
    "leveldb",
    "memray",
    "otel",
    "password",
    "pydantic",
    "rabbitmq",
    "saml",
    "uv",
)
"""Extras of parts of Airflow that Tradewind contains or does not need."""


def normalized(name: str) -> str:
    """The name of an extra or package as PEP 503 compares it: `apache.hive` → `apache-hive`."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def provider_prefix(airflow_version: str) -> str:
    """The start of a provider package's name: for Airflow 1.10 it is that of the backports."""
    return "apache-airflow-backport-providers-" if airflow_version.startswith("1.") else "apache-airflow-providers-"


def provider_package(name: str, airflow_version: str) -> str | None:
    """The package of a provider named as in `tradewind providers install`, or None when there is none of this name.

    Args:
        name: `postgres`, `apache.hive`, `aws`, or the package's whole name.
    """
    plain = normalized(name)
    if plain.startswith(("apache-airflow-providers-", "apache-airflow-backport-providers-")):
        return plain
    wanted = (plain,) if plain in PROVIDERS else ALIASES.get(plain, ())
    return provider_prefix(airflow_version) + wanted[0] if wanted else None


def requirements_by_extra(airflow_version: str) -> dict[str, tuple[str, ...]]:
    """Extra of a stand-in → its requirements, sorted by name."""
    prefix = provider_prefix(airflow_version)
    found: dict[str, tuple[str, ...]] = {name: (prefix + name,) for name in PROVIDERS}
    found.update({name: tuple(prefix + one for one in wanted) for name, wanted in ALIASES.items()})
    found.update(THIRD_PARTY)
    found.update(dict.fromkeys(WITHOUT_EFFECT, ()))
    return dict(sorted(found.items()))
