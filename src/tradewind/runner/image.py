"""The warm images from which tasks are forked.

    worker host ──exec──▶ base image ──fork──▶ template (has imported one DAG file) ──fork──▶ runner (one attempt)

The base image is the only process that is exec'd: single-threaded, with everything imported that nearly every task needs. A
template is a fork of it, so it costs a fork and the import of its file, and shares its pages with the others; two hundred DAGs
that are due in the same minute would not get two hundred interpreters started in that minute.

A file that leaves Python threads or open sockets behind cannot be forked safely: its tasks import it anew in a direct fork of
the base image.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import socket
import sys
import threading
import traceback

import msgspec

from tradewind.authoring.load import Loaded, load_file
from tradewind.authoring.run import execute_task
from tradewind.observe.failpoints import fp
from tradewind.operators.python import PythonOperator
from tradewind.processes import linux
from tradewind.processes.fork_server import ForkServer, Ready, encode, freeze_heap, thaw_heap
from tradewind.runner import task_process
from tradewind.runner.config import TaskLimits
from tradewind.wire.messages import Workload, decode_workload
from tradewind.wire.messages import encode as encode_message

PRELOADED = (
    "asyncio",
    "jinja2.sandbox",
    "jinja2.nativetypes",
    "pendulum",
    "tradewind.authoring",
    "tradewind.authoring.context",
    "tradewind.authoring.decorators",
    "tradewind.authoring.templates",
    "tradewind.operators.bash",
    "tradewind.operators.branch",
    "tradewind.operators.empty",
    "tradewind.operators.python",
    "tradewind.sensors.base",
)
"""What tasks commonly use: imported once, shared by all."""


class MakeTemplate(msgspec.Struct, frozen=True, tag="template"):
    """Order to the base image: become the template of this file. Descriptor: the template's own link."""

    bundle: str
    file: str
    limits: TaskLimits


class RunDirect(msgspec.Struct, frozen=True, tag="direct"):
    """Order to the base image: import the file and run this attempt. Descriptors: channel, log."""

    workload: Workload
    limits: TaskLimits


_decode_order = msgspec.msgpack.Decoder(MakeTemplate | RunDirect).decode
encode_order = msgspec.msgpack.Encoder().encode


def main() -> None:
    """Entry of the base image: `python -m tradewind.runner.image LINK_FD HOST_PID`."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    linux.die_with_parent(int(sys.argv[2]))
    linux.set_name("tw-image")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED:
        importlib.import_module(name)
    task_process.prepare()
    _warm_up()
    freeze_heap()
    me = os.getpid()
    link.send(encode(Ready()))
    ForkServer(link, lambda order, descriptors: _child(me, order, descriptors)).serve()


WARM_UPS = 30
"""Runs after which the interpreter has specialised the code and filled its caches."""


def _warm_up() -> None:
    """Carry out a few tasks that do nothing, so that no fork has to do for the first time what every task does.

    A first time writes: specialised byte code, type caches, compiled patterns. In the image it is written once; in a fork each
    write is a page to copy.
    """
    task = PythonOperator(task_id="warm_up", python_callable=_nothing)
    templated = PythonOperator(task_id="templated", python_callable=_nothing, op_kwargs={"day": "{{ ds }}"})
    logging.disable(logging.CRITICAL)
    try:
        for number in range(WARM_UPS):
            workload = Workload(1, 0, number, "warm", "warm_up", "warm", logical_date=0, interval_start=0, interval_end=0)
            execute_task(task, workload, on_copy=True)
            execute_task(templated, workload, on_copy=True)
            decode_workload(encode_message(workload))
    finally:
        logging.disable(logging.NOTSET)


def _nothing(day: str | None = None) -> None:
    return None


def _child(parent: int, order: bytes, descriptors: list[int]) -> None:
    linux.die_with_parent(parent)
    wanted = _decode_order(order)
    if isinstance(wanted, MakeTemplate):
        _become_template(wanted, socket.socket(fileno=descriptors[0]))
    else:
        _run_direct(wanted, *descriptors)


def _become_template(order: MakeTemplate, link: socket.socket) -> None:
    linux.set_name("tw-template")
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.close(quiet)
    sockets = _open_sockets()
    fp("template.before_import")
    try:
        loaded = load_file(order.bundle, order.file)
    except BaseException:
        link.send(encode(Ready(problem=traceback.format_exc(limit=-20)[-20_000:])))
        return
    sys.stdout.flush()
    facts: dict[str, object] = {
        "sources": [list(source) for source in loaded.sources],
        "reads_world": loaded.reads_world,
        "unforkable": _unforkable(sockets),
    }
    for dag in loaded.dags.values():
        for task in dag.tasks:
            task.warm_up()
    thaw_heap()
    freeze_heap()
    link.send(encode(Ready(facts)))
    if facts["unforkable"] is None:
        me = os.getpid()
        ForkServer(link, lambda work, fds: _runner(me, loaded, order.limits, work, fds)).serve()


def _runner(parent: int, loaded: Loaded, limits: TaskLimits, work: bytes, descriptors: list[int]) -> None:
    linux.die_with_parent(parent)
    thaw_heap()
    channel, log = descriptors
    task_process.run_attempt(decode_workload(work), loaded.dags, channel, log, limits)


def _run_direct(order: RunDirect, channel: int, log: int) -> None:
    thaw_heap()
    task_process.run_attempt(order.workload, None, channel, log, order.limits)


def _open_sockets() -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:
            continue
    return count


def _unforkable(sockets_before: int) -> str | None:
    """Why a process that imported the file must not be forked, or None. Native threads (BLAS pools) handle forks."""
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate()[1:4])
        return f"importing it starts threads ({names})"
    if _open_sockets() > sockets_before:
        return "importing it opens sockets"
    return None


if __name__ == "__main__":
    main()
