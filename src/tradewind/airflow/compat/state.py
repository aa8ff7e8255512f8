"""`airflow.utils.state`: the states as Airflow 1 and 2 named them on one class."""

from __future__ import annotations

from enum import StrEnum

from tradewind.model.states import RunState, TaskState

__all__ = ["JobState", "State"]


class JobState(StrEnum):
    """State of a service of Airflow's."""

    RUNNING = "running"
    SUCCESS = "success"
    RESTARTING = "restarting"
    FAILED = "failed"


class State:
    """Names of all states (`State.SUCCESS`), and the groups that DAG files ask for."""

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
    finished = frozenset({TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED, TaskState.REMOVED})
    unfinished = frozenset(
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
    failed_states = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})
    success_states = frozenset({TaskState.SUCCESS, TaskState.SKIPPED})
    running = frozenset({TaskState.RUNNING, TaskState.DEFERRED})
