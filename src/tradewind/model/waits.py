"""Waits of deferred tasks, and how the tasks continue, as plain values that are stored and sent.

A task that waits without a process is in state `deferred`. It can wait for:

- a trigger: the author's code, which the triggerer runs beside many others;
- a moment: a timer of the scheduler;
- task instances or runs of DAGs: the scheduler sees their changes, so it wakes the task at once;
- the answer of a person: then its state is `awaiting_input`.

When the wait ends, the task continues in another attempt of the same try (`Deferral.method` is called with the event). If
nothing is left to do (`method` is None), the scheduler ends the task itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradewind.model.moments import iso
from tradewind.model.phrases import Phrase, english, phrase, quoted
from tradewind.model.states import Outcome


class TriggerWait(msgspec.Struct, frozen=True, omit_defaults=True, tag="trigger"):
    """A wait for a trigger. `kwargs` are the arguments of its class: JSON in the form of XComs."""

    classpath: str
    kwargs: bytes = b"{}"


class MomentWait(msgspec.Struct, frozen=True, tag="moment"):
    """A wait for a moment, microseconds UTC."""

    at: int
    event: bytes = b"null"
    """The event that the task gets after the wait; JSON in the form of XComs."""


class TasksWait(msgspec.Struct, frozen=True, omit_defaults=True, tag="tasks"):
    """A wait until task instances, a task group or runs of a DAG are in given states, at logical dates or in named runs.

    With empty `task_ids` and `group` None: a wait for the runs themselves.
    """

    dag_id: str
    logical_dates: tuple[int, ...] = ()
    run_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    group: str | None = None
    allowed: tuple[str, ...] = ("success",)
    skipped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    soft_fail: bool = False
    """A state in `failed` skips the waiting task instead of failing it."""
    events: dict[str, bytes] = msgspec.field(default_factory=dict, name="told")
    """Outcome → the event that the task gets if it continues; JSON in the form of XComs. Default: the name of the outcome."""

    def described(self) -> str:
        """Return what the task waits for in English, without dates and runs."""
        return english(self.subject())

    def subject(self) -> Phrase:
        """Return what the task waits for, for people, without dates and runs."""
        if self.group is not None:
            return phrase("wait_group", group=self.group, dag=self.dag_id)
        if self.task_ids:
            return phrase("wait_tasks", tasks=quoted(self.task_ids), dag=self.dag_id)
        return phrase("wait_dag", dag=self.dag_id)

    def run_refs(self) -> tuple[int | str, ...]:
        """Return the logical dates and run ids."""
        return self.logical_dates + self.run_ids

    def shown_runs(self) -> str:
        """Return the dates and runs, for people."""
        return ", ".join([*(str(iso(date)) for date in self.logical_dates), *self.run_ids])


class EveryWait(msgspec.Struct, frozen=True, tag="every"):
    """A wait until each of several waits for tasks or runs has ended. The first one that fails or skips decides."""

    of: tuple[TasksWait, ...]


class InputWait(msgspec.Struct, frozen=True, omit_defaults=True, tag="input"):
    """A wait for the answer of a person (human in the loop). The names are Airflow's."""

    subject: str
    options: tuple[str, ...]
    body: str | None = None
    defaults: tuple[str, ...] | None = None
    """The options that are the answer if nobody answers in time; None: the task fails."""
    multiple: bool = False
    """Several options may be chosen."""
    params: bytes = b"{}"
    """JSON object: name of a form field → `{value, description, schema}`."""
    assigned_users: tuple[tuple[str, str], ...] = ()
    """(id, name) of the people who may answer; empty: everybody who may edit the task instance."""


Wait = TriggerWait | MomentWait | TasksWait | EveryWait | InputWait

NEVER_BY_ITSELF = 253_370_764_800_000_000
"""9999-01-01: used for a wait that only its timeout ends."""


def tasks_waits(wait: Wait) -> tuple[TasksWait, ...]:
    """Return the waits for tasks and runs that a wait consists of; an empty tuple for other waits."""
    return wait.of if isinstance(wait, EveryWait) else (wait,) if isinstance(wait, TasksWait) else ()


RunRef = int | str
"""A logical date in microseconds, or a run id."""


class Judgement(msgspec.Struct, frozen=True):
    """How a wait for tasks or runs ends, with a sentence."""

    outcome: Outcome
    reason: str


_REMOVED = "removed"


def judge(wait: TasksWait, rows: Iterable[tuple[RunRef, str | None, str | None]]) -> Judgement | None:
    """Return how a wait ends, or None if it continues.

    Args:
        rows: (logical date or run id, task id or None, state or None) of all runs and task instances that exist.
    """
    states: dict[tuple[RunRef, str | None], list[str | None]] = {}
    named = {*wait.allowed, *wait.failed, *wait.skipped}
    for ref, task_id, state in rows:
        if state != _REMOVED or _REMOVED in named:  # the DAG does not have the task any more: the wait ignores it
            states.setdefault((ref, task_id), []).append(state)
    for (ref, task_id), found in states.items():
        for state in found:
            which = f" ({task_id})" if task_id is not None and len(wait.task_ids) != 1 else ""
            where = f"{wait.described()}{which} is {state} on {iso(ref) if isinstance(ref, int) else ref}"
            if state in wait.failed:
                if wait.soft_fail:
                    return Judgement(Outcome.SKIPPED, f"{where}; skipped because of soft_fail")
                return Judgement(Outcome.FAILED, where)
            if state in wait.skipped:
                return Judgement(Outcome.SKIPPED, where)
    if all(_complete(wait, ref, states) for ref in wait.run_refs()):
        return Judgement(Outcome.SUCCESS, f"{wait.described()} is {' or '.join(wait.allowed)} on {wait.shown_runs()}")
    return None


def judge_all(judged: Iterable[tuple[TasksWait, Judgement | None]]) -> Judgement | None:
    """Return how several waits end together, or None if they continue. The first wait that fails or skips decides at once."""
    found = [judgement for _, judgement in judged]
    bad = next((one for one in found if one is not None and one.outcome is not Outcome.SUCCESS), None)
    if bad is not None:
        return bad
    good = [one for one in found if one is not None]
    return Judgement(Outcome.SUCCESS, "; ".join(one.reason for one in good)) if len(good) == len(found) else None


def _complete(wait: TasksWait, ref: RunRef, states: dict[tuple[RunRef, str | None], list[str | None]]) -> bool:
    """Return whether all tasks or runs of the wait have an allowed state at this date or in this run."""
    there = [found for (at, _), found in states.items() if at == ref]
    if not there or any((ref, task_id) not in states for task_id in wait.task_ids):
        return False
    return all(state in wait.allowed for found in there for state in found)


class Deferral(msgspec.Struct, frozen=True, omit_defaults=True):
    """The report of an attempt that ended because its task waits."""

    wait: Wait
    method: str | None = None
    """The operator's method that is called with the context, `event` and `kwargs` after the wait; None: the task ends, too."""
    kwargs: bytes = b"{}"
    """JSON in the form of XComs."""
    timeout_at: int | None = None
    """Timeout, microseconds UTC. A longer wait fails the task."""
    soft_fail: bool = False
    """With `method` None: a wait that fails or times out skips the task."""
    active: int = 0
    """Microseconds that the attempts of this try have run so far."""


class Resumption(msgspec.Struct, frozen=True, omit_defaults=True):
    """The values for the attempt after a wait."""

    method: str
    kwargs: bytes = b"{}"
    event: bytes = b"null"
    """JSON in the form of XComs."""
    error: str | None = None
    """`timeout`, or why the trigger failed: the task has to fail."""
    active: int = 0
    """Microseconds that the attempts of this try have run so far."""


TIMEOUT = "timeout"
"""The error of a wait that timed out."""


class TriggerEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a wait: an event, an error, or the end of its task."""

    event: bytes = b"null"
    """JSON in the form of XComs."""
    error: str | None = None
    """`TIMEOUT`, or why the trigger failed."""
    outcome: Outcome | None = None
    """Set: the task ends without another attempt."""
    xcoms: dict[str, bytes] = {}
    """With `outcome`: key → JSON in the form of XComs."""
    reason: str | None = None
    """A reason for people."""
