"""Callbacks in the simulation: which tasks have some, how they behave, the processes that call them, and the commands of users.

A callback is called by the process of its task after the report, or by a separate process that the worker host starts for a post
of the outbox. Each call may succeed, raise an exception, die during the call, or hang until it is killed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from tradewind.client.channel import START_OP
from tradewind.model.definition import TaskDefinition
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome
from tradewind.simulation.callback_checks import Asked
from tradewind.simulation.faults import CALM
from tradewind.simulation.timeline import Process, draw_delay
from tradewind.simulation.workload import Plan
from tradewind.wire.connection import Connection
from tradewind.wire.messages import Accepted, CallbackOrder, Report, RunnerRequest, Start, Workload, decode_answer, encode
from tradewind.worker.attempt import Attempt
from tradewind.worker.callback_processes import CallbackProcess, CallbackProcesses

if TYPE_CHECKING:
    from tradewind.simulation.host import HostProcess, VirtualHost
    from tradewind.simulation.world import World

SHARE = 0.4
"""Share of the seeds with callbacks."""
BY_PEOPLE = 0.5
"""Share of these seeds in which users retry and drop callbacks."""
_OF_TASKS = ("on_success_callback", "on_skipped_callback", "on_retry_callback", "on_failure_callback")
_OF_RUNS = ("on_success_callback", "on_failure_callback")
_KILLED = 9


class CallOutcome(NamedTuple):
    """The drawn outcome of one call."""

    how: str
    """`well`, `raises`, `dies` or `hangs`."""
    after: int
    """Duration in microseconds."""


class CallbackWorkload:
    """Draws the callbacks of this seed, from a separate random stream."""

    def __init__(self, world: World) -> None:
        self._world = world
        # with this name of the stream, the older seeds in mutants.py have no callbacks
        self._rng = rng = world.timeline.stream("calling")
        self.drawn = rng.random() < SHARE
        self.parallelism = rng.choice((1, 4, 4))
        self._fates = [(how, rng.choice((0, 0, 0.02, 0.1, 0.4))) for how in ("raises", "dies", "hangs")]
        people = world.timeline.stream("person of posts")  # named for the same reason
        by_people = people.random() < BY_PEOPLE and self.drawn
        self.commands: float = people.choice((4, 20, 60)) if by_people else 0
        """Commands of users per hour."""
        self.retries = people.choice((0, 1, 3)) if by_people else 3

    def command(self, rng: random.Random) -> None:
        """A user retries or drops callbacks: mostly parked ones, sometimes unusual ones."""
        world, posts = self._world, self._world.callback_checks.posts
        parked = [number for number, row in posts.items() if row.parked is not None]
        name = "retry_callbacks" if rng.random() < 0.7 else "drop_callbacks"
        luck, args = rng.random(), dict[str, Any]()
        if luck < 0.6 and parked:
            args["ids"] = rng.sample(parked, rng.randrange(1, min(4, len(parked)) + 1))
        elif luck < 0.8:
            args["ids"] = [rng.choice(list(posts))] if posts else []
        elif luck < 0.9:
            args["ids"] = [*parked[:2], rng.randrange(1, 2 + max(posts, default=0))]  # maybe deleted, or not a callback
        world.timeline.faults[f"command {name}"] += 1
        world.operator.send(name, **args)

    def add_features(self, plan: Plan) -> Plan:
        """Add callbacks to a drawn DAG, if this seed has callbacks."""
        if not self.drawn:
            return plan
        tasks = tuple(self._add_to_task(task) for task in plan.definition.tasks)
        callbacks = {argument: self._names() for argument in _OF_RUNS if self._rng.random() < 0.6}
        return plan._replace(definition=msgspec.structs.replace(plan.definition, tasks=tasks, callbacks=callbacks))

    def _add_to_task(self, task: TaskDefinition) -> TaskDefinition:
        rng = self._rng
        if task.empty or rng.random() < 0.4:
            return task
        callbacks = {argument: self._names() for argument in _OF_TASKS if rng.random() < 0.6}
        mail = {"email": ("a@b.example",), "email_on_retry": rng.random() < 0.5} if rng.random() < 0.3 else {}
        return msgspec.structs.replace(task, callbacks=callbacks or None, **mail)

    def _names(self) -> tuple[str, ...]:
        return ("tell",) * self._rng.choice((1, 1, 2))

    def draw_outcome(self) -> CallOutcome:
        """Draw the outcome of the next call."""
        rng, how = self._rng, "well"
        after = draw_delay(rng, rng.choice((SECOND // 10, SECOND, 5 * SECOND)))
        if self._world.profile is CALM:
            return CallOutcome(how, after)
        for one, share in self._fates:
            if rng.random() < share:
                how = one
        if how != "well":
            self._world.timeline.faults[f"callback {how}"] += 1
        return CallOutcome(how, after)

    def of_own_process(self, work: Workload, outcome: Outcome) -> list[Asked]:
        """The callbacks that a task process calls itself after this result, in the order of the calls."""
        state = _state(outcome, work)
        row = self._world.checks.shadow.runs.get(work.run)
        if state is None or row is None:
            return []
        argument, word = state
        checks = self._world.checks
        task = checks.shape(checks.begun_version.get(work.key, row.version)).tasks.get(work.task_id)
        callbacks = (None if task is None else task.callbacks) or {}
        return [Asked(*work.key, word, argument, place) for place in range(len(callbacks.get(argument, ())))]


def _state(outcome: Outcome, work: Workload) -> tuple[str, str] | None:
    """Return (argument, state) as the attempt itself knows them."""
    match outcome:
        case Outcome.SUCCESS:
            return "on_success_callback", "success"
        case Outcome.SKIPPED:
            return "on_skipped_callback", "skipped"
        case Outcome.FAILED if work.try_number <= work.max_tries:
            return "on_retry_callback", "up_for_retry"
        case Outcome.FAILED | Outcome.FAILED_FINAL:
            return "on_failure_callback", "failed"
    return None


class VirtualCallbackProcesses(CallbackProcesses):
    """The callback processes of the production worker host, with simulated processes."""

    def __init__(self, host: VirtualHost, launch: Callable[[Attempt], None], world: World, life: HostProcess) -> None:
        super().__init__(host, launch)
        self.virtual_host = host
        self.life = life
        self.world = world
        self.no_log = host.no_log
        self._ended_well: set[int] = set()

    def _make(self, order: CallbackOrder) -> CallbackProcess:
        world = self.world
        world.callback_checks.handed_over(order)
        if order.callback_id in self._ended_well:
            world.violated("36 posts", f"post {order.callback_id} was called to the end, and is called again by the same host")
        return VirtualCallbackProcess(self, order)

    def verdict(self, attempt: Attempt, report: Report) -> None:
        assert isinstance(attempt, CallbackProcess)
        if attempt.verdict is None and report.outcome is not Outcome.SUCCESS:
            self.world.callback_checks.failed(attempt.order)
        super().verdict(attempt, report)

    def ended_well(self, order: CallbackOrder) -> None:
        self._ended_well.add(order.callback_id)
        self.world.callback_checks.called(order)


class VirtualCallbackProcess(CallbackProcess):
    """A callback with a simulated process."""

    def __init__(self, runs: VirtualCallbackProcesses, order: CallbackOrder) -> None:
        super().__init__(runs, order)
        self.runs = runs
        self.log = runs.no_log()
        self.process: CallProcess | None = None
        self.words: list[RunnerRequest] = []
        """Messages of the process that the host has not received."""

    def forked(self, pid: int) -> None:
        world = self.runs.world
        self.pid = pid
        self._start = Start(START_OP, f"call{pid}", pid, "world")
        self.process = CallProcess(self)
        self.channel = cast(Connection, self.process)
        self.host.forked(self)
        world.timeline.sometimes["a callback was called in a process of its own"] += 1
        self._ask_start()

    def signal(self, number: int) -> None:
        if self.process is not None:
            self.process.signalled(number)

    def read_remaining_output(self) -> None:
        """Read messages late: a host that was paused may receive the end of the process before its messages."""
        words, self.words = self.words, []
        for request in words:
            self._on_document(cast(Connection, None), encode(request))


class CallProcess:
    """The process of a callback, and its channel as seen by the host."""

    closed = False

    def __init__(self, run: VirtualCallbackProcess) -> None:
        self.run = run
        self.world: World = run.runs.world
        self.host: HostProcess = run.runs.life
        self.begun = False
        self.process = Process(self.world.timeline, f"call{run.pid}", self.world.host_clock)
        self.host.on_death.append(lambda: self.process.die("its host"))

    def send(self, document: bytes) -> None:
        self.world.timeline.after(50, self.process, lambda: self._on_document(document))

    def close(self) -> None:
        pass

    def drain(self) -> None:
        pass

    def _on_document(self, document: bytes) -> None:
        if isinstance(decode_answer(document), Accepted) and not self.begun:
            self.begun = True
            drawn = self.world.callback_workload.draw_outcome()
            if drawn.how != "hangs":
                self.world.timeline.after(drawn.after, self.process, lambda: self._end(drawn.how))

    def _end(self, how: str) -> None:
        run = self.run
        if how == "dies":
            self._exit(_KILLED)
            return
        if how == "well":
            run.runs.ended_well(run.order)
        outcome = Outcome.SUCCESS if how == "well" else Outcome.FAILED
        report = Report(0, outcome, reason=None if how == "well" else "it raised something (simulated)")
        run.words.append(report)
        self.world.timeline.after(50, self.host, run.read_remaining_output)
        self._exit(0)

    def _exit(self, status: int) -> None:
        run = self.run
        self.process.die("exit")
        self.world.timeline.after(200, self.host, lambda: run.runs.virtual_host._exited(run.pid, status))

    def signalled(self, number: int) -> None:
        """End the process: it ends at once after any signal."""
        if self.process.alive:
            self.world.timeline.after(500, self.process, lambda: self._exit(number))
