"""Tells runs what their predecessors say: the cross-run half of depends_on_past and wait_for_downstream.

For every running run with such tasks it knows the previous run. When a task instance there ends, or a person changes it, only
the runs that look back at it are told, and only what changed for them. The runs of each DAG are kept in the order of their dates,
so a run that appears or is deleted costs a search and the runs that it concerns, however many others are running.

Two runs are two guards: the one may be written and the other not. So a run that goes on because of what another one has in memory
is written only if that one is (`RunWrite.after`); and bad news counts at once, before anything else is decided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from tradewind.kernel import events as e
from tradewind.kernel.rules.past import PastVerdict, PreviousRun, judge
from tradewind.kernel.topology import Topology
from tradewind.model.rows import RemovedRun, RunRow
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.store.port import Store

Push = Callable[[int, e.Event], None]
Boxes = Mapping[int, ActiveRun]


_Key = TypeVar("_Key", int, str)

_LAST = 2**62
"""Behind every number of a run."""


class _Before(NamedTuple):
    """The run before another one."""

    run: int
    run_id: str
    logical_date: int | None


class PreviousRunTracker:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._previous: dict[int, _Before | None] = {}
        """Run → the run before it."""
        self._successors: dict[int, set[int]] = {}
        """Run → the running runs that look back at it."""
        self._by_date: dict[str, list[tuple[int, int]]] = {}
        """DAG → (logical date, run) of its running runs with such tasks, in order."""
        self._whole_past: dict[str, set[int]] = {}
        """DAG → running runs with a task that the previous run does not have: older runs than that one count for them, too."""
        self._told: dict[int, dict[int, tuple[bool, str]]] = {}
        """Run → task → the last verdict."""

    def clear(self) -> None:
        self._previous.clear()
        self._successors.clear()
        self._by_date.clear()
        self._whole_past.clear()
        self._told.clear()

    def adopt(self, active_run: ActiveRun, active_runs_by_id: Boxes, push: Push) -> None:
        """A run begins, or is built anew: say what its past means, and correct the runs for which it is the past."""
        if not active_run.topology.has_past:
            return
        row = active_run.row
        self._told.pop(row.id, None)
        if row.logical_date is not None and not self._is_listed(row):
            insort(self._by_date.setdefault(row.dag_id, []), (row.logical_date, row.id))
        self._look_back(active_run)
        self._tell(active_run, active_runs_by_id, push, active_run.topology.past_tasks)
        self._correct_later(active_run.row, active_runs_by_id, push)

    def appeared(self, row: RunRow, active_runs_by_id: Boxes, push: Push) -> None:
        """A run waits that was not there before: it is the past of those with a later date, though it has not begun."""
        if row.logical_date is not None:
            self._correct_later(row, active_runs_by_id, push)

    def _correct_later(self, row: RunRow, active_runs_by_id: Boxes, push: Push) -> None:
        if row.logical_date is None:
            return
        listed = self._by_date.get(row.dag_id, [])
        whole = self._whole_past.get(row.dag_id, ())
        for at in range(bisect_right(listed, (row.logical_date, _LAST)), len(listed)):
            run = listed[at][1]
            before, other = self._previous.get(run), active_runs_by_id.get(run)
            nearer = before is not None and before.logical_date is not None and before.logical_date > row.logical_date
            if other is not None and (not nearer or run in whole):
                self._look_back(other)
                self._tell(other, active_runs_by_id, push, other.topology.past_tasks)

    def _is_listed(self, row: RunRow) -> bool:
        """Is it among the running runs of its DAG?"""
        listed, key = self._by_date.get(row.dag_id, []), (row.logical_date or 0, row.id)
        at = bisect_left(listed, key)
        return at < len(listed) and listed[at] == key

    def finished(self, active_run: ActiveRun, slot: int, active_runs_by_id: Boxes, push: Push) -> None:
        """A task instance ended (or was taken back): tell the runs that look back at it."""
        for run in self._successors.get(active_run.row.id, ()):
            successor = active_runs_by_id.get(run)
            if successor is not None:
                self._tell(successor, active_runs_by_id, push, _concerned(successor, active_run.where(slot)[0]))

    def stands(self, run: int, news: e.PastChanged) -> bool:
        """Is this still what is known? Something else may have been said since."""
        return self._told.get(run, {}).get(news.task) == (news.allowed, news.why)

    def run_before(self, row: RunRow, topology: Topology) -> RunRow | None:
        """The run that this one looks back at, as committed."""
        if row.logical_date is None:
            return None
        return self._store.previous_run(row.dag_id, row.logical_date, scheduled_only=topology.definition.catchup)

    def looking_back(self, dag_id: str) -> list[int]:
        """Running runs of a DAG that may have a run before them which matters, by logical date."""
        return [run for _, run in self._by_date.get(dag_id, ())]

    def before(self, run: int) -> int | None:
        """Number of the run that a running run looks back at."""
        found = self._previous.get(run)
        return None if found is None else found.run

    def edited(self, run: int, active_runs_by_id: Boxes, push: Push) -> None:
        """A person changed a run: whoever looks back at it is told anew."""
        for number in self._successors.get(run, ()):
            successor = active_runs_by_id.get(number)
            if successor is not None:
                self._tell(successor, active_runs_by_id, push, successor.topology.past_tasks)

    def forget(self, row: RunRow) -> None:
        """The run is not running any more. Those that look back at it still do."""
        before = self._previous.pop(row.id, None)
        if before is not None:
            _remove(self._successors, before.run, row.id)
        _remove(self._whole_past, row.dag_id, row.id)
        self._told.pop(row.id, None)
        if row.logical_date is not None and self._is_listed(row):
            listed = self._by_date[row.dag_id]
            del listed[bisect_left(listed, (row.logical_date, row.id))]
            if not listed:
                del self._by_date[row.dag_id]

    def concerned_by(self, removed: Iterable[RemovedRun]) -> set[int]:
        """Running runs whose past may be another one now that these runs were deleted."""
        found: set[int] = set()
        for one in removed:
            found |= self._successors.get(one.id, set()) | self._whole_past.get(one.dag_id, set())
        return found

    def compare_with_store(self, active_run: ActiveRun, active_runs_by_id: Boxes, push: Push) -> None:
        """The run that this one looks back at may have been deleted."""
        self._look_back(active_run)
        self._tell(active_run, active_runs_by_id, push, active_run.topology.past_tasks)

    def _look_back(self, active_run: ActiveRun) -> None:
        row = active_run.row
        before = self._previous.get(row.id)
        if before is not None:
            _remove(self._successors, before.run, row.id)
        _remove(self._whole_past, row.dag_id, row.id)  # the verdicts that follow say whether it is one of them
        found = self.run_before(row, active_run.topology)
        self._previous[row.id] = None if found is None else _Before(found.id, found.run_id, found.logical_date)
        if found is not None:
            self._successors.setdefault(found.id, set()).add(row.id)

    def _tell(self, active_run: ActiveRun, active_runs_by_id: Boxes, push: Push, slots: Collection[int]) -> None:
        if not slots:
            return
        run = active_run.row.id
        told = self._told.setdefault(run, {})
        for slot, verdict in self.verdicts(active_run, active_runs_by_id, slots):
            if told.get(slot) == verdict:
                continue
            told[slot] = (verdict.allowed, verdict.why)
            if not verdict.allowed:
                active_run.machine.block_by_past(slot)
            push(run, e.PastChanged(slot, verdict.allowed, 0, verdict.why))

    def verdicts(
        self, active_run: ActiveRun, active_runs_by_id: Boxes, slots: Collection[int]
    ) -> Iterator[tuple[int, PastVerdict]]:
        """What the previous run says now about these tasks."""
        topology, row = active_run.topology, active_run.row
        names = {topology.ids[slot] for slot in slots}
        names |= {topology.ids[child] for slot in slots for child in topology.downstream(slot)}
        previous = self._states(row.id, names, active_runs_by_id)
        for slot in slots:
            task = topology.tasks[slot]
            ever = True
            if previous is not None and not previous.states.get(task.task_id) and row.logical_date is not None:
                self._whole_past.setdefault(row.dag_id, set()).add(row.id)
                ever = self._store.task_ever_ran(row.dag_id, task.task_id, row.logical_date)
            below = [topology.ids[child] for child in topology.downstream(slot)]
            yield slot, judge(task, below, previous, ever_ran=ever)

    def _states(self, run: int, names: set[str], active_runs_by_id: Boxes) -> PreviousRun | None:
        before = self._previous.get(run)
        if before is None:
            return None
        live = active_runs_by_id.get(before.run)
        if live is None:
            return PreviousRun(before.run_id, self._store.states_of(before.run, names))
        index, state, instances = live.topology.index, live.machine.state, live.machine.instances
        states = {name: [state[one] for one in instances.slots(index[name])] for name in names if name in index}
        return PreviousRun(before.run_id, states)


def _concerned(active_run: ActiveRun, task_id: str) -> list[int]:
    """Tasks of `box` for which this task of the previous run matters."""
    topology = active_run.topology
    slot = topology.index.get(task_id)
    if slot is None:
        return []
    return sorted(topology.looks_back.intersection((slot, *topology.upstream(slot))))


def _remove(index: dict[_Key, set[int]], key: _Key, run: int) -> None:
    """One entry; a key without entries goes."""
    found = index.get(key)
    if found is not None:
        found.discard(run)
        if not found:
            del index[key]
