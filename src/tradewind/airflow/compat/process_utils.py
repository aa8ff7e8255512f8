"""`airflow.utils.process_utils`: child processes and the environment."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil

from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException

__all__ = [
    "check_if_pidfile_process_is_running",
    "execute_in_subprocess",
    "execute_in_subprocess_with_kwargs",
    "execute_interactive",
    "kill_child_processes_by_pids",
    "patch_environ",
    "reap_process_group",
    "set_new_process_group",
]

log = logging.getLogger(__name__)

DEFAULT_TIME_TO_WAIT_AFTER_SIGTERM = 60
"""Seconds between the signal and SIGKILL."""


@contextmanager
def patch_environ(new_env_variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables of the environment for a `with` block; None removes one."""
    before = {name: os.environ.get(name) for name in new_env_variables}
    _set(new_env_variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def execute_in_subprocess(cmd: list[str], cwd: str | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a command, log its output line by line, and wait for its end.

    Raises:
        subprocess.CalledProcessError: the exit code is not 0.
    """
    execute_in_subprocess_with_kwargs(cmd, cwd=cwd, env=env)


def execute_in_subprocess_with_kwargs(cmd: list[str], **kwargs: Any) -> None:
    """As `execute_in_subprocess`, with arguments of `subprocess.Popen`."""
    log.info("Executing cmd: %s", shlex.join(cmd))
    with subprocess.Popen(
        cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0, close_fds=True, text=False, **kwargs
    ) as process:
        for line in process.stdout or ():
            log.info("%s", line.decode(errors="replace").rstrip())
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, cmd)


def execute_interactive(cmd: list[str], **kwargs: Any) -> None:
    """Run a command that uses the terminal.

    Raises:
        subprocess.CalledProcessError: the exit code is not 0.
    """
    subprocess.run(cmd, check=True, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr, **kwargs)


def kill_child_processes_by_pids(pids_to_kill: list[int], timeout: int = 5) -> None:
    """Ask child processes to end, and kill those that have not ended after `timeout` seconds."""
    wanted = [child for child in psutil.Process().children(recursive=True) if child.pid in pids_to_kill]
    _end(wanted, signal.SIGTERM, timeout)


def reap_process_group(
    process_group_id: int, logger: Any, sig: int = signal.SIGTERM, timeout: int | None = None
) -> dict[int, int | None]:
    """Send a signal to a process group, and kill its remaining processes after `timeout` seconds (`core.killed_task_cleanup_time`).

    Returns:
        pid → exit code; None where it is not known.
    """
    limit = conf.getint("core", "killed_task_cleanup_time", fallback=60) if timeout is None else timeout
    logger.info("Sending %s to group %s", signal.Signals(sig).name, process_group_id)
    try:
        leader = psutil.Process(process_group_id)
    except psutil.NoSuchProcess:
        return {}
    return _end([*leader.children(recursive=True), leader], sig, limit)


def _end(processes: list[psutil.Process], sig: int, timeout: int) -> dict[int, int | None]:
    codes: dict[int, int | None] = {}

    def note(process: psutil.Process) -> None:
        codes[process.pid] = getattr(process, "returncode", None)

    for process in processes:
        try:
            process.send_signal(sig)
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(processes, timeout=timeout, callback=note)
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(alive, timeout=timeout, callback=note)
    return codes


def set_new_process_group() -> None:
    """Make this process the leader of a new process group, unless it is a session leader."""
    if os.getpid() != os.getsid(0):
        os.setpgid(0, 0)


def check_if_pidfile_process_is_running(pid_file: str, process_name: str) -> None:
    """Remove a pid file if its process has ended.

    Raises:
        AirflowException: the process is running.
    """
    if not os.path.isfile(pid_file):
        return
    with open(pid_file, encoding="utf-8") as file:
        text = file.read().strip()
    if text.isdigit() and psutil.pid_exists(int(text)):
        raise AirflowException(f"The {process_name} is already running under PID {text}.")
    os.remove(pid_file)
