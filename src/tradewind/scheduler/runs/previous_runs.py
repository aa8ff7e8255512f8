"""Which run is the previous one of each run, for tasks with depends_on_past or wait_for_downstream.

The tracker knows the previous run of every running run with such tasks. When a task instance of the previous run ends, or a
person changes it, only the runs that depend on it get an event, and only for tasks whose verdict changed. The runs of each DAG
are kept ordered by date, so that a new or deleted run costs a search and an update of the runs that depend on it, even if many
others are running.

Each run is written under its own guard, so one of two runs may be written and the other not. Therefore a run that changes because
of changes of its previous run in memory is written only if that run is written, too (`RunWrite.after`). A verdict that blocks a
task counts at once, before the event is applied.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from tradewind.kernel import events as e
from tradewind.kernel.rules.past import PastVerdict, PreviousRun, judge
from tradewind.kernel.topology import Topology
from tradewind.model.phrases import Phrase
from tradewind.model.rows import RemovedRun, RunRow
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.store.port import RowReader

Push = Callable[[int, e.Event], None]
ActiveRuns = Mapping[int, ActiveRun]


_Key = TypeVar("_Key", int, str)

_LAST = 2**62
"""Greater than every run number."""


class _PreviousRun(NamedTuple):
    """The previous run of a run."""

    run: int
    run_id: str
    logical_date: int | None


class PreviousRunTracker:
    """See the module. `push` arguments add an event of a run to the scheduler's inbox."""

    def __init__(self, store: RowReader) -> None:
        self._store = store
        self._previous: dict[int, _PreviousRun | None] = {}
        """Run → its previous run."""
        self._successors: dict[int, set[int]] = {}
        """Run → the running runs whose previous run it is."""
        self._by_date: dict[str, list[tuple[int, int]]] = {}
        """DAG → (logical date, run) of its running runs that depend on previous runs, ordered."""
        self._needs_older_runs: dict[str, set[int]] = {}
        """DAG → running runs with a task that the previous run does not have: older runs count for them, too."""
        self._verdicts: dict[int, dict[int, tuple[bool, Phrase]]] = {}
        """Run → task → the last verdict: (allowed, why)."""

    def clear(self) -> None:
        self._previous.clear()
        self._successors.clear()
        self._by_date.clear()
        self._needs_older_runs.clear()
        self._verdicts.clear()

    def adopt(self, active_run: ActiveRun, active_runs_by_id: ActiveRuns, push: Push) -> None:
        """Add a run that starts or was rebuilt: compute its verdicts, and those of later runs whose previous run it has become."""
        if not active_run.topology.has_past:
            return
        row = active_run.row
        self._verdicts.pop(row.id, None)
        if row.logical_date is not None and not self._is_listed(row):
            insort(self._by_date.setdefault(row.dag_id, []), (row.logical_date, row.id))
        self._find_previous(active_run)
        self._update(active_run, active_runs_by_id, push, active_run.topology.past_tasks)
        self._update_later_runs(active_run.row, active_runs_by_id, push)

    def add_queued(self, row: RunRow, active_runs_by_id: ActiveRuns, push: Push) -> None:
        """Handle a new queued run: it is the previous run of later ones, although it has not started."""
        if row.logical_date is not None:
            self._update_later_runs(row, active_runs_by_id, push)

    def _update_later_runs(self, row: RunRow, active_runs_by_id: ActiveRuns, push: Push) -> None:
        if row.logical_date is None:
            return
        listed = self._by_date.get(row.dag_id, [])
        needs_older = self._needs_older_runs.get(row.dag_id, ())
        for at in range(bisect_right(listed, (row.logical_date, _LAST)), len(listed)):
            run = listed[at][1]
            before, other = self._previous.get(run), active_runs_by_id.get(run)
            is_nearer = before is not None and before.logical_date is not None and before.logical_date > row.logical_date
            if other is not None and (not is_nearer or run in needs_older):
                self._find_previous(other)
                self._update(other, active_runs_by_id, push, other.topology.past_tasks)

    def _is_listed(self, row: RunRow) -> bool:
        """Return whether the run is in the list of its DAG."""
        listed, key = self._by_date.get(row.dag_id, []), (row.logical_date or 0, row.id)
        at = bisect_left(listed, key)
        return at < len(listed) and listed[at] == key

    def finished(self, active_run: ActiveRun, slot: int, active_runs_by_id: ActiveRuns, push: Push) -> None:
        """Handle a task instance that finished, or is not finished any more: update the runs that depend on its run."""
        for run in self._successors.get(active_run.row.id, ()):
            successor = active_runs_by_id.get(run)
            if successor is not None:
                self._update(successor, active_runs_by_id, push, _affected_tasks(successor, active_run.where(slot)[0]))

    def is_current(self, run: int, news: e.PastChanged) -> bool:
        """Return whether an event in the inbox is still the last verdict."""
        return self._verdicts.get(run, {}).get(news.task) == (news.allowed, news.why)

    def run_before(self, row: RunRow, topology: Topology) -> RunRow | None:
        """Return the previous run of a run, as committed."""
        if row.logical_date is None:
            return None
        return self._store.previous_run(row.dag_id, row.logical_date, scheduled_only=topology.definition.catchup)

    def depending_runs(self, dag_id: str) -> list[int]:
        """Return the running runs of a DAG that depend on previous runs, ordered by logical date."""
        return [run for _, run in self._by_date.get(dag_id, ())]

    def before(self, run: int) -> int | None:
        """Return the number of a running run's previous run."""
        found = self._previous.get(run)
        return None if found is None else found.run

    def run_edited(self, run: int, active_runs_by_id: ActiveRuns, push: Push) -> None:
        """Handle a run that a person changed: update all verdicts of the runs whose previous run it is."""
        for number in self._successors.get(run, ()):
            successor = active_runs_by_id.get(number)
            if successor is not None:
                self._update(successor, active_runs_by_id, push, successor.topology.past_tasks)

    def forget(self, row: RunRow) -> None:
        """Remove a run that is not running any more. It may still be the previous run of others."""
        before = self._previous.pop(row.id, None)
        if before is not None:
            _remove(self._successors, before.run, row.id)
        _remove(self._needs_older_runs, row.dag_id, row.id)
        self._verdicts.pop(row.id, None)
        if row.logical_date is not None and self._is_listed(row):
            listed = self._by_date[row.dag_id]
            del listed[bisect_left(listed, (row.logical_date, row.id))]
            if not listed:
                del self._by_date[row.dag_id]

    def runs_after(self, removed: Iterable[RemovedRun]) -> set[int]:
        """Return the running runs whose previous run may be another one after these runs were deleted."""
        found: set[int] = set()
        for one in removed:
            found |= self._successors.get(one.id, set()) | self._needs_older_runs.get(one.dag_id, set())
        return found

    def compare_with_store(self, active_run: ActiveRun, active_runs_by_id: ActiveRuns, push: Push) -> None:
        """Look up the previous run again, which may have been deleted, and update all verdicts."""
        self._find_previous(active_run)
        self._update(active_run, active_runs_by_id, push, active_run.topology.past_tasks)

    def _find_previous(self, active_run: ActiveRun) -> None:
        row = active_run.row
        before = self._previous.get(row.id)
        if before is not None:
            _remove(self._successors, before.run, row.id)
        _remove(self._needs_older_runs, row.dag_id, row.id)  # `verdicts` adds it again where it needs older runs
        found = self.run_before(row, active_run.topology)
        self._previous[row.id] = None if found is None else _PreviousRun(found.id, found.run_id, found.logical_date)
        if found is not None:
            self._successors.setdefault(found.id, set()).add(row.id)

    def _update(self, active_run: ActiveRun, active_runs_by_id: ActiveRuns, push: Push, slots: Collection[int]) -> None:
        if not slots:
            return
        run = active_run.row.id
        known = self._verdicts.setdefault(run, {})
        for slot, verdict in self.verdicts(active_run, active_runs_by_id, slots):
            if known.get(slot) == verdict:
                continue
            known[slot] = (verdict.allowed, verdict.why)
            if not verdict.allowed:
                active_run.machine.block_by_past(slot)
            push(run, e.PastChanged(slot, verdict.allowed, 0, verdict.why))

    def verdicts(
        self, active_run: ActiveRun, active_runs_by_id: ActiveRuns, slots: Collection[int]
    ) -> Iterator[tuple[int, PastVerdict]]:
        """Yield (task, verdict) for these tasks, from the previous run in memory, otherwise from the store."""
        topology, row = active_run.topology, active_run.row
        names = {topology.ids[slot] for slot in slots}
        names |= {topology.ids[child] for slot in slots for child in topology.downstream(slot)}
        previous = self._states(row.id, names, active_runs_by_id)
        for slot in slots:
            task = topology.tasks[slot]
            ever_ran = True
            if previous is not None and not previous.states.get(task.task_id) and row.logical_date is not None:
                self._needs_older_runs.setdefault(row.dag_id, set()).add(row.id)
                ever_ran = self._store.task_ever_ran(row.dag_id, task.task_id, row.logical_date)
            downstream = [topology.ids[child] for child in topology.downstream(slot)]
            yield slot, judge(task, downstream, previous, ever_ran=ever_ran)

    def _states(self, run: int, names: set[str], active_runs_by_id: ActiveRuns) -> PreviousRun | None:
        before = self._previous.get(run)
        if before is None:
            return None
        live = active_runs_by_id.get(before.run)
        if live is None:
            return PreviousRun(before.run_id, self._store.states_of(before.run, names))
        index, state, instances = live.topology.index, live.machine.state, live.machine.instances
        states = {name: [state[one] for one in instances.slots(index[name])] for name in names if name in index}
        return PreviousRun(before.run_id, states)


def _affected_tasks(active_run: ActiveRun, task_id: str) -> list[int]:
    """Return the tasks of a run whose verdict depends on this task of the previous run."""
    topology = active_run.topology
    slot = topology.index.get(task_id)
    if slot is None:
        return []
    return sorted(topology.looks_back.intersection((slot, *topology.upstream(slot))))


def _remove(index: dict[_Key, set[int]], key: _Key, run: int) -> None:
    """Remove one entry, and also the key if it has no entries left."""
    found = index.get(key)
    if found is not None:
        found.discard(run)
        if not found:
            del index[key]
