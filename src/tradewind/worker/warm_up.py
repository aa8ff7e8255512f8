"""Warms up an image: runs tasks that do nothing in the image before the first fork.

The first execution of code writes to memory: specialised byte code, caches of attribute look-ups, compiled patterns. If the image
has written them, its forks share these pages; otherwise each fork would have to copy hundreds of pages.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator

from tradewind.client.channel import START_OP, Channel
from tradewind.execution.listener_calls import without_listeners
from tradewind.sdk.dag import DAG
from tradewind.sdk.load import load_file
from tradewind.storage.local_spills import LocalSpills
from tradewind.wire.frames import frame
from tradewind.wire.messages import Accepted, Workload, XComs, decode_workload, encode
from tradewind.worker import task_process
from tradewind.worker.config import TaskLimits

_GIVEN = XComs(START_OP + 1, (("give", -1, b'["2024-01-01", 1]', None),))
"""The answer to the only request of these tasks."""
_LIMITS = TaskLimits(xcom_folder="", xcom_inline_max=1 << 16, xcom_max=1 << 20, memory_max=0, descriptors=0, descriptors_hard=0)


def warm_up(times: int) -> None:
    """Run the tasks of `warm_up_dag`, from the import to the report, and undo their changes to the process."""
    names = set(os.environ)
    with _discard_output(), without_listeners():
        _warm_up(times)
    for name in set(os.environ) - names:
        del os.environ[name]


def _warm_up(times: int) -> None:
    for number in range(times):
        (dag,) = _import().values()
        for task in dag.tasks:
            if number % 2:
                task.warm_up()
            workload = Workload(
                1, 0, number, dag.dag_id, task.task_id, "warm_up", logical_date=0, interval_start=0, interval_end=0
            )
            host, ours = socket.socketpair()
            with host, ours:
                host.sendall(frame(encode(Accepted(START_OP))) + frame(encode(_GIVEN)))
                channel = Channel(ours.fileno(), LocalSpills(_LIMITS.xcom_folder).read)
                if channel.may_start():
                    task_process.run_and_report(decode_workload(encode(workload)), {dag.dag_id: dag}, channel, _LIMITS)
                    task_process.reset()


@contextlib.contextmanager
def _discard_output() -> Iterator[None]:
    """Send everything that is printed or logged to /dev/null."""
    kept = [(os.dup(descriptor), descriptor) for descriptor in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for _, descriptor in kept:
            os.dup2(nowhere, descriptor)
        yield
    finally:
        os.close(nowhere)
        for copy, descriptor in kept:
            os.dup2(copy, descriptor)
            os.close(copy)


def _import() -> dict[str, DAG]:
    """Import the DAG of `warm_up_dag` like any DAG file."""
    path, modules = list(sys.path), set(sys.modules)
    try:
        return load_file(os.path.dirname(__file__), "warm_up_dag.py", analyse=False, policies=False).dags
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            del sys.modules[name]
