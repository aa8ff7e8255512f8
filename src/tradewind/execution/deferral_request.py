"""Tasks that wait without a process: how an attempt requests the wait, and how the next attempt continues.

`self.defer(trigger=…, method_name=…)` in an operator ends its attempt. The scheduler itself can do the waits of Tradewind's own
triggers and sensors (a point in time, tasks of other DAGs); in that case no trigger runs.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from tradewind.execution import input_request
from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import duration_micros, to_micros
from tradewind.model.waits import TIMEOUT, Deferral, InputWait, Resumption, TriggerWait, Wait
from tradewind.sdk.exceptions import (
    AirflowException,
    TaskAwaitingInput,
    TaskDeferralError,
    TaskDeferralTimeout,
    TaskDeferred,
    TaskWaits,
)
from tradewind.wire import runtime
from tradewind.wire.messages import Workload

if TYPE_CHECKING:
    from tradewind.execution.context import Context
    from tradewind.sdk.operator import BaseOperator


def wait_for(
    wait: Wait,
    *,
    method: str | None = None,
    kwargs: dict[str, Any] | None = None,
    timeout_at: int | None = None,
    soft_fail: bool = False,
) -> NoReturn:
    """End this attempt. When the wait ends, the task continues in `method`; with `method=None` the task has then ended.

    Args:
        timeout_at: end of the wait at the latest, in microseconds UTC.
        soft_fail: only with `method=None`: a wait that fails or times out skips the task.
    """
    raise TaskWaits(Deferral(wait, method, encode_xcom(kwargs or {}, "kwargs"), timeout_at, soft_fail))


def scheduler_can_wait() -> bool:
    """True if this attempt was started by a scheduler, which can continue the task after a wait."""
    return runtime.is_installed()


def deferral_of(task: BaseOperator, raised: TaskDeferred | TaskWaits | TaskAwaitingInput, ti_id: str = "") -> Deferral:
    """The wait that a deferred task requests.

    Args:
        ti_id: `id` of the task instance: a question to a person is stored under it.

    Raises:
        AirflowException: the trigger cannot be created in another process, the task has no such method, or it waits for an
            answer without a question.
    """
    question = input_request.take(ti_id)
    if isinstance(raised, TaskWaits):
        return raised.deferral
    name = raised.method_name
    if not callable(getattr(task, name, None)):
        methods = [one for one in dir(task) if not one.startswith("_") and callable(getattr(task, one, None))]
        raise AirflowException(
            f"task {task.task_id!r} deferred itself with method_name={name!r}, which {type(task).__name__} does not define."
            f"{did_you_mean(str(name), methods)}"
        )
    timeout = None if raised.timeout is None else time.time_ns() // 1000 + duration_micros(raised.timeout)
    kwargs = encode_xcom(dict(raised.kwargs or {}), "kwargs")
    if isinstance(raised, TaskAwaitingInput):
        if question is None:
            raise AirflowException(
                f"task {task.task_id!r} waits for an answer, but has asked nothing: call upsert_hitl_detail before "
                "TaskAwaitingInput is raised"
            )
        return Deferral(question, name, kwargs, timeout)
    wait = trigger_wait(raised.trigger)
    if question is not None and isinstance(wait, TriggerWait) and wait.classpath.endswith(".HITLTrigger"):
        # providers for Airflow 3.1 and 3.2 poll for the answer with this trigger; here the scheduler does this wait
        until = decode_xcom(wait.kwargs).get("timeout_datetime")
        return Deferral(question, name, kwargs, None if until is None else to_micros(until))
    return Deferral(wait, name, kwargs, timeout)


def limited_by_timeout(deferral: Deferral, workload: Workload, spent: int, hard_max: int) -> Deferral:
    """The wait with `execution_timeout` applied: this limit is for all attempts of a try together, and a wait may take at most what
    is left of it. The answer of a person may take longer: only the timeout of the question limits it.

    Args:
        spent: duration of this attempt in microseconds.
        hard_max: maximum size in bytes of the arguments that are stored for the next attempt.

    Raises:
        AirflowException: the arguments are larger.
    """
    size = len(deferral.kwargs) + _size(deferral.wait)
    if size > hard_max:
        raise AirflowException(
            f"the arguments of the trigger and of {deferral.method!r} have {size} bytes, more than core.xcom_max_bytes={hard_max}: "
            "push them as an XCom or write them to a file, and pass the key or the path"
        )
    if workload.execution_timeout is None:
        return deferral
    if isinstance(deferral.wait, InputWait):
        return deferral
    active = spent + (workload.resumption.active if workload.resumption is not None else 0)
    last = time.time_ns() // 1000 + max(0, workload.execution_timeout - active)
    until = last if deferral.timeout_at is None else min(deferral.timeout_at, last)
    return msgspec.structs.replace(deferral, timeout_at=until, active=active)


def _size(wait: Wait) -> int:
    if isinstance(wait, TriggerWait):
        return len(wait.kwargs)
    if isinstance(wait, InputWait):
        return len(wait.params) + len(wait.body or "") + len(wait.subject)
    return 0


def start_in_trigger(task: BaseOperator, context: Context) -> NoReturn:
    """Start a task with a wait, as `start_from_trigger` requests.

    Raises:
        AirflowException: `start_trigger_args` is missing.
    """
    given = task.start_trigger_args
    if given is None:
        raise AirflowException(f"task {task.task_id!r} has start_from_trigger=True, but no start_trigger_args")
    kwargs = task.render_template(dict(given.trigger_kwargs or {}), context)
    raise TaskDeferred(
        trigger=_TriggerByPath(given.trigger_cls, kwargs),
        method_name=given.next_method,
        kwargs=given.next_kwargs,
        timeout=given.timeout,
    )


class _TriggerByPath:
    """A trigger of which only the import path and the arguments are known."""

    def __init__(self, classpath: str, kwargs: dict[str, Any]) -> None:
        self._serialized = classpath, kwargs

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return self._serialized


def trigger_wait(trigger: Any) -> Wait:
    """The wait of a trigger as plain values.

    Raises:
        AirflowException: the trigger has no usable `serialize()`.
    """
    as_wait = getattr(trigger, "as_wait", None)
    if as_wait is not None:
        found: Wait | None = as_wait()
        if found is not None:
            return found
    try:
        classpath, kwargs = trigger.serialize()
    except (AttributeError, TypeError, ValueError) as error:
        raise AirflowException(
            f"{type(trigger).__name__} cannot run in the triggerer: serialize() must return its import path and its arguments "
            f"({type(error).__name__}: {error})"
        ) from error
    return TriggerWait(str(classpath), encode_xcom(dict(kwargs), "the trigger's arguments"))


def resume(task: BaseOperator, resumption: Resumption, context: Context) -> Any:
    """Call the method in which a task continues after its wait.

    Raises:
        TaskDeferralTimeout, TaskDeferralError: the wait timed out, or its trigger failed.
    """
    kwargs = decode_xcom(resumption.kwargs)
    if resumption.error is None:
        kwargs["event"] = decode_xcom(resumption.event)
    elif resumption.error == TIMEOUT:
        kwargs = {"error": TaskDeferralTimeout("the wait exceeded its timeout")}
    else:
        kwargs = {"error": TaskDeferralError(resumption.error)}
    return task.resume_execution(resumption.method, kwargs, context)


TRIGGERED_RUN = "<wait for the triggered run>"
"""Method name of tasks whose operator requested a run by an exception: it has no method of its own to continue in."""


def call_method(task: BaseOperator, name: str, kwargs: dict[str, Any], context: Context) -> Any:
    """The implementation of `BaseOperator.resume_execution`."""
    error = kwargs.get("error") if isinstance(kwargs, dict) else None
    if isinstance(error, TaskDeferralError | TaskDeferralTimeout):
        raise error
    if name == TRIGGERED_RUN:
        from tradewind.operators.trigger_dagrun import wait_again  # lazy import: only tasks that wait for a triggered run

        return wait_again(task, context, **kwargs)
    method = getattr(task, name, None)
    if not callable(method):
        raise AirflowException(
            f"task {task.task_id!r} should continue in {name!r}, which {type(task).__name__} does not define any more"
        )
    return method(context, **kwargs)


def until(timeout: timedelta | float | None, started: int) -> int | None:
    """The end of a wait that started at `started`, in microseconds; None without a timeout."""
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    return started + int(seconds * 1_000_000)
