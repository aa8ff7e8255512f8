"""The states of a run and of a task instance, and every legal step between them.

The tables `TASK_TRANSITIONS` and `RUN_TRANSITIONS` are complete. The kernel, the stores, the checks of the journal and the
diagrams in the manual read these dictionaries, so they always agree.

A state is stored as a small integer (`TaskState.code`) and shown by its name, which is Airflow's name.
"""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    """State of one task instance. `NONE` is Airflow's null: not examined yet."""

    NONE = "none"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    REMOVED = "removed"
    UP_FOR_RETRY = "up_for_retry"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    DEFERRED = "deferred"
    AWAITING_INPUT = "awaiting_input"
    RESTARTING = "restarting"

    @property
    def code(self) -> int:
        """The small integer that tables and arrays hold."""
        return TASK_CODES[self]

    @property
    def shown(self) -> str | None:
        """The value that Airflow's clients expect: `None` for a task instance that was not examined yet."""
        return None if self is TaskState.NONE else self.value


TASK_STATES: tuple[TaskState, ...] = tuple(TaskState)
"""States by code. Only append to it: codes are stored."""

TASK_CODES: dict[TaskState, int] = {state: code for code, state in enumerate(TASK_STATES)}


class RunState(StrEnum):
    """State of one DAG run."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"

    @property
    def code(self) -> int:
        return RUN_CODES[self]


RUN_STATES: tuple[RunState, ...] = tuple(RunState)
RUN_CODES: dict[RunState, int] = {state: code for code, state in enumerate(RUN_STATES)}


class AttemptState(StrEnum):
    """State of one attempt: one dispatch of a task instance under one fence."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


class RunType(StrEnum):
    """How a run was created. The value is the first part of a generated run id."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"
    BACKFILL = "backfill"
    ASSET_TRIGGERED = "asset_triggered"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"


class TriggerRule(StrEnum):
    """When a task may start, as a condition on its direct upstream tasks."""

    ALL_SUCCESS = "all_success"
    ALL_FAILED = "all_failed"
    ALL_DONE = "all_done"
    ALL_DONE_MIN_ONE_SUCCESS = "all_done_min_one_success"
    ALL_DONE_SETUP_SUCCESS = "all_done_setup_success"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    ONE_DONE = "one_done"
    NONE_FAILED = "none_failed"
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    NONE_SKIPPED = "none_skipped"
    ALL_SKIPPED = "all_skipped"
    ALWAYS = "always"

    # names of Airflow 1 and 2 for the same rules
    DUMMY = "always"
    NONE_FAILED_OR_SKIPPED = "none_failed_min_one_success"

    @classmethod
    def is_valid(cls, trigger_rule: str) -> bool:
        """Whether there is a rule with this name."""
        return trigger_rule in cls.all_triggers() or trigger_rule in TRIGGER_RULE_ALIASES

    @classmethod
    def all_triggers(cls) -> set[str]:
        """The names of all rules."""
        return {rule.value for rule in cls}


TRIGGER_RULE_ALIASES: dict[str, TriggerRule] = {
    "dummy": TriggerRule.ALWAYS,
    "none_failed_or_skipped": TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
}
"""Names of Airflow 1.x and 2.x that old DAG files still use."""


class WeightRule(StrEnum):
    """How the priority of a task is computed from the weights of the tasks around it."""

    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"
    ABSOLUTE = "absolute"


_S = TaskState

TASK_TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    # not examined: the trigger rule decides. A task that does nothing (EmptyOperator) becomes success directly; a task that only
    # waits for something that the scheduler sees becomes deferred directly
    _S.NONE: frozenset({_S.SCHEDULED, _S.DEFERRED, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.UPSTREAM_FAILED, _S.REMOVED}),
    # may start: admission queues it. Before that, fail_fast, a branch or the end of the run may end it
    _S.SCHEDULED: frozenset({_S.QUEUED, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.UPSTREAM_FAILED, _S.REMOVED, _S.NONE}),
    # handed to an executor: started, or lost and scheduled again; up_for_reschedule if the DAG file was just edited
    _S.QUEUED: frozenset(
        {
            _S.RUNNING,
            _S.SCHEDULED,
            _S.SUCCESS,
            _S.FAILED,
            _S.SKIPPED,
            _S.UP_FOR_RETRY,
            _S.UP_FOR_RESCHEDULE,
            _S.RESTARTING,
            _S.NONE,
            _S.REMOVED,
        }
    ),
    _S.RUNNING: frozenset(
        {
            _S.SUCCESS,
            _S.FAILED,
            _S.SKIPPED,
            _S.UP_FOR_RETRY,
            _S.UP_FOR_RESCHEDULE,
            _S.DEFERRED,
            _S.AWAITING_INPUT,
            _S.RESTARTING,
            _S.SCHEDULED,
            _S.REMOVED,
        }
    ),
    _S.UP_FOR_RETRY: frozenset(
        {_S.SCHEDULED, _S.DEFERRED, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.UPSTREAM_FAILED, _S.NONE, _S.REMOVED}
    ),
    _S.UP_FOR_RESCHEDULE: frozenset(
        {_S.SCHEDULED, _S.DEFERRED, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.UPSTREAM_FAILED, _S.NONE, _S.REMOVED}
    ),
    _S.DEFERRED: frozenset({_S.SCHEDULED, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.UP_FOR_RETRY, _S.NONE, _S.REMOVED}),
    _S.AWAITING_INPUT: frozenset({_S.SCHEDULED, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.UP_FOR_RETRY, _S.NONE, _S.REMOVED}),
    # cleared during an attempt: the attempt is stopped first, then the task instance is examined again
    _S.RESTARTING: frozenset({_S.NONE, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.REMOVED}),
    # finished: only a person changes it, with a new fence: by a command (clear, mark), or by removing the task from the DAG
    _S.SUCCESS: frozenset({_S.NONE, _S.FAILED, _S.SKIPPED, _S.REMOVED}),
    _S.FAILED: frozenset({_S.NONE, _S.SUCCESS, _S.SKIPPED, _S.REMOVED}),
    # fail_fast and branches reach these two states while the run still continues
    _S.SKIPPED: frozenset({_S.NONE, _S.SUCCESS, _S.FAILED, _S.REMOVED}),
    _S.UPSTREAM_FAILED: frozenset({_S.NONE, _S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.REMOVED}),
    # cleared, or the task is in the DAG again
    _S.REMOVED: frozenset({_S.NONE}),
}
"""State → the states that may follow."""

COMMANDED: frozenset[TaskState] = frozenset({_S.SUCCESS, _S.FAILED, _S.SKIPPED, _S.UPSTREAM_FAILED, _S.REMOVED})
"""Finished states. A finished state is left only by a command (`upstream_failed` also by fail_fast), and with a new fence."""

FINISHED: frozenset[TaskState] = COMMANDED
WAITING: frozenset[TaskState] = frozenset({_S.DEFERRED, _S.AWAITING_INPUT})
"""States in which a try continues without an attempt, until its wait ends."""
OCCUPYING: frozenset[TaskState] = frozenset({_S.QUEUED, _S.RUNNING, _S.RESTARTING})
"""States with an attempt: the task instance holds its pool slots and counts against every limit."""
FAILURES: frozenset[TaskState] = frozenset({_S.FAILED, _S.UPSTREAM_FAILED})
SCHEDULABLE: frozenset[TaskState] = frozenset({_S.NONE, _S.UP_FOR_RETRY, _S.UP_FOR_RESCHEDULE})
"""States in which the trigger rule is examined."""

RUN_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.SUCCESS, RunState.FAILED}),
    RunState.RUNNING: frozenset({RunState.SUCCESS, RunState.FAILED, RunState.QUEUED}),
    RunState.SUCCESS: frozenset({RunState.QUEUED, RunState.FAILED}),
    RunState.FAILED: frozenset({RunState.QUEUED, RunState.SUCCESS}),
}

FINISHED_RUNS: frozenset[RunState] = frozenset({RunState.SUCCESS, RunState.FAILED})


class Outcome(StrEnum):
    """How an attempt ended, as its worker reports it. The scheduler computes the next state from it."""

    SUCCESS = "success"
    FAILED = "failed"
    """Retried if the task has tries left."""
    FAILED_FINAL = "failed_final"
    """Never retried: `AirflowFailException`, a sensor's timeout."""
    SKIPPED = "skipped"
    RESCHEDULE = "reschedule"
    DEFERRED = "deferred"
    AWAITING_INPUT = "awaiting_input"
    """Deferred until a person answers."""
    LOST = "lost"
    """The worker died or was stopped. If the attempt had started, its try has failed, unless lost attempts are repeated. Else, the
    task instance is queued again, a limited number of times."""
    REFUSED = "refused"
    """No code of the task has run (no template, no process, no accepted start): it is queued again in the same try."""
    MISSING = "missing"
    """The DAG file, or the task in it, was missing: it was edited, and the scheduler does not know that yet. The task instance is
    tried again shortly, in the same try; the scheduler limits how often."""
