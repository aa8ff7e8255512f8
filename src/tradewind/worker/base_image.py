"""The base image and the templates, from which task processes are forked.

    worker host ──exec──▶ base image ──fork──▶ template (has imported one DAG file) ──fork──▶ task process (one attempt)

Only the base image is started as a new interpreter. It is single-threaded and has imported what nearly every task needs. A template
is a fork of the base image: it costs a fork and the import of its file, and shares memory pages with the others.

A template dies with the base image. Task processes and the triggerer die only with the worker host: if their template or the base
image is killed, they continue as children of the host. They hold the reading end of a pipe, the lifeline, whose writing end only
the host has.

A file whose import leaves Python threads or open sockets cannot be forked safely: its tasks import it again in a direct fork of the
base image. The same holds for a file that reads variables or connections while it is imported: a template cannot ask the scheduler,
and the answer for one attempt must not be used for the next one.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import threading
import traceback

from tradewind.execution.listener_calls import prepare_listeners
from tradewind.observe.failpoints import fp
from tradewind.platform import linux
from tradewind.platform.fork_server import ForkServer, Ready, encode, freeze_heap, thaw_heap
from tradewind.sdk.load import Loaded, SourceFile, load_file
from tradewind.wire import runtime
from tradewind.wire.messages import RunnerAnswer, decode_workload
from tradewind.worker import task_process
from tradewind.worker.config import TaskLimits
from tradewind.worker.orders import BecomeTriggerer, MakeTemplate, RunDirect, decode_order
from tradewind.worker.warm_up import warm_up

PRELOADED = (
    "jinja2.sandbox",
    "jinja2.nativetypes",
    "pendulum",
    "tradewind.sdk",
    "tradewind.airflow.finder",
    "tradewind.execution.context",
    "tradewind.sdk.decorators",
    "tradewind.execution.templates",
    "tradewind.operators.bash",
    "tradewind.operators.branch",
    "tradewind.operators.empty",
    "tradewind.operators.python",
    "tradewind.sensors.base",
)
"""Modules that most tasks use: imported once, shared by all."""


def main() -> None:
    """Entry of the base image: `python -m tradewind.worker.base_image LINK_FD LIFELINE_FD HOST_PID`."""
    link, lifeline, host = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    link.set_inheritable(False)
    os.set_inheritable(lifeline, False)
    linux.die_with_parent(host)
    linux.set_name("tw-image")
    linux.find_title()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED:
        importlib.import_module(name)
    task_process.prepare()
    linux.fill_holes()  # so that what the warm-up creates is together, too
    warm_up(WARM_UPS)
    for _ in range(WARM_UPS):
        os.close(linux.die_with_writer(lifeline))
    linux.die_with_parent(host)
    freeze_heap()
    linux.fill_holes()
    me = os.getpid()
    try:
        link.send(encode(Ready()))
    except (BrokenPipeError, ConnectionResetError):
        return  # the worker host ended while the base image started
    ForkServer(
        link,
        lambda order, descriptors: _child(me, lifeline, order, descriptors),
        lambda order: fp("image.before_fork"),
        lambda: fp("image.after_fork"),
    ).serve()


WARM_UPS = 30
"""Rounds of warm-up, after which the interpreter has specialised the code and filled its caches."""
WARM_UPS_WITH_FILE = 2
"""Rounds of warm-up after the import of the DAG file, because the import has evicted entries from the caches."""


def _child(parent: int, lifeline: int, order: bytes, descriptors: list[int]) -> None:
    wanted = decode_order(order)
    if isinstance(wanted, MakeTemplate):
        linux.die_with_parent(parent)
        _become_template(wanted, socket.socket(fileno=descriptors[0]), lifeline)
        return
    linux.die_with_writer(lifeline)
    if isinstance(wanted, BecomeTriggerer):
        from tradewind.worker.triggerer import become_triggerer  # lazy: brings asyncio

        thaw_heap()
        become_triggerer(descriptors[0], descriptors[1], descriptors[2], wanted.limits)
    else:
        _run_direct(wanted, *descriptors)


def _become_template(order: MakeTemplate, link: socket.socket, lifeline: int) -> None:
    linux.set_name("tw-template")
    linux.set_title(f"tradewind template {order.file}")
    task_process.limit_descriptors(order.limits)
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.close(quiet)
    sockets = _open_sockets()
    fp("template.before_import")
    runtime.install(_ImportRuntime(order, link))
    try:
        loaded = load_file(order.folder, order.file)
    except BaseException:
        link.send(encode(Ready(problem=traceback.format_exc(limit=-20)[-20_000:])))
        return
    runtime.install(None)
    sys.stdout.flush()
    facts: dict[str, object] = {
        "sources": [list(source) for source in (*loaded.sources, *_prepare_listeners())],
        "volatile_because": loaded.volatile_because,
        "unforkable": _unforkable(sockets),
    }
    for dag in loaded.dags.values():
        for task in dag.tasks:
            task.warm_up()
    warm_up(WARM_UPS_WITH_FILE)
    thaw_heap()
    freeze_heap()
    linux.fill_holes()
    fp("template.before_ready")
    link.send(encode(Ready(facts)))
    if facts["unforkable"] is None:
        ForkServer(
            link,
            lambda work, fds: _run_task(lifeline, loaded, order.limits, work, fds),
            lambda order: fp("template.before_fork"),
            lambda: fp("template.after_fork"),
        ).serve()


def _prepare_listeners() -> list[SourceFile]:
    """Load the listeners of plugins in the base image, so that task processes need not. An error occurs again, and is logged,
    in the process of the task.
    """
    try:
        return prepare_listeners()
    except Exception:
        return []


class _ImportRuntime:
    """The runtime while a template imports its file. The first request shows that each task must import the file itself.

    It ends the process at once, whatever the file would do with an error.
    """

    def __init__(self, order: MakeTemplate, link: socket.socket) -> None:
        self._order = order
        self._link = link
        self._pid = os.getpid()

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        if os.getpid() != self._pid:
            raise runtime.NoRuntime("variables, connections and runs cannot be read in a process that a DAG file starts")
        path = os.path.join(self._order.folder, self._order.file)
        seen = os.stat(path)
        sources = [[path, seen.st_mtime_ns, seen.st_size]]
        self._link.send(encode(Ready({"sources": sources, "unforkable": "importing it reads variables or connections"})))
        os._exit(0)

    def read_spill(self, name: str) -> bytes:
        raise runtime.NoRuntime("no task is running")


def _run_task(lifeline: int, loaded: Loaded, limits: TaskLimits, work: bytes, descriptors: list[int]) -> None:
    linux.die_with_writer(lifeline)
    thaw_heap()
    channel, log = descriptors
    task_process.run_attempt(decode_workload(work), loaded.dags, channel, log, limits)


def _run_direct(order: RunDirect, channel: int, log: int) -> None:
    task_process.limit_descriptors(order.limits)
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
    """Why a process that imported the file must not be forked; None: it may. Native threads (BLAS pools) handle forks."""
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate()[1:4])
        return f"importing it starts threads ({names})"
    if _open_sockets() > sockets_before:
        return "importing it opens sockets"
    return None


if __name__ == "__main__":
    main()
