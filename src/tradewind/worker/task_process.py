"""The task process: one process for one attempt.

Fork (or start) → enter the process tree → ask to start → user code → report → end. No code of the author runs before the scheduler
has accepted the start, and nothing is kept for the next task: the process ends with its attempt.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C module: signal.signal turns numbers into enums
import _thread
import atexit
import io
import json
import logging
import os
import resource
import signal
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING

from tradewind.client.channel import Channel
from tradewind.execution.context import pop_context
from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.model import secret_names
from tradewind.model.errors import did_you_mean
from tradewind.model.states import Outcome
from tradewind.observe.failpoints import fp
from tradewind.platform import HAVE_LINUX
from tradewind.platform.fork_server import used
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowTaskTerminated, AirflowTaskTimeout
from tradewind.sdk.load import load_file
from tradewind.storage.local_spills import LocalSpills
from tradewind.wire import runtime
from tradewind.wire.messages import Report, Workload
from tradewind.worker import run_as
from tradewind.worker.config import USER_SETTINGS, TaskLimits
from tradewind.worker.log_records import TaskLogHandler, write_error

if HAVE_LINUX:
    from tradewind.platform import linux

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tradewind.execution.error_reports import ErrorReports
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator

ATTEMPT_MARK = "TRADEWIND_ATTEMPT"
"""Environment variable that identifies the processes of an attempt: run.slot.fence."""


def run_attempt(workload: Workload, dags: Mapping[str, DAG] | None, channel_fd: int, log_fd: int, limits: TaskLimits) -> None:
    """Run one attempt in this process, from the fork to the end of the process.

    Args:
        dags: the DAGs of the DAG file, by DAG id; None: the file is imported here, after the start is accepted.
        channel_fd: stream socket to the host.
        log_fd: write end of the log pipe; becomes stdout and stderr.
    """
    _set_up_process(workload, log_fd, limits)
    fp("runner.before_start")
    channel = Channel(channel_fd, LocalSpills(limits.xcom_folder).read)
    if channel.may_start():
        fp("runner.accepted")
        problem = run_as.become_user(workload.run_as_user) if workload.run_as_user else None
        if workload.call is not None:
            from tradewind.worker.callback_process import run_callback_and_report  # lazy: callbacks are rare

            run_callback_and_report(workload, dags, channel, problem)
            _end_process()
        result = run_and_report(workload, dags, channel, limits, problem)
        fp("runner.after_report")
        if result.callbacks is not None:
            result.callbacks()
            _flush()
            fp("runner.before_called_back")
            channel.called_back()
        if result.listeners is not None:
            result.listeners()
            _flush()
        if result.error is not None and _error_reports is not None:
            _error_reports.capture(result.error)
            _flush()
        _end_process()


def run_and_report(
    workload: Workload, dags: Mapping[str, DAG] | None, channel: Channel, limits: TaskLimits, refused: str | None = None
) -> TaskResult:
    """Run the task after its start was accepted, and report. `dags` as for `run_attempt`; `refused`: why the task cannot run."""
    global _running, _ending, _error_reports
    runtime.install(channel)
    task: BaseOperator | None = None
    problem = refused
    if refused is None:
        task, problem = _find_task(workload, dags) if dags is not None else _import_task(workload)
    if task is None:
        result = TaskResult(Outcome.FAILED_FINAL if refused is not None else _outcome_of(workload, problem), reason=problem)
        write_error(problem or "")
    else:
        if (conf.value_if_set("sentry", "sentry_on") or "false").lower() != "false":
            from tradewind.execution.error_reports import open_reports  # lazy import: few deployments use Sentry

            _error_reports = open_reports(task, workload)
        _running = task
        result = execute_task(
            task,
            workload,
            spill=lambda key, data: LocalSpills(limits.xcom_folder).write(data),
            inline_max=limits.xcom_inline_max,
            hard_max=limits.xcom_max,
            max_map_length=limits.max_map_length,
            clear_state_store=limits.clear_state_store,
            own_process=True,
            write_error=write_error,
            report_rendered=channel.rendered,
        )
        _ending = True
    fp("runner.before_report")
    _flush()
    needed = used(resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    channel.report(
        Report(
            0,
            result.outcome,
            reason=result.reason,
            ended=time.time_ns() // 1000,
            reschedule_at=result.reschedule_at,
            retry_delay=result.retry_delay,
            xcoms=tuple(result.pushed),
            branch=result.branch,
            map_length=result.map_length,
            map_label=result.map_label,
            assets=result.assets,
            rendered=result.rendered,
            deferral=result.deferral,
            calls_back=result.calls_back and (result.callbacks is not None or result.listeners is not None),
            cpu=needed.cpu,
            peak_memory=needed.memory,
        )
    )
    return result


_DEFAULT_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""A task starts with the default handling of these signals. The base image ignores INT, and a shell without job control ignores INT
and QUIT in programs that it starts with `&`. The task, and every program that it starts, would inherit both."""


def _set_up_process(workload: Workload, log_fd: int, limits: TaskLimits) -> None:
    """Set session, name, output and limits of this process, before anything else."""
    global _pid
    _pid = os.getpid()
    os.setsid()
    for number in _DEFAULT_SIGNALS:
        _signal.signal(number, _signal.SIG_DFL)
    os.environ[ATTEMPT_MARK] = f"{workload.run}.{workload.slot}.{workload.fence}"
    if HAVE_LINUX:
        linux.become_task()
        index = f"[{workload.map_index}]" if workload.map_index >= 0 else ""
        linux.set_title(
            f"tradewind task {workload.dag_id}.{workload.task_id}{index} {workload.run_id} try {workload.try_number}"
        )
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    if log_fd > 2:
        os.close(log_fd)
    if limits.memory_max:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_max, limits.memory_max))


def limit_descriptors(limits: TaskLimits) -> None:
    """Undo the limit that the host raised for itself: in the process that forks tasks, or in the task's own process."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits.descriptors, limits.descriptors_hard))


def _import_task(workload: Workload) -> tuple[BaseOperator | None, str | None]:
    """Import the file, and return the task in it, or the problem."""
    try:
        dags = load_file(workload.folder, workload.file, analyse=False).dags
    except BaseException as error:
        write_error("".join(traceback.format_exception(error, limit=-20)).rstrip())
        last = traceback.format_exception_only(error)[-1].strip()
        return None, f"{workload.file} cannot be imported: {last}"
    return _find_task(workload, dags)


def _outcome_of(workload: Workload, problem: str | None) -> Outcome:
    """The result of a problem: MISSING if the file was just edited or renamed, FAILED if it cannot be imported."""
    edited = problem is not None and problem.endswith(_EDITED)
    return Outcome.MISSING if edited or not has_file(workload) else Outcome.FAILED


def has_file(workload: Workload) -> bool:
    """Whether the DAG file exists under the name that the scheduler knew when it submitted the workload."""
    return os.path.exists(os.path.join(workload.folder, workload.file))


_EDITED = "The file was edited since the run was scheduled."


def _find_task(workload: Workload, dags: Mapping[str, DAG]) -> tuple[BaseOperator | None, str | None]:
    dag = dags.get(workload.dag_id)
    if dag is None:
        return None, (
            f"The file {workload.file} no longer contains the DAG {workload.dag_id!r}."
            f"{did_you_mean(workload.dag_id, dags)} {_EDITED}"
        )
    task = dag.task_dict.get(workload.task_id)
    if task is None:
        return None, (
            f"The DAG {workload.dag_id!r} in {workload.file} no longer has a task {workload.task_id!r}."
            f"{did_you_mean(workload.task_id, dag.task_dict)} {_EDITED}"
        )
    return task, None


def reset() -> None:
    """Reset the variables of this module after a warm-up, as if no task had run in this process."""
    global _running, _ending, _error_reports
    _running, _ending, _error_reports = None, False, None
    pop_context()
    runtime.install(None)


_running: BaseOperator | None = None
"""The task whose `on_kill` is called at TERM and XCPU."""
_error_reports: ErrorReports | None = None
"""Sends the error of the task to Sentry; None: reports are off."""
_ending = False
"""One of these signals has come already, or the result is known."""
_pid = 0
"""The pid of the task process. Processes that the task forks inherit the signal handler."""


def _terminate(number: int, stack: object) -> None:
    """TERM means: clean up (`on_kill`) and end. XCPU means: the time limit is over. Only the first one counts; KILL follows
    after the grace period."""
    global _ending
    if os.getpid() != _pid:  # a process that the task's code has forked: only this process ends
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    if _ending:
        return
    if _running is None:
        os._exit(128 + number)
    _ending = True
    try:
        _running.on_kill()
    except Exception as error:
        write_error(f"on_kill failed: {type(error).__name__}: {error}")
    if number == signal.SIGXCPU:
        limit = _running.execution_timeout
        said = f" of {limit.total_seconds():g} s" if limit is not None else ""
        raise AirflowTaskTimeout(f"it ran longer than its execution_timeout{said}")
    raise AirflowTaskTerminated("the task was asked to end (SIGTERM)")


def prepare() -> None:
    """Prepare streams, logging and exit functions, once, in the base image or the fresh interpreter, before user code runs.

    Objects that are created here are shared by all forks. Created in the task process, each one would cost memory pages of its own.
    The streams are created over a pipe, because a text stream remembers whether its file could seek.
    """
    global _exit_functions_at_fork
    conf.install(json.loads(os.environ.pop(USER_SETTINGS, "{}")))
    secret_names.configure_from(os.environ)
    read, write = os.pipe()
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        kept = os.dup(descriptor)
        os.dup2(write, descriptor)
        raw = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
        setattr(sys, name, io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True))
        os.dup2(kept, descriptor)
        os.close(kept)
    os.close(read)
    os.close(write)
    root = logging.getLogger()
    root.handlers[:] = [TaskLogHandler()]
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGXCPU, _terminate)
    _exit_functions_at_fork = atexit._ncallbacks()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def _end_process() -> None:
    """End the process at once, unless user code left threads or exit functions that an interpreter would wait for."""
    left = False
    if _thread._count() > 0:
        left = True
        threading._shutdown()  # type: ignore[attr-defined]
    if atexit._ncallbacks() > _exit_functions_at_fork:
        left = True
        atexit._run_exitfuncs()
    if left:
        _flush()
    os._exit(0)


_exit_functions_at_fork = 0
