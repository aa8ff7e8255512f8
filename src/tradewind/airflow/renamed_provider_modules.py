"""Modules of provider packages that the packages of today have under other names: `operators.kubernetes_pod` is `operators.pod`.

Files for Airflow 2.0 to 2.3 import them. They are served only if the installed package does not have the module.

Each line: the old module and the present one, below `airflow.providers`, and the names, which may be on indented lines of their
own. A name that has changed is written `old=new`. Source: the classes of the provider packages of April 2022 and of
today.
"""

from __future__ import annotations

import functools

_TABLE = """\
amazon.aws.operators.aws_lambda amazon.aws.operators.lambda_function
    AwsLambdaInvokeFunctionOperator=LambdaInvokeFunctionOperator
amazon.aws.hooks.emr_containers amazon.aws.hooks.emr EMRContainerHook=EmrContainerHook EmrContainerHook
amazon.aws.hooks.redshift amazon.aws.hooks.redshift_cluster RedshiftHook
amazon.aws.hooks.redshift amazon.aws.hooks.redshift_sql RedshiftSQLHook
amazon.aws.operators.dms_create_task amazon.aws.operators.dms DmsCreateTaskOperator
amazon.aws.operators.dms_delete_task amazon.aws.operators.dms DmsDeleteTaskOperator
amazon.aws.operators.dms_describe_tasks amazon.aws.operators.dms DmsDescribeTasksOperator
amazon.aws.operators.dms_start_task amazon.aws.operators.dms DmsStartTaskOperator
amazon.aws.operators.dms_stop_task amazon.aws.operators.dms DmsStopTaskOperator
amazon.aws.operators.ec2_start_instance amazon.aws.operators.ec2 EC2StartInstanceOperator
amazon.aws.operators.ec2_stop_instance amazon.aws.operators.ec2 EC2StopInstanceOperator
amazon.aws.operators.emr_add_steps amazon.aws.operators.emr EmrAddStepsOperator
amazon.aws.operators.emr_containers amazon.aws.operators.emr EMRContainerOperator=EmrContainerOperator
    EmrContainerOperator
amazon.aws.operators.emr_create_job_flow amazon.aws.operators.emr EmrCreateJobFlowOperator
amazon.aws.operators.emr_modify_cluster amazon.aws.operators.emr EmrModifyClusterOperator
amazon.aws.operators.emr_terminate_job_flow amazon.aws.operators.emr EmrTerminateJobFlowOperator
amazon.aws.operators.redshift amazon.aws.operators.redshift_cluster RedshiftPauseClusterOperator
    RedshiftResumeClusterOperator
amazon.aws.operators.s3_bucket amazon.aws.operators.s3 S3CreateBucketOperator S3DeleteBucketOperator
amazon.aws.operators.s3_bucket_tagging amazon.aws.operators.s3 S3DeleteBucketTaggingOperator S3GetBucketTaggingOperator
    S3PutBucketTaggingOperator
amazon.aws.operators.s3_copy_object amazon.aws.operators.s3 S3CopyObjectOperator
amazon.aws.operators.s3_delete_objects amazon.aws.operators.s3 S3DeleteObjectsOperator
amazon.aws.operators.s3_file_transform amazon.aws.operators.s3 S3FileTransformOperator
amazon.aws.operators.s3_list amazon.aws.operators.s3 S3ListOperator
amazon.aws.operators.s3_list_prefixes amazon.aws.operators.s3 S3ListPrefixesOperator
amazon.aws.operators.sagemaker_endpoint amazon.aws.operators.sagemaker SageMakerEndpointOperator
amazon.aws.operators.sagemaker_endpoint_config amazon.aws.operators.sagemaker SageMakerEndpointConfigOperator
amazon.aws.operators.sagemaker_model amazon.aws.operators.sagemaker SageMakerModelOperator
amazon.aws.operators.sagemaker_processing amazon.aws.operators.sagemaker SageMakerProcessingOperator
amazon.aws.operators.sagemaker_training amazon.aws.operators.sagemaker SageMakerTrainingOperator
amazon.aws.operators.sagemaker_transform amazon.aws.operators.sagemaker SageMakerTransformOperator
amazon.aws.operators.sagemaker_tuning amazon.aws.operators.sagemaker SageMakerTuningOperator
amazon.aws.operators.step_function_get_execution_output amazon.aws.operators.step_function
    StepFunctionGetExecutionOutputOperator
amazon.aws.operators.step_function_start_execution amazon.aws.operators.step_function StepFunctionStartExecutionOperator
amazon.aws.sensors.dms_task amazon.aws.sensors.dms DmsTaskCompletedSensor
amazon.aws.sensors.ec2_instance_state amazon.aws.sensors.ec2 EC2InstanceStateSensor
amazon.aws.sensors.emr_containers amazon.aws.sensors.emr EMRContainerSensor=EmrContainerSensor EmrContainerSensor
amazon.aws.sensors.emr_job_flow amazon.aws.sensors.emr EmrJobFlowSensor
amazon.aws.sensors.emr_step amazon.aws.sensors.emr EmrJobFlowSensor EmrStepSensor
amazon.aws.sensors.redshift amazon.aws.sensors.redshift_cluster RedshiftClusterSensor
amazon.aws.sensors.s3_key amazon.aws.sensors.s3 S3KeySensor
amazon.aws.sensors.s3_keys_unchanged amazon.aws.sensors.s3 S3KeysUnchangedSensor
amazon.aws.sensors.sagemaker_endpoint amazon.aws.sensors.sagemaker SageMakerEndpointSensor
amazon.aws.sensors.sagemaker_training amazon.aws.sensors.sagemaker SageMakerTrainingSensor
amazon.aws.sensors.sagemaker_transform amazon.aws.sensors.sagemaker SageMakerTransformSensor
amazon.aws.sensors.sagemaker_tuning amazon.aws.sensors.sagemaker SageMakerTuningSensor
amazon.aws.sensors.step_function_execution amazon.aws.sensors.step_function StepFunctionExecutionSensor
cncf.kubernetes.operators.kubernetes_pod cncf.kubernetes.operators.pod KubernetesPodOperator
microsoft.azure.hooks.azure_batch microsoft.azure.hooks.batch AzureBatchHook
microsoft.azure.hooks.azure_container_instance microsoft.azure.hooks.container_instance AzureContainerInstanceHook
microsoft.azure.hooks.azure_container_registry microsoft.azure.hooks.container_registry AzureContainerRegistryHook
microsoft.azure.hooks.azure_container_volume microsoft.azure.hooks.container_volume AzureContainerVolumeHook
microsoft.azure.hooks.azure_cosmos microsoft.azure.hooks.cosmos AzureCosmosDBHook
microsoft.azure.hooks.azure_data_factory microsoft.azure.hooks.data_factory AzureDataFactoryHook
microsoft.azure.hooks.azure_data_lake microsoft.azure.hooks.data_lake AzureDataLakeHook
microsoft.azure.hooks.azure_fileshare microsoft.azure.hooks.fileshare AzureFileShareHook
microsoft.azure.operators.adls_delete microsoft.azure.operators.adls ADLSDeleteOperator
    AzureDataLakeStorageDeleteOperator=ADLSDeleteOperator
microsoft.azure.operators.adls_list microsoft.azure.operators.adls ADLSListOperator
    AzureDataLakeStorageListOperator=ADLSListOperator
microsoft.azure.operators.azure_batch microsoft.azure.operators.batch AzureBatchOperator
microsoft.azure.operators.azure_container_instances microsoft.azure.operators.container_instances
    AzureContainerInstancesOperator
microsoft.azure.operators.azure_cosmos microsoft.azure.operators.cosmos AzureCosmosInsertDocumentOperator
microsoft.azure.sensors.azure_cosmos microsoft.azure.sensors.cosmos AzureCosmosDocumentSensor
microsoft.azure.transfers.file_to_wasb microsoft.azure.transfers.local_to_wasb
    FileToWasbOperator=LocalFilesystemToWasbOperator LocalFilesystemToWasbOperator
opsgenie.hooks.opsgenie_alert opsgenie.hooks.opsgenie OpsgenieAlertHook
opsgenie.operators.opsgenie_alert opsgenie.operators.opsgenie OpsgenieAlertOperator=OpsgenieCreateAlertOperator
    OpsgenieCreateAlertOperator
"""


@functools.cache
def _targets() -> dict[str, dict[str, str]]:
    """Old module → name → `present module:present name`."""
    found: dict[str, dict[str, str]] = {}
    for line in _TABLE.replace("\n    ", " ").splitlines():
        old, new, *names = line.split()
        known = found.setdefault(f"airflow.providers.{old}", {})
        for name in names:
            theirs, _, present = name.partition("=")
            known[theirs] = f"airflow.providers.{new}:{present or theirs}"
    return found


def names_of(module: str) -> dict[str, str]:
    """The names of an old module and their present places; empty for other modules."""
    return _targets().get(module, {})
