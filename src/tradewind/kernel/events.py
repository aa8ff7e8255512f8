"""What can happen to a run. Plain values, so that a history can be kept and replayed.

`at` is the moment it happened, microseconds UTC. A `slot` is the place of a task instance in its run.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.branch import Branch
from tradewind.model.states import Outcome, TaskState


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
    length: int | None = None
    """Elements that its return value offers to mapped tasks; None: it returned nothing to map over."""
    ended: int = 0
    """When the attempt ended on its worker, between its dispatch and `at`: a report may come much later. 0: at `at`."""


class AttemptVanished(NamedTuple):
    """The host says that no process of this attempt exists; nothing is known of a verdict.

    `nonce` names the process, `host` the life of the worker host that says so; both are for the scheduler to compare.
    """

    slot: int
    fence: int
    at: int
    reason: str = ""
    nonce: str = ""
    host: str = ""


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


class RunNow(NamedTuple):
    """A person wants it to run, whatever it waits for: its trigger rule, its past, the moment of its next try.

    What was in the way is judged by whoever asks (`kernel.explain`); `cause` says so.
    """

    slot: int
    at: int
    cause: str


class WaitOver(NamedTuple):
    """What a deferred task instance waited for has come, cannot come, or did not come in time."""

    slot: int
    fence: int
    at: int
    outcome: Outcome | None = None
    """None: another attempt of the same try goes on. Else the task instance ends so, without one."""
    reason: str | None = None


class RunTimedOut(NamedTuple):
    """The run is older than its dagrun_timeout."""

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


# --- what follows ----------------------------------------------------------------------------------------------------


class Move(NamedTuple):
    """A task instance steps from one state to another. `fence` is the one in force after the step."""

    slot: int
    before: TaskState
    after: TaskState
    fence: int
    at: int
    cause: str


class Expanded(NamedTuple):
    """A mapped task got `added` instances: map indexes from `first_index` on, in slots from `slot` on.

    A long list comes in several of these. Map index 0 is the task's own slot, and in none of them.
    """

    task: int
    slot: int
    first_index: int
    added: int
    length: int
    """How many there will be in the end."""


class Added(NamedTuple):
    """A task that the run's earlier definition did not have gets its task instance, in this slot."""

    slot: int


class Verified(NamedTuple):
    """All rows of the run are as its newer definition asks for: it belongs to that version now."""


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
    word: str
    """Airflow's word for it: `success`, `task_failure`, `timed_out`, `all_tasks_deadlocked`."""


class Refusal(NamedTuple):
    """The event does not apply (old fence, other state): nothing changed. `cause` goes to the log and to the caller."""

    slot: int
    fence: int
    cause: str


Decision = Move | Expanded | Added | Verified | Stop | Timer | RunEnds | Refusal
