"""The runner: one process, one attempt.

Fork (or start) → take its place in the process tree → ask to start → user code → verdict → end. Nothing of the author's code
runs before the scheduler has accepted the start, and nothing is kept for the next task: the process ends with its attempt.
"""

from __future__ import annotations

import atexit
import logging
import os
import resource
import secrets
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING

from tradewind.authoring.exceptions import AirflowTaskTerminated
from tradewind.authoring.run import TaskResult, execute_task
from tradewind.client.channel import Channel
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome
from tradewind.observe.failpoints import fp
from tradewind.processes import HAVE_LINUX
from tradewind.runner.config import TaskLimits
from tradewind.runner.log_records import TaskLogHandler
from tradewind.runner.spill import write_spill
from tradewind.service.clock import SystemClock
from tradewind.wire import runtime
from tradewind.wire.messages import Report, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tradewind.authoring.dag import DAG
    from tradewind.authoring.operator import BaseOperator

ATTEMPT_MARK = "TRADEWIND_ATTEMPT"
"""Environment variable by which the attempt's processes are told apart: run.slot.fence."""


def run_attempt(workload: Workload, dags: Mapping[str, DAG], channel_fd: int, log_fd: int, limits: TaskLimits) -> None:
    """The whole life of a runner, from the fork on.

    Args:
        dags: what the DAG file gave, by DAG id.
        channel_fd: stream socket to the host.
        log_fd: write end of the log pipe; becomes stdout and stderr.
    """
    _take_place(workload, log_fd, limits)
    fp("runner.before_start")
    channel = Channel(socket.socket(fileno=channel_fd), limits.xcom_folder)
    refused = channel.start(secrets.token_hex(8), limits.start_retry / SECOND)
    if refused is not None:
        return
    fp("runner.accepted")
    runtime.install(channel)
    _set_up_logging()
    task, problem = _find_task(workload, dags)
    if task is None:
        result = TaskResult(Outcome.FAILED, reason=problem)
        sys.stderr.write(f"{problem}\n")
    else:
        _obey_term(task)
        result = execute_task(
            task,
            workload,
            spill=lambda key, data: write_spill(limits.xcom_folder, data),
            inline_max=limits.xcom_inline_max,
            hard_max=limits.xcom_max,
        )
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    fp("runner.before_report")
    _flush()
    channel.report(
        Report(
            0,
            result.outcome,
            reason=result.reason,
            ended=SystemClock().wall(),
            reschedule_at=result.reschedule_at,
            xcoms=tuple(result.pushed),
            branch=result.branch,
        )
    )
    fp("runner.after_report")
    _leave()


def _take_place(workload: Workload, log_fd: int, limits: TaskLimits) -> None:
    """Session, name, output, limits: what has to be so before anything else."""
    os.setsid()
    os.environ[ATTEMPT_MARK] = f"{workload.run}.{workload.slot}.{workload.fence}"
    if HAVE_LINUX:
        from tradewind.processes import linux  # lazy door: Linux only

        linux.become_subreaper()
        linux.set_name("tw-task")
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    if log_fd > 2:
        os.close(log_fd)
    # new streams (which live as long as the process), not the image's: those remember what kind of file they once were
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits.descriptors, hard) if hard > 0 else limits.descriptors, hard))
    if limits.memory_max:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_max, limits.memory_max))


def _find_task(workload: Workload, dags: Mapping[str, DAG]) -> tuple[BaseOperator | None, str | None]:
    dag = dags.get(workload.dag_id)
    if dag is None:
        return None, (
            f"The file {workload.file} gives no DAG {workload.dag_id!r} any more."
            f"{did_you_mean(workload.dag_id, dags)} The run was made for an earlier version of the file."
        )
    task = dag.task_dict.get(workload.task_id)
    if task is None:
        return None, (
            f"The DAG {workload.dag_id!r} in {workload.file} has no task {workload.task_id!r} any more."
            f"{did_you_mean(workload.task_id, dag.task_dict)} The run was made for an earlier version of the file."
        )
    return task, None


def _obey_term(task: BaseOperator) -> None:
    """TERM means: clean up (`on_kill`) and end. It comes once; KILL follows after the grace."""

    def terminate(number: int, stack: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            task.on_kill()
        except Exception as error:
            sys.stderr.write(f"on_kill failed: {type(error).__name__}: {error}\n")
        raise AirflowTaskTerminated("the task was asked to end (SIGTERM)")

    signal.signal(signal.SIGTERM, terminate)


def _set_up_logging() -> None:
    root = logging.getLogger()
    root.handlers[:] = [TaskLogHandler()]
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def _leave() -> None:
    """End at once, unless user code left threads or exit functions that an interpreter would wait for."""
    if threading.active_count() > 1:
        threading._shutdown()  # type: ignore[attr-defined]
    if atexit._ncallbacks() > _exit_functions_at_fork:
        atexit._run_exitfuncs()
    _flush()
    os._exit(0)


_exit_functions_at_fork = 0


def note_exit_functions() -> None:
    """Called by the image before it forks: these exit functions are its own."""
    global _exit_functions_at_fork
    _exit_functions_at_fork = atexit._ncallbacks()
