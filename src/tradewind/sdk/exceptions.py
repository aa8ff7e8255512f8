"""The exceptions for DAG authors, with Airflow's names.

TradewindError
 └─ AirflowException                 base class of the exceptions that DAG files raise and catch
     ├─ AirflowSkipException         the task instance becomes skipped
     ├─ AirflowFailException         the task instance fails without a retry
     ├─ AirflowSensorTimeout         a sensor reached its timeout; fails without a retry
     ├─ AirflowRescheduleException   the task instance starts again later, in the same try
     ├─ DownstreamTasksSkipped       the task instance succeeds, the named downstream tasks are skipped
     ├─ AirflowNotFoundException     there is no such connection, DAG, task … (also a `NotFound`)
     │   └─ VariableNotFound         (also a `KeyError`)
     └─ …
BaseException
 ├─ AirflowTaskTimeout, AirflowTaskTerminated, TaskDeferred, TaskWaits
       not subclasses of `Exception`, as in Airflow, so that `except Exception` in user code does not catch them

Where an exception of Airflow means the same as one of Tradewind, the name is an alias, so that `except` works with both names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from tradewind.model.errors import CycleError, DefinitionError, DuplicateTaskId, NotFound, ScheduleError, TradewindError
from tradewind.model.waits import Deferral


class AirflowException(TradewindError):
    """Base class of the exceptions that DAG authors raise and catch."""

    status_code = 500


class AirflowBadRequest(AirflowException):
    """The request is invalid."""

    status_code = 400


class AirflowNotFoundException(AirflowException, NotFound):
    """There is no object with this name."""

    status_code = 404


class AirflowConfigException(AirflowException):
    """A setting is missing or has an invalid value."""


class ErrorType(Enum):
    """Why a request of a task was refused. Provider packages compare `error.error` of an `AirflowRuntimeError` with it."""

    CONNECTION_NOT_FOUND = "CONNECTION_NOT_FOUND"
    VARIABLE_NOT_FOUND = "VARIABLE_NOT_FOUND"
    XCOM_NOT_FOUND = "XCOM_NOT_FOUND"
    ASSET_NOT_FOUND = "ASSET_NOT_FOUND"
    DAGRUN_NOT_FOUND = "DAGRUN_NOT_FOUND"
    DAGRUN_ALREADY_EXISTS = "DAGRUN_ALREADY_EXISTS"
    TASK_STORE_NOT_FOUND = "TASK_STORE_NOT_FOUND"
    ASSET_STORE_NOT_FOUND = "ASSET_STORE_NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    GENERIC_ERROR = "GENERIC_ERROR"
    API_SERVER_ERROR = "API_SERVER_ERROR"


class AirflowRuntimeError(AirflowException):
    """The runtime could not answer a request of the task."""

    error: Any = None
    """The answer of Airflow's supervisor. Tradewind never creates it."""


class AirflowSkipException(AirflowException):
    """Ends the attempt. The task instance becomes skipped."""


class AirflowFailException(AirflowException):
    """Ends the attempt. The task instance fails without a retry."""


class AirflowSensorTimeout(AirflowException):
    """A sensor waited longer than its `timeout`. The task instance fails without a retry."""


class AirflowRescheduleException(AirflowException):
    """Ends this attempt. The task instance starts again at `reschedule_date` (timezone-aware), in the same try."""

    def __init__(self, reschedule_date: datetime) -> None:
        super().__init__(f"reschedule at {reschedule_date.isoformat()}")
        self.reschedule_date = reschedule_date


class DownstreamTasksSkipped(AirflowException):
    """The task instance succeeds and the named tasks are skipped at once.

    `tasks`: task ids, or pairs of task id and map index.
    """

    def __init__(self, *, tasks: Sequence[str | tuple[str, int]]) -> None:
        super().__init__(f"skip {len(tasks)} downstream task(s)")
        self.tasks = tasks


class AirflowTaskTimeout(BaseException):
    """The task ran longer than its `execution_timeout`."""


class AirflowTaskTerminated(BaseException):
    """The task instance was stopped. It fails without a retry."""


class TaskDeferred(BaseException):
    """The task instance continues when `trigger` fires."""

    def __init__(
        self,
        *,
        trigger: Any,
        method_name: str,
        kwargs: dict[str, Any] | None = None,
        timeout: timedelta | int | float | None = None,
    ) -> None:
        super().__init__(f"deferred to {type(trigger).__name__}")
        self.trigger = trigger
        self.method_name = method_name
        self.kwargs = kwargs
        self.timeout = timedelta(seconds=timeout) if isinstance(timeout, int | float) else timeout


class TaskWaits(BaseException):
    """The task instance waits for something that the scheduler checks itself, without a process and without a trigger."""

    def __init__(self, deferral: Deferral) -> None:
        super().__init__("waiting without a process")
        self.deferral = deferral


class TaskAwaitingInput(BaseException):
    """The task instance waits for the answer of a person; `method_name` is called with the answer.

    The question is given before, by `upsert_hitl_detail`.
    """

    def __init__(
        self, *, method_name: str, kwargs: dict[str, Any] | None = None, timeout: timedelta | int | float | None = None
    ) -> None:
        super().__init__("waiting for the answer of a person")
        self.method_name = method_name
        self.kwargs = kwargs
        self.timeout = timedelta(seconds=timeout) if isinstance(timeout, int | float) else timeout


class TaskDeferralError(AirflowException):
    """The trigger of a deferred task failed."""


class TaskDeferralTimeout(AirflowException):
    """The trigger of a deferred task did not fire in time."""


class XComNotFound(AirflowNotFoundException):
    """No XCom was pushed with this key."""


class XComForMappingNotPushed(AirflowException, TypeError):
    """Other tasks are mapped over the result of this task, but it returned nothing."""


class UnmappableXComTypePushed(AirflowException, TypeError):
    """Other tasks are mapped over the result of this task, but it returned neither a list nor a dictionary."""


class UnmappableXComLengthPushed(AirflowException, ValueError):
    """Other tasks are mapped over the result of this task, but it has more elements than `core.max_map_length`."""


class XComNotSerializable(AirflowException, TypeError):
    """A value cannot be stored as an XCom. The message names the part of the value."""


class VariableNotFound(AirflowNotFoundException, KeyError):
    """The variable does not exist, and the caller gave no default."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0]) if self.args else ""


class TaskNotFound(AirflowNotFoundException):
    """The DAG does not contain this task."""


class DagNotFound(AirflowNotFoundException):
    """There is no DAG with this id."""


class DagRunNotFound(AirflowNotFoundException):
    """The DAG has no run with this id."""


class DagRunAlreadyExists(AirflowBadRequest):
    """The DAG already has a run with this id or logical date."""


class DagRunTriggerException(AirflowException):
    """An operator raises this to trigger a run of another DAG and to wait for it, as `TriggerDagRunOperator` of Airflow 3.

    Args:
        conf: the `conf` of the run.
        logical_date: a datetime. None: a run without a logical date.
        other arguments: see `TriggerDagRunOperator`.
    """

    def __init__(
        self,
        *,
        trigger_dag_id: str,
        dag_run_id: str | None = None,
        conf: Any = None,
        logical_date: Any = None,
        run_after: Any = None,
        reset_dag_run: bool = False,
        skip_when_already_exists: bool = False,
        wait_for_completion: bool = False,
        allowed_states: Any = None,
        failed_states: Any = None,
        poke_interval: float = 60,
        deferrable: bool = False,
        note: str | None = None,
    ) -> None:
        super().__init__(f"a run of DAG {trigger_dag_id!r} is to be triggered")
        self.trigger_dag_id = trigger_dag_id
        self.dag_run_id = dag_run_id
        self.conf = conf
        self.logical_date = logical_date
        self.run_after = run_after
        self.reset_dag_run = reset_dag_run
        self.skip_when_already_exists = skip_when_already_exists
        self.wait_for_completion = wait_for_completion
        self.allowed_states = allowed_states
        self.failed_states = failed_states
        self.poke_interval = poke_interval
        self.deferrable = deferrable
        self.note = note


class ParamValidationError(AirflowException):
    """The value of a parameter does not fit its schema."""


class AirflowOptionalProviderFeatureException(AirflowException):
    """A package that this feature needs is not installed."""


class AirflowProviderDeprecationWarning(DeprecationWarning):
    """A feature of a provider package is deprecated."""


class RemovedInAirflow3Warning(DeprecationWarning):
    """A name of Airflow 2 that Airflow 3 removed. Tradewind still accepts it."""


class RemovedInAirflow4Warning(DeprecationWarning):
    """A name that Airflow 4 will remove."""


AirflowDagCycleException = CycleError
DuplicateTaskIdFound = DuplicateTaskId
AirflowTimetableInvalid = ScheduleError
AirflowDagInconsistent = DefinitionError
AirflowClusterPolicyViolation = DefinitionError
