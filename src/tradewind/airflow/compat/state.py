"""`airflow.utils.state`: the states as attributes of one class, as in Airflow 1 and 2."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from tradewind.model.states import RunState, TaskState

__all__ = ["JobState", "State"]


class JobState(StrEnum):
    """The state of one of Airflow's services."""

    RUNNING = "running"
    SUCCESS = "success"
    RESTARTING = "restarting"
    FAILED = "failed"


class _States(frozenset[Any]):
    """A group of states. Airflow 1 had functions here: `State.finished()`."""

    def __call__(self) -> list[Any]:
        return list(self)


class State:
    """Names of all states (`State.SUCCESS`), and the groups of states that DAG files use."""

    NONE = None
    REMOVED = TaskState.REMOVED
    SCHEDULED = TaskState.SCHEDULED
    QUEUED = TaskState.QUEUED
    RUNNING = TaskState.RUNNING
    SUCCESS = TaskState.SUCCESS
    SHUTDOWN = "shutdown"
    RESTARTING = TaskState.RESTARTING
    FAILED = TaskState.FAILED
    UP_FOR_RETRY = TaskState.UP_FOR_RETRY
    UP_FOR_RESCHEDULE = TaskState.UP_FOR_RESCHEDULE
    UPSTREAM_FAILED = TaskState.UPSTREAM_FAILED
    SKIPPED = TaskState.SKIPPED
    SENSING = "sensing"
    DEFERRED = TaskState.DEFERRED

    task_states = (None, *(state for state in TaskState if state is not TaskState.NONE))
    dag_states = tuple(RunState)
    finished = _States({TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED, TaskState.REMOVED})
    unfinished = _States(
        {
            None,
            TaskState.SCHEDULED,
            TaskState.QUEUED,
            TaskState.RUNNING,
            TaskState.RESTARTING,
            TaskState.UP_FOR_RETRY,
            TaskState.UP_FOR_RESCHEDULE,
            TaskState.DEFERRED,
        }
    )
    failed_states = _States({TaskState.FAILED, TaskState.UPSTREAM_FAILED})
    success_states = _States({TaskState.SUCCESS, TaskState.SKIPPED})
    running = _States({TaskState.RUNNING, TaskState.DEFERRED})
    finished_dr_states = _States({RunState.SUCCESS, RunState.FAILED})
    unfinished_dr_states = _States({RunState.QUEUED, RunState.RUNNING})
