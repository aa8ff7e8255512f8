"""The options of Airflow 1.10, 2 and 3 by name, and how Tradewind uses each of them.

Source of the names: the configuration templates of Airflow 1.10.15, 2.11.0 and 3.3.2, and of its
package for Kubernetes.
"""

from __future__ import annotations

import functools

from tradewind.model.errors import nearest
from tradewind.sdk.conf_renames import names_of
from tradewind.settings.frozen import Frozen
from tradewind.settings.options import BY_AIRFLOW_NAME, Option

_KNOWN = """
[admin]
    hide_sensitive_variable_fields
[api]
    access_control_allow_headers access_control_allow_methods access_control_allow_origins auth_backend auth_backends
    auto_refresh_interval base_url client_ssl_cert client_ssl_key client_use_public_certs dag_cache_size dag_cache_ttl
    default_wrap enable_experimental_api enable_swagger_ui enable_xcom_deserialize_support expose_config
    expose_stacktrace fallback_page_limit google_key_path google_oauth2_audience grid_view_sorting_order
    hide_paused_dags_by_default host instance_name log_config log_fetch_timeout_sec log_stream_buffer_size
    maximum_page_limit port require_confirmation_dag_change secret_key server_type ssl_ca_file ssl_cert ssl_cert_reqs
    ssl_key theme worker_refresh_batch_size worker_refresh_interval worker_timeout workers
[api_auth]
    jwt_algorithm jwt_audience jwt_cli_expiration_time jwt_expiration_time jwt_issuer jwt_kid jwt_leeway
    jwt_private_key_path jwt_secret trusted_jwks_url
[atlas]
    host password port sasl_enabled username
[callbacks]
    callback_execution_timeout
[celery]
    broker_url celery_app_name celery_config_options default_queue flower_basic_auth flower_host flower_port
    flower_url_prefix operation_timeout pool result_backend ssl_active ssl_cacert ssl_cert ssl_key sync_parallelism
    worker_concurrency worker_log_server_port
[cli]
    api_client endpoint_url
[connection_test]
    max_concurrency reaper_interval timeout
[core]
    allow_double_dot_in_ids allowed_deserialization_classes allowed_deserialization_classes_regexp asset_manager_class
    asset_manager_kwargs auth_manager base_log_folder check_slas colored_console_log colored_formatter_class
    colored_log_format compress_serialized_dags daemon_umask dag_concurrency dag_discovery_safe_mode
    dag_file_processor_timeout dag_ignore_file_syntax dag_processor_manager_log_location dag_run_conf_overrides_params
    dagbag_import_error_traceback_depth dagbag_import_error_tracebacks dagbag_import_timeout dags_are_paused_at_creation
    dags_folder database_access_isolation dataset_manager_class dataset_manager_kwargs default_impersonation
    default_pool_task_slot_count default_task_execution_timeout default_task_retries default_task_retry_delay
    default_task_weight_rule default_timezone donot_pickle enable_xcom_pickling encrypt_s3_logs
    execute_tasks_new_python_interpreter execution_api_server_url executor fab_logging_level fernet_key
    hide_sensitive_var_conn_fields hostname_callable internal_api_secret_key internal_api_url killed_task_cleanup_time
    lazy_discover_providers lazy_load_plugins load_default_connections load_examples log_filename_template log_format
    log_processor_filename_template logging_config_class logging_level max_active_runs_per_dag max_active_tasks_per_dag
    max_consecutive_failed_dag_runs_per_dag max_map_length max_num_rendered_ti_fields_per_task max_task_retry_delay
    max_templated_field_length might_contain_dag_callable min_serialized_dag_fetch_interval
    min_serialized_dag_update_interval mp_forkserver_preload mp_start_method multi_team
    num_dag_runs_to_retain_rendered_fields parallelism plugins_folder remote_base_log_folder remote_log_conn_id
    remote_logging rerun_with_latest_version secure_mode security sensitive_var_conn_names
    simple_auth_manager_all_admins simple_auth_manager_passwords_file simple_auth_manager_users simple_log_format
    sql_alchemy_conn sql_alchemy_max_overflow sql_alchemy_pool_enabled sql_alchemy_pool_pre_ping
    sql_alchemy_pool_recycle sql_alchemy_pool_size sql_alchemy_schema sql_engine_encoding store_serialized_dags
    strict_dataset_uri_validation task_log_reader task_runner task_success_overtime team_name_cache_ttl test_connection
    unit_test_mode worker_precheck xcom_backend
[dag_processor]
    bundle_refresh_check_interval dag_bundle_config_list dag_bundle_storage_path dag_file_processor_timeout
    dag_version_inflation_check_level disable_bundle_versioning file_parsing_sort_mode health_check_threshold
    max_callbacks_per_loop min_file_process_interval parsing_pre_import_modules parsing_processes print_stats_interval
    refresh_interval stale_bundle_cleanup_age_threshold stale_bundle_cleanup_interval stale_bundle_cleanup_min_versions
    stale_dag_threshold
[dask]
    cluster_address tls_ca tls_cert tls_key
[database]
    alembic_ini_file_path check_migrations external_db_managers load_default_connections max_db_retries migration_batch_size
    sql_alchemy_conn sql_alchemy_conn_async sql_alchemy_connect_args sql_alchemy_connect_args_async
    sql_alchemy_engine_args sql_alchemy_max_overflow sql_alchemy_pool_enabled sql_alchemy_pool_pre_ping
    sql_alchemy_pool_recycle sql_alchemy_pool_size sql_alchemy_schema sql_alchemy_session_maker
    sql_engine_collation_for_ids sql_engine_encoding
[debug]
    fail_fast
[elasticsearch]
    end_of_log_mark frontend host json_fields json_format log_id_template write_stdout
[elasticsearch_configs]
    use_ssl verify_certs
[email]
    default_email_on_failure default_email_on_retry email_backend email_conn_id from_email html_content_template ssl_context
    subject_template
[execution_api]
    jwt_audience jwt_expiration_time otel_trace_propagation
[github_enterprise]
    api_rev
[hive]
    default_hive_mapred_queue
[kerberos]
    ccache forwardable include_ip keytab kinit_path principal reinit_frequency
[kubernetes]
    affinity airflow_configmap airflow_local_settings_configmap dags_in_image dags_volume_claim dags_volume_host
    dags_volume_mount_point dags_volume_subpath delete_option_kwargs delete_worker_pods delete_worker_pods_on_failure
    env_from_configmap_ref env_from_secret_ref fs_group gcp_service_account_keys git_branch git_dags_folder_mount_point
    git_password git_repo git_ssh_key_secret_name git_ssh_known_hosts_configmap_name git_subpath
    git_sync_container_repository git_sync_container_tag git_sync_credentials_secret git_sync_depth git_sync_dest
    git_sync_init_container_name git_sync_rev git_sync_root git_sync_run_as_user git_user image_pull_secrets in_cluster
    kube_client_request_args logs_volume_claim logs_volume_host logs_volume_subpath multi_namespace_mode namespace
    pod_template_file run_as_user tolerations worker_container_image_pull_policy worker_container_repository
    worker_container_tag worker_pods_creation_batch_size worker_service_account_name
[kubernetes_executor]
    api_client_retry_configuration async_client_factory async_pod_creation client_factory cluster_context
    config_file dags_in_image delete_option_kwargs delete_worker_pods delete_worker_pods_on_failure
    enable_tcp_keepalive in_cluster kube_client_request_args logs_task_metadata multi_namespace_mode
    multi_namespace_mode_namespace_list namespace pod_creation_max_concurrency
    pod_launch_failure_excluded_container_reasons pod_launch_failure_retries pod_template_file run_as_user
    running_pod_log_lines ssl_ca_cert task_publish_max_retries tcp_keep_cnt tcp_keep_idle tcp_keep_intvl verify_ssl
    worker_container_image_pull_policy worker_container_repository worker_container_tag
    worker_pod_pending_fatal_container_state_reasons worker_pods_creation_batch_size worker_pods_pending_timeout
    worker_pods_pending_timeout_batch_size worker_pods_pending_timeout_check_interval worker_pods_queued_check_interval
[ldap]
    basedn bind_password bind_user cacert data_profiler_filter group_member_attr ignore_malformed_schema search_scope
    superuser_filter uri user_filter user_name_attr
[lineage]
    backend max_assets_per_collector max_extras_per_collector
[logging]
    base_log_folder callsite_parameters celery_logging_level celery_stdout_stderr_separation color_log_error_keywords
    color_log_warning_keywords colored_console_log colored_formatter_class colored_log_format
    dag_processor_child_process_log_directory dag_processor_log_format dag_processor_log_target
    dag_processor_manager_log_location dag_processor_manager_log_stdout delete_local_logs enable_task_context_logger
    encrypt_s3_logs extra_logger_names fab_logging_level file_task_handler_new_file_permissions
    file_task_handler_new_folder_permissions google_key_path interleave_timestamp_parser json_logs log_filename_template
    log_format log_formatter_class log_processor_filename_template log_timestamp_format logging_config_class
    logging_level min_length_masked_secret namespace_levels remote_base_log_folder remote_log_conn_id remote_logging
    remote_task_handler_kwargs secret_mask_adapter simple_log_format task_log_prefix_template task_log_reader
    trigger_log_server_port uvicorn_logging_level worker_log_server_port
[mesos]
    authenticate checkpoint framework_name master task_cpu task_memory
[metrics]
    legacy_names_on metrics_allow_list metrics_block_list metrics_use_pattern_match otel_debugging_on otel_host
    otel_interval_milliseconds otel_on otel_port otel_prefix otel_service otel_ssl_active stat_name_handler
    statsd_custom_client_path statsd_datadog_enabled statsd_datadog_metrics_tags statsd_datadog_tags
    statsd_disabled_tags statsd_host statsd_influxdb_enabled statsd_ipv6 statsd_on statsd_port statsd_prefix
    timer_unit_consistency
[operators]
    allow_illegal_arguments default_cpus default_deferrable default_disk default_gpus default_owner default_queue
    default_ram
[profiling]
    memray_detailed_tracing memray_trace_components
[scheduler]
    allow_trigger_in_future allowed_run_id_pattern authenticate catchup_by_default child_process_log_directory
    create_cron_data_intervals create_delta_data_intervals dag_dir_list_interval dag_stale_not_seen_duration
    dagrun_metrics_interval enable_health_check enable_tracemalloc file_parsing_sort_mode
    ignore_first_depends_on_past_by_default job_heartbeat_sec local_task_job_heartbeat_sec max_callbacks_per_loop
    max_dagruns_per_loop_to_schedule max_dagruns_to_create_per_loop max_tis_per_query min_file_process_interval num_runs
    only_idle orphaned_tasks_check_interval parsing_cleanup_interval parsing_pre_import_modules parsing_processes
    partition_mapper_max_downstream_keys pool_metrics_interval print_stats_interval processor_poll_interval run_duration
    schedule_after_task_execution scheduler_health_check_server_host scheduler_health_check_server_port
    scheduler_health_check_threshold scheduler_heartbeat_sec scheduler_idle_sleep_time scheduler_zombie_task_threshold
    stale_dag_threshold standalone_dag_processor statsd_allow_list statsd_host statsd_on statsd_port statsd_prefix
    task_instance_heartbeat_sec task_instance_heartbeat_timeout task_instance_heartbeat_timeout_detection_interval
    task_queued_timeout task_queued_timeout_check_interval ti_metrics_interval trigger_timeout_check_interval
    use_job_schedule use_row_level_locking zombie_detection_interval
[sdk]
    coordinators queue_to_coordinator
[secrets]
    backend backend_kwargs cache_ttl_seconds use_cache
[sensors]
    default_timeout
[sentry]
    before_send sentry_dsn sentry_on
[smtp]
    smtp_host smtp_mail_from smtp_password smtp_port smtp_retry_limit smtp_ssl smtp_starttls smtp_timeout smtp_user
[state_store]
    backend clear_on_success default_retention_days max_value_storage_bytes state_cleanup_batch_size
[traces]
    otel_debug_traces_on otel_debugging_on otel_host otel_on otel_port otel_service otel_ssl_active otel_task_log_event
    task_runner_flush_timeout_milliseconds
[triggerer]
    blocked_main_thread_warning_threshold capacity default_capacity job_heartbeat_sec max_trigger_to_select_per_loop
    on_kill_timeout queues_enabled runner_health_check_threshold shared_stream_ack_timeout
    shared_stream_cohort_grace_period shared_stream_subscriber_queue_size triggerer_health_check_threshold
[webserver]
    access_denied_message access_logfile access_logformat allow_raw_html_descriptions allowed_payload_size analytics_id
    analytics_tool analytics_url audit_view_excluded_events audit_view_included_events authenticate
    auto_refresh_interval base_url caching_hash_method config_file cookie_samesite cookie_secure dag_default_view
    dag_orientation default_dag_run_display_number default_ui_timezone default_wrap demo_mode enable_proxy_fix
    enable_swagger_ui error_logfile expose_config expose_hostname expose_stacktrace filter_by_owner
    grid_view_sorting_order hide_paused_dags_by_default instance_name instance_name_has_markup log_animation_speed
    log_auto_tailing_offset log_fetch_delay_sec log_fetch_timeout_sec max_form_memory_size max_form_parts navbar_color
    navbar_hover_color navbar_logo_text_color navbar_text_color navbar_text_hover_color
    num_recent_configurations_for_trigger owner_mode page_size proxy_fix_x_for proxy_fix_x_host proxy_fix_x_port
    proxy_fix_x_prefix proxy_fix_x_proto rbac reload_on_plugin_change require_confirmation_dag_change run_internal_api
    secret_key session_backend session_lifetime_minutes show_recent_stats_for_completed_runs
    show_trigger_form_if_no_params update_fab_perms warn_deployment_exposure web_server_host web_server_master_timeout
    web_server_port web_server_ssl_cert web_server_ssl_key web_server_worker_timeout worker_class
    worker_refresh_batch_size worker_refresh_interval workers x_frame_enabled
[workers]
    execution_api_retries execution_api_retry_wait_max execution_api_retry_wait_min execution_api_timeout
    max_failed_heartbeats min_heartbeat_interval missing_dag_retries missing_dag_retry_delay secrets_backend
    secrets_backend_kwargs socket_cleanup_timeout state_store_backend
"""
"""A section in brackets, then its options."""

_OWN_DATABASE = "Tradewind has a database of its own (database.path or database.url); tradewind import-airflow reads Airflow's"
_OWN_PAGE = "the web page and its logins have settings of their own ([api])"
_EVENTS = "the scheduler and the parser react to events and do not poll"
_NO_EXECUTOR = "it belongs to an executor of Airflow"
_POD_TEMPLATE = "pods are described by kubernetes_executor.pod_template_file, and run in one namespace"
_OWN_LOG = "logs are written in one format ([logging])"

_MEANINGLESS = {
    "api": _OWN_PAGE,
    "api_auth": _OWN_PAGE,
    "celery": _NO_EXECUTOR,
    "celery_broker_transport_options": _NO_EXECUTOR,
    "celery_kubernetes_executor": _NO_EXECUTOR,
    "dag_processor": _EVENTS,
    "dask": _NO_EXECUTOR,
    "database": _OWN_DATABASE,
    "execution_api": "tasks talk to their worker host through a pipe",
    "fab": _OWN_PAGE,
    "kerberos": "tickets are not renewed; run k5start beside the worker host",
    "kubernetes": _POD_TEMPLATE,
    "kubernetes_executor": _POD_TEMPLATE,
    "ldap": _OWN_PAGE,
    "local_kubernetes_executor": _NO_EXECUTOR,
    "logging": _OWN_LOG,
    "mesos": _NO_EXECUTOR,
    "metrics": "see docs/how-to/metrics.md",
    "profiling": "there is no profiler",
    "scheduler": _EVENTS,
    "traces": "traces are not sent",
    "triggerer": "the worker host starts the triggerer when it is needed",
    "usage_data_collection": "no usage data is collected",
    "webserver": _OWN_PAGE,
    "workers": "workers talk to the scheduler through a socket",
}
"""Section → why its options have no effect, unless one of them is used."""

_MEANINGLESS_OPTIONS = {
    "metrics.stat_name_handler": "code of users does not run in the scheduler; choose names with metrics.metrics_allow_list",
    "metrics.statsd_custom_client_path": "code of users does not run in the scheduler; metrics are sent by UDP",
    "metrics.metrics_use_pattern_match": "the lists are always regular expressions, as in Airflow 3",
    "metrics.timer_unit_consistency": "timers are always milliseconds, as in Airflow 3",
    "metrics.otel_debugging_on": "metrics are not printed",
    "core.auth_manager": _OWN_PAGE,
    "core.donot_pickle": "code is not pickled",
    "core.enable_xcom_pickling": "XComs are stored as JSON, data frames of pandas as Parquet",
    "core.hostname_callable": "the name of the machine is used",
    "core.load_default_connections": "tradewind connections create-default-connections adds them",
    "core.task_runner": "each task runs in a process of its own",
    "core.unit_test_mode": "see docs/how-to/test-your-dags.md",
}

USED = "used"
NO_MEANING = "no meaning"
READABLE = "readable"
UNKNOWN = "unknown"


class Outcome(Frozen):
    """How Tradewind uses an option of Airflow.

    Attributes:
        kind: `USED` as `option`; `NO_MEANING` for the reason `text`; `READABLE`: DAG files read it with `conf.get`; `UNKNOWN`:
            Airflow has no such option, and `text` names the nearest one.
        option: the setting of Tradewind.
        text: a sentence without its beginning.
    """

    kind: str
    option: Option | None
    text: str


def all_names(option: Option) -> tuple[str, ...]:
    """All names that a setting of Tradewind has or had in Airflow, the newest first."""
    return tuple(dict.fromkeys(other for name in option.airflow for other in (name, *names_of(name))))


@functools.cache
def known_options() -> dict[str, frozenset[str]]:
    """Section → its options, in any release of Airflow."""
    found: dict[str, frozenset[str]] = {}
    for part in _KNOWN.strip().lstrip("[").split("\n["):
        section, _, names = part.partition("]")
        found[section] = frozenset(names.split())
    return found


def outcome_of(name: str) -> Outcome:
    """How Tradewind uses the option `section.key`."""
    section, _, key = name.partition(".")
    why = next((_MEANINGLESS_OPTIONS[one] for one in (name, *names_of(name)) if one in _MEANINGLESS_OPTIONS), None)
    if why is not None:
        return Outcome(kind=NO_MEANING, option=None, text=why)
    option = next((BY_AIRFLOW_NAME[one] for one in names_of(name) if one in BY_AIRFLOW_NAME), None)
    if option is not None:
        return Outcome(kind=USED, option=option, text=option.name)
    known = known_options()
    if section not in known:
        return Outcome(kind=READABLE, option=None, text="DAG files and provider packages read it with conf.get")
    if key not in known[section] and names_of(name) == (name,) and not key.endswith(("_cmd", "_secret")):
        near = nearest(name, (f"{one}.{other}" for one, names in known.items() for other in names))
        return Outcome(kind=UNKNOWN, option=None, text=f"Did you mean {near}?" if near else "")
    if section in _MEANINGLESS:
        return Outcome(kind=NO_MEANING, option=None, text=_MEANINGLESS[section])
    return Outcome(kind=READABLE, option=None, text="DAG files and provider packages read it with conf.get")


FILE_OPTIONS_NOT_USED = frozenset({"logging.base_log_folder", "core.base_log_folder"})
"""Options that the environment may set, but not an airflow.cfg: both systems would write to the same folder."""


def meaning_of_log_folder() -> str:
    """Why the folder of logs is not taken from an airflow.cfg."""
    return "Airflow writes its logs to this folder; set logging.folder"
