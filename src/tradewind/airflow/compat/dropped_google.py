"""Operators and sensors that the provider package of Google dropped, built on its present operators."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow.providers.google.cloud.hooks.bigquery import BigQueryHook
from airflow.providers.google.cloud.hooks.gcs import GCSHook
from airflow.providers.google.cloud.operators.bigquery import (
    BigQueryCreateTableOperator,
    BigQueryUpdateDatasetOperator,
)
from airflow.providers.google.cloud.operators.dataproc import (
    DataprocSubmitJobOperator,
    DataprocUpdateClusterOperator,
)
from airflow.providers.google.cloud.sensors.bigquery import (
    BigQueryTableExistenceSensor,
    BigQueryTablePartitionExistenceSensor,
)
from airflow.providers.google.cloud.sensors.gcs import GCSObjectExistenceSensor

from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator

__all__ = [
    "BigQueryCreateEmptyTableOperator",
    "BigQueryCreateExternalTableOperator",
    "BigQueryExecuteQueryOperator",
    "BigQueryPatchDatasetOperator",
    "BigQueryTableExistenceAsyncSensor",
    "BigQueryTableExistencePartitionAsyncSensor",
    "DataprocScaleClusterOperator",
    "DataprocSubmitHadoopJobOperator",
    "DataprocSubmitHiveJobOperator",
    "DataprocSubmitPigJobOperator",
    "DataprocSubmitPySparkJobOperator",
    "DataprocSubmitSparkJobOperator",
    "DataprocSubmitSparkSqlJobOperator",
    "GCSObjectExistenceAsyncSensor",
]


def given(**values: Any) -> dict[str, Any]:
    """The arguments that are neither None nor empty."""
    return {name: value for name, value in values.items() if value not in (None, {}, [], "")}


# --- BigQuery ---------------------------------------------------------------------------------------------------------


class BigQueryExecuteQueryOperator(BaseOperator):
    """Runs one query or several, and pushes the job id (a list of them for several) under the key `job_id`."""

    template_fields = ("sql", "destination_dataset_table", "labels", "query_params", "impersonation_chain")
    template_ext: Sequence[str] = (".sql",)
    ui_color = "#A5B0C4"

    def __init__(
        self,
        *,
        sql: str | Iterable[str],
        destination_dataset_table: str | None = None,
        write_disposition: str = "WRITE_EMPTY",
        allow_large_results: bool = False,
        flatten_results: bool | None = None,
        gcp_conn_id: str = "google_cloud_default",
        delegate_to: str | None = None,
        udf_config: list[Any] | None = None,
        use_legacy_sql: bool = True,
        maximum_billing_tier: int | None = None,
        maximum_bytes_billed: float | None = None,
        create_disposition: str = "CREATE_IF_NEEDED",
        schema_update_options: Iterable[str] | None = None,
        query_params: list[Any] | None = None,
        labels: dict[str, str] | None = None,
        priority: str = "INTERACTIVE",
        time_partitioning: dict[str, Any] | None = None,
        api_resource_configs: dict[str, Any] | None = None,
        cluster_fields: list[str] | None = None,
        location: str | None = None,
        encryption_configuration: dict[str, Any] | None = None,
        impersonation_chain: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.destination_dataset_table = destination_dataset_table
        self.write_disposition = write_disposition
        self.create_disposition = create_disposition
        self.allow_large_results = allow_large_results
        self.flatten_results = flatten_results
        self.gcp_conn_id = gcp_conn_id
        self.delegate_to = delegate_to
        self.udf_config = udf_config
        self.use_legacy_sql = use_legacy_sql
        self.maximum_billing_tier = maximum_billing_tier
        self.maximum_bytes_billed = maximum_bytes_billed
        self.schema_update_options = list(schema_update_options or [])
        self.query_params = query_params
        self.labels = labels
        self.priority = priority
        self.time_partitioning = time_partitioning
        self.api_resource_configs = api_resource_configs
        self.cluster_fields = cluster_fields
        self.location = location
        self.encryption_configuration = encryption_configuration
        self.impersonation_chain = impersonation_chain
        self._hook: Any = None
        self._job: Any = None

    def configuration(self, sql: str, project: str | None) -> dict[str, Any]:
        """The job of one query, as BigQuery's API describes it."""
        configs = dict(self.api_resource_configs or {})
        query = {
            "query": sql,
            "priority": self.priority,
            "useLegacySql": self.use_legacy_sql,
            **given(
                queryParameters=self.query_params,
                userDefinedFunctionResources=self.udf_config,
                maximumBillingTier=self.maximum_billing_tier,
                timePartitioning=self.time_partitioning,
                schemaUpdateOptions=self.schema_update_options,
                destinationEncryptionConfiguration=self.encryption_configuration,
                flattenResults=self.flatten_results,
            ),
        }
        if self.maximum_bytes_billed is not None:
            query["maximumBytesBilled"] = str(int(self.maximum_bytes_billed))
        if self.cluster_fields:
            query["clustering"] = {"fields": self.cluster_fields}
        if self.destination_dataset_table:
            query["destinationTable"] = table_reference(self.destination_dataset_table, project)
            query["writeDisposition"] = self.write_disposition
            query["createDisposition"] = self.create_disposition
            query["allowLargeResults"] = self.allow_large_results
        query.update(configs.pop("query", {}))
        return {"query": query, **given(labels=self.labels), **configs}

    def execute(self, context: Any) -> None:
        """Run the queries, one after the other."""
        self._hook = BigQueryHook(
            gcp_conn_id=self.gcp_conn_id, location=self.location, impersonation_chain=self.impersonation_chain
        )
        queries = [self.sql] if isinstance(self.sql, str) else list(self.sql)
        jobs = []
        for sql in queries:
            self.log.info("Executing: %s", sql)
            self._job = self._hook.insert_job(
                configuration=self.configuration(sql, self._hook.project_id),
                project_id=self._hook.project_id,
                location=self.location,
            )
            jobs.append(self._job.job_id)
        context["ti"].xcom_push(key="job_id", value=jobs[0] if isinstance(self.sql, str) else jobs)

    def on_kill(self) -> None:
        """Cancel the running query."""
        if self._hook is not None and self._job is not None:
            self._hook.cancel_job(job_id=self._job.job_id, location=self._job.location)


def table_reference(table: str, project: str | None) -> dict[str, str]:
    """`project:dataset.table`, `project.dataset.table` or `dataset.table` as BigQuery's API names a table.

    Raises: AirflowException: the text has none of these forms.
    """
    parts = re.split(r"[.:](?=[^.:]+[.:])|[.](?=[^.:]+$)", table)
    if len(parts) == 2 and project:
        parts = [project, *parts]
    if len(parts) != 3:
        raise AirflowException(
            f"{table!r} is no table; expected project.dataset.table, or dataset.table with a project in the connection"
        )
    return dict(zip(("projectId", "datasetId", "tableId"), parts, strict=True))


class BigQueryCreateEmptyTableOperator(BigQueryCreateTableOperator):  # type: ignore[misc]
    """Creates a table or view from single arguments; `BigQueryCreateTableOperator` takes them as `table_resource`."""

    def __init__(
        self,
        *,
        table_resource: dict[str, Any] | None = None,
        schema_fields: list[Any] | None = None,
        time_partitioning: dict[str, Any] | None = None,
        cluster_fields: list[str] | None = None,
        labels: dict[str, str] | None = None,
        view: dict[str, Any] | None = None,
        materialized_view: dict[str, Any] | None = None,
        encryption_configuration: dict[str, Any] | None = None,
        delegate_to: str | None = None,
        exists_ok: bool = False,
        **kwargs: Any,
    ) -> None:
        resource = table_resource or given(
            schema=given(fields=schema_fields),
            timePartitioning=time_partitioning,
            clustering=given(fields=cluster_fields),
            labels=labels,
            view=view,
            materializedView=materialized_view,
            encryptionConfiguration=encryption_configuration,
        )
        super().__init__(table_resource=resource, if_exists="ignore" if exists_ok else "log", **kwargs)
        self.schema_fields = schema_fields
        self.delegate_to = delegate_to


class BigQueryCreateExternalTableOperator(BaseOperator):
    """Creates a table over files in Cloud Storage."""

    template_fields = (
        "bucket",
        "source_objects",
        "schema_object",
        "destination_project_dataset_table",
        "labels",
        "table_resource",
    )

    def __init__(
        self,
        *,
        bucket: str = "",
        source_objects: list[str] | None = None,
        destination_project_dataset_table: str = "",
        table_resource: dict[str, Any] | None = None,
        schema_fields: list[Any] | None = None,
        schema_object: str | None = None,
        source_format: str = "CSV",
        autodetect: bool = False,
        compression: str = "NONE",
        skip_leading_rows: int = 0,
        field_delimiter: str = ",",
        max_bad_records: int = 0,
        quote_character: str | None = None,
        allow_quoted_newlines: bool = False,
        allow_jagged_rows: bool = False,
        gcp_conn_id: str = "google_cloud_default",
        google_cloud_storage_conn_id: str = "google_cloud_default",
        delegate_to: str | None = None,
        src_fmt_configs: dict[str, Any] | None = None,
        labels: dict[str, str] | None = None,
        encryption_configuration: dict[str, Any] | None = None,
        location: str | None = None,
        impersonation_chain: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not table_resource and not (bucket and source_objects and destination_project_dataset_table):
            raise ValueError("give table_resource, or bucket, source_objects and destination_project_dataset_table")
        self.bucket = bucket
        self.source_objects = source_objects or []
        self.destination_project_dataset_table = destination_project_dataset_table
        self.table_resource = table_resource
        self.schema_fields = schema_fields
        self.schema_object = schema_object
        self.labels = labels
        self.gcp_conn_id = gcp_conn_id
        self.google_cloud_storage_conn_id = google_cloud_storage_conn_id
        self.delegate_to = delegate_to
        self.location = location
        self.encryption_configuration = encryption_configuration
        self.impersonation_chain = impersonation_chain
        self.external = {
            "sourceFormat": source_format,
            "autodetect": autodetect,
            "compression": compression,
            "maxBadRecords": max_bad_records,
        }
        self.options = {
            "fieldDelimiter": field_delimiter,
            "skipLeadingRows": skip_leading_rows,
            "allowQuotedNewlines": allow_quoted_newlines,
            "allowJaggedRows": allow_jagged_rows,
            **given(quote=quote_character),
            **(src_fmt_configs or {}),
        }

    def resource(self, project: str | None, fields: list[Any] | None) -> dict[str, Any]:
        """The table, as BigQuery's API describes it."""
        external: dict[str, Any] = {
            **self.external,
            "sourceUris": [f"gs://{self.bucket}/{name}" for name in self.source_objects],
        }
        if self.external["sourceFormat"] == "CSV":
            external["csvOptions"] = self.options
        return {
            "tableReference": table_reference(self.destination_project_dataset_table, project),
            "externalDataConfiguration": external,
            **given(
                labels=self.labels,
                schema=given(fields=fields),
                location=self.location,
                encryptionConfiguration=self.encryption_configuration,
            ),
        }

    def execute(self, context: Any) -> None:
        """Create the table."""
        hook = BigQueryHook(gcp_conn_id=self.gcp_conn_id, location=self.location, impersonation_chain=self.impersonation_chain)
        resource = self.table_resource
        if not resource:
            fields = self.schema_fields
            if not fields and self.schema_object and self.external["sourceFormat"] != "DATASTORE_BACKUP":
                files = GCSHook(gcp_conn_id=self.google_cloud_storage_conn_id, impersonation_chain=self.impersonation_chain)
                fields = json.loads(files.download(self.bucket, self.schema_object).decode())
            resource = self.resource(hook.project_id, fields)
        named = resource["tableReference"]
        hook.create_table(
            project_id=named["projectId"], dataset_id=named["datasetId"], table_id=named["tableId"], table_resource=resource
        )


class BigQueryPatchDatasetOperator(BigQueryUpdateDatasetOperator):  # type: ignore[misc]
    """Changes the given fields of a dataset."""

    def __init__(self, *, dataset_resource: dict[str, Any], delegate_to: str | None = None, **kwargs: Any) -> None:
        super().__init__(dataset_resource=dataset_resource, fields=list(dataset_resource), **kwargs)
        self.delegate_to = delegate_to


class BigQueryTableExistenceAsyncSensor(BigQueryTableExistenceSensor):  # type: ignore[misc]
    """Waits for a table in the triggerer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})


class BigQueryTableExistencePartitionAsyncSensor(BigQueryTablePartitionExistenceSensor):  # type: ignore[misc]
    """Waits for a partition of a table in the triggerer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})


class GCSObjectExistenceAsyncSensor(GCSObjectExistenceSensor):  # type: ignore[misc]
    """Waits for an object in the triggerer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})


# --- Dataproc ---------------------------------------------------------------------------------------------------------


class DataprocJob(DataprocSubmitJobOperator):  # type: ignore[misc]
    """Base of the operators of one type of job: their arguments become the `job` of `DataprocSubmitJobOperator`."""

    job_type = ""

    def __init__(
        self,
        *,
        region: str = "global",
        cluster_name: str = "cluster-1",
        project_id: str | None = None,
        job_name: str = "",
        dataproc_properties: dict[str, str] | None = None,
        dataproc_jars: list[str] | None = None,
        labels: dict[str, str] | None = None,
        delegate_to: str | None = None,
        job_error_states: Iterable[str] | None = None,
        details: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        body = {**given(properties=dataproc_properties, jar_file_uris=dataproc_jars), **(details or {})}
        job = {
            "placement": {"cluster_name": cluster_name},
            self.job_type: body,
            **given(reference=given(project_id=project_id), labels=labels),
        }
        super().__init__(job=job, region=region, **given(project_id=project_id), **kwargs)
        self.cluster_name = cluster_name
        self.job_name = job_name
        self.delegate_to = delegate_to
        self.job_error_states = set(job_error_states or {"ERROR"})

    def generate_job(self) -> dict[str, Any]:
        """The job as `DataprocSubmitJobOperator` takes it."""
        return dict(self.job)


class _Query(DataprocJob):
    """A job that runs a query, given as text or as the URI of a file."""

    def __init__(
        self, *, query: str | None = None, query_uri: str | None = None, variables: dict[str, str] | None = None, **kwargs: Any
    ) -> None:
        if (query is None) == (query_uri is None):
            raise AirflowException("give either query or query_uri")
        source = {"query_list": {"queries": [query]}} if query is not None else {"query_file_uri": query_uri}
        super().__init__(details={**source, **given(script_variables=variables)}, **kwargs)


class DataprocSubmitPigJobOperator(_Query):
    """Runs Pig."""

    job_type = "pig_job"


class DataprocSubmitHiveJobOperator(_Query):
    """Runs Hive."""

    job_type = "hive_job"


class DataprocSubmitSparkSqlJobOperator(_Query):
    """Runs Spark SQL."""

    job_type = "spark_sql_job"


class _Main(DataprocJob):
    """A job that runs a class or a JAR."""

    def __init__(
        self,
        *,
        main_jar: str | None = None,
        main_class: str | None = None,
        arguments: list[str] | None = None,
        archives: list[str] | None = None,
        files: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        if (main_jar is None) == (main_class is None):
            raise AirflowException("give either main_jar or main_class")
        details = given(
            main_jar_file_uri=main_jar, main_class=main_class, args=arguments, archive_uris=archives, file_uris=files
        )
        super().__init__(details=details, **kwargs)


class DataprocSubmitSparkJobOperator(_Main):
    """Runs Spark."""

    job_type = "spark_job"


class DataprocSubmitHadoopJobOperator(_Main):
    """Runs Hadoop."""

    job_type = "hadoop_job"


class DataprocSubmitPySparkJobOperator(DataprocJob):
    """Runs PySpark.

    Args:
        main: URI of the Python file, such as `gs://bucket/job.py`. A file of this machine is refused when the task runs.
    """

    job_type = "pyspark_job"

    def __init__(
        self,
        *,
        main: str,
        arguments: list[str] | None = None,
        archives: list[str] | None = None,
        pyfiles: list[str] | None = None,
        files: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        details = {
            "main_python_file_uri": main,
            **given(args=arguments, archive_uris=archives, python_file_uris=pyfiles, file_uris=files),
        }
        super().__init__(details=details, **kwargs)

    def execute(self, context: Any) -> Any:
        """Submit the job.

        Raises:
            AirflowException: `main` is a file of this machine, which Dataproc cannot read.
        """
        main = self.job[self.job_type]["main_python_file_uri"]
        if os.path.isfile(main):
            raise AirflowException(f"main is the local file {main}; upload it to a bucket first and give main='gs://…'")
        return super().execute(context)


class DataprocScaleClusterOperator(DataprocUpdateClusterOperator):  # type: ignore[misc]
    """Changes the number of workers of a cluster."""

    def __init__(
        self,
        *,
        region: str = "global",
        num_workers: int = 2,
        num_preemptible_workers: int = 0,
        graceful_decommission_timeout: str | None = None,
        **kwargs: Any,
    ) -> None:
        cluster = {
            "config": {
                "worker_config": {"num_instances": num_workers},
                "secondary_worker_config": {"num_instances": num_preemptible_workers},
            }
        }
        super().__init__(
            region=region,
            cluster=cluster,
            update_mask={"paths": ["config.worker_config.num_instances", "config.secondary_worker_config.num_instances"]},
            graceful_decommission_timeout={"seconds": seconds(graceful_decommission_timeout)},
            **kwargs,
        )


def seconds(text: str | None) -> int:
    """Convert a text such as `10m` to seconds; 0 for None.

    Raises: AirflowException: the text is not a number with s, m, h or d.
    """
    if not text:
        return 0
    found = re.fullmatch(r"(\d+)([smdh])", text)
    if found is None:
        raise AirflowException(
            f"graceful_decommission_timeout is {text!r}; expected a number and a unit, such as 30s, 10m, 4h or 1d"
        )
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
