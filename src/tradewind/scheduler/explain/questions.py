"""Commands that change nothing: why something does not run, what starts next, and which waits are open.

A running scheduler answers from its memory. Without a scheduler the command line calls the same functions with the store alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.explain import upcoming
from tradewind.scheduler.explain.activity import activity, pool_activity
from tradewind.scheduler.explain.why import why, why_no_run, why_run_of
from tradewind.scheduler.waits.listing import list_waits
from tradewind.store.port import RowReader
from tradewind.wire import commands as c
from tradewind.wire.explanations import Explanation, OpenWaitList, UpcomingList

R = TypeVar("R")


def _why(store: RowReader, scheduler: Scheduler | None, question: c.Why, now: int) -> Explanation:
    return why(store, scheduler, question.dag_id, question.task_id, question.run_id, question.map_index)


def _why_dag(store: RowReader, scheduler: Scheduler | None, question: c.WhyDag, now: int) -> Explanation:
    if question.run_id is not None:
        return why_run_of(store, scheduler, question.dag_id, question.run_id)
    return why_no_run(store, scheduler, question.dag_id, question.logical_date, now)


def _upcoming(store: RowReader, scheduler: Scheduler | None, question: c.Upcoming, now: int) -> UpcomingList:
    return upcoming.answer(store, scheduler, now, question.count, question.dag_ids, question.timezone)


def _waits(store: RowReader, scheduler: Scheduler | None, question: c.OpenWaits, now: int) -> OpenWaitList:
    if question.dag_id is not None:
        store.need_dag(question.dag_id)
    found = list_waits(
        store,
        now,
        dag_id=question.dag_id,
        limit=question.limit,
        offset=question.offset,
        impossible_only=question.impossible,
    )
    return OpenWaitList(found)


def _activity(store: RowReader, scheduler: Scheduler | None, question: c.Activity, now: int) -> dict[str, Any]:
    return activity(scheduler)


def _pool_activity(store: RowReader, scheduler: Scheduler | None, question: c.PoolActivity, now: int) -> dict[str, Any]:
    return pool_activity(store, scheduler, question.pool)


QUESTIONS: dict[type[c.Command[Any]], Callable[[RowReader, Scheduler | None, Any, int], Any]] = {
    c.Why: _why,
    c.WhyDag: _why_dag,
    c.Upcoming: _upcoming,
    c.OpenWaits: _waits,
    c.Activity: _activity,
    c.PoolActivity: _pool_activity,
}


def ask(question: c.Command[R], store: RowReader, scheduler: Scheduler | None, now: int) -> R:
    """Return the answer to one question, a struct of `wire.explanations`.

    Raises:
        NotFound: the subject does not exist; the message has the nearest name.
    """
    answer: R = QUESTIONS[type(question)](store, scheduler, question, now)
    return answer
