"""Tells runs what their predecessors say: the cross-run half of depends_on_past and wait_for_downstream.

For every running run with such tasks it knows the previous run. When a task instance there ends, or a person changes it, only
the runs that look back at it are told, and only what changed for them.

Two runs are two guards: the one may be written and the other not. So a run that goes on because of what another one has in memory
is written only if that one is (`RunWrite.after`); and bad news counts at once, before anything else is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from tradewind.kernel import events as e
from tradewind.kernel.rules.past import PastVerdict, PreviousRun, judge
from tradewind.kernel.topology import Topology
from tradewind.scheduler.run_box import RunBox
from tradewind.store.nouns import RunRow
from tradewind.store.port import Store

Push = Callable[[int, e.Event], None]
Boxes = Mapping[int, RunBox]


class PastWatch:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._previous: dict[int, tuple[int, str] | None] = {}
        """run → (number, run id) of the run before it."""
        self._successors: dict[int, set[int]] = {}
        self._told: dict[tuple[int, int], tuple[bool, str]] = {}

    def clear(self) -> None:
        self._previous.clear()
        self._successors.clear()
        self._told.clear()

    def adopt(self, box: RunBox, boxes: Boxes, push: Push) -> None:
        """A run begins, or is built anew: say what its past means, and correct the runs for which it is the past."""
        if not box.topology.has_past:
            return
        for slot in box.topology.past_tasks:
            self._told.pop((box.row.id, slot), None)
        self._look_back(box)
        self._tell(box, boxes, push, box.topology.past_tasks)
        self._correct_later(box.row, boxes, push)

    def appeared(self, row: RunRow, boxes: Boxes, push: Push) -> None:
        """A run waits that was not there before: it is the past of those with a later date, though it has not begun."""
        if row.logical_date is not None:
            self._correct_later(row, boxes, push)

    def _correct_later(self, row: RunRow, boxes: Boxes, push: Push) -> None:
        for other in boxes.values():
            date = other.row.logical_date
            if (
                other.row.dag_id == row.dag_id
                and other.row.id != row.id
                and other.topology.has_past
                and date is not None
                and row.logical_date is not None
                and date > row.logical_date
            ):
                self._look_back(other)
                self._tell(other, boxes, push, other.topology.past_tasks)

    def finished(self, box: RunBox, slot: int, boxes: Boxes, push: Push) -> None:
        """A task instance ended (or was taken back): tell the runs that look back at it."""
        for run in self._successors.get(box.row.id, ()):
            successor = boxes.get(run)
            if successor is not None:
                self._tell(successor, boxes, push, _concerned(successor, box.where(slot)[0]))

    def stands(self, run: int, news: e.PastChanged) -> bool:
        """Is this still what is known? Something else may have been said since."""
        return self._told.get((run, news.task)) == (news.allowed, news.why)

    def run_before(self, row: RunRow, topology: Topology) -> RunRow | None:
        """The run that this one looks back at, as committed."""
        if row.logical_date is None:
            return None
        return self._store.previous_run(row.dag_id, row.logical_date, scheduled_only=topology.definition.catchup)

    def before(self, run: int) -> int | None:
        """Number of the run that a running run looks back at."""
        found = self._previous.get(run)
        return None if found is None else found[0]

    def edited(self, run: int, boxes: Boxes, push: Push) -> None:
        """A person changed a run: whoever looks back at it is told anew."""
        for number in self._successors.get(run, ()):
            successor = boxes.get(number)
            if successor is not None:
                self._tell(successor, boxes, push, successor.topology.past_tasks)

    def forget(self, run: int) -> None:
        """The run is not running any more. Those that look back at it still do."""
        before = self._previous.pop(run, None)
        if before is not None:
            self._successors.get(before[0], set()).discard(run)
            if not self._successors.get(before[0]):
                self._successors.pop(before[0], None)
        for key in [key for key in self._told if key[0] == run]:
            del self._told[key]

    def look_again(self, boxes: Boxes, push: Push) -> None:
        """Safety net: the run that one looks back at may have been deleted."""
        for box in list(boxes.values()):
            if box.topology.has_past:
                self._look_back(box)
                self._tell(box, boxes, push, box.topology.past_tasks)

    def _look_back(self, box: RunBox) -> None:
        row = box.row
        before = self._previous.get(row.id)
        if before is not None:
            self._successors.get(before[0], set()).discard(row.id)
        found = self.run_before(row, box.topology)
        self._previous[row.id] = None if found is None else (found.id, found.run_id)
        if found is not None:
            self._successors.setdefault(found.id, set()).add(row.id)

    def _tell(self, box: RunBox, boxes: Boxes, push: Push, slots: Collection[int]) -> None:
        if not slots:
            return
        run = box.row.id
        for slot, verdict in self.verdicts(box, boxes, slots):
            if self._told.get((run, slot)) == verdict:
                continue
            self._told[run, slot] = (verdict.allowed, verdict.why)
            if not verdict.allowed:
                box.machine.hold_back(slot)
            push(run, e.PastChanged(slot, verdict.allowed, 0, verdict.why))

    def verdicts(self, box: RunBox, boxes: Boxes, slots: Collection[int]) -> Iterator[tuple[int, PastVerdict]]:
        """What the previous run says now about these tasks."""
        topology, row = box.topology, box.row
        names = {topology.ids[slot] for slot in slots}
        names |= {topology.ids[child] for slot in slots for child in topology.downstream(slot)}
        previous = self._states(row.id, names, boxes)
        for slot in slots:
            task = topology.tasks[slot]
            ever = True
            if previous is not None and not previous.states.get(task.task_id) and row.logical_date is not None:
                ever = self._store.task_ever_ran(row.dag_id, task.task_id, row.logical_date)
            below = [topology.ids[child] for child in topology.downstream(slot)]
            yield slot, judge(task, below, previous, ever_ran=ever)

    def _states(self, run: int, names: set[str], boxes: Boxes) -> PreviousRun | None:
        before = self._previous.get(run)
        if before is None:
            return None
        live = boxes.get(before[0])
        if live is None:
            return PreviousRun(before[1], self._store.states_of(before[0], names))
        index, state, instances = live.topology.index, live.machine.state, live.machine.instances
        states = {name: [state[one] for one in instances.slots(index[name])] for name in names if name in index}
        return PreviousRun(before[1], states)


def _concerned(box: RunBox, task_id: str) -> list[int]:
    """Tasks of `box` for which this task of the previous run matters."""
    topology = box.topology
    slot = topology.index.get(task_id)
    if slot is None:
        return []
    wanted = {slot, *topology.upstream(slot)}
    return [past for past in topology.past_tasks if past in wanted]
