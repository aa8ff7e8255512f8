"""Callbacks in the simulated world: which tasks have some, what they are like, the processes that call them, and people who look
after those that failed.

A callback is called by the process of its task, behind the report, or by a process of its own that the worker host has made for a
post of the outbox. Either may come to its end, raise, die in the middle of it, or hang until it is ended.
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
    from tradewind.simulation.host import HostLife, VirtualHost
    from tradewind.simulation.world import World

SHARE = 0.4
"""Of the seeds: their DAGs have callbacks."""
BY_PEOPLE = 0.5
"""Of these seeds: people have callbacks tried again that were parked, and give some up."""
_OF_TASKS = ("on_success_callback", "on_skipped_callback", "on_retry_callback", "on_failure_callback")
_OF_RUNS = ("on_success_callback", "on_failure_callback")
_KILLED = 9


class Fate(NamedTuple):
    """What becomes of one call."""

    how: str
    """well, raises, dies, hangs."""
    after: int
    """Microseconds."""


class Calling:
    """What callbacks of this seed are like. All of it is drawn from a stream of its own."""

    def __init__(self, world: World) -> None:
        self._world = world
        # its name is such that the seeds which mutants.py named before have no callbacks
        self._rng = rng = world.timeline.stream("calling")
        self.drawn = rng.random() < SHARE
        self.parallelism = rng.choice((1, 4, 4))
        self._fates = [(how, rng.choice((0, 0, 0.02, 0.1, 0.4))) for how in ("raises", "dies", "hangs")]
        people = world.timeline.stream("person of posts")  # named as "calling" is
        by_people = people.random() < BY_PEOPLE and self.drawn
        self.commands: float = people.choice((4, 20, 60)) if by_people else 0
        """Of people, an hour."""
        self.retries = people.choice((0, 1, 3)) if by_people else 3

    def command(self, rng: random.Random) -> None:
        """Somebody has callbacks tried again, or gives them up: mostly parked ones, now and then what nobody would."""
        world, posts = self._world, self._world.posts.posts
        parked = [number for number, row in posts.items() if row.parked is not None]
        name = "retry_callbacks" if rng.random() < 0.7 else "drop_callbacks"
        luck, args = rng.random(), dict[str, Any]()
        if luck < 0.6 and parked:
            args["ids"] = rng.sample(parked, rng.randrange(1, min(4, len(parked)) + 1))
        elif luck < 0.8:
            args["ids"] = [rng.choice(list(posts))] if posts else []
        elif luck < 0.9:
            args["ids"] = [*parked[:2], rng.randrange(1, 2 + max(posts, default=0))]  # perhaps gone, or no callback
        world.timeline.faults[f"command {name}"] += 1
        world.operator.say(name, **args)

    def dress(self, plan: Plan) -> Plan:
        """A drawn DAG, with callbacks if this seed has some."""
        if not self.drawn:
            return plan
        tasks = tuple(self._dress_task(task) for task in plan.definition.tasks)
        callbacks = {argument: self._names() for argument in _OF_RUNS if self._rng.random() < 0.6}
        return plan._replace(definition=msgspec.structs.replace(plan.definition, tasks=tasks, callbacks=callbacks))

    def _dress_task(self, task: TaskDefinition) -> TaskDefinition:
        rng = self._rng
        if task.empty or rng.random() < 0.4:
            return task
        callbacks = {argument: self._names() for argument in _OF_TASKS if rng.random() < 0.6}
        mail = {"email": ("a@b.example",), "email_on_retry": rng.random() < 0.5} if rng.random() < 0.3 else {}
        return msgspec.structs.replace(task, callbacks=callbacks or None, **mail)

    def _names(self) -> tuple[str, ...]:
        return ("tell",) * self._rng.choice((1, 1, 2))

    def fate(self) -> Fate:
        """Of the next call."""
        rng, how = self._rng, "well"
        after = draw_delay(rng, rng.choice((SECOND // 10, SECOND, 5 * SECOND)))
        if self._world.profile is CALM:
            return Fate(how, after)
        for one, share in self._fates:
            if rng.random() < share:
                how = one
        if how != "well":
            self._world.timeline.faults[f"callback {how}"] += 1
        return Fate(how, after)

    def of_own_process(self, work: Workload, outcome: Outcome) -> list[Asked]:
        """What a task's process calls itself when it has come to this, as it sees it: in the order of calling."""
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
    """(argument, state) that an attempt believes to come to."""
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
    """The production desk of the worker host, whose processes are virtual."""

    def __init__(self, host: VirtualHost, launch: Callable[[Attempt], None], world: World, life: HostLife) -> None:
        super().__init__(host, launch)
        self.life = life
        self.world = world
        self.no_log = host.no_log
        self._ended_well: set[int] = set()

    def _make(self, order: CallbackOrder) -> CallbackProcess:
        world = self.world
        world.posts.handed_over(order)
        if order.post in self._ended_well:
            world.violated("36 posts", f"post {order.post} was called to the end, and is called again by the same host")
        return VirtualCallbackProcess(self, order)

    def verdict(self, attempt: Attempt, report: Report) -> None:
        assert isinstance(attempt, CallbackProcess)
        if attempt.verdict is None and report.outcome is not Outcome.SUCCESS:
            self.world.posts.failed(attempt.order)
        super().verdict(attempt, report)

    def ended_well(self, order: CallbackOrder) -> None:
        self._ended_well.add(order.post)
        self.world.posts.called(order)


class VirtualCallbackProcess(CallbackProcess):
    """A callback whose process is virtual."""

    def __init__(self, runs: VirtualCallbackProcesses, order: CallbackOrder) -> None:
        super().__init__(runs, order)
        self.runs = runs
        self.log = runs.no_log()
        self.process: CallProcess | None = None
        self.words: list[RunnerRequest] = []
        """What its process has said, and the host has not heard."""

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

    def take_last_words(self) -> None:
        """A host that stood still hears of its end perhaps first."""
        words, self.words = self.words, []
        for request in words:
            self._heard(cast(Connection, None), encode(request))


class CallProcess:
    """The process of a callback, and the host's end of its channel."""

    closed = False

    def __init__(self, run: VirtualCallbackProcess) -> None:
        self.run = run
        self.world: World = run.runs.world
        self.host: HostLife = run.runs.life
        self.begun = False
        self.process = Process(self.world.timeline, f"call{run.pid}", self.world.host_clock)
        self.host.on_death.append(lambda: self.process.die("its host"))

    def send(self, document: bytes) -> None:
        self.world.timeline.after(50, self.process, lambda: self._heard(document))

    def close(self) -> None:
        pass

    def drain(self) -> None:
        pass

    def _heard(self, document: bytes) -> None:
        if isinstance(decode_answer(document), Accepted) and not self.begun:
            self.begun = True
            fate = self.world.calling.fate()
            if fate.how != "hangs":
                self.world.timeline.after(fate.after, self.process, lambda: self._end(fate.how))

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
        self.world.timeline.after(50, self.host, run.take_last_words)
        self._exit(0)

    def _exit(self, status: int) -> None:
        run = self.run
        self.process.die("exit")
        self.world.timeline.after(200, self.host, lambda: run.runs.host._exited(run.pid, status))

    def signalled(self, number: int) -> None:
        """It ends at once, whatever the signal."""
        if self.process.alive:
            self.world.timeline.after(500, self.process, lambda: self._exit(number))
