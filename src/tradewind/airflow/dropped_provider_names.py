"""Names that the provider packages of today do not have any more, although the module may still be there.

Files for Airflow 1 and 2 import them: `SimpleHttpOperator`, `BigQueryCreateEmptyTableOperator`. They are served only if the
installed package does not have the name.

Each line: the module below `airflow.providers`, where the names come from, and the names, which may be on indented lines of
their own. Names come from a module below `airflow.providers` (written `old=new` if they have another name there), from `@module` in
`airflow.compat` here, or from nowhere (`-`): then an operator or sensor can be created, so that the DAG loads and shows its graph;
its task fails with a message, and the DAG has a warning. Source: the classes of the provider packages of 2021 to 2025 that the
packages of November 2026 do not have.
"""

from __future__ import annotations

import functools

_TABLE = """\
amazon.aws.hooks.athena amazon.aws.hooks.athena AWSAthenaHook=AthenaHook
amazon.aws.hooks.aws_dynamodb amazon.aws.hooks.dynamodb AwsDynamoDBHook=DynamoDBHook
amazon.aws.hooks.batch_client amazon.aws.hooks.batch_client AwsBatchClientHook=BatchClientHook AwsBatchProtocol=BatchProtocol
amazon.aws.hooks.batch_waiters amazon.aws.hooks.batch_waiters AwsBatchWaitersHook=BatchWaitersHook
amazon.aws.hooks.cloud_formation amazon.aws.hooks.cloud_formation AWSCloudFormationHook=CloudFormationHook
amazon.aws.hooks.datasync amazon.aws.hooks.datasync AWSDataSyncHook=DataSyncHook
amazon.aws.hooks.dynamodb amazon.aws.hooks.dynamodb AwsDynamoDBHook=DynamoDBHook
amazon.aws.hooks.eks amazon.aws.hooks.eks EKSHook=EksHook
amazon.aws.hooks.glue amazon.aws.hooks.glue AwsGlueJobHook=GlueJobHook
amazon.aws.hooks.glue_catalog amazon.aws.hooks.glue_catalog AwsGlueCatalogHook=GlueCatalogHook
amazon.aws.hooks.glue_crawler amazon.aws.hooks.glue_crawler AwsGlueCrawlerHook=GlueCrawlerHook
amazon.aws.hooks.kinesis amazon.aws.hooks.kinesis AwsFirehoseHook=FirehoseHook
amazon.aws.hooks.lambda_function amazon.aws.hooks.lambda_function AwsLambdaHook=LambdaHook
amazon.aws.hooks.ses amazon.aws.hooks.ses SESHook=SesHook
amazon.aws.hooks.sns amazon.aws.hooks.sns AwsSnsHook=SnsHook
amazon.aws.hooks.sqs amazon.aws.hooks.sqs SQSHook=SqsHook
amazon.aws.operators.athena amazon.aws.operators.athena AWSAthenaOperator=AthenaOperator
amazon.aws.operators.batch amazon.aws.operators.batch AwsBatchOperator=BatchOperator
amazon.aws.operators.datasync amazon.aws.operators.datasync AWSDataSyncOperator=DataSyncOperator
amazon.aws.operators.ecs amazon.aws.operators.ecs ECSOperator=EcsRunTaskOperator EcsOperator=EcsRunTaskOperator
amazon.aws.operators.eks amazon.aws.operators.eks
    EKSCreateClusterOperator=EksCreateClusterOperator EKSCreateNodegroupOperator=EksCreateNodegroupOperator
    EKSDeleteClusterOperator=EksDeleteClusterOperator EKSDeleteNodegroupOperator=EksDeleteNodegroupOperator
    EKSCreateFargateProfileOperator=EksCreateFargateProfileOperator
    EKSDeleteFargateProfileOperator=EksDeleteFargateProfileOperator
    EKSPodOperator=EksPodOperator
amazon.aws.operators.glue amazon.aws.operators.glue AwsGlueJobOperator=GlueJobOperator
amazon.aws.operators.glue_crawler amazon.aws.operators.glue_crawler AwsGlueCrawlerOperator=GlueCrawlerOperator
amazon.aws.operators.lambda_function amazon.aws.operators.lambda_function
    AwsLambdaInvokeFunctionOperator=LambdaInvokeFunctionOperator
amazon.aws.operators.redshift @sql_operators RedshiftSQLOperator
amazon.aws.operators.redshift_sql @sql_operators RedshiftSQLOperator
amazon.aws.operators.sagemaker_base amazon.aws.operators.sagemaker SageMakerBaseOperator
amazon.aws.operators.sqs amazon.aws.operators.sqs SQSPublishOperator=SqsPublishOperator
amazon.aws.sensors.dms_task amazon.aws.sensors.dms DmsTaskBaseSensor
amazon.aws.sensors.eks amazon.aws.sensors.eks EKSClusterStateSensor=EksClusterStateSensor
    EKSFargateProfileStateSensor=EksFargateProfileStateSensor
    EKSNodegroupStateSensor=EksNodegroupStateSensor
amazon.aws.sensors.emr_base amazon.aws.sensors.emr EmrBaseSensor
amazon.aws.sensors.glue amazon.aws.sensors.glue AwsGlueJobSensor=GlueJobSensor
amazon.aws.sensors.glue_catalog_partition amazon.aws.sensors.glue_catalog_partition
    AwsGlueCatalogPartitionSensor=GlueCatalogPartitionSensor
amazon.aws.sensors.glue_crawler amazon.aws.sensors.glue_crawler AwsGlueCrawlerSensor=GlueCrawlerSensor
amazon.aws.sensors.redshift amazon.aws.sensors.redshift_cluster AwsRedshiftClusterSensor=RedshiftClusterSensor
amazon.aws.sensors.s3 @dropped_amazon S3KeySizeSensor S3PrefixSensor
amazon.aws.sensors.s3_key @dropped_amazon S3KeySizeSensor
amazon.aws.sensors.s3_prefix @dropped_amazon S3PrefixSensor
amazon.aws.sensors.sagemaker_base amazon.aws.sensors.sagemaker SageMakerBaseSensor
amazon.aws.sensors.sqs amazon.aws.sensors.sqs SQSSensor=SqsSensor
amazon.aws.transfers.mysql_to_s3 @dropped_mysql_to_s3 MySQLToS3Operator
apache.druid.operators.druid_check common.sql.operators.sql DruidCheckOperator=SQLCheckOperator
apache.hdfs.hooks.hdfs - HDFSHook HDFSHookException
apache.hdfs.sensors.hdfs - HdfsFolderSensor HdfsRegexSensor HdfsSensor
cncf.kubernetes.backcompat.pod @kubernetes_objects Port Resources
cncf.kubernetes.backcompat.pod_runtime_info_env @kubernetes_objects PodRuntimeInfoEnv
cncf.kubernetes.backcompat.volume @kubernetes_objects Volume
cncf.kubernetes.backcompat.volume_mount @kubernetes_objects VolumeMount
cncf.kubernetes.kubernetes_helper_functions cncf.kubernetes.kubernetes_helper_functions create_pod_id=create_unique_id
cncf.kubernetes.operators.kubernetes_pod cncf.kubernetes.operators.pod PodReattachFailure
cncf.kubernetes.pod_generator_deprecated cncf.kubernetes.pod_generator PodGenerator make_safe_label_value
cncf.kubernetes.pod_launcher_deprecated cncf.kubernetes.utils.pod_manager PodLauncher=PodManager
cncf.kubernetes.utils.pod_launcher cncf.kubernetes.utils.pod_manager PodLauncher=PodManager
databricks.operators.databricks @dropped_databricks
    DatabricksRunNowDeferrableOperator DatabricksSubmitRunDeferrableOperator
elasticsearch.hooks.elasticsearch elasticsearch.hooks.elasticsearch ElasticsearchHook=ElasticsearchSQLHook
google.cloud.hooks.automl @dropped_automl CloudAutoMLHook
google.cloud.hooks.datacatalog - CloudDataCatalogHook
google.cloud.hooks.datapipeline - DataPipelineHook
google.cloud.hooks.kubernetes_engine google.cloud.hooks.kubernetes_engine
    GKECustomResourceHook=GKEKubernetesHook GKEDeploymentHook=GKEKubernetesHook GKEJobHook=GKEKubernetesHook
    GKEPodAsyncHook=GKEKubernetesAsyncHook GKEPodHook=GKEKubernetesHook
google.cloud.hooks.life_sciences - LifeSciencesHook
google.cloud.hooks.mlengine - MLEngineAsyncHook MLEngineHook
google.cloud.hooks.secret_manager google.cloud.hooks.secret_manager SecretsManagerHook=GoogleCloudSecretManagerHook
google.cloud.operators.automl -
    AutoMLBatchPredictOperator AutoMLCreateDatasetOperator AutoMLDeleteDatasetOperator AutoMLDeleteModelOperator
    AutoMLDeployModelOperator AutoMLGetModelOperator AutoMLImportDataOperator AutoMLListDatasetOperator
    AutoMLPredictOperator AutoMLTablesListColumnSpecsOperator AutoMLTablesListTableSpecsOperator
    AutoMLTablesUpdateDatasetOperator AutoMLTrainModelOperator
google.cloud.operators.bigquery @dropped_google
    BigQueryCreateEmptyTableOperator BigQueryCreateExternalTableOperator BigQueryExecuteQueryOperator
    BigQueryPatchDatasetOperator
google.cloud.operators.bigquery - BigQueryConsoleIndexableLink BigQueryConsoleLink
google.cloud.operators.datacatalog -
    CloudDataCatalogCreateEntryGroupOperator CloudDataCatalogCreateEntryOperator CloudDataCatalogCreateTagOperator
    CloudDataCatalogCreateTagTemplateFieldOperator CloudDataCatalogCreateTagTemplateOperator
    CloudDataCatalogDeleteEntryGroupOperator CloudDataCatalogDeleteEntryOperator CloudDataCatalogDeleteTagOperator
    CloudDataCatalogDeleteTagTemplateFieldOperator CloudDataCatalogDeleteTagTemplateOperator
    CloudDataCatalogGetEntryGroupOperator CloudDataCatalogGetEntryOperator CloudDataCatalogGetTagTemplateOperator
    CloudDataCatalogListTagsOperator CloudDataCatalogLookupEntryOperator
    CloudDataCatalogRenameTagTemplateFieldOperator CloudDataCatalogSearchCatalogOperator
    CloudDataCatalogUpdateEntryOperator CloudDataCatalogUpdateTagOperator
    CloudDataCatalogUpdateTagTemplateFieldOperator CloudDataCatalogUpdateTagTemplateOperator
google.cloud.operators.dataflow - DataflowCreateJavaJobOperator DataflowCreatePythonJobOperator DataflowStartSqlJobOperator
google.cloud.operators.datapipeline - CreateDataPipelineOperator RunDataPipelineOperator
google.cloud.operators.dataproc @dropped_google
    DataprocScaleClusterOperator DataprocSubmitHadoopJobOperator DataprocSubmitHiveJobOperator
    DataprocSubmitPigJobOperator DataprocSubmitPySparkJobOperator DataprocSubmitSparkJobOperator
    DataprocSubmitSparkSqlJobOperator
google.cloud.operators.life_sciences - LifeSciencesRunPipelineOperator
google.cloud.operators.mlengine -
    MLEngineCreateModelOperator MLEngineCreateVersionOperator MLEngineDeleteModelOperator MLEngineDeleteVersionOperator
    MLEngineGetModelOperator MLEngineListVersionsOperator MLEngineManageModelOperator MLEngineManageVersionOperator
    MLEngineSetDefaultVersionOperator MLEngineStartBatchPredictionJobOperator MLEngineStartTrainingJobOperator
    MLEngineTrainingCancelJobOperator
google.cloud.operators.vertex_ai.auto_ml - CreateAutoMLTextTrainingJobOperator CreateAutoMLVideoTrainingJobOperator
google.cloud.operators.vertex_ai.generative_model -
    CountTokensOperator CreateCachedContentOperator GenerateFromCachedContentOperator GenerateTextEmbeddingsOperator
    SupervisedFineTuningTrainOperator
    GenerativeModelGenerateContentOperator PromptLanguageModelOperator PromptMultimodalModelOperator
    PromptMultimodalModelWithMediaOperator TextEmbeddingModelGetEmbeddingsOperator TextGenerationModelPredictOperator
google.cloud.utils.mlengine_operator_utils @dropped_mlengine create_evaluate_ops
google.cloud.sensors.bigquery @dropped_google BigQueryTableExistenceAsyncSensor BigQueryTableExistencePartitionAsyncSensor
google.cloud.sensors.cloud_composer - CloudComposerEnvironmentSensor
google.cloud.sensors.gcs google.cloud.sensors.gcs
    GCSObjectsWtihPrefixExistenceSensor=GCSObjectsWithPrefixExistenceSensor
google.cloud.sensors.gcs @dropped_google GCSObjectExistenceAsyncSensor
google.marketing_platform.hooks.analytics - GoogleAnalyticsHook
google.marketing_platform.operators.analytics -
    GoogleAnalyticsDataImportUploadOperator GoogleAnalyticsDeletePreviousDataUploadsOperator
    GoogleAnalyticsGetAdsLinkOperator GoogleAnalyticsListAccountsOperator
    GoogleAnalyticsModifyFileHeadersDataImportOperator GoogleAnalyticsRetrieveAdsLinksListOperator
google.marketing_platform.operators.display_video -
    GoogleDisplayVideo360CreateReportOperator GoogleDisplayVideo360DeleteReportOperator
    GoogleDisplayVideo360DownloadLineItemsOperator GoogleDisplayVideo360DownloadReportOperator
    GoogleDisplayVideo360RunReportOperator GoogleDisplayVideo360UploadLineItemsOperator
    GoogleDisplayVideo360CreateQueryOperator GoogleDisplayVideo360DownloadReportV2Operator
    GoogleDisplayVideo360RunQueryOperator
google.marketing_platform.operators.search_ads - GoogleSearchAdsDownloadReportOperator GoogleSearchAdsInsertReportOperator
google.marketing_platform.sensors.display_video - GoogleDisplayVideo360ReportSensor GoogleDisplayVideo360RunQuerySensor
google.marketing_platform.sensors.search_ads - GoogleSearchAdsReportSensor
http.operators.http http.operators.http SimpleHttpOperator=HttpOperator
microsoft.azure.sensors.data_factory @dropped_azure AzureDataFactoryPipelineRunStatusAsyncSensor
microsoft.azure.sensors.wasb @dropped_azure WasbBlobAsyncSensor
microsoft.azure.transfers.azure_blob_to_gcs google.cloud.transfers.azure_blob_to_gcs AzureBlobStorageToGCSOperator
microsoft.azure.transfers.local_to_adls microsoft.azure.transfers.local_to_adls
    LocalToAzureDataLakeStorageOperator=LocalFilesystemToADLSOperator
mysql.operators.mysql mysql.hooks.mysql MySqlHook
oracle.operators.oracle @sql_operators OracleOperator
postgres.operators.postgres postgres.hooks.postgres PostgresHook
slack.notifications.slack_notifier slack.notifications.slack SlackNotifier send_slack_notification
slack.transfers.sql_to_slack @dropped_slack SqlToSlackOperator
snowflake.operators.snowflake @sql_operators SnowflakeOperator
snowflake.transfers.s3_to_snowflake @dropped_snowflake S3ToSnowflakeOperator
snowflake.transfers.snowflake_to_slack - SnowflakeToSlackOperator
ssh.operators.ssh @dropped_ssh SSHExecuteOperator
tableau.operators.tableau_refresh_workbook - TableauRefreshWorkbookOperator
tableau.sensors.tableau_job_status tableau.sensors.tableau TableauJobStatusSensor
yandex.hooks.yandexcloud_dataproc yandex.hooks.dataproc DataprocHook
yandex.operators.yandexcloud_dataproc yandex.operators.dataproc
    DataprocCreateClusterOperator DataprocCreateHiveJobOperator DataprocCreateMapReduceJobOperator
    DataprocCreatePysparkJobOperator DataprocCreateSparkJobOperator DataprocDeleteClusterOperator
"""

HERE = "tradewind.airflow.compat"
NOWHERE = f"{HERE}.dropped_operators"


def _home(text: str) -> str:
    if text == "-":
        return NOWHERE
    return f"{HERE}.{text[1:]}" if text.startswith("@") else f"airflow.providers.{text}"


@functools.cache
def _targets() -> dict[str, dict[str, str]]:
    """Module → name → target."""
    found: dict[str, dict[str, str]] = {}
    for line in _TABLE.replace("\n    ", " ").splitlines():
        old, home, *listed = line.split()
        known = found.setdefault(f"airflow.providers.{old}", {})
        for name in listed:
            theirs, _, present = name.partition("=")
            known[theirs] = f"{_home(home)}:{present or theirs}"
    return found


def modules() -> frozenset[str]:
    """All modules that had such names."""
    return frozenset(_targets())


def names_of(module: str) -> dict[str, str]:
    """The dropped names of a module and their present places; empty for other modules."""
    return _targets().get(module, {})
