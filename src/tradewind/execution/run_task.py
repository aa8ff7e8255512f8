"""Running one task: the steps of an attempt, for the task process and for `dag.test()`.

    context → templates → pre_execute → execute → post_execute → XComs → result → (after the report) callbacks

The result or exception of the task decides the outcome:

    returns                                              success
    AirflowSkipException                                 skipped
    AirflowFailException, AirflowSensorTimeout,
        AirflowTaskTerminated                            failed, without a retry
    AirflowRescheduleException                           starts again later, in the same try
    DownstreamTasksSkipped                               success; the named tasks are skipped
    any other exception, including KeyboardInterrupt
        and SystemExit with any code                     failed

This module uses no channel, process or file. Values that are too large for the report are passed to `spill`.
"""

from __future__ import annotations

import copy
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

import msgspec

from tradewind.execution import callbacks, listener_calls
from tradewind.execution.call_arguments import call_post_execute
from tradewind.execution.context import Context, build_context, current_context, get_current_context, push_context
from tradewind.execution.rendered_fields import stored_fields
from tradewind.execution.task_instance import MAX_MAP_LENGTH, XCOM_RETURN_KEY, TaskInstance, micros_of
from tradewind.model.branch import Branch
from tradewind.model.errors import TradewindError
from tradewind.model.moments import duration_micros
from tradewind.model.phrases import english, phrase
from tradewind.model.states import Outcome
from tradewind.model.waits import Deferral, InputWait
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTerminated,
    AirflowTaskTimeout,
    DagRunTriggerException,
    DownstreamTasksSkipped,
    TaskAwaitingInput,
    TaskDeferred,
    TaskWaits,
    UnmappableXComLengthPushed,
    UnmappableXComTypePushed,
    XComForMappingNotPushed,
    XComNotSerializable,
)
from tradewind.sdk.lazy_list import LazyList
from tradewind.sdk.mapping import MappedOperator
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.operator_link import push_links
from tradewind.sdk.params import ParamsDict
from tradewind.sdk.policies import context_variables
from tradewind.sdk.templater import needs_preparation
from tradewind.wire.messages import AssetUpdate, Workload, XComValue

if TYPE_CHECKING:
    from traceback import TracebackException


Spill = Callable[[str, bytes], str | None]
"""(key, JSON bytes) → name under which the value can be read again; None: store the value inline."""

log = logging.getLogger("tradewind.task")

INLINE_MAX = 64 * 1024
HARD_MAX = 64 * 1024 * 1024
_REASON_MAX = 500


_FAILED = (Outcome.FAILED, Outcome.FAILED_FINAL)


class TaskResult(msgspec.Struct):
    """The result of an attempt. A struct, because setting the slots of a dataclass writes to the memory page of each slot, and a
    fork has to copy these pages.

    Attributes:
        outcome: the outcome that is reported to the scheduler.
        reason: one line for people; None for a success.
        pushed: all XComs, encoded; also of failed attempts.
        branch: which downstream tasks run or are skipped.
        reschedule_at: microseconds, for `Outcome.RESCHEDULE`.
        retry_delay: microseconds until the next try, if the retry policy set a delay. None: the `retry_delay` of the task.
        callbacks: calls the author's callbacks; to be called after the result was reported. None: there are none.
        listeners: calls the listeners of plugins; to be called after `callbacks`. None: there are none.
        calls_back: True if `callbacks` calls all callbacks of the result; False if another process has to call them.
        rendered: the rendered templated fields as JSON (see `rendered_fields.stored_fields`).
        map_length: number of elements for tasks that are mapped over the return value (for an instance of a mapped task: 1).
        map_label: the text that is shown instead of the map index.
        deferral: the wait, for `Outcome.DEFERRED` and `Outcome.AWAITING_INPUT`.
        assets: the asset updates of a success.
        error: the exception that failed the task.
    """

    outcome: Outcome
    reason: str | None = None
    pushed: list[XComValue] = []
    branch: Branch | None = None
    reschedule_at: int | None = None
    retry_delay: int | None = None
    callbacks: Callable[[], None] | None = None
    listeners: Callable[[], None] | None = None
    rendered: bytes = b""
    map_length: int | None = None
    map_label: str | None = None
    deferral: Deferral | None = None
    assets: tuple[AssetUpdate, ...] = ()
    calls_back: bool = False
    error: BaseException | None = None


def execute_task(
    task: BaseOperator,
    workload: Workload,
    *,
    spill: Spill | None = None,
    inline_max: int = INLINE_MAX,
    hard_max: int = HARD_MAX,
    max_map_length: int = MAX_MAP_LENGTH,
    clear_state_store: bool | None = None,
    test_mode: bool = False,
    started: int | None = None,
    on_copy: bool = False,
    own_process: bool = False,
    write_error: Callable[[str], None] | None = None,
    report_rendered: Callable[[bytes], None] | None = None,
) -> TaskResult:
    """Run one attempt. Raises nothing: every exception becomes the outcome, with the traceback in the log.

    Args:
        task: the operator. Rendering changes it, so an operator that runs again in this process needs `on_copy`.
        workload: the description of the attempt from the scheduler.
        spill: stores values of more than `inline_max` bytes. None: all values are stored inline.
        inline_max, hard_max: bytes of one encoded value. A value of more than `hard_max` bytes fails the task.
        max_map_length: maximum number of elements of a result over which other tasks are mapped.
        clear_state_store: delete the values of the task in its state store after a success. None: the setting
            `state_store.clear_on_success` decides.
        test_mode: value of the context variable `test_mode`.
        started: start of the attempt in microseconds. None: now.
        on_copy: run a shallow copy of `task` and leave `task` unchanged. `on_kill` must then be called on `running()`.
        own_process: the process ends with this attempt, so the environment is not restored.
        write_error: writes an error to the log. None: to stderr.
        report_rendered: called with the rendered fields before the task starts.
    """
    write = write_error if write_error is not None else _to_stderr
    if on_copy:
        task = copy.copy(task)
    ti = TaskInstance(task, workload, started=started)
    ti.max_map_length = max_map_length
    context: Context | None = None
    raised: BaseException | None = None
    began = time.monotonic_ns()
    try:
        context = build_context(task, workload, test_mode=test_mode, ti=ti)
        ti.context_variables = context_variables(context)
        if own_process:
            for name, value in ti.environment().items():
                os.environ[name] = value
            push_context(context)
            _run_operator(task, context, ti, report_rendered)
        else:
            with _environment(ti), current_context(context):
                _run_operator(task, context, ti, report_rendered)
        if clear_state_store or (clear_state_store is None and _clears_state_store()):
            _clear_state_store()
        result = TaskResult(Outcome.SUCCESS, branch=ti.branch)
    except (TaskDeferred, TaskWaits, TaskAwaitingInput) as error:
        result = _deferred(ti, error, (time.monotonic_ns() - began) // 1000, hard_max, write)
    except BaseException as error:
        raised, result = error, _with_retry_policy(ti, error, _result_of_exception(error, write))
    if ti.map_index >= 0 and context is not None and ti.task.map_index_template:
        raised, result = _with_label(ti, context, raised, result, write)
    if ti.task.outlets and result.outcome is Outcome.SUCCESS:
        result = _with_assets(result, ti, write)
    if ti.task.operator_extra_links and context is not None:
        push_links(ti.task, ti)
    result = _with_xcoms(result, ti, spill, inline_max, hard_max, write)
    result.rendered, result.map_label = _fields_after(ti), ti.map_label
    if result.outcome is Outcome.SUCCESS:
        result.map_length = ti.map_length
    result.error = raised if own_process and result.outcome in _FAILED else None
    call_listeners = listener_calls.after_result(ti, result.outcome, raised)
    if call_listeners is not None:
        result.listeners = call_listeners if own_process else _in_environment(call_listeners, context, ti)
    if callbacks.was_terminated(raised):
        context = None  # another process calls the callbacks
    result.calls_back = context is not None
    call_back = callbacks.callbacks_after(ti.task, context, ti, result.outcome, raised)
    if call_back is not None and context is not None:
        result.callbacks = call_back if own_process else _in_environment(call_back, context, ti)
    return result


def _clears_state_store() -> bool:
    return bool(conf.getboolean("state_store", "clear_on_success", fallback=False))


def _clear_state_store() -> None:
    """Delete the values in the state store of the task."""
    from tradewind.execution.state_stores import TaskStateStore  # lazy import: few installations clear the store

    try:
        TaskStateStore().clear()
    except (AirflowException, TradewindError) as error:  # the task has succeeded; its values expire later
        log.warning("the task state store was not cleared: %s", error)


def _in_environment(call_back: Callable[[], None], context: Context | None, ti: TaskInstance) -> Callable[[], None]:
    """Return a function that calls `call_back` in the environment of the task: with its context and its environment variables."""

    def run() -> None:
        with _environment(ti), nullcontext() if context is None else current_context(context):
            call_back()

    return run


_operators: list[BaseOperator] = []


def running() -> BaseOperator | None:
    """The operator that is running in this process, whose `on_kill` can be called."""
    return _operators[-1] if _operators else None


def _with_label(
    ti: TaskInstance, context: Context, raised: BaseException | None, result: TaskResult, write: Callable[[str], None]
) -> tuple[BaseException | None, TaskResult]:
    """Set the text that is shown instead of the map index.

    An error in `map_index_template` fails a task that has succeeded, as in Airflow. It does not hide another error.
    """
    from tradewind.execution.templates import environment_for  # lazy import: needs jinja2

    try:
        template = environment_for(ti.task.get_dag(), force_sandboxed=True).from_string(ti.task.map_index_template)
        ti.map_label = _one_line(template.render(context))
    except Exception as error:
        if result.outcome is Outcome.SUCCESS:
            error.add_note(f"in the map_index_template of task {ti.task_id!r}: {ti.task.map_index_template!r}")
            return error, _with_retry_policy(ti, error, _result_of_exception(error, write))
        write(f"cannot render map_index_template {ti.task.map_index_template!r}: {describe_error(error)}")
    return raised, result


def _fields_after(ti: TaskInstance) -> bytes:
    """The rendered fields that the result keeps: those from before `execute`, or the present ones, if the operator asks for it by
    `overwrite_rtif_after_execution`, an attribute of Airflow.
    """
    return stored_fields(ti.task) if getattr(ti.task, "overwrite_rtif_after_execution", False) else ti.rendered


def _with_assets(result: TaskResult, ti: TaskInstance, write: Callable[[str], None]) -> TaskResult:
    """Add the asset updates of a success. If an event cannot be stored, the result is a failure."""
    from tradewind.execution.asset_events import updates_of  # lazy import: only tasks with outlets need it

    try:
        result.assets = updates_of(ti)
    except AirflowException as error:
        message = _message(error)
        write(message)
        return TaskResult(Outcome.FAILED, reason=message)
    return result


def _run_operator(
    task: BaseOperator, context: Context, ti: TaskInstance, report_rendered: Callable[[bytes], None] | None
) -> None:
    _operators.append(task)
    try:
        if isinstance(task, MappedOperator):
            ti.task = context["task"] = _operators[-1] = task = task.unmap(context)
        elif needs_preparation(task):
            task.resolve_template_files()  # Airflow does it after a DAG file is read, and not for mapped tasks
        if ti.workload.conf and task._params:
            task.params = _params_of_run(task.params, context["params"])
        task.render_template_fields(context)
        if task._constant_fields is not None:
            ti.rendered = task._constant_fields
        elif task.template_fields:
            ti.rendered = stored_fields(task)
            if report_rendered is not None:
                report_rendered(ti.rendered)
        if task._pre_execute_hook is not None:
            task._pre_execute_hook(context)
        task.pre_execute(context)
        listener_calls.task_is_running(ti)
        resumption = ti.workload.resumption
        if task.on_execute_callback:
            callbacks.call(task, "on_execute_callback", context)
        if resumption is None:
            if task.start_from_trigger:
                from tradewind.execution.deferral_request import start_in_trigger  # lazy import: only deferred tasks need it

                start_in_trigger(task, context)
            result = _execute(task, context)
        else:
            from tradewind.execution.deferral_request import resume  # lazy import: only deferred tasks need it

            result = run_to_end(resume(task, resumption, context))
        if getattr(task.post_execute, "__func__", None) is not BaseOperator.post_execute:
            call_post_execute(task, context, result)
        if task._post_execute_hook is not None:
            task._post_execute_hook(context, result)
        push_result(task, ti, result)
    finally:
        _operators.pop()


def _params_of_run(params: ParamsDict, values: Mapping[str, Any]) -> ParamsDict:
    """The parameters of an operator with the values of the run, which its conf may have changed."""
    changed = ParamsDict(params)
    changed.update({name: values[name] for name in params if name in values})
    return changed


def _execute(task: BaseOperator, context: Context) -> Any:
    """Return the result of `execute`. If it raises the request for a run of another DAG, trigger the run."""
    try:
        return run_to_end(task.execute(context))
    except DagRunTriggerException as request:
        from tradewind.operators.trigger_dagrun import trigger_for  # lazy import: only operators of Airflow 3 raise it

        return trigger_for(task, request, context)


def run_to_end(result: Any) -> Any:
    """Return the result of a function that may be `async` or a generator function.

    A coroutine is run to its end. A generator is iterated; it may yield `Metadata` about the assets that the task updates.
    """
    if isinstance(result, CoroutineType):
        import asyncio  # lazy import: only async tasks need it

        return asyncio.run(result)
    if isinstance(result, GeneratorType) and result.gi_code.co_name != "<genexpr>" and _operators:
        from tradewind.execution.asset_events import consume  # lazy import: only generator functions need it

        return consume(result, get_current_context())
    return result


def push_result(task: BaseOperator, ti: TaskInstance, result: Any) -> None:
    """Push the result of `execute`, and its items with `multiple_outputs`.

    Raises:
        AirflowException: `multiple_outputs` is set and the result is not a dictionary with string keys.
        XComNotSerializable: the result cannot be stored.
    """
    dag = task.get_dag()
    if dag is not None and task.task_id in dag.map_provider_ids:
        ti.map_length = map_length_of(task, ti, result)
    if result is None or not task.do_xcom_push:
        return
    if isinstance(result, LazyList):
        result = list(result)
    if task.multiple_outputs:
        if not isinstance(result, dict):
            raise AirflowException(
                f"task {task.task_id!r} has multiple_outputs=True but returned {type(result).__name__}; it must return a "
                "dictionary, whose items become XComs"
            )
        for key in result:
            if not isinstance(key, str):
                raise AirflowException(
                    f"task {task.task_id!r} has multiple_outputs=True but returned a dictionary with the key {key!r}; "
                    "all keys must be strings"
                )
        for key, value in result.items():
            ti.xcom_push(key, value)
    ti.xcom_push(XCOM_RETURN_KEY, result)


def map_length_of(task: BaseOperator, ti: TaskInstance, result: Any) -> int | None:
    """The number of elements for tasks that are mapped over the result of this task.

    Raises:
        XComForMappingNotPushed, UnmappableXComTypePushed, UnmappableXComLengthPushed: tasks cannot be mapped over this result.
    """
    if ti.map_index >= 0:  # the list consists of the results of all instances
        return 1 if result is not None and task.do_xcom_push else None
    if result is None or not task.do_xcom_push:
        why = "returned nothing" if task.do_xcom_push else "has do_xcom_push=False"
        raise XComForMappingNotPushed(
            f"other tasks are mapped over the result of {task.task_id!r}, but it {why}; return a list or a dictionary, "
            "which may be empty"
        )
    if not isinstance(result, Sequence | dict) or isinstance(result, str | bytes):
        raise UnmappableXComTypePushed(
            f"other tasks are mapped over the result of {task.task_id!r}, but it returned {type(result).__name__}; "
            "return a list or a dictionary"
        )
    limit = ti.max_map_length
    if len(result) > limit:
        raise UnmappableXComLengthPushed(
            f"other tasks are mapped over the result of {task.task_id!r}, which has {len(result)} elements, more than "
            f"core.max_map_length={limit}; return fewer elements (for example lists of elements), or increase the setting"
        )
    return len(result)


@contextmanager
def _environment(ti: TaskInstance) -> Iterator[None]:
    """Set the environment variables of the attempt while it runs."""
    variables = ti.environment()
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# --- exceptions -------------------------------------------------------------------------------------------------------


def _result_of_exception(error: BaseException, write: Callable[[str], None]) -> TaskResult:
    """The result for an exception of the task. Writes the traceback of a failure."""
    match error:
        case AirflowSkipException():
            reason = _message(error) or english(phrase("cause_skip_raised"))
            # a sensor that skips instead of failing (soft_fail, never_fail) sets the error as the cause
            log.info("Skipped: %s", reason, exc_info=error.__cause__)
            return TaskResult(Outcome.SKIPPED, reason=reason)
        case AirflowRescheduleException(reschedule_date=date):
            return TaskResult(Outcome.RESCHEDULE, reason=_message(error), reschedule_at=micros_of(date))
        case DownstreamTasksSkipped(tasks=tasks):
            names = tuple(one if isinstance(one, str) else one[0] for one in tasks)
            return TaskResult(Outcome.SUCCESS, branch=Branch("skip", names))
        case SystemExit():
            reason = english(phrase("cause_sys_exit", code=repr(error.code)))
        case KeyboardInterrupt():
            reason = english(phrase("cause_interrupted"))
        case _:
            reason = describe_error(error)
    write(format_traceback(error))
    final = isinstance(error, AirflowFailException | AirflowSensorTimeout | AirflowTaskTerminated)
    return TaskResult(Outcome.FAILED_FINAL if final else Outcome.FAILED, reason=reason)


def _with_retry_policy(ti: TaskInstance, error: BaseException, result: TaskResult) -> TaskResult:
    """Apply the `retry_policy` of the task to a failure that may be retried. If the policy raises, the result is unchanged."""
    policy = ti.task.retry_policy
    if policy is None or result.outcome is not Outcome.FAILED:
        return result
    try:
        decision = policy.evaluate(error, ti.try_number, ti.max_tries, ti.context)
        action = str(getattr(decision.action, "value", decision.action))
        delay = None if decision.retry_delay is None else duration_micros(decision.retry_delay)
    except Exception:
        log.exception("The retry policy raised an exception; retries and retry_delay of the task are used")
        return result
    if action == "default":
        return result
    log.info("The retry policy decided: %s%s", action, f" ({decision.reason})" if decision.reason else "")
    if action == "fail":
        result.outcome = Outcome.FAILED_FINAL
    else:
        result.retry_delay = delay
    return result


def _deferred(
    ti: TaskInstance,
    raised: TaskDeferred | TaskWaits | TaskAwaitingInput,
    spent: int,
    hard_max: int,
    write: Callable[[str], None],
) -> TaskResult:
    """The result for a deferral. An invalid wait is a failure. `spent`: duration of this attempt in microseconds."""
    from tradewind.execution.deferral_request import deferral_of, limited_by_timeout  # lazy import: only deferred tasks need it

    try:
        deferral = deferral_of(ti.task, raised, ti.id)
        if not isinstance(raised, TaskWaits):
            deferral = limited_by_timeout(deferral, ti.workload, spent, hard_max)
        outcome = Outcome.AWAITING_INPUT if isinstance(deferral.wait, InputWait) else Outcome.DEFERRED
        return TaskResult(outcome, reason=_message(raised), deferral=deferral)
    except Exception as error:
        return _result_of_exception(error, write)


def _message(error: BaseException) -> str:
    return _one_line(str(error))


def describe_error(error: BaseException) -> str:
    """One line for people: the type of the error, its message, and its notes."""
    try:
        text = str(error)
    except Exception:  # an exception of the author whose __str__ fails
        text = "(its message cannot be shown)"
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    for note in getattr(error, "__notes__", ()):
        line += f", {note}"
    return _one_line(line)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _REASON_MAX else text[: _REASON_MAX - 1] + "…"


_OURS = str(Path(__file__).parent.parent) + os.sep


def format_traceback(error: BaseException) -> str:
    """The traceback of an error, from the first line of the author's code on.

    An error of Tradewind without a line of the author's code (a failed command, a sensor's timeout) is one line.
    """
    from traceback import TracebackException  # lazy import: only failures need it

    try:
        trace = TracebackException.from_exception(error)
        _trim(trace, isinstance(error, TradewindError | AirflowTaskTerminated | AirflowTaskTimeout))
        return "".join(trace.format()).rstrip("\n")
    except Exception as broken:  # an exception of the author that breaks its own traceback
        return f"{type(error).__name__} (its traceback cannot be shown: {type(broken).__name__})"


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # the log is closed or full, but the result must still be reported
        pass


def _trim(trace: TracebackException, ours: bool) -> None:
    frames = list(trace.stack)
    begin = 0
    while begin < len(frames) and _is_machinery(frames[begin].filename):
        begin += 1
    if begin < len(frames):
        del trace.stack[:begin]
    elif ours:
        trace.stack = None  # type: ignore[assignment]  # format() then also leaves out the heading
    for chained in (trace.__cause__, trace.__context__):
        if chained is not None:
            _trim(chained, ours)


def _is_machinery(filename: str) -> bool:
    return filename.startswith(_OURS) or f"{os.sep}jinja2{os.sep}" in filename or f"{os.sep}asyncio{os.sep}" in filename


# --- XComs ------------------------------------------------------------------------------------------------------------


def _with_xcoms(
    result: TaskResult, ti: TaskInstance, spill: Spill | None, inline_max: int, hard_max: int, write: Callable[[str], None]
) -> TaskResult:
    """Add the pushed XComs. If a value cannot be stored, a success becomes a failure."""
    for key, data in ti.encoded.items():
        try:
            result.pushed.append(_xcom(key, data, spill, inline_max, hard_max))
        except (XComNotSerializable, OSError) as error:
            message = _message(error)
            if isinstance(error, OSError):
                message = f"cannot write the XCom {key!r} ({_bytes(len(data))}): {message}"
            write(message)
            if result.outcome in (Outcome.SUCCESS, Outcome.SKIPPED):
                result = TaskResult(Outcome.FAILED, reason=message, pushed=result.pushed)
    return result


def _xcom(key: str, data: bytes, spill: Spill | None, inline_max: int, hard_max: int) -> XComValue:
    size = len(data)
    if size > hard_max:
        raise XComNotSerializable(
            f"the XCom {key!r} has {_bytes(size)}, more than the limit of {_bytes(hard_max)}: write the data to a "
            "file or a table and return its name, or increase the setting core.xcom_max_bytes"
        )
    name = spill(key, data) if spill is not None and size > inline_max else None
    return XComValue(key, value=b"" if name is not None else data, spill=name, size=size)


def _bytes(count: int) -> str:
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{count / step:.4g} {unit}"
    return f"{count} bytes"
