"""What a deferred task instance waits for, and whether the wait can end, for `why`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tradewind.kernel.explain import Blocker
from tradewind.model.moments import shown_moment
from tradewind.model.phrases import Argument, Phrase, any_of, any_state, phrase, quoted, semicolons, then
from tradewind.model.sentences import TEMPLATES
from tradewind.model.waits import NEVER_BY_ITSELF, InputWait, MomentWait, RunRef, TasksWait, TriggerWait, tasks_waits
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.waits.impossible_waits import why_impossible
from tradewind.scheduler.waits.messages import shortened
from tradewind.scheduler.waits.wait_index import due_at
from tradewind.store.port import RowReader

NAMED_MAX = 3
"""Maximum number of dates or runs, and of states in each, that are named."""
NOTICED = TEMPLATES["ends_noticed"]
"""The event that ends a wait which is already fulfilled."""


def of_wait(store: RowReader, scheduler: Scheduler | None, active_run: ActiveRun, slot: int) -> list[Blocker]:
    """Return blockers for the wait of a task instance in state `deferred`. Limits count only after the wait."""
    row = active_run.waits.get(slot)
    if row is None:
        return [Blocker("deferred", phrase("deferred_unknown"), phrase("ends_wait"))]
    wait, since, limit = row.deferral.wait, shown_moment(row.since), row.deferral.timeout_at
    due = due_at(row.deferral)
    longest = phrase("timeout_at", at=shown_moment(limit)) if limit is not None else None
    if isinstance(wait, MomentWait):
        if wait.at >= NEVER_BY_ITSELF:
            reason, end = phrase("deferred_timeout", at=shown_moment(limit)), limit
        else:
            reason, end = phrase("deferred_until", at=shown_moment(wait.at)), due
        return [Blocker("deferred_until", reason, phrase("ends_at", at=shown_moment(end)), end)]
    if isinstance(wait, InputWait):
        return [_of_input(active_run, slot, wait, row.since, limit)]
    if isinstance(wait, TriggerWait):
        reason = then(phrase("deferred_trigger", since=since, trigger=wait.classpath), longest)
        found = [Blocker("deferred", reason, phrase("ends_trigger"))]
        if scheduler is not None and not scheduler.executor.runs_triggers:
            reason, command = phrase("no_worker_triggerer"), "tradewind worker-host"
            found.append(Blocker("no_worker", reason, phrase("ends_worker"), command=command))
        return found
    parts = [found for one in tasks_waits(wait) for found in _of_tasks(store, scheduler, one, longest)]
    if parts:
        now = scheduler.clock.wall() if scheduler is not None else row.since
        return parts + why_impossible(store, active_run.row, slot, tasks_waits(wait), now)
    return [Blocker("deferred", phrase("deferred_over"), phrase("ends_noticed"))]


def _of_input(active_run: ActiveRun, slot: int, wait: InputWait, since: int, limit: int | None) -> Blocker:
    """Return the blocker for a question to a person."""
    (task_id, index), run = active_run.where(slot), active_run.row
    at, subject, options = shown_moment(since), shortened(wait.subject), quoted(wait.options)
    users = any_of([name for _, name in wait.assigned_users[:NAMED_MAX]] or [phrase("a_person")])
    if wait.multiple:
        reason = phrase("input_some", since=at, users=users, subject=subject, options=options)
    else:
        reason = phrase("input_one", since=at, users=users, subject=subject, options=options)
    if limit is not None and wait.defaults is None:
        reason = then(reason, phrase("input_then_fails", at=shown_moment(limit)))
    elif limit is not None and wait.defaults is not None:
        reason = then(reason, phrase("input_then_default", at=shown_moment(limit), defaults=quoted(wait.defaults)))
    which = f" --map-index {index}" if index >= 0 else ""
    names = " ".join(map(shlex.quote, (run.dag_id, task_id, run.run_id)))
    command = f"tradewind hitl respond {names}{which} --option {shlex.quote(wait.options[0])}"
    return Blocker("input", reason, phrase("ends_answered"), command=command, by_hand=True)


def _of_tasks(store: RowReader, scheduler: Scheduler | None, wait: TasksWait, longest: Phrase | None) -> Iterator[Blocker]:
    """Yield a blocker for one wait for tasks or runs of a DAG, unless the wait is fulfilled."""
    missing, states = list(_missing(store, scheduler, wait)), any_state(wait.allowed)
    if not missing:
        return
    named = missing[:NAMED_MAX]
    if len(missing) > NAMED_MAX:
        named.append(phrase("more", more=len(missing) - NAMED_MAX))
    reason = phrase("deferred_tasks", what=wait.subject(), states=states, missing=semicolons(named))
    yield Blocker("deferred", then(reason, longest), phrase("ends_fulfilled", what=wait.subject(), states=states))


def _missing(store: RowReader, scheduler: Scheduler | None, wait: TasksWait) -> Iterator[Phrase]:
    """Yield the missing states for each date, or each run, of the wait."""
    if scheduler is None:
        yield from (phrase("words", text=_name(ref)) for ref in wait.run_refs())
        return
    states: dict[RunRef, dict[str | None, str | None]] = {}
    seen: set[tuple[RunRef, str | None]] = set()
    for ref, task_id, state in scheduler.waits.states(wait, scheduler.active_runs_by_id):
        seen.add((ref, task_id))
        if state not in wait.allowed:
            states.setdefault(ref, {})[task_id] = state
        else:
            states.setdefault(ref, {})
    for ref in wait.run_refs():
        if ref not in states:
            yield phrase("missing_run", run=_name(ref))
            continue
        late: list[str | Phrase] = [_state(task_id, state) for task_id, state in states[ref].items()]
        late += [phrase("missing_task", task=task_id) for task_id in wait.task_ids if (ref, task_id) not in seen]
        if late:
            named: Argument = phrase("and_others", items=late[:NAMED_MAX]) if len(late) > NAMED_MAX else late
            yield phrase("missing_in_run", run=_name(ref), tasks=named)


def _state(task_id: str | None, state: str | None) -> Phrase:
    """Return the state of a task instance, or of the run, in words."""
    if task_id:
        return phrase("task_is", task=task_id, state=state) if state else phrase("task_is_not_started", task=task_id)
    return phrase("run_is", state=state) if state else phrase("run_is_not_started")


def _name(ref: RunRef) -> str:
    return shown_moment(ref) if isinstance(ref, int) else ref
