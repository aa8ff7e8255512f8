"""Which task instances run, wait for a limit, or hold slots of a pool. Read from the scheduler's memory, for the web page.

The scheduler makes no decision while it answers, so `EXAMINED_MAX` limits the work.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Any

from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Candidate, Resource
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.states import TaskState
from tradewind.scheduler.core import Scheduler
from tradewind.store.port import RowReader

Answer = dict[str, Any]

EXAMINED_MAX = 5_000
"""Maximum number of waiting task instances, and of attempts, that are examined."""
SHOWN_MAX = 200
"""Maximum number of entries of a list."""
FIRST_MAX = 3
"""Maximum number of task instances that are named for one limit."""

_NOTHING: Answer = {
    "answers": False,
    "running": [],
    "running_total": 0,
    "blocked": [],
    "blocked_total": 0,
    "progress": {},
    "quarantined": 0,
}


def activity(scheduler: Scheduler | None) -> Answer:
    """Return the running and the waiting task instances.

    answers: whether a scheduler runs. running: attempts, the longest first: {dag_id, run_id, task_id, map_index, state, since,
    started_at}. running_total: how many attempts there are. blocked: for each limit that is reached {rule, owner, capacity, used,
    waiting, first}: how many task instances wait for it, and the first of them in the order in which they start. blocked_total:
    how many task instances wait for admission. progress: number of each running run → [task instances, not ended, active].
    quarantined: how many runs are set aside because of an error.
    """
    if scheduler is None:
        return _NOTHING
    running = [
        (active_run.machine.started_at[slot] or active_run.machine.queued_at[slot], run, slot)
        for run, active_run in list(scheduler.active_runs_by_id.items())
        for slot in list(active_run.holders)[:EXAMINED_MAX]
    ]
    return {
        "answers": True,
        "running": [_instance(scheduler, run, slot) for _, run, slot in nsmallest(SHOWN_MAX, running)],
        "running_total": scheduler.admission.used(PARALLELISM),
        "blocked": _blocked(scheduler),
        "blocked_total": scheduler.admission.waiting(),
        "progress": {
            str(run): [active_run.machine.instances.total, active_run.machine.unfinished, active_run.machine.active]
            for run, active_run in list(scheduler.active_runs_by_id.items())[:EXAMINED_MAX]
        },
        "quarantined": sum(scheduler.is_quarantined(run) for run in list(scheduler.active_runs_by_id)[:EXAMINED_MAX]),
    }


def pool_activity(store: RowReader, scheduler: Scheduler | None, pool: str) -> Answer:
    """Return the task instances that hold slots of a pool, and those that wait for them.

    holders: {dag_id, run_id, task_id, map_index, state, since, started_at, slots}, the longest first. waiting: {dag_id, run_id,
    task_id, map_index, state, since, slots, priority_weight, place}, in the order in which they start as far as this pool
    decides. holder_count, waiting_count: how many there are. used, capacity: slots.

    Raises:
        NotFound: there is no such pool; the message has the nearest name.
    """
    names = [one.name for one in store.pools()]
    if pool not in names:
        raise NotFound(english(phrase("error_no_pool", pool=pool)) + did_you_mean(pool, names))
    if scheduler is None:
        return {"answers": False, "holders": [], "holder_count": 0, "waiting": [], "waiting_count": 0, "used": 0, "capacity": 0}
    resource: Resource = ("pool", pool, 0)
    admission = scheduler.admission
    held = [(_since(scheduler, *key), *key, amount) for key, amount in admission.held(resource)]
    waiting = [one for one in admission.candidates() if one.needs[0][0] == resource]
    return {
        "answers": True,
        "holders": [
            {**_instance(scheduler, run, slot), "slots": amount} for _, run, slot, amount in nsmallest(SHOWN_MAX, held)
        ],
        "holder_count": len(held),
        "waiting": [
            {
                **_instance(scheduler, one.run, one.slot),
                "slots": one.needs[0][1],
                "priority_weight": -one.rank,
                "place": place,
            }
            for place, one in enumerate(nsmallest(SHOWN_MAX, waiting), 1)
        ],
        "waiting_count": len(waiting),
        "used": admission.used(resource),
        "capacity": _shown_capacity(admission.capacity(resource)),
    }


def _blocked(scheduler: Scheduler) -> list[Answer]:
    """The limits for which task instances wait. The limit with the most waiting task instances comes first."""
    admission = scheduler.admission
    waiting: dict[Resource, list[Candidate]] = {}
    for one in admission.candidates(EXAMINED_MAX):
        refusal = admission.refusal(one)
        resource = refusal[0] if refusal is not None else PARALLELISM if not admission.free(PARALLELISM) else None
        if resource is not None:
            waiting.setdefault(resource, []).append(one)
    found = sorted(waiting.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:SHOWN_MAX]
    return [
        {
            "rule": _rule(resource, admission.capacity(resource)),
            "owner": _owner(scheduler, resource),
            "capacity": _shown_capacity(admission.capacity(resource)),
            "used": admission.used(resource),
            "waiting": len(candidates),
            "first": [_instance(scheduler, one.run, one.slot) for one in nsmallest(FIRST_MAX, candidates)],
        }
        for resource, candidates in found
    ]


_RULES = {
    "parallelism": "parallelism",
    "executor": "parallelism",
    "pool": "pool",
    "run": "max_active_tasks",
    "dag_tasks": "max_active_tasks_all_runs",
    "run_task": "max_active_tis_per_dagrun",
}


def _rule(resource: Resource, capacity: int | None) -> str:
    """The rule of `why` that names this limit."""
    kind = resource[0].partition(":")[0]
    if kind == "dag" or (kind == "run" and capacity == 0):
        return "paused"
    return _RULES.get(kind, "max_active_tis_per_dag")


def _owner(scheduler: Scheduler, resource: Resource) -> str:
    """The pool, DAG or run that has the limit."""
    owner = resource[1]
    if isinstance(owner, int):
        active_run = scheduler.active_runs_by_id.get(owner)
        return "" if active_run is None else f"{active_run.row.dag_id} {active_run.row.run_id}"
    return owner


def _shown_capacity(capacity: int | None) -> int | None:
    return None if capacity is None or capacity >= UNLIMITED else capacity


def _since(scheduler: Scheduler, run: int, slot: int) -> int:
    active_run = scheduler.active_runs_by_id.get(run)
    return UNLIMITED if active_run is None else active_run.machine.queued_at[slot]


def _instance(scheduler: Scheduler, run: int, slot: int) -> Answer:
    """One task instance. For a quarantined run, only the ids are known."""
    active_run = scheduler.active_runs_by_id.get(run)
    if active_run is None:
        row = scheduler.store.run(run)
        dag_id, run_id = ("", "") if row is None else (row.dag_id, row.run_id)
        return {"dag_id": dag_id, "run_id": run_id, "task_id": None, "map_index": -1, "state": None, "since": None}
    task_id, index = active_run.where(slot)
    machine = active_run.machine
    state = machine.task_state(slot)
    return {
        "dag_id": active_run.row.dag_id,
        "run_id": active_run.row.run_id,
        "task_id": task_id,
        "map_index": index,
        "state": state.shown,
        "since": iso(machine.queued_at[slot] or None),
        "started_at": iso(machine.started_at[slot] or None) if state is TaskState.RUNNING else None,
        "try_number": machine.tries[slot],
    }
