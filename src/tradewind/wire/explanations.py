"""The answers of the commands that explain why a task or run does not run, what starts next, and what waits.

`scheduler/explain/` creates them; the command line and the API show them as they are. Moments are ISO 8601 in UTC.
`docs/how-to/why-is-my-task-not-running.md` explains the fields.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tradewind.model.phrases import Phrase

Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


class SlotHolder(msgspec.Struct, frozen=True):
    """A task instance, or a run (`task_id` null), that holds a slot of a full limit."""

    dag_id: str | None
    run_id: str | None
    task_id: str | None
    map_index: int
    state: str | None
    since: Moment | None
    """Since when it holds the slot."""
    started_at: Moment | None


class BlockerView(msgspec.Struct, frozen=True):
    """One reason why a task instance or a run does not run."""

    rule: str
    """The name of the rule, for programs."""
    sentence: str
    """The reason in English."""
    ends_with: str | None
    """The event that ends this reason, in English."""
    not_before: Moment | None
    """The reason does not end before this time."""
    command: str | None
    """The command that removes this reason, if there is one."""
    by_hand: bool
    """The reason does not end by itself: a person has to act."""
    holders: list[SlotHolder] = []
    """The five task instances or runs that have held slots of the full limit for the longest time."""
    holder_count: int = 0
    reason: Phrase | None = None
    """The same as `sentence`, for other languages. Null: an older scheduler does not send it."""
    ends: Phrase | None = None
    """The same as `ends_with`."""


class FirstInQueue(msgspec.Struct, frozen=True):
    """The first task instance, or run (`task_id` null), in a queue."""

    dag_id: str
    run_id: str
    task_id: str | None = None
    map_index: int = -1
    priority_weight: int | None = None


class Position(msgspec.Struct, frozen=True):
    """The position in the queue of a limit: how many candidates, or queued runs, come first."""

    ahead: int
    first: FirstInQueue | None


class Workers(msgspec.Struct, frozen=True):
    """The executor of the task, whether a worker host that runs the task is connected, and how many attempts run."""

    executor: str
    attached: bool
    live: int
    parallelism: int | None
    """Null: unlimited."""
    note: str | None = None
    """A sentence, if the task names an executor that the deployment does not have."""
    note_phrase: Phrase | None = None
    """The same as `note`, for other languages."""


class NextEvent(msgspec.Struct, frozen=True):
    """The next event that can change the answer. `at` null: its time is unknown."""

    event: str
    """In English."""
    at: Moment | None
    rule: str
    ends: Phrase | None = None
    """The same as `event`, for other languages."""


class NextRunView(msgspec.Struct, frozen=True):
    """The next scheduled run of a DAG. The times are null if they are unknown, or if there is no next run."""

    run_after: Moment | None
    logical_date: Moment | None
    data_interval_start: Moment | None
    data_interval_end: Moment | None
    blockers: list[BlockerView]
    notes: list[str]


class OpenTasks(msgspec.Struct, frozen=True):
    """Task instances of a run in one state: their number, and the first names."""

    count: int
    first: list[str]


class Explanation(msgspec.Struct, frozen=True):
    """All reasons why a task instance, a run or the next run does not run. Without blockers, the scheduler starts it in the
    next step.
    """

    dag_id: str
    run_id: str | None
    run_state: str | None
    task_id: str | None
    map_index: int
    state: str | None
    blockers: list[BlockerView]
    """The reasons inside the run come first."""
    position: Position | None
    """Null if no limit is reached."""
    workers: Workers | None
    """Null if no scheduler is running."""
    next_event: NextEvent | None
    earliest_start: Moment | None
    """The earliest possible start. Null: the start depends on a person, or the task or run is running or has ended."""
    next_run: NextRunView | None
    """Set if the run has ended or does not exist."""
    callbacks: list[str]
    """Sentences about failed callbacks and mails. They block nothing."""
    open: dict[str, OpenTasks] | None = None
    """For a running run: its unfinished task instances by state."""
    callback_phrases: list[Phrase] = []
    """The same as `callbacks`, for other languages."""


class UpcomingView(msgspec.Struct, frozen=True):
    """Something that will start."""

    at: Moment
    local: str
    """The same time in the requested time zone."""
    kind: str
    """run, queued, retry or reschedule."""
    dag_id: str
    run_id: str
    task_id: str | None
    map_index: int
    logical_date: Moment | None
    data_interval_start: Moment | None
    data_interval_end: Moment | None
    held_by: str | None
    """Why the run or task does not start although it is due."""


class UpcomingList(msgspec.Struct, frozen=True):
    """The next starts, the soonest first."""

    upcoming: list[UpcomingView]
    timezone: str
    paused_dags: int
    """Number of DAGs that are left out because they are paused."""


class ImpossibleWaitView(msgspec.Struct, frozen=True):
    """Why a wait can never end, and what ends it."""

    rule: str
    sentence: str
    ends_with: str | None
    command: str | None


class OpenWaitView(msgspec.Struct, frozen=True):
    """A deferred task instance. `kind` is `tasks`, `moment`, `trigger` or `input`."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    since: str
    kind: str
    waits_for: str
    until: str | None
    """The time until which it waits."""
    timeout_at: str | None
    impossible: list[ImpossibleWaitView]


class OpenWaitList(msgspec.Struct, frozen=True):
    """A page of open waits, the longest wait first."""

    waits: list[OpenWaitView]
