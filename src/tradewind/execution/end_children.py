"""End the processes that a task's function has started: SIGTERM to all of them, then SIGKILL to those that are left.

Processes that escape (a daemon that was adopted by another process) are found and ended by the worker after the task has ended.
"""

from __future__ import annotations

import os
import signal
import time

from tradewind.platform import HAVE_LINUX

if HAVE_LINUX:
    from tradewind.platform import linux

GRACE_SECONDS = 5.0
"""Seconds between SIGTERM and SIGKILL. The worker's own limit (`core.kill_grace`) continues to run."""


def stop_children(grace_seconds: float = GRACE_SECONDS) -> None:
    """End all descendants of this process. Their exit codes remain available to the code that waits for them."""
    if not HAVE_LINUX:
        return
    for pid in _descendants():
        linux.kill_quietly(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while (left := _descendants()) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        linux.kill_quietly(pid)


def _descendants() -> list[int]:
    return [pid for pid in linux.descendants(os.getpid()) if not linux.is_zombie(pid)]
