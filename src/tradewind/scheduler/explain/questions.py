"""Commands that change nothing: why something is not running, what starts next, and what waits.

A running scheduler answers from its memory. Without one the command line calls the same functions with the store alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.explain import upcoming
from tradewind.scheduler.explain.why import why, why_no_run, why_run_of
from tradewind.scheduler.waits.listing import list_waits
from tradewind.store.port import RowReader
from tradewind.wire import commands as c

Answer = c.Explanation


def _why(store: RowReader, scheduler: Scheduler | None, question: c.Why, now: int) -> Answer:
    return why(store, scheduler, question.dag_id, question.task_id, question.run_id, question.map_index)


def _why_dag(store: RowReader, scheduler: Scheduler | None, question: c.WhyDag, now: int) -> Answer:
    if question.run_id is not None:
        return why_run_of(store, scheduler, question.dag_id, question.run_id)
    return why_no_run(store, scheduler, question.dag_id, question.logical_date, now)


def _upcoming(store: RowReader, scheduler: Scheduler | None, question: c.Upcoming, now: int) -> Answer:
    return upcoming.answer(store, scheduler, now, question.count, question.dag_ids, question.timezone)


def _waits(store: RowReader, scheduler: Scheduler | None, question: c.OpenWaits, now: int) -> Answer:
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
    return {"waits": found}


QUESTIONS: dict[type[c.Command[Any]], Callable[[RowReader, Scheduler | None, Any, int], Answer]] = {
    c.Why: _why,
    c.WhyDag: _why_dag,
    c.Upcoming: _upcoming,
    c.OpenWaits: _waits,
}


def ask(question: c.Command[c.Explanation], store: RowReader, scheduler: Scheduler | None, now: int) -> Answer:
    """Return the answer to one question.

    Raises:
        NotFound: the subject does not exist; the message has the nearest name.
    """
    return QUESTIONS[type(question)](store, scheduler, question, now)
