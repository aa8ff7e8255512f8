"""End the processes that a task's function has started: TERM to all of them, then KILL to those that stay.

What gets away from this (a daemon that the system has given to somebody else meanwhile) the worker finds after the task's end.
"""

from __future__ import annotations

import os
import signal
import time

from tradewind.platform import HAVE_LINUX

if HAVE_LINUX:
    from tradewind.platform import linux

GRACE_SECONDS = 5.0
"""Between TERM and KILL. The worker's own patience (`core.kill_grace`) goes on meanwhile."""


def stop_children(grace_seconds: float = GRACE_SECONDS) -> None:
    """End everything below this process, children of children too. Their exit codes are left for whoever waits for them."""
    if not HAVE_LINUX:
        return
    for pid in _below():
        linux.kill_quietly(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while (left := _below()) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        linux.kill_quietly(pid)


def _below() -> list[int]:
    return [pid for pid in linux.descendants(os.getpid()) if not linux.is_zombie(pid)]
