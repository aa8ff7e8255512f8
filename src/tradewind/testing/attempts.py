"""Execute one attempt in this process, and record the data that tests check."""

from __future__ import annotations

import copy
import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.model.moments import from_micros
from tradewind.testing.results import TestedAttempt, TestedWait
from tradewind.wire.messages import Workload

if TYPE_CHECKING:
    from tradewind.platform.clock import Clock
    from tradewind.sdk.operator import BaseOperator

_tasks_log = logging.getLogger("tradewind.task")


def make_attempt(
    task: BaseOperator, workload: Workload, clock: Clock, *, keep_log: bool = True, shown: bool = True
) -> tuple[TaskResult, TestedAttempt]:
    """Execute one attempt on a copy of the task.

    Args:
        keep_log: record what the task prints and logs. False for debugging: a debugger needs the real terminal.
        shown: also print the output of the task as usual.
    """
    own = copy.copy(task)
    buffer = io.StringIO()
    began = clock.wall()
    with _captured_output(buffer, shown) if keep_log else _nothing():
        result = execute_task(own, workload)
        if result.callbacks is not None:
            result.callbacks()
        if result.listeners is not None:
            result.listeners()
    done = getattr(own, "_instance", None) or own  # for a mapped task: the operator of this map index
    record = TestedAttempt(
        workload.task_id,
        workload.map_index,
        workload.try_number,
        from_micros(began),
        from_micros(clock.wall()),
        result.outcome,
        result.reason,
        {name: getattr(done, name, None) for name in done.template_fields},
        buffer.getvalue(),
        waits=None if result.deferral is None else TestedWait.of(result.deferral),
        pushed=tuple(one.key for one in result.pushed),
    )
    return result, record


@contextmanager
def _nothing() -> Iterator[None]:
    yield


class _Tee:
    """Writes to the log, and with `shown` also to the original stream. All other attributes are those of the original stream."""

    def __init__(self, buffer: io.StringIO, before: TextIO, shown: bool) -> None:
        self._buffer = buffer
        self._before = before
        self._shown = shown

    def write(self, text: str) -> int:
        self._buffer.write(text)
        return self._before.write(text) if self._shown else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._before, name)


@contextmanager
def _captured_output(buffer: io.StringIO, shown: bool) -> Iterator[None]:
    """Copy everything that is printed and logged inside the block into the buffer."""
    out, err, level = sys.stdout, sys.stderr, _tasks_log.level
    handler = logging.StreamHandler(buffer)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    _tasks_log.addHandler(handler)
    if _tasks_log.getEffectiveLevel() > logging.INFO:
        _tasks_log.setLevel(logging.INFO)
    sys.stdout = _Tee(buffer, out, shown)
    sys.stderr = _Tee(buffer, err, shown)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        _tasks_log.removeHandler(handler)
        _tasks_log.setLevel(level)
