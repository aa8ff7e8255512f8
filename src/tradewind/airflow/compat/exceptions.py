"""Exceptions of Airflow that Tradewind itself never raises: DAG files and provider packages raise, catch and subclass them."""

from __future__ import annotations

from tradewind.sdk.exceptions import AirflowBadRequest, AirflowException, AirflowNotFoundException

__all__ = [
    "AirflowClearRunningTaskException",
    "AirflowClusterPolicyError",
    "AirflowClusterPolicySkipDag",
    "AirflowDagDuplicatedIdException",
    "AirflowFileParseException",
    "AirflowInactiveAssetInInletOrOutletException",
    "AirflowInternalRuntimeError",
    "AirflowPluginException",
    "AirflowSecretsBackendAccessDenied",
    "AirflowSmartSensorException",
    "AirflowUnsupportedFileTypeException",
    "AirflowWebServerException",
    "AirflowWebServerTimeout",
    "BackfillUnfinished",
    "ConnectionNotUnique",
    "DagCodeNotFound",
    "DagConcurrencyLimitReached",
    "DagFileExists",
    "DagInvalidTriggerRule",
    "DagNotPartitionedError",
    "DagRunTypeNotAllowed",
    "DeserializationError",
    "DeserializingResultError",
    "FailFastDagInvalidTriggerRule",
    "FailStopDagInvalidTriggerRule",
    "FileSyntaxError",
    "InvalidPartitionKeyError",
    "InvalidStatsNameException",
    "InvalidTI",
    "NoAvailablePoolSlot",
    "NodeNotFound",
    "NotMapped",
    "PodMutationHookException",
    "PodReconciliationError",
    "PoolNotFound",
    "RemovedInAirflow3Warning",
    "RemovedInAirflow4Warning",
    "SerializationError",
    "SerializedDagNotFound",
    "TaskAlreadyInTaskGroup",
    "TaskAlreadyRunningError",
    "TaskAwaitingInput",
    "TaskConcurrencyLimitReached",
    "TaskInstanceNotFound",
    "TaskInstanceNotRunning",
    "TaskNotRunning",
    "UnknownExecutorException",
    "VariableNotUnique",
    "XComForMappingNotPushedError",
]

from tradewind.sdk.exceptions import RemovedInAirflow3Warning, RemovedInAirflow4Warning


class AirflowInternalRuntimeError(BaseException):
    """An error inside Airflow's own code."""


class AirflowFileParseException(AirflowException):
    """A file of variables, connections or settings cannot be read."""


class AirflowUnsupportedFileTypeException(AirflowException):
    """A file has an unknown extension."""


class AirflowWebServerException(AirflowException):
    """The web server failed."""


class ConnectionNotUnique(AirflowException):
    """Several connections have the same id."""


class DagCodeNotFound(AirflowNotFoundException):
    """The source of a DAG file is not known."""


class DagFileExists(AirflowBadRequest):
    """A DAG file with this name already exists."""


class DagInvalidTriggerRule(AirflowException):
    """The trigger rule is not allowed together with `fail_fast`."""


class DeserializingResultError(ValueError):
    """The result of a virtual environment's process cannot be read."""


class AirflowClearRunningTaskException(AirflowException):
    """A running task is cleared."""


class VariableNotUnique(AirflowException):
    """There are several variables with the same key."""


class InvalidStatsNameException(AirflowException):
    """A metric has a name that statsd refuses."""


class PoolNotFound(AirflowNotFoundException):
    """There is no such pool."""


class TaskAlreadyInTaskGroup(AirflowException):
    """A task is put into a second task group."""


class TaskAlreadyRunningError(AirflowException):
    """The task instance is already running."""


class TaskAwaitingInput(BaseException):
    """The task waits for the answer of a person."""


class TaskInstanceNotFound(AirflowNotFoundException):
    """There is no such task instance."""


class UnknownExecutorException(ValueError):
    """There is no such executor."""


class AirflowDagDuplicatedIdException(AirflowException):
    """Two files have a DAG with the same id.

    Args:
        dag_id: the id of both DAGs.
        incoming: path of the second file.
        existing: path of the first.
    """

    def __init__(self, dag_id: str, incoming: str, existing: str) -> None:
        super().__init__(dag_id, incoming, existing)
        self.dag_id = dag_id
        self.incoming = incoming
        self.existing = existing

    def __str__(self) -> str:
        return f"Ignoring DAG {self.dag_id} from {self.incoming} - also found in {self.existing}"


class AirflowClusterPolicyError(AirflowException):
    """A cluster policy failed."""


class AirflowClusterPolicySkipDag(AirflowException):
    """A cluster policy excludes a DAG."""


class AirflowSmartSensorException(AirflowException):
    """A smart sensor failed."""


class AirflowWebServerTimeout(AirflowException):
    """The web server did not answer in time."""


class BackfillUnfinished(AirflowException):
    """A backfill has not finished."""


class DagConcurrencyLimitReached(AirflowException):
    """The DAG has reached its limit of running tasks."""


class TaskConcurrencyLimitReached(AirflowException):
    """The task has reached its limit of running instances."""


class NoAvailablePoolSlot(AirflowException):
    """The pool has no free slot."""


class FailStopDagInvalidTriggerRule(AirflowException):
    """The trigger rule is not allowed together with `fail_fast`."""


class FailFastDagInvalidTriggerRule(AirflowException):
    """The trigger rule is not allowed together with `fail_fast`."""


class SerializationError(AirflowException):
    """A DAG cannot be serialized."""


class DeserializationError(Exception):
    """A DAG cannot be deserialized."""


class SerializedDagNotFound(DagCodeNotFound):
    """There is no such DAG."""


class FileSyntaxError(AirflowException):
    """A line of a file cannot be read."""


class NotMapped(Exception):
    """The task is not mapped."""


class XComForMappingNotPushedError(AirflowException):
    """A value to map over was not pushed."""


class TaskNotRunning(AirflowException):
    """The task instance is not running."""


class AirflowPluginException(Exception):
    """A plugin cannot be loaded."""


class TaskInstanceNotRunning(AirflowException):
    """The task instance is not running."""


class InvalidTI(AirflowException):
    """The task instance is not valid."""


class NodeNotFound(AirflowNotFoundException):
    """There is no such task or group."""


class AirflowInactiveAssetInInletOrOutletException(AirflowException):
    """A task reads or writes an asset that is not active."""


class AirflowSecretsBackendAccessDenied(AirflowException):
    """A secrets backend refuses access."""


class PodMutationHookException(AirflowException):
    """The hook for pods failed."""


class PodReconciliationError(AirflowException):
    """A pod cannot be built from its parts."""


class DagNotPartitionedError(AirflowException):
    """The DAG has no partitions."""


class DagRunTypeNotAllowed(AirflowException):
    """Runs of this type are not allowed."""


class InvalidPartitionKeyError(AirflowException):
    """A partition key is not valid."""
