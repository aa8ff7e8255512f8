"""Deferred tasks: which tasks defer, their waits, and the triggerer on the worker host in virtual time."""

from __future__ import annotations

import random
import signal
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.model.states import Outcome
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan
from tradewind.model.waits import Deferral, EveryWait, MomentWait, TasksWait, TriggerEnd, TriggerWait, Wait
from tradewind.simulation.network import End, Network
from tradewind.simulation.timeline import START, Process, draw_delay
from tradewind.simulation.workload import Habit, Plan
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    AttemptKey,
    DropTriggers,
    RunTriggers,
    TriggerFired,
    TriggerOrder,
    Workload,
    decode_from_scheduler,
    encode,
)
from tradewind.worker.log_capture import LogCapture
from tradewind.worker.trigger_manager import TriggerManager

if TYPE_CHECKING:
    from tradewind.simulation.host import VirtualHost
    from tradewind.simulation.world import World

KINDS = ("moment", "tasks", "trigger", "trigger")
METHOD = "go_on"
LONG = 4 * HOUR
"""Recovery phase: the longest wait for a moment, microseconds."""
KILLED, SEGFAULT, ENDED = int(signal.SIGKILL), int(signal.SIGSEGV), 1 << 8


class TriggerBehaviour(msgspec.Struct, frozen=True):
    """The behaviour of a trigger. It is sent as the arguments of the trigger."""

    kind: str
    """fires, fails, never, deadly (its code ends the triggerer); succeeds, is_failed, is_skipped (end the task without another
    attempt)."""
    after: int
    """Microseconds from its start to its end."""


_decode_nature = msgspec.json.Decoder(TriggerBehaviour).decode


class WaitWorkload:
    """Draws the waits of this seed, from separate random streams. Half of the seeds have no waits."""

    def __init__(self, world: World, *, drawn: bool) -> None:
        self.world = world
        self.rng: random.Random = world.timeline.stream("waits")
        # with this name of the stream, the older seeds in mutants.py have no waits
        self.on = world.timeline.stream("wait/waiting").random() < 0.5 and drawn
        self.possible = self.on or not drawn
        """Whether any task may defer, including tasks of given DAGs."""
        self.counting = self.rng.choice((None, None, "small", "wide")) if self.on else None
        """The pool in which deferred tasks count."""
        self.pipes = Network(world.timeline)
        """Connections on one machine: no message is lost."""
        self.triggerer: VirtualTriggerer | None = None

    # --- DAGs --------------------------------------------------------------------------------------------------------

    def add_features(self, plan: Plan, dag_ids: list[str]) -> Plan:
        """Let some tasks of a drawn DAG defer."""
        if not self.on:
            return plan
        rng, tasks, habits = self.rng, [], dict(plan.habits)
        for task in plan.definition.tasks:
            habit = habits[task.task_id]
            if habit.kind == "plain" and not task.empty and not task.is_setup and not task.is_teardown:
                luck = rng.random()
                if luck < 0.5:
                    habits[task.task_id] = habit._replace(waits=tuple(rng.sample(KINDS, rng.choice((1, 1, 2, 3)))))
                elif luck < 0.65 and not task.mapped:
                    task = msgspec.structs.replace(task, wait=self._plan(dag_ids))
            tasks.append(task)
        return plan._replace(definition=msgspec.structs.replace(plan.definition, tasks=tuple(tasks)), habits=habits)

    def _plan(self, dag_ids: list[str]) -> WaitPlan:
        rng = self.rng
        timeout = rng.choice((1, 5, 20)) * MINUTE
        if rng.random() < 0.5:
            counted = rng.choice(("start", "start", "interval_end", "midnight", "epoch"))
            micros = rng.choice((0, 10 * SECOND, 2 * MINUTE, 10 * MINUTE))
            until = MomentPlan(cast(Any, counted), START + 3 * micros if counted == "epoch" else micros)
            return WaitPlan(until, timeout, rng.random() < 0.3)
        earlier = rng.choice((0, 0, 5, 10, 30)) * MINUTE
        plan = TasksPlan(
            rng.choice(dag_ids), earlier, failing_skips=rng.random() < 0.3, task_ids=self._some_tasks(), **self._wanted()
        )
        return WaitPlan(plan, timeout, rng.random() < 0.3)

    def _wanted(self) -> dict[str, Any]:
        """Draw the states that a wait accepts."""
        choices: tuple[dict[str, Any], ...] = (
            {},
            {"failed": ("failed", "upstream_failed")},
            {"skipped": ("skipped",), "failed": ("failed",)},
            {"allowed": ("success", "failed", "skipped", "upstream_failed")},
        )
        return self.rng.choice(choices)

    def _some_tasks(self) -> tuple[str, ...]:
        return self.rng.choice(((), (), ("t0",), ("t1",), ("t0", "t1")))

    def pool(self, name: str) -> dict[str, Any]:
        """Return additional arguments of `set_pool` for a pool."""
        return {"include_deferred": True} if name == self.counting else {}

    # --- attempts ----------------------------------------------------------------------------------------------------

    def draw_result(self, work: Workload, habit: Habit, duration: int, outcome: str) -> tuple[str, Deferral | None]:
        """Return the outcome of an attempt: `outcome`, or a deferral instead."""
        rng, resumption = self.rng, work.resumption
        if resumption is not None and resumption.error is not None:
            return (Outcome.FAILED_FINAL if rng.random() < habit.final else Outcome.FAILED).value, None
        again = 0.1 if self.world.recovering else 0.3
        if outcome != Outcome.SUCCESS or not habit.waits or rng.random() > (0.8 if resumption is None else again):
            return outcome, None
        found = self._deferral(rng.choice(habit.waits))
        if work.execution_timeout is not None:  # applies to all attempts of a try together
            active = duration + (resumption.active if resumption is not None else 0)
            last = self.world.host_clock.wall() + max(0, work.execution_timeout - active)
            until = last if found.timeout_at is None else min(found.timeout_at, last)
            found = msgspec.structs.replace(found, timeout_at=until, active=active)
        return Outcome.DEFERRED.value, found

    def _deferral(self, kind: str) -> Deferral:
        rng, now, recovering = self.rng, self.world.host_clock.wall(), self.world.recovering
        timeout = rng.choice((None, None, 10 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE))
        if recovering and kind == "tasks":
            timeout = 2 * MINUTE
        method: str | None = METHOD if rng.random() < 0.6 else None
        wait: Wait
        if kind == "moment":
            wait = MomentWait(now + rng.choice((-MINUTE, 5 * SECOND, 2 * MINUTE, 15 * MINUTE)), b'"%d"' % rng.randrange(100))
        elif kind == "trigger":
            method = METHOD
            natures = ("fires", "fires", "fires", "fails", "never", "deadly", "succeeds", "is_failed", "is_skipped")
            lasts = draw_delay(rng, rng.choice((SECOND, MINUTE, 5 * MINUTE)))
            nature = TriggerBehaviour(rng.choice(natures[:4] if recovering else natures), min(lasts, 15 * MINUTE))
            if nature.kind == "never" and timeout is None:
                timeout = 5 * MINUTE
            wait = TriggerWait("world.Trigger", msgspec.json.encode(nature))
        else:
            waits = tuple(self._tasks_wait() for _ in range(rng.choice((1, 1, 1, 2))))
            wait = EveryWait(waits) if len(waits) > 1 else waits[0]
        until = None if timeout is None else now + timeout
        kwargs = b'{"n": %d}' % rng.randrange(100) if method is not None else b"{}"
        return Deferral(wait, method, kwargs, until, soft_fail=rng.random() < 0.2)

    def _tasks_wait(self) -> TasksWait:
        """Draw a wait for an existing run, or (rarely) for a run that never exists."""
        rng, runs = self.rng, self.world.checks.shadow.runs
        recent = [row for _, row in sorted(runs.items())[-20:]]
        row = rng.choice(recent)
        tasks: dict[str, Any] = {"task_ids": self._some_tasks(), **self._wanted(), "soft_fail": rng.random() < 0.3}
        if row.logical_date is not None and rng.random() < 0.4:
            return TasksWait(row.dag_id, logical_dates=(row.logical_date,), **tasks)
        run_id = "by_nobody" if rng.random() < 0.05 else row.run_id
        return TasksWait(row.dag_id, run_ids=(run_id,), **tasks)

    # --- the triggerer -----------------------------------------------------------------------------------------------

    def kill_triggerer(self, rng: random.Random) -> None:
        """Kill the triggerer from outside, or by a library without a recorded trigger."""
        if self.triggerer is not None and self.triggerer.alive:
            self.world.timeline.faults["triggerer died"] += 1
            self.triggerer.ends(KILLED if rng.random() < 0.9 else ENDED)

    # --- the recovery phase -------------------------------------------------------------------------------------------

    def start_recovery(self) -> None:
        if self.triggerer is not None:
            self.triggerer.paused_until = min(self.triggerer.paused_until, self.world.timeline.now)

    def quiet(self, waiting: list[int], long_ago: int) -> bool:
        """Whether no wait is due later or was due recently, and no trigger runs that ends its process repeatedly."""
        waits = self.world.checks.waits.open
        if any(_is_deadly(one.deferral.wait) for one in waits.values()):
            return False
        dues = [one.due for key, one in waits.items() if key[0] in waiting and one.due is not None]
        return all(due < long_ago or due > long_ago + LONG for due in dues)

    def repair(self, waiting: list[int]) -> bool:
        """Mark tasks whose wait cannot end, as a user would do it. Return whether there was such a task."""
        world, found = self.world, False
        now = world.clock.wall()
        for (run, slot), one in world.checks.waits.open.items():
            far = one.due is None or one.due > now + LONG / 2
            triggered = isinstance(one.deferral.wait, TriggerWait)
            moment = isinstance(one.deferral.wait, MomentWait)
            if run in waiting and far and not triggered and (moment or not one.holds):
                row, task = world.checks.shadow.runs[run], world.checks.shadow.tasks[run][slot]
                where: list[Any] = [task.task_id, task.map_index]
                world.operator.send("mark", dag_id=row.dag_id, run_id=row.run_id, instances=[where], state="success")
                world.timeline.sometimes["a impossible wait was ended by hand"] += 1
                found = True
        return found


def _is_deadly(wait: object) -> bool:
    return isinstance(wait, TriggerWait) and msgspec.json.decode(wait.kwargs, type=TriggerBehaviour).kind == "deadly"


class VirtualTriggerer(Process):
    """The process of all triggers: receives orders, reports ends, dies."""

    def __init__(self, manager: VirtualTriggerManager, pid: int) -> None:
        world = manager.world
        super().__init__(world.timeline, f"triggerer{pid}", world.host_clock)
        self.world = world
        self.manager = manager
        self.pid = pid
        self.stepping: AttemptKey | None = None
        """The trigger whose code runs, as recorded in the shared memory page."""
        self.line: End | None = None
        self._running: dict[AttemptKey, int] = {}
        self._count = 0
        self._stood_at = 0

    @property
    def loop_ran_at(self) -> float:
        """Time of the last iteration of the event loop, in seconds of the host's clock."""
        now = self.clock.monotonic()
        return (min(self._stood_at, now) if self.paused_until > self.timeline.now else now) / SECOND

    def pause(self, micros: int) -> None:
        self._stood_at = self.clock.monotonic()
        super().pause(micros)

    def receive(self, document: bytes) -> None:
        order = decode_from_scheduler(document)
        if isinstance(order, RunTriggers):
            for one in order.triggers:
                if one.key not in self._running:
                    self._begin(one)
        elif isinstance(order, DropTriggers):
            for key in order.keys:
                self._running.pop(key, None)

    def _begin(self, order: TriggerOrder) -> None:
        self._count += 1
        key, number, nature = order.key, self._count, _decode_nature(order.wait.kwargs)
        self._running[key] = number
        if nature.kind != "never":
            self.timeline.after(nature.after, self, lambda: self._comes(key, number, nature))

    def _comes(self, key: AttemptKey, number: int, nature: TriggerBehaviour) -> None:
        """Run a trigger to its end, unless it was cancelled."""
        if self._running.get(key) != number:
            return
        if nature.kind == "deadly":
            self.stepping = key
            self.timeline.sometimes["a trigger ended the process of all"] += 1
            self.ends(SEGFAULT)
            return
        del self._running[key]
        end = _end(key, nature)
        self.world.checks.waits.trigger_ended(key, end)
        if self.line is not None:
            self.line.send(encode(TriggerFired(key, end)))

    def closed(self) -> None:
        """End the process: the host has closed the connection."""
        self.ends(0)

    def ends(self, status: int) -> None:
        """Notify the host of the end of the process."""
        if self.alive:
            host = self.manager.process
            self.world.checks.waits.outlived.update(self._running)
            self.die("it ends")
            self.timeline.after(200, host, lambda: host.host._exited(self.pid, status))


def _end(key: AttemptKey, nature: TriggerBehaviour) -> TriggerEnd:
    match nature.kind:
        case "fires":
            return TriggerEnd(event=b'"%d/%d/%d"' % key)
        case "fails":
            return TriggerEnd(error=f"the trigger of {key} broke")
        case "succeeds":
            return TriggerEnd(outcome=Outcome.SUCCESS, xcoms={"return_value": b"[%d,%d,%d]" % key})
        case "is_failed":
            return TriggerEnd(outcome=Outcome.FAILED, reason="its trigger said so")
    return TriggerEnd(outcome=Outcome.SKIPPED, reason="its trigger said so")


class _NoLog:
    """Ignores the output of triggers."""

    def note(self, level: str, event: str, logger: str | None = None) -> None:
        pass

    def close(self) -> None:
        pass


_NO_LOG = cast(LogCapture, _NoLog())


class VirtualTriggerManager(TriggerManager):
    """The trigger manager of the production host, with a simulated process."""

    def __init__(self, host: VirtualHost) -> None:
        super().__init__(host)
        self.world: World = host.world
        self.process = host.process
        self.triggerer: VirtualTriggerer | None = None
        self._asked_for = 0
        host.process.on_death.append(self._orphaned)

    def run(self, orders: Any) -> None:
        for order in orders:
            self.world.checks.waits.ordered(order.key)
        super().run(orders)

    def _start(self) -> None:
        self._state = "asked"
        self._asked_for += 1
        number, rng = self._asked_for, self.world.waiting.rng
        self.world.timeline.after(rng.randrange(2_000, 30_000), self.process, lambda: self._fork(number))

    def _fork(self, number: int) -> None:
        world = self.world
        if number != self._asked_for or self._state != "asked" or self._host.stopping:
            return
        if world.profile.fork_fails and world.waiting.rng.random() < world.profile.fork_fails:
            world.timeline.faults["fork failed"] += 1
            self.could_not_start("no process could be made (simulated)", file_broken=False)
            return
        made = self.triggerer = world.waiting.triggerer = VirtualTriggerer(self, world.next_pid())
        here, there = world.waiting.pipes.link(self.process, made)
        there.listen(made.receive, made.closed)
        line: Connection = here.connection
        here.listen(lambda document: self._on_document(line, document), lambda: self._line_closed(line))
        made.line = there
        self._on_started(made.pid, line, line)

    def _read_page(self) -> tuple[AttemptKey | None, float]:
        return (None, 0.0) if self.triggerer is None else (self.triggerer.stepping, self.triggerer.loop_ran_at)

    def _kill(self) -> None:
        triggerer = self.triggerer
        if self.pid and triggerer is not None:
            self.world.timeline.after(500, None, lambda: triggerer.ends(KILLED))

    def _fired(self, key: AttemptKey, end: TriggerEnd) -> None:
        self.world.checks.waits.host_reported(key, end)
        super()._fired(key, end)

    def _orphaned(self) -> None:
        """End the triggerer together with the host."""
        if self.triggerer is not None and self.triggerer.alive:
            self.world.checks.waits.outlived.update(self.wanted)
            self.triggerer.die("its host")

    def _log_of(self, key: AttemptKey) -> LogCapture:
        return _NO_LOG
