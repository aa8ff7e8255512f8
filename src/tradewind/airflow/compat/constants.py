"""Constants and type names that DAG files import from Airflow's modules: defaults of operators, limits, aliases."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tradewind.model.states import TriggerRule, WeightRule

__all__ = [
    "ALLOWED_CONN_TYPE",
    "CAMELCASE_TO_SNAKE_CASE_REGEX",
    "CONN_ENV_PREFIX",
    "CONN_ID_MAX_LEN",
    "CYCLE_DONE",
    "CYCLE_IN_PROGRESS",
    "CYCLE_NEW",
    "DB_SAFE_MAXIMUM",
    "DB_SAFE_MINIMUM",
    "DEFAULT_EXECUTOR",
    "DEFAULT_IGNORE_FIRST_DEPENDS_ON_PAST",
    "DEFAULT_OWNER",
    "DEFAULT_POOL_SLOTS",
    "DEFAULT_PRIORITY_WEIGHT",
    "DEFAULT_QUEUE",
    "DEFAULT_RETRIES",
    "DEFAULT_RETRY_DELAY",
    "DEFAULT_SCHEDULE_INTERVAL",
    "DEFAULT_TASK_EXECUTION_TIMEOUT",
    "DEFAULT_TIME_TO_WAIT_AFTER_SIGTERM",
    "DEFAULT_TRIGGER_RULE",
    "DEFAULT_VIEW_PRESETS",
    "DEFAULT_WAIT_FOR_PAST_DEPENDS_BEFORE_SKIPPING",
    "DEFAULT_WEIGHT_RULE",
    "GROUP_KEY_REGEX",
    "KEY_REGEX",
    "MAX_DB_RETRIES",
    "MAX_RETRY_DELAY",
    "MAX_XCOM_SIZE",
    "ORIENTATION_PRESETS",
    "PAST_DEPENDS_MET",
    "PIPELINE_INLETS",
    "PIPELINE_OUTLETS",
    "PY2",
    "TAG_MAX_LEN",
    "XCOM_EXECUTION_DATE_ISO",
    "XCOM_LOGICAL_DATE_ISO",
    "XCOM_RUN_ID",
    "XCOM_SKIPMIXIN_FOLLOWED",
    "XCOM_SKIPMIXIN_KEY",
    "XCOM_SKIPMIXIN_SKIPPED",
    "CommandType",
    "DagStateChangeCallback",
    "ScheduleArg",
    "TaskPostExecuteHook",
    "TaskPreExecuteHook",
    "TaskStateChangeCallback",
    "all_tables",
    "config_dict",
]

DEFAULT_OWNER = "airflow"
DEFAULT_POOL_SLOTS = 1
DEFAULT_PRIORITY_WEIGHT = 1
DEFAULT_EXECUTOR = None
DEFAULT_QUEUE = "default"
DEFAULT_RETRIES = 0
DEFAULT_RETRY_DELAY = timedelta(minutes=5)
MAX_RETRY_DELAY = timedelta(days=1)
DEFAULT_WEIGHT_RULE = WeightRule.DOWNSTREAM
DEFAULT_TRIGGER_RULE = TriggerRule.ALL_SUCCESS
DEFAULT_TASK_EXECUTION_TIMEOUT = None
DEFAULT_SCHEDULE_INTERVAL = timedelta(days=1)
DEFAULT_VIEW_PRESETS = ["grid", "graph", "duration", "gantt", "landing_times"]
ORIENTATION_PRESETS = ["LR", "TB", "RL", "BT"]

TaskStateChangeCallback = Callable[[Any], None]
DagStateChangeCallback = Callable[[Any], None]
TaskPreExecuteHook = Callable[[Any], None]
TaskPostExecuteHook = Callable[[Any, Any], None]
ScheduleArg = Any

MAX_XCOM_SIZE = 49344
KEY_REGEX = re.compile(r"^[\w.-]+$")
CYCLE_NEW, CYCLE_IN_PROGRESS, CYCLE_DONE = 0, 1, 2
GROUP_KEY_REGEX = re.compile(r"^[\w-]+$")
CAMELCASE_TO_SNAKE_CASE_REGEX = re.compile(r"(?!^)([A-Z]+)")
TAG_MAX_LEN = 100
CONN_ID_MAX_LEN = 200
DEFAULT_TIME_TO_WAIT_AFTER_SIGTERM = 60
DB_SAFE_MINIMUM, DB_SAFE_MAXIMUM = -(2**31), 2**31 - 1
"""The bounds of priority weights."""
DEFAULT_IGNORE_FIRST_DEPENDS_ON_PAST = False
DEFAULT_WAIT_FOR_PAST_DEPENDS_BEFORE_SKIPPING = False
PAST_DEPENDS_MET = "past_depends_met"
XCOM_SKIPMIXIN_KEY = "skipmixin_key"
XCOM_SKIPMIXIN_SKIPPED = "skipped"
XCOM_SKIPMIXIN_FOLLOWED = "followed"
XCOM_LOGICAL_DATE_ISO = "trigger_logical_date_iso"
XCOM_EXECUTION_DATE_ISO = "trigger_execution_date_iso"
XCOM_RUN_ID = "trigger_run_id"
PIPELINE_OUTLETS, PIPELINE_INLETS = "pipeline_outlets", "pipeline_inlets"
MAX_DB_RETRIES = 3
PY2 = False
"""Airflow 1.10: whether Python is version 2."""
CommandType = list[str]
"""Airflow 2: the type of a command that executors got."""
CONN_ENV_PREFIX = "AIRFLOW_CONN_"
ALLOWED_CONN_TYPE = {
    "google_cloud_platform",
    "jdbc",
    "mssql",
    "mysql",
    "odbc",
    "oracle",
    "postgres",
    "presto",
    "snowflake",
    "sqlite",
    "trino",
    "vertica",
}
all_tables = [
    "callback",
    "celery_taskmeta",
    "celery_tasksetmeta",
    "dag",
    "dag_run",
    "dag_version",
    "dataset_event",
    "import_error",
    "job",
    "log",
    "session",
    "sla_miss",
    "task_fail",
    "task_instance",
    "task_instance_history",
    "task_reschedule",
    "trigger",
    "xcom",
]
"""The tables that `airflow db clean` names in Airflow 2 and 3. DAG files show them as values of a param."""
config_dict: dict[str, Any] = dict.fromkeys(all_tables)
"""Table of `airflow db clean` → its settings, which do not exist here."""
