"""What people ask of the scheduler's memory and nothing is changed by: why something is not running, and what comes next.

The live scheduler answers from what it knows; without one the command line asks the same functions of the store alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradewind.scheduler.commands.arguments import check_arguments
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.explain import upcoming
from tradewind.scheduler.explain.why import why, why_no_run, why_run_of
from tradewind.scheduler.waits.listing import list_waits
from tradewind.store.port import Store

Args = Mapping[str, Any]
Answer = dict[str, Any]


def _why(store: Store, scheduler: Scheduler | None, args: Args, now: int) -> Answer:
    """dag_id, task_id, run_id?, map_index?"""
    return why(store, scheduler, args["dag_id"], args["task_id"], args.get("run_id"), args.get("map_index"))


def _why_dag(store: Store, scheduler: Scheduler | None, args: Args, now: int) -> Answer:
    """dag_id, run_id? or logical_date? (microseconds); neither: the next run."""
    if args.get("run_id") is not None:
        return why_run_of(store, scheduler, args["dag_id"], args["run_id"])
    return why_no_run(store, scheduler, args["dag_id"], args.get("logical_date"), now)


def _upcoming(store: Store, scheduler: Scheduler | None, args: Args, now: int) -> Answer:
    """count?, dag_ids?, timezone?"""
    return upcoming.answer(store, scheduler, now, args.get("count", 20), args.get("dag_ids") or (), args.get("timezone"))


def _waits(store: Store, scheduler: Scheduler | None, args: Args, now: int) -> Answer:
    """dag_id?, impossible?, limit?, offset?"""
    dag_id = args.get("dag_id")
    if dag_id is not None:
        store.need_dag(dag_id)
    limit, offset = args.get("limit", 100), args.get("offset", 0)
    return {
        "waits": list_waits(
            store, now, dag_id=dag_id, limit=limit, offset=offset, impossible_only=args.get("impossible", False)
        )
    }


QUESTIONS: dict[str, Callable[[Store, Scheduler | None, Args, int], Answer]] = {
    "why": _why,
    "why_dag": _why_dag,
    "upcoming": _upcoming,
    "waits": _waits,
}
"""By the name of the command."""


def ask(name: str, store: Store, scheduler: Scheduler | None, args: Args, now: int) -> Answer:
    """The answer to one question.

    Raises:
        NotFound: what it asks about does not exist, with the nearest name.
        WrongArgument: an argument is missing or wrong.
    """
    check_arguments(name, args)
    return QUESTIONS[name](store, scheduler, args, now)
