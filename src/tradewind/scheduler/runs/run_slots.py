"""Which queued run of a DAG starts next, and which running run is queued again.

A *run slot* is one of the `max_active_runs` runs of a DAG that may run at the same time. Runs start in the order in which they
are due, as run slots become free; runs of backfills have their own run slots. If tasks depend on the previous run
(depends_on_past, wait_for_downstream), two more rules apply; without them a DAG with few run slots would wait for itself for
ever:

- a run does not start before its previous run, if that one is queued and could start, too;
- a running run is *idle* if nothing in it can continue before its previous run does. An idle run that waits for a queued run is
  queued again when another run can use its slot. It starts again by the first rule.

A run may wait indirectly: its previous run is running and idle, because the run before that one is queued.

A run slot is free when the change is committed, and not before. Then the next run is chosen as usual.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile

from tradewind.kernel.topology import Topology
from tradewind.model.errors import NotFound
from tradewind.model.rows import RunRow
from tradewind.model.states import RunState, RunType
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker


class RunSlots:
    """See the module.

    Args:
        topology: returns the graph of a version; raises NotFound if the store does not have the version any more.
        active_runs_by_id: the running runs.
    """

    def __init__(
        self, past: PreviousRunTracker, topology: Callable[[int], Topology], active_runs_by_id: Mapping[int, ActiveRun]
    ) -> None:
        self._past = past
        self._topology = topology
        self._active_runs = active_runs_by_id

    def next_run(self, entry: DagEntry, now: int) -> RunRow | None:
        """Return the queued run that starts now; None: there is no such run, or no run slot is free."""
        for backfill in (True, False):
            row = None if entry.is_kind_full(backfill) else self._next_of_kind(entry, backfill, now)
            if row is not None:
                return row
        return None

    def run_to_requeue(self, entry: DagEntry, now: int) -> ActiveRun | None:
        """Return the running run that is queued again now. One at a time: others may need the run that gets its slot."""
        for backfill in (False, True):
            own = self._running(entry, backfill) if entry.is_kind_full(backfill) else []
            if any(active_run.state is RunState.QUEUED for active_run in own):
                continue  # one is queued again in the pending batch
            idle = [
                active_run
                for active_run in own
                if self._is_idle(active_run, now) and self._earliest_needed(entry, active_run.row.id, now) is not None
            ]
            if idle and self._next_of_kind(entry, backfill, now) is not None:
                return max(idle, key=lambda active_run: (active_run.row.logical_date or 0, active_run.row.id))
        return None

    def requeue_moment(self, entry: DagEntry, now: int) -> int | None:
        """Return the next moment at which a run may be queued again, because a queued run for which it waits is due then."""
        kinds = [kind for kind in (False, True) if entry.is_kind_full(kind)]
        idle = [
            active_run.row.id for kind in kinds for active_run in self._running(entry, kind) if self._is_idle(active_run, now)
        ]
        ends = (self._previous_of(entry, deque((run, *self._chain(entry, run, now)), maxlen=1)[0]) for run in idle)
        moments = (entry.waiting[end].run_after for end in ends if end in entry.waiting)
        return min((moment for moment in moments if moment > now), default=None)

    def _running(self, entry: DagEntry, backfill: bool) -> list[ActiveRun]:
        """Return the running runs of a kind that depend on their previous run: only these can be queued again."""
        depending = self._past.depending_runs(entry.plan.dag_id)
        active_runs = (active_run for run in depending if (active_run := self._active_runs.get(run)) is not None)
        return [active_run for active_run in active_runs if _is_backfill(active_run.row) == backfill]

    # --- questions of `why` ----------------------------------------------------------------------------------------------------

    def must_start_before(self, entry: DagEntry, row: RunRow, now: int) -> RunRow | None:
        """Return the queued run that this queued run depends on, directly or through others, and that starts before it."""
        return next(self._queued_before(entry, row.id, now), None) if self._may_wait(entry, row) else None

    def waits_for_run(self, entry: DagEntry, row: RunRow, now: int) -> RunRow | None:
        """Return a queued run that blocks the runs after it in the queue: it is not due yet, or its rows are being created."""
        turn = entry.start_order(_is_backfill(row))
        before = list(takewhile(lambda one: one.id != row.id, turn))
        late = next((one for one in before if one.run_after > now or one.id in entry.incomplete), None)
        if late is None or not entry.may_start(row.id, now):
            return late
        earlier = takewhile(lambda one: one is not late, before)  # one of these may need it first
        needed = any(first.id == row.id for one in earlier for first in self._queued_before(entry, one.id, now))
        return None if needed else late

    def ahead_of(self, entry: DagEntry, row: RunRow, now: int) -> list[RunRow]:
        """Return the queued runs that would start before this queued run, in order."""
        backfill, found = _is_backfill(row), dict[int, RunRow]()
        for one in entry.start_order(backfill):
            chain = self._queued_before(entry, one.id, now) if self._may_wait(entry, one) else iter(())
            turn = [one, *takewhile(lambda earlier: earlier.id not in found, chain)]
            for each in reversed(turn):
                if each.id == row.id:
                    return list(found.values())
                if one.id != row.id and _is_backfill(each) != backfill:
                    break  # it can start only after a run of the other kind
                found[each.id] = each
        return list(found.values())

    # --- the rules ----------------------------------------------------------------------------------------------------------

    def _next_of_kind(self, entry: DagEntry, backfill: bool, now: int) -> RunRow | None:
        """Return the queued run of a kind that starts when a run slot is free."""
        if not entry.is_open or (backfill and entry.backfill_paused):
            return None
        for row in entry.start_order(backfill):
            if row.run_after > now or row.id in entry.incomplete:
                return None
            earlier = self._earliest_needed(entry, row.id, now) if self._may_wait(entry, row) else None
            found = row if earlier is None else earlier
            if _is_backfill(found) == backfill:
                return found
        return None

    def _may_wait(self, entry: DagEntry, row: RunRow) -> bool:
        """Return whether there is a queued run with an earlier logical date at all."""
        earliest = entry.earliest_date()
        return earliest is not None and row.logical_date is not None and earliest < row.logical_date

    def _earliest_needed(self, entry: DagEntry, run: int, now: int) -> RunRow | None:
        """Return the earliest queued run that this one depends on."""
        found: RunRow | None = None
        for found in self._queued_before(entry, run, now):  # noqa: B007
            pass
        return found

    def _queued_before(self, entry: DagEntry, run: int, now: int) -> Iterator[RunRow]:
        """Yield the queued runs that this one depends on, the nearest first."""
        return (entry.waiting[one] for one in self._chain(entry, run, now) if one in entry.waiting)

    def _chain(self, entry: DagEntry, run: int, now: int) -> Iterator[int]:
        """Yield the previous run, then its previous run, and so on: queued runs that could start and idle running runs.

        The chain ends before a run that continues by itself or cannot start yet. It is finite, because dates only become earlier.
        """
        before = self._previous_of(entry, run)
        while before is not None:
            active_run = self._active_runs.get(before)
            if not entry.may_start(before, now) and (active_run is None or not self._is_idle(active_run, now)):
                return
            yield before
            before = self._previous_of(entry, before)

    def _previous_of(self, entry: DagEntry, run: int) -> int | None:
        """Return the previous run that a running or queued run depends on."""
        if run in self._active_runs:
            return self._past.before(run)
        row = entry.waiting[run]
        try:
            topology = self._topology(row.version)
        except NotFound:
            return None  # the error is reported when the run starts
        before = self._past.run_before(row, topology) if topology.has_past else None
        return None if before is None else before.id

    def _is_idle(self, active_run: ActiveRun, now: int) -> bool:
        """Return whether only its previous run can let the run continue."""
        if active_run.row.state is not RunState.RUNNING or not active_run.waits_for_previous_run(now):
            return False
        held = [slot for slot in active_run.topology.past_tasks if not active_run.machine.past_allowed.get(slot)]
        # if the previous run allows a task now, the event is in the inbox and the run will continue
        return not any(verdict.allowed for _, verdict in self._past.verdicts(active_run, self._active_runs, held))


def _is_backfill(row: RunRow) -> bool:
    return row.run_type is RunType.BACKFILL
