"""The real worker host and its attempts, with task processes that exist only in virtual time."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from tradewind.client.channel import START_OP
from tradewind.model.branch import Branch
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome
from tradewind.model.waits import Deferral
from tradewind.simulation.callback_checks import Asked
from tradewind.simulation.callbacks import VirtualCallbackProcesses
from tradewind.simulation.timeline import NodeClock, Process, VirtualLoop
from tradewind.simulation.triggers import VirtualTriggerManager
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    Accepted,
    AttemptKey,
    CalledBack,
    HostHello,
    LastLine,
    Refused,
    Report,
    RunnerRequest,
    Start,
    TriggerRun,
    Workload,
    XComValue,
    decode_answer,
    encode,
)
from tradewind.wire.worker_names import process_name
from tradewind.worker.attempt import Attempt
from tradewind.worker.config import HostConfig, TaskLimits
from tradewind.worker.final_log_lines import FinalLogLines
from tradewind.worker.host import WorkerHost
from tradewind.worker.log_capture import LogCapture
from tradewind.worker.spool import Spool

if TYPE_CHECKING:
    from tradewind.simulation.world import World

KILLED, TERMINATED = int(signal.SIGKILL), int(signal.SIGTERM)


class Behaviour(NamedTuple):
    """The drawn behaviour of a task process."""

    duration: int
    outcome: str
    """An `Outcome`; or "crash" (dies without a report), "exit" (ends with an exit code and without a report)."""
    branch: Branch | None = None
    map_length: int | None = None
    reschedule_in: int = 0
    obeys_term: bool = True
    lives_on: int = 0
    """Microseconds that the process continues after its report."""
    triggers: str | None = None
    """The DAG of which the task triggers a run."""
    deferral: Deferral | None = None
    """The wait of the task, for the outcome "deferred"."""


def host_config(slots: int, **changed: Any) -> HostConfig:
    limits = TaskLimits("", 0, 0, 0, 0, 0)
    config = HostConfig(
        home_mark="world",
        scheduler_socket="",
        spool_folder="",
        log_folder="",
        slots=slots,
        task_start="template",
        malloc="default",
        drain_timeout=20 * SECOND,
        template_max=1,
        template_idle=SECOND,
        dynamic_template_max_age=SECOND,
        start_retry=5 * SECOND,
        kill_grace=10 * SECOND,
        stop_grace=10 * SECOND,
        overtime=20 * SECOND,
        verdict_resend=10 * SECOND,
        log_max=1,
        log_line_max=1,
        limits=limits,
    )
    return msgspec.structs.replace(config, **changed)


class HostProcess(Process):
    """The process of a worker host. Only its spool survives it."""

    def __init__(self, world: World, worker: str, number: int, clock: NodeClock | None = None) -> None:
        super().__init__(world.timeline, f"host{number}", clock if clock is not None else world.host_clock)
        self.world = world
        self.tasks: list[TaskProcess] = []
        self.on_death.append(self._end_tasks)
        self.host = self.make_host(worker, number)

    def make_host(self, worker: str, number: int) -> VirtualHost:
        return VirtualHost(self.world, self, worker, number, self.world.host_config)

    def begin(self) -> None:
        self.host.begin()

    def _end_tasks(self) -> None:
        """End all task processes of the host."""
        for task in list(self.tasks):
            task.process.die("its host")

    def ended(self) -> None:
        if self.host.loop.stopping and self.alive:
            self.die("stopped")


class VirtualHost(WorkerHost):
    """The worker host of production on a loop in virtual time. Only the parts that use the operating system are replaced."""

    def __init__(self, world: World, process: HostProcess, worker: str, number: int, config: HostConfig) -> None:
        self.world: World = world
        self.process: HostProcess = process
        super().__init__(config, process.clock, VirtualLoop(process))
        self.number = number
        self.name = process_name(worker, f"life{number}")
        self.spool = world.spools[worker]
        self.templates = cast(Any, _Forks(self))
        self.triggers = VirtualTriggerManager(self)
        self.final_lines = _NoFinalLines("", self.clock.wall, lambda trouble: None)
        self.callbacks = VirtualCallbackProcesses(self, self._begin, world, process)

    def begin(self) -> None:
        self.load_spool()
        self._connect()
        self._call_every(self.config.verdict_resend, self._resend)

    def _connect(self) -> None:
        if self.loop.stopping or self.remote is not None:
            return
        end = self.world.connect_to_scheduler(self.process)
        if end is None:
            self.loop.call_later(SECOND // 4, self._connect)
            return
        connection = end.connection
        end.listen(lambda document: self._on_order(connection, document), lambda: self._scheduler_gone(connection))
        self._connected(connection)

    def send(self, message: object) -> None:
        if isinstance(message, HostHello):
            message = msgspec.structs.replace(message, pid=self.number, hostname="world", live=tuple(sorted(message.live)))
        super().send(message)

    def _make_attempt(self, workload: Workload) -> Attempt:
        return VirtualAttempt(self, workload)

    def no_log(self) -> LogCapture:
        return _NoLog()

    def _submit(self, workload: Workload) -> None:
        if workload.key not in self.world.checks.dispatched:
            self.world.violated("dispatch", f"attempt {workload.key} was handed over, but its dispatch was never committed")
        super()._submit(workload)

    def _launch(self, workload: Workload) -> None:
        super()._launch(workload)
        slots = self.config.slots
        if slots and len(self.attempts) > slots:
            self.world.violated("13 host slots", f"{len(self.attempts)} attempts on a host of {slots} slots")

    def _kill_strays(self) -> None:
        """Do nothing: there are no orphaned processes."""


class _Forks:
    """Replaces the templates: a fork takes a moment, and sometimes fails."""

    def __init__(self, host: VirtualHost) -> None:
        self._host = host

    def run(self, attempt: Attempt) -> None:
        world, host = self._host.world, self._host
        world.timeline.after(world.chance.randrange(2_000, 30_000), host.process, lambda: self._fork(attempt))

    def _fork(self, attempt: Attempt) -> None:
        if attempt.ended:
            return
        world = self._host.world
        if world.profile.fork_fails and world.chance.random() < world.profile.fork_fails:
            world.timeline.faults["fork failed"] += 1
            attempt.could_not_start("no process could be made (simulated)", file_broken=False)
            return
        attempt.forked(world.next_pid())

    def registered(self) -> set[int]:
        return set()

    def close(self) -> None:
        pass

    def look_for_stalls(self) -> None:
        pass


class VirtualSpool(Spool):
    """The file of the spool, which survives its hosts."""

    def __init__(self) -> None:
        self._kept: list[tuple[AttemptKey, bytes]] = []
        self.tokens: dict[AttemptKey, str] = {}

    def load(self) -> dict[AttemptKey, Report]:
        return {key: _decode_report(data) for key, data in self._kept}

    def add(self, verdicts: Iterable[tuple[AttemptKey, Report] | tuple[AttemptKey, Report, str]]) -> None:
        for key, report, *tokens in verdicts:
            self._kept.append((key, encode(report)))
            self.tokens.update((key, token) for token in tokens if token)

    def clear(self) -> None:
        self._kept.clear()


_decode_report = msgspec.msgpack.Decoder(Report).decode


class _NoLog(LogCapture):
    """Ignores the output of tasks."""

    def __init__(self) -> None:
        super().__init__(Path(), lambda: 0, 1, 1)

    def note(self, level: str, event: str, logger: str | None = None) -> None:
        pass

    def close(self) -> None:
        pass


class _NoFinalLines(FinalLogLines):
    """Ignores the last lines of logs."""

    def append(self, path: str, line: LastLine) -> None:
        pass


class VirtualAttempt(Attempt):
    """An attempt with a simulated process."""

    host: VirtualHost

    def __init__(self, host: VirtualHost, workload: Workload) -> None:
        super().__init__(host, workload)
        self.log = _NoLog()
        self.task: TaskProcess | None = None

    def forked(self, pid: int) -> None:
        world = self.host.world
        self.pid = pid
        self._start = Start(START_OP, f"{world.chance.getrandbits(64):016x}", pid, "world")
        self.task = TaskProcess(self, self._start.nonce)
        self.channel = cast(Connection, _Channel(self.task))
        self.host.forked(self)
        self._ask_start()

    def signal(self, number: int) -> None:
        if self.task is not None:
            self.task.signalled(number)

    def send(self, request: RunnerRequest) -> None:
        self._on_document(cast(Connection, None), encode(request))

    def read_remaining_output(self) -> None:
        """Do nothing: the end of the process is reported after all its messages."""


class _Channel:
    """The channel to the task process, as seen by the host."""

    closed = False

    def __init__(self, task: TaskProcess) -> None:
        self._task = task

    def send(self, document: bytes) -> None:
        task = self._task
        task.world.timeline.after(50, task.process, lambda: task.receive(document))

    def close(self) -> None:
        pass

    def drain(self) -> None:
        pass


class TaskProcess:
    """A simulated task process: waits for its start, follows its behaviour, sends its report, ends."""

    def __init__(self, attempt: VirtualAttempt, nonce: str) -> None:
        self.attempt = attempt
        self.world = attempt.host.world
        self.host = attempt.host.process
        self.nonce = nonce
        self.running = False
        self.over = False
        self.behaviour = Behaviour(0, Outcome.SUCCESS)
        self.process = Process(self.world.timeline, f"task{attempt.pid}", self.world.host_clock)
        self.process.on_death.append(self._gone)
        self.host.tasks.append(self)

    def receive(self, document: bytes) -> None:
        answer = decode_answer(document)
        if isinstance(answer, Refused):
            key = self.attempt.key
            if self.world.checks.nonces.get(key) == self.nonce and self.world.is_running(key):
                self.world.violated(
                    "8 repeat", f"the start of attempt {key} was accepted, and its repetition refused: {answer.reason}"
                )
            self._exit(0, 1_000)
        elif isinstance(answer, Accepted) and not self.running and not self.over:
            self._run()

    def _run(self) -> None:
        world, key = self.world, self.attempt.key
        self.running = True
        self.behaviour = world.behaves(self.attempt.workload)
        world.user_code_begins(key, self.nonce, self.attempt.workload.try_number)
        delay = self.behaviour.duration
        if self.behaviour.triggers is not None:
            world.timeline.after(delay // 2, self.process, self._trigger)
        world.timeline.after(delay, self.process, self._finish)

    def _trigger(self) -> None:
        if self.over or self.behaviour.triggers is None:
            return
        run, slot, _ = self.attempt.key
        tries = self.attempt.workload.try_number
        question = TriggerRun(7, self.behaviour.triggers, 1, run_id=f"by_{run}_{slot}_{tries}", logical_date=None)
        self._later(lambda: self.attempt.send(question))

    def _later(self, call: Callable[[], None], delay: int = 50) -> None:
        """Schedule a call in the process of the host."""
        self.world.timeline.after(delay, self.host, call)

    def _finish(self) -> None:
        """Send the report when the work is done, then end."""
        if self.over:
            return
        behaviour = self.behaviour
        if behaviour.outcome == "crash":
            self._exit(KILLED, 0)
        elif behaviour.outcome == "exit":
            self._exit(3 << 8, 0)
        else:
            outcome = Outcome(behaviour.outcome)
            calls = self.world.callback_workload.of_own_process(self.attempt.workload, outcome)
            self._report(outcome, calls=calls)
            self._leave(calls, behaviour.lives_on)

    def _leave(self, calls: list[Asked], after: int) -> None:
        """Call the callbacks after the report, and end."""
        if not calls:
            self._exit(0, after)
            return
        self.over = True
        world, drawn = self.world, self.world.callback_workload.draw_outcome()
        if drawn.how == "dies":
            self._exit(KILLED, drawn.after)
        elif drawn.how != "hangs":  # an exception of a callback is logged and ends nothing
            world.timeline.after(drawn.after, self.process, lambda: self._called_back(calls, after))

    def _called_back(self, calls: list[Asked], after: int) -> None:
        for asked in calls:
            self.world.callback_checks.called_itself(asked)
        self._later(lambda: self.attempt.send(CalledBack()))
        self._exit(0, after)

    def _report(self, outcome: Outcome, reason: str | None = None, calls: Sequence[Asked] = ()) -> None:
        behaviour, attempt, world = self.behaviour, self.attempt, self.world
        run, slot, fence = attempt.key
        value = b"[%d,%d,%d]" % (run, slot, fence)
        now = world.host_clock.wall()
        success = outcome is Outcome.SUCCESS
        report = Report(
            START_OP + 1,
            outcome,
            reason=reason,
            ended=now,
            reschedule_at=now + behaviour.reschedule_in if outcome is Outcome.RESCHEDULE else None,
            xcoms=(XComValue("return_value", value, size=len(value)),) if success else (),
            branch=behaviour.branch if success else None,
            map_length=behaviour.map_length if success else None,
            deferral=behaviour.deferral if outcome is Outcome.DEFERRED else None,
            calls_back=bool(calls),
            assets=world.asset_workload.updates(attempt.workload) if success else (),
        )
        world.said(attempt.key, report)
        self._later(lambda: attempt.send(report))

    def _exit(self, status: int, after: int) -> None:
        """End the process and notify its host."""
        self.over = True
        self.world.timeline.after(after, self.process, lambda: self._exit_now(status))

    def _exit_now(self, status: int) -> None:
        attempt = self.attempt
        self.process.die("exit")
        self._later(lambda: attempt.host._exited(attempt.pid, status), 200)

    def _gone(self) -> None:
        self.over = True
        if self in self.host.tasks:
            self.host.tasks.remove(self)
        self.world.user_code_ended(self.attempt.key)

    def signalled(self, number: int) -> None:
        """Handle a signal. TERM, XCPU (time limit): `on_kill` runs, the process fails unless it ignores them. KILL: it ends."""
        if not self.process.alive:
            return
        if number == KILLED:
            self._exit(KILLED, 500)
        elif not self.over and (self.behaviour.obeys_term or not self.running):
            if self.running:
                done = self.world.chance.random() < 0.2  # it had just finished, or catches every exception
                outcome = Outcome.SUCCESS if done else Outcome.FAILED
                own = done or self.attempt.killing == "timeout"  # otherwise another process calls the callbacks
                calls = self.world.callback_workload.of_own_process(self.attempt.workload, outcome) if own else []
                self._report(outcome, None if done else "it was asked to stop", calls)
                self._leave(calls, 100_000)
            else:
                self._exit(TERMINATED, 100_000)
        elif not self.over:
            self.world.timeline.sometimes["a task ignores TERM"] += 1
