"""Names of the `airflow` namespace that provider packages use and DAG files do not.

Rows are written as in `names.py`, which appends them to its table.
"""

from __future__ import annotations

_COMPAT = "tradewind.airflow.compat"
_SERVER = f"{_COMPAT}.server_internals"
_API = "api_fastapi"
_AUTH = f"{_API}.auth.managers"

ROWS: tuple[tuple[str, str, str], ...] = (
    # --- provider packages ------------------------------------------------------------------------------------------------
    (
        f"{_COMPAT}.providers_manager",
        """ProvidersManager ProviderInfo HookInfo HookClassProvider DialectInfo TriggerInfo NotificationInfo PluginInfo
        RemoteLoggingInfo ConnectionFormWidgetInfo""",
        "providers_manager:2",
    ),
    (
        f"{_COMPAT}.providers_manager",
        "ProvidersManagerTaskRuntime ProviderInfo HookInfo PluginInfo RemoteLoggingInfo",
        "sdk.providers_manager_runtime:3",
    ),
    (f"{_COMPAT}.providers_manager", "ProvidersManagerTaskRuntime", "sdk.plugins_manager:3"),
    (f"{_COMPAT}.configuration", "providers_configuration_loaded", "utils.providers_configuration_loader:2"),
    # --- tasks ------------------------------------------------------------------------------------------------------------
    (f"{_COMPAT}.async_operator", "BaseAsyncOperator", "sdk:3 sdk.bases.operator:3"),
    (f"{_COMPAT}.async_operator", "is_async_callable", "sdk.bases.decorator:3"),
    (
        f"{_COMPAT}.async_operator",
        """create_executable_runner create_async_executable_runner ExecutionCallableRunner AsyncExecutionCallableRunner""",
        "sdk.execution_time.callback_runner:3",
    ),
    (f"{_COMPAT}.async_operator", "ExecutionCallableRunner", "utils.operator_helpers:2"),
    (f"{_COMPAT}.async_operator", "context_get_outlet_events", "sdk.execution_time.context:3 utils.context:2"),
    (
        "tradewind.execution.asset_events",
        "OutletEventAccessorsProtocol=OutletEventAccessors OutletEventAccessors",
        "sdk.execution_time.context:3 sdk.types:3 utils.context:2",
    ),
    (f"{_COMPAT}.resumable_job", "ResumableJobMixin", "sdk:3 sdk.bases.resumablejobmixin:3"),
    (
        f"{_COMPAT}.retry_policy",
        "RetryPolicy ExceptionRetryPolicy RetryRule RetryAction RetryDecision",
        "sdk:3 sdk.definitions.retry_policy:3",
    ),
    (f"{_COMPAT}.retry_policy", "ChainRetryPolicy", "sdk.definitions.retry_policy:3"),
    ("tradewind.sdk.mapping", "DecoratedMappedOperator=MappedOperator", "sdk.bases.decorator:3 decorators.base:2"),
    ("tradewind.sdk.operator", "Operator=BaseOperator", "sdk.definitions._internal.abstractoperator:3 sdk.types:3 models:2"),
    ("tradewind.sdk.operator", "AbstractOperator=BaseOperator", "sdk.definitions._internal.abstractoperator:3"),
    ("tradewind.sdk.dependencies", "DAGNode=Node", "sdk.definitions._internal.node:3 models.taskmixin:2"),
    ("tradewind.execution.context", "Context", "sdk.types:3"),
    ("tradewind.sdk.templater", "Templater", "template.templater:2 sdk.definitions._internal.templater:3"),
    (_SERVER, "DagVersion", "models.dag_version:3"),
    (f"{_COMPAT}.types", "SET_DURING_EXECUTION is_arg_set", "sdk.definitions._internal.types:3"),
    (f"{_COMPAT}.types", "XComCoordinate", "sdk.bases.xcom:3"),
    (f"{_COMPAT}.types", "MAX_XCOM_SIZE", "models.xcom"),
    (f"{_COMPAT}.types", "TerminalTIState IntermediateTIState", "utils.state:3"),
    (f"{_COMPAT}.types", "Logger", "sdk.types:3"),
    (f"{_COMPAT}.types", "TypeAlias", "typing_compat:2"),
    (f"{_COMPAT}.object_storage", "ObjectStoragePath", "sdk:3 io.path:2 sdk.io.path:3 sdk.io:3"),
    (f"{_COMPAT}.object_storage", "attach ObjectStore get_fs has_fs Properties", "sdk.io:3 io:2"),
    (f"{_COMPAT}.object_storage", "attach ObjectStore", "io.store:2 sdk.io.store:3"),
    (f"{_COMPAT}.object_storage", "get_fs has_fs", "sdk.io.fs:3"),
    (f"{_COMPAT}.object_storage", "Properties", "io.typedef:2 sdk.io.typedef:3"),
    (f"{_COMPAT}.object_storage", "stat_result", "io.utils.stat:2 sdk.io.stat:3"),
    (f"{_COMPAT}.state_store", "AssetScope TaskScope BaseStoreBackend StoreScope", "sdk.state:3"),
    (f"{_COMPAT}.state_store", "AdvanceItem SharedStreamProducer", "triggers.shared_stream:3"),
    ("tradewind.airflow.compat.module_loading", "*", "_shared.module_loading:3 sdk._shared.module_loading:3"),
    (f"{_COMPAT}.stats", "Stats", "sdk._shared.observability.metrics.stats:3 sdk._shared.observability.metrics:3"),
    (f"{_COMPAT}.stats", "Stats", "observability.metrics.stats_utils:3"),
    (f"{_COMPAT}.policies", "pod_mutation_hook", "settings"),
    # --- logs -------------------------------------------------------------------------------------------------------------
    (f"{_COMPAT}.file_task_handler", "*", "utils.log.file_task_handler"),
    (
        f"{_COMPAT}.file_task_handler",
        "StreamingLogResponse RawLogStream LogResponse",
        "_shared.logging.remote:3 logging.remote:3",
    ),
    (f"{_COMPAT}.json_formatter", "JSONFormatter", "utils.log.json_formatter"),
    (
        "tradewind.airflow.compat.secrets_masker",
        "SecretsMasker Redactable Redacted _secrets_masker",
        "utils.log.secrets_masker:2 sdk.execution_time.secrets_masker:3 sdk._shared.secrets_masker:3 _shared.secrets_masker:3",
    ),
    # --- executors, command line, API server: see the modules --------------------------------------------------------------
    (
        f"{_COMPAT}.executors",
        "BaseExecutor ExecutorConf EventBufferValueType PARALLELISM",
        "executors.base_executor",
    ),
    (f"{_COMPAT}.executors", "ExecutorLoader", "executors.executor_loader:2"),
    (f"{_COMPAT}.executors", "ExecutorName", "executors.executor_utils:2"),
    (f"{_COMPAT}.executors", "All ExecuteTask ExecuteCallback ExecutorWorkload RunTrigger", "executors.workloads:3"),
    (f"{_COMPAT}.executors", "WorkloadType", "executors.workloads.base:3"),
    (f"{_COMPAT}.executors", "TaskInstanceUuid WorkloadKey WorkloadState", "executors.workloads.types:3"),
    (
        f"{_COMPAT}.cli_config",
        """Arg ActionCommand GroupCommand CLICommand DefaultHelpParser AirflowHelpFormatter lazy_load_command positive_int
        ARG_VERBOSE ARG_PID ARG_BUNDLE_NAME ARG_DAEMON ARG_DAG_ID ARG_EXECUTION_DATE ARG_LOGICAL_DATE ARG_LOG_FILE ARG_OUTPUT
        ARG_OUTPUT_PATH ARG_SKIP_SERVE_LOGS ARG_STDERR ARG_STDOUT ARG_SUBDIR ARG_YES ARG_DB_FROM_REVISION ARG_DB_FROM_VERSION
        ARG_DB_REVISION__DOWNGRADE ARG_DB_REVISION__UPGRADE ARG_DB_SKIP_INIT ARG_DB_SQL_ONLY ARG_DB_VERSION__DOWNGRADE
        ARG_DB_VERSION__UPGRADE ARG_DB_USE_MIGRATION_FILES""",
        "cli.cli_config:2",
    ),
    (f"{_COMPAT}.cli_config", "AirflowHelpFormatter DefaultHelpParser", "cli.cli_parser:2"),
    (_SERVER, "_add_command get_parser", "cli.cli_parser:2"),
    (_SERVER, "run_command_with_daemon_option", "cli.commands.daemon_utils:2"),
    (_SERVER, "run_db_downgrade_command run_db_migrate_command", "cli.commands.db_command:2"),
    (_SERVER, "AirflowConsole", "cli.simple_table:2"),
    (_SERVER, "print_export_output", "cli.utils:2"),
    (
        f"{_COMPAT}.cli_tools",
        "suppress_logs_and_warning action_cli setup_locations get_dag get_bagged_dag get_dags process_subdir",
        "utils.cli:2",
    ),
    (
        f"{_COMPAT}.auth_models",
        """AccessView AssetAliasDetails AssetDetails BackfillDetails ConfigurationDetails ConnectionDetails DagAccessEntity
        DagDetails PoolDetails TeamDetails VariableDetails""",
        f"{_AUTH}.models.resource_details:3",
    ),
    (
        f"{_COMPAT}.auth_models",
        """AccessView ConfigurationDetails ConnectionDetails DagAccessEntity DagDetails DatasetDetails=AssetDetails
        AssetDetails PoolDetails VariableDetails""",
        "auth.managers.models.resource_details:2",
    ),
    (f"{_COMPAT}.auth_models", "AirflowRouter", f"{_API}.common.router:3"),
    (f"{_COMPAT}.auth_models", "BaseModel StrictBaseModel", f"{_API}.core_api.base:3"),
    (f"{_COMPAT}.auth_models", "MenuItem ExtraMenuItem", f"{_API}.common.types:3"),
    (f"{_COMPAT}.auth_models", "create_openapi_http_exception_doc", f"{_API}.core_api.openapi.exceptions:3"),
    (
        _SERVER,
        "get_auth_manager create_auth_manager get_cookie_path API_ROOT_PATH AUTH_MANAGER_FASTAPI_APP_PREFIX",
        f"{_API}.app:3",
    ),
    (
        _SERVER,
        "BaseAuthManager COOKIE_NAME_JWT_TOKEN ResourceMethod ExtendedResourceMethod",
        f"{_AUTH}.base_auth_manager:3 auth.managers.base_auth_manager:2",
    ),
    (_SERVER, "BaseUser", f"{_AUTH}.models.base_user:3 auth.managers.models.base_user:2"),
    (_SERVER, "AuthManagerRefreshTokenExpiredException", f"{_AUTH}.exceptions:3"),
    (
        _SERVER,
        "IsAuthorizedConnectionRequest IsAuthorizedDagRequest IsAuthorizedPoolRequest IsAuthorizedVariableRequest",
        f"{_AUTH}.models.batch_apis:3 auth.managers.models.batch_apis:2",
    ),
    (_SERVER, "JWKS JWTGenerator JWTValidator", f"{_API}.auth.tokens:3"),
    (_SERVER, "SessionDep", f"{_API}.common.db.common:3"),
    (_SERVER, "GetUserDep get_user requires_access_view", f"{_API}.core_api.security:3"),
    (_SERVER, "AirflowSecurityManagerV2", "www.security_manager:2"),
    (_SERVER, "has_access", "www.auth:2"),
    (_SERVER, "BaseCallbackSink", "callbacks.base_callback_sink:2"),
    (_SERVER, "CallbackRequest DagCallbackRequest TaskCallbackRequest", "callbacks.callback_requests:2"),
    (_SERVER, "CallbackKey", "models.callback:3"),
    (_SERVER, "BaseDagBundle BundleUsageTrackingManager BundleVersion", "dag_processing.bundles.base:3"),
    (f"{_COMPAT}.models", "DagBag", "dag_processing.dagbag:3"),
    (_SERVER, "DBDagBag", "models.dagbag:3"),
    (_SERVER, "LocalTaskJobRunner", "jobs.local_task_job_runner:2"),
    (_SERVER, "SerializedDagModel", "models.serialized_dag:2"),
    (_SERVER, "AssetModel AssetEvent expand_alias_to_assets", "models.asset:3"),
    (_SERVER, "DatasetModel DatasetEvent", "models.dataset:2"),
    (_SERVER, "expand_alias_to_datasets", "datasets:2"),
    (_SERVER, "SimpleTaskInstance clear_task_instances _CURRENT_CONTEXT", "models.taskinstance"),
    (_SERVER, "clear_task_instances", "models.dag"),
    (_SERVER, "SerializedDAG", "serialization.definitions.dag:3"),
    (_SERVER, "SerializedMappedOperator", "serialization.definitions.mappedoperator:3"),
    (_SERVER, "coerce_to_core_timetable encode_timetable", "serialization.encoders:3"),
    (_SERVER, "SerializedBaseOperator SerializedDAG create_scheduler_operator", "serialization.serialized_objects:2"),
    (_SERVER, "trigger_dag", "api.common.trigger_dag:2 api.common.experimental.trigger_dag:1"),
    (_SERVER, "Base", "models.base"),
    (f"{_COMPAT}.sqlalchemy_types", "StringID naming_convention _get_schema", "models.base"),
    (f"{_COMPAT}.sqlalchemy_types", "UtcDateTime", "utils.sqlalchemy"),
    (f"{_COMPAT}.sqlalchemy_types", "TIMESTAMP", "migrations.db_types:2"),
    (_SERVER, "BaseDBManager _callable_accepts_use_migration_files", "utils.db_manager:2"),
    (_SERVER, "DBLocks create_global_lock _offline_migration print_happy_cat", "utils.db"),
    (_SERVER, "configure_orm", "settings"),
    (_SERVER, "configure_logging", "logging_config:2"),
    (f"{_COMPAT}.cli_tools", "_ActiveLoggingConfig get_remote_task_log", "logging_config:3"),
    (_SERVER, "serve_logs", "utils.serve_logs"),
    (f"{_COMPAT}.cli_tools", "Sentry", "sentry:2"),
    (_SERVER, "supervise", "sdk.execution_time.supervisor:3"),
    (_SERVER, "SUPERVISOR_COMMS XComResult", "sdk.execution_time.comms:3"),
    (_SERVER, "get_coordinator_manager", "sdk.execution_time.coordinator:3"),
    (
        _SERVER,
        "HITLUser upsert_hitl_detail update_hitl_detail_response get_hitl_detail_content_detail",
        "sdk.execution_time.hitl:3",
    ),
    (_SERVER, "HITLDetailResponse", "sdk.api.datamodels._generated:3"),
    (f"{_COMPAT}.cli_tools", "get_listener_manager", "sdk.listener:3 listeners.listener:2"),
    (f"{_COMPAT}.cli_tools", "configure_logging relative_path_from_logger logger_at_level", "sdk.log:3"),
    (f"{_COMPAT}.cli_tools", "ctx_indiv_trigger", "utils.log.trigger_handler:2"),
    (f"{_COMPAT}.cli_tools", "set_component_mp_start_method", "utils.process_utils"),
    ("tradewind.sdk.conf", "AirflowSDKConfigParser=SettingsReader", "sdk.configuration:3"),
    # --- small functions ----------------------------------------------------------------------------------------------------
    (f"{_COMPAT}.provider_helpers", "build_airflow_dagrun_url build_airflow_url_with_query", "utils.helpers"),
    (f"{_COMPAT}.provider_helpers", "build_mime_message", "utils.email"),
    (f"{_COMPAT}.provider_helpers", "correct_maybe_zipped get_unique_dag_module_name", "utils.file"),
    (f"{_COMPAT}.provider_helpers", "get_airflow_git_version", "utils.platform"),
    (f"{_COMPAT}.provider_helpers", "remove_task_decorator", "utils.decorators"),
    (f"{_COMPAT}.provider_helpers", "_get_normalized_scheme", "datasets:2 sdk.definitions.asset:3"),
    (f"{_COMPAT}.provider_helpers", "BaseDatasetEventInput", "datasets:2"),
    (f"{_COMPAT}.provider_helpers", "AirflowContextDeprecationWarning context_copy_partial", "utils.context:2"),
    (f"{_COMPAT}.provider_helpers", "DatasetLineageInfo LineageContext", "lineage.hook:2 sdk.lineage:3"),
    (
        f"{_COMPAT}.provider_helpers",
        "_airflow_parsing_context_manager",
        "utils.dag_parsing_context:2 sdk.definitions._internal.dag_parsing_context:3",
    ),
    (f"{_COMPAT}.provider_helpers", "_SERIALIZERS", "operators.python:2"),
    (f"{_COMPAT}.provider_helpers", "WEB_COLORS", "settings"),
    (f"{_COMPAT}.provider_helpers", "PodDefaults", "kubernetes.pod_generator:2"),
    (
        f"{_COMPAT}.provider_helpers",
        "RESOURCE_ASSET RESOURCE_ASSET_ALIAS RESOURCE_BACKFILL RESOURCE_DAG_VERSION RESOURCE_DATASET",
        "security.permissions",
    ),
    ("tradewind.airflow.compat.decorators", "apply_defaults", "sensors.base_sensor_operator:1"),
)
