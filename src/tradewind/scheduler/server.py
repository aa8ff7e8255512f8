"""The scheduler's process: the socket, the peers, the clockwork around `core.Scheduler`.

Peers are worker hosts, command lines, the API and the parser. What they say becomes items in the inbox or commands; after each
turn of the loop the scheduler processes all of it.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Callable, Hashable
from contextlib import suppress

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
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.commands.refusal import refusal
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.duties import Duty
from tradewind.scheduler.explain.questions import QUESTIONS, ask
from tradewind.scheduler.inbox import FromWorker, RunEvent
from tradewind.scheduler.jobs import HOST, JobRegistry
from tradewind.scheduler.timers import LONGEST_WAIT
from tradewind.scheduler.waits.wait_index import WaitNews
from tradewind.store.port import Store
from tradewind.wire import commands as c
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    CLIENT_PROTOCOL,
    LOOKUP_CHANGED,
    PROTOCOL,
    AttemptGone,
    AttemptKey,
    CallbackDone,
    CalledBack,
    ClientHello,
    CommandRequest,
    CommandResult,
    Draining,
    Failure,
    FromRunner,
    Goodbye,
    HostHello,
    LogTrouble,
    Notice,
    Report,
    RunnerAnswer,
    RunnerRequest,
    SetVariable,
    Start,
    TimetableAnswer,
    ToRunner,
    ToScheduler,
    TriggerFired,
    TriggerRun,
    Unlisted,
    Value,
    Welcome,
    Withdrawn,
    decode_to_scheduler,
    encode,
)
from tradewind.wire.worker_names import worker_of

log = Log("scheduler")

RECOVER_EVERY = SECOND // 2
MOST_DOUBLINGS = 6
"""Where faults of ours follow each other, the pause before everything is read anew doubles so often: up to 32 seconds."""
MORE_SOON = SECOND // 20
TIMETABLE_PATIENCE = 25 * SECOND
"""How long a command waits for a custom timetable. Clients give up after 30 seconds."""
DISPATCH_PATIENCE = 15 * SECOND
"""How long `when_dispatched` waits for a worker host to start what is due."""
_SILENT = "it took too long to answer"

Answerer = Callable[[RunnerRequest, AttemptKey], RunnerAnswer]


class Peer:
    """One connection and who it said it is."""

    __slots__ = ("connection", "goodbye", "host", "is_noted", "log_trouble", "name", "service_id")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.name = ""
        self.host: HostHello | None = None
        """What a worker host said when it registered."""
        self.is_noted = False
        """Is this worker host written down in the store?"""
        self.service_id = ""
        """Names the process of a service; empty for other peers."""
        self.goodbye = False
        """It has said that it ends in order."""
        self.log_trouble = ""
        """Why a worker host cannot write task logs."""


class SchedulerServer:
    """See the module. `run` returns after TERM, or when this scheduler was superseded.

    Args:
        answer: answers what user code asks (`scheduler.questions`).
        loop: what waits for sockets and timers; a loop of its own unless given (a simulation gives one without sockets, and
            calls `begin`, `met`, `heard`, `closed` and `process` itself).
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
        self.peers: dict[Connection, Peer] = {}
        self._followers: dict[Connection, None] = {}
        """Connections of those peers that want to hear every notice."""
        self.workers: dict[str, Peer] = {}
        """Worker → the connection of its process."""
        self.parser: Peer | None = None
        """The connection of the parser, which answers questions about custom timetables and caches variables and connections."""
        self._waiting_for_timetables: dict[int, tuple[c.IncomingCommand, Callable[[CommandResult], None]]] = {}
        self._patience_with: dict[int, TimerHandle] = {}
        """Commands that can be carried out when a timetable has answered."""
        self._questions: list[tuple[Peer, FromRunner]] = []
        self._heard_while_paused: set[tuple[Hashable, ...]] = set()
        """What hosts said since nothing can be written. They repeat it; it is kept once."""
        self._on_dispatched: Callable[[], None] | None = None
        """Called once, when a worker host has started all that was due."""
        self._recovering = False
        self._faults = 0
        """How often in a row deciding failed by a fault of ours."""
        self._timer_due: int | None = None
        scheduler.notify = self.notify
        commands.epoch = scheduler.epoch

    # --- start and end -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Load, listen, serve."""
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
                    self._say_dispatched()
                self.loop.turn(self.patience())
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

    def when_dispatched(self, call: Callable[[], None]) -> None:
        """Call this, once, when all that is due is dispatched; after `DISPATCH_PATIENCE` in any case."""
        if self._on_dispatched is None:
            self._on_dispatched = call
            self.loop.call_later(DISPATCH_PATIENCE, self._give_up_dispatching)

    def is_all_dispatched(self) -> bool:
        """Is there nothing to decide now, and has every attempt been started? What comes due later does not count."""
        if self.scheduler.busy or self.scheduler.paused:
            return False
        return all(state is not TaskState.QUEUED for _, state, _ in self.scheduler.hosts.attempts())

    def _say_dispatched(self) -> None:
        call, self._on_dispatched = self._on_dispatched, None
        if call is not None:
            call()

    def _give_up_dispatching(self) -> None:
        if self._on_dispatched is not None:
            log.warning("not all that is due could be started in time; it stays queued", seconds=DISPATCH_PATIENCE / SECOND)
            self._say_dispatched()

    def begin(self) -> None:
        """Build everything from the store, and have the duties take their turns."""
        self.scheduler.load()
        fp("scheduler.loaded")
        for duty in self.duties:
            self._arrange(duty)

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

    def patience(self) -> int:
        """How long the loop may wait: until the next date, never longer than clocks can be trusted."""
        if self.scheduler.paused:
            return LONGEST_WAIT  # what is due waits for the recovery, which has its own timer
        moments = [m for m in (self.scheduler.timers.next_due(), self.scheduler.callbacks.due()) if m is not None]
        wait = max(0, min(moments) - self.clock.wall()) if moments else LONGEST_WAIT
        return min(wait, LONGEST_WAIT)

    def process(self) -> None:
        """What follows each turn of the loop: decide, write, answer."""
        self._decide()
        self._answer_questions()
        if self.scheduler.busy:  # a task has triggered a run
            self._decide()
        self._call_back()

    def _call_back(self) -> None:
        """What is to be called after the fact, when it is due."""
        scheduler, due = self.scheduler, self.scheduler.callbacks.due()
        if due is None or scheduler.paused or scheduler.superseded or due > (now := self.clock.wall()):
            return
        try:
            scheduler.callbacks.run_once(now)
        except Stale as error:
            scheduler.stop_superseded(error)
        except Exception:
            log.exception("the outbox cannot be worked through; it is tried again")
            scheduler.callbacks.try_again(now)

    def _decide(self) -> None:
        try:
            self.scheduler.process()
            self._faults = self._faults if self.scheduler.paused else 0
        except StoreError as error:
            self.scheduler.record_failure(str(error))
        except Exception as error:
            self._faults += 1
            log.exception("deciding failed; everything is read anew, and it is tried again", in_a_row=self._faults)
            self.scheduler.record_failure(f"a bug in Tradewind, see the scheduler's log: {type(error).__name__}: {error}")
        if self.scheduler.paused and not self._recovering:
            self._recovering = True
            self.loop.call_later(RECOVER_EVERY << min(self._faults, MOST_DOUBLINGS), self._recover)

    def _recover(self) -> None:
        self._recovering = False
        if self.scheduler.recover():
            self._note_hosts()

    def _arrange(self, duty: Duty) -> None:
        def turn() -> None:
            more = False
            if self.scheduler.trouble is None:
                try:
                    more = duty.run_once()
                except StoreError as error:
                    self.scheduler.record_failure(str(error))  # perhaps in the midst of reading something anew
                except Exception as error:
                    log.exception("a duty failed; everything is read anew, and it is tried again", duty=duty.name)
                    self.scheduler.record_failure(f"the duty {duty.name} failed: {error}")
            self.loop.call_later(MORE_SOON if more else duty.interval, turn)

        self.loop.call_later(duty.interval, turn)

    # --- peers --------------------------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except BlockingIOError:
                return
            self.met(Connection(link, self.loop, self.heard, self.closed))

    def met(self, connection: Connection) -> None:
        """Somebody has connected."""
        self.peers[connection] = Peer(connection)

    def closed(self, connection: Connection) -> None:
        """A peer is gone."""
        peer = self.peers.pop(connection, None)
        self._followers.pop(connection, None)
        if peer is not None and connection.problem:
            log.warning("a peer is disconnected", peer=peer.name or "unknown", why=connection.problem)
        if peer is not None and peer.service_id and self.jobs is not None and not self._is_here(peer.service_id):
            self.jobs.gone(peer.service_id, None if peer.goodbye else "its connection to the scheduler broke")
        if peer is not None and peer is self.parser:
            self.parser = None
            self.scheduler.timetables.connect(None)
            for number in list(self._waiting_for_timetables):
                self._on_timetable_answer(TimetableAnswer(number, problem="the process that asks it went away; try again"))
        if peer is not None and peer.host is not None and self.workers.get(worker := worker_of(peer.host.host)) is peer:
            del self.workers[worker]
            self.executor.disconnect(worker)
            self.scheduler.callbacks.detach(worker, self.clock.wall())
            log.info("a worker host is gone; what it has not started goes to another one", worker=worker)
            self.scheduler.hosts.disconnected(worker)

    def _is_here(self, service_id: str) -> bool:
        """Has a service connected anew before its former connection was seen to be closed?"""
        return any(peer.service_id == service_id for peer in self.peers.values())

    def _service_came(self, peer: Peer, service_id: str, job_type: str, hostname: str, pid: int) -> None:
        """A service that stays connected is a job."""
        peer.service_id = service_id
        if self.jobs is not None:
            executor = self.executor.name if job_type == HOST else None
            self.jobs.came(NewJob(service_id, job_type, hostname, self.jobs.unixname, pid, executor))

    def heard(self, connection: Connection, document: bytes) -> None:
        """One document of a peer. Whatever it does stays with the peer."""
        if self.scheduler.superseded:
            return  # what is in memory is not what is committed; the peer says it again to whoever comes
        peer = self.peers[connection]
        try:
            message: ToScheduler = decode_to_scheduler(document)
        except msgspec.MsgspecError as error:
            log.warning("a message that cannot be read; the peer is dropped", peer=peer.name, error=str(error))
            connection.close()
            return
        try:
            self._take(peer, message)
        except StoreError as error:
            self.scheduler.record_failure(str(error))
            connection.close()
        except Exception:
            log.exception("a message could not be handled; the peer is dropped", peer=peer.name)
            connection.close()

    def _take(self, peer: Peer, message: ToScheduler) -> None:
        if isinstance(message, FromRunner):
            self._from_runner(peer, message)
        elif isinstance(message, AttemptGone):
            if self._is_repeated(message.attempt, AttemptGone):
                return
            run, slot, fence = message.attempt
            self.scheduler.push(RunEvent(run, AttemptVanished(slot, fence, 0, message.reason, message.nonce, message.host)))
        elif isinstance(message, TriggerFired):
            if not self._is_repeated(message.key, TriggerFired):
                self.scheduler.push(WaitNews(*message.key, message.end))
        elif isinstance(message, Goodbye):
            peer.goodbye = True
        elif isinstance(message, LogTrouble):
            peer.log_trouble = message.trouble
        elif isinstance(message, CallbackDone):
            self.scheduler.callbacks.done(message)
        elif isinstance(message, CommandRequest):
            self._on_request(message, lambda result: peer.connection.send(encode(result)))
        elif isinstance(message, TimetableAnswer):
            self._on_timetable_answer(message)
        elif isinstance(message, HostHello):
            self._register_host(peer, message)
        elif isinstance(message, Unlisted):
            if peer.host is not None:
                self.scheduler.hosts.cancel_unlisted(worker_of(peer.host.host), message.attempts)
        elif isinstance(message, Withdrawn):
            if peer.host is not None:
                self.executor.withdrawn(worker_of(peer.host.host), message.attempt)
        elif isinstance(message, Draining):
            self._drain_host(peer, message)
        else:
            self._register_client(peer, message)

    def _register_client(self, peer: Peer, hello: ClientHello) -> None:
        peer.name = hello.name
        if hello.follow:
            self._followers[peer.connection] = None
        refused = None
        if hello.protocol != CLIENT_PROTOCOL:
            refused = (
                f"it speaks protocol {hello.protocol}, the scheduler {CLIENT_PROTOCOL}; restart both with the same release"
            )
        peer.connection.send(encode(Welcome(self.scheduler.epoch, CLIENT_PROTOCOL, refused)))
        if refused is None and hello.job_type and hello.service_id:
            self._service_came(peer, hello.service_id, hello.job_type, socket.gethostname(), hello.pid)
        if refused is not None:
            peer.connection.close()
        elif hello.answers_timetables:
            self.parser = peer
            self.scheduler.timetables.connect(lambda ask: peer.connection.send(encode(ask)))

    def _register_host(self, peer: Peer, hello: HostHello) -> None:
        if hello.protocol != PROTOCOL:
            text = f"it speaks protocol {hello.protocol}, the scheduler {PROTOCOL}; restart it with this release"
            peer.connection.send(encode(Welcome(self.scheduler.epoch, PROTOCOL, text)))
            return
        worker = worker_of(hello.host)
        before = self.workers.get(worker)
        if before is not None and before is not peer:  # one process of a worker lives at a time
            before.connection.close()
        fp("scheduler.host_registered")
        peer.host, peer.name, peer.is_noted = hello, f"host {hello.host}", False
        peer.log_trouble = hello.log_trouble
        self.workers[worker] = peer
        self._note_hosts()
        self._service_came(peer, hello.host, HOST, hello.hostname, hello.pid)
        peer.connection.send(encode(Welcome(self.scheduler.epoch)))
        self.executor.connect(
            hello.host,
            lambda message: peer.connection.send(encode(message)),
            queues=hello.queues,
            slots=hello.slots,
            draining=hello.draining,
            live=hello.live,
            triggers=hello.triggers,
        )
        self.scheduler.callbacks.attach(worker, lambda order: peer.connection.send(encode(order)))
        self._decide()
        self.scheduler.hosts.note_process(hello.host, hello.earlier, hello.earlier_end)
        self.scheduler.hosts.register(hello.host, frozenset(hello.live), frozenset(hello.triggers))

    def _drain_host(self, peer: Peer, message: Draining) -> None:
        """A worker host finishes what it runs. What it has not started goes to another worker."""
        if peer.host is not None:
            self.executor.drain(worker_of(peer.host.host), message.live)
            self.scheduler.hosts.drained()

    def _note_hosts(self) -> None:
        """For people. While they cannot be written the hosts work all the same: sent away, they would come back at once."""
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
        """Has the same been said already, and waits until the store can be written?"""
        if not self.scheduler.paused:
            self._heard_while_paused.clear()
        elif what in self._heard_while_paused:
            return True
        else:
            self._heard_while_paused.add(what)
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
            if self.scheduler.paused:  # a worker host that came back asks again, and hears the answer on its new line
                said = message.attempt, message.body.op
                self._questions = [one for one in self._questions if (one[1].attempt, one[1].body.op) != said]
            self._questions.append((peer, message))

    def _answer_questions(self) -> None:
        """After the commit, so that they see what it wrote."""
        questions, self._questions = self._questions, []
        for peer, message in questions:
            if self.scheduler.paused and isinstance(message.body, SetVariable | TriggerRun):
                self._questions.append((peer, message))  # it waits, as everything that has to be written does
                continue
            fp("scheduler.before_answer")
            try:
                if isinstance(message.body, TriggerRun):
                    self._trigger(peer, message, message.body)
                    continue
                answer = self.answer(message.body, message.attempt)
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

    @staticmethod
    def _send_answer(peer: Peer, message: FromRunner, answer: RunnerAnswer) -> None:
        """An answer that no message holds (an integer beyond 64 bits, say) is a failure of its question alone."""
        try:
            document = encode(ToRunner(message.attempt, answer))
        except Exception as error:
            log.exception("an answer to a task cannot be sent", attempt=str(message.attempt))
            document = encode(ToRunner(message.attempt, Failure(message.body.op, f"the answer cannot be sent: {error}")))
        peer.connection.send(document)

    def _trigger(self, peer: Peer, message: FromRunner, question: TriggerRun) -> None:
        """Make or clear a run for a task: a command like everybody's, carried out once in each try of the task."""

        def answer(body: RunnerAnswer) -> None:
            peer.connection.send(encode(ToRunner(message.attempt, body)))

        def done(result: CommandResult) -> None:
            if _of_the_store(result.error):
                self._questions.append((peer, message))  # it is tried again after the recovery
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
        """Check a command that came over the socket, and carry it out."""
        try:
            incoming = c.receive(request)
        except TradewindError as error:
            then(refusal(request.op, "a command", error))
            return
        self._on_command(incoming, then)

    def _on_command(self, incoming: c.IncomingCommand, then: Callable[[CommandResult], None]) -> None:
        """Carry out a command. Where a custom timetable has to be asked first, wait for its answer. `then` takes the result."""
        timetables = self.scheduler.timetables
        try:
            triggers = isinstance(incoming.command, c.Trigger | c.TriggerFromTask)
            ask = self.commands.timetable_question(incoming.command, timetables.number()) if triggers else None
        except Exception as error:
            then(refusal(incoming.op, c.name_of(incoming.command), error))
            return
        if ask is None:
            then(self._command(incoming))
            return
        self._waiting_for_timetables[ask.number] = (incoming, then)
        if timetables.connected:
            timetables.send(ask)
            self._patience_with[ask.number] = self.loop.call_later(
                TIMETABLE_PATIENCE, lambda: self._on_timetable_answer(TimetableAnswer(ask.number, problem=_SILENT))
            )
        else:
            self._on_timetable_answer(TimetableAnswer(ask.number, problem="no parser is running that could ask it"))

    def _on_timetable_answer(self, told: TimetableAnswer) -> None:
        waiting = self._waiting_for_timetables.pop(told.number, None)
        timer = self._patience_with.pop(told.number, None)
        if timer is not None:
            timer.cancel()
        if waiting is None:
            self.scheduler.schedules.on_timetable_answer(told)
            return
        incoming, then = waiting
        then(self._command(incoming, told))

    def _command(self, incoming: c.IncomingCommand, timetable_answer: TimetableAnswer | None = None) -> CommandResult:
        op, command, _ = incoming
        if isinstance(command, c.Ping):
            return c.done(op, self._state())
        self._decide()  # before a question too: its answer tells of everything that has happened so far
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
                self._follow_up(effects)
            except Exception as error:
                log.exception("the effect of a command could not be applied; everything is read from the store", command=name)
                self.scheduler.record_failure(f"the effect of the command {name} could not be applied: {error}")
        elif result.error == "Stale":
            self.scheduler.superseded = True
        elif _of_the_store(result.error):
            # perhaps it was written all the same: read everything anew
            self.scheduler.record_failure(result.message or "the store failed")
        return result

    def _follow_up(self, effects: Effects) -> None:
        effects.apply(self.scheduler)
        for dag_id in sorted(effects.dags | {row.dag_id for row in effects.created}):
            self.notify(Notice("dag", dag_id, at=self.clock.wall()))
        parser = self.parser
        if parser is not None:
            for what in sorted(effects.lookups):
                parser.connection.send(encode(Notice(LOOKUP_CHANGED, at=self.clock.wall(), text=what)))

    def _answer_question(self, op: str, question: c.Command[c.Explanation]) -> CommandResult:
        try:
            return c.done(op, ask(question, self.store, self.scheduler, self.clock.wall()))
        except Exception as error:
            return refusal(op, c.name_of(question), error)

    def _state(self) -> c.PingResult:
        scheduler = self.scheduler
        return c.PingResult(
            epoch=scheduler.epoch,
            pid=os.getpid(),
            now=self.clock.wall(),
            live_runs=len(scheduler.active_runs_by_id),
            live_attempts=scheduler.hosts.live_attempts,
            waiting=scheduler.admission.waiting(),
            host=next((peer.name for peer in self.workers.values()), None),
            workers=tuple(self._worker_state(worker, peer) for worker, peer in self.workers.items()),
            waits=len(scheduler.waits.open),
            triggers=len(scheduler.waits.triggers()),
            executor=self.executor.name,
            trouble=scheduler.trouble,
            log_trouble=next((peer.log_trouble for peer in self.workers.values() if peer.log_trouble), ""),
        )

    def _worker_state(self, worker: str, peer: Peer) -> c.WorkerState:
        """One worker host, for people."""
        hello = peer.host
        load = next((one for one in self.executor.loads if one.worker == worker), None)
        return c.WorkerState(
            worker=worker,
            hostname=hello.hostname if hello is not None else "",
            pid=hello.pid if hello is not None else 0,
            queues=tuple(sorted(load.queues)) if load is not None else (),
            slots=load.slots if load is not None else 0,
            attempts=load.assigned if load is not None else 0,
            draining=load is not None and load.draining,
        )

    def notify(self, notice: Notice) -> None:
        """Ring the bell of whoever follows."""
        if self._followers:
            document = encode(notice)
            for connection in list(self._followers):
                connection.send(document)


def _of_the_store(error: str | None) -> bool:
    kind = getattr(errors, error or "", None)
    return isinstance(kind, type) and issubclass(kind, StoreError) and not issubclass(kind, StoreRefused)
