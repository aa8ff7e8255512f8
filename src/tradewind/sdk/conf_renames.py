"""Settings of Airflow that were renamed: an older name and a newer one mean the same setting.

Source: the lists of renamed options of Airflow 2.11.0 (which knows the names of 1.10) and 3.3.2.
"""

from __future__ import annotations

import functools

_NAMES = """
api.access_control_allow_origins api.access_control_allow_origin
api.access_logfile webserver.access_logfile
api.auto_refresh_interval webserver.auto_refresh_interval
api.base_url webserver.base_url
api.default_wrap webserver.default_wrap
api.enable_swagger_ui webserver.enable_swagger_ui
api.expose_config webserver.expose_config
api.fallback_page_limit api.page_size webserver.page_size
api.grid_view_sorting_order webserver.grid_view_sorting_order
api.hide_paused_dags_by_default webserver.hide_paused_dags_by_default
api.host webserver.web_server_host
api.instance_name webserver.instance_name
api.log_fetch_timeout_sec webserver.log_fetch_timeout_sec
api.port webserver.web_server_port
api.require_confirmation_dag_change webserver.require_confirmation_dag_change
api.secret_key webserver.secret_key
api.ssl_cert webserver.web_server_ssl_cert
api.ssl_key webserver.web_server_ssl_key
api.worker_timeout webserver.web_server_worker_timeout
api.workers webserver.workers
celery.worker_precheck core.worker_precheck
core.asset_manager_class core.dataset_manager_class
core.asset_manager_kwargs core.dataset_manager_kwargs
core.default_pool_task_slot_count core.non_pooled_task_slot_count
core.hide_sensitive_var_conn_fields admin.hide_sensitive_variable_fields
core.max_active_tasks_per_dag core.dag_concurrency
core.sensitive_var_conn_names admin.sensitive_variable_fields
dag_processor.dag_file_processor_timeout core.dag_file_processor_timeout
dag_processor.file_parsing_sort_mode scheduler.file_parsing_sort_mode
dag_processor.max_callbacks_per_loop scheduler.max_callbacks_per_loop
dag_processor.min_file_process_interval scheduler.min_file_process_interval
dag_processor.parsing_processes scheduler.max_threads scheduler.parsing_processes
dag_processor.print_stats_interval scheduler.print_stats_interval
dag_processor.refresh_interval scheduler.dag_dir_list_interval
dag_processor.stale_dag_threshold scheduler.stale_dag_threshold
database.load_default_connections core.load_default_connections
database.max_db_retries core.max_db_retries
database.sql_alchemy_conn core.sql_alchemy_conn
database.sql_alchemy_connect_args core.sql_alchemy_connect_args
database.sql_alchemy_max_overflow core.sql_alchemy_max_overflow
database.sql_alchemy_pool_enabled core.sql_alchemy_pool_enabled
database.sql_alchemy_pool_pre_ping core.sql_alchemy_pool_pre_ping
database.sql_alchemy_pool_recycle core.sql_alchemy_pool_recycle
database.sql_alchemy_pool_size core.sql_alchemy_pool_size
database.sql_alchemy_schema core.sql_alchemy_schema
database.sql_engine_collation_for_ids core.sql_engine_collation_for_ids
database.sql_engine_encoding core.sql_engine_encoding
fab.access_denied_message webserver.access_denied_message
fab.auth_backends api.auth_backend api.auth_backends
fab.auth_rate_limit webserver.auth_rate_limit
fab.auth_rate_limited webserver.auth_rate_limited
fab.config_file webserver.config_file
fab.cookie_samesite webserver.cookie_samesite
fab.cookie_secure webserver.cookie_secure
fab.enable_proxy_fix webserver.enable_proxy_fix
fab.expose_hostname webserver.expose_hostname
fab.navbar_color webserver.navbar_color
fab.navbar_hover_color webserver.navbar_hover_color
fab.navbar_text_color webserver.navbar_text_color
fab.navbar_text_hover_color webserver.navbar_text_hover_color
fab.proxy_fix_x_for webserver.proxy_fix_x_for
fab.proxy_fix_x_host webserver.proxy_fix_x_host
fab.proxy_fix_x_port webserver.proxy_fix_x_port
fab.proxy_fix_x_prefix webserver.proxy_fix_x_prefix
fab.proxy_fix_x_proto webserver.proxy_fix_x_proto
fab.session_backend webserver.session_backend
fab.session_lifetime_minutes webserver.session_lifetime_minutes
fab.update_fab_perms webserver.update_fab_perms
logging.base_log_folder core.base_log_folder
logging.colored_console_log core.colored_console_log
logging.colored_formatter_class core.colored_formatter_class
logging.colored_log_format core.colored_log_format
logging.dag_processor_child_process_log_directory scheduler.child_process_log_directory
logging.dag_processor_manager_log_location core.dag_processor_manager_log_location
logging.encrypt_s3_logs core.encrypt_s3_logs
logging.fab_logging_level core.fab_logging_level
logging.interleave_timestamp_parser core.interleave_timestamp_parser
logging.log_filename_template core.log_filename_template
logging.log_format core.log_format
logging.log_processor_filename_template core.log_processor_filename_template
logging.logging_config_class core.logging_config_class
logging.logging_level core.logging_level
logging.remote_base_log_folder core.remote_base_log_folder
logging.remote_log_conn_id core.remote_log_conn_id
logging.remote_logging core.remote_logging
logging.simple_log_format core.simple_log_format
logging.task_log_prefix_template core.task_log_prefix_template
logging.task_log_reader core.task_log_reader
logging.worker_log_server_port celery.worker_log_server_port
metrics.metrics_allow_list metrics.statsd_allow_list scheduler.statsd_allow_list
metrics.metrics_block_list metrics.statsd_block_list
metrics.stat_name_handler scheduler.stat_name_handler
metrics.statsd_custom_client_path scheduler.statsd_custom_client_path
metrics.statsd_datadog_enabled scheduler.statsd_datadog_enabled
metrics.statsd_datadog_metrics_tags scheduler.statsd_datadog_metrics_tags
metrics.statsd_datadog_tags scheduler.statsd_datadog_tags
metrics.statsd_host scheduler.statsd_host
metrics.statsd_on scheduler.statsd_on
metrics.statsd_port scheduler.statsd_port
metrics.statsd_prefix scheduler.statsd_prefix
operators.default_queue celery.default_queue
policy.task_policy policy.airflow_local_settings
scheduler.parsing_cleanup_interval scheduler.deactivate_stale_dags_interval
scheduler.scheduler_idle_sleep_time scheduler.processor_poll_interval
scheduler.task_instance_heartbeat_sec scheduler.local_task_job_heartbeat_sec
scheduler.task_instance_heartbeat_timeout scheduler.scheduler_zombie_task_threshold
scheduler.task_instance_heartbeat_timeout_detection_interval scheduler.zombie_detection_interval
scheduler.task_queued_timeout celery.stalled_task_timeout celery.task_adoption_timeout
scheduler.task_queued_timeout kubernetes_executor.worker_pods_pending_timeout
scheduler.task_queued_timeout_check_interval kubernetes_executor.worker_pods_pending_timeout_check_interval
triggerer.capacity triggerer.default_capacity
"""
"""The newest name of a setting, then its older ones, the later ones first. A setting with many names has several lines."""


@functools.cache
def _groups() -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for line in filter(None, _NAMES.split("\n")):
        newest, *older = line.split()
        groups.setdefault(newest, [newest]).extend(older)
    return {name: tuple(group) for group in groups.values() for name in group}


def names_of(name: str) -> tuple[str, ...]:
    """All names of the setting `section.key`, the newest first; the name itself, if it was never changed."""
    return _groups().get(name, (name,))
