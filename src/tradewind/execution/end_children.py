"""End the processes that a task's function has started: SIGTERM to all of them, then SIGKILL to those that are left.

Processes that escape (a daemon that was adopted by another process) are found and ended by the worker after the task has ended.
"""

from __future__ import annotations

import math
import os
import signal
import time

from tradewind.platform import HAVE_LINUX

if HAVE_LINUX:
    from tradewind.platform import linux

GRACE_SECONDS = 5.0
"""Seconds between SIGTERM and SIGKILL. The worker's own limit (`core.kill_grace`) continues to run."""


def stop_children(since: float, grace_seconds: float = GRACE_SECONDS) -> None:
    """End the children that this process has started since a moment, and all their descendants.

    Their exit codes remain available to the code that waits for them.

    Args:
        since: the moment, in seconds of the monotonic clock (`time.monotonic`).
    """
    if not HAVE_LINUX:
        return
    first_tick = linux.ticks_since_boot() - math.ceil((time.monotonic() - since) * linux.TICKS_PER_SECOND)
    for pid in _descendants(first_tick):
        linux.kill_quietly(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while (left := _descendants(first_tick)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        linux.kill_quietly(pid)


def _descendants(first_tick: int) -> list[int]:
    """Children that started at this tick or later, and the descendants of those children."""
    found = [pid for pid in linux.children(os.getpid()) if (linux.start_time(pid) or -1) >= first_tick]
    for pid in found[:]:
        found += linux.descendants(pid)
    return [pid for pid in found if not linux.is_zombie(pid)]
