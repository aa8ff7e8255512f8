"""What a deferred task instance waits for, and whether the wait can end, for `why`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tradewind.kernel.explain import Blocker
from tradewind.model.moments import iso
from tradewind.model.waits import NEVER_BY_ITSELF, InputWait, MomentWait, RunRef, TasksWait, TriggerWait, tasks_waits
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.waits.impossible_waits import why_impossible
from tradewind.scheduler.waits.messages import shortened
from tradewind.scheduler.waits.wait_index import due_at
from tradewind.store.port import RowReader

NAMED_MAX = 3
"""How many dates or runs, and how many states in each, are named at most."""
NOTICED = "the scheduler notices it"
"""What ends a wait that is fulfilled already."""


def of_wait(store: RowReader, scheduler: Scheduler | None, active_run: ActiveRun, slot: int) -> list[Blocker]:
    """Return blockers for the wait of a task instance in state `deferred`. Limits count only after the wait."""
    row = active_run.waits.get(slot)
    if row is None:
        return [Blocker("deferred", "It is deferred; what it waits for is not known.", "its wait ends")]
    wait, since, limit = row.deferral.wait, iso(row.since), row.deferral.timeout_at
    due = due_at(row.deferral)
    longest = f" Its timeout is at {iso(limit)}." if limit is not None else ""
    if isinstance(wait, MomentWait):
        if wait.at >= NEVER_BY_ITSELF:
            text = f"It waits without a process, and its wait ends by itself at {iso(limit)}."
            return [Blocker("deferred_until", text, f"it is {iso(limit)}", limit)]
        text = f"It waits without a process for {iso(wait.at)}."
        return [Blocker("deferred_until", text, f"it is {iso(due)}", due)]
    if isinstance(wait, InputWait):
        return [_of_input(active_run, slot, wait, row.since, limit)]
    if isinstance(wait, TriggerWait):
        text = f"It is deferred since {since} to the trigger {wait.classpath}.{longest}"
        found = [Blocker("deferred", text, "its trigger fires")]
        if scheduler is not None and not scheduler.executor.ready:
            text = "No worker host is connected, so no triggerer runs its trigger."
            found.append(Blocker("no_worker", text, "a worker host connects", command="tradewind worker-host"))
        return found
    parts = [found for one in tasks_waits(wait) for found in _of_tasks(store, scheduler, one, longest)]
    if parts:
        now = scheduler.clock.wall() if scheduler is not None else row.since
        return parts + why_impossible(store, active_run.row, slot, tasks_waits(wait), now)
    return [Blocker("deferred", "Its wait has ended; it is about to continue.", NOTICED)]


def _of_input(active_run: ActiveRun, slot: int, wait: InputWait, since: int, limit: int | None) -> Blocker:
    """Return the blocker for a question to a person."""
    (task_id, index), run = active_run.where(slot), active_run.row
    who = " or ".join(name for _, name in wait.assigned_users[:NAMED_MAX]) or "a person"
    then = (
        ""
        if limit is None
        else f" At {iso(limit)} "
        + ("it fails." if wait.defaults is None else f"the default {', '.join(map(repr, wait.defaults))} counts.")
    )
    text = (
        f"It waits since {iso(since)} for {who} to answer {shortened(wait.subject)!r}: "
        f"{'some' if wait.multiple else 'one'} of {', '.join(map(repr, wait.options))}.{then}"
    )
    which = f" --map-index {index}" if index >= 0 else ""
    names = " ".join(map(shlex.quote, (run.dag_id, task_id, run.run_id)))
    command = f"tradewind hitl respond {names}{which} --option {shlex.quote(wait.options[0])}"
    return Blocker("input", text, "somebody answers", command=command, by_hand=True)


def _of_tasks(store: RowReader, scheduler: Scheduler | None, wait: TasksWait, longest: str) -> Iterator[Blocker]:
    """Yield a blocker for one wait for tasks or runs of a DAG, unless the wait is fulfilled."""
    missing, wanted = list(_missing(store, scheduler, wait)), " or ".join(wait.allowed)
    if not missing:
        return
    more = f"; and {len(missing) - NAMED_MAX} more" if len(missing) > NAMED_MAX else ""
    text = f"It waits without a process until {wait.described()} is {wanted}: {'; '.join(missing[:NAMED_MAX])}{more}.{longest}"
    yield Blocker("deferred", text, f"{wait.described()} is {wanted}")


def _missing(store: RowReader, scheduler: Scheduler | None, wait: TasksWait) -> Iterator[str]:
    """Yield what is missing for each date, or each run, that is waited for."""
    if scheduler is None:
        yield from (_name(ref) for ref in wait.run_refs())
        return
    states: dict[RunRef, dict[str | None, str]] = {}
    seen: set[tuple[RunRef, str | None]] = set()
    for ref, task_id, state in scheduler.waits.states(wait, scheduler.active_runs_by_id):
        seen.add((ref, task_id))
        if state not in wait.allowed:
            states.setdefault(ref, {})[task_id] = state or "not started"
        else:
            states.setdefault(ref, {})
    for ref in wait.run_refs():
        if ref not in states:
            yield f"there is no run of {_name(ref)}"
            continue
        late = [f"{task_id} is {state}" if task_id else f"the run is {state}" for task_id, state in states[ref].items()]
        late += [f"there is no {task_id}" for task_id in wait.task_ids if (ref, task_id) not in seen]
        if late:
            yield f"on {_name(ref)} {', '.join(late[:NAMED_MAX])}{' and others' if len(late) > NAMED_MAX else ''}"


def _name(ref: RunRef) -> str:
    return str(iso(ref)) if isinstance(ref, int) else ref
