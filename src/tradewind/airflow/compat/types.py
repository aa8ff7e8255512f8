"""`airflow.utils.types`, and the key of a task's XCom."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from tradewind.sdk.decorators import SET_DURING_EXECUTION, ArgNotSet

__all__ = [
    "ID_LEN",
    "MAX_XCOM_SIZE",
    "NOTSET",
    "SET_DURING_EXECUTION",
    "XCOM_RETURN_KEY",
    "ArgNotSet",
    "DagRunTriggeredByType",
    "IntermediateTIState",
    "Logger",
    "TerminalTIState",
    "TypeAlias",
    "XComCoordinate",
    "is_arg_set",
]

XCOM_RETURN_KEY = "return_value"
MAX_XCOM_SIZE = 49344
"""Size in bytes above which Airflow 1 and 2 refused an XCom. Operators compare sizes with it; Tradewind has no such limit."""
Logger = logging.Logger


class XComCoordinate(NamedTuple):
    """The task instance and key of an XCom."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


class TerminalTIState(StrEnum):
    """States in which a task instance has ended."""

    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    REMOVED = "removed"


class IntermediateTIState(StrEnum):
    """States between the beginning and the end of a task instance."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RESTARTING = "restarting"
    UP_FOR_RETRY = "up_for_retry"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    DEFERRED = "deferred"


NOTSET = ArgNotSet()


def is_arg_set(value: Any) -> bool:
    """Whether the argument was given."""
    return not isinstance(value, ArgNotSet)


class DagRunTriggeredByType(StrEnum):
    """What created a run."""

    CLI = "cli"
    OPERATOR = "operator"
    REST_API = "rest_api"
    UI = "ui"
    TEST = "test"
    TIMETABLE = "timetable"
    ASSET = "asset"
    BACKFILL = "backfill"


ID_LEN = 250
"""The longest id of a DAG, task or run."""
