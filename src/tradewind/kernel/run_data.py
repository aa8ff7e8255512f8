"""The data of one run in memory: states, counters and lists of work, as plain values.

The kernel's rules (`rules/`, `expansion`, `causes`, `explain`) read this data and change nothing. `run_steps` changes it one
step at a time, and `machine` decides which steps follow from an event.

Arrays are indexed by slot (see `instances`). Data that only few task instances have is in dictionaries by slot.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import NamedTuple

from tradewind.kernel import events as e
from tradewind.kernel.codes import FAILED, NEVER, REMOVED, SKIPPED, SUCCESS, UPSTREAM_FAILED
from tradewind.kernel.instances import Instances
from tradewind.kernel.topology import Topology
from tradewind.kernel.trigger_rules import Counts
from tradewind.model.branch import Branch
from tradewind.model.ids import UNEXPANDED
from tradewind.model.phrases import Phrase
from tradewind.model.rows import TaskRow
from tradewind.model.states import TASK_STATES, TaskState

EVERY_WAVE = 2**62
"""No limit for the waves of a call: decide until nothing changes."""


class RunFacts(NamedTuple):
    """Everything that the machine needs to know about its run besides the topology."""

    number: int
    dag_id: str
    logical_date: int | None
    requeue_limit: int = 3
    budget: int = 2000
    """Approximate number of decisions per call."""
    failing: str | None = None
    """The reason why a person failed the run, if only its teardowns are left to run. The run fails whatever their result is."""
    repeat_lost: bool = False
    """The setting `scheduler.lost_attempts` is `repeat`. It applies to tasks that do not choose themselves."""


class Sweep(NamedTuple):
    """Task instances that are ended together without running to their end; a call handles a bounded number of them."""

    kind: str
    """`fail_fast`, `branch`, `timeout` or `dates`."""
    source: int
    """The task instance that caused the sweep; −1: the run itself."""
    cause: str
    slots: deque[int]
    """Slots that are not handled yet."""


class VerificationPlan(NamedTuple):
    """Slots that a newer definition of the DAG changes and that are not handled yet (see `integrity`)."""

    added: deque[int]
    removed: deque[int]
    restored: deque[int]
    retries: deque[int]
    """The newer definition gives them another number of retries."""
    changed: deque[int]
    """Scheduled, but the newer definition may let them wait longer."""
    held: deque[int]
    """Their attempt or wait counts against limits of the earlier version until it ends."""

    def __bool__(self) -> bool:
        return any(self)


class RunData:
    """The data of one running run, and methods that read it."""

    __slots__ = (
        "active",
        "awaiting_list",
        "backlog",
        "branches",
        "budget",
        "counts",
        "decisions",
        "dirty",
        "dirty_expanded",
        "due",
        "ended",
        "ended_at",
        "expanding",
        "extra_rows",
        "extra_upstream",
        "facts",
        "fence",
        "gone",
        "group_counts",
        "instances",
        "just_expanded",
        "lengths",
        "max_tries",
        "max_waves",
        "past_allowed",
        "past_reason",
        "queued_at",
        "reasons",
        "requeues",
        "resume",
        "scope_left",
        "skipped_by",
        "skipped_by_index",
        "started_at",
        "state",
        "sweeps",
        "topology",
        "touched",
        "tries",
        "unfinished",
        "verification",
        "versions",
    )

    def __init__(self, topology: Topology, facts: RunFacts) -> None:
        count = topology.count
        self.topology = topology
        self.facts = facts
        self.budget = facts.budget
        """Approximate number of decisions of the next call. The caller may lower it."""
        self.max_waves = EVERY_WAVE
        """Waves per call. A caller that admits task instances between waves lowers it."""
        self.state = bytearray(count)
        self.fence = array("I", bytes(4 * count))
        self.tries = array("H", bytes(2 * count))
        self.queued_at = array("q", bytes(8 * count))
        self.started_at = array("q", bytes(8 * count))
        self.counts: dict[int, array[int]] = {
            code: array("i", bytes(4 * count)) for code in (SUCCESS, SKIPPED, FAILED, UPSTREAM_FAILED, REMOVED)
        }
        """State code → number of finished direct upstream task instances in that state, by task."""
        self.max_tries: dict[int, int] = {}
        """Slot → retries, if they differ from the definition."""
        self.resume: set[int] = set()
        """Unfinished task instances whose next attempt belongs to the same try, and finished ones whose sweep is not done."""
        self.requeues: dict[int, int] = {}
        self.due: dict[int, int] = {}
        self.ended_at: dict[int, int] = {}
        self.reasons: dict[int, str] = {}
        self.branches: dict[int, Branch] = {}
        self.skipped_by: dict[int, set[int]] = {}
        """Task → instances of branching tasks that did not choose it."""
        self.skipped_by_index: dict[tuple[int, int], set[int]] = {}
        """(task, map index) → instances of branching tasks that did not choose this instance."""
        self.instances = Instances(count)
        self.group_counts: dict[int, dict[int, int]] = {}
        """Task with a fast trigger rule in a mapped group → its finished upstream task instances in the group, by state."""
        self.lengths: dict[int, int] = {}
        """Successful task instance → number of elements that its return value offers to mapped tasks."""
        self.expanding: dict[int, int] = {}
        """Mapped tasks that do not have all of their instances yet → how many they get."""
        self.just_expanded: list[int] = []
        """Mapped tasks that have got all their instances in this call, to be examined before anything else."""
        self.awaiting_list: set[int] = set()
        """Mapped tasks whose dependencies are met, but the length of a list is not known."""
        self.extra_upstream: dict[int, int] = {}
        """Task → number of its upstream task instances in addition to one for each upstream task."""
        self.past_allowed: dict[int, bool] = {}
        self.past_reason: dict[int, Phrase] = {}
        self.scope_left: dict[int, int] = {teardown: len(scope) for teardown, scope in topology.teardown_scope.items()}
        """Teardown → number of unfinished tasks between its setups and itself."""
        self.unfinished = count
        self.active = 0
        """Unfinished task instances whose state is not `none`."""
        self.ended = False
        self.dirty: set[int] = set()
        """Task instances to be examined in the next wave."""
        self.dirty_expanded: set[int] = set()
        """Expanded tasks all of whose instances are to be examined in the next wave."""
        self.extra_rows = 0
        """Number of rows that this call writes in addition to those of its decisions."""
        self.backlog: deque[tuple[int, int, str]] = deque()
        """Verdicts that are not applied yet: (slot, state code, cause)."""
        self.sweeps: deque[Sweep] = deque()
        self.verification: VerificationPlan | None = None
        """The remaining changes until the rows match a newer definition."""
        self.gone: dict[int, str] = {}
        """Slots of tasks that the definition does not have any more → their task id."""
        self.versions: dict[int, int] = {}
        """Task instances whose attempt or wait began under an earlier version of the DAG → that version."""
        self.touched: dict[int, tuple[int, int]] = {}
        """Changed rows → (state, fence) that the store holds; the guard of the write."""
        self.decisions: list[e.Decision] = []
        """The answer of the current call."""

    def task_id(self, slot: int) -> str:
        """Return the task id of an instance, even if the definition does not have the task any more."""
        return self.gone.get(slot) or self.topology.ids[self.instances.task(slot)]

    def task_state(self, slot: int) -> TaskState:
        return TASK_STATES[self.state[slot]]

    def name(self, slot: int) -> str:
        """Return task id and map index, for people: `load[3]`."""
        index = self.instances.index(slot)
        task_id = self.task_id(slot)
        return task_id if index == UNEXPANDED else f"{task_id}[{index}]"

    def retries(self, slot: int) -> int:
        """Return the number of retries allowed to this task instance (after a clear more than the definition says)."""
        return self.max_tries.get(slot, self.topology.retries[self.instances.task(slot)])

    def upstream_counts(self, slot: int) -> Counts:
        """Return the counts of upstream task instances by state, to which the trigger rule of this instance is applied."""
        topology = self.topology
        task = self.instances.task(slot)
        counts = self.common_counts(task)
        if task in topology.same_index_up:
            if task in self.instances.expanded:
                return self._add_own_index(counts, slot, task)
            if task in topology.fast_tasks:
                return self._add_all_indexes(counts, task)
        return counts

    def common_counts(self, task: int) -> Counts:
        """Return the part of the upstream counts that all instances of a task share."""
        topology, counts = self.topology, self.counts
        return (
            topology.up_at[task + 1] - topology.up_at[task] + (self.extra_upstream.get(task, 0) if self.extra_upstream else 0),
            counts[SUCCESS][task],
            counts[SKIPPED][task],
            counts[FAILED][task],
            counts[UPSTREAM_FAILED][task],
            counts[REMOVED][task],
        )

    def _add_own_index(self, counts: Counts, slot: int, task: int) -> Counts:
        """Add the upstream instances of this map index to the counts that all instances share."""
        n, s, k, f, u, r = counts
        index, expanded = self.instances.index(slot), self.instances.expanded
        for up in self.topology.same_index_up[task]:
            if up in expanded and index < len(expanded[up]):
                n += 1
                code = self.state[expanded[up][index]]
                s += code == SUCCESS
                k += code == SKIPPED
                f += code == FAILED
                u += code == UPSTREAM_FAILED
                r += code == REMOVED
        return n, s, k, f, u, r

    def _add_all_indexes(self, counts: Counts, task: int) -> Counts:
        """Add all upstream instances inside the mapped group to the counts that all instances share."""
        n, s, k, f, u, r = counts
        expanded, inside = self.instances.expanded, self.group_counts.get(task, {})
        for up in self.topology.same_index_up[task]:
            if up in expanded:
                n += max(len(expanded[up]), self.expanding.get(up, 0))
        s, k, f = s + inside.get(SUCCESS, 0), k + inside.get(SKIPPED, 0), f + inside.get(FAILED, 0)
        return n, s, k, f, u + inside.get(UPSTREAM_FAILED, 0), r + inside.get(REMOVED, 0)

    def row(self, slot: int) -> TaskRow:
        """Return the row that the store must hold for this task instance now."""
        return TaskRow(
            slot,
            self.state[slot],
            self.fence[slot],
            self.tries[slot],
            self.retries(slot),
            slot in self.resume,
            self.requeues.get(slot, 0),
            self.due.get(slot, NEVER),
            self.queued_at[slot],
            self.started_at[slot],
            self.ended_at.get(slot, NEVER),
            self.reasons.get(slot),
            self.branches.get(slot),
            self.task_id(slot),
            self.instances.index(slot),
            self.lengths.get(slot),
            self.versions.get(slot),
        )

    @property
    def unsettled(self) -> bool:
        """Whether more decisions follow from past events: call `RunMachine.settle` again, after a commit."""
        waiting = self.sweeps or self.backlog or self.dirty or self.dirty_expanded or self.expanding or self.just_expanded
        return bool(waiting or self.verification is not None) and not self.ended

    @property
    def blocks_admission(self) -> bool:
        """Whether a sweep or a verification has not ended: until then, no task instance of the run is admitted."""
        return bool(self.sweeps) or self.verification is not None

    def rows_left(self) -> int:
        """Return how many rows, approximately, this call may still write."""
        return max(0, self.budget - len(self.decisions) - self.extra_rows)
