"""Carrying out one task: the pipeline of the runner and of `dag.test()`.

    context → templates → pre_execute → execute → post_execute → XComs → verdict → (after the report) callbacks

What the task raises becomes its outcome:

    returns                                              success
    AirflowSkipException                                 skipped
    AirflowFailException, AirflowSensorTimeout,
        AirflowTaskTerminated                            failed, without another try
    AirflowRescheduleException                           comes back later, in the same try
    DownstreamTasksSkipped                               success; the named tasks are skipped
    anything else, KeyboardInterrupt and
        SystemExit with any code among it                failed

There is no channel, process or file here. Values too large to travel with the verdict are handed to `spill`.
"""

from __future__ import annotations

import copy
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from tradewind.execution import callbacks
from tradewind.execution.context import Context, build_context, current, enter, get_current_context
from tradewind.execution.rendered_fields import kept_fields
from tradewind.execution.task_instance import MAX_MAP_LENGTH, XCOM_RETURN_KEY, TaskInstance, micros_of
from tradewind.model.branch import Branch
from tradewind.model.errors import TradewindError
from tradewind.model.states import Outcome
from tradewind.model.waits import Deferral
from tradewind.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTerminated,
    AirflowTaskTimeout,
    DownstreamTasksSkipped,
    TaskDeferred,
    TaskWaits,
    UnmappableXComLengthPushed,
    UnmappableXComTypePushed,
    XComForMappingNotPushed,
    XComNotSerializable,
)
from tradewind.sdk.lazy_list import LazyList
from tradewind.sdk.mapping import MappedOperator
from tradewind.sdk.operator_link import push_links
from tradewind.wire.messages import AssetUpdate, Workload, XComValue

if TYPE_CHECKING:
    from traceback import TracebackException

    from tradewind.sdk.operator import BaseOperator

Spill = Callable[[str, bytes], str | None]
"""(key, JSON bytes) → the name under which they can be read again; None: keep them inline."""

log = logging.getLogger("tradewind.task")

INLINE_MAX = 64 * 1024
HARD_MAX = 64 * 1024 * 1024
_REASON_MAX = 500


@dataclass(slots=True)
class TaskResult:
    """What an attempt came to.

    Attributes:
        outcome: as reported to the scheduler.
        reason: one line for people; None for a plain success.
        pushed: every XCom, encoded; also of attempts that failed.
        branch: which downstream tasks go on or are skipped.
        reschedule_at: microseconds, for `Outcome.RESCHEDULE`.
        callbacks: calls what the author wants called; to be used once the result was reported. None: nothing.
        calls_back: that is all that follows from the result; False where somebody else has to call.
        rendered: JSON of what the templated fields came to (see `rendered.kept_fields`).
        map_length: elements that its return value offers to tasks that are mapped over it (of a mapped task: 1 for any).
        map_label: what people are shown in place of its map index.
        deferral: what it waits for, for `Outcome.DEFERRED`.
        assets: what a success updated.
    """

    outcome: Outcome
    reason: str | None = None
    pushed: list[XComValue] = field(default_factory=list)
    branch: Branch | None = None
    reschedule_at: int | None = None
    callbacks: Callable[[], None] | None = None
    rendered: bytes = b""
    map_length: int | None = None
    map_label: str | None = None
    deferral: Deferral | None = None
    assets: tuple[AssetUpdate, ...] = ()
    calls_back: bool = False


def execute_task(
    task: BaseOperator,
    workload: Workload,
    *,
    spill: Spill | None = None,
    inline_max: int = INLINE_MAX,
    hard_max: int = HARD_MAX,
    max_map_length: int = MAX_MAP_LENGTH,
    test_mode: bool = False,
    started: int | None = None,
    on_copy: bool = False,
    own_process: bool = False,
    complain: Callable[[str], None] | None = None,
    tell_rendered: Callable[[bytes], None] | None = None,
) -> TaskResult:
    """Carry out one attempt. Raises nothing: whatever happens is its outcome, with the traceback in the log.

    Args:
        task: the operator. Rendering changes it, so one that will run again in this process needs `on_copy`.
        workload: what the scheduler said about the attempt.
        spill: takes values of more than `inline_max` bytes; None: all stay inline.
        inline_max, hard_max: bytes of one encoded value. More than `hard_max` fails the task.
        max_map_length: elements that the result may have, where other tasks are mapped over it.
        test_mode: what templates see under that name.
        started: when it started, in microseconds; None: now.
        on_copy: leave `task` as it is and run a shallow copy. `on_kill` must then be called on `running()`.
        own_process: the process ends with this attempt, so nothing has to be put back.
        complain: writes an error into the log; None: onto stderr.
        tell_rendered: hears what the templates came to, before the task begins.
    """
    say = complain if complain is not None else _to_stderr
    if on_copy:
        task = copy.copy(task)
    ti = TaskInstance(task, workload, started=started)
    ti.max_map_length = max_map_length
    context: Context | None = None
    raised: BaseException | None = None
    began = time.monotonic_ns()
    try:
        context = build_context(task, workload, test_mode=test_mode, ti=ti)
        if own_process:
            for name, value in ti.environment().items():
                os.environ[name] = value
            enter(context)
            _carry_out(task, context, ti, tell_rendered)
        else:
            with _environment(ti), current(context):
                _carry_out(task, context, ti, tell_rendered)
        result = TaskResult(Outcome.SUCCESS, branch=ti.branch)
    except (TaskDeferred, TaskWaits) as error:
        result = _deferred(ti, error, (time.monotonic_ns() - began) // 1000, hard_max, say)
    except BaseException as error:
        raised, result = error, _judge(error, say)
    if ti.task.outlets and result.outcome is Outcome.SUCCESS:
        result = _with_assets(result, ti, say)
    if ti.task.operator_extra_links and context is not None:
        push_links(ti.task, ti)
    result = _with_xcoms(result, ti, spill, inline_max, hard_max, say)
    result.rendered = ti.rendered
    if ti.map_index >= 0 and context is not None and ti.task.map_index_template:
        result.map_label = ti.map_label = _label(ti, context, say)
    if result.outcome is Outcome.SUCCESS:
        result.map_length = ti.map_length
    if callbacks.cut_off(raised):
        context = None  # somebody else calls
    result.calls_back = context is not None
    call_back = callbacks.after(ti.task, context, ti, result.outcome, raised)
    if call_back is not None and context is not None:
        result.callbacks = call_back if own_process else _in_context(call_back, context, ti)
    return result


def _in_context(call_back: Callable[[], None], context: Context, ti: TaskInstance) -> Callable[[], None]:
    """The same call as if the task were still running: `get_current_context` and the environment are the task's."""

    def run() -> None:
        with _environment(ti), current(context):
            call_back()

    return run


_operators: list[BaseOperator] = []


def running() -> BaseOperator | None:
    """The operator that is being carried out in this process: whose `on_kill` to call."""
    return _operators[-1] if _operators else None


def _label(ti: TaskInstance, context: Context, say: Callable[[str], None]) -> str | None:
    """What people are shown in place of the map index; a template that fails does not fail the task."""
    from tradewind.execution.templates import environment_for  # lazy door: brings jinja2

    try:
        template = environment_for(ti.task.get_dag(), force_sandboxed=True).from_string(ti.task.map_index_template)
        return _one_line(template.render(context))
    except Exception as error:
        say(f"map_index_template {ti.task.map_index_template!r} cannot be rendered: {_reason(error)}")
        return None


def _with_assets(result: TaskResult, ti: TaskInstance, say: Callable[[str], None]) -> TaskResult:
    """Add what a success updates. An event that cannot be written down turns it into a failure."""
    from tradewind.execution.asset_events import updates_of  # lazy door: only tasks with outlets pay

    try:
        result.assets = updates_of(ti)
    except AirflowException as error:
        sentence = _message(error)
        say(sentence)
        return TaskResult(Outcome.FAILED, reason=sentence)
    return result


def _carry_out(task: BaseOperator, context: Context, ti: TaskInstance, tell_rendered: Callable[[bytes], None] | None) -> None:
    _operators.append(task)
    try:
        if isinstance(task, MappedOperator):
            ti.task = context["task"] = _operators[-1] = task = task.unmap(context)
        task.render_template_fields(context)
        if task._constant_fields is not None:
            ti.rendered = task._constant_fields
        elif task.template_fields:
            ti.rendered = kept_fields(task)
            if tell_rendered is not None:
                tell_rendered(ti.rendered)
        if task._pre_execute_hook is not None:
            task._pre_execute_hook(context)
        task.pre_execute(context)
        resumption = ti.workload.resumption
        if resumption is None:
            if task.on_execute_callback:
                callbacks.call(task, "on_execute_callback", context)
            if task.start_from_trigger:
                from tradewind.execution.deferral_request import start_in_trigger  # lazy door: needed only by tasks that wait

                start_in_trigger(task, context)
            result = finished(task.execute(context))
        else:
            from tradewind.execution.deferral_request import go_on  # lazy door: needed only by tasks that wait

            result = finished(go_on(task, resumption, context))
        task.post_execute(context, result)
        if task._post_execute_hook is not None:
            task._post_execute_hook(context, result)
        push_result(task, ti, result)
    finally:
        _operators.pop()


def finished(result: Any) -> Any:
    """The result of a function that may be `async`: a coroutine is run to its end.

    So is a function that yields: what it may yield is `Metadata` about the assets that the task updates.
    """
    if isinstance(result, CoroutineType):
        import asyncio  # lazy door: only async tasks pay

        return asyncio.run(result)
    if isinstance(result, GeneratorType) and result.gi_code.co_name != "<genexpr>" and _operators:
        from tradewind.execution.asset_events import consume  # lazy door: only functions that yield pay

        return consume(result, get_current_context())
    return result


def push_result(task: BaseOperator, ti: TaskInstance, result: Any) -> None:
    """Push what `execute` returned, and its parts with `multiple_outputs`.

    Raises:
        AirflowException: `multiple_outputs`, and it is not a dictionary with texts for keys.
        XComNotSerializable: it cannot be stored.
    """
    dag = task.get_dag()
    if dag is not None and task.task_id in dag.map_provider_ids:
        ti.map_length = offered(task, ti, result)
    if result is None or not task.do_xcom_push:
        return
    if isinstance(result, LazyList):
        result = list(result)
    if task.multiple_outputs:
        if not isinstance(result, dict):
            raise AirflowException(
                f"task {task.task_id!r} has multiple_outputs=True and returned {type(result).__name__}; it must return a "
                "dictionary, each of whose keys becomes an XCom"
            )
        for key in result:
            if not isinstance(key, str):
                raise AirflowException(
                    f"task {task.task_id!r} has multiple_outputs=True and returned a dictionary with the key {key!r}; "
                    "keys must be texts"
                )
        for key, value in result.items():
            ti.xcom_push(key, value)
    ti.xcom_push(XCOM_RETURN_KEY, result)


def offered(task: BaseOperator, ti: TaskInstance, result: Any) -> int | None:
    """How many elements the result of a task offers to those that are mapped over it.

    Raises:
        XComForMappingNotPushed, UnmappableXComTypePushed, UnmappableXComLengthPushed: they could not be expanded over it.
    """
    if ti.map_index >= 0:  # the list is made of what all instances return
        return 1 if result is not None and task.do_xcom_push else None
    if result is None or not task.do_xcom_push:
        why = "returned nothing" if task.do_xcom_push else "has do_xcom_push=False"
        raise XComForMappingNotPushed(
            f"other tasks are mapped over the result of {task.task_id!r}, but it {why}; return a list or a dictionary, "
            "an empty one where there is nothing to do"
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
            f"core.max_map_length={limit}: return fewer (lists of elements, say), or raise the setting"
        )
    return len(result)


@contextmanager
def _environment(ti: TaskInstance) -> Iterator[None]:
    """Environment variables that name the attempt, while it runs."""
    told = ti.environment()
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# --- what an exception means ------------------------------------------------------------------------------------------


def _judge(error: BaseException, say: Callable[[str], None]) -> TaskResult:
    """The outcome that an exception stands for. Says the traceback of failures."""
    match error:
        case AirflowSkipException():
            reason = _message(error) or "the task raised AirflowSkipException"
            # a sensor that skips instead of failing (soft_fail, never_fail) names the error as its cause
            log.info("Skipped: %s", reason, exc_info=error.__cause__)
            return TaskResult(Outcome.SKIPPED, reason=reason)
        case AirflowRescheduleException(reschedule_date=date):
            return TaskResult(Outcome.RESCHEDULE, reason=_message(error), reschedule_at=micros_of(date))
        case DownstreamTasksSkipped(tasks=tasks):
            names = tuple(one if isinstance(one, str) else one[0] for one in tasks)
            return TaskResult(Outcome.SUCCESS, branch=Branch("skip", names))
        case SystemExit():
            reason = f"the task called sys.exit({error.code!r}); any code fails a task, end it with return"
        case KeyboardInterrupt():
            reason = "the task was interrupted (KeyboardInterrupt)"
        case _:
            reason = _reason(error)
    say(_failure_text(error))
    final = isinstance(error, AirflowFailException | AirflowSensorTimeout | AirflowTaskTerminated)
    return TaskResult(Outcome.FAILED_FINAL if final else Outcome.FAILED, reason=reason)


def _deferred(
    ti: TaskInstance, raised: TaskDeferred | TaskWaits, spent: int, hard_max: int, say: Callable[[str], None]
) -> TaskResult:
    """The task waits from here on; a wait that cannot be handed over is a failure. `spent`: microseconds of this attempt."""
    from tradewind.execution.deferral_request import bounded, deferral_of  # lazy door: needed only by tasks that wait

    try:
        deferral = deferral_of(ti.task, raised)
        if isinstance(raised, TaskDeferred):
            deferral = bounded(deferral, ti.workload, spent, hard_max)
        return TaskResult(Outcome.DEFERRED, reason=_message(raised), deferral=deferral)
    except Exception as error:
        return _judge(error, say)


def trace_of(error: BaseException) -> str:
    """The traceback of an error, beginning where the author's code begins."""
    return _failure_text(error)


def one_line_of(error: BaseException) -> str:
    """What an error says, in one line for people."""
    return _reason(error)


def _message(error: BaseException) -> str:
    return _one_line(str(error))


def _reason(error: BaseException) -> str:
    """One line: the kind of error, what it says, and where a note says it happened."""
    try:
        text = str(error)
    except Exception:  # an exception of the user's, whose __str__ fails
        text = "(its message cannot be shown)"
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    for note in getattr(error, "__notes__", ()):
        said += f", {note}"
    return _one_line(said)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _REASON_MAX else text[: _REASON_MAX - 1] + "…"


_OURS = str(Path(__file__).parent.parent) + os.sep


def _failure_text(error: BaseException) -> str:
    """The traceback, beginning where the author's code begins.

    An error of ours that none of the author's code led to (a failed command, a sensor's timeout) is one line.
    """
    from traceback import TracebackException  # lazy door: only failures pay

    try:
        trace = TracebackException.from_exception(error)
        _trim(trace, isinstance(error, TradewindError | AirflowTaskTerminated | AirflowTaskTimeout))
        return "".join(trace.format()).rstrip("\n")
    except Exception as broken:  # the user's exception breaks its own traceback
        return f"{type(error).__name__} (its traceback cannot be shown: {type(broken).__name__})"


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # the log is gone or full: the verdict must still be reported
        pass


def _trim(trace: TracebackException, ours: bool) -> None:
    frames = list(trace.stack)
    begin = 0
    while begin < len(frames) and _is_machinery(frames[begin].filename):
        begin += 1
    if begin < len(frames):
        del trace.stack[:begin]
    elif ours:
        trace.stack = None  # type: ignore[assignment]  # format() leaves the heading out, too
    for chained in (trace.__cause__, trace.__context__):
        if chained is not None:
            _trim(chained, ours)


def _is_machinery(filename: str) -> bool:
    return filename.startswith(_OURS) or f"{os.sep}jinja2{os.sep}" in filename or f"{os.sep}asyncio{os.sep}" in filename


# --- XComs ------------------------------------------------------------------------------------------------------------


def _with_xcoms(
    result: TaskResult, ti: TaskInstance, spill: Spill | None, inline_max: int, hard_max: int, say: Callable[[str], None]
) -> TaskResult:
    """Add what was pushed. A value that cannot be kept turns a success into a failure."""
    for key, data in ti.encoded.items():
        try:
            result.pushed.append(_xcom(key, data, spill, inline_max, hard_max))
        except (XComNotSerializable, OSError) as error:
            sentence = _message(error)
            if isinstance(error, OSError):
                sentence = f"the XCom {key!r} ({_bytes(len(data))}) could not be written: {sentence}"
            say(sentence)
            if result.outcome in (Outcome.SUCCESS, Outcome.SKIPPED):
                result = TaskResult(Outcome.FAILED, reason=sentence, pushed=result.pushed)
    return result


def _xcom(key: str, data: bytes, spill: Spill | None, inline_max: int, hard_max: int) -> XComValue:
    size = len(data)
    if size > hard_max:
        raise XComNotSerializable(
            f"the XCom {key!r} has {_bytes(size)}, more than the {_bytes(hard_max)} that one may have: write the data to a "
            "file or a table and return its name, or raise the setting core.xcom_max_bytes"
        )
    name = spill(key, data) if spill is not None and size > inline_max else None
    return XComValue(key, value=b"" if name is not None else data, spill=name, size=size)


def _bytes(count: int) -> str:
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{count / step:.4g} {unit}"
    return f"{count} bytes"
