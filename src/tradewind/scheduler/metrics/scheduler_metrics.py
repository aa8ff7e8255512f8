"""Sends the metrics of the scheduler. It exists only if metrics are on; the scheduler then calls it after each commit."""

from __future__ import annotations

from tradewind.kernel.admission import PARALLELISM
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.meter import Meter
from tradewind.model.states import RunState, TaskState
from tradewind.observe.log import Log
from tradewind.scheduler.metrics import state_metrics
from tradewind.scheduler.metrics.run_metrics import RunMetrics
from tradewind.scheduler.metrics.state_metrics import DEFERRED, QUEUED, RUNNING, SCHEDULED, Instance
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.scheduler.shared_state import SharedState

log = Log("metrics")


class SchedulerMetrics:
    """See the module."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._runs = RunMetrics()
        self._counted: set[tuple[str, str, str, str]] = set()
        self._broken = False

    def batch_written(self, active_run: ActiveRun, at: int) -> None:
        """Take the metrics of a committed batch of a run, before the run begins its next batch. It never raises an error."""
        try:
            self._meter.add(self._runs.of_batch(active_run, at))
        except Exception:
            if not self._broken:  # once: the same error would follow after each commit
                log.exception("the metrics of a run cannot be computed", dag_id=active_run.row.dag_id)
            self._broken = True

    def add(self, *measurements: Measurement) -> None:
        """Take measurements; they are sent after the next commit, or with the next gauges."""
        self._meter.add(measurements)

    def flush(self) -> None:
        """Send everything that was taken."""
        self._meter.flush()

    def measure(self, state: SharedState, *, tasks: bool) -> None:
        """Send the gauges.

        Args:
            tasks: send also how many instances each task has in each state.
        """
        instances = _instances(state)
        slots = [(entry.name, entry.parallelism) for entry in state.executors.entries]
        running = sum(1 for run in state.active_runs_by_id.values() if run.row.state is RunState.RUNNING)
        self._meter.add(
            [
                Measurement("count", "scheduler_heartbeat", 1),
                Measurement("gauge", "scheduler.dagruns.running", running),
                Measurement("gauge", "scheduler.tasks.executable", self._runs.queued),
                *state_metrics.of_executors(instances, slots),
                *state_metrics.of_pools(instances, state.store.pools()),
                *(state_metrics.of_instances(instances, self._counted) if tasks else ()),
            ]
        )
        self._runs.queued = 0
        self._meter.flush()


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
