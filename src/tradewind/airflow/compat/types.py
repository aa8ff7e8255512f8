"""`airflow.utils.types`, and the names of XComs."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["NOTSET", "XCOM_RETURN_KEY", "ArgNotSet", "DagRunTriggeredByType"]

XCOM_RETURN_KEY = "return_value"


class ArgNotSet:
    """Type of `NOTSET`: an argument that was not given, where None is a value."""


NOTSET = ArgNotSet()


class DagRunTriggeredByType(StrEnum):
    """Who made a run."""

    CLI = "cli"
    OPERATOR = "operator"
    REST_API = "rest_api"
    UI = "ui"
    TEST = "test"
    TIMETABLE = "timetable"
    ASSET = "asset"
    BACKFILL = "backfill"
