"""The exceptions of a DAG author, under Airflow's names.

    TradewindError
     └─ AirflowException                 what DAG files raise and catch
         ├─ AirflowSkipException         the task instance becomes skipped
         ├─ AirflowFailException         it fails, whatever retries are left
         ├─ AirflowSensorTimeout         likewise: a sensor waited long enough
         ├─ AirflowRescheduleException   it comes back later, in the same try
         ├─ DownstreamTasksSkipped       it succeeds, the named tasks are skipped
         ├─ AirflowNotFoundException     no connection, DAG, task … of that name (also a `NotFound`)
         │   └─ VariableNotFound         (also a `KeyError`)
         └─ …
    BaseException
     ├─ AirflowTaskTimeout, AirflowTaskTerminated, TaskDeferred, TaskWaits
           not `Exception`s, as in Airflow: user code that catches everything does not swallow them

Where Airflow's exception says the same as one of ours, the name is an alias, so that `except` finds it under both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from tradewind.model.errors import CycleError, DefinitionError, DuplicateTaskId, NotFound, ScheduleError, TradewindError
from tradewind.model.waits import Deferral


class AirflowException(TradewindError):
    """Base of the exceptions that DAG authors raise and catch."""

    status_code = 500


class AirflowBadRequest(AirflowException):
    """The request makes no sense."""

    status_code = 400


class AirflowNotFoundException(AirflowException, NotFound):
    """Nothing of that name."""

    status_code = 404


class AirflowConfigException(AirflowException):
    """A setting has a value it cannot have."""


class AirflowRuntimeError(AirflowException):
    """The rest of Tradewind could not answer a question of the task."""


class AirflowSkipException(AirflowException):
    """Ends the attempt; the task instance becomes skipped."""


class AirflowFailException(AirflowException):
    """Ends the attempt; the task instance fails without another try."""


class AirflowSensorTimeout(AirflowException):
    """A sensor waited longer than its `timeout`: failed, without another try."""


class AirflowRescheduleException(AirflowException):
    """Ends this start of the task; it is started again at `reschedule_date` (aware), in the same try."""

    def __init__(self, reschedule_date: datetime) -> None:
        super().__init__(f"to be started again at {reschedule_date.isoformat()}")
        self.reschedule_date = reschedule_date


class DownstreamTasksSkipped(AirflowException):
    """The task succeeds and the named tasks are skipped at once.

    `tasks`: task ids, or (task id, map index) pairs.
    """

    def __init__(self, *, tasks: Sequence[str | tuple[str, int]]) -> None:
        super().__init__(f"skips {len(tasks)} downstream task(s)")
        self.tasks = tasks


class AirflowTaskTimeout(BaseException):
    """The task ran longer than its `execution_timeout`."""


class AirflowTaskTerminated(BaseException):
    """The task was told to stop: failed, without another try."""


class TaskDeferred(BaseException):
    """The task goes on when `trigger` fires."""

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
    """The task waits for something that the scheduler sees by itself, without a process and without a trigger."""

    def __init__(self, deferral: Deferral) -> None:
        super().__init__("it waits without a process")
        self.deferral = deferral


class TaskDeferralError(AirflowException):
    """The trigger of a deferred task failed."""


class TaskDeferralTimeout(AirflowException):
    """The trigger of a deferred task did not fire in time."""


class XComNotFound(AirflowNotFoundException):
    """No value was pushed under that key."""


class XComForMappingNotPushed(AirflowException, TypeError):
    """Other tasks are mapped over the result of a task that returned nothing."""


class UnmappableXComTypePushed(AirflowException, TypeError):
    """Other tasks are mapped over the result of a task that returned neither a list nor a dictionary."""


class UnmappableXComLengthPushed(AirflowException, ValueError):
    """Other tasks are mapped over the result of a task that returned more elements than `core.max_map_length`."""


class XComNotSerializable(AirflowException, TypeError):
    """A value cannot be stored as an XCom. The message names the place inside the value."""


class VariableNotFound(AirflowNotFoundException, KeyError):
    """There is no variable of that name, and the caller gave no default."""

    def __str__(self) -> str:  # KeyError would show the sentence in quotes
        return str(self.args[0]) if self.args else ""


class TaskNotFound(AirflowNotFoundException):
    """The DAG has no such task."""


class DagNotFound(AirflowNotFoundException):
    """There is no such DAG."""


class DagRunNotFound(AirflowNotFoundException):
    """The DAG has no such run."""


class DagRunAlreadyExists(AirflowBadRequest):
    """A run of that id or logical date is there already."""


class ParamValidationError(AirflowException):
    """A parameter does not satisfy its schema."""


class AirflowOptionalProviderFeatureException(AirflowException):
    """A package that this feature needs is not installed."""


class AirflowProviderDeprecationWarning(DeprecationWarning):
    """Something in a provider package is on its way out."""


class RemovedInAirflow3Warning(DeprecationWarning):
    """A name of Airflow 2 that Airflow 3 does not have. Tradewind keeps it."""


class RemovedInAirflow4Warning(DeprecationWarning):
    """A name that Airflow 4 will not have."""


AirflowDagCycleException = CycleError
DuplicateTaskIdFound = DuplicateTaskId
AirflowTimetableInvalid = ScheduleError
AirflowDagInconsistent = DefinitionError
AirflowClusterPolicyViolation = DefinitionError
