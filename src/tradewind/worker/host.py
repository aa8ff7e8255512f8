"""The worker host: runs attempts, and outlives the scheduler.

The host is one actor with one event loop. It takes workloads from the scheduler, has a process forked for each one, forwards the
process's requests and the answers to them, and keeps every report until the scheduler has acknowledged it. While the scheduler is
away tasks continue; their reports are written to a spool with fsync, and are sent when the scheduler is back.

The host is a subreaper: processes below it that lose their parent become its children. A task process whose template died
continues, and the host waits for its end. Every other such child belonged to an attempt that has ended, and is killed. After the
end of an attempt no process of its tree is left.
"""

from __future__ import annotations

import fcntl
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tradewind.model.moments import SECOND
from tradewind.model.phrases import Phrase, english, phrase
from tradewind.model.states import Outcome
from tradewind.observe.failpoints import drop, fp
from tradewind.observe.log import Log
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import Clock
from tradewind.platform.exit_codes import signal_name
from tradewind.platform.fork_server import Used, used
from tradewind.platform.loop import Loop
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    Accepted,
    AttemptGone,
    AttemptKey,
    CallbackOrder,
    CalledBack,
    Cancel,
    Draining,
    DropTriggers,
    EndLog,
    Failure,
    FromRunner,
    FromScheduler,
    Goodbye,
    HostHello,
    LeaseEnded,
    LogTrouble,
    Reconcile,
    Refused,
    Report,
    RunnerAnswer,
    RunnerRequest,
    RunTriggers,
    StandbyReady,
    Start,
    Submit,
    ToRunner,
    TriggerOrder,
    Unlisted,
    WatcherEventTaken,
    Welcome,
    Withdraw,
    Withdrawn,
    Workload,
    XComs,
    decode_from_scheduler,
    encode,
)
from tradewind.wire.worker_names import process_name, worker_at
from tradewind.worker.attempt import Attempt
from tradewind.worker.callback_processes import CallbackProcesses
from tradewind.worker.config import TASKS_MARK, GatewayConfig, HostConfig
from tradewind.worker.final_log_lines import FinalLogLines
from tradewind.worker.host_record import LOOK_EVERY, HostRecord
from tradewind.worker.isolated_tasks import IsolatedTasks
from tradewind.worker.local_lease import LocalLease
from tradewind.worker.local_versions import LocalVersions
from tradewind.worker.orders import FreshOrder, encode_order
from tradewind.worker.spool import Spool
from tradewind.worker.templates import Templates
from tradewind.worker.trigger_manager import TriggerManager

if TYPE_CHECKING:
    from tradewind.worker.offers import Offers
    from tradewind.worker.remote_link import RemoteLink

if HAVE_LINUX:
    from tradewind.platform import linux

log = Log("host")

RECONNECT_MS = (5, 10, 20, 50, 100, 200, 500)
SWEEP_PATIENCE = 5 * SECOND
"""How long to wait for killed processes. Most are gone within milliseconds; a process that waits for a disk may take longer."""
NOT_HERE = "the worker host does not have it"
_KILLED_BY_OTHERS: dict[bool | None, Callable[[str], Phrase]] = {
    True: lambda name: phrase("cause_killed_memory", signal=name),
    None: lambda name: phrase("cause_killed_perhaps_memory", signal=name),
    False: lambda name: phrase("cause_killed_not_memory", signal=name),
}
"""The reason of a task process that was killed by somebody else; the key is `HostRecord.out_of_memory`."""
LEAVE_AGAIN = SECOND // 10
"""Interval between two checks whether the gateway has stored the logs of a remote worker host that stops."""
ATTEMPT_WITHIN = 600 * SECOND
"""A worker host for one attempt ends if it has got none after this time: the attempt is not current any more."""
DELIVER_WITHIN = 24 * 3600 * SECOND
"""How long a worker host for one attempt tries to deliver the result. Its disk is lost when it ends."""
LOG_PROBE = 15 * SECOND
"""Interval between two checks whether task logs can be written."""
_ANSWERS_TO_TIMEOUT = (Outcome.SUCCESS, Outcome.SKIPPED, Outcome.FAILED_FINAL)
"""The results that a task's code may have after AirflowTaskTimeout: return, AirflowSkipException, AirflowFailException."""


class WorkerHost:
    """See the module. `run` returns when the host was stopped."""

    def __init__(self, config: HostConfig, clock: Clock, loop: Loop | None = None) -> None:
        self.config = config
        self.clock = clock
        self.loop = loop if loop is not None else Loop(clock)
        self.name = process_name(worker_at(config.worker, config.home_name), secrets.token_hex(8))
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.by_pid: dict[int, Attempt] = {}
        self.by_task: dict[tuple[int, int], Attempt] = {}
        self.pending: deque[Workload] = deque()
        self.unacknowledged: dict[AttemptKey, Report] = {}
        self.spool = Spool(config.spool_folder)
        self.spooled: set[AttemptKey] = set()
        self.scheduler: Connection | RemoteLink | None = None
        self.draining = False
        """The host was told to stop: it finishes running tasks and takes no new ones."""
        self.stopping = False
        self.record = HostRecord(config.spool_folder, self.name, clock)
        self._failures = 0
        self._withdrawing: dict[tuple[int, int], Withdraw] = {}
        """Task instances whose next attempt waits elsewhere for the end of their process here."""
        self._need_files: list[tuple[str, str | None, Callable[[str], None]]] = []
        """(bundle, version, call): triggers and callbacks that wait for DAG files."""
        self._fresh: dict[int, subprocess.Popen[bytes]] = {}
        self._orphans: set[int] = set()
        """Task processes whose template died. They are children of this process now, which waits for their end."""
        self.local_versions = LocalVersions(config.versioned, self.loop, self.files_ready)
        self.templates = self._make_templates()
        self.isolated_templates: Templates | None = None
        """A second base image with its templates, for isolated tasks."""
        self._isolated = IsolatedTasks()
        self.triggers = TriggerManager(self)
        self.callbacks = CallbackProcesses(self, self._begin)
        self.final_lines = FinalLogLines(config.log_folder, clock.wall, lambda trouble: self.send(LogTrouble(trouble)))
        self.remote = self._make_remote_link(config.gateway) if config.gateway is not None else None
        """Set: the scheduler is on another machine."""
        servers = config.database_servers
        self.lease = LocalLease(self.loop, clock, self, servers) if servers and config.home_name else None
        """Set: a standby scheduler on another machine may take over."""
        self.offers = self._make_offers() if config.offers_socket else None
        """Set: a Celery worker is beside this worker host."""

    # --- life -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until SIGTERM (running tasks get `drain_timeout` to finish) or SIGINT (they are stopped at once)."""
        self._take_lock()
        self.record.begin()
        if HAVE_LINUX:
            linux.become_subreaper()
            linux.set_name("tw-host")
            self._kill_earlier_processes()
            self.loop.on_signal(signal.SIGCHLD, self._children_changed)
        self._raise_descriptor_limit()
        self.loop.on_signal(signal.SIGTERM, self.stop if self.config.is_single else self.drain)
        self.loop.on_signal(signal.SIGINT, self.stop)
        self.load_spool()
        if HAVE_LINUX and self.config.task_start == "template":
            self.templates.start_base()
        self.final_lines.probe()
        if self.offers is not None:
            self.offers.listen()
        if self.remote is not None:
            self.remote.start()
        self._connect()
        if self.config.is_single:
            self.loop.call_later(ATTEMPT_WITHIN, self._end_without_attempt)
        self._call_every(self.config.verdict_resend, self._resend)
        self._call_every(LOOK_EVERY, self.record.look)
        self._call_every(LOG_PROBE, self.final_lines.probe)
        self.loop.run()
        self._orphans.clear()
        self._kill_strays()
        self._write_spool(self.unacknowledged)
        self.send(Goodbye())
        if self.remote is not None:
            self.remote.stop()
        if self.offers is not None:
            self.offers.close()
        self.record.end()

    def load_spool(self) -> None:
        """Take over the reports of an earlier process, and the tokens that a gateway needs for them."""
        self.unacknowledged = self.spool.load()
        self.spooled = set(self.unacknowledged)
        if self.remote is not None:
            self.remote.take_over(self.spool.tokens)

    def drain(self) -> None:
        """Let running tasks finish and deliver their reports, take no new ones, then stop. A second call stops at once."""
        if self.draining or self.stopping or not self.config.drain_timeout or not (self.attempts or self._must_deliver()):
            self.stop()
            return
        self.draining = True
        self._give_back_pending()
        self.send(Draining(self._held()))
        log.info(
            "stopping; running tasks may finish",
            tasks=len(self.attempts),
            reports=len(self.unacknowledged),
            seconds=self.config.drain_timeout / SECOND,
        )
        self.loop.call_later(self.config.drain_timeout, self.stop)

    def stop(self) -> None:
        """Stop every attempt (TERM, so that `on_kill` runs; then KILL), send the reports, end."""
        if self.stopping:
            return
        self.stopping = True
        self._give_back_pending()
        self.triggers.stop()
        for templates in self._all_templates():
            templates.close()
        self.callbacks.close()
        for attempt in list(self.attempts.values()):
            attempt.stop("stopping", english(phrase("cause_host_stopped")), self.config.stop_grace)
        self.loop.call_later(self.config.stop_grace + 5 * SECOND, self.loop.stop)
        self._stop_if_done()

    def _end_without_attempt(self) -> None:
        """The scheduler has given no attempt to a worker host that exists for one."""
        if not (self.draining or self.stopping or self.attempts or self.pending):
            log.warning("no attempt came in time; this worker host ends", seconds=ATTEMPT_WITHIN // SECOND)
            self.stop()

    def _end_after_attempt(self) -> None:
        """The only attempt of this worker host has ended: deliver its report and its log, then end."""
        if not (self.draining or self.stopping or self.attempts):
            self.draining = True
            self.loop.call_later(DELIVER_WITHIN, self.stop)

    def _give_back_pending(self) -> None:
        """Give up attempts that have not begun. The scheduler gives them to another worker."""
        if self.offers is not None:
            self.offers.given_back([workload.key for workload in self.pending])
        self.pending.clear()

    def _must_deliver(self) -> bool:
        """Whether reports wait that nobody would send after this process has ended.

        A worker on another machine, or beside Celery, may never start again. The worker host of a scheduler does: its next process
        sends the reports that are on the disk.
        """
        return bool(self.unacknowledged) and (self.remote is not None or self.offers is not None)

    def _stop_if_done(self) -> None:
        if self.draining and not self.stopping and not self.attempts and not self._must_deliver():
            self.stop()
        if self.stopping and not self.attempts and (not self.unacknowledged or self.scheduler is None):
            if self.remote is not None and self.scheduler is not None and self.remote.unshipped:
                self.remote.ship_now()
                self.loop.call_later(LEAVE_AGAIN, self._stop_if_done)
            else:
                self.loop.stop()

    def _take_lock(self) -> None:
        """Take the lock of this worker: its next process begins when the last one has ended, with everything below it.

        A host whose supervisor was killed is still stopping its tasks.
        """
        file = os.open(os.path.join(self.config.spool_folder, "host.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("an earlier worker host is still stopping its tasks; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)

    def _kill_earlier_processes(self) -> None:
        """Kill processes of an earlier host's attempts, which are recognised by a mark in their environment."""
        count, deadline = 0, self.clock.monotonic() + SWEEP_PATIENCE
        while strays := [pid for pid in linux.marked(TASKS_MARK, self.config.home_mark) if pid != os.getpid()]:
            for pid in strays:
                linux.kill_quietly(pid)
            count = max(count, len(strays))
            if self.clock.monotonic() > deadline:
                log.error("processes of an earlier worker host cannot be killed", pids=strays)
                break
        if count:
            log.warning("processes of an earlier worker host were killed", count=count)

    def _raise_descriptor_limit(self) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wanted = 1 << 20 if hard == resource.RLIM_INFINITY else hard
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            log.warning("the limit of open files could not be raised", hard=hard)

    def _call_every(self, interval: int, call: object) -> None:
        def turn() -> None:
            if callable(call):
                call()
            self.loop.call_later(interval, turn)

        self.loop.call_later(interval, turn)

    # --- the scheduler --------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        if self.loop.stopping or self.remote is not None:
            return
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(self.config.scheduler_socket)
        except OSError:
            link.close()
            wait = RECONNECT_MS[min(self._failures, len(RECONNECT_MS) - 1)]
            self._failures += 1
            self.loop.call_later(wait * 1000, self._connect)
            return
        self._failures = 0
        self._connected(Connection(link, self.loop, self._on_order, self._scheduler_gone))

    def _connected(self, scheduler: Connection | RemoteLink) -> None:
        """Register with what is held here, and send again what has no answer."""
        self.scheduler = scheduler
        self.send(
            HostHello(
                self.name,
                os.getpid(),
                socket.gethostname(),
                self.config.slots,
                self._held(),
                triggers=tuple(self.triggers.wanted),
                previous_process=self.record.previous_process,
                previous_end=self.record.previous_end,
                log_trouble=self.final_lines.trouble,
                queues=self.config.queues,
                executors=self.config.executors,
                draining=self.draining or self.stopping,
            )
        )
        self._resend()
        for attempt in self.attempts.values():
            for request in attempt.asked.values():
                self.send(FromRunner(attempt.key, request))

    def _held(self) -> tuple[AttemptKey, ...]:
        """The attempts that no other worker may get: running attempts, and attempts whose report is not acknowledged.

        If the registration left out a report, the scheduler would give up its attempt and run a finished task again.
        """
        running = (key for key, attempt in self.attempts.items() if attempt.verdict is None)
        return tuple({*running, *self.unacknowledged, *(workload.key for workload in self.pending)})

    def _scheduler_gone(self, connection: Connection | RemoteLink) -> None:
        self.scheduler = None
        self._write_spool(self.unacknowledged)
        if self.stopping:
            self._stop_if_done()
        self._connect()

    def send(self, message: object) -> None:
        """Send to the scheduler. While it is away nothing is sent."""
        if self.scheduler is not None:
            if self.remote is not None:
                self.remote.prepare(message)
            self.scheduler.send(encode(message))

    def _on_order(self, connection: Connection | RemoteLink, document: bytes) -> None:
        try:
            order: FromScheduler = decode_from_scheduler(document)
        except msgspec.MsgspecError as error:
            log.error("a message of the scheduler cannot be read", error=str(error))
            return
        if self.lease is not None and not isinstance(order, LeaseEnded):
            self.lease.renew()
        if isinstance(order, Submit):
            fp("host.took_order")
            for workload in order.workloads:
                self._submit(workload)
        elif isinstance(order, ToRunner):
            self._answered(order)
        elif isinstance(order, Cancel):
            self._cancel(order)
        elif isinstance(order, Withdraw):
            self._withdraw(order)
        elif isinstance(order, EndLog):
            self.final_lines.append(order.line.log, order.line)
        elif isinstance(order, RunTriggers):
            for trigger in order.triggers:
                self._with_folder(trigger.bundle, trigger.bundle_version, partial(self._run_trigger, trigger))
        elif isinstance(order, DropTriggers):
            self.triggers.drop(order.keys)
        elif isinstance(order, WatcherEventTaken):
            self.triggers.event_taken(order)
        elif isinstance(order, CallbackOrder):
            self._with_folder(order.workload.bundle, order.workload.bundle_version, partial(self._take_callback, order))
        elif isinstance(order, Reconcile):
            self._reconcile(order)
        elif isinstance(order, StandbyReady):
            if self.lease is not None:
                self.lease.start()
        elif isinstance(order, LeaseEnded):
            if self.lease is not None:
                self.lease.end(order.reason)
        elif isinstance(order, Welcome) and order.refused:
            log.error("the scheduler refused this host", why=order.refused)

    # --- DAG files ----------------------------------------------------------------------------------------------------

    def _folder(self, bundle: str, version: str | None) -> str | None:
        """The folder of a bundle's files on this machine. None: they are being fetched; `files_ready` is called afterwards."""
        if self.remote is not None and self.remote.files is not None:
            return self.remote.files.folder(bundle, version)
        if version is not None and self.local_versions.has(bundle):
            return self.local_versions.folder(bundle, version)
        return self.config.folder(bundle)

    def _with_folder(self, bundle: str, version: str | None, call: Callable[[str], None]) -> None:
        """Call this with the folder of a bundle's files, as soon as the files are on this machine."""
        folder = self._folder(bundle, version)
        if folder is not None:
            call(folder)
        else:
            self._need_files.append((bundle, version, call))

    def _run_trigger(self, trigger: TriggerOrder, folder: str) -> None:
        self.triggers.run([msgspec.structs.replace(trigger, folder=folder)])

    def _take_callback(self, order: CallbackOrder, folder: str) -> None:
        self.callbacks.take(msgspec.structs.replace(order, workload=msgspec.structs.replace(order.workload, folder=folder)))

    def files_ready(self) -> None:
        """DAG files have arrived: begin the attempts, triggers and callbacks that wait for them."""
        waiting, self._need_files = self._need_files, []
        for bundle, version, call in waiting:
            self._with_folder(bundle, version, call)
        self._launch_pending()

    def local_folder(self, bundle: str) -> str:
        """Absolute path of a bundle's files on this machine, used if the gateway sends no files."""
        return self.config.folder(bundle)

    def used_folders(self) -> set[str]:
        """Folders of the DAG files that running attempts use."""
        return {attempt.workload.folder for attempt in self.attempts.values()}

    def _reconcile(self, order: Reconcile) -> None:
        """Say which of these attempts are not here and, if the list is complete, which others run here."""
        nonces = order.nonces or ("",) * len(order.attempts)
        for key, nonce in zip(order.attempts, nonces, strict=True):
            if not self._holds(key, nonce):
                self.send(AttemptGone(key, NOT_HERE, nonce, self.name))
        if order.complete:
            listed = set(order.attempts)
            running = (key for key, attempt in self.attempts.items() if attempt.started and attempt.verdict is None)
            unlisted = tuple(key for key in running if key not in listed)
            if unlisted:
                self.send(Unlisted(unlisted))

    def _holds(self, key: AttemptKey, nonce: str) -> bool:
        """Whether this worker host has the process of this nonce (empty: any process), or its report."""
        attempt = self.attempts.get(key)
        if attempt is not None:
            return nonce in ("", attempt.nonce)
        return key in self.unacknowledged or self._is_pending(key)

    def _is_pending(self, key: AttemptKey) -> bool:
        return any(workload.key == key for workload in self.pending)

    # --- through a gateway --------------------------------------------------------------------------------------------

    def _make_remote_link(self, config: GatewayConfig) -> RemoteLink:
        from tradewind.worker.remote_link import RemoteLink  # lazy import: loads TLS and WebSockets

        return RemoteLink(self, config, self.config.log_folder, self.config.limits.xcom_folder, self.clock, self.loop)

    def gateway_opened(self) -> None:
        """A scheduler is connected: register."""
        if self.remote is not None:
            self._connected(self.remote)

    def gateway_closed(self) -> None:
        """No scheduler is connected any more."""
        if self.remote is not None and self.scheduler is not None:
            self._scheduler_gone(self.remote)

    def on_scheduler_document(self, document: bytes) -> None:
        """Handle a message of the scheduler."""
        if self.remote is not None:
            self._on_order(self.remote, document)

    def lease_ended(self, reason: str, grace: int) -> None:
        """The scheduler is about to give the attempts to another worker: stop them, and kill them after `grace` microseconds."""
        self._give_back_pending()
        for attempt in list(self.attempts.values()):
            attempt.stop("stopping", reason, min(self.config.kill_grace, grace))

    def held_attempts(self) -> set[AttemptKey]:
        """Attempts of this worker host: running, waiting, or with a report that was not acknowledged."""
        pending = (workload.key for workload in self.pending)
        return {*self.attempts, *self.unacknowledged, *pending, *self.triggers.wanted}

    def open_logs(self) -> set[str]:
        """Paths of logs that are being written, relative to the log folder."""
        return {attempt.workload.log for attempt in self.attempts.values()}

    def has_scheduler(self) -> bool:
        """Whether a scheduler is connected."""
        return self.scheduler is not None

    def is_busy(self) -> bool:
        """Whether a task is running."""
        return bool(self.attempts)

    # --- taking work ------------------------------------------------------------------------------------------------------

    def _submit(self, workload: Workload) -> None:
        """Take an attempt, once. If an older process of the task instance is alive, the attempt waits for its end."""
        key = workload.key
        if self.draining or self.stopping or key in self.attempts or key in self.unacknowledged or self._is_pending(key):
            return
        self.pending.append(workload)
        self._launch_pending()

    def _make_offers(self) -> Offers:
        from tradewind.worker.offers import Offers, signature_check  # lazy import: only beside a Celery worker

        check = self.remote.claim if self.remote is not None else signature_check(self.config.offers_key)
        return Offers(self.config.offers_socket, check, self, self.loop)

    def take_offer(self, workload: Workload) -> str:
        """Take an attempt from a Celery worker. See `worker.offers.OfferTaker`."""
        key = workload.key
        if self.draining or self.stopping:
            return "busy"
        if key in self.attempts or key in self.unacknowledged or self._is_pending(key):
            return "refused"
        self._submit(workload)
        return ""

    def stop_attempt(self, key: AttemptKey, reason: str) -> None:
        """Stop an attempt, if this worker host has it."""
        self._cancel(Cancel(key, reason, self.config.kill_grace))

    def _launch_pending(self) -> None:
        waiting: deque[Workload] = deque()
        while self.pending and not (self.config.slots and len(self.attempts) >= self.config.slots):
            workload = self.pending.popleft()
            folder = self._folder(workload.bundle, workload.bundle_version)
            if folder is None:
                waiting.append(workload)
                continue
            older = self.by_task.get((workload.run, workload.slot))
            if older is not None:
                older.stop("cancelled", "a newer attempt was dispatched", self.config.kill_grace)
                waiting.append(workload)
            else:
                self._launch(msgspec.structs.replace(workload, folder=folder))
        self.pending.extendleft(reversed(waiting))

    def _make_attempt(self, workload: Workload) -> Attempt:
        return Attempt(self, workload)

    def _launch(self, workload: Workload) -> None:
        fp("host.launch")
        attempt = self._make_attempt(workload)
        self.attempts[attempt.key] = attempt
        self.by_task[workload.run, workload.slot] = attempt
        self._begin(attempt)

    def _begin(self, attempt: Attempt) -> None:
        """Have a process created for this attempt."""
        if HAVE_LINUX and self.config.task_start == "template":
            self._templates_for(attempt.workload).run(attempt)
        else:
            self._start_fresh(attempt)

    # --- the base image and its templates --------------------------------------------------------------------------------

    def _make_templates(self) -> Templates:
        return Templates(self.config, self.loop, self.clock, self._exited, self._orphaned, self._kill_strays)

    def _all_templates(self) -> list[Templates]:
        return [self.templates] if self.isolated_templates is None else [self.templates, self.isolated_templates]

    def _templates_for(self, workload: Workload) -> Templates:
        """An isolated task gets a base image that only such tasks use."""
        if not self._isolated.is_isolated((workload.dag_id, workload.task_id), self.clock.monotonic()):
            return self.templates
        if self.isolated_templates is None:
            self.isolated_templates = self._make_templates()
            self.isolated_templates.start_base()
        elif self.isolated_templates.closed:
            return self.templates
        log.warning(
            "this task was running whenever a base image or template of the worker host died; it runs isolated",
            dag=workload.dag_id,
            task=workload.task_id,
        )
        return self.isolated_templates

    def _close_isolated_templates(self) -> None:
        """End the isolated base image when no task is isolated any more. It ends after its last task process."""
        if self.isolated_templates is None or self._isolated.remembers(self.clock.monotonic()):
            return
        if not self.isolated_templates.closed:
            self.isolated_templates.close()
        elif self.isolated_templates.base is None:
            self.isolated_templates = None

    def _orphaned(self, pids: set[int]) -> None:
        """A template or a base image died. The processes that it had forked are, or will soon be, children of this process."""
        self._orphans |= pids
        running = [a.workload for a in self.attempts.values() if a.started and not a.ended]
        self._isolated.died(self.clock.monotonic(), ((work.dag_id, work.task_id) for work in running))
        self._wait_for_orphans()

    def _wait_for_orphans(self) -> None:
        for pid in list(self._orphans):
            try:
                ended, status, measured = os.wait4(pid, os.WNOHANG)
            except ChildProcessError:
                if linux.start_time(pid) is None:
                    self._orphans.discard(pid)
                    self._ended_with_template(pid)
                continue  # its template has not quite ended
            if ended:
                self._exited(pid, status, used(measured))

    def _ended_with_template(self, pid: int) -> None:
        """The template died after it had waited for its task process, and before it reported the end."""
        why = "its process and the template that forked it ended together; the exit code is not known"
        attempt = self.by_pid.pop(pid, None)
        if attempt is None:
            self.triggers.exited(pid)
            self.callbacks.lost(pid, why)
            return
        attempt.read_remaining_output()
        if attempt.verdict is None:
            outcome = Outcome.LOST if attempt.started else Outcome.REFUSED
            self.verdict(attempt, Report(0, outcome, reason=why, ended=self.clock.wall()))
        self._kill_strays()
        self.end(attempt, why)

    def _start_fresh(self, attempt: Attempt) -> None:
        channel, log_write = attempt.descriptors()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "tradewind.worker.fresh_interpreter", str(channel), str(log_write), str(os.getpid())],
                stdin=subprocess.PIPE,
                pass_fds=[channel, log_write],
                env=self.config.environment(),
            )
        except OSError as error:
            attempt.could_not_start(f"an interpreter could not be started: {error.strerror}", file_broken=False)
            return
        assert process.stdin is not None
        try:
            process.stdin.write(encode_order(FreshOrder(attempt.workload, self.config.limits)))
            process.stdin.close()
        except BrokenPipeError:
            pass
        self._fresh[process.pid] = process
        attempt.handed_over()
        attempt.forked(process.pid)
        if not HAVE_LINUX:
            self._watch_channel(attempt, process)

    def _watch_channel(self, attempt: Attempt, process: subprocess.Popen[bytes]) -> None:
        """Poll for the end of the process on systems without pidfds and subreapers."""
        if process.poll() is None:
            self.loop.call_later(20_000, lambda: self._watch_channel(attempt, process))
        else:
            self._fresh.pop(process.pid, None)
            self._exited(process.pid, _as_wait_status(process.returncode))

    def forked(self, attempt: Attempt) -> None:
        """The process of this attempt exists."""
        fp("host.forked")
        self.by_pid[attempt.pid] = attempt
        if attempt.killing is not None:
            attempt.signal(signal.SIGTERM)

    # --- what task processes send ------------------------------------------------------------------------------------------

    def ask_start(self, attempt: Attempt, start: Start) -> None:
        """The task process asks for permission to start. An attempt that is being stopped does not start."""
        if attempt.killing is not None:
            attempt.answer(Refused(start.op, attempt.kill_reason))
        elif not drop("start", attempt.key):
            attempt.asked[start.op] = start
            fp("host.before_start_ask")
            self.send(FromRunner(attempt.key, start))

    def forward(self, attempt: Attempt, request: RunnerRequest) -> None:
        """A request of user code. It is sent again when the scheduler is back: the task only sees a slow answer."""
        attempt.asked[request.op] = request
        self.send(FromRunner(attempt.key, request))

    def called_back(self, attempt: Attempt, said: CalledBack) -> None:
        """The process has called the callbacks of its task. If the report is sent again, the new report says so too.

        If the final result differs from the reported one, the process has called other callbacks than those that are due.
        """
        if attempt.called_back or attempt.verdict is None or not attempt.verdict.calls_back:
            return
        attempt.called_back = True
        report = self.unacknowledged.get(attempt.key)
        if report is not None and said.done:
            self.unacknowledged[attempt.key] = msgspec.structs.replace(report, called_back=True)
        self.send(FromRunner(attempt.key, said))

    def verdict(self, attempt: Attempt, report: Report) -> None:
        """Record the result of an attempt. The first result counts; after an ordered kill the kill decides, not the process."""
        if attempt.verdict is not None:
            return
        if not report.rendered and attempt.rendered:
            report = msgspec.structs.replace(report, rendered=attempt.rendered)
        if not report.ended:
            report = msgspec.structs.replace(report, ended=self.clock.wall())
        report = attempt.without_secrets(self._with_kill(attempt, report))
        report = msgspec.structs.replace(report, nonce=attempt.nonce, host=self.name)
        attempt.verdict = report
        self.unacknowledged[attempt.key] = report
        self.final_lines.reported(attempt)
        fp("host.before_verdict")
        if self.scheduler is None:
            self._write_spool({attempt.key: report})
        elif not drop("report", attempt.key):
            self.send(FromRunner(attempt.key, report))
        fp("host.after_verdict")
        if attempt.killing is None:
            attempt.begin_overtime()

    def _with_kill(self, attempt: Attempt, report: Report) -> Report:
        outcome = {
            "timeout": Outcome.FAILED,
            "mute": Outcome.FAILED,
            "stopping": Outcome.LOST,
            "cancelled": Outcome.LOST,
        }.get(attempt.killing or "")
        failed = report.outcome in (Outcome.FAILED, Outcome.FAILED_FINAL)
        if outcome is None or (attempt.killing != "timeout" and not failed):
            return report
        if attempt.killing == "timeout" and report.outcome in _ANSWERS_TO_TIMEOUT:
            return report
        return Report(
            report.op,
            outcome,
            reason=attempt.kill_reason,
            ended=report.ended or self.clock.wall(),
            exit_code=report.exit_code,
            signal=report.signal,
            rendered=report.rendered,
            calls_back=report.calls_back and failed and outcome is Outcome.FAILED,
            cpu=report.cpu,
            peak_memory=report.peak_memory,
        )

    def _answered(self, order: ToRunner) -> None:
        key, answer = order.attempt, order.body
        if self.triggers.answered(key, answer):
            return
        report = self.unacknowledged.get(key)
        if report is not None and isinstance(answer, Accepted | Refused) and _is_answer_to(answer, report):
            fp("host.before_ack")
            del self.unacknowledged[key]
            if self.remote is not None:
                if key not in self.triggers.wanted:  # the trigger of a deferred attempt has the same key
                    self.remote.forget(key)
                self.remote.acknowledged(report)
            self.final_lines.answered(key, answer, self.attempts.get(key))
            if key in self.spooled:
                self.spooled.discard(key)
                if not self.spooled:
                    self.spool.clear()
            if not self.unacknowledged:
                self._stop_if_done()
            return
        if self.remote is not None and isinstance(answer, XComs):
            self.remote.with_spills(
                answer, lambda problem: self._forward_answer(key, Failure(answer.op, problem) if problem else answer)
            )
        else:
            self._forward_answer(key, answer)

    def _forward_answer(self, key: AttemptKey, answer: RunnerAnswer) -> None:
        """Give an answer of the scheduler to the process that asked."""
        attempt = self.attempts.get(key) or self.callbacks.find(key)
        if attempt is not None:
            fp("host.before_accept")
            attempt.answer(answer)
            if self.offers is not None and attempt.started:
                self.offers.started(key, attempt.pid)

    def _resend(self) -> None:
        """Safety net: send again what was not acknowledged."""
        for key, report in self.unacknowledged.items():
            self.send(FromRunner(key, report))
        self.triggers.resend()
        if self.remote is not None:
            self.files_ready()  # a version that could not be fetched is requested again
        self._close_isolated_templates()
        for templates in self._all_templates():
            templates.look_for_stalls()

    def _write_spool(self, verdicts: dict[AttemptKey, Report]) -> None:
        token = self.remote.token if self.remote is not None else lambda key: ""
        new = [(key, report, token(key)) for key, report in verdicts.items() if key not in self.spooled]
        try:
            self.spool.add(new)
            self.spooled.update(key for key, *_ in new)
        except OSError as error:
            log.error("reports cannot be written to the spool; they are kept in memory", error=error.strerror)

    # --- ends ----------------------------------------------------------------------------------------------------------------

    def _cancel(self, order: Cancel) -> None:
        self._drop_pending(lambda workload: workload.key == order.attempt)
        attempt = self.attempts.get(order.attempt)
        if attempt is None:
            self.send(AttemptGone(order.attempt, NOT_HERE, host=self.name))
        else:
            attempt.stop("cancelled", order.reason, order.grace)

    def _drop_pending(self, matches: Callable[[Workload], bool]) -> None:
        """Forget waiting attempts that are not current any more."""
        dropped = [workload for workload in self.pending if matches(workload)]
        if dropped:
            self.pending = deque(workload for workload in self.pending if workload not in dropped)
            for workload in dropped if self.offers is not None else ():
                assert self.offers is not None
                self.offers.ended(workload.key, None)

    def _withdraw(self, order: Withdraw) -> None:
        """A newer attempt of a task instance goes to another worker: end older attempts here, then confirm it."""
        run, slot, fence = order.attempt
        self._drop_pending(lambda one: (one.run, one.slot) == (run, slot) and one.fence < fence)
        older = self.by_task.get((run, slot))
        if older is None or older.key[2] >= fence:
            self.send(Withdrawn(order.attempt))
        else:
            self._withdrawing[run, slot] = order
            older.stop("cancelled", "a newer attempt was dispatched", order.grace)

    def _exited(self, pid: int, status: int, needed: Used | None = None) -> None:
        """Handle the end of a process. `needed`: the resources that it has used, if they are known."""
        self._orphans.discard(pid)
        attempt = self.by_pid.pop(pid, None)
        if attempt is None:
            self.triggers.exited(pid, status)
            self.callbacks.exited(pid, status)
            self._kill_strays()
            return
        attempt.read_remaining_output()
        if attempt.verdict is None:
            self.verdict(attempt, self._verdict_from_status(attempt, status, needed))
        fp("host.before_sweep")
        self._kill_strays()
        attempt.read_remaining_output()
        self.end(attempt, attempt.kill_reason)

    def _verdict_from_status(self, attempt: Attempt, status: int, needed: Used | None) -> Report:
        code = os.waitstatus_to_exitcode(status)
        if attempt.killing == "refused" or not attempt.started:
            return Report(0, Outcome.REFUSED, reason=english(phrase("cause_not_accepted")), ended=self.clock.wall())
        if code < 0:
            name = signal_name(-code)
            by_others = -code == signal.SIGKILL and not attempt.killing
            killed = _KILLED_BY_OTHERS[self.record.out_of_memory()](name) if by_others else phrase("cause_killed", signal=name)
            reason = english(killed)
        else:
            reason = english(phrase("cause_no_result", code=code))
        if attempt.killing is None:
            attempt.log.note("error", reason[0].upper() + reason[1:] + ".")
        return Report(
            0,
            Outcome.FAILED,
            reason=reason,
            ended=self.clock.wall(),
            exit_code=max(code, 0),
            signal=-code if code < 0 else None,
            cpu=None if needed is None else needed.cpu,
            peak_memory=None if needed is None else needed.memory,
        )

    def end(self, attempt: Attempt, why: str) -> None:
        """No process of the attempt is left: release its slot."""
        if attempt.ended:
            return
        self.final_lines.ends(attempt)
        attempt.close()
        self.final_lines.closed(attempt.log)
        if attempt.verdict is not None and attempt.verdict.calls_back:
            self.called_back(attempt, CalledBack(done=False))
        self.attempts.pop(attempt.key, None)
        if self.offers is not None:
            self.offers.ended(attempt.key, attempt.verdict)
        if self.by_task.get((attempt.key[0], attempt.key[1])) is attempt:
            del self.by_task[attempt.key[0], attempt.key[1]]
            withdraw = self._withdrawing.pop((attempt.key[0], attempt.key[1]), None)
            if withdraw is not None:
                self.send(Withdrawn(withdraw.attempt))
        if attempt.killing in ("cancelled", "refused"):
            self.send(AttemptGone(attempt.key, why, attempt.nonce, self.name))
        if self.config.is_single:
            self._end_after_attempt()
        self._launch_pending()
        self._stop_if_done()

    def _children_changed(self) -> None:
        """SIGCHLD: the base image, a fresh interpreter, or an orphan ended."""
        for pid, process in list(self._fresh.items()):
            if process.poll() is not None:
                del self._fresh[pid]
                self._exited(pid, _as_wait_status(process.returncode))
        self.triggers.poll()
        self._wait_for_orphans()
        self._kill_strays()

    def _kill_strays(self) -> None:
        if HAVE_LINUX:
            ours = {*self._fresh, *self._orphans, *self.triggers.own_children(), *self.local_versions.pids()}
            for templates in self._all_templates():
                ours |= templates.registered()
            strays = linux.reap_and_kill_orphans(ours, ask=self._not_registered_yet)
            if strays:
                log.info("stray processes of ended attempts were killed", count=len(strays))

    def _not_registered_yet(self) -> set[int]:
        """Children that are not registered yet: new base images, and task processes whose template has just died."""
        spared = set(self._orphans)
        for templates in self._all_templates():
            spared |= templates.listen() | templates.registered()
        return spared | self._orphans


def _is_answer_to(answer: Accepted | Refused, report: Report) -> bool:
    """Whether this is the answer to that report. A scheduler of an older release sends no nonce with it."""
    return answer.op == report.op and answer.nonce in ("", report.nonce)


def _as_wait_status(code: int) -> int:
    return -code if code < 0 else code << 8
