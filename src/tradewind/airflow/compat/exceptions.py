"""Exceptions of Airflow that nothing in Tradewind raises: DAG files and provider packages raise, catch and subclass them."""

from __future__ import annotations

from tradewind.sdk.exceptions import AirflowBadRequest, AirflowException, AirflowNotFoundException

__all__ = [
    "AirflowFileParseException",
    "AirflowInternalRuntimeError",
    "AirflowUnsupportedFileTypeException",
    "AirflowWebServerException",
    "ConnectionNotUnique",
    "DagCodeNotFound",
    "DagFileExists",
    "DagInvalidTriggerRule",
    "DeserializingResultError",
    "InvalidStatsNameException",
    "PoolNotFound",
    "RemovedInAirflow3Warning",
    "RemovedInAirflow4Warning",
    "TaskAlreadyInTaskGroup",
    "TaskAlreadyRunningError",
    "TaskAwaitingInput",
    "TaskInstanceNotFound",
    "UnknownExecutorException",
]

from tradewind.sdk.exceptions import RemovedInAirflow3Warning, RemovedInAirflow4Warning


class AirflowInternalRuntimeError(BaseException):
    """An error inside Airflow's own code."""


class AirflowFileParseException(AirflowException):
    """A file of variables, connections or settings cannot be read."""


class AirflowUnsupportedFileTypeException(AirflowException):
    """A file has an ending that is not known."""


class AirflowWebServerException(AirflowException):
    """The web server failed."""


class ConnectionNotUnique(AirflowException):
    """Several connections have one id."""


class DagCodeNotFound(AirflowNotFoundException):
    """The source of a DAG file is not known."""


class DagFileExists(AirflowBadRequest):
    """A DAG file of that name is there already."""


class DagInvalidTriggerRule(AirflowException):
    """The trigger rule does not go with `fail_fast`."""


class DeserializingResultError(ValueError):
    """The result of a virtual environment's process cannot be read."""


class InvalidStatsNameException(AirflowException):
    """A metric has a name that statsd refuses."""


class PoolNotFound(AirflowNotFoundException):
    """There is no such pool."""


class TaskAlreadyInTaskGroup(AirflowException):
    """A task is put into a second task group."""


class TaskAlreadyRunningError(AirflowException):
    """The task instance runs already."""


class TaskAwaitingInput(BaseException):
    """The task waits for the answer of a person."""


class TaskInstanceNotFound(AirflowNotFoundException):
    """There is no such task instance."""


class UnknownExecutorException(ValueError):
    """There is no such executor."""
