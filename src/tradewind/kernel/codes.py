"""Task states as the small integers that arrays and rows hold, and the values that mean "none" there."""

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
AWAITING_INPUT = TaskState.AWAITING_INPUT.code

NEVER = 0
"""The value of a moment that is unknown: arrays hold 0, the database holds NULL."""

NO_TASK = -1
"""Used in place of a slot: the run itself."""
