"""Items of the outbox and missed deadlines, as the command line, the API and `why` show them."""

from __future__ import annotations

import msgspec

from tradewind.kernel import deadlines
from tradewind.model.moments import iso
from tradewind.model.phrases import Phrase, phrase
from tradewind.model.rows import DeadlineMiss, OutboxItem
from tradewind.store.views import Moment, Shape
from tradewind.wire.messages import Workload, decode_workload


class CallbackView(Shape, frozen=True, kw_only=True):
    """One callback or mail that is not done yet. Moments are ISO 8601."""

    id: int
    what: str
    """The argument of the DAG or task that holds the callback, or `email`."""
    place: int
    """Its index in that argument, from 0."""
    dag_id: str
    run_id: str
    task_id: str | None
    """None: the callback belongs to the run."""
    map_index: int
    tries: int
    parked: bool
    """The callback failed in all its tries, and waits until a person retries or drops it."""
    problem: str | None
    """Reason of the last failed try."""
    created_at: Moment
    due_at: Moment
    log: str
    """The path of its log in the log folder."""


def shown(item: OutboxItem) -> CallbackView:
    """Return the view of an item of the outbox. If its content cannot be read, the view has only its identity."""
    try:
        work: Workload = decode_workload(item.payload)
    except msgspec.MsgspecError:
        work = Workload(item.run or 0, item.slot, 0, "", item.identity, "")
    call = work.call
    of_task = call is not None and not call.of_run
    return CallbackView(
        id=item.id,
        what=call.argument if call is not None else item.kind,
        place=call.index if call is not None else 0,
        dag_id=work.dag_id,
        run_id=work.run_id,
        task_id=work.task_id if of_task else None,
        map_index=work.map_index if of_task else -1,
        tries=item.tries,
        parked=item.parked is not None,
        problem=item.problem,
        created_at=iso(item.created_at) or "",
        due_at=iso(item.due_at) or "",
        log=work.log,
    )


class MissView(Shape, frozen=True, kw_only=True):
    """One missed deadline. Moments are ISO 8601."""

    dag_id: str
    run_id: str
    task_id: str | None
    """None: the deadline of the run itself."""
    name: str
    """The name that its author gave it; otherwise, for the sla of a task, `sla of 60 s`."""
    due_at: Moment
    noticed_at: Moment


def miss_shown(miss: DeadlineMiss) -> MissView:
    kind, number = deadlines.read_name(miss.name)
    usual = f"sla of {number / 1e6:g} s" if kind == deadlines.SLA else f"deadline {number + 1}"
    return MissView(
        dag_id=miss.dag_id,
        run_id=miss.run_id,
        task_id=miss.task_id,
        name=miss.label or usual,
        due_at=iso(miss.due_at) or "",
        noticed_at=iso(miss.noticed_at) or "",
    )


def failure(view: CallbackView) -> Phrase:
    """Return a sentence about a failed callback, for `why`."""
    times, problem = _times(view.tries), str(view.problem).rstrip(".")  # the sentence has its own full stop
    if view.parked:
        return phrase("callback_parked", callback=view.what, times=times, problem=problem, number=str(view.id))
    return phrase("callback_again", callback=view.what, times=times, problem=problem, number=str(view.id))


def _times(tries: int) -> Phrase:
    if tries == 0:
        return phrase("times_before")
    return phrase("times_once") if tries == 1 else phrase("times", count=tries)
