"""Worker hosts: which attempts they hold, which they lack, and which they have to run. This module notices lost messages.

Several workers may be connected. Each worker reports only about itself: a registration lists the attempts of that worker. So a
missing attempt is searched for only if it belonged to that worker. An attempt whose process was accepted belongs to the worker of
that process. A queued attempt belongs to the worker that the executor chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from tradewind.executors.port import TaskKey
from tradewind.kernel import events as e
from tradewind.kernel.admission import PARALLELISM
from tradewind.model.moments import SECOND
from tradewind.model.phrases import english, phrase
from tradewind.model.states import OCCUPYING, TaskState
from tradewind.observe.log import Log
from tradewind.scheduler.assets.watchers import AssetWatchers
from tradewind.scheduler.inbox import RunEvent
from tradewind.scheduler.runs.active_run import ActiveRun, Holder
from tradewind.scheduler.shared_state import SharedState
from tradewind.scheduler.waits.wait_index import OpenWait, order
from tradewind.wire.log_paths import log_path
from tradewind.wire.messages import WATCHER_RUN, AttemptKey, TriggerOrder, Workload
from tradewind.wire.worker_names import attempt_of_pod, is_remote, may_report_for, worker_of

log = Log("scheduler")

ENDS_KEPT = 20
"""Number of earlier processes of worker hosts whose end the registry remembers."""


class HostRegistry:
    """See the module.

    Args:
        guarded: calls a function for a run; if the function fails, the run is quarantined.
    """

    def __init__(
        self, state: SharedState, watchers: AssetWatchers, guarded: Callable[[int, Callable[[], object]], None]
    ) -> None:
        self._state = state
        self._watchers = watchers
        self._guarded = guarded
        self._registrations: dict[str, tuple[frozenset[AttemptKey], frozenset[AttemptKey]]] = {}
        """Worker → attempts and triggers that it reported while nothing could be written."""
        self._processes: dict[str, str] = {}
        """Worker → its process that registered last."""
        self._ends: dict[str, str] = {}
        """Earlier process of a worker host → how it ended, in words. Only the latest few are kept."""
        self._absent_since: dict[str, int] = {}
        """Worker that has attempts and is not connected → the time since when this is known, monotonic microseconds."""

    def recovered(self, now: int) -> None:
        """After the store recovered: apply the registrations of the meantime, and submit all committed attempts."""
        registrations, self._registrations = self._registrations, {}
        self._state.executor.retain({key[:2] for key, _, _ in self.attempts()})
        for worker, (live, triggers) in registrations.items():
            self._register(worker, live, triggers)
        if self._state.executor.ready and not registrations:
            self.resubmit_old(now)  # attempts of a commit whose outcome was unknown
            self.run_triggers(one.key for one in self._state.waits.triggers())

    @property
    def live_attempts(self) -> int:
        """Number of queued or running attempts, including those of quarantined runs. Updated when one begins or ends."""
        return self._state.admission.used(PARALLELISM)

    def attempts(self) -> list[tuple[AttemptKey, TaskState, int]]:
        """Return every live attempt: its key, the state of its task instance, and when it was dispatched.

        Reads every task instance of the running runs: only registrations of worker hosts and safety nets call it.
        """
        found = []
        for run, active_run in self._state.active_runs_by_id.items():
            machine = active_run.machine
            for slot in active_run.occupying():
                found.append(((run, slot, machine.fence[slot]), machine.task_state(slot), machine.queued_at[slot]))
        return found

    # --- registration -------------------------------------------------------------------------------------------------

    def register(self, host: str, live: frozenset[AttemptKey], triggers: frozenset[AttemptKey] = frozenset()) -> None:
        """Handle the registration of a worker host: submit missing attempts, ask for lost ones, stop those that are not current.

        If a running attempt is not in `live`, the worker host is asked for it, and it stays: its report may arrive after the
        registration. While nothing can be written the registration is kept for later, because memory may differ from the store.

        Args:
            host: name of the process that registers.
        """
        worker = worker_of(host)
        self._absent_since.pop(worker, None)
        if self._state.superseded:
            return  # memory differs from the store, and stays so until this scheduler ends
        if self._state.paused:
            self._registrations[worker] = live, triggers
            return
        self._register(worker, live, triggers)

    def _register_pod(self, worker: str, attempt: AttemptKey, live: frozenset[AttemptKey]) -> None:
        """Handle the registration of the worker in a pod: only one attempt can be there, so no other one is looked at."""
        executor, grace = self._state.executor, self._state.config.kill_grace
        state = self._state_of(attempt)
        if state is TaskState.QUEUED and attempt not in live:
            self.submit(self._workload_of(attempt))
        elif state in (TaskState.RUNNING, TaskState.RESTARTING) and worker == self._worker_of(attempt):
            if attempt not in live:
                executor.reconcile(worker, {attempt: self._nonce(attempt)})
            elif state is TaskState.RESTARTING:
                executor.cancel(attempt, "it was cleared", grace, worker)
        elif attempt in live and state is None:
            self.cancel_unlisted(worker, [attempt])

    def _state_of(self, attempt: AttemptKey) -> TaskState | None:
        """The state of the task instance whose present attempt this is; None: it is not the present attempt."""
        run, slot, fence = attempt
        active_run = self._state.active_runs_by_id.get(run)
        if active_run is None or not 0 <= slot < active_run.machine.instances.total or active_run.machine.fence[slot] != fence:
            return None
        state = active_run.machine.task_state(slot)
        return state if state in OCCUPYING else None

    def _register(self, worker: str, live: frozenset[AttemptKey], triggers: frozenset[AttemptKey]) -> None:
        attempt = attempt_of_pod(worker)
        if attempt is not None:
            self._register_pod(worker, attempt, live)
            return
        executor, grace = self._state.executor, self._state.config.kill_grace
        again: list[Workload] = []
        missing: dict[AttemptKey, str] = {}
        current: set[AttemptKey] = set()
        for key, state, _ in self.attempts():
            current.add(key)
            if state is TaskState.QUEUED:
                if key not in live and executor.worker_of(key) in (None, worker):
                    again += self._workload_of(key)
            elif may_report_for(worker, self._worker_of(key)):
                if key not in live:
                    missing[key] = self._nonce(key)
                elif state is TaskState.RESTARTING:
                    executor.cancel(key, "it was cleared", grace, worker)
        for key in live - current:
            if key[0] not in self._state.quarantine and not self._state.is_out_of_scope(key[0]):
                executor.cancel(key, "it is not current any more", grace, worker)
        executor.reconcile(worker, missing)
        self.submit(again)
        wanted = {one.key for one in self._state.waits.triggers()}
        self.run_triggers(sorted(wanted - triggers))
        held = {key for key in triggers if key[0] == WATCHER_RUN}
        self._watchers.registered(worker, held)
        unwanted = sorted(key for key in triggers - wanted - held if key[0] not in self._state.quarantine)
        executor.drop_triggers([key for key in unwanted if not self._state.is_out_of_scope(key[0])], worker)

    def note_process(self, host: str, previous_process: str, previous_end: str) -> None:
        """Remember the process of a worker host, and how its previous process ended. A pod has one process and never comes back."""
        if attempt_of_pod(worker_of(host)) is not None:
            return
        self._processes[worker_of(host)] = host
        if previous_process and previous_end:
            self._ends.pop(previous_process, None)
            self._ends[previous_process] = previous_end
            while len(self._ends) > ENDS_KEPT:
                del self._ends[next(iter(self._ends))]

    def disconnected(self, worker: str) -> None:
        """Handle the end of a worker's connection: its queued attempts are given to other workers, if there are any."""
        attempt = attempt_of_pod(worker)
        if attempt is not None:
            self._registrations.pop(worker, None)
            self._submit_queued(attempt[:2])
            return
        self._absent_since.setdefault(worker, self._state.clock.monotonic())
        self._registrations.pop(worker, None)
        self._watchers.disconnected(worker)
        self._hand_over()

    def _hand_over(self) -> None:
        """Submit every queued attempt that no connected worker has, and every trigger that no connected worker has."""
        executor = self._state.executor
        if self._state.superseded or self._state.paused or not executor.ready:
            return
        queued = [key for key, state, _ in self.attempts() if state is TaskState.QUEUED and executor.worker_of(key) is None]
        self.submit([work for key in queued for work in self._workload_of(key)])
        self.run_triggers(one.key for one in self._state.waits.triggers())

    def drained(self) -> None:
        """Submit the attempts that a draining worker has given back."""
        self._hand_over()

    def lease_ended(self, worker: str = "") -> None:
        """No process of a lost worker runs any more: give up its attempts, and submit those that waited for it.

        Args:
            worker: its name; empty: it is not known.
        """
        if self._state.paused or self._state.superseded:
            return
        attempt = attempt_of_pod(worker)
        if attempt is None:
            self.look_for_lost_workers(0)
            self._hand_over()
        elif not self._state.executor.may_live(worker):
            self.attempt_gone(attempt, worker, f"the worker in its pod ({worker}) has ended", processes_ended=True)
            self._submit_queued(attempt[:2])

    def _submit_queued(self, task: TaskKey) -> None:
        """Submit the present attempt of a task instance again, if it has not started."""
        active_run = self._state.active_runs_by_id.get(task[0])
        if active_run is None or self._state.paused or self._state.superseded or task[1] >= active_run.machine.instances.total:
            return
        key = (*task, active_run.machine.fence[task[1]])
        if self._state_of(key) is TaskState.QUEUED:
            self.submit(self._workload_of(key))

    def attempt_gone(self, attempt: AttemptKey, worker: str, reason: str, *, processes_ended: bool) -> None:
        """Handle what an executor knows about the only worker of an attempt: it will not start the attempt, or it has ended.

        Args:
            reason: why, for people.
            processes_ended: surely no process of this worker is alive. Otherwise an attempt that has started is left alone: the
                end of the worker's lease decides.
        """
        if self._state.paused or self._state.superseded or self._state_of(attempt) is None:
            return  # the executor tells it again
        holder = self._holder(attempt)
        if holder is not None and not (processes_ended and worker_of(holder.host) == worker):
            return
        nonce, host = (holder.nonce, holder.host) if holder is not None else ("", "")
        self._state.inbox.append(RunEvent(attempt[0], e.AttemptVanished(attempt[1], attempt[2], 0, reason, nonce, host)))

    # --- lost attempts --------------------------------------------------------------------------------------------------

    def why_lost(self, holder: Holder | None, event: e.AttemptVanished) -> str:
        """Return why the process ended, as far as known."""
        if holder is None or not holder.host:
            return event.reason
        if holder.host == (event.host or self._processes.get(worker_of(holder.host), "")):
            return event.reason
        return self._ends.get(holder.host, english(phrase("cause_host_ended")))

    def look_for_lost_workers(self, lost_after: int) -> int:
        """Safety net: give up the attempts of workers that do not connect again. Return the number of these attempts.

        A worker is given up when it has not been connected for `lost_after` microseconds, another worker is connected, and no
        process of it lives. While no worker is connected nothing is given up: nothing could run again anyway, and reports
        that are stored on the worker's disk still count.
        """
        executor, now = self._state.executor, self._state.clock.monotonic()
        connected = set(executor.workers)
        for worker in connected:
            self._absent_since.pop(worker, None)
        if not connected:
            return 0
        absent: dict[str, list[AttemptKey]] = {}
        for key, state, _ in self.attempts():
            if state is not TaskState.QUEUED and (worker := self._worker_of(key)) not in connected:
                absent.setdefault(worker, []).append(key)
        count = 0
        for worker, keys in absent.items():
            since = self._absent_since.setdefault(worker, now)
            if executor.may_live(worker) or (now - since < lost_after and not is_remote(worker)):
                continue  # for a remote worker, the end of its lease is enough
            seconds = (now - self._absent_since[worker]) // SECOND
            log.warning("a worker host does not come back; its attempts are given up", worker=worker, attempts=len(keys))
            reason = f"its worker host {worker} has not been connected for {seconds} seconds, and its process is gone"
            for key in keys:
                holder = self._holder(key)
                nonce, host = (holder.nonce, holder.host) if holder is not None else ("", "")
                self._state.inbox.append(RunEvent(key[0], e.AttemptVanished(key[1], key[2], 0, reason, nonce, host)))
            count += len(keys)
            if attempt_of_pod(worker) is not None:
                del self._absent_since[worker]  # it never comes back
        return count

    def resubmit_old(self, older_than: int) -> int:
        """Safety net: submit again the attempts that were dispatched before a moment and have not started. Return their number."""
        late = [key for key, state, queued in self.attempts() if state is TaskState.QUEUED and queued <= older_than]
        again = [work for key in late for work in self._workload_of(key)]
        if again:
            self.submit(again)
        return len(again)

    def submit(self, works: list[Workload]) -> None:
        """Submit workloads. If one cannot be sent (a message cannot hold one of its values), its run is quarantined."""
        try:
            self._state.executor.submit(works)
        except Exception:
            log.exception("workloads cannot be submitted together; they go one by one", count=len(works))
            for work in works:  # a host that has one already ignores it
                self._guarded(work.run, partial(self._state.executor.submit, [work]))

    def reconcile(self) -> None:
        """Safety net: ask each connected worker whether it still has the attempts that run there according to the scheduler."""
        attempts = self.attempts()
        self._state.executor.retain({key[:2] for key, _, _ in attempts})
        by_worker: dict[str, dict[AttemptKey, str]] = {worker: {} for worker in self._state.executor.workers}
        for key, state, _ in attempts:
            if state is not TaskState.QUEUED:
                by_worker.setdefault(self._worker_of(key), {})[key] = self._nonce(key)
        for worker, keys in by_worker.items():
            self._state.executor.reconcile(worker, keys, complete=True)

    def cancel_unlisted(self, worker: str, attempts: Iterable[AttemptKey]) -> None:
        """Cancel attempts that a worker runs although they are not current: an earlier cancel was lost."""
        if self._state.paused or self._state.superseded:
            return  # memory may differ from the store; the safety net asks again
        for key in attempts:
            run, slot, fence = key
            active_run = self._state.active_runs_by_id.get(run)
            if active_run is not None and active_run.machine.fence[slot] == fence:
                continue  # it has started meanwhile, or its end is being decided
            if run not in self._state.quarantine and not self._state.is_out_of_scope(run):
                self._state.executor.cancel(key, "it is not current any more", self._state.config.kill_grace, worker)

    def _holder(self, key: AttemptKey) -> Holder | None:
        """Return the process that runs this attempt; None: no start was accepted."""
        run, slot, fence = key
        holder = self._state.active_runs_by_id[run].holders.get(slot)
        return holder if holder is not None and holder.fence == fence else None

    def _worker_of(self, key: AttemptKey) -> str:
        """Return the worker of the process that runs this attempt."""
        holder = self._holder(key)
        return worker_of(holder.host if holder is not None else "")

    def _nonce(self, key: AttemptKey) -> str:
        holder = self._holder(key)
        return holder.nonce if holder is not None else ""

    # --- workloads and triggers -------------------------------------------------------------------------------------------

    def bundle_of(self, dag_id: str) -> tuple[str, str | None, int]:
        """Return the bundle of a DAG, its version there, and how long parsing its file took, in microseconds."""
        entry = self._state.dags.get(dag_id)
        plan = entry.plan if entry is not None else self._state.store.dag(dag_id)
        return (plan.bundle, plan.bundle_version, plan.parse_duration) if plan else ("", None, 0)

    def _workload_of(self, key: AttemptKey) -> list[Workload]:
        """Return the workload of an attempt. If it cannot be built, return an empty list and quarantine the run."""
        found: list[Workload] = []
        self._guarded(key[0], lambda: found.append(self.workload(key[0], key[1])))
        return found

    def workload(self, run: int, slot: int) -> Workload:
        active_run = self._state.active_runs_by_id[run]
        bundle, newest, cost = self.bundle_of(active_run.row.dag_id)
        timeout = self._state.config.default_execution_timeout
        return active_run.workload(slot, bundle, timeout, cost, self._file(active_run), newest)

    def _file(self, active_run: ActiveRun) -> str:
        """Return the current path of the DAG's file; for a versioned bundle, the path in the run's version."""
        entry = self._state.dags.get(active_run.row.dag_id)
        if entry is None or active_run.row.bundle_version is not None:
            return active_run.topology.definition.fileloc
        return entry.plan.file

    def run_triggers(self, keys: Iterable[AttemptKey]) -> None:
        orders: list[TriggerOrder] = []
        for key in keys:
            active_run, waiting = self._state.active_runs_by_id.get(key[0]), self._state.waits.open.get(key[:2])
            if active_run is not None and waiting is not None and waiting.key == key:
                self._guarded(key[0], partial(self._add_trigger_order, orders, active_run, waiting))
        self._state.executor.run_triggers(orders)

    def _add_trigger_order(self, orders: list[TriggerOrder], active_run: ActiveRun, waiting: OpenWait) -> None:
        orders.append(self._trigger_order(active_run, waiting))

    def _trigger_order(self, active_run: ActiveRun, waiting: OpenWait) -> TriggerOrder:
        _, slot, fence = waiting.key
        entry = self._state.dags.get(active_run.row.dag_id)
        bundle, newest = (entry.plan.bundle, entry.plan.bundle_version) if entry is not None else ("", None)
        log = log_path(
            active_run.row.dag_id, active_run.row.run_id, *active_run.where(slot), active_run.machine.tries[slot], fence
        )
        return order(active_run, waiting, bundle, log, active_run.row.bundle_version or newest)
