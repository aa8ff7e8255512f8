"""One simulation from its start to its end: creation, a phase with faults, a phase of recovery, and the final checks."""

from __future__ import annotations

import logging
import random
import traceback
from collections.abc import Callable, Hashable
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tradewind.client.channel import START_OP
from tradewind.executors.local import LocalExecutor
from tradewind.kernel.admission import PARALLELISM
from tradewind.model.branch import Branch
from tradewind.model.definition import FAIL, REPEAT, encode_definition, version_hash
from tradewind.model.errors import StoreError
from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.model.states import Outcome
from tradewind.observe import failpoints
from tradewind.observe.log import ROOT
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.scheduler.composition import compose_server, scheduling_duties
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.duties import Duty
from tradewind.scheduler.duties.check_waits import CheckWaits
from tradewind.scheduler.duties.lost_workers import LostWorkers
from tradewind.scheduler.server import SchedulerServer
from tradewind.simulation import faults
from tradewind.simulation.assets import AssetChecks, AssetWorkload
from tradewind.simulation.callback_checks import CallbackChecks
from tradewind.simulation.callbacks import CallbackWorkload
from tradewind.simulation.checks import (
    FAILED,
    NAMES,
    NONE,
    OVER,
    R_FAILED,
    R_SUCCESS,
    RESCHEDULE,
    RETRY,
    RUNNING,
    SKIPPED,
    SUCCESS,
    UPSTREAM_FAILED,
    Checks,
)
from tradewind.simulation.client import UserClient
from tradewind.simulation.command_checks import CommandChecks, ObservedCommands
from tradewind.simulation.deadlines import DeadlineChecks, Deadlines
from tradewind.simulation.faults import CALM, Profile
from tradewind.simulation.host import Behaviour, HostProcess, VirtualSpool, host_config
from tradewind.simulation.network import End, Network, Trouble
from tradewind.simulation.shadow import Change, Task
from tradewind.simulation.stores import StoreFaults, WorldStore
from tradewind.simulation.timeline import Call, NodeClock, Process, Timeline, VirtualLoop, draw_delay
from tradewind.simulation.triggers import WaitWorkload
from tradewind.simulation.user_actions import UserActions
from tradewind.simulation.why_checks import WhyChecks
from tradewind.simulation.workload import POOLS, Habit, Plan, draw_dag
from tradewind.wire.commands import ClearTasks, MarkTasks, RunTask, SetRunState, Trigger, build, name_of
from tradewind.wire.messages import AttemptGone, AttemptKey, CommandResult, FromRunner, Report, Start, TriggerFired, Workload

TURN = 200
"""Microseconds between an event and the transaction that processes it. Several events may share one transaction."""
QUIET_AFTER = 20 * MINUTE
"""Recovery phase: after this time without any state change, microseconds, the simulation counts as idle."""
REPAIRS_MAX = 200
RECOVERY_POOL_SLOTS = 4
"""Slots of each pool during the recovery phase."""
RECOVERY_MAX = 48 * HOUR
"""Maximum time without fewer waiting runs, microseconds. A DAG with one run at a time may have a hundred runs left."""


class Finding(NamedTuple):
    """A violated guarantee."""

    rule: str
    text: str
    at: int
    """Microseconds since the start of the simulation."""


class _Cipher:
    """Does not encrypt: a simulation has no secrets."""

    def encrypt(self, plain: str) -> str:
        return plain

    def decrypt(self, stored: str, what: str) -> str:
        return stored


class _ObservedScheduler(Scheduler):
    """The scheduler of production. It tells the checks when it has read data that a lost message had announced."""

    world: World | None = None

    @classmethod
    def in_world(cls, world: World, *parts: Any) -> _ObservedScheduler:
        scheduler = cls(*parts)
        scheduler.world = world
        return scheduler

    def load(self) -> None:
        super().load()
        self._sees()

    def compare_with_store(self) -> int:
        found = super().compare_with_store()
        self._sees()
        return found

    def _sees(self) -> None:
        if self.world is not None and self.epoch == self.world.checks.shadow.epoch:  # an older scheduler may still run
            self.world.checks.missed_message = False
            self.world.checks.unannounced_runs.clear()
            self.world.why.knows_everything()


class SchedulerProcess(Process):
    """The process of one scheduler: the production server, scheduler and duties on a loop in virtual time."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world.timeline, f"scheduler{number}", world.clock)
        self.world = world
        self.number = number
        self.server: SchedulerServer | None = None
        self._planned = False
        self._turning = False
        self._idle = False
        self._wake = 0

    def begin(self) -> None:
        self.serve()

    def serve(self, given: int | None = None) -> None:
        """Become the active scheduler.

        Args:
            given: the epoch, if a lease has given it.
        """
        world, clock, config = self.world, self.clock, self.world.config
        store = world.store
        try:
            epoch = store.begin_epoch("world", self.number, "boot", clock.wall(), given)
        except StoreError:
            self.die("the store cannot be opened")
            return
        executor, remote_workers = self.make_executor()
        server = compose_server(
            store,
            clock,
            config,
            executor,
            epoch,
            _Cipher(),
            "",
            self._duties,
            loop=VirtualLoop(self),
            remote_workers=remote_workers,
            make_scheduler=partial(_ObservedScheduler.in_world, world),
            make_commands=partial(ObservedCommands, world.command_checks),
        )
        try:
            server.begin()
        except StoreError:
            self.die("the store cannot be read at the start")
            return
        self.server = server

    def make_executor(self) -> tuple[LocalExecutor, RemoteWorkers | None]:
        return LocalExecutor(self.world.may_live), None

    def _duties(self, scheduler: Scheduler) -> list[Duty]:
        """The duties of production: workers are checked often, and waits only in worlds that have them."""
        world = self.world
        duties = scheduling_duties(scheduler, world.config, free_memory=lambda: None)
        for duty in duties:
            if isinstance(duty, LostWorkers):
                duty.interval = 5 * SECOND
        return [duty for duty in duties if world.waiting.possible or not isinstance(duty, CheckWaits)]

    def carry_out(self, call: Call) -> None:
        store_faults = self.world.store_faults
        store_faults.worker = self
        try:
            super().carry_out(call)
        except Exception as error:
            self.world.violated(
                "29 scheduler", f"the scheduler's process ended with {''.join(traceback.format_exception(error))}"
            )
            self.die("an exception")
        finally:
            store_faults.worker = None

    def ended(self) -> None:
        """Schedule a turn of the scheduler after each event, a moment later."""
        if not self.alive or self.server is None:
            return
        if self.server.scheduler.superseded or self.server.loop.stopping:
            if self.server.scheduler.superseded:
                self.timeline.sometimes["a superseded scheduler has noticed"] += 1
            self.die("it is over")
        elif self._idle:
            self._idle = False
        elif self._turning:
            self._turning = False
            self._plan_wake()
            self.world.why.inbox_processed(self)
        elif not self._planned:
            self._planned = True
            self.timeline.after(TURN, self, self._turn)

    def _turn(self) -> None:
        self._planned, self._turning = False, True
        if self.server is not None:
            self.server.process()

    def _plan_wake(self) -> None:
        """Schedule the next wake-up like the real loop: at the next timer, and at the latest after the maximum wait of the loop."""
        if self.server is None:
            return
        self._wake += 1
        number = self._wake

        def wake() -> None:
            self._idle = number != self._wake  # another wake-up was scheduled meanwhile

        self.timeline.after(self.clock.true_delay(self.server.wait_time()) + 1, self, wake)


class World:
    """See the module.

    Args:
        seed: determines the whole simulation.
        plans: the DAGs. Default: drawn from the seed.
        profile: the faults. Default: drawn from the seed.
        hours: virtual hours with faults.
    """

    def __init__(
        self,
        seed: int,
        *,
        plans: list[Plan] | None = None,
        profile: Profile | None = None,
        hours: float | None = None,
        trace: bool = False,
    ) -> None:
        self.timeline = Timeline(seed)
        if trace:
            self.timeline.trace = []
        self.seed = seed
        self.violations: list[Finding] = []
        self.chance = self.timeline.stream("chance")
        setup = self.timeline.stream("setup")
        drawn = faults.draw(self.timeline.stream("faults"))
        self.profile = profile if profile is not None else drawn
        self.horizon = int((hours if hours is not None else setup.choice((0.5, 1, 2))) * HOUR)
        self.clock = NodeClock(self.timeline, 1 + setup.uniform(-1, 1) * self.profile.clock_rate)
        self.host_clock = NodeClock(self.timeline, 1 + setup.uniform(-1, 1) * self.profile.clock_rate)
        self.losses, self.network = self.timeline.stream("losses"), Network(self.timeline)
        if self.profile.messages != Trouble():
            self.network.trouble = self.profile.messages
        self.checks = Checks(self.violated, self._sometimes)
        self.checks.now = self.clock.wall
        self.why = WhyChecks(self)
        self.callback_workload = CallbackWorkload(self)
        self.asset_workload = AssetWorkload(self, plans is None)
        self.command_checks = CommandChecks(self.violated)
        self.assets = AssetChecks(self.checks)
        self.callback_checks = CallbackChecks(self.checks, self.clock.wall, lambda: self.timeline.now)
        self.deadlines = Deadlines(self, plans is None)
        self.deadline_checks = DeadlineChecks(self.checks, self.clock.wall, lambda: self.timeline.now)
        self.command_checks.judges += [self.assets.answered, self.callback_checks.answered]
        self.store_faults = StoreFaults(self.timeline, self._committed)
        self.store_faults.endless = lambda: self.violated("29 endless", "a process repeats the same step and no time passes")
        self.store_faults.unknown = self.profile.commits_unknown
        self.store = WorldStore(self.store_faults)
        self.store.DEFINITIONS_KEPT = setup.choice((2, 64))
        self.config = SchedulerConfig(
            parallelism=setup.choice((0, 1, 2, 4, 16)),
            executor="LocalExecutor",
            requeue_limit=setup.choice((1, 3)),
            resubmit_interval=15 * SECOND,
            sweep_interval=60 * SECOND,
            batch_max_rows=setup.choice((4, 10, 40, 2000)),
            kill_grace=10 * SECOND,
            paused_at_creation=False,
            retention=setup.choice((0, 0, HOUR)),
            retention_keep_runs=2,
            retention_interval=10 * MINUTE,
            default_execution_timeout=None,
            xcom_folder="",
            callback_parallelism=self.callback_workload.parallelism,
            callback_retries=self.callback_workload.retries,
            repeat_lost=plans is None and self.losses.random() < 0.25,
        )
        self._update_checks()
        self.host_config = host_config(setup.choice((0, 1, 3, 16)))
        self.workers = self.draw_workers()
        self.spools = {worker: VirtualSpool() for worker in self.workers}
        self.waiting = WaitWorkload(self, drawn=plans is None)
        self.plans: dict[str, Plan] = {plan.definition.dag_id: plan for plan in plans or ()}
        if plans is None:
            self._draw_dags()
        self.habits: dict[tuple[str, str], Habit] = {}
        self._prepare_processes()

    def draw_workers(self) -> list[str]:
        return [f"w{number + 1}" for number in range(self.timeline.stream("workers").choice((1, 1, 2, 3)))]

    def _prepare_processes(self) -> None:
        """Set up the processes. None of them runs yet."""
        self.recovering = False
        self.scheduler: SchedulerProcess | None = None
        self.hosts: dict[str, HostProcess] = {}
        """Worker → its running process."""
        self.operator = UserClient(self, "operator")
        self.acting_user = UserClient(self, "user")
        self.user_actions = UserActions(self)
        self._lives = 0
        self._pids = 100
        self._alive: dict[tuple[int, int], set[int]] = {}
        self._last_begun: dict[tuple[int, int], tuple[int, int]] = {}  # (run, slot) → (fence, try) whose code began last
        self._last_step = 0
        self._helped = 0

    def _update_checks(self) -> None:
        """Tell the checks the configuration of this simulation."""
        self.callback_checks.tries = self.config.callback_retries + 1
        self.checks.parallelism = self.config.parallelism
        self.checks.requeue_limit = self.config.requeue_limit
        self.checks.lives = lambda key: key[2] in self._alive.get(key[:2], ())

    # --- what others ask of the world ------------------------------------------------------------------------

    def _draw_dags(self) -> None:
        draw = self.timeline.stream("workload")
        names = [f"d{number}" for number in range(draw.choice((1, 2, 3, 4)))]
        for name in names:
            others = [other for other in names if other != name and other not in self.plans]
            self.plans[name] = self.add_features(draw_dag(draw, name, self.horizon, others), names)

    def add_features(self, plan: Plan, names: list[str]) -> Plan:
        """Add the features of this seed to a drawn DAG. `names`: the names of all DAGs in order."""
        plan = self.waiting.add_features(plan, names)
        plan = self.callback_workload.add_features(plan)
        plan = self._add_lost_attempts(self.deadlines.add_features(plan))
        return self.asset_workload.add_features(plan, names.index(plan.definition.dag_id), len(names))

    def _add_lost_attempts(self, plan: Plan) -> Plan:
        """Set `lost_attempts` of some tasks."""
        tasks = tuple(
            msgspec.structs.replace(task, lost_attempts=self.losses.choice((None, None, FAIL, REPEAT)))
            for task in plan.definition.tasks
        )
        return plan._replace(definition=msgspec.structs.replace(plan.definition, tasks=tasks))

    def violated(self, rule: str, text: str) -> None:
        self.violations.append(Finding(rule, text, self.timeline.now))
        self.timeline.stopped = True

    def _sometimes(self, what: str) -> None:
        self.timeline.sometimes[what] += 1

    def _committed(self, changes: list[Change]) -> None:
        self._last_step = self.timeline.now
        self.timeline.note("commit", *[(kind, key) for kind, key, _ in changes])
        self.checks.batch_epoch, self.checks.batch_runs = self.store_faults.epoch, self.store_faults.shares
        self.checks.committed(changes)
        self.why.committed(changes)
        command = self.command_checks.current
        self.callback_checks.committed(
            changes, self.store_faults.epoch is not None, command, self.deadline_checks.committed(changes)
        )
        self.assets.committed(changes, self.store_faults.epoch is not None, command)
        self.command_checks.committed()

    def connect_to_scheduler(self, process: Process) -> End | None:
        """Connect to the current scheduler; None: no scheduler runs."""
        life = self.scheduler
        if life is None or not life.alive or life.server is None:
            return None
        server = life.server
        here, there = self.network.link(process, life)
        connection = there.connection

        def receive(document: bytes) -> None:
            self.callback_checks.message_received(document)
            server.on_document(connection, document)

        there.listen(receive, lambda: server.on_disconnect(connection))
        server.on_connect(connection)
        return here

    def next_pid(self) -> int:
        self._pids += 1
        return self._pids

    def said(self, key: AttemptKey, report: Report) -> None:
        """Record that a task process has sent its report. The first report counts."""
        self.checks.said.setdefault(key, report)

    def is_running(self, key: AttemptKey) -> bool:
        """Whether this is the current attempt and running, by the committed rows."""
        task = self.checks.shadow.tasks.get(key[0], {}).get(key[1])
        return task is not None and task[:2] == (RUNNING, key[2])

    def user_code_begins(self, key: AttemptKey, nonce: str, try_number: int) -> None:
        """7: user code starts only after an accepted start. 6: never beside another attempt of the same task instance.

        54: once in a try, unless lost attempts are to be repeated, or the previous attempt ended as a wait.
        """
        last = self._last_begun.get(key[:2])
        if last is not None and last[1] == try_number and not self._may_begin_again((*key[:2], last[0])):
            self.violated(
                "54 once a try", f"attempt {key} starts in try {try_number}, but attempt {last[0]} had started in this try"
            )
        self._last_begun[key[:2]] = (key[2], try_number)
        accepted = self.checks.nonces.get(key)
        if accepted != nonce:
            self.violated("7 accept", f"user code of attempt {key} runs, but the accepted start is {accepted}, not {nonce}")
        others = self._alive.setdefault(key[:2], set())
        if others:
            self.violated("6 one process", f"attempt {key} starts while {sorted(others)} of the same task instance runs")
        others.add(key[2])

    def _may_begin_again(self, key: AttemptKey) -> bool:
        """Whether another attempt may follow this started attempt in the same try."""
        report = self.checks.said.get(key)
        if report is not None and report.outcome in (Outcome.RESCHEDULE, Outcome.DEFERRED):
            return True
        row = self.checks.shadow.runs.get(key[0])
        task = self.checks.shadow.tasks.get(key[0], {}).get(key[1])
        if row is None or task is None:
            return False
        # the attempt was lost under some version of the DAG, perhaps not the one that the run follows now
        definitions = [one for one in self.checks.shadow.versions.values() if one.dag_id == row.dag_id]
        chosen = [one.lost_attempts for dag in definitions if (one := dag.task(task.task_id)) is not None]
        return any(self.config.repeat_lost if one is None else one == REPEAT for one in chosen)

    def user_code_ended(self, key: AttemptKey) -> None:
        self._alive.get(key[:2], set()).discard(key[2])

    def behaves(self, work: Workload) -> Behaviour:
        """Draw the behaviour of an attempt."""
        rng, profile = self.chance, self.profile
        habit = self.habits[work.dag_id, work.task_id]
        duration = draw_delay(rng, habit.duration)
        if self.recovering:
            duration = min(duration, 20 * SECOND)
        lingers = not self.recovering and rng.random() < profile.tasks_linger
        outcome = Outcome.SUCCESS.value
        if not self.recovering:
            luck = rng.random()
            if luck < habit.fails:
                outcome = (Outcome.FAILED_FINAL if rng.random() < habit.final else Outcome.FAILED).value
            elif luck < habit.fails + habit.skips:
                outcome = Outcome.SKIPPED.value
            elif rng.random() < profile.tasks_die:
                outcome = rng.choice(("crash", "exit"))
                self.timeline.faults["task died"] += 1
        if habit.kind == "sensor" and outcome == "success" and rng.random() > 1 / (1 + habit.pokes):
            outcome = Outcome.RESCHEDULE.value
        branch = None
        if habit.kind == "brancher" and work.map_index < 0:
            shape = self.checks.shape(self.checks.shadow.runs[work.run].version)
            if work.task_id in shape.tasks and not shape.tasks[work.task_id].mapped:  # it may be mapped in another version
                branch = Branch("follow", tuple(one for one in shape.below[work.task_id] if rng.random() < 0.5))
        if lingers:
            self.timeline.faults["task lingers"] += 1
        self.checks.waits.code_started(work)
        outcome, deferral = self.waiting.draw_result(work, habit, duration, outcome)
        return Behaviour(
            duration,
            outcome,
            branch,
            rng.randrange(habit.longest + 1) if habit.kind == "provider" else 1,
            habit.wait,
            obeys_term=not (lingers and rng.random() < 0.5),
            lives_on=rng.randrange(MINUTE) if lingers else 1_000,
            triggers=habit.targets[0] if habit.kind == "triggerer" and not self.recovering and rng.random() < 0.5 else None,
            deferral=deferral,
        )

    # --- processes -------------------------------------------------------------------------------------------

    def _start_scheduler(self) -> None:
        self._lives += 1
        life = SchedulerProcess(self, self._lives)
        self.scheduler = life
        life.on_death.append(lambda: self._scheduler_died(life))
        self.timeline.after(0, life, life.begin)

    def _scheduler_died(self, life: SchedulerProcess) -> None:
        if life is self.scheduler:
            self.scheduler = None
            self.timeline.after(draw_delay(self.chance, SECOND), None, self._scheduler_again)

    def _scheduler_again(self) -> None:
        if self.scheduler is None:
            self._start_scheduler()

    def _start_host(self, worker: str) -> None:
        self._lives += 1
        life = self.make_host(worker, self._lives)
        self.hosts[worker] = life
        life.on_death.append(lambda: self._host_died(worker))
        self.timeline.after(0, life, life.begin)

    def registered_hosts(self) -> list[HostProcess]:
        return list(self.hosts.values())

    def make_host(self, worker: str, number: int) -> HostProcess:
        return HostProcess(self, worker, number)

    def _host_died(self, worker: str) -> None:
        """Start a worker host again: soon, or sometimes after a long time if other workers run."""
        del self.hosts[worker]
        pause = draw_delay(self.chance, 2 * SECOND)
        if not self.recovering and len(self.workers) > 1 and self.losses.random() < 0.1:
            self._count("host away for long")
            pause += self.losses.randrange(10 * MINUTE)
        self.timeline.after(pause, None, lambda: self._start_host(worker))

    def may_live(self, worker: str) -> bool:
        """Whether the process of this worker runs."""
        return worker in self.hosts

    def _some_host(self, rng: random.Random) -> HostProcess | None:
        """Return one of the running worker hosts, or None."""
        living = list(self.hosts.values())
        return None if not living else living[0] if len(self.workers) == 1 else rng.choice(living)

    def _passed(self, place: str) -> None:
        """Handle that a process passes a failpoint."""
        worker: Process | None = self.store_faults.worker
        if worker is not None:
            worker.step(place)

    def _lose(self, what: str, thing: Hashable) -> bool:
        """Decide whether a wake-up is dropped. For commands, only if the revision of a run shows their effect."""
        share = self.profile.wakeups_lost * (5 if what == "command" else 1)
        if not share or self.chance.random() >= share:
            return False
        if what == "command":
            asked = {**self.operator.asked, **self.acting_user.asked}.get(str(thing))
            command = None if asked is None else asked[0].command
            if not isinstance(command, ClearTasks | Trigger | MarkTasks | SetRunState | RunTask):
                return False
            self.checks.missed_message = True
            self.checks.unannounced_runs |= self.checks.new_runs
            self.checks.waits.hidden.add(command.dag_id)
        self.timeline.faults[f"wake-up lost: {what}"] += 1
        return True

    # --- faults ----------------------------------------------------------------------------------------------

    def _often(self, name: str, rate: float, act: Callable[[random.Random], None]) -> None:
        """Call a function at random times, `rate` times per hour, until the recovery phase."""
        if not rate:
            return
        rng = self.timeline.stream(name)

        def turn() -> None:
            if not self.recovering:
                act(rng)
                self.timeline.after(int(rng.expovariate(rate) * HOUR), None, turn)

        self.timeline.after(int(rng.expovariate(rate) * HOUR), None, turn)

    def _count(self, kind: str) -> None:
        self.timeline.faults[kind] += 1
        self.timeline.note("fault", kind)

    def _schedule_faults(self) -> None:
        profile = self.profile
        self._often("scheduler crash", profile.scheduler_crashes, self._crash_scheduler)
        self._often("scheduler pause", profile.scheduler_pauses, lambda rng: self._pause(self.scheduler, "scheduler", rng))
        self._often("scheduler stop", profile.scheduler_stops, self._stop_scheduler)
        self._often("takeover", profile.takeovers, self._take_over)
        self._often("host crash", profile.host_crashes, self._crash_host)
        self._often("host pause", profile.host_pauses, lambda rng: self._pause(self._some_host(rng), "host", rng))
        self._often("host stop", profile.host_stops, self._stop_host)
        self._often("link cut", profile.links_cut, self._cut_link)
        self._often("store fault", profile.store_faults, self._fail_store)
        self._often("store outage", profile.store_outages, self._break_store)
        self._often("clock jump", profile.clock_jumps, self._jump)
        self._often("command", profile.commands, self.user_actions.act)
        self._often("stray start", profile.stray_starts, self._stray_start)
        self._often("process killed", profile.processes_killed, self._kill_process)
        if self.waiting.on:
            self._often("triggerer killed", profile.triggerers_die, self.waiting.kill_triggerer)
            self._often("triggerer pause", profile.triggerers_pause, self._pause_triggerer)
            self._often("stray word", profile.stray_words, self._stray_word)
            self._often("look at slots", 60, lambda rng: self._check_kept_slots())

    def _crash_scheduler(self, rng: random.Random) -> None:
        """Let a process crash at one of its next steps."""
        life = self.scheduler
        if life is not None and life.alive and life.steps_left < 0:
            life.steps_left = rng.randrange(40)
            self._count("scheduler crashed")

    def _stop_scheduler(self, rng: random.Random) -> None:
        life = self.scheduler
        if life is not None and life.server is not None:
            server = life.server
            self._count("scheduler stopped")
            self.timeline.after(0, life, server.loop.stop)

    def _take_over(self, rng: random.Random) -> None:
        """Start a second scheduler. The first one does not know it, and may still be connected to the host."""
        old = self.scheduler
        if old is None or old.server is None:
            return
        self._count("scheduler taken over")
        if rng.random() < 0.5:
            old.pause(faults.pause_length(rng))
        self._start_scheduler()

    def _crash_host(self, rng: random.Random) -> None:
        life = self._some_host(rng)
        if life is None:
            return
        self._count("host crashed")
        if rng.random() < 0.5:
            life.die("killed")
        else:
            life.steps_left = rng.randrange(20)

    def _stop_host(self, rng: random.Random) -> None:
        life = self._some_host(rng)
        if life is not None:
            self._count("host stopped")
            self.timeline.after(0, life, life.host.drain if self.losses.random() < 0.7 else life.host.stop)

    def _pause(self, life: Process | None, what: str, rng: random.Random) -> None:
        if life is not None:
            self._count(f"{what} paused")
            life.pause(faults.pause_length(rng))

    def _pause_triggerer(self, rng: random.Random) -> None:
        if self.waiting.triggerer is not None and self.waiting.triggerer.alive:
            self._pause(self.waiting.triggerer, "triggerer", rng)

    def _cut_link(self, rng: random.Random) -> None:
        life = self._some_host(rng)
        if life is not None and life.host.scheduler is not None:
            self._count("link cut")
            self.timeline.after(0, life, life.host.scheduler.close)

    def _fail_store(self, rng: random.Random) -> None:
        if self.store_faults.fail_in < 0:
            self.store_faults.fail_in = rng.randrange(60)
            self.store_faults.failure = rng.choice(("busy", "full"))

    def _break_store(self, rng: random.Random) -> None:
        self.store_faults.failure = rng.choice(("busy", "full"))
        self.store_faults.broken_until = self.timeline.now + faults.pause_length(rng)

    def _jump(self, rng: random.Random) -> None:
        """Change a clock."""
        micros = int(rng.uniform(-1, 1) * rng.choice((SECOND, MINUTE, HOUR)))
        self._count("clock set")
        self.checks.jumped = True
        for clock in (self.clock, self.host_clock) if rng.random() < 0.5 else (rng.choice((self.clock, self.host_clock)),):
            clock.jump(micros)

    def _stray_start(self, rng: random.Random) -> None:
        """A second process requests the start of an attempt, as if its order had been delivered twice."""
        life = self._some_host(rng)
        if life is not None and life.host.attempts:
            self._count("second process asks to start")
            key = rng.choice(sorted(life.host.attempts))
            start = Start(START_OP, f"stray{rng.getrandbits(40):x}", 1, "elsewhere")
            self.timeline.after(0, life, lambda: life.host.send(FromRunner(key, start)))
            losses = self.losses
            end: FromRunner | AttemptGone = AttemptGone(key, "a second process has ended", start.nonce, life.host.name)
            if losses.random() < 0.5:
                reason = "it ended before its start was accepted"
                end = FromRunner(key, Report(0, Outcome.REFUSED, reason, nonce=start.nonce, host=life.host.name))
            self.timeline.after(losses.randrange(2 * SECOND), life, lambda: life.host.send(end))
            run, slot, fence = key
            if fence > 1:
                late = AttemptGone((run, slot, fence - 1), "an earlier attempt has ended", host=life.host.name)
                self.timeline.after(losses.randrange(2 * SECOND), life, lambda: life.host.send(late))

    def _stray_word(self, rng: random.Random) -> None:
        """Repeat the end of a trigger, preferably of a task that waits for something else now."""
        life, waits = self._some_host(rng), self.checks.waits
        late = [key for key in waits.ends if key[:2] in waits.open and waits.open[key[:2]].fence != key[2]]
        if life is not None and waits.ends:
            self._count("end of a trigger said late")
            key = rng.choice(late or list(waits.ends))
            self.timeline.after(0, life, lambda: life.host.send(TriggerFired(key, waits.ends[key][0])))

    def _kill_process(self, rng: random.Random) -> None:
        life = self._some_host(rng)
        if life is not None and life.tasks:
            self._count("task killed")
            rng.choice(life.tasks).signalled(9)

    # --- people ----------------------------------------------------------------------------------------------

    def register(self, plan: Plan, then: Callable[[CommandResult], None] | None = None) -> None:
        """Register a DAG like the parser."""
        definition = plan.definition
        data = encode_definition(definition)
        for name, habit in plan.habits.items():
            self.habits[definition.dag_id, name] = habit
        digest = version_hash(data)
        self.operator.send(
            "register_file",
            then,
            bundle="dags",
            file=definition.fileloc,
            file_hash=digest,
            dags=[[definition.dag_id, data, digest]],
            duration=0,
            at=self.clock.wall(),
        )

    def _schedule_user_actions(self) -> None:
        """Schedule the normal actions of users: trigger runs, create asset events, handle failed callbacks."""
        for dag_id, plan in self.plans.items():
            self._often(f"trigger {dag_id}", plan.runs_by_hand, lambda rng, dag_id=dag_id: self._trigger(dag_id, rng))  # type: ignore[misc]
        self._often("by people", self.asset_workload.commands, self.asset_workload.command)
        self._often("callbacks by people", self.callback_workload.commands, self.callback_workload.command)

    def _trigger(self, dag_id: str, rng: random.Random) -> None:
        for _ in range(1 if rng.random() < 0.9 else rng.randrange(2, 8)):
            number = self.next_pid()
            date = self.clock.wall() + number if rng.random() < 0.8 else None
            args: dict[str, Any] = {"dag_id": dag_id, "run_id": f"by_hand_{number}", "logical_date": date}
            self.operator.send("trigger", **args)

    # --- the phases ------------------------------------------------------------------------------------------

    def run(self) -> World:
        """Run both phases."""
        with self._listening():
            self._begin()
            self.timeline.run(self.horizon)
            if not self.violations:
                self._recover()
        return self

    def _begin(self) -> None:
        setup = self.timeline.stream("pools")
        self._start_scheduler()
        for worker in self.workers:
            self._start_host(worker)
        self.timeline.run(SECOND)
        for name in POOLS:
            slots = setup.choice((1, 2, 3, 8, -1)) + (name == "wide" and 1)
            self.operator.send("set_pool", name=name, slots=slots, **self.waiting.pool(name))
        for plan in self.plans.values():
            self.register(plan)
        self._schedule_faults()
        self._schedule_user_actions()

    def _recover(self) -> None:
        """Stop the faults. Everything must end within a time limit."""
        self.recovering = True
        self.profile = CALM
        self.network.trouble = Network(self.timeline).trouble
        store_faults = self.store_faults
        store_faults.fail_in, store_faults.broken_until, store_faults.unknown = -1, 0, 0.0
        for life in (self.scheduler, *self.hosts.values()):
            if life is not None:
                life.steps_left = -1
                life.paused_until = min(life.paused_until, self.timeline.now)
        self.waiting.start_recovery()
        self.acting_user.asked.clear()
        start = fewer_since = self.timeline.now
        fewest: int | None = None
        while not self.violations:
            self._restore_settings()
            self.host_clock.jump(self.clock.wall() - self.host_clock.wall())  # otherwise their difference grows over the days
            self.timeline.run(self.timeline.now + 5 * MINUTE)
            waiting = self._unfinished()
            if fewest is None or len(waiting) < fewest:
                fewest, fewer_since = len(waiting), self.timeline.now
            over = (
                not (
                    waiting
                    or self.operator.asked
                    or self.callback_checks.left()
                    or self.assets.due()
                    or self.deadline_checks.left()
                )
                and self._settled()
            )
            if over and (self._host_is_empty() or self.timeline.now - self._last_step > QUIET_AFTER):
                break
            if self.timeline.now - max(start, self._last_step) > QUIET_AFTER and not waiting and (due := self.assets.due()):
                self.violated("49 assets", f"the assets of {', '.join(due)} were updated, but no run was created")
            if self.timeline.now - start > QUIET_AFTER and (forgotten := self.callback_checks.forgotten()):
                self.violated("36 posts", f"these callbacks are not called: {', '.join(forgotten[:8])}")
            if self.timeline.now - start > QUIET_AFTER and (forgotten := self.deadline_checks.forgotten()):
                self.violated("52 deadlines", f"these deadlines are not evaluated: {', '.join(forgotten[:8])}")
            if not waiting and not self.operator.asked:
                continue  # a clock was set back: a schedule continues for a while, or callbacks are not called yet
            self._check_kept_slots()
            if self._quiet(waiting) and not self.waiting.repair(waiting) and not self._repair(waiting):
                self.violated("17 wedge", f"no progress any more: {self._describe(waiting)}")
            elif self.timeline.now - fewer_since > RECOVERY_MAX:
                self.violated("17 wedge", f"it does not end: {self._describe(waiting)}")
        if not self.violations:
            self._check_the_end()

    def _restore_settings(self) -> None:
        """Set the pools and unpause all DAGs. Repeat this if an earlier command that arrives late has changed them."""
        shadow, asked = self.checks.shadow, [one.command for one, _ in self.operator.asked.values()]
        for name in POOLS:
            args: dict[str, Any] = {"name": name, "slots": RECOVERY_POOL_SLOTS, **self.waiting.pool(name)}
            pool = shadow.pools.get(name)
            if (pool is None or pool.slots != RECOVERY_POOL_SLOTS) and build("set_pool", args) not in asked:
                self.operator.send("set_pool", **args)
        for dag_id in self.plans:
            dag, args = shadow.dags.get(dag_id), {"dag_id": dag_id, "is_paused": False}
            if (dag is None or dag.is_paused) and build("set_paused", args) not in asked:
                self.operator.send("set_paused", **args)

    def _unfinished(self) -> list[int]:
        return [run for run, row in self.checks.shadow.runs.items() if row.state not in (R_SUCCESS, R_FAILED)]

    def _quiet(self, waiting: list[int]) -> bool:
        """Whether nothing has happened for long, and nothing runs or is due later."""
        shadow, long_ago = self.checks.shadow, self.clock.wall() - QUIET_AFTER
        if self.timeline.now - self._last_step < QUIET_AFTER or any(self._alive.values()):
            return False
        if not self.waiting.quiet(waiting, long_ago):
            return False
        dates = [task.due for run in waiting for task in shadow.tasks[run].values() if task.state in (RETRY, RESCHEDULE)]
        return all(date < long_ago for date in (*dates, *(shadow.runs[run].run_after for run in waiting)))

    def _settled(self) -> bool:
        """Whether all schedules have ended, too."""
        return self.clock.wall() > max((plan.definition.end_date or 0 for plan in self.plans.values()), default=0)

    def _host_is_empty(self) -> bool:
        """Whether no host has attempts or unacknowledged reports. Processes may continue for a while after their report."""
        return not any(life.host.attempts or life.host.unacknowledged for life in self.hosts.values())

    def _repair(self, waiting: list[int]) -> bool:
        """Repair runs that wait for a failed previous run, as a user would do it. Return whether there was something to repair.

        In turn: clear failed tasks, mark the other unsuccessful tasks as success, mark the waiting tasks themselves.
        """
        shadow = self.checks.shadow
        stuck = {
            run
            for run in waiting
            if any(self._waits_for_failed_past(run, task, waiting) for task in shadow.tasks[run].values())
        }
        dags = {shadow.runs[run].dag_id for run in stuck}
        self._helped += 1
        if not stuck or self._helped > REPAIRS_MAX:
            return False
        for run, row in list(shadow.runs.items()):
            where: dict[str, Any] = {"dag_id": row.dag_id, "run_id": row.run_id}
            tasks = shadow.tasks.get(run, {}).values()
            over = row.state in (R_SUCCESS, R_FAILED)
            if row.dag_id not in dags:
                continue
            if self._helped % 3 == 1 and over and any(task.state in (FAILED, UPSTREAM_FAILED) for task in tasks):
                self.operator.send("clear", **where, only_failed=True)
            elif self._helped % 3 == 2 and over and any(task.state not in (SUCCESS, SKIPPED) for task in tasks):
                names = sorted({task.task_id for task in tasks if task.state not in (SUCCESS, SKIPPED)})
                self.operator.send("mark", **where, task_ids=names, state="success")
            elif self._helped % 3 == 0 and run in stuck:
                names = sorted({task.task_id for task in tasks if self._waits_for_failed_past(run, task, waiting)})
                self.operator.send("mark", **where, task_ids=names, state="success")
        self._last_step = self.timeline.now
        return True

    def before(self, run: int) -> int | None:
        """Return the previous run on which a run depends."""
        row, runs = self.checks.shadow.runs[run], self.checks.shadow.runs
        catchup = self.checks.shape(row.version).definition.catchup
        earlier = [
            (other.logical_date, number)
            for number, other in runs.items()
            if other.dag_id == row.dag_id
            and other.logical_date is not None
            and other.logical_date < (row.logical_date or 0)
            and not (catchup and other.kind == "manual")
        ]
        return max(earlier)[1] if earlier else None

    def _waits_for_failed_past(self, run: int, task: Task, waiting: list[int]) -> bool:
        """Whether a task waits for the previous run, which has ended without the required state."""
        shape = self.checks.shape(self.checks.shadow.runs[run].version)
        definition = self.checks.task_of(self.checks.shadow.runs[run], task)
        if task.state not in (NONE, RETRY, RESCHEDULE) or not (definition.depends_on_past or definition.wait_for_downstream):
            return False
        before = self.before(run)
        if before is None or before in waiting:
            return False
        names = {task.task_id, *(shape.below.get(task.task_id, ()) if definition.wait_for_downstream else ())}
        there = [one for one in self.checks.shadow.tasks.get(before, {}).values() if one.task_id in names]
        known = any(one.task_id == task.task_id for one in there)
        return not known or any(one.state not in (SUCCESS, SKIPPED) for one in there)

    def _describe(self, waiting: list[int]) -> str:
        shadow = self.checks.shadow
        found = []
        for run in waiting[:3]:
            row = shadow.runs[run]
            states = [
                f"{task.task_id}[{task.map_index}] {NAMES[task.state]}"
                for task in shadow.tasks[run].values()
                if task.state not in OVER
            ]
            found.append(f"{row.dag_id}/{row.run_id} is {row.state}: {', '.join(states[:8])}")
        if self.operator.asked:
            found.append(f"unanswered: {', '.join(name_of(one.command) for one, _ in self.operator.asked.values())}")
        return "; ".join(found)

    def _check_kept_slots(self) -> None:
        """14: while no attempt runs, the memory of the scheduler holds no slots, except those of deferred tasks in pools that
        count them.
        """
        life, used = self.scheduler, self.checks.used()
        server = life.server if life is not None else None
        if server is None or server.scheduler.paused or server.scheduler.busy or used.get(("all",)):
            return
        if server.scheduler.epoch != self.checks.shadow.epoch or self.checks.missed_message:
            return  # a message was lost, so its memory may be outdated
        admission = server.scheduler.admission
        if admission.used(PARALLELISM):
            self.violated("14 slots", f"no attempt runs, but the scheduler counts {admission.used(PARALLELISM)}")
        for name in POOLS:
            held = used.get(("pool", name), 0)
            if admission.used(("pool", name, 0)) != held:
                self.violated("14 slots", f"waits hold {held} slots of pool {name}, not {admission.used(('pool', name, 0))}")

    def _check_the_end(self) -> None:
        """14: no slot is in use any more, neither in the store nor in the memory of the scheduler."""
        if self.checks.used():
            self.violated("14 slots", f"everything has ended, but these slots are in use: {self.checks.used()}")
        life = self.scheduler
        if life is not None and life.server is not None:
            admission = life.server.scheduler.admission
            for name in POOLS:
                if admission.used(("pool", name, 0)):
                    self.violated("14 slots", f"everything has ended, but the scheduler counts used slots of pool {name}")
            if life.server.scheduler.active_runs_by_id or life.server.scheduler.waits.open:
                self.violated("14 memory", "everything has ended, but the scheduler has runs or waits in memory")
        if any(life.host.triggers.fired for life in self.registered_hosts()):
            self.violated("32 processes", "everything has ended, but the host has unacknowledged ends of triggers")
        if not self._host_is_empty():
            self.violated("32 processes", "everything has ended, but the host has attempts or reports left")

    @contextmanager
    def _listening(self) -> Any:
        """Connect failpoints and errors in the log to this simulation."""
        logger = logging.getLogger(ROOT)
        handler = _Listener(self)
        before = logger.level, logger.propagate
        with ExitStack() as stack:
            stack.callback(failpoints.listen, None)
            failpoints.listen(self._passed, self._lose)
            logger.addHandler(handler)
            logger.setLevel(logging.ERROR)
            logger.propagate = False
            try:
                yield
            finally:
                logger.removeHandler(handler)
                logger.setLevel(before[0])
                logger.propagate = before[1]


class _Listener(logging.Handler):
    """An error with an exception in Tradewind's log is a violation: an unexpected failure."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, StoreError):
            text = "".join(traceback.format_exception(error))
            self._world.violated("29 log", f"{record.getMessage()}\n{text}")
        else:
            self._world.timeline.sometimes[f"logged: {record.getMessage()}"] += 1


def replaced(plan: Plan, **changed: Any) -> Plan:
    return plan._replace(definition=msgspec.structs.replace(plan.definition, **changed))
