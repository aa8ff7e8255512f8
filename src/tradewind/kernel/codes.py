"""States as the small integers that arrays and rows hold, and what stands there for "none"."""

from __future__ import annotations

from tradewind.model.states import TaskState

NONE, SCHEDULED, QUEUED, RUNNING = (
    TaskState.NONE.code,
    TaskState.SCHEDULED.code,
    TaskState.QUEUED.code,
    TaskState.RUNNING.code,
)
SUCCESS, FAILED, SKIPPED = TaskState.SUCCESS.code, TaskState.FAILED.code, TaskState.SKIPPED.code
UPSTREAM_FAILED, REMOVED, RESTARTING = TaskState.UPSTREAM_FAILED.code, TaskState.REMOVED.code, TaskState.RESTARTING.code
RETRY, RESCHEDULE, DEFERRED = TaskState.UP_FOR_RETRY.code, TaskState.UP_FOR_RESCHEDULE.code, TaskState.DEFERRED.code

NEVER = 0
"""A moment that has not come: rows hold NULL, arrays hold 0."""

NO_TASK = -1
"""In the place of a slot: the run itself."""
