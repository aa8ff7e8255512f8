"""The scheduler's process: the socket, the peers, the clockwork around `core.Scheduler`.

Peers are worker hosts (one at a time on this machine), command lines, the API and the parser. What they say becomes items in the
inbox or commands; after each turn of the loop the scheduler processes all of it.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

import msgspec

from tradewind.executors.local import LocalExecutor
from tradewind.kernel.events import AttemptVanished
from tradewind.model import errors
from tradewind.model.errors import Stale, StoreError, StoreRefused, TradewindError
from tradewind.model.moments import SECOND
from tradewind.model.states import OCCUPYING
from tradewind.observe.failpoints import drop, fp
from tradewind.observe.log import Log
from tradewind.scheduler.commands import TRIGGERING, Commands
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.duties import Duty
from tradewind.scheduler.effects import Effects
from tradewind.scheduler.items import FromWorker, RunEvent
from tradewind.scheduler.outlook import QUESTIONS, ask
from tradewind.scheduler.timers import LONGEST_WAIT
from tradewind.scheduler.waits import WaitNews
from tradewind.service.clock import Clock
from tradewind.service.loop import Loop
from tradewind.store.port import Store
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    LOOKUP_CHANGED,
    PROTOCOL,
    AttemptGone,
    AttemptKey,
    CallbackDone,
    CalledBack,
    ClientHello,
    Command,
    CommandResult,
    Failure,
    FromRunner,
    HostHello,
    Notice,
    Report,
    RunnerAnswer,
    RunnerRequest,
    SetVariable,
    Start,
    TimetableTold,
    ToRunner,
    ToScheduler,
    TriggerFired,
    TriggerRun,
    Value,
    Welcome,
    decode_to_scheduler,
    encode,
)

log = Log("scheduler")

RECOVER_EVERY = SECOND // 2
MORE_SOON = SECOND // 20
TIMETABLE_PATIENCE = 25 * SECOND
"""How long a command waits for a custom timetable. Clients give up after 30 seconds."""
_SILENT = "it took too long to answer"

Answerer = Callable[[RunnerRequest, AttemptKey], RunnerAnswer]


class Peer:
    """One connection and who it said it is."""

    __slots__ = ("connection", "follow", "host", "name")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.name = ""
        self.host: HostHello | None = None
        self.follow = False


class SchedulerServer:
    """See the module. `run` returns after TERM, when this scheduler was superseded, or when its turns are used up.

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
        self.peers: dict[Connection, Peer] = {}
        self.host: Peer | None = None
        self.asker: Peer | None = None
        """Who puts questions to custom timetables: the parser."""
        self._waiting_for_timetables: dict[int, tuple[Command, Callable[[CommandResult], None]]] = {}
        """Commands that can be carried out when a timetable has answered."""
        self._questions: list[tuple[Peer, FromRunner]] = []
        self._recovering = False
        self._host_noted = False
        """Is the host that is here written down in the store?"""
        self._timer_due: int | None = None
        scheduler.notify = self.notify
        commands.epoch = scheduler.epoch

    # --- life -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Load, listen, serve."""
        self.loop.on_signal(signal.SIGTERM, self.loop.stop)
        self.loop.on_signal(signal.SIGINT, self.loop.stop)
        listener = self._listen()
        try:
            self.begin()
            while not self.loop.stopping and not self.scheduler.superseded:
                self.process()
                if self.scheduler.turns_left == 0:
                    break
                self.loop.turn(self.patience())
            self.process()
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self.socket_path)
            listener.close()
            for connection in list(self.peers):
                connection.close()
            self.store.close()

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
            scheduler.callbacks.turn(now)
        except Stale as error:
            scheduler.stop_superseded(error)

    def _decide(self) -> None:
        try:
            self.scheduler.process()
        except StoreError as error:
            self.scheduler.stumble(str(error))
        if self.scheduler.paused and not self._recovering:
            self._recovering = True
            self.loop.call_later(RECOVER_EVERY, self._recover)

    def _recover(self) -> None:
        self._recovering = False
        if self.scheduler.recover():
            self._note_host()

    def _arrange(self, duty: Duty) -> None:
        def turn() -> None:
            more = False
            if self.scheduler.trouble is None:
                try:
                    more = duty.run_once()
                except StoreError as error:
                    self.scheduler.stumble(str(error))  # perhaps in the midst of reading something anew
                except Exception as error:
                    log.exception("a duty failed; everything is read anew, and it is tried again", duty=duty.name)
                    self.scheduler.stumble(f"the duty {duty.name} failed: {error}")
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
        if peer is not None and peer is self.asker:
            self.asker = None
            self.scheduler.timetables.connect(None)
            for number in list(self._waiting_for_timetables):
                self._timetable_told(TimetableTold(number, problem="the process that asks it went away; try again"))
        if peer is not None and peer is self.host:
            self.host = None
            self.executor.attach(None)
            self.scheduler.callbacks.attach(None)
            log.info("the worker host is gone; its tasks are handed to the next one")

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
            self.scheduler.stumble(str(error))
            connection.close()
        except Exception:
            log.exception("a message could not be handled; the peer is dropped", peer=peer.name)
            connection.close()

    def _take(self, peer: Peer, message: ToScheduler) -> None:
        if isinstance(message, FromRunner):
            self._from_runner(peer, message)
        elif isinstance(message, AttemptGone):
            run, slot, fence = message.attempt
            self.scheduler.push(RunEvent(run, AttemptVanished(slot, fence, 0, message.reason)))
        elif isinstance(message, TriggerFired):
            self.scheduler.push(WaitNews(*message.key, message.end))
        elif isinstance(message, CallbackDone):
            self.scheduler.callbacks.done(message)
        elif isinstance(message, Command):
            self._commanded(message, lambda result: peer.connection.send(encode(result)))
        elif isinstance(message, TimetableTold):
            self._timetable_told(message)
        elif isinstance(message, HostHello):
            self._host_came(peer, message)
        else:
            self._client_came(peer, message)

    def _client_came(self, peer: Peer, hello: ClientHello) -> None:
        peer.name, peer.follow = hello.name, hello.follow
        refused = None if hello.protocol == PROTOCOL else f"it speaks protocol {hello.protocol}, the scheduler {PROTOCOL}"
        peer.connection.send(encode(Welcome(self.scheduler.epoch, PROTOCOL, refused)))
        if refused is not None:
            peer.connection.close()
        elif hello.asks_timetables:
            self.asker = peer
            self.scheduler.timetables.connect(lambda ask: peer.connection.send(encode(ask)))

    def _host_came(self, peer: Peer, hello: HostHello) -> None:
        if hello.protocol != PROTOCOL:
            text = f"it speaks protocol {hello.protocol}, the scheduler {PROTOCOL}; restart it with this release"
            peer.connection.send(encode(Welcome(self.scheduler.epoch, PROTOCOL, text)))
            return
        if self.host is not None and self.host is not peer:
            self.host.connection.close()
        fp("scheduler.host_came")
        peer.host, peer.name, self.host = hello, f"host {hello.host}", peer
        self._host_noted = False
        self._note_host()
        peer.connection.send(encode(Welcome(self.scheduler.epoch)))
        self.executor.attach(lambda message: peer.connection.send(encode(message)))
        self.scheduler.callbacks.attach(lambda order: peer.connection.send(encode(order)))
        self.scheduler.process()
        self.scheduler.hosts.came(frozenset(hello.live), frozenset(hello.triggers))

    def _note_host(self) -> None:
        """For people. While it cannot be written the host works all the same: sent away, it would come back at once, for ever."""
        hello = self.host.host if self.host is not None else None
        if self._host_noted or hello is None:
            return
        try:
            self.store.note_host(hello.host, hello.hostname, hello.pid, hello.slots, self.clock.wall())
            self._host_noted = True
        except StoreError as error:
            self.scheduler.stumble(str(error))

    def _from_runner(self, peer: Peer, message: FromRunner) -> None:
        if isinstance(message.body, Start | Report):
            if isinstance(message.body, Start):
                fp("scheduler.start_came")
            else:
                fp("scheduler.report_came")
            host = peer.host.host if peer.host is not None else ""
            self.scheduler.push(FromWorker(message.attempt, host, message.body))
        elif isinstance(message.body, CalledBack):
            self.scheduler.callbacks.called_back(message.attempt, message.body.done)
        else:
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
                self.scheduler.stumble(str(error))
                self._questions.append((peer, message))
                continue
            except TradewindError as error:
                answer = Failure(message.body.op, str(error))
            except Exception as error:
                log.exception("a question of a task could not be answered", attempt=str(message.attempt))
                answer = Failure(message.body.op, f"the scheduler could not answer: {error}")
            peer.connection.send(encode(ToRunner(message.attempt, answer)))

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
                answer(Value(question.op, True, result.value))

        run, slot, fence = message.attempt
        box = self.scheduler.boxes.get(run)
        if box is None or box.machine.fence[slot] != fence or box.machine.task_state(slot) not in OCCUPYING:
            answer(Failure(question.op, "this attempt is not the current one any more; nothing was triggered"))
            return
        task = f"{box.row.dag_id}.{box.machine.name(slot)} in {box.row.run_id}"
        op = f"trigger/{run}/{slot}/{box.machine.tries[slot]}/{question.number}/{question.dag_id}"
        args = msgspec.structs.asdict(question)
        del args["op"], args["number"]
        self._commanded(Command(op, "trigger_from_task", args, f"task {task}"), done)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _commanded(self, command: Command, then: Callable[[CommandResult], None]) -> None:
        """Carry it out; one that needs a custom timetable's word first, when that has come. `then` takes the result."""
        desk = self.scheduler.timetables
        ask = self.commands.question(command, desk.number()) if command.name in TRIGGERING else None
        if ask is None:
            then(self._command(command))
            return
        self._waiting_for_timetables[ask.number] = (command, then)
        if desk.connected:
            desk.send(ask)
            self.loop.call_later(TIMETABLE_PATIENCE, lambda: self._timetable_told(TimetableTold(ask.number, problem=_SILENT)))
        else:
            self._timetable_told(TimetableTold(ask.number, problem="no parser is running that could ask it"))

    def _timetable_told(self, told: TimetableTold) -> None:
        waiting = self._waiting_for_timetables.pop(told.number, None)
        if waiting is None:
            self.scheduler.schedules.timetable_told(told)
            return
        command, then = waiting
        then(self._command(msgspec.structs.replace(command, args={**command.args, "told": told})))

    def _command(self, command: Command) -> CommandResult:
        if command.name == "ping":
            return CommandResult(command.op, self._state())
        if command.name in QUESTIONS:
            return self._ask(command)
        self.scheduler.process()
        fp("scheduler.before_command")
        try:
            result, effects = self.commands.run(command)
        except StoreError as error:
            return CommandResult(command.op, None, type(error).__name__, str(error))
        fp("scheduler.after_command")
        if result.error is None and not drop("command", command.op):
            try:
                self._follow_up(effects)
            except Exception as error:
                log.exception("the effect of a command could not be taken up; everything is read anew", command=command.name)
                self.scheduler.stumble(f"the effect of the command {command.name} could not be taken up: {error}")
        elif result.error == "Stale":
            self.scheduler.superseded = True
        elif _of_the_store(result.error):
            # perhaps it was written all the same: read everything anew
            self.scheduler.stumble(result.message or "the store failed")
        return result

    def _follow_up(self, effects: Effects) -> None:
        effects.take_up(self.scheduler)
        for dag_id in sorted(effects.dags):
            self.notify(Notice("dag", dag_id, at=self.clock.wall()))
        parser = self.asker
        if parser is not None:
            for what in sorted(effects.lookups):
                parser.connection.send(encode(Notice(LOOKUP_CHANGED, at=self.clock.wall(), text=what)))

    def _state(self) -> dict[str, object]:
        scheduler = self.scheduler
        return {
            "epoch": scheduler.epoch,
            "pid": os.getpid(),
            "now": self.clock.wall(),
            "live_runs": len(scheduler.boxes),
            "live_attempts": len(scheduler.hosts.attempts()),
            "waiting": scheduler.admission.waiting(),
            "host": self.host.name if self.host is not None else None,
            "waits": len(scheduler.waits.open),
            "triggers": len(scheduler.waits.triggers()),
            "executor": self.executor.name,
            "trouble": scheduler.trouble,
        }

    def _ask(self, command: Command) -> CommandResult:
        """After everything that has happened so far was decided: between a message and its decision nothing is in the way."""
        self._decide()
        try:
            return CommandResult(command.op, ask(command.name, self.store, self.scheduler, command.args, self.clock.wall()))
        except TradewindError as error:
            return CommandResult(command.op, None, type(error).__name__, str(error))

    def notify(self, notice: Notice) -> None:
        """Ring the bell of whoever follows."""
        followers = [peer for peer in self.peers.values() if peer.follow]
        if followers:
            document = encode(notice)
            for peer in followers:
                peer.connection.send(document)


def _of_the_store(error: str | None) -> bool:
    kind = getattr(errors, error or "", None)
    return isinstance(kind, type) and issubclass(kind, StoreError) and not issubclass(kind, StoreRefused)
