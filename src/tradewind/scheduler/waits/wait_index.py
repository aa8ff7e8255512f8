"""Open waits: the waits of task instances in state `deferred`, which have neither a process nor a pool slot.

A wait for a moment is a timer. Waits for task instances or runs of a DAG are indexed by DAG and date (or run id). A change of such
a run is noticed in the batch that contains it, and the waits are examined after the commit, so that a waiting task continues at
once. Triggers run in the worker host's triggerer; the index contains the triggers that are needed.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from tradewind.kernel import events as e
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import DeferralRow
from tradewind.model.states import TASK_STATES, WAITING, Outcome
from tradewind.model.waits import (
    TIMEOUT,
    Deferral,
    InputWait,
    Judgement,
    MomentWait,
    Resumption,
    RunRef,
    TasksWait,
    TriggerEnd,
    TriggerWait,
    judge,
    judge_all,
    tasks_waits,
)
from tradewind.scheduler.attempts.asked_tasks import asked_tasks
from tradewind.scheduler.attempts.task_requests import asked_runs
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.timers import Timers
from tradewind.scheduler.waits.input_answers import answered
from tradewind.store.port import Store
from tradewind.wire.messages import AttemptKey, TriggerOrder

_Key = TypeVar("_Key", bound=Hashable)


class WaitDue(NamedTuple):
    """Timer: the moment for which a wait waits, or its timeout."""

    run: int
    slot: int
    fence: int


class ExamineWait(NamedTuple):
    """Timer: examining the wait of this task instance failed, and its pause is over."""

    run: int
    slot: int


class WaitResult(NamedTuple):
    """The result of a wait."""

    run: int
    slot: int
    fence: int
    end: TriggerEnd


class OpenWait(NamedTuple):
    """The wait of one task instance."""

    key: AttemptKey
    deferral: Deferral
    since: int


class WaitIndex:
    """The open waits of all running runs."""

    def __init__(self, store: Store, timers: Timers) -> None:
        self._store = store
        self._timers = timers
        self.open: dict[tuple[int, int], OpenWait] = {}
        """(run, slot) → its wait."""
        self._triggers: dict[tuple[int, int], OpenWait] = {}
        """The entries of `open` that wait for a trigger."""
        self._at: dict[str, dict[RunRef, dict[tuple[int, int], None]]] = {}
        """DAG → logical date or run id → the (run, slot) that wait for the run, or for tasks in it."""
        self._for_task: dict[tuple[str, RunRef, str | None], dict[tuple[int, int], None]] = {}
        """(DAG, logical date or run id, task) → the (run, slot) that wait for this task; None as task: for a task group."""
        self.noticed: dict[tuple[int, int], None] = {}
        """Waits to be examined after the commit, in order."""

    def clear(self) -> None:
        self.open.clear()
        self._triggers.clear()
        self._at.clear()
        self._for_task.clear()
        self.noticed.clear()

    # --- opening and closing ----------------------------------------------------------------------------------------

    def adopt(self, active_run: ActiveRun) -> None:
        """Add the waits of a running run's deferred task instances."""
        for slot, row in active_run.waits.items():
            if active_run.machine.task_state(slot) in WAITING:
                self.begin(active_run, row)

    def begin(self, active_run: ActiveRun, row: DeferralRow) -> OpenWait:
        """Add the wait of a task instance; it replaces an older one."""
        run, slot = key = active_run.row.id, row.slot
        self.end(run, slot)
        found = self.open[key] = OpenWait((run, slot, row.fence), row.deferral, row.since)
        if isinstance(row.deferral.wait, TriggerWait):
            self._triggers[key] = found
        due = due_at(row.deferral)
        if due is not None:
            self._timers.add(due, WaitDue(run, slot, row.fence))
        for wait in tasks_waits(row.deferral.wait):
            for ref in wait.run_refs():
                self._at.setdefault(wait.dag_id, {}).setdefault(ref, {})[key] = None
                for task in _tasks_of(wait):
                    self._for_task.setdefault((wait.dag_id, ref, task), {})[key] = None
            self.noticed[key] = None  # it may have ended already
        if isinstance(row.deferral.wait, InputWait):
            self.noticed[key] = None  # somebody may have answered while no scheduler ran
        return found

    def end(self, run: int, slot: int) -> OpenWait | None:
        """Remove and return the wait of a task instance; None: it has none."""
        key = run, slot
        self.noticed.pop(key, None)
        self._triggers.pop(key, None)
        found = self.open.pop(key, None)
        if found is None:
            return None
        for wait in tasks_waits(found.deferral.wait):
            by_ref = self._at.get(wait.dag_id, {})
            for ref in wait.run_refs():
                _drop(by_ref, ref, key)
                for task in _tasks_of(wait):
                    _drop(self._for_task, (wait.dag_id, ref, task), key)
            if not by_ref:
                self._at.pop(wait.dag_id, None)
        return found

    def forget(self, run: int, slots: Iterable[int]) -> None:
        """Remove the waits of a run that is removed from memory."""
        for slot in slots:
            self.end(run, slot)

    # --- noticing -----------------------------------------------------------------------------------------------------

    @property
    def watches(self) -> bool:
        """Whether there are waits for tasks or runs."""
        return bool(self._at)

    def moved(self, active_run: ActiveRun, slot: int) -> None:
        """Mark the waits for a task instance whose state has changed."""
        row = active_run.row
        by_ref = self._at.get(row.dag_id)
        if not by_ref:
            return
        for ref in (row.logical_date, row.run_id):
            if ref is not None and ref in by_ref:
                task_id = active_run.machine.task_id(slot)
                for task in (task_id, None):
                    self.noticed.update(self._for_task.get((row.dag_id, ref, task), ()))

    def run_changed(self, dag_id: str, logical_date: int | None, run_id: str) -> None:
        """Mark the waits for a run that was created, started, ended, edited or deleted."""
        by_ref = self._at.get(dag_id, {})
        for ref in (logical_date, run_id):
            if ref is not None:
                self.noticed.update(by_ref.get(ref, {}))

    def dag_deleted(self, dag_id: str) -> None:
        """Mark the waits for a DAG that was deleted with all its runs."""
        for waiting in self._at.get(dag_id, {}).values():
            self.noticed.update(waiting)

    def notice(self, run: int, slot: int) -> None:
        """Mark one wait for examination."""
        if (run, slot) in self.open:
            self.noticed[run, slot] = None

    def notice_named_runs(self) -> None:
        """Safety net: mark all waits for runs by run id for examination; those runs may have been deleted."""
        for by_ref in self._at.values():
            for ref, waiting in by_ref.items():
                if isinstance(ref, str):
                    self.noticed.update(waiting)

    def notice_all(self) -> None:
        """Safety net: mark all waits for tasks and runs for examination."""
        for dag_id in self._at:
            self.dag_deleted(dag_id)

    # --- examining ----------------------------------------------------------------------------------------------------

    def examine(self, key: tuple[int, int], active_runs_by_id: Mapping[int, ActiveRun]) -> WaitResult | None:
        """Return the result of a wait; None: it continues. Called after a commit, when memory and store agree.

        Args:
            key: (run, slot).

        Raises:
            StoreError: the store cannot be read; the wait stays marked.
        """
        waiting = self.open.get(key)
        end = None if waiting is None else self._end(waiting, active_runs_by_id)
        self.noticed.pop(key, None)
        return None if waiting is None or end is None else WaitResult(*waiting.key, end)

    def _end(self, waiting: OpenWait, active_runs_by_id: Mapping[int, ActiveRun]) -> TriggerEnd | None:
        """Return the end of a wait for tasks or for a person; None: the wait continues."""
        deferral = waiting.deferral
        if isinstance(deferral.wait, InputWait):
            answer = self._store.input_answer(*waiting.key)
            return None if answer is None else answered(answer)
        waits = tasks_waits(deferral.wait)
        if deferral.method is not None:
            gone = next(
                (run_id for wait in waits for run_id in wait.run_ids if not self._store.find_run(wait.dag_id, run_id)), None
            )
            if gone is not None:  # the task decides what the deletion means
                return TriggerEnd(event=b'"gone"', reason=f"run {gone!r} that it waited for was deleted")
        judgement = judge_all((wait, judge(wait, self.states(wait, active_runs_by_id))) for wait in waits)
        return as_end(deferral, judgement) if judgement is not None and waits else None

    def states(
        self, wait: TasksWait, active_runs_by_id: Mapping[int, ActiveRun]
    ) -> Iterator[tuple[RunRef, str | None, str | None]]:
        """Yield (logical date or run id, task id or None, state or None) of the existing runs and task instances of a wait."""
        for run, ref in asked_runs(self._store, wait):
            active_run = active_runs_by_id.get(run.id)
            if not wait.task_ids and wait.group is None:
                yield ref, None, run.state.value
            elif active_run is not None:
                for task_id in asked_tasks(wait, active_run.topology.definition):
                    task = active_run.topology.index.get(task_id)
                    for slot in () if task is None else active_run.machine.instances.expanded.get(task, (task,)):
                        yield ref, task_id, active_run.machine.task_state(slot).shown
            else:
                wanted = asked_tasks(wait, self._store.definition(run.version))
                for task_id, codes in self._store.states_of(run.id, wanted).items():
                    for code in codes:
                        yield ref, task_id, TASK_STATES[code].shown

    # --- triggers -------------------------------------------------------------------------------------------------------

    def triggers(self) -> Collection[OpenWait]:
        """Return every open wait for a trigger."""
        return self._triggers.values()

    def triggers_of(self, run: int, slots: Iterable[int]) -> set[AttemptKey]:
        """Return the attempts among these task instances of a run that wait for a trigger now."""
        return {found.key for slot in slots if (found := self._triggers.get((run, slot))) is not None}


def _tasks_of(wait: TasksWait) -> Iterable[str | None]:
    """Return the task ids under which a wait is indexed; none for a wait for whole runs."""
    return (*wait.task_ids, None) if wait.group is not None else wait.task_ids


def _drop(index: dict[_Key, dict[tuple[int, int], None]], ref: _Key, key: tuple[int, int]) -> None:
    """Remove a wait from an index, and also the entry if it was the last wait in it."""
    waiting = index.get(ref)
    if waiting is not None:
        waiting.pop(key, None)
        if not waiting:
            del index[ref]


def due_at(deferral: Deferral) -> int | None:
    """Return the moment at which the scheduler has to examine a wait without any event."""
    moments = [deferral.wait.at] if isinstance(deferral.wait, MomentWait) else []
    if deferral.timeout_at is not None:
        moments.append(deferral.timeout_at)
    return min(moments, default=None)


def end_by_clock(deferral: Deferral, now: int) -> TriggerEnd | None:
    """Return the end of a wait whose moment or timeout has come; None: neither has come. The moment has priority."""
    if isinstance(deferral.wait, MomentWait) and deferral.wait.at <= now:
        outcome = Outcome.SUCCESS if deferral.method is None else None
        return TriggerEnd(event=deferral.wait.event, outcome=outcome, reason=english(phrase("cause_moment")))
    if deferral.timeout_at is not None and deferral.timeout_at <= now:
        return TriggerEnd(error=TIMEOUT)
    return None


def as_end(deferral: Deferral, judgement: Judgement) -> TriggerEnd:
    """Return the end of a wait for tasks. If a method of the task follows, the method decides what a failure means."""
    if deferral.method is None:
        return TriggerEnd(outcome=judgement.outcome, reason=judgement.reason)
    name = judgement.outcome.value
    event = deferral.wait.events.get(name) if isinstance(deferral.wait, TasksWait) else None
    return TriggerEnd(event=event or b'"%s"' % name.encode(), reason=judgement.reason)


def wait_over(row: DeferralRow, end: TriggerEnd, now: int) -> tuple[e.WaitOver, Resumption | None]:
    """Return the event for the run, and the values for the next attempt, if there is one."""
    slot, fence, deferral = row.slot, row.fence, row.deferral
    if end.outcome is not None:
        outcome, reason = end.outcome, end.reason
        if outcome in (Outcome.FAILED, Outcome.FAILED_FINAL) and deferral.soft_fail:
            outcome, reason = Outcome.SKIPPED, f"{reason or 'it failed'}; skipped because of soft_fail"
        return e.WaitOver(slot, fence, now, outcome, reason), None
    if deferral.method is None:
        outcome = Outcome.SUCCESS if end.error is None else Outcome.FAILED_FINAL
        reason = end.reason if end.error is None else _sentence(row, end.error, now)
        return wait_over(row, TriggerEnd(outcome=outcome, reason=reason), now)
    reason = end.reason if end.error is None else _sentence(row, end.error, now)
    resumption = Resumption(deferral.method, deferral.kwargs, end.event, end.error, deferral.active)
    return e.WaitOver(slot, fence, now, None, reason), resumption


def _sentence(row: DeferralRow, error: str, now: int) -> str:
    if error == TIMEOUT:
        return f"it waited {(now - row.since) / 1e6:g} s, which is longer than its timeout"
    return error


def order(active_run: ActiveRun, waiting: OpenWait, bundle: str, log: str, version: str | None = None) -> TriggerOrder:
    """Return the message that lets the triggerer run the trigger of a wait."""
    wait = waiting.deferral.wait
    assert isinstance(wait, TriggerWait)
    name = f"{active_run.row.dag_id}.{active_run.machine.name(waiting.key[1])} in {active_run.row.run_id}"
    return TriggerOrder(waiting.key, wait, bundle, name, log, active_run.topology.definition.fileloc, bundle_version=version)
