"""Changes of one run's data: steps of task instances, and the counters that depend on them.

`step` is the only place where the state of a task instance changes. It checks the transition, remembers the row that the store
holds, updates the counters of the task's children, marks as *dirty* the tasks to examine next, and records the decision.

`bulk_end`, `mapping` and `integrity` decide with these methods which task instances end together, are added, or are verified
against a newer definition; `machine` decides everything else.
"""

from __future__ import annotations

from tradewind.kernel import events as e
from tradewind.kernel.codes import (
    AWAITING_INPUT,
    DEFERRED,
    NEVER,
    NONE,
    QUEUED,
    RESTARTING,
    RUNNING,
    SCHEDULED,
    SUCCESS,
)
from tradewind.kernel.domains import share_map_index
from tradewind.kernel.rules import branch_memory
from tradewind.kernel.run_data import RunData
from tradewind.model.branch import Branch
from tradewind.model.ids import UNEXPANDED
from tradewind.model.states import FINISHED, TASK_STATES, TASK_TRANSITIONS

_FINISHED = frozenset(state.code for state in FINISHED)
_LIVE = frozenset({QUEUED, RUNNING, RESTARTING})
HOLDS_LIMITS = frozenset({QUEUED, RUNNING, RESTARTING, DEFERRED, AWAITING_INPUT})
"""State codes in which a task instance may count against limits. They count for the version under which the state began."""
_LEGAL = tuple(frozenset(after.code for after in TASK_TRANSITIONS[before]) for before in TASK_STATES)


class RunSteps(RunData):
    """The data of one run, and its single steps."""

    __slots__ = ()

    # --- rows and dirty tasks -----------------------------------------------------------------------------------

    def remember_row(self, slot: int) -> None:
        """Remember the state that the store holds for this task instance, before its row changes."""
        if slot not in self.touched:
            self.touched[slot] = (self.state[slot], self.fence[slot])

    def mark_dirty(self, task: int) -> None:
        """Let a task, with all its instances, be examined in the next wave."""
        if task in self.instances.expanded:
            self.dirty_expanded.add(task)
        else:
            self.dirty.add(task)

    def add_instance(self, task: int, index: int) -> int:
        """Add an instance with this map index to an expanded task, and return its slot."""
        slot = self.instances.add(task, index)
        self.state.append(NONE)
        self.fence.append(0)
        self.tries.append(0)
        self.queued_at.append(NEVER)
        self.started_at.append(NEVER)
        self.unfinished += 1
        return slot

    # --- steps ----------------------------------------------------------------------------------------------------

    def step(self, slot: int, code: int, at: int, cause: str, *, new_fence: bool = False) -> None:
        """Move a task instance to another state.

        Raises:
            AssertionError: the table of transitions does not have this step.
        """
        before = self.state[slot]
        if code not in _LEGAL[before]:
            raise AssertionError(
                f"run {self.facts.number}, task {self.name(slot)}: "
                f"{TASK_STATES[before].value} → {TASK_STATES[code].value} is no legal step ({cause})"
            )
        self.remember_row(slot)
        if new_fence:
            self.fence[slot] += 1
        self.state[slot] = code
        if self.versions and code not in HOLDS_LIMITS:
            self.versions.pop(slot, None)
        if before in _FINISHED:
            self.count_finished(slot, before, -1)
            self.unfinished += 1
        elif before != NONE:
            self.active -= 1
        if code in _FINISHED:
            self.count_finished(slot, code, 1)
            self.unfinished -= 1
            self.ended_at[slot] = at
            self.due.pop(slot, None)
            self.requeues.pop(slot, None)
            self.resume.discard(slot)
        elif code != NONE:
            self.active += 1
            if code in (SCHEDULED, QUEUED, RUNNING):
                self.due.pop(slot, None)
        self.decisions.append(e.Move(slot, TASK_STATES[before], TASK_STATES[code], self.fence[slot], at, cause))

    def force_state(self, slot: int, code: int, at: int, cause: str) -> None:
        """Move a task instance to a state although an attempt may be live: the attempt gets an old fence and is stopped."""
        live = self.state[slot] in _LIVE
        if live:
            self.decisions.append(e.Stop(slot, self.fence[slot], cause))
        self.reasons[slot] = cause
        self.step(slot, code, at, cause, new_fence=live)

    def end_run(self, success: bool, at: int, cause: str, reason: str) -> None:
        """End the run and drop all remaining work.

        Args:
            reason: Airflow's name of the reason, see `events.RunEnds`.
        """
        self.ended = True
        self.dirty.clear()
        self.dirty_expanded.clear()
        self.verification = None
        self.expanding.clear()
        self.just_expanded.clear()
        self.backlog.clear()
        self.sweeps.clear()
        self.decisions.append(e.RunEnds(success, at, cause, reason))

    def remember_branch(self, slot: int, branch: Branch) -> set[int]:
        """Return the tasks that the decision of a branching task skips, and remember the direct downstream ones.

        A remembered task is skipped again after a clear. In a mapped group each instance decides only for the instances of its
        own map index in the group.
        """
        topology, task, index = self.topology, self.instances.task(slot), self.instances.index(slot)
        skipped = branch_memory.skipped_by(topology, task, branch)
        if index != UNEXPANDED and not topology.tasks[task].mapped:
            skipped = {other for other in skipped if share_map_index(topology.domain_of, task, other)}
        for other in skipped.intersection(topology.downstream(task)):
            if index == UNEXPANDED:
                self.skipped_by.setdefault(other, set()).add(slot)
            else:
                self.skipped_by_index.setdefault((other, index), set()).add(slot)
        return skipped

    # --- counters of finished upstream task instances -------------------------------------------------------------

    def count_finished(self, slot: int, code: int, change: int) -> None:
        """Update the counters of those who depend on an instance.

        Args:
            code: the finished state that the instance got or had.
            change: 1 where the instance has finished, −1 where it is no longer finished.
        """
        topology, counter = self.topology, self.counts[code]
        if self.instances.expanded:
            self._count_mapped(slot, code, change)
        else:
            children = topology.downstream(slot)
            for child in children:
                counter[child] += change
            if change > 0:
                self.dirty.update(children)
        if topology.has_setups:
            self._count_for_setups(slot, change)
        if change > 0 and slot in topology.mapped_over and not self.instances.expanded.get(slot):
            self._list_returned(slot, code)

    def _count_mapped(self, slot: int, code: int, change: int) -> None:
        """Update the counters in a run with expanded tasks: inside a mapped group only the own map index counts."""
        topology, instances, counter = self.topology, self.instances, self.counts[code]
        task = instances.task(slot)
        index = instances.index(slot)
        for child in topology.downstream(task):
            if index >= 0 and task in topology.same_index_up.get(child, ()):
                if child in topology.fast_tasks:
                    counts = self.group_counts.setdefault(child, {})
                    counts[code] = counts.get(code, 0) + change
                if change > 0:
                    self._mark_index_dirty(child, index)
                continue
            counter[child] += change
            if change > 0:
                self.mark_dirty(child)
        if change > 0 and index >= 0 and task in topology.mapped_over:
            self.dirty.update(self.awaiting_list.intersection(topology.mapped_over[task]))

    def _mark_index_dirty(self, child: int, index: int) -> None:
        """Let the instance of `child` with this map index be examined; before the expansion the whole task, if its rule is fast."""
        expanded = self.instances.expanded
        if child not in expanded:
            if child in self.topology.fast_tasks:
                self.dirty.add(child)
        elif index < len(expanded[child]):
            self.dirty.add(expanded[child][index])

    def _count_for_setups(self, slot: int, change: int) -> None:
        """Update the teardowns that wait for an instance, and mark those that wait for a setup, without an edge between them."""
        topology, left = self.topology, self.scope_left
        if topology.domains:  # the number of instances is not known yet, so `rules.setups` looks at the states themselves
            task = self.instances.task(slot)
            for other in (*topology.teardowns_over.get(task, ()), *topology.needed_by.get(task, ())) if change > 0 else ():
                self.mark_dirty(other)
            return
        for teardown in topology.teardowns_over.get(slot, ()):
            left[teardown] -= change
            if not left[teardown]:
                self.dirty.add(teardown)
        if change > 0:
            self.dirty.update(topology.needed_by.get(slot, ()))

    def _list_returned(self, task: int, code: int) -> None:
        """Let the tasks that are mapped over this one be examined: they can be expanded, or fail or are skipped with it."""
        if code == SUCCESS:
            self.dirty.update(self.awaiting_list.intersection(self.topology.mapped_over[task]))
        else:
            for other in self.topology.mapped_over[task]:
                self.mark_dirty(other)
