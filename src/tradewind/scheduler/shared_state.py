"""The state that the parts of the scheduler share: the store, the clock, the executor, and the data in memory for decisions.

Each part gets this state and, as arguments, the other parts that it calls; no part has a reference to the scheduler. This module
decides nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tradewind.executors.port import Executor
from tradewind.executors.registry import ExecutorRegistry
from tradewind.kernel import events as e
from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Admission, executor_slots
from tradewind.platform.clock import Clock
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.scheduler.inbox import Item, RunEvent
from tradewind.scheduler.quarantine import Quarantine
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.runs.previous_runs import PreviousRunTracker
from tradewind.scheduler.timers import Timers
from tradewind.scheduler.waits.wait_index import WaitIndex
from tradewind.store.port import Store
from tradewind.wire.messages import Notice

ROWS_PER_MOVE = 2
"""Number of rows that a step of a task instance writes: its own row and one in the journal."""


class PendingBatch:
    """The changes that the next transaction writes, and the calls and workloads that follow after its commit.

    Args:
        max_rows: the limit of rows per transaction (`scheduler.batch_max_rows`).
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self.rows = 0
        """Approximate number of rows in the batch."""
        self.touched: dict[int, ActiveRun] = {}
        """Runs with changes to be written."""
        self.workloads: list[tuple[ActiveRun, int]] = []
        """Attempts to be handed to the executor after the commit: run and slot."""
        self._outputs: list[tuple[int, Callable[[], None]]] = []

    def clear(self) -> None:
        self.touched.clear()
        self.workloads.clear()
        self._outputs.clear()

    def rows_left(self, reserve: int = 0) -> int:
        """Return how many rows the transaction may still write.

        Args:
            reserve: n: return at least one n-th of all rows, even if the batch has more rows already.
        """
        return max(self._max_rows - self.rows, self._max_rows // reserve if reserve else 0)

    def include(self, active_run: ActiveRun) -> None:
        """Include the changes of this run in the batch."""
        self.touched[active_run.row.id] = active_run

    def exclude(self, run: int) -> None:
        """Do not write the changes of this run."""
        self.touched.pop(run, None)

    def after_commit(self, run: int, call: Callable[[], None]) -> None:
        """Call this after the changes of the run are committed: answers, cancels, orders to the executor."""
        self._outputs.append((run, call))

    def discard_outputs(self, run: int) -> None:
        """Call nothing for this run: its changes are not written."""
        self._outputs = [(owner, call) for owner, call in self._outputs if owner != run]

    def take_outputs(self) -> tuple[list[tuple[int, Callable[[], None]]], list[tuple[ActiveRun, int]]]:
        """Take out the calls and the workloads, for after the commit."""
        outputs, self._outputs = self._outputs, []
        workloads, self.workloads = self.workloads, []
        return outputs, workloads


class SharedState:
    """See the module."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        config: SchedulerConfig,
        executor: Executor,
        epoch: int,
        notify: Callable[[Notice], None],
    ) -> None:
        self.store = store
        self.clock = clock
        self.config = config
        self.executor = executor
        self.executors = ExecutorRegistry(config.executor, config.parallelism)
        self.epoch = epoch
        self.notify = notify
        self.inbox: deque[Item] = deque()
        self.active_runs_by_id: dict[int, ActiveRun] = {}
        self.dags: dict[str, DagEntry] = {}
        self.admission = Admission()
        self.timers = Timers()
        self.previous_runs = PreviousRunTracker(store)
        self.waits = WaitIndex(store, self.timers)
        self.quarantine = Quarantine()
        """Runs and steps that failed. A quarantined run counts as running, and its attempts keep their slots."""
        self.listened: frozenset[str] = frozenset()
        """The events for which plugins have listeners."""
        self.batch = PendingBatch(config.batch_max_rows)
        self.paused = False
        """True: memory may be wrong, so nothing is decided until everything is loaded again."""
        self.superseded = False
        """True: another scheduler has taken over, so nothing is decided any more."""

    def clear(self) -> None:
        """Drop everything that is read again from the store. The inbox stays."""
        self.active_runs_by_id.clear()
        self.dags.clear()
        self.admission.clear()
        self.timers.clear()
        self.previous_runs.clear()
        self.quarantine.clear()
        self.waits.clear()
        self.batch.clear()

    def set_parallelism(self) -> None:
        """Tell admission the maximum number of live attempts: over all executors and, if there are several, for each executor."""
        self.admission.set_capacity(PARALLELISM, self.executors.parallelism or UNLIMITED)
        if self.executors.has_several:
            for entry in self.executors.entries:
                self.admission.set_capacity(executor_slots(entry.name), entry.parallelism or UNLIMITED)

    def is_out_of_scope(self, run: int) -> bool:
        """Return whether the run belongs to a DAG that another scheduler handles (see `SchedulerConfig.scope`)."""
        if not self.config.scope.bundles and self.config.scope.dag_id is None:
            return False
        row = self.store.run(run)
        return row is not None and row.dag_id not in self.dags

    def push_event(self, run: int, event: e.Event) -> None:
        """Add an event of a run to the inbox."""
        self.inbox.append(RunEvent(run, event))

    def push_at(self, due: int, item: RunEvent) -> None:
        """Add an event to the inbox at a moment, at once if the moment has passed."""
        if due > self.clock.wall():
            self.timers.add(due, item)
        else:
            self.inbox.append(item)
