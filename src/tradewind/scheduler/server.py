"""The server of the scheduler process: the socket, the connected peers, and the event loop around `core.Scheduler`.

Peers are worker hosts, command lines, the API and the parser. Their messages become items of the inbox, or commands. After each
turn of the loop the scheduler processes all of them.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from tradewind.executors.local import LocalExecutor
from tradewind.kernel.events import AttemptVanished
from tradewind.model import errors
from tradewind.model.errors import InternalError, Stale, StoreError, StoreRefused, TradewindError
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewJob
from tradewind.model.states import OCCUPYING, TaskState
from tradewind.observe.failpoints import drop, fp
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.scheduler.attempts.change_effects import effects_of
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.scheduler.changes import FLUSH_AFTER
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.commands.refusal import refusal
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.duties import Duty
from tradewind.scheduler.explain.questions import QUESTIONS, ask
from tradewind.scheduler.inbox import FromWorker, RunEvent
from tradewind.scheduler.jobs import HOST, JobRegistry
from tradewind.scheduler.timers import LONGEST_WAIT
from tradewind.scheduler.waits.wait_index import WaitResult
from tradewind.store.port import Store
from tradewind.wire import commands as c
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    CLIENT_PROTOCOL,
    LOOKUP_CHANGED,
    PROTOCOL,
    READ_FILE,
    WATCHER_RUN,
    AssetsChanged,
    AttemptGone,
    AttemptKey,
    CallbackDone,
    CalledBack,
    Changed,
    ChangeRows,
    ClientHello,
    CommandRequest,
    CommandResult,
    Draining,
    Failure,
    FromRunner,
    GatewayHello,
    Goodbye,
    HostHello,
    LogTrouble,
    Notice,
    Relayed,
    Report,
    RunnerAnswer,
    RunnerRequest,
    SetStateEntry,
    SetVariable,
    Start,
    TimetableAnswer,
    ToRunner,
    ToScheduler,
    TriggerFired,
    TriggerRun,
    Unlisted,
    Value,
    WatcherEvent,
    Welcome,
    Withdrawn,
    WorkerAway,
    decode_to_scheduler,
    encode,
)
from tradewind.wire.worker_names import attempt_of_pod, is_remote, worker_of

log = Log("scheduler")

RECOVER_EVERY = SECOND // 2
DOUBLINGS_MAX = 6
"""Maximum number of times that the pause before reading the state again doubles, after bugs in a row: up to 32 seconds."""
MORE_WORK_DELAY = SECOND // 20
TIMETABLE_TIMEOUT = 25 * SECOND
"""Timeout of a custom timetable's answer for a command. Clients wait 30 seconds for a command."""
DISPATCH_TIMEOUT = 15 * SECOND
"""Maximum time for which `when_dispatched` waits until worker hosts have started all due attempts."""
_TOO_SLOW = "it took too long to answer"

Answerer = Callable[[RunnerRequest, AttemptKey], RunnerAnswer]


class Peer:
    """One connection, and the registration of its process."""

    __slots__ = ("connection", "gateway", "goodbye", "host", "is_noted", "log_trouble", "name", "service_id")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.name = ""
        self.host: HostHello | None = None
        """The registration of a worker host."""
        self.is_noted = False
        """Whether this worker host is recorded in the store."""
        self.gateway = ""
        """Name of a gateway; empty for other peers."""
        self.service_id = ""
        """Identifies the process of a service; empty for other peers."""
        self.goodbye = False
        """The peer has announced its normal end."""
        self.log_trouble = ""
        """Why a worker host cannot write task logs."""


class SchedulerServer:
    """See the module. `run` returns after TERM, or when this scheduler was superseded.

    Args:
        answer: answers questions of user code.
        loop: the event loop; None: a new one. (A simulation passes a loop without sockets and
            calls `begin`, `on_connect`, `on_document`, `on_disconnect` and `process` itself).
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        scheduler: Scheduler,
        executor: LocalExecutor,
        commands: Commands,
        answer: Answerer,
        duties: list[Duty],
        socket_path: str,
        loop: Loop | None = None,
        jobs: JobRegistry | None = None,
        remote_workers: RemoteWorkers | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.scheduler = scheduler
        self.executor = executor
        self.commands = commands
        self.answer = answer
        self.duties = duties
        self.socket_path = socket_path
        self.loop = loop if loop is not None else Loop(clock)
        self.jobs = jobs
        self.remote_workers = remote_workers
        self.peers: dict[Connection, Peer] = {}
        self._followers: dict[Connection, None] = {}
        """Connections of the peers that follow all notices."""
        self._watchers: dict[Connection, None] = {}
        """Connections of the peers that get messages about changes."""
        self._flush_pending = False
        self.workers: dict[str, Peer] = {}
        """Worker → the connection of its process."""
        self.parser: Peer | None = None
        """The connection of the parser, which answers questions about custom timetables and caches variables and connections."""
        self._waiting_for_timetables: dict[int, tuple[c.IncomingCommand, Callable[[CommandResult], None]]] = {}
        self._timetable_timeouts: dict[int, TimerHandle] = {}
        """Timeouts of the commands in `_waiting_for_timetables`."""
        self._questions: list[tuple[Peer, FromRunner]] = []
        self._seen_while_paused: set[tuple[Hashable, ...]] = set()
        """Messages of worker hosts since the store cannot be written. Worker hosts repeat messages; each is kept once."""
        self._waiting_hosts: dict[Connection, HostHello] = {}
        """Registrations that are answered after the store has the gateway of the worker."""
        self._on_dispatched: Callable[[], None] | None = None
        """Functions to call once, when worker hosts have started all attempts that were due."""
        self._recovering = False
        self._bugs_in_a_row = 0
        """Number of decisions in a row that failed because of a bug."""
        self._timer_due: int | None = None
        scheduler.notify = self.notify
        commands.epoch = scheduler.epoch

    # --- start and end -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Load the state, listen on the socket, and serve."""
        self.loop.on_signal(signal.SIGTERM, self.loop.stop)
        self.loop.on_signal(signal.SIGINT, self.loop.stop)
        listener = self._listen()
        broke: str | None = "it was ended by an error"
        if self.jobs is not None:
            self.jobs.begin()
        try:
            self.begin()
            while not self.loop.stopping and not self.scheduler.superseded:
                self.process()
                if self._on_dispatched is not None and self.is_all_dispatched():
                    self._report_dispatched()
                self.loop.turn(self.wait_time())
            if not self.scheduler.superseded:
                self.process()
            broke = "another scheduler has taken over" if self.scheduler.superseded else None
        finally:
            if self.jobs is not None and not self.scheduler.superseded:
                self.jobs.end(broke)
            with suppress(FileNotFoundError):
                os.unlink(self.socket_path)
            listener.close()
            for connection in list(self.peers):
                connection.close()
            self.store.close()

    def end_epoch(self) -> None:
        """Stop without another statement: this scheduler has lost its lease.

        The worker host of this machine counts the answers of the database's machine only after this scheduler has closed its
        connections (`worker.local_lease`). A database that hangs answers no statement for many seconds, and the tasks would be
        stopped meanwhile.
        """
        self.scheduler.superseded = True
        self.loop.stop()

    def when_dispatched(self, call: Callable[[], None]) -> None:
        """Call the function once, when all due attempts are dispatched, at the latest after `DISPATCH_TIMEOUT`."""
        if self._on_dispatched is None:
            self._on_dispatched = call
            self.loop.call_later(DISPATCH_TIMEOUT, self._give_up_dispatching)

    def is_all_dispatched(self) -> bool:
        """Whether there is nothing to decide now, and every attempt has been started. Attempts that are due later do not count."""
        if self.scheduler.busy or self.scheduler.paused:
            return False
        return all(state is not TaskState.QUEUED for _, state, _ in self.scheduler.hosts.attempts())

    def _report_dispatched(self) -> None:
        call, self._on_dispatched = self._on_dispatched, None
        if call is not None:
            call()

    def _give_up_dispatching(self) -> None:
        if self._on_dispatched is not None:
            log.warning("some due attempts could not be started in time; they stay queued", seconds=DISPATCH_TIMEOUT / SECOND)
            self._report_dispatched()

    def begin(self) -> None:
        """Load the state from the store, and schedule the duties."""
        self.scheduler.load()
        if self.remote_workers is not None:
            self.remote_workers.load(self.store.worker_gateways())
        fp("scheduler.loaded")
        for duty in self.duties:
            self._schedule_duty(duty)

    def _listen(self) -> socket.socket:
        with suppress(FileNotFoundError):
            os.unlink(self.socket_path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(self.socket_path)
        finally:
            os.umask(before)
        listener.listen(128)
        listener.setblocking(False)
        self.loop.watch(listener, selectors.EVENT_READ, lambda events: self._accept(listener))
        return listener

    def wait_time(self) -> int:
        """Maximum time that the loop may wait: until the next timer, at most `LONGEST_WAIT`."""
        if self.scheduler.paused:
            return LONGEST_WAIT  # the recovery has its own timer
        moments = [m for m in (self.scheduler.timers.next_due(), self.scheduler.callbacks.due()) if m is not None]
        wait = max(0, min(moments) - self.clock.wall()) if moments else LONGEST_WAIT
        return min(wait, LONGEST_WAIT)

    def process(self) -> None:
        """Decide, write and answer, after each turn of the loop."""
        self._decide()
        self._answer_questions()
        if self.scheduler.busy:  # a task has triggered a run
            self._decide()
        self._run_callbacks()
        if self.scheduler.changes and not self._flush_pending:
            self._flush_pending = True
            self.loop.call_later(FLUSH_AFTER, self._flush_changes)

    def _flush_changes(self) -> None:
        """Tell open web pages, through the API, what has changed."""
        self._flush_pending = False
        document = encode(Changed(self.scheduler.changes.take()))
        for connection in list(self._watchers):
            connection.send(document)

    def _watch(self, connection: Connection, *, begin: bool) -> None:
        if begin:
            self._watchers[connection] = None
        else:
            self._watchers.pop(connection, None)
        self.scheduler.changes.wanted = bool(self._watchers)

    def _run_callbacks(self) -> None:
        """Send the due callbacks and mails of the outbox to worker hosts."""
        scheduler, due = self.scheduler, self.scheduler.callbacks.due()
        if due is None or scheduler.paused or scheduler.superseded or due > (now := self.clock.wall()):
            return
        try:
            scheduler.callbacks.run_once(now)
        except Stale as error:
            scheduler.stop_superseded(error)
        except Exception:
            log.exception("the outbox cannot be processed; it is tried again")
            scheduler.callbacks.try_again(now)

    def _decide(self) -> None:
        try:
            self.scheduler.process()
            self._bugs_in_a_row = self._bugs_in_a_row if self.scheduler.paused else 0
        except StoreError as error:
            self.scheduler.record_failure(str(error))
        except Exception as error:
            self._bugs_in_a_row += 1
            log.exception(
                "a decision failed; the state is read again, and the decision repeated",
                in_a_row=self._bugs_in_a_row,
            )
            self.scheduler.record_failure(f"a bug in Tradewind, see the scheduler's log: {type(error).__name__}: {error}")
        self._tell_created_assets()
        if self.scheduler.paused and not self._recovering:
            self._recovering = True
            self.loop.call_later(RECOVER_EVERY << min(self._bugs_in_a_row, DOUBLINGS_MAX), self._recover)

    def _tell_created_assets(self) -> None:
        """Let the parser tell the listeners of plugins which assets and aliases are new."""
        try:
            created = self.store.take_created_assets()
        except StoreError as error:
            self.scheduler.record_failure(str(error))
            return
        self._tell_parser_of_assets(AssetsChanged(created=tuple(created)))

    def _tell_parser_of_assets(self, changed: AssetsChanged) -> None:
        """Let the parser call the listeners of plugins, at most once."""
        if (changed.created or changed.events) and self.parser is not None:
            self.parser.connection.send(encode(changed))

    def _recover(self) -> None:
        self._recovering = False
        if self.scheduler.recover():
            self._note_hosts()
            waiting, self._waiting_hosts = self._waiting_hosts, {}
            for connection, hello in waiting.items():
                if (peer := self.peers.get(connection)) is not None:
                    self._handle_or_disconnect(peer, hello)

    def _schedule_duty(self, duty: Duty) -> None:
        def turn() -> None:
            more = False
            if self.scheduler.trouble is None and not self.scheduler.superseded:
                try:
                    more = duty.run_once()
                except StoreError as error:
                    self.scheduler.record_failure(str(error))  # the state in memory may be incomplete
                except Exception as error:
                    log.exception("a duty failed; the state is read again, and the duty repeated", duty=duty.name)
                    self.scheduler.record_failure(f"the duty {duty.name} failed: {error}")
            self.loop.call_later(MORE_WORK_DELAY if more else duty.interval, turn)

        self.loop.call_later(duty.interval, turn)

    # --- peers --------------------------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except BlockingIOError:
                return
            self.on_connect(Connection(link, self.loop, self.on_document, self.on_disconnect))

    def on_connect(self, connection: Connection) -> None:
        """Add a peer that has connected."""
        self.peers[connection] = Peer(connection)

    def on_disconnect(self, connection: Connection) -> None:
        """Remove a peer whose connection is closed."""
        peer = self.peers.pop(connection, None)
        self._followers.pop(connection, None)
        self._waiting_hosts.pop(connection, None)
        self._watch(connection, begin=False)
        if peer is not None and connection.problem:
            log.warning("a peer is disconnected", peer=peer.name or "unknown", why=connection.problem)
        jobs = None if self.scheduler.superseded else self.jobs
        if peer is not None and peer.service_id and jobs is not None and not self._is_connected(peer.service_id):
            jobs.service_disconnected(peer.service_id, None if peer.goodbye else "its connection to the scheduler broke")
        if peer is not None and peer.gateway and self.remote_workers is not None:
            self.remote_workers.gateway_disconnected(peer.gateway)
        if peer is not None and peer is self.parser:
            self.parser = None
            self.scheduler.timetables.connect(None)
            for number in list(self._waiting_for_timetables):
                self._on_timetable_answer(TimetableAnswer(number, problem="the parser has ended before it answered; try again"))
        if peer is not None and peer.host is not None and self.workers.get(worker := worker_of(peer.host.host)) is peer:
            del self.workers[worker]
            if self.remote_workers is not None and is_remote(worker):
                self.remote_workers.disconnected(worker)
            self.executor.disconnect(worker)
            if attempt_of_pod(worker) is None:
                self.scheduler.callbacks.detach(worker, self.clock.wall())
                log.info(
                    "a worker host has disconnected; attempts that it has not started go to another worker host", worker=worker
                )
            self.scheduler.hosts.disconnected(worker)

    def _is_connected(self, service_id: str) -> bool:
        """Whether the service has connected again before its old connection was closed."""
        return any(peer.service_id == service_id for peer in self.peers.values())

    def _register_job(self, peer: Peer, service_id: str, job_type: str, hostname: str, pid: int) -> None:
        """Record a service that stays connected as a job."""
        peer.service_id = service_id
        if self.jobs is not None:
            executor = self.scheduler.executors.default if job_type == HOST else None
            self.jobs.service_connected(NewJob(service_id, job_type, hostname, self.jobs.unixname, pid, executor))

    def on_document(self, connection: Connection, document: bytes) -> None:
        """Handle one message of a peer. An error closes the connection of this peer and affects no other peer."""
        if self.scheduler.superseded:
            return  # the newer scheduler gets the message again
        peer = self.peers[connection]
        try:
            message: ToScheduler = decode_to_scheduler(document)
        except msgspec.MsgspecError as error:
            log.warning("a message cannot be read; the peer is disconnected", peer=peer.name, error=str(error))
            connection.close()
            return
        self._handle_or_disconnect(peer, message)

    def _handle_or_disconnect(self, peer: Peer, message: ToScheduler) -> None:
        try:
            self._handle(peer, message)
        except StoreError as error:
            self.scheduler.record_failure(str(error))
            peer.connection.close()
        except Exception:
            log.exception("a message could not be handled; the peer is disconnected", peer=peer.name)
            peer.connection.close()

    def _handle(self, peer: Peer, message: ToScheduler) -> None:
        if isinstance(message, FromRunner):
            self._from_runner(peer, message)
        elif isinstance(message, AttemptGone):
            if self._is_repeated(message.attempt, AttemptGone):
                return
            run, slot, fence = message.attempt
            self.scheduler.push(RunEvent(run, AttemptVanished(slot, fence, 0, message.reason, message.nonce, message.host)))
        elif isinstance(message, TriggerFired):
            if message.key[0] == WATCHER_RUN:
                self.scheduler.watchers.ended(message.key, message.end)
            elif not self._is_repeated(message.key, TriggerFired):
                self.scheduler.push(WaitResult(*message.key, message.end))
                if self.scheduler.metrics is not None:
                    self.scheduler.metrics.trigger_ended(message.end)
        elif isinstance(message, WatcherEvent):
            self.scheduler.watchers.fired(message)
        elif isinstance(message, Goodbye):
            peer.goodbye = True
        elif isinstance(message, LogTrouble):
            peer.log_trouble = message.trouble
        elif isinstance(message, CallbackDone):
            if self.scheduler.metrics is not None and not message.ok:
                self.scheduler.metrics.callback_failed(self.store, message.callback_id)
            self.scheduler.callbacks.done(message)
        elif isinstance(message, CommandRequest):
            self._on_request(message, lambda result: peer.connection.send(encode(result)))
        elif isinstance(message, TimetableAnswer):
            self._on_timetable_answer(message)
        elif isinstance(message, HostHello):
            self._register_host(peer, message)
        elif isinstance(message, Unlisted):
            if peer.host is not None:
                self._confirm_gateway(peer.host)
                self.scheduler.hosts.cancel_unlisted(worker_of(peer.host.host), message.attempts)
        elif isinstance(message, Withdrawn):
            if peer.host is not None:
                self.executor.withdrawn(worker_of(peer.host.host), message.attempt)
        elif isinstance(message, Draining):
            self._drain_host(peer, message)
        elif isinstance(message, GatewayHello | WorkerAway):
            self._from_gateway(peer, message)
        elif isinstance(message, Relayed):
            peer.name = message.address  # the peer's own first message follows
        else:
            self._register_client(peer, message)

    def _register_client(self, peer: Peer, hello: ClientHello) -> None:
        peer.name = hello.name
        if hello.follow:
            self._followers[peer.connection] = None
        if hello.watch:
            self._watch(peer.connection, begin=True)
        refused = None
        if hello.protocol != CLIENT_PROTOCOL:
            refused = (
                f"it speaks protocol {hello.protocol}, the scheduler {CLIENT_PROTOCOL}; restart both with the same release"
            )
        peer.connection.send(encode(Welcome(self.scheduler.epoch, CLIENT_PROTOCOL, refused)))
        if refused is None and hello.job_type and hello.service_id:
            self._register_job(peer, hello.service_id, hello.job_type, socket.gethostname(), hello.pid)
        if refused is not None:
            peer.connection.close()
        elif hello.answers_timetables:
            self.parser = peer
            self.scheduler.timetables.connect(lambda ask: peer.connection.send(encode(ask)))
            self.scheduler.mappers.send_again()

    def _register_host(self, peer: Peer, hello: HostHello) -> None:
        if hello.protocol != PROTOCOL:
            text = f"it speaks protocol {hello.protocol}, the scheduler {PROTOCOL}; restart it with this release"
            peer.connection.send(encode(Welcome(self.scheduler.epoch, PROTOCOL, text)))
            return
        worker = worker_of(hello.host)
        if self.remote_workers is not None and is_remote(worker):
            gateways = self.remote_workers.gateways_at_registration(worker, hello.gateway)
            if gateways is not None and not self._store_gateways(worker, gateways):
                self._waiting_hosts[peer.connection] = hello
                return
        before = self.workers.get(worker)
        if before is not None and before is not peer:  # a worker has one process at a time
            before.connection.close()
        fp("scheduler.host_registered")
        peer.host, peer.name, peer.is_noted = hello, f"host {hello.host}", False
        peer.log_trouble = hello.log_trouble
        self.workers[worker] = peer
        if self.remote_workers is not None and is_remote(worker):
            self.remote_workers.connected(worker, hello.gateway)
        is_lasting = attempt_of_pod(worker) is None
        """Whether it may run more than one attempt: a worker in a pod runs one, and gets no callbacks."""
        if is_lasting:
            self._note_hosts()
            self._register_job(peer, hello.host, HOST, hello.hostname, hello.pid)
        else:
            peer.is_noted = True
        peer.connection.send(encode(Welcome(self.scheduler.epoch)))
        self.executor.connect(
            hello.host,
            lambda message: peer.connection.send(encode(message)),
            queues=hello.queues,
            executors=hello.executors,
            slots=hello.slots,
            draining=hello.draining,
            live=hello.live,
            triggers=hello.triggers,
        )
        if is_lasting:
            self.scheduler.callbacks.attach(worker, lambda order: peer.connection.send(encode(order)))
        self._decide()
        self.scheduler.hosts.note_process(hello.host, hello.previous_process, hello.previous_end)
        self.scheduler.hosts.register(hello.host, frozenset(hello.live), frozenset(hello.triggers))

    def _confirm_gateway(self, hello: HostHello) -> None:
        """A worker host has received a message through its connection: it relies on no earlier gateway any more."""
        worker = worker_of(hello.host)
        if self.remote_workers is not None and is_remote(worker):
            gateways = self.remote_workers.gateways_at_confirmation(worker, hello.gateway)
            if gateways is not None:
                self._store_gateways(worker, gateways)

    def _store_gateways(self, worker: str, gateways: frozenset[str]) -> bool:
        """Store at which gateways a remote worker may believe to be registered. False: nothing can be written now."""
        assert self.remote_workers is not None
        if self.scheduler.paused or self.scheduler.superseded:
            return False
        try:
            self.store.record_worker_gateways(worker, gateways, self.clock.wall(), self.scheduler.epoch)
        except Stale as error:
            self.scheduler.stop_superseded(error)
            return False
        except StoreError as error:
            self.scheduler.record_failure(str(error))
            return False
        self.remote_workers.stored(worker, gateways)
        return True

    def _from_gateway(self, peer: Peer, message: GatewayHello | WorkerAway) -> None:
        """Handle a message of a gateway: it registers, or a worker has disconnected from it."""
        if self.remote_workers is None:
            return
        if isinstance(message, GatewayHello):
            peer.gateway, peer.name = message.name, f"gateway {message.name}"
            self.remote_workers.gateway_connected(message.name)
        elif peer.gateway:
            rest = self.remote_workers.away(peer.gateway, message.worker, message.lease)
            self.loop.call_later(rest + SECOND, partial(self.scheduler.hosts.lease_ended, message.worker))

    def _drain_host(self, peer: Peer, message: Draining) -> None:
        """Handle a worker host that finishes its running attempts. Attempts that it has not started go to another worker host."""
        if peer.host is not None:
            self.executor.drain(worker_of(peer.host.host), message.live)
            self.scheduler.hosts.drained()

    def _note_hosts(self) -> None:
        """Record the worker hosts in the store, for people. If this fails, the worker host works nevertheless."""
        for peer in self.workers.values():
            hello = peer.host
            if peer.is_noted or hello is None:
                continue
            try:
                self.store.record_worker_host(hello.host, hello.hostname, hello.pid, hello.slots, self.clock.wall())
                peer.is_noted = True
            except StoreError as error:
                self.scheduler.record_failure(str(error))
                return

    def _is_repeated(self, *what: Hashable) -> bool:
        """Whether the same message has arrived before, since the store cannot be written."""
        if not self.scheduler.paused:
            self._seen_while_paused.clear()
        elif what in self._seen_while_paused:
            return True
        else:
            self._seen_while_paused.add(what)
        return False

    def _from_runner(self, peer: Peer, message: FromRunner) -> None:
        if isinstance(message.body, Start | Report):
            if isinstance(message.body, Start):
                fp("scheduler.start_came")
            else:
                fp("scheduler.report_came")
            if peer.host is None and isinstance(message.body, Start):
                return  # its worker has not registered: nobody could say who runs the attempt. The host asks again
            host = peer.host.host if peer.host is not None else ""
            nonce = message.body.nonce if isinstance(message.body, Start) else ""
            if not self._is_repeated(message.attempt, type(message.body), nonce):
                self.scheduler.push(FromWorker(message.attempt, host, message.body))
        elif isinstance(message.body, CalledBack):
            self.scheduler.callbacks.called_back(message.attempt, message.body.done)
        else:
            if self.scheduler.paused:  # a worker host that has reconnected repeats the question
                said = message.attempt, message.body.op
                self._questions = [one for one in self._questions if (one[1].attempt, one[1].body.op) != said]
            self._questions.append((peer, message))

    def _answer_questions(self) -> None:
        """Answer questions of tasks after the commit, so that the answers include its changes."""
        questions, self._questions = self._questions, []
        for peer, message in questions:
            if self.scheduler.paused and isinstance(message.body, SetVariable | ChangeRows | SetStateEntry | TriggerRun):
                self._questions.append((peer, message))  # it has to write, and waits for the store
                continue
            fp("scheduler.before_answer")
            try:
                if isinstance(message.body, TriggerRun):
                    self._trigger(peer, message, message.body)
                    continue
                answer = self.answer(message.body, message.attempt)
                self._note_changes(message.body, answer)
            except StoreRefused as error:
                answer = Failure(message.body.op, str(error))
            except StoreError as error:
                self.scheduler.record_failure(str(error))
                self._questions.append((peer, message))
                continue
            except Exception as error:
                if isinstance(error, TradewindError) and not isinstance(error, InternalError):
                    self._send_answer(peer, message, Failure(message.body.op, str(error)))
                    continue
                log.exception("a question of a task could not be answered", attempt=str(message.attempt))
                answer = Failure(message.body.op, f"the scheduler could not answer: {error}")
            self._send_answer(peer, message, answer)

    def _note_changes(self, question: RunnerRequest, answer: RunnerAnswer) -> None:
        """Let the scheduler and the parser know what a task has changed: pools, variables, connections."""
        if not isinstance(question, SetVariable | ChangeRows) or not isinstance(answer, Value):
            return
        try:
            self._apply_effects(effects_of(question))
        except Exception as error:
            log.exception("the effect of a task's change could not be applied; everything is read from the store")
            self.scheduler.record_failure(f"the effect of a change by a task could not be applied: {error}")

    @staticmethod
    def _send_answer(peer: Peer, message: FromRunner, answer: RunnerAnswer) -> None:
        """Send an answer. If it cannot be encoded (an integer of more than 64 bits), the question gets a `Failure`."""
        try:
            document = encode(ToRunner(message.attempt, answer))
        except Exception as error:
            log.exception("an answer to a task cannot be sent", attempt=str(message.attempt))
            document = encode(ToRunner(message.attempt, Failure(message.body.op, f"the answer cannot be sent: {error}")))
        peer.connection.send(document)

    def _trigger(self, peer: Peer, message: FromRunner, question: TriggerRun) -> None:
        """Create or clear a run for a task: a command that is executed once in each try of the task."""

        def answer(body: RunnerAnswer) -> None:
            peer.connection.send(encode(ToRunner(message.attempt, body)))

        def done(result: CommandResult) -> None:
            if _is_store_error(result.error):
                self._questions.append((peer, message))  # it is repeated after the recovery
            elif result.error is not None:
                answer(Failure(question.op, result.message or result.error))
            else:
                answer(Value(question.op, True, msgspec.msgpack.decode(result.value)))

        run, slot, fence = message.attempt
        active_run = self.scheduler.active_runs_by_id.get(run)
        if (
            active_run is None
            or active_run.machine.fence[slot] != fence
            or active_run.machine.task_state(slot) not in OCCUPYING
        ):
            answer(Failure(question.op, "this attempt is not the current one any more; nothing was triggered"))
            return
        task = f"{active_run.row.dag_id}.{active_run.machine.name(slot)} in {active_run.row.run_id}"
        op = f"trigger/{run}/{slot}/{active_run.machine.tries[slot]}/{question.number}/{question.dag_id}"
        command = c.TriggerFromTask(
            question.dag_id,
            question.run_id,
            question.logical_date,
            question.conf,
            question.note,
            question.reset,
            question.fail_when_paused,
        )
        self._on_command(c.IncomingCommand(op, command, f"task {task}"), done)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _on_request(self, request: CommandRequest, then: Callable[[CommandResult], None]) -> None:
        """Decode a command of a client, and execute it."""
        try:
            incoming = c.receive(request)
        except TradewindError as error:
            then(refusal(request.op, "a command", error))
            return
        self._on_command(incoming, then)

    def _on_command(self, incoming: c.IncomingCommand, then: Callable[[CommandResult], None]) -> None:
        """Execute a command and pass its result to `then`. If a custom timetable must be asked first, wait for its answer."""
        timetables = self.scheduler.timetables
        try:
            asks = isinstance(incoming.command, c.Trigger | c.TriggerFromTask | c.MaterializeAsset | c.CreateBackfill)
            ask = self.commands.timetable_question(incoming.command, timetables.number()) if asks else None
        except Exception as error:
            then(refusal(incoming.op, c.name_of(incoming.command), error))
            return
        if ask is None:
            then(self._command(incoming))
            return
        self._waiting_for_timetables[ask.number] = (incoming, then)
        if timetables.connected:
            timetables.send(ask)
            self._timetable_timeouts[ask.number] = self.loop.call_later(
                TIMETABLE_TIMEOUT, lambda: self._on_timetable_answer(TimetableAnswer(ask.number, problem=_TOO_SLOW))
            )
        else:
            self._on_timetable_answer(
                TimetableAnswer(ask.number, problem="no parser is running, which could ask the timetable")
            )

    def _on_timetable_answer(self, answer: TimetableAnswer) -> None:
        waiting = self._waiting_for_timetables.pop(answer.number, None)
        timer = self._timetable_timeouts.pop(answer.number, None)
        if timer is not None:
            timer.cancel()
        if waiting is None:
            self.scheduler.schedules.on_timetable_answer(answer)
            return
        incoming, then = waiting
        then(self._command(incoming, answer))

    def _command(self, incoming: c.IncomingCommand, timetable_answer: TimetableAnswer | None = None) -> CommandResult:
        op, command, _ = incoming
        if isinstance(command, c.Ping):
            return c.result_for(op, self._ping_result())
        self._decide()  # also before a question: its answer includes all earlier events
        if type(command) in QUESTIONS:
            return self._answer_question(op, command)
        name = c.name_of(command)
        fp("scheduler.before_command")
        try:
            result, effects = self.commands.run(incoming, timetable_answer)
        except Exception as error:
            return refusal(op, name, error)
        fp("scheduler.after_command")
        if result.error is None and not drop("command", op):
            try:
                self._apply_effects(effects)
            except Exception as error:
                log.exception("the effect of a command could not be applied; everything is read from the store", command=name)
                self.scheduler.record_failure(f"the effect of the command {name} could not be applied: {error}")
        elif result.error == "Stale":
            self.scheduler.superseded = True
        elif _is_store_error(result.error):
            # perhaps it was written nevertheless: read everything from the store again
            self.scheduler.record_failure(result.message or "the store failed")
        return result

    def _apply_effects(self, effects: Effects) -> None:
        effects.apply(self.scheduler)
        self._tell_created_assets()
        self._tell_parser_of_assets(AssetsChanged(events=tuple(effects.asset_events)))
        if self.scheduler.metrics is not None and effects.asset_events:
            self.scheduler.metrics.assets_updated(len(effects.asset_events))
        if self.scheduler.changes.wanted:
            effects.note(self.scheduler)
        for dag_id in sorted(effects.dags | {row.dag_id for row in effects.created}):
            self.notify(Notice("dag", dag_id, at=self.clock.wall()))
        parser = self.parser
        if parser is not None:
            for what in sorted(effects.lookups):
                parser.connection.send(encode(Notice(LOOKUP_CHANGED, at=self.clock.wall(), text=what)))
            for file in sorted(effects.files):
                parser.connection.send(encode(Notice(READ_FILE, at=self.clock.wall(), text=file)))

    def _answer_question(self, op: str, question: c.Command[Any]) -> CommandResult:
        try:
            return c.result_for(op, ask(question, self.store, self.scheduler, self.clock.wall()))
        except Exception as error:
            return refusal(op, c.name_of(question), error)

    def _ping_result(self) -> c.PingResult:
        scheduler = self.scheduler
        return c.PingResult(
            epoch=scheduler.epoch,
            pid=os.getpid(),
            now=self.clock.wall(),
            live_runs=len(scheduler.active_runs_by_id),
            live_attempts=scheduler.hosts.live_attempts,
            waiting=scheduler.admission.waiting(),
            workers=tuple(self._worker_state(worker, peer) for worker, peer in self.workers.items()),
            waits=len(scheduler.waits.open),
            triggers=len(scheduler.waits.triggers()) + scheduler.watchers.count,
            executor=",".join(self.scheduler.executors.names),
            trouble=scheduler.trouble,
            log_trouble=next((peer.log_trouble for peer in self.workers.values() if peer.log_trouble), ""),
        )

    def _worker_state(self, worker: str, peer: Peer) -> c.WorkerState:
        """The state of one worker host."""
        hello = peer.host
        load = next((one for one in self.executor.loads if one.worker == worker), None)
        return c.WorkerState(
            worker=worker,
            host=hello.host if hello is not None else "",
            hostname=hello.hostname if hello is not None else "",
            pid=hello.pid if hello is not None else 0,
            queues=tuple(sorted(load.queues)) if load is not None else (),
            slots=load.slots if load is not None else 0,
            attempts=load.assigned if load is not None else 0,
            draining=load is not None and load.draining,
        )

    def notify(self, notice: Notice) -> None:
        """Send a notice to all followers."""
        if self._followers:
            document = encode(notice)
            for connection in list(self._followers):
                connection.send(document)


def _is_store_error(error: str | None) -> bool:
    kind = getattr(errors, error or "", None)
    return isinstance(kind, type) and issubclass(kind, StoreError) and not issubclass(kind, StoreRefused)
