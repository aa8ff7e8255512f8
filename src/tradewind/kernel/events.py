"""What can happen to a run. Plain values, so that a history can be kept and replayed.

`at` is the moment it happened, microseconds UTC. A `slot` is the place of a task instance in its run.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.states import Outcome, TaskState
from tradewind.wire.messages import Branch


class RunStarted(NamedTuple):
    """The run left the queue of runs."""

    at: int


class Admitted(NamedTuple):
    """A slot was found for it: an attempt is dispatched under a new fence."""

    slot: int
    at: int


class AttemptStarted(NamedTuple):
    """A worker asked to start the attempt, and its question came under the current fence."""

    slot: int
    fence: int
    at: int


class AttemptEnded(NamedTuple):
    """The verdict on an attempt."""

    slot: int
    fence: int
    outcome: Outcome
    at: int
    reason: str | None = None
    reschedule_at: int | None = None
    retry_delay: int | None = None
    branch: Branch | None = None


class AttemptVanished(NamedTuple):
    """The host says that no process of this attempt exists; nothing is known of a verdict."""

    slot: int
    fence: int
    at: int
    reason: str = ""


class TimerDue(NamedTuple):
    """The moment for which a retry or a reschedule waits has come."""

    slot: int
    at: int


class PastChanged(NamedTuple):
    """What the previous run says about a task with depends_on_past or wait_for_downstream."""

    task: int
    allowed: bool
    at: int
    why: str = ""


class RunTimedOut(NamedTuple):
    """The run is older than its dagrun_timeout."""

    at: int


Event = RunStarted | Admitted | AttemptStarted | AttemptEnded | AttemptVanished | TimerDue | PastChanged | RunTimedOut


# --- what follows ----------------------------------------------------------------------------------------------------


class Move(NamedTuple):
    """A task instance steps from one state to another. `fence` is the one in force after the step."""

    slot: int
    before: TaskState
    after: TaskState
    fence: int
    at: int
    cause: str


class Stop(NamedTuple):
    """A living attempt has to be stopped: its result would not count any more."""

    slot: int
    fence: int
    cause: str


class Timer(NamedTuple):
    """Wake this task instance at `due`."""

    slot: int
    due: int


class RunEnds(NamedTuple):
    """The run reached its end. `success` or `failed`, and why."""

    success: bool
    at: int
    cause: str


class Refusal(NamedTuple):
    """The event does not apply (old fence, other state): nothing changed. `cause` goes to the log and to the asker."""

    slot: int
    fence: int
    cause: str


Decision = Move | Stop | Timer | RunEnds | Refusal
