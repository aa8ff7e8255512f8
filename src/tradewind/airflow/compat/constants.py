"""Constants and type names that DAG files import from Airflow's modules: defaults of operators, limits, aliases."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tradewind.model.states import TriggerRule, WeightRule

__all__ = [
    "ALLOWED_CONN_TYPE",
    "CONN_ENV_PREFIX",
    "CYCLE_DONE",
    "CYCLE_IN_PROGRESS",
    "CYCLE_NEW",
    "DEFAULT_EXECUTOR",
    "DEFAULT_OWNER",
    "DEFAULT_POOL_SLOTS",
    "DEFAULT_PRIORITY_WEIGHT",
    "DEFAULT_QUEUE",
    "DEFAULT_RETRIES",
    "DEFAULT_RETRY_DELAY",
    "DEFAULT_SCHEDULE_INTERVAL",
    "DEFAULT_TASK_EXECUTION_TIMEOUT",
    "DEFAULT_TRIGGER_RULE",
    "DEFAULT_VIEW_PRESETS",
    "DEFAULT_WEIGHT_RULE",
    "KEY_REGEX",
    "MAX_RETRY_DELAY",
    "MAX_XCOM_SIZE",
    "ORIENTATION_PRESETS",
    "DagStateChangeCallback",
    "ScheduleArg",
    "TaskPostExecuteHook",
    "TaskPreExecuteHook",
    "TaskStateChangeCallback",
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
