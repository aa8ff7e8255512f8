"""What a deferred task waits for, and how it goes on: plain values that are stored and sent.

A task that waits without a process is in state `deferred`. Three things can be waited for:

- a trigger: author's code, run by the triggerer beside many others;
- a moment: the scheduler's own timer;
- task instances or runs of DAGs: the scheduler sees them change, so it wakes the task at once.

When the wait is over the task either goes on in another attempt of the same try (`Deferral.method` is called with the event), or,
where nothing is left to be done (`method` None), the scheduler ends it itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradewind.model.moments import iso
from tradewind.model.states import Outcome


class TriggerWait(msgspec.Struct, frozen=True, omit_defaults=True, tag="trigger"):
    """Until a trigger fires. `kwargs` is JSON in the form of XComs: what makes the trigger again."""

    classpath: str
    kwargs: bytes = b"{}"


class MomentWait(msgspec.Struct, frozen=True, tag="moment"):
    """Until a moment, microseconds UTC."""

    at: int
    event: bytes = b"null"
    """What the task is told then; JSON in the form of XComs."""


class TasksWait(msgspec.Struct, frozen=True, omit_defaults=True, tag="tasks"):
    """Until task instances, a task group or whole runs of a DAG are in given states, at logical dates or in named runs.

    With empty `task_ids` and `group` None: the runs themselves.
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
    """What would fail skips instead."""
    told: dict[str, bytes] = {}
    """Outcome → the event that a task hears which goes on; JSON in the form of XComs. Missing: the outcome itself."""

    def described(self) -> str:
        """For people: what is waited for, without where."""
        if self.group is not None:
            return f"task group {self.group!r} of DAG {self.dag_id!r}"
        if self.task_ids:
            return f"{', '.join(map(repr, self.task_ids))} of DAG {self.dag_id!r}"
        return f"DAG {self.dag_id!r}"

    def where(self) -> tuple[int | str, ...]:
        """Logical dates and run ids."""
        return self.logical_dates + self.run_ids

    def places(self) -> str:
        """For people: at which dates or in which runs."""
        return ", ".join([*(str(iso(date)) for date in self.logical_dates), *self.run_ids])


class EveryWait(msgspec.Struct, frozen=True, tag="every"):
    """Until each of several waits for tasks or runs is over. The first that fails or skips decides."""

    of: tuple[TasksWait, ...]


Wait = TriggerWait | MomentWait | TasksWait | EveryWait

NEVER_BY_ITSELF = 253_370_764_800_000_000
"""9999-01-01: the moment of a wait that only its timeout ends."""


def tasks_waits(wait: Wait) -> tuple[TasksWait, ...]:
    """What a wait asks of task instances and runs; nothing for the others."""
    return wait.of if isinstance(wait, EveryWait) else (wait,) if isinstance(wait, TasksWait) else ()


Place = int | str
"""A logical date in microseconds, or a run id."""


class Judgement(msgspec.Struct, frozen=True):
    """The end of a wait, and a sentence."""

    outcome: Outcome
    reason: str


_REMOVED = "removed"


def judge(wait: TasksWait, rows: Iterable[tuple[Place, str | None, str | None]]) -> Judgement | None:
    """Is the wait over? Rows are (logical date or run id, task id or None, state or None); what does not exist is absent."""
    states: dict[tuple[Place, str | None], list[str | None]] = {}
    named = {*wait.allowed, *wait.failed, *wait.skipped}
    for place, task_id, state in rows:
        if state != _REMOVED or _REMOVED in named:  # a newer version of the DAG does not have it: it is not waited for
            states.setdefault((place, task_id), []).append(state)
    for (place, task_id), found in states.items():
        for state in found:
            which = f" ({task_id})" if task_id is not None and len(wait.task_ids) != 1 else ""
            where = f"{wait.described()}{which} is {state} on {iso(place) if isinstance(place, int) else place}"
            if state in wait.failed:
                if wait.soft_fail:
                    return Judgement(Outcome.SKIPPED, f"{where}; skipped because of soft_fail")
                return Judgement(Outcome.FAILED, where)
            if state in wait.skipped:
                return Judgement(Outcome.SKIPPED, where)
    if all(_complete(wait, place, states) for place in wait.where()):
        return Judgement(Outcome.SUCCESS, f"{wait.described()} is {' or '.join(wait.allowed)} on {wait.places()}")
    return None


def judge_all(judged: Iterable[tuple[TasksWait, Judgement | None]]) -> Judgement | None:
    """Are all of them over? The first bad end counts, though others are still waited for."""
    found = [judgement for _, judgement in judged]
    bad = next((one for one in found if one is not None and one.outcome is not Outcome.SUCCESS), None)
    if bad is not None:
        return bad
    good = [one for one in found if one is not None]
    return Judgement(Outcome.SUCCESS, "; ".join(one.reason for one in good)) if len(good) == len(found) else None


def _complete(wait: TasksWait, place: Place, states: dict[tuple[Place, str | None], list[str | None]]) -> bool:
    """Is everything that is waited for in an allowed state there?"""
    there = [found for (at, _), found in states.items() if at == place]
    if not there or any((place, task_id) not in states for task_id in wait.task_ids):
        return False
    return all(state in wait.allowed for found in there for state in found)


class Deferral(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attempt has ended because its task waits."""

    wait: Wait
    method: str | None = None
    """Of the operator, called with the context, `event` and `kwargs` when the wait is over. None: the task is over then, too."""
    kwargs: bytes = b"{}"
    """JSON in the form of XComs."""
    timeout_at: int | None = None
    """Microseconds UTC. Waiting longer fails the task."""
    soft_fail: bool = False
    """With `method` None: a wait that fails or takes too long skips the task instead."""
    active: int = 0
    """Microseconds that the attempts of this try have run so far."""


class Resumption(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the attempt is told that goes on after a wait."""

    method: str
    kwargs: bytes = b"{}"
    event: bytes = b"null"
    """JSON in the form of XComs."""
    error: str | None = None
    """`timeout`, or why the trigger failed: the task is to fail."""
    active: int = 0
    """Microseconds that the attempts of this try have run so far."""


TIMEOUT = "timeout"
"""As an error of a wait: it took longer than it may."""


class TriggerEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a wait came to: an event, an error, or the end of its task."""

    event: bytes = b"null"
    """JSON in the form of XComs."""
    error: str | None = None
    """`TIMEOUT`, or why the trigger failed."""
    outcome: Outcome | None = None
    """Set: the task ends without another attempt."""
    xcoms: dict[str, bytes] = {}
    """With `outcome`: key → JSON in the form of XComs."""
    reason: str | None = None
    """For people."""
