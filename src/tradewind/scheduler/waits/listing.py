"""The list of open waits: whose, since when, for what, until when, and which can never end. Uses only the store."""

from __future__ import annotations

from tradewind.model.moments import iso
from tradewind.model.rows import OpenWaitRow
from tradewind.model.waits import NEVER_BY_ITSELF, MomentWait, tasks_waits
from tradewind.scheduler.waits.impossible_waits import why_impossible
from tradewind.scheduler.waits.messages import describe, kind_of
from tradewind.store.port import RowReader
from tradewind.wire.explanations import ImpossibleWaitView, OpenWaitView

LISTED_MAX = 200
"""Number of the longest waits that are examined if only impossible ones are wanted."""


def list_waits(
    store: RowReader, now: int, *, dag_id: str | None = None, limit: int = 100, offset: int = 0, impossible_only: bool = False
) -> list[OpenWaitView]:
    """Return open waits, the longest first."""
    found = []
    for row in store.open_waits(dag_id=dag_id, at_most=LISTED_MAX if impossible_only else limit + offset):
        shown = _shown(store, row, now)
        if shown is not None and (shown.impossible or not impossible_only):
            found.append(shown)
    return found[offset : offset + limit]


def _shown(store: RowReader, row: OpenWaitRow, now: int) -> OpenWaitView | None:
    run = store.run(row.run)
    if run is None:
        return None
    wait = row.deferral.wait
    blockers = why_impossible(store, run, row.slot, tasks_waits(wait), now)
    return OpenWaitView(
        dag_id=run.dag_id,
        run_id=run.run_id,
        task_id=row.task_id,
        map_index=row.map_index,
        since=iso(row.since) or "",
        kind=kind_of(wait),
        waits_for=describe(wait),
        until=iso(wait.at) if isinstance(wait, MomentWait) and wait.at < NEVER_BY_ITSELF else None,
        timeout_at=iso(row.deferral.timeout_at),
        impossible=[ImpossibleWaitView(one.rule, one.sentence, one.ends_with or None, one.command) for one in blockers],
    )
