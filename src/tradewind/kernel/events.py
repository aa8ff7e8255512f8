"""Events that a run machine gets, and the decisions that it returns. Plain values, so that a history can be kept and replayed.

`at` is the moment of the event, microseconds UTC. A `slot` is the number of a task instance in its run.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.branch import Branch
from tradewind.model.phrases import Phrase
from tradewind.model.states import Outcome, TaskState


class RunStarted(NamedTuple):
    """The run left the run queue."""

    at: int


class Admitted(NamedTuple):
    """Admission gave the task instance all resources that it needs: an attempt is dispatched under a new fence."""

    slot: int
    at: int


class AttemptStarted(NamedTuple):
    """A worker host asked to start the attempt, under the current fence."""

    slot: int
    fence: int
    at: int


class AttemptEnded(NamedTuple):
    """The report of an attempt's end."""

    slot: int
    fence: int
    outcome: Outcome
    at: int
    reason: str | None = None
    reschedule_at: int | None = None
    retry_delay: int | None = None
    branch: Branch | None = None
    length: int | None = None
    """Number of elements of the return value for mapped tasks; None: there is no value to map over."""
    ended: int = 0
    """When the attempt ended on its worker, between its dispatch and `at` (a report may arrive much later). 0: the same as `at`."""


class AttemptVanished(NamedTuple):
    """A worker host says that no process of this attempt exists, and no report of its end is known.

    `nonce` identifies the process, `host` the worker host process that says so; the scheduler compares both.
    """

    slot: int
    fence: int
    at: int
    reason: str = ""
    nonce: str = ""
    host: str = ""


class TimerDue(NamedTuple):
    """The time for which a retry or a rescheduled sensor waits has come."""

    slot: int
    at: int


class PastChanged(NamedTuple):
    """Whether the previous run lets a task with depends_on_past or wait_for_downstream run."""

    task: int
    allowed: bool
    at: int
    why: Phrase | None = None


class RunNow(NamedTuple):
    """A person wants the task instance to run now, without waiting for its trigger rule, the previous run or its next try.

    The caller checks first what blocks it (`kernel.explain`); `cause` names the person and what was ignored.
    """

    slot: int
    at: int
    cause: str


class WaitOver(NamedTuple):
    """The wait of a deferred task instance has ended: fulfilled, impossible to fulfil, or timed out."""

    slot: int
    fence: int
    at: int
    outcome: Outcome | None = None
    """None: another attempt of the same try continues. Otherwise the task instance ends with this outcome, without an attempt."""
    reason: str | None = None


class RunTimedOut(NamedTuple):
    """The run has lasted longer than its dagrun_timeout."""

    at: int


Event = (
    RunStarted
    | Admitted
    | AttemptStarted
    | AttemptEnded
    | AttemptVanished
    | TimerDue
    | PastChanged
    | RunNow
    | WaitOver
    | RunTimedOut
)


# --- decisions -------------------------------------------------------------------------------------------------------


class Move(NamedTuple):
    """A task instance moves from one state to another. `fence` is its fence after the step."""

    slot: int
    before: TaskState
    after: TaskState
    fence: int
    at: int
    cause: str


class Expanded(NamedTuple):
    """A mapped task gets `added` instances: map indexes from `first_index` on, in slots from `slot` on.

    A long list is expanded in several of these. Map index 0 has the task's own slot and is not counted in `added`.
    """

    task: int
    slot: int
    first_index: int
    added: int
    length: int
    """How many instances the task has when the expansion is complete."""


class Added(NamedTuple):
    """A task that the run's earlier definition did not have gets a task instance, in this slot."""

    slot: int


class Verified(NamedTuple):
    """All rows of the run match the newer definition: the run belongs to that version now."""


class Stop(NamedTuple):
    """A live attempt has to be stopped: its result would not count any more."""

    slot: int
    fence: int
    cause: str


class Timer(NamedTuple):
    """Wake this task instance at `due`."""

    slot: int
    due: int


class RunEnds(NamedTuple):
    """The run has ended, with state `success` or `failed`."""

    success: bool
    at: int
    cause: str
    reason: str
    """Airflow's name of the reason, for callbacks: `success`, `task_failure`, `timed_out`, `all_tasks_deadlocked`."""


class Refusal(NamedTuple):
    """The event does not apply (old fence, other state): nothing changed. `cause` is logged and sent to the worker host."""

    slot: int
    fence: int
    cause: str


Decision = Move | Expanded | Added | Verified | Stop | Timer | RunEnds | Refusal
