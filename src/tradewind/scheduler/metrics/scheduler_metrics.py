"""Sends the metrics of the scheduler. It exists only if metrics are on; the scheduler then calls it after each commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tradewind.kernel.admission import PARALLELISM
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.meter import Meter
from tradewind.model.states import RunState, TaskState
from tradewind.model.waits import TriggerEnd
from tradewind.observe.log import Log
from tradewind.scheduler.metrics import state_metrics
from tradewind.scheduler.metrics.run_metrics import RunMetrics
from tradewind.scheduler.metrics.state_metrics import DEFERRED, QUEUED, RUNNING, SCHEDULED, Instance
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.shared_state import SharedState
from tradewind.store.port import Store

log = Log("metrics")
_MS = 1000
"""Microseconds in a millisecond."""


class SchedulerMetrics:
    """See the module.

    Args:
        hostname: the machine of the scheduler, a tag of the number of triggers.
    """

    def __init__(self, meter: Meter, hostname: str = "") -> None:
        self._meter = meter
        self._hostname = hostname
        self._runs = RunMetrics()
        self._counted: set[tuple[str, str, str, str]] = set()
        self._broken = False

    def batch_written(self, active_run: ActiveRun, at: int) -> None:
        """A batch of a run was committed, and the run has not begun its next batch."""
        self._add(lambda: self._runs.of_batch(active_run, at))

    def batch_done(self, began: int, ended: int) -> None:
        """A batch was decided and committed, between these moments (microseconds)."""
        self._add(lambda: [Measurement("timing", "scheduler.scheduler_loop_duration", (ended - began) / _MS)])

    def trigger_ended(self, end: TriggerEnd) -> None:
        """A trigger of a deferred task has fired, or has failed."""
        self._add(lambda: [Measurement("count", "triggers.succeeded" if end.error is None else "triggers.failed", 1)])

    def callback_failed(self, store: Store, callback_id: int) -> None:
        """A callback or a mail of a task or DAG has failed."""
        self._add(lambda: [Measurement("count", "dag.callback_exceptions", 1, _dag_tags(store, callback_id))])

    def assets_updated(self, count: int) -> None:
        """Assets were updated by somebody else than a task: by a person or an asset watcher."""
        self._add(lambda: [Measurement("count", "asset.updates", count)])

    def deadline_missed(self, dag_id: str, run_id: str) -> None:
        """A run has missed a deadline."""
        tags = {"dag_id": dag_id, "dagrun_id": run_id}
        self._add(lambda: [Measurement("count", "deadline_alerts.deadline_missed", 1, tags)])

    def measure(self, state: SharedState, *, tasks: bool) -> None:
        """Take and send the gauges.

        Args:
            tasks: also how many instances each task has in each state.
        """
        self._add(lambda: self._gauges(state, tasks=tasks))
        self._runs.queued = 0
        self._runs.keep_only(state.active_runs_by_id)
        self.flush()

    def flush(self) -> None:
        """Send everything that was taken."""
        self._meter.flush()

    def _add(self, compute: Callable[[], Iterable[Measurement]]) -> None:
        """Take what `compute` returns. An error is logged; it never stops the scheduler."""
        try:
            self._meter.add(compute())
        except Exception:
            if not self._broken:  # once: the same error would follow after each commit
                log.exception("a metric cannot be computed")
            self._broken = True

    def _gauges(self, state: SharedState, *, tasks: bool) -> list[Measurement]:
        instances = _instances(state)
        slots = [(entry.name, entry.parallelism) for entry in state.executors.entries]
        running = sum(1 for run in state.active_runs_by_id.values() if run.row.state is RunState.RUNNING)
        return [
            Measurement("count", "scheduler_heartbeat", 1),
            *([Measurement("count", "triggerer_heartbeat", 1)] if state.executor.ready else ()),
            Measurement("gauge", "triggers.running", len(state.waits.triggers()), {"hostname": self._hostname}),
            Measurement("gauge", "dagbag_size", len(state.dags)),
            Measurement("gauge", "scheduler.dagruns.running", running),
            Measurement("gauge", "scheduler.tasks.executable", self._runs.queued),
            *state_metrics.of_executors(instances, slots),
            *state_metrics.of_pools(instances, state.store.pools()),
            *(state_metrics.of_instances(instances, self._counted) if tasks else ()),
        ]


def _dag_tags(store: Store, callback_id: int) -> dict[str, object]:
    """The DAG of a callback; empty: it is not known any more."""
    item = store.outbox_item(callback_id)
    row = store.run(item.run) if item is not None and item.run is not None else None
    return {"dag_id": row.dag_id} if row is not None else {}


def _instances(state: SharedState) -> list[Instance]:
    """The task instances that wait for a slot, have one, or are deferred."""
    keys = {(one.run, one.slot): SCHEDULED for one in state.admission.candidates()}
    keys.update(dict.fromkeys(state.waits.open, DEFERRED))
    found = []
    for run, slot in [*keys, *state.admission.holders(PARALLELISM)]:
        active_run = state.active_runs_by_id.get(run)
        if active_run is None:
            continue
        task = active_run.topology.tasks[active_run.machine.instances.task(slot)]
        known = keys.get((run, slot))
        if known is None:
            known = QUEUED if active_run.machine.task_state(slot) is TaskState.QUEUED else RUNNING
        found.append(
            Instance(
                known,
                active_run.row.dag_id,
                task.task_id,
                task.queue,
                active_run.pools.get(slot, task.pool),
                task.pool_slots,
                active_run.executors.resolve(task.executor),
            )
        )
    return found
