"""The engine of a simulation: the real scheduler, an executor without processes, and a clock that jumps from event to event."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tradewind.execution.xcom_codec import encode_xcom
from tradewind.executors.single import SingleWorker
from tradewind.kernel.events import AttemptVanished
from tradewind.model.definition import DagDefinition, encode_definition, version_hash
from tradewind.model.errors import Conflict
from tradewind.model.moments import DAY, from_micros
from tradewind.model.rows import Batch, NewRun, ParsedDag, ParsedFile, PoolRow, RunWrite, TaskWrite, XComWrite
from tradewind.model.states import RunState, TaskState
from tradewind.parser import timetable_child
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.inbox import FromWorker, RunEvent
from tradewind.scheduler.waits.wait_index import WaitResult
from tradewind.sdk.exceptions import AirflowTaskTimeout
from tradewind.store.memory import MemoryStore
from tradewind.testing.attempts import make_attempt
from tradewind.testing.dag_test import inline_config
from tradewind.testing.frozen_clock import FrozenClock, frozen
from tradewind.testing.inline_runtime import InlineRuntime
from tradewind.testing.inline_triggers import Answer, wait_inline
from tradewind.testing.results import TestedAttempt
from tradewind.wire.commands import Command, Trigger, receive, request_for, result_of
from tradewind.wire.messages import (
    Accepted,
    AttemptKey,
    LastLine,
    Notice,
    Report,
    Start,
    TimetableAnswer,
    TimetableQuestion,
    ToRunner,
    TriggerOrder,
    Workload,
)
from tradewind.wire.runtime import installed

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

R = TypeVar("R")

HOST = "virtual"
LONGEST_SLEEP = 366 * DAY
"""Longest sleep of a task. Nothing else happens during a sleep, so a longer one would never end."""

Xcoms = Mapping[Any, Any]
"""Task id, or (task id, key) → value."""


class _Executor(SingleWorker):
    """Keeps workloads, cancellations and triggers until the engine takes them."""

    def __init__(self) -> None:
        self.submitted: list[Workload] = []
        self.cancelled: list[AttemptKey] = []
        self.accepted: dict[AttemptKey, bool] = {}
        """The last answer of the scheduler for an attempt: accepted or not."""
        self.triggers: dict[AttemptKey, TriggerOrder] = {}

    def submit(self, workloads: Sequence[Workload]) -> None:
        self.submitted += workloads

    def cancel(self, attempt: AttemptKey, reason: str, grace: int, worker: str | None = None) -> None:
        self.cancelled.append(attempt)

    def reconcile(self, worker: str, attempts: Mapping[AttemptKey, str], *, complete: bool = False) -> None:
        """Does nothing: attempts cannot get lost."""

    def end_log(self, line: LastLine, worker: str | None = None) -> None:
        """Does nothing: there are no log files."""

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        self.triggers.update((order.key, order) for order in triggers if not order.watches)

    def trigger_worker(self, key: AttemptKey) -> str | None:
        """None: asset watchers do not run here."""
        return None

    def take_watcher_event(self, key: AttemptKey, token: str) -> None:
        """Does nothing: asset watchers do not run here."""

    def drop_triggers(self, keys: Sequence[AttemptKey], worker: str | None = None) -> None:
        for key in keys:
            self.triggers.pop(key, None)

    def answer(self, host: str, answer: ToRunner) -> None:
        self.accepted[answer.attempt] = isinstance(answer.body, Accepted)


class _RunningAttempt(NamedTuple):
    """An attempt that runs in virtual time. Its code has run already."""

    instance: tuple[str, str, str, int]
    """DAG, run, task, map index: the order of reports at the same time."""
    ends: int
    report: Report
    record: TestedAttempt


class _AttemptClock(FrozenClock):
    """The clock of one attempt. It moves when the code sleeps, but not beyond the time limit of the attempt."""

    __slots__ = ("_last",)

    def __init__(self, wall: int, monotonic: int, limit: int | None) -> None:
        super().__init__(wall, monotonic)
        self._last = wall + (LONGEST_SLEEP if limit is None else limit)

    def advance(self, micros: int) -> None:
        left = self._last - self.wall()
        super().advance(min(micros, left))
        if micros > left:
            raise AirflowTaskTimeout("the task slept beyond its execution_timeout, or for more than a year")


TRIGGER_SECONDS = 60.0
"""Maximum duration of a trigger, in real time."""


class VirtualTime:
    """Store, scheduler and attempts under one virtual clock.

    Args:
        start: µs.
        parallelism: maximum number of concurrent attempts; 0 is no limit.
        shown: also print the output of tasks as usual.
        notify: called when a run changes its state.
    """

    def __init__(self, start: int, parallelism: int, shown: bool, notify: Callable[[Notice], None]) -> None:
        self.store = MemoryStore()
        self.clock = FrozenClock(start)
        self.records: dict[int, list[TestedAttempt]] = {}
        """Run number → its attempts, in the order of their ends."""
        self._dags: dict[str, DAG] = {}
        self._shown = shown
        self._executor = _Executor()
        self.answer: Answer | None = None
        """Returns the result of every wait; None: triggers run, and the clock reaches the times."""
        self._running: dict[AttemptKey, _RunningAttempt] = {}
        self._calls: list[tuple[int, int, Trigger, Xcoms]] = []
        self._op = 0
        config = inline_config(parallelism)
        self._scheduler = Scheduler(self.store, self.clock, config, self._executor, 0, notify)
        self._commands = Commands(self.store, self.clock, config, str.encode, self._ask)
        self._scheduler.timetables.connect(lambda ask: self._scheduler.schedules.on_timetable_answer(self._ask(ask)))

    def register(self, dag: DAG, definition: DagDefinition, pools: Mapping[str, int]) -> None:
        """Register a DAG. Pools that are not in `pools` have no limit."""
        data, now = encode_definition(definition), self.clock.wall()
        parsed = ParsedDag(dag.dag_id, data, version_hash(data))
        file = ParsedFile("dags", f"{dag.dag_id}.py", "", (parsed,), None, 0, False, now)
        self.store.register_file(file, paused_at_creation=False)
        self._dags[dag.dag_id] = dag
        for name in {"default_pool", *pools, *(task.pool for task in definition.tasks)}:
            self.store.set_pool(PoolRow(name, pools.get(name, -1), None, False), HOST, now)
        self._scheduler.load()

    def _ask(self, ask: TimetableQuestion) -> TimetableAnswer:
        """Evaluate a custom timetable in this process, because this is the process of its author."""
        try:
            return timetable_child.call_timetable(self._dags[ask.dag_id].schedule, ask)
        except Exception as error:
            return TimetableAnswer(ask.number, problem=f"{type(error).__name__}: {error}")

    # --- actions ------------------------------------------------------------------------------------------------------

    def command(self, command: Command[R]) -> R:
        """Execute a command like the command line. Raises its error."""
        self._op += 1
        answer, effects = self._commands.run(receive(request_for(f"{HOST}/{self._op}", command, "a test")))
        value = result_of(answer, command)
        effects.apply(self._scheduler)
        return value

    def trigger(self, at: int, trigger: Trigger, xcoms: Xcoms) -> None:
        """Create a run at the time `at`, with XComs that exist from the start."""
        if at <= self.clock.wall():
            self._create(trigger, xcoms)
        else:
            self._op += 1
            heapq.heappush(self._calls, (at, self._op, trigger, xcoms))

    def create_past(self, new: NewRun, state: RunState, ended: int) -> None:
        """Create a run that has already ended, with all tasks in the state of the run."""
        row = self.store.create_run(new)
        snapshot = self.store.snapshot(row.id)
        assert snapshot is not None
        code = TaskState(state.value).code
        tasks = [
            TaskWrite(one._replace(state=code, try_number=1, started_at=new.at, ended_at=ended), one.state, one.fence)
            for one in snapshot.rows
        ]
        write = RunWrite(row.id, row.revision, state, new.at, ended, None, row.journal_seq, tasks)
        self.store.commit(Batch(0, new.at, [write]))
        self._scheduler.schedules.refresh(new.dag_id)

    def _create(self, trigger: Trigger, xcoms: Xcoms) -> None:
        run = self.command(trigger).id
        self.store.push_xcoms(run, list(_writes(xcoms, self.clock.wall())))

    # --- passing time ---------------------------------------------------------------------------------------------------

    def play(self, last: int | None, steps_max: int) -> None:
        """Process event after event until there is none, or none until `last`.

        Raises:
            Conflict: an internal error, a simulation without end, or a later run that cannot be created.
        """
        with frozen(self.clock):
            for _ in range(steps_max):
                self._decide_and_start()
                due = self._next_moment()
                if due is None or (last is not None and due > last):
                    break
                self.clock.jump_to(due)
                self._process_due()
            else:
                raise Conflict(f"the simulation does not end: after {steps_max} events it is {self.clock.now} in it")
            if last is not None:
                self.clock.jump_to(last)

    def _next_moment(self) -> int | None:
        timer = self._scheduler.timers.next_due()
        moments = [attempt.ends for attempt in self._running.values()] + [call[0] for call in self._calls[:1]]
        return min([*moments, timer] if timer is not None else moments, default=None)

    def _process_due(self) -> None:
        """Send the reports of attempts that have ended, then create the runs that are due."""
        now = self.clock.wall()
        over = sorted((attempt.instance, key) for key, attempt in self._running.items() if attempt.ends <= now)
        for _, key in over:
            attempt = self._running[key]
            self._scheduler.push(FromWorker(key, HOST, attempt.report))
        if over:
            self._scheduler.process()
        for _, key in over:
            self._ended(key, counted=self._executor.accepted.get(key, False))
        while self._calls and self._calls[0][0] <= now:
            _, _, trigger, xcoms = heapq.heappop(self._calls)
            self._create(trigger, xcoms)

    def _ended(self, key: AttemptKey, *, counted: bool) -> None:
        attempt = self._running.pop(key, None)
        if attempt is not None:
            record = replace(attempt.record, ended=from_micros(self.clock.wall()), stopped=not counted)
            self.records.setdefault(key[0], []).append(record)

    def _decide_and_start(self) -> None:
        """Decide and start tasks until nothing is left to do at this time."""
        scheduler, executor = self._scheduler, self._executor
        while True:
            scheduler.process()
            if scheduler.trouble is not None or any(scheduler.is_quarantined(row.id) for row in self.store.active_runs()):
                why = scheduler.trouble or "an internal error of Tradewind; the log shows it"
                raise Conflict(f"the simulation cannot continue: {why}")
            cancelled, executor.cancelled = executor.cancelled, []
            for key in cancelled:
                self._ended(key, counted=False)
                scheduler.push(RunEvent(key[0], AttemptVanished(key[1], key[2], 0, "it was stopped")))
            submitted, executor.submitted = executor.submitted, []
            for workload in submitted:
                self._start(workload)
            triggers, executor.triggers = executor.triggers, {}
            answered = self._answered()
            for order in () if self.answer is not None else triggers.values():  # triggers take no virtual time
                scheduler.push(wait_inline(scheduler, order, TRIGGER_SECONDS))
            if not (cancelled or submitted or triggers or answered):
                return

    def _answered(self) -> bool:
        """End all open waits with the result that the test has given, if it has given one. True if there was a wait."""
        answer = self.answer
        if answer is None:
            return False
        waiting = list(self._scheduler.waits.open.values())
        for one in waiting:
            self._scheduler.push(WaitResult(*one.key, answer(one.deferral)))
        return bool(waiting)

    def _start(self, workload: Workload) -> None:
        """Request the start and run the code of the task. The report follows when the virtual duration of the attempt is over."""
        key, executor = workload.key, self._executor
        self._op += 1
        start = Start(self._op, f"{HOST}/{self._op}", 0, HOST)
        self._scheduler.push(FromWorker(key, HOST, start))
        self._scheduler.process()
        if not executor.accepted.pop(key, False):
            return
        own = _AttemptClock(self.clock.wall(), self.clock.monotonic(), workload.execution_timeout)
        task = self._dags[workload.dag_id].task_dict[workload.task_id]
        with frozen(own), installed(InlineRuntime(self.store, own, key)):
            result, record = make_attempt(task, workload, own, shown=self._shown)
        self._op += 1
        report = Report(
            self._op,
            result.outcome,
            reason=result.reason,
            ended=own.wall(),
            reschedule_at=result.reschedule_at,
            retry_delay=result.retry_delay,
            xcoms=tuple(result.pushed),
            branch=result.branch,
            map_length=result.map_length,
            map_label=result.map_label,
            deferral=result.deferral,
            assets=result.assets,
        )
        instance = workload.dag_id, workload.run_id, workload.task_id, workload.map_index
        self._running[key] = _RunningAttempt(instance, own.wall(), report, record)


def _writes(xcoms: Xcoms, at: int) -> Iterable[XComWrite]:
    for name, value in xcoms.items():
        task_id, key = name if isinstance(name, tuple) else (name, "return_value")
        data = encode_xcom(value, key)
        yield XComWrite(task_id, -1, key, data, None, len(data), at)
