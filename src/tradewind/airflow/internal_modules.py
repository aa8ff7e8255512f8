"""Names of Airflow 1 and 2 that belong to Airflow's own machinery, and that DAG files import all the same.

Each line: a module below `airflow` (`.` is `airflow` itself) and names, which may stand in indented lines of their own. They can be
imported, mentioned and subclassed; calling them raises an error (see `compat/server_internals.py`). Source: public functions and
classes of Airflow 1.10.3 … 2.11.0 that `names.py` does not have. Of the names of Airflow 3 alone only tables of the
metadata database are here, because provider packages probe for others.
"""

from __future__ import annotations

import functools

_TABLE = """\
. AirflowMacroPlugin AirflowViewPlugin load_login
api ApiAuth load_auth
api.auth.backend.basic_auth init_app requires_authentication
api.auth.backend.default init_app requires_authentication
api.auth.backend.deny_all init_app requires_authentication
api.auth.backend.kerberos_auth KerberosService init_app requires_authentication
api.auth.backend.session init_app requires_authentication
api.common.airflow_health get_airflow_health
api.common.delete_dag delete_dag
api.common.experimental check_and_get_dag check_and_get_dagrun
api.common.experimental.delete_dag delete_dag
api.common.experimental.get_code get_code
api.common.experimental.get_dag_run_state get_dag_run_state
api.common.experimental.get_dag_runs get_dag_runs
api.common.experimental.get_lineage get_lineage
api.common.experimental.get_task get_task
api.common.experimental.get_task_instance get_task_instance
api.common.experimental.mark_tasks
    all_subdag_tasks_query find_task_relatives get_all_dag_task_query get_execution_dates get_subdag_runs
    set_dag_run_state_to_failed set_dag_run_state_to_running set_dag_run_state_to_success set_state verify_dag_run_integrity
    verify_dagruns
api.common.experimental.pool create_pool delete_pool get_pool get_pools
api.common.mark_tasks
    all_subdag_tasks_query find_task_relatives get_all_dag_task_query get_execution_dates get_run_ids
    set_dag_run_state_to_failed set_dag_run_state_to_queued set_dag_run_state_to_running set_dag_run_state_to_success set_state
    verify_dagruns
bin.cli
    AirflowHelpFormatter AirflowInfo Anonymizer Architecture Arg CLIFactory ConfigInfo FileIoException GunicornMonitor
    NullAnonymizer OperatingSystem PathsInfo PiiAnonymizer SystemInfo ToolsInfo backfill checkdb cleanup_pods clear config
    connections connections_add connections_delete connections_list create_user dag_state delete_dag delete_user export_helper
    flower generate_pod_template get_dag get_dags get_parser import_helper info initdb kerberos kubernetes_generate_dag_yaml
    list_dag_runs list_dags list_dags_report list_tasks list_users next_execution partition pause pool pool_delete pool_export
    pool_export_helper pool_get pool_import pool_import_helper pool_list pool_set positive_int process_subdir
    py2_deprecation_waring render resetdb rotate_fernet_key run scheduler serve_logs set_is_paused setup_locations setup_logging
    shell show_dag sigint_handler sigquit_handler sync_perm task_failed_deps task_state test trigger_dag unpause upgrade_check
    upgradedb variables variables_delete variables_export variables_get variables_import variables_list variables_set version
    webserver worker
callbacks.database_callback_sink DatabaseCallbackSink
callbacks.pipe_callback_sink PipeCallbackSink
config_templates.default_celery DEFAULT_CELERY_CONFIG
configuration
    ConfigModifications create_default_config_parser create_pre_2_7_defaults create_provider_config_fallback_defaults
    default_config_yaml ensure_secrets_loaded expand_env_var generate_fernet_key get_airflow_test_config
    get_all_expansion_variables get_custom_secret_backend initialize_auth_manager
    initialize_secrets_backends load_standard_airflow_configuration make_group_other_inaccessible
    parameterized_config retrieve_configuration_description run_command
    write_default_airflow_configuration_if_needed write_webserver_configuration_if_needed
contrib.executors.kubernetes_executor KubernetesExecutor
contrib.executors.mesos_executor MesosExecutor
contrib.hooks.gcp_api_base_hook is_soft_quota_exception retry_if_temporary_quota
contrib.hooks.gcp_vision_hook NameDeterminer
contrib.operators.bigquery_operator BigQueryConsoleIndexableLink BigQueryConsoleLink
contrib.operators.dataflow_operator GoogleCloudBucketHelper
contrib.operators.dataproc_operator DataprocOperationBaseOperator
contrib.operators.ecs_operator ECSProtocol
contrib.operators.gcp_bigtable_operator BigtableValidationMixin
contrib.operators.gcp_cloud_build_operator BuildProcessor
contrib.operators.gcp_function_operator ZipPathPreprocessor
contrib.operators.gcp_transfer_operator TransferJobPreprocessor TransferJobValidator
contrib.operators.gcp_vision_operator prepare_additional_parameters
contrib.operators.hipchat_operator HipChatAPIOperator HipChatAPISendRoomNotificationOperator
contrib.operators.jenkins_job_trigger_operator jenkins_request_with_headers
contrib.operators.qubole_check_operator get_sql_from_qbol_cmd handle_airflow_exception
contrib.sensors.gcs_sensor get_time ts_function
contrib.task_runner.cgroup_task_runner CgroupTaskRunner
dag.base_dag BaseDag BaseDagBag
dag_processing.manager DagFileProcessorAgent DagFileProcessorManager DagFileStat DagParsingSignal DagParsingStat
dag_processing.processor DagFileProcessor DagFileProcessorProcess
datasets BaseDataset DatasetAliasEvent extract_event_key normalize_noop
datasets.manager DatasetManager resolve_dataset_manager
decorators.base ExpandableFactory Task validate_python_callable
decorators.condition combine_hooks wrap_skip
decorators.python PythonDecoratorMixin
decorators.python_virtualenv PythonVirtualenvDecoratorMixin
decorators.sensor DecoratedSensorOperator
decorators.setup_teardown ContextWrapper
exceptions UnmappableOperator
executors Executors
executors.base_executor RunningRetryAttemptType
executors.celery_executor
    BulkStateFetcher ExceptionWithTraceback execute_command fetch_celery_task_state on_celery_import_modules
    send_task_to_executor
executors.executor_constants ConnectorSource
executors.executor_loader ConnectorSource
executors.kubernetes_executor
    AirflowKubernetesScheduler KubeConfig KubernetesJobWatcher ResourceVersion get_base_pod_from_template
executors.local_executor LocalWorker LocalWorkerBase QueuedLocalWorker
hooks.base DiscoverableHook
jobs.backfill_job BackfillJob
jobs.backfill_job_runner BackfillJobRunner
jobs.base_job_runner BaseJobRunner
jobs.dag_processor_job DagProcessorJob
jobs.dag_processor_job_runner DagProcessorJobRunner empty_callback
jobs.job JobState execute_job health_check_threshold most_recent_job perform_heartbeat run_job
jobs.local_task_job LocalTaskJob
jobs.scheduler_job DagFileProcessor DagFileProcessorProcess SchedulerJob
jobs.scheduler_job_runner ConcurrencyMap SchedulerJobRunner
jobs.triggerer_job TriggerDetails TriggerRunner TriggererJob
jobs.triggerer_job_runner TriggerDetails TriggerRunner TriggererJobRunner configure_trigger_log_handler setup_queue_listener
kubernetes.kube_config KubeConfig
kubernetes.pod_generator_deprecated PodDefaults PodGenerator make_safe_label_value
kubernetes.pod_launcher_deprecated PodLauncher PodStatus
kubernetes.refresh_config RefreshConfiguration RefreshKubeConfigLoader load_kube_config
kubernetes.worker_configuration WorkerConfiguration
lineage Metadata get_backend
lineage.backend.atlas AtlasBackend
lineage.datasets HadoopFile Operator
lineage.entities default_if_none
listeners.events on_task_instance_state_session_flush register_task_instance_state_events unregister_task_instance_state_events
listeners.listener ListenerManager
listeners.spec.dagrun on_dag_run_failed on_dag_run_running on_dag_run_success
listeners.spec.dataset on_dataset_changed on_dataset_created
listeners.spec.importerrors on_existing_dag_import_error on_new_dag_import_error
listeners.spec.lifecycle before_stopping on_starting
listeners.spec.taskinstance on_task_instance_failed on_task_instance_running on_task_instance_success
logging_config validate_logging_config
metrics.base_stats_logger NoStatsLogger StatsLogger
metrics.datadog_logger SafeDogStatsdLogger
metrics.otel_logger MetricsMap SafeOtelLogger
metrics.protocols Timer TimerProtocol
metrics.statsd_logger SafeStatsdLogger
metrics.validators AllowListValidator BlockListValidator PatternAllowListValidator PatternBlockListValidator
models InvalidFernetToken NullFernet import_all_models
models.abstractoperator NotMapped
models.asset AssetAliasModel AssetDagRunQueue AssetWatcherModel DagScheduleAssetReference TaskOutletAssetReference
models.backfill Backfill BackfillDagRun ReprocessBehavior
models.base Operator TaskInstanceDependencies get_id_collation_args
models.baseoperator
    BaseOperatorMeta ExecutorSafeguard coerce_resources coerce_timedelta get_merged_defaults parse_retries partial
models.callback Callback ExecutorCallback TriggererCallback
models.chart Chart
models.connection parse_netloc_to_hostname sanitize_conn_id
models.crypto FernetProtocol InvalidFernetToken NullFernet get_fernet
models.dag DagContext DagOwnerAttributes InconsistentDataInterval create_timetable get_dataset_triggered_next_run_info
models.dagbag DagPriorityParsingRequest generate_md5_hash
models.dagcode DagCode
models.dagpickle DagPickle
models.dagrun DagRunNote TISchedulingDecision
models.dagwarning DagWarning DagWarningType
models.dataset
    DagScheduleDatasetAliasReference DagScheduleDatasetReference DatasetAliasModel DatasetDagRunQueue TaskOutletDatasetReference
models.db_callback_request DbCallbackRequest
models.deadline Deadline
models.expandinput
    DictOfListsExpandInput ListOfDictsExpandInput MappedArgument NotFullyPopulated create_expand_input get_map_type_key
    is_mappable
models.knownevent KnownEvent KnownEventType
models.kubernetes KubeResourceVersion KubeWorkerIdentifier
models.mappedoperator ensure_xcomarg_return_value validate_mapping_kwargs
models.operator needs_expansion
models.param NoValueSentinel process_params
models.pool PoolStats
models.renderedtifields get_serialized_template_fields
models.sensorinstance SensorInstance
models.taskinstance TaskInstanceNote TaskReturnCode load_error_file set_current_context set_error_file
models.taskinstancehistory TaskInstanceHistory
models.tasklog LogTemplate
models.taskmap TaskMap TaskMapVariant
models.taskreschedule add_ondelete_for_mssql
models.team Team
models.trigger Trigger
models.user User
models.xcom LazyXComAccess LazyXComSelectSequence resolve_xcom_backend
models.xcom_arg deserialize_xcom_arg serialize_xcom_arg
operators.datetime target_times_as_dates
plugins_manager
    AirflowPluginSource EntryPointSource PluginsDirectorySource entry_points_with_dist get_plugin_info
    initialize_hook_lineage_readers_plugins initialize_priority_weight_strategy_plugins initialize_web_ui_plugins
    is_valid_plugin load_entrypoint_plugins load_plugins_from_plugin_directory load_providers_plugins
    make_deprecated_module make_module register_inbuilt_operator_links register_plugin
policies
    DefaultPolicy dag_policy get_airflow_context_vars get_dagbag_import_timeout make_plugin_from_local_settings
    pod_mutation_hook task_instance_mutation_hook task_policy
secrets ensure_secrets_loaded get_connections get_custom_secret_backend get_variable initialize_secrets_backends
secrets.cache SecretCache
secrets.local_filesystem get_connection_parameter_names load_connections
security.kerberos KerberosMode detect_conf_var perform_krb181_workaround run
security.permissions ResourceDetails resource_name resource_name_for_dag
sensors.smart_sensor CachedPokeWork SensorExceptionInfo SensorWork SmartSensorOperator
sentry ConfiguredSentry DummySentry
serialization.dag_dependency DagDependency
serialization.enums DagAttributeTypes Encoding
serialization.helpers serialize_template_field
serialization.json_schema Validator load_dag_schema load_dag_schema_dict
serialization.serialized_objects
    BaseSerialization DagDependency DependencyDetector SerializedTaskGroup TaskGroupSerialization
    add_pydantic_class_type_mapping decode_dataset_condition decode_outlet_event_accessor decode_priority_weight_strategy
    decode_relativedelta decode_start_trigger_args decode_timetable decode_timezone encode_dataset_condition
    encode_outlet_event_accessor encode_priority_weight_strategy encode_relativedelta encode_start_trigger_args encode_timetable
    encode_timezone get_operator_extra_links
settings
    AllowListValidator DummyStatsLogger SafeStatsdLogger SkipDBTestsSession TracebackSession TracebackSessionForTests
    configure_action_logging configure_adapters configure_policy_plugin_manager configure_vars custom_show_warning dag_policy
    dispose_orm force_traceback_session_for_untrusted_components get_airflow_context_vars get_cleaned_traceback
    get_dagbag_import_timeout get_session_lifetime_config import_local_settings initialize load_policy_plugins policy
    prepare_classpath prepare_engine_args prepare_syspath prepare_syspath_for_config_and_plugins prepare_syspath_for_dags_folder
    reconfigure_orm replace_showwarning run_providers_custom_runtime_checks run_with_db_retries task_instance_mutation_hook
    task_policy validate_session
task.priority_strategy validate_and_load_priority_weight_strategy
task.task_runner get_task_runner
task.task_runner.base_task_runner BaseTaskRunner
task.task_runner.cgroup_task_runner CgroupTaskRunner
task.task_runner.standard_task_runner StandardTaskRunner
template.templater LiteralValue
ti_deps.dep_context DepContext
ti_deps.dependencies_deps BACKFILL_QUEUED_DEPS REQUEUEABLE_DEPS RUNNING_DEPS SCHEDULER_QUEUED_DEPS
ti_deps.dependencies_states BACKFILL_QUEUEABLE_STATES EXECUTION_STATES QUEUEABLE_STATES RUNNABLE_STATES SCHEDULEABLE_STATES
ti_deps.deps.base_ti_dep BaseTIDep TIDepStatus
ti_deps.deps.dag_ti_slots_available_dep DagTISlotsAvailableDep
ti_deps.deps.dag_unpaused_dep DagUnpausedDep
ti_deps.deps.dagrun_backfill_dep DagRunNotBackfillDep
ti_deps.deps.dagrun_exists_dep DagrunRunningDep
ti_deps.deps.dagrun_id_dep DagrunIdDep
ti_deps.deps.exec_date_after_start_date_dep ExecDateAfterStartDateDep
ti_deps.deps.mapped_task_expanded MappedTaskIsExpanded
ti_deps.deps.mapped_task_upstream_dep MappedTaskUpstreamDep
ti_deps.deps.not_in_retry_period_dep NotInRetryPeriodDep
ti_deps.deps.not_previously_skipped_dep NotPreviouslySkippedDep
ti_deps.deps.pool_slots_available_dep PoolSlotsAvailableDep
ti_deps.deps.prev_dagrun_dep PrevDagrunDep
ti_deps.deps.ready_to_reschedule ReadyToRescheduleDep
ti_deps.deps.runnable_exec_date_dep RunnableExecDateDep
ti_deps.deps.task_concurrency_dep TaskConcurrencyDep
ti_deps.deps.task_not_running_dep TaskNotRunningDep
ti_deps.deps.trigger_rule_dep TriggerRuleDep
ti_deps.deps.valid_state_dep ValidStateDep
timetables._cron CronMixin
timetables._delta DeltaMixin
timetables.simple DatasetTriggeredTimetable
traces.otel_tracer OtelTrace get_otel_tracer
traces.tracer Trace add_span gen_context
traces.utils gen_dag_span_id gen_span_id gen_trace_id
triggers.external_task TaskStateTrigger
utils.airflow_flask_app AirflowApp get_airflow_app
utils.asciiart bug nukular
utils.callback_requests CallbackRequest DagCallbackRequest SlaCallbackRequest TaskCallbackRequest
utils.cli
    ColorMode action_logging deprecated_action get_dag_by_file_location get_dag_by_pickle get_terminal_size header setup_logging
    should_ignore_depends_on_past should_use_colors sigint_handler sigquit_handler
utils.cli_action_loggers
    default_action_log on_post_execution on_pre_execution register_post_exec_callback register_pre_exec_callback
utils.cli_app_builder get_application_builder
utils.code_utils get_python_source get_terminal_formatter prepare_code_snippet
utils.configuration tmp_configuration_copy
utils.context
    InletEventsAccessors LazyDatasetEventSelectSequence OutletEventAccessor context_update_for_unmapped
    lazy_mapping_from_context
utils.dag_edges dag_edges
utils.dag_parsing_context AirflowParsingContext
utils.dag_processing
    AbstractDagFileProcessor AbstractDagFileProcessorProcess DagFileProcessorAgent DagFileProcessorManager DagFileStat
    DagParsingSignal DagParsingStat SimpleDag SimpleDagBag SimpleTaskInstance correct_maybe_zipped list_py_file_paths
utils.dates datetime_to_nano
utils.db
    LazySelectSequence auto_migrations_available check_bad_references check_conn_id_duplicates check_conn_type_null
    check_query_exists check_run_id_null check_table_for_duplicates check_task_tables_without_matching_dagruns
    check_username_duplicates compare_server_default compare_type downgrade drop_airflow_models drop_airflow_moved_tables
    drop_flask_models exists_query get_query_count get_sqla_model_classes reflect_tables
utils.db_cleanup CreateTableAs drop_archived_tables export_archived_records run_cleanup
utils.decorators fixup_decorator_warning_stack
utils.docs get_doc_url_for_provider get_docs_url get_project_url_from_metadata
utils.dot_renderer render_dag render_dag_dependencies
utils.email send_MIME_email send_mime_email
utils.empty_set _get_empty_set_for_configuration
utils.entry_points entry_points_with_dist
utils.event_scheduler EventScheduler
utils.file
    find_dag_file_paths find_path_from_directory iter_airflow_imports list_py_file_paths might_contain_dag
    might_contain_dag_via_default_heuristic open_maybe_zipped
utils.helpers
    AirflowImporter alchemy_to_dict is_in prevent_duplicates prompt_with_timeout reap_process_group render_log_filename
    render_template render_template_as_native validate_group_key
utils.json AirflowJsonProvider json_ser
utils.jwt_signer JWTSigner get_signing_key
utils.log.action_logger action_event_from_permission
utils.log.file_processor_handler FileProcessorHandler
utils.log.json_formatter merge_dicts
utils.log.log_reader TaskLogReader
utils.log.logging_mixin SetContextPropagate redirect_stderr redirect_stdout
utils.log.non_caching_file_handler NonCachingFileHandler NonCachingRotatingFileHandler make_file_io_non_caching
utils.log.secrets_masker RedactedIO get_sensitive_variables_fields
utils.log.task_context_logger TaskContextLogger
utils.log.task_handler_with_custom_formatter TaskHandlerWithCustomFormatter
utils.log.timezone_aware TimezoneAware
utils.log.trigger_handler DropTriggerLogsFilter LocalQueueHandler TriggerMetadataFilter TriggererHandlerWrapper
utils.mixins MultiprocessingStartMethodMixin ResolveMixin
utils.module_loading as_importable_string
utils.orm_event_handlers setup_event_handlers
utils.pydantic is_pydantic_2_installed
utils.retries retry_db_transaction run_with_db_retries
utils.scheduler_health HealthServer serve_health_check
utils.serve_logs StandaloneGunicornApplication create_app
utils.session create_global_lock find_session_idx
utils.setup_teardown BaseSetupTeardownContext SetupTeardownContext
utils.sqlalchemy
    CommitProhibitorGuard ExecutorConfigType ExtendedJSON Interval ensure_pod_is_valid_after_unpickling get_orm_mapper
    is_lock_not_available_error is_sqlalchemy_v1 lock_rows nowait nulls_first prohibit_commit sanitize_for_serialization
    setup_event_handlers skip_locked tuple_in_condition tuple_not_in_condition with_row_locks
utils.state PokeState
utils.task_group MappedTaskGroup TaskGroupContext task_group_to_dict
utils.task_instance_session get_current_task_instance_session set_current_task_instance_session
utils.template literal
utils.tests
    AirflowLink AirflowLink2 CustomBaseIndexOpLink CustomOpLink CustomOperator Dummy2TestOperator Dummy3TestOperator GithubLink
    GoogleLink assertEqualIgnoreMultipleSpaces skipUnlessImported
utils.timeout TimeoutWindows
utils.timezone local_timezone td_format
utils.types AttributeRemoved EdgeInfoType
utils.warnings capture_with_reraise
utils.weight_rule db_safe_priority
www.app cached_app cached_appbuilder purge_cached_app sync_appbuilder_roles
www.auth has_access has_access_dag
www.decorators action_logging gzipped
www.security AirflowSecurityManager
www.utils CustomSQLAInterface get_dag json_f json_response
www.views Airflow AirflowBaseView AirflowModelView ConnectionModelView DagModelView
www_rbac.app cached_app create_app
www_rbac.decorators action_logging has_dag_access
www_rbac.utils json_response
www_rbac.views Airflow AirflowBaseView
"""


@functools.cache
def _names() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    module = ""
    for line in _TABLE.splitlines():
        listed = line.split()
        if not line.startswith(" "):
            module, *listed = listed
            module = "airflow" if module == "." else f"airflow.{module}"
        found[module] = found.get(module, frozenset()).union(listed)
    return found


def modules() -> frozenset[str]:
    """Every module that has such names."""
    return frozenset(_names())


def names_of(module: str) -> frozenset[str]:
    """The names of a module."""
    return _names().get(module, frozenset())


def target(module: str, name: str) -> str | None:
    """Where the stand-in of a name is, as `package.module:name`; None when the module has no such name.

    Tables of the metadata database can be named with their columns; everything else refuses to be used.
    """
    if name not in names_of(module):
        return None
    is_table = module.startswith("airflow.models") and name[0].isupper()
    return f"tradewind.airflow.compat.{'models' if is_table else 'server_internals'}:{name}"
