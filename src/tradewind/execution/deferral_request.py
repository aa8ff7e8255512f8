"""Tasks that wait without a process: how an attempt says so, and how the next one goes on.

An operator calls `self.defer(trigger=…, method_name=…)`, which ends its attempt. What our own triggers and sensors wait for the
scheduler often sees by itself (a moment, tasks of other DAGs); then no trigger runs at all.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import duration_micros
from tradewind.model.waits import TIMEOUT, Deferral, Resumption, TriggerWait, Wait
from tradewind.sdk.exceptions import (
    AirflowException,
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
    """End this attempt: the task goes on in `method`, or is over (None), when the scheduler sees that the wait is.

    Args:
        timeout_at: microseconds UTC.
        soft_fail: with `method` None, a wait that fails or takes too long skips the task.
    """
    raise TaskWaits(Deferral(wait, method, encode_xcom(kwargs or {}, "kwargs"), timeout_at, soft_fail))


def scheduler_can_wait() -> bool:
    """Is there a scheduler behind this attempt that would wake the task again?"""
    return runtime.is_installed()


def deferral_of(task: BaseOperator, raised: TaskDeferred | TaskWaits) -> Deferral:
    """What a deferred task waits for.

    Raises:
        AirflowException: its trigger cannot be made again elsewhere, or there is no such method.
    """
    if isinstance(raised, TaskWaits):
        return raised.deferral
    name = raised.method_name
    if not callable(getattr(task, name, None)):
        methods = [one for one in dir(task) if not one.startswith("_") and callable(getattr(task, one, None))]
        raise AirflowException(
            f"task {task.task_id!r} deferred itself to go on in {name!r}, which {type(task).__name__} does not define."
            f"{did_you_mean(str(name), methods)}"
        )
    timeout = None if raised.timeout is None else time.time_ns() // 1000 + duration_micros(raised.timeout)
    return Deferral(trigger_wait(raised.trigger), name, encode_xcom(dict(raised.kwargs or {}), "kwargs"), timeout)


def bounded(deferral: Deferral, workload: Workload, spent: int, hard_max: int) -> Deferral:
    """The wait within the limits of its task: `execution_timeout` is for all attempts of a try together, and what is left of it
    is the longest wait, too.

    Args:
        spent: microseconds that this attempt has run.
        hard_max: bytes of what is kept for the next attempt.

    Raises:
        AirflowException: more than that is to be kept.
    """
    kept = len(deferral.kwargs) + (len(deferral.wait.kwargs) if isinstance(deferral.wait, TriggerWait) else 0)
    if kept > hard_max:
        raise AirflowException(
            f"the arguments of the trigger and of {deferral.method!r} have {kept} bytes, more than core.xcom_max_bytes={hard_max}: "
            "push them as an XCom or write them to a file, and keep its name"
        )
    if workload.execution_timeout is None:
        return deferral
    active = spent + (workload.resumption.active if workload.resumption is not None else 0)
    last = time.time_ns() // 1000 + max(0, workload.execution_timeout - active)
    until = last if deferral.timeout_at is None else min(deferral.timeout_at, last)
    return msgspec.structs.replace(deferral, timeout_at=until, active=active)


def start_in_trigger(task: BaseOperator, context: Context) -> NoReturn:
    """A task that begins with a wait: what `start_from_trigger` asks for.

    Raises:
        AirflowException: it does not say what it waits for.
    """
    told = task.start_trigger_args
    if told is None:
        raise AirflowException(f"task {task.task_id!r} has start_from_trigger=True, but no start_trigger_args")
    kwargs = task.render_template(dict(told.trigger_kwargs or {}), context)
    raise TaskDeferred(
        trigger=_Named(told.trigger_cls, kwargs), method_name=told.next_method, kwargs=told.next_kwargs, timeout=told.timeout
    )


class _Named:
    """A trigger of which only the import path is known."""

    def __init__(self, classpath: str, kwargs: dict[str, Any]) -> None:
        self._told = classpath, kwargs

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return self._told


def trigger_wait(trigger: Any) -> Wait:
    """What a trigger waits for, in the form that travels.

    Raises:
        AirflowException: it has no usable `serialize()`.
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
            f"{type(trigger).__name__} is no trigger that can run elsewhere: serialize() has to return its import path and "
            f"its arguments ({type(error).__name__}: {error})"
        ) from error
    return TriggerWait(str(classpath), encode_xcom(dict(kwargs), "the trigger's arguments"))


def go_on(task: BaseOperator, resumption: Resumption, context: Context) -> Any:
    """Call the method with which a task goes on after its wait.

    Raises:
        TaskDeferralTimeout, TaskDeferralError: the wait took too long, or its trigger failed.
    """
    kwargs = decode_xcom(resumption.kwargs)
    if resumption.error is None:
        kwargs["event"] = decode_xcom(resumption.event)
    elif resumption.error == TIMEOUT:
        kwargs = {"error": TaskDeferralTimeout("the wait took longer than its timeout")}
    else:
        kwargs = {"error": TaskDeferralError(resumption.error)}
    return task.resume_execution(resumption.method, kwargs, context)


def call_method(task: BaseOperator, name: str, kwargs: dict[str, Any], context: Context) -> Any:
    """What `BaseOperator.resume_execution` does."""
    error = kwargs.get("error") if isinstance(kwargs, dict) else None
    if isinstance(error, TaskDeferralError | TaskDeferralTimeout):
        raise error
    method = getattr(task, name, None)
    if not callable(method):
        raise AirflowException(
            f"task {task.task_id!r} is to go on in {name!r}, which {type(task).__name__} does not define any more"
        )
    return method(context, **kwargs)


def until(timeout: timedelta | float | None, begun: int) -> int | None:
    """The moment after which a wait that began at `begun` has taken too long; microseconds."""
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    return begun + int(seconds * 1_000_000)
