"""Defaults of settings that code written for Airflow reads without a fallback.

Source: config.yml of Airflow 3.3.2, and of 2.11.0 for sections that Airflow 3 dropped. Folders are below the home folder.
"""

from __future__ import annotations

import os

CORE_SECTIONS = frozenset(
    {
        "api",
        "api_auth",
        "cli",
        "core",
        "dag_processor",
        "database",
        "email",
        "execution_api",
        "kerberos",
        "lineage",
        "logging",
        "metrics",
        "operators",
        "scheduler",
        "secrets",
        "sensors",
        "sentry",
        "smtp",
        "state_store",
        "traces",
        "triggerer",
        "usage_data_collection",
        "webserver",
        "workers",
    }
)
"""Sections of Airflow itself. Provider packages describe other sections."""

DEFAULTS = {
    ("api", "base_url"): "http://localhost:8080",
    ("core", "default_impersonation"): "",
    ("core", "default_timezone"): "utc",
    ("core", "donot_pickle"): "True",
    ("core", "executor"): "LocalExecutor",
    ("core", "fernet_key"): "",
    ("core", "hostname_callable"): "airflow.utils.net.getfqdn",
    ("core", "load_examples"): "False",
    ("core", "max_map_length"): "1024",
    ("core", "multi_team"): "False",
    ("core", "parallelism"): "32",
    ("core", "security"): "",
    ("core", "simple_auth_manager_all_admins"): "False",
    ("core", "unit_test_mode"): "False",
    ("core", "xcom_backend"): "airflow.sdk.execution_time.xcom.BaseXCom",
    ("database", "sql_alchemy_conn"): "",
    ("email", "default_email_on_failure"): "True",
    ("email", "default_email_on_retry"): "True",
    ("email", "email_backend"): "airflow.utils.email.send_email_smtp",
    ("email", "email_conn_id"): "smtp_default",
    ("email", "from_email"): "",
    ("email", "ssl_context"): "default",
    ("kerberos", "ccache"): "/tmp/airflow_krb5_ccache",
    ("kerberos", "forwardable"): "True",
    ("kerberos", "include_ip"): "True",
    ("kerberos", "keytab"): "airflow.keytab",
    ("kerberos", "kinit_path"): "kinit",
    ("kerberos", "principal"): "airflow",
    ("kerberos", "reinit_frequency"): "3600",
    ("logging", "delete_local_logs"): "False",
    ("logging", "encrypt_s3_logs"): "False",
    ("logging", "google_key_path"): "",
    ("logging", "log_format"): "[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s",
    ("logging", "logging_level"): "INFO",
    ("logging", "remote_base_log_folder"): "",
    ("logging", "remote_log_conn_id"): "",
    ("logging", "remote_logging"): "False",
    ("logging", "remote_task_handler_kwargs"): "",
    ("operators", "default_deferrable"): "False",
    ("operators", "default_owner"): "airflow",
    ("operators", "default_queue"): "default",
    ("operators", "default_timeout"): "",
    ("scheduler", "scheduler_health_check_threshold"): "30",
    ("secrets", "backend"): "",
    ("secrets", "backend_kwargs"): "",
    ("sensors", "default_timeout"): "604800",
    ("smtp", "smtp_host"): "localhost",
    ("smtp", "smtp_mail_from"): "airflow@example.com",
    ("smtp", "smtp_port"): "25",
    ("smtp", "smtp_retry_limit"): "5",
    ("smtp", "smtp_ssl"): "False",
    ("smtp", "smtp_starttls"): "True",
    ("smtp", "smtp_timeout"): "30",
    ("webserver", "base_url"): "http://localhost:8080",
}
"""(section, option) → text."""

_FOLDERS = {
    ("core", "dags_folder"): "dags",
    ("core", "plugins_folder"): "plugins",
    ("logging", "base_log_folder"): "logs",
}


def default_of(section: str, option: str) -> str | None:
    """The default of a setting of Airflow's, or None.

    Args:
        section, option: in lower case.
    """
    folder = _FOLDERS.get((section, option))
    if folder is not None:
        home = os.environ.get("AIRFLOW_HOME") or os.environ.get("TRADEWIND_HOME") or os.path.expanduser("~/.tradewind")
        return os.path.join(home, folder)
    return DEFAULTS.get((section, option))
