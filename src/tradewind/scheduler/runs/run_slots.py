"""Which queued run of a DAG begins next, and which running one gives its place back.

Runs begin in the order in which they are due, as far as max_active_runs lets them; runs of backfills have places of their own.
Where tasks look back at the previous run, two things come on top, or a DAG with few places would wait for itself for ever:

- a run does not begin before the run that it looks back at, when that one is queued and could begin, too;
- a running run of which nothing is under way, because it waits for a run that is queued, gives its place back when another run
  could use it. It is queued again, and its next turn comes by the first rule.

It may wait through others: for a running run of which nothing is under way either, because the one before that is queued.

A place is free when that is committed, and not before: then the next run is chosen like any other.
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
        topology: of a version; raises NotFound when it has given way to another one.
        boxes: the running runs.
    """

    def __init__(
        self, past: PreviousRunTracker, topology: Callable[[int], Topology], active_runs_by_id: Mapping[int, ActiveRun]
    ) -> None:
        self._past = past
        self._topology = topology
        self._active_runs = active_runs_by_id

    def next_run(self, entry: DagEntry, now: int) -> RunRow | None:
        """The queued run that begins now; None when there is none, or no place for it."""
        for of_backfill in (True, False):
            row = None if entry.is_full(of_backfill) else self._first(entry, of_backfill, now)
            if row is not None:
                return row
        return None

    def run_to_requeue(self, entry: DagEntry, now: int) -> ActiveRun | None:
        """The running run that gives its place back now. One at a time: who takes it may be what others wait for."""
        for of_backfill in (False, True):
            own = self._running(entry, of_backfill) if entry.is_full(of_backfill) else []
            if any(active_run.state is RunState.QUEUED for active_run in own):
                continue  # one does so in the batch under way
            idle = [
                active_run
                for active_run in own
                if self._is_idle(active_run, now) and self._waits_for(entry, active_run.row.id, now) is not None
            ]
            if idle and self._first(entry, of_backfill, now) is not None:
                return max(idle, key=lambda active_run: (active_run.row.logical_date or 0, active_run.row.id))
        return None

    def requeue_moment(self, entry: DagEntry, now: int) -> int | None:
        """The moment at which a run may give its place back, because a queued run that it waits for is due then."""
        kinds = [kind for kind in (False, True) if entry.is_full(kind)]
        idle = [
            active_run.row.id for kind in kinds for active_run in self._running(entry, kind) if self._is_idle(active_run, now)
        ]
        ends = (self._before(entry, deque((run, *self._way(entry, run, now)), maxlen=1)[0]) for run in idle)
        moments = (entry.waiting[end].run_after for end in ends if end in entry.waiting)
        return min((moment for moment in moments if moment > now), default=None)

    def _running(self, entry: DagEntry, of_backfill: bool) -> list[ActiveRun]:
        """The running runs of a kind that look back: no other ones give way."""
        looking_back = self._past.looking_back(entry.plan.dag_id)
        active_runs_by_id = (active_run for run in looking_back if (active_run := self._active_runs.get(run)) is not None)
        return [active_run for active_run in active_runs_by_id if _is_of_backfill(active_run.row) == of_backfill]

    # --- what people ask ----------------------------------------------------------------------------------------------------

    def must_start_before(self, entry: DagEntry, row: RunRow, now: int) -> RunRow | None:
        """The queued run that this queued one looks back at, itself or through others, and that begins before it."""
        return next(self._queued_before(entry, row.id, now), None) if self._may_wait(entry, row) else None

    def waits_for_run(self, entry: DagEntry, row: RunRow, now: int) -> RunRow | None:
        """The queued run before whose beginning no run behind it begins: it is not due yet, or its rows are being written."""
        turn = entry.in_turn(_is_of_backfill(row))
        before = list(takewhile(lambda one: one.id != row.id, turn))
        late = next((one for one in before if one.run_after > now or one.id in entry.wants_rows), None)
        if late is None or not entry.may_start(row.id, now):
            return late
        earlier = takewhile(lambda one: one is not late, before)  # one of these may need it first
        needed = any(first.id == row.id for one in earlier for first in self._queued_before(entry, one.id, now))
        return None if needed else late

    def ahead_of(self, entry: DagEntry, row: RunRow, now: int) -> list[RunRow]:
        """The queued runs that begin before this queued one as things stand now, the first one first."""
        of_backfill, found = _is_of_backfill(row), dict[int, RunRow]()
        for one in entry.in_turn(of_backfill):
            chain = self._queued_before(entry, one.id, now) if self._may_wait(entry, one) else iter(())
            turn = [one, *takewhile(lambda earlier: earlier.id not in found, chain)]
            for each in reversed(turn):
                if each.id == row.id:
                    return list(found.values())
                if one.id != row.id and _is_of_backfill(each) != of_backfill:
                    break  # its turn comes when a run of the other kind has begun
                found[each.id] = each
        return list(found.values())

    # --- the rules ----------------------------------------------------------------------------------------------------------

    def _first(self, entry: DagEntry, of_backfill: bool, now: int) -> RunRow | None:
        """The queued run of a kind that begins when there is a place."""
        if not entry.open or (of_backfill and entry.backfill_paused):
            return None
        for row in entry.in_turn(of_backfill):
            if row.run_after > now or row.id in entry.wants_rows:
                return None
            earlier = self._waits_for(entry, row.id, now) if self._may_wait(entry, row) else None
            found = row if earlier is None else earlier
            if _is_of_backfill(found) == of_backfill:
                return found
        return None

    def _may_wait(self, entry: DagEntry, row: RunRow) -> bool:
        """Is there a queued run of an earlier date at all?"""
        earliest = entry.earliest()
        return earliest is not None and row.logical_date is not None and earliest < row.logical_date

    def _waits_for(self, entry: DagEntry, run: int, now: int) -> RunRow | None:
        """The earliest queued run that this one waits for."""
        found: RunRow | None = None
        for found in self._queued_before(entry, run, now):  # noqa: B007
            pass
        return found

    def _queued_before(self, entry: DagEntry, run: int, now: int) -> Iterator[RunRow]:
        """The queued runs on this one's way."""
        return (entry.waiting[one] for one in self._way(entry, run, now) if one in entry.waiting)

    def _way(self, entry: DagEntry, run: int, now: int) -> Iterator[int]:
        """The run that this one waits for, then the one which that waits for, and so on: dates only ever fall.

        Queued ones that could begin, and running ones that wait themselves. It ends before one that goes on by itself, or cannot
        begin yet.
        """
        before = self._before(entry, run)
        while before is not None:
            active_run = self._active_runs.get(before)
            if not entry.may_start(before, now) and (active_run is None or not self._is_idle(active_run, now)):
                return
            yield before
            before = self._before(entry, before)

    def _before(self, entry: DagEntry, run: int) -> int | None:
        """The run that a running or queued one looks back at."""
        if run in self._active_runs:
            return self._past.before(run)
        row = entry.waiting[run]
        try:
            topology = self._topology(row.version)
        except NotFound:
            return None  # its start tells what is wrong
        before = self._past.run_before(row, topology) if topology.has_past else None
        return None if before is None else before.id

    def _is_idle(self, active_run: ActiveRun, now: int) -> bool:
        """Is nothing of it under way, so that only the run before it can wake it?"""
        if active_run.row.state is not RunState.RUNNING or not active_run.waits_for_the_past(now):
            return False
        held = [slot for slot in active_run.topology.past_tasks if not active_run.machine.past_allowed.get(slot)]
        news = any(verdict.allowed for _, verdict in self._past.verdicts(active_run, self._active_runs, held))
        return not news  # else it is on its way


def _is_of_backfill(row: RunRow) -> bool:
    return row.run_type is RunType.BACKFILL
