"""`dag.test()`: one run of a DAG, here and now, in this very process.

The same scheduler and the same kernel as in production, on the store in memory; attempts are made one after the other by calling
them, so breakpoints, print and exceptions behave as in any script. Nobody waits: when all that is left to do lies in the future (a
retry, a rescheduled sensor), the clock jumps there. A sensor in poke mode waits as it says.

What is different from production: nothing is stopped from outside. An `execution_timeout` that was passed is told, not enforced,
for whoever steps through a task with a debugger must not be cut off.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from tradewind.execution.run_task import TaskResult
from tradewind.model.definition import (
    CustomSchedule,
    DagDefinition,
    DefinitionDefaults,
    NoSchedule,
    Schedule,
    encode_definition,
    version_hash,
)
from tradewind.model.errors import Conflict, DefinitionError, NotYetSupported, UnknownArgument, did_you_mean
from tradewind.model.moments import DAY, SECOND, iso, to_micros
from tradewind.model.rows import NewRun, ParsedDag, ParsedFile, PoolRow, RunRow
from tradewind.model.states import FINISHED_RUNS, Outcome, RunState, RunType, TaskState
from tradewind.model.waits import NEVER_BY_ITSELF, Deferral, MomentWait, tasks_waits
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.runs.params import check_conf
from tradewind.sdk.definition import to_definition
from tradewind.settings import load
from tradewind.store.memory import MemoryStore
from tradewind.testing.attempts import make_attempt
from tradewind.testing.frozen_clock import frozen_now
from tradewind.testing.inline_executor import InlineExecutor
from tradewind.testing.inline_runtime import InlineRuntime, Outside
from tradewind.testing.jumping_clock import JumpingClock
from tradewind.testing.results import TestedAttempt, TestedRun, tested_run
from tradewind.testing.secret_files import read_connections, read_variables
from tradewind.testing.secrets import fake_secrets
from tradewind.timetables import manual_interval
from tradewind.timetables.custom import compute_manual_interval
from tradewind.wire.messages import Report, Workload
from tradewind.wire.runtime import installed

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

NOW = object()
"""A logical date that was not given: the present. None is a run without one."""

Say = Callable[[str], None]

_OTHER_NAMES = {"execution_date": "logical_date", "conf": "run_conf"}
"""Airflow 2's names of arguments."""

_LATER = {
    "use_executor": "dag.test(use_executor=True): runs through an executor come with a later release; use `tradewind dags trigger`",
    "session": "dag.test(session=…): there is no database session; leave it out",
}


def run_dag_test(
    dag: DAG,
    logical_date: Any = NOW,
    run_conf: dict[str, Any] | None = None,
    conn_file_path: str | None = None,
    variable_file_path: str | None = None,
    mark_success_pattern: str | re.Pattern[str] | None = None,
    *,
    run_after: datetime | None = None,
    say: Say = print,
    keep_logs: bool = False,
    only_task: str | None = None,
    outside: Outside | None = None,
    **others: Any,
) -> TestedRun:
    """Run a DAG once and return what it came to. Tasks that fail make a failed run, not an exception.

    Args:
        logical_date: a datetime, the run's date, in UTC when it has no zone; now unless given. None: a run without one.
        run_conf: the run's `conf`, checked against the DAG's params.
        conn_file_path, variable_file_path: connections and variables for this run, as .json, .yaml or .env. There are no others,
            but for those in the environment (TRADEWIND_VAR_NAME, TRADEWIND_CONN_ID …) and those of `outside`.
        mark_success_pattern: tasks whose whole id matches are not carried out but taken for done.
        run_after: the moment at which the run becomes due; changes what templates see, nothing waits for it.
        say: receives each line of the progress; `print` unless given.
        keep_logs: `TestedRun.attempts` hold what their tasks printed. Not for debugging: a debugger needs the terminal itself.
        only_task: carry out, and tell of, this task alone; all others are taken for done.
        outside: a deployment whose variables, connections and XComs count where this run has none of its own.
        others: `execution_date` and `conf` are Airflow 2's names of `logical_date` and `run_conf`.

    Raises:
        UnknownArgument, NotYetSupported: an argument that cannot be.
        DefinitionError: the DAG says something that cannot be.
        Conflict: `run_conf` does not fit the params, or the run cannot go on (the sentence says why).
        KeyboardInterrupt: somebody pressed Ctrl-C, or left the debugger.
    """
    named = _known(others, {"logical_date": logical_date, "run_conf": run_conf})
    logical_date, conf = named["logical_date"], named["run_conf"] or {}
    definition = to_definition(dag, os.path.basename(dag.fileloc), configured_defaults(dag.fileloc))
    check_conf(definition, conf)
    if only_task is not None:
        mark_success_pattern = rf"(?!{re.escape(only_task)}\Z).*"
    take_for_done = re.compile(mark_success_pattern) if mark_success_pattern else None
    rehearsal = _Rehearsal(dag, definition, take_for_done, say, keep_logs)
    rehearsal.only_task, rehearsal.outside = only_task, outside
    variables, connections = fake_secrets()
    for variable in [*variables, *(read_variables(variable_file_path) if variable_file_path else ())]:
        rehearsal.store.set_variable(variable, "dag.test", rehearsal.clock.wall())
    for connection in [*connections, *(read_connections(conn_file_path) if conn_file_path else ())]:
        rehearsal.store.set_connection(connection, "dag.test", rehearsal.clock.wall())
    date = rehearsal.clock.wall() if logical_date is NOW else _moment("logical_date", logical_date)
    return rehearsal.run(date, _moment("run_after", run_after), conf)


def _known(others: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments under their present names. Raises UnknownArgument or NotYetSupported."""
    for name, value in others.items():
        if name in _OTHER_NAMES:
            present = _OTHER_NAMES[name]
            if given[present] not in (NOW, None):
                raise UnknownArgument(f"dag.test(): {name} is the older name of {present}; give one of the two")
            given[present] = value
        elif name not in _LATER:
            known = ["logical_date", "run_conf", "conn_file_path", "variable_file_path", "mark_success_pattern", "run_after"]
            raise UnknownArgument(f"dag.test() has no argument {name!r}.{did_you_mean(name, [*known, *_OTHER_NAMES, *_LATER])}")
        elif value:
            raise NotYetSupported(_LATER[name])
    return given


def _moment(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise DefinitionError(f"dag.test(): {name} is {value!r}; it must be a datetime")
    return to_micros(value if value.tzinfo is not None else value.replace(tzinfo=UTC))


def configured_defaults(file: str = "") -> DefinitionDefaults:
    """What the settings say.

    Args:
        file: absolute path of the DAG's file, where a setting may depend on its folder.
    """
    core = load().core
    defaults = DefinitionDefaults(
        retries=core.default_task_retries,
        retry_delay=core.default_task_retry_delay_us,
        max_active_tasks=core.max_active_tasks_per_dag,
        max_active_tasks_all_runs=core.max_active_tasks_all_runs,
        max_active_tasks_of_folders=core.max_active_tasks_of_folders,
        max_active_runs=core.max_active_runs_per_dag,
        catchup=core.catchup_by_default,
        schedule_meaning="airflow2" if core.schedule_meaning == "airflow2" else "airflow3",
        timezone=core.default_timezone,
        meanings=core.meanings,
    )
    return defaults.of_file(os.path.relpath(file, core.dags_folder)) if file else defaults


class _Rehearsal:
    """One run under way."""

    def __init__(
        self, dag: DAG, definition: DagDefinition, take_for_done: re.Pattern[str] | None, say: Say, keep_logs: bool
    ) -> None:
        self.dag = dag
        self.store = MemoryStore()
        self.clock = frozen_now() or JumpingClock()
        self._keep_logs = keep_logs
        self._attempts: list[TestedAttempt] = []
        self._schedule: Schedule = definition.schedule
        # no run of its own schedule begins beside the one that is asked for
        # and every task is carried out, also one that production would only wait for
        tasks = tuple(msgspec.structs.replace(task, wait=None) for task in definition.tasks)
        self._definition = msgspec.structs.replace(
            definition, tasks=tasks, schedule=NoSchedule(), assets=None, is_paused_upon_creation=False
        )
        self._take_for_done = take_for_done
        self._say = say
        self.only_task: str | None = None
        self.outside: Outside | None = None
        self._interrupted = False
        self._executor = InlineExecutor(self._perform)
        self._scheduler = Scheduler(self.store, self.clock, inline_config(dag.folder), self._executor, 0, lambda notice: None)

    def run(self, date: int | None, run_after: int | None, conf: dict[str, Any]) -> TestedRun:
        store, scheduler, now = self.store, self._scheduler, self.clock.wall()
        self._register(now)
        for warning in self._definition.warnings:
            self._say(f"warning: {warning}")
        at = date if date is not None else now
        if isinstance(self._schedule, CustomSchedule):
            interval = compute_manual_interval(self.dag.time_schedule, at) or (None, None)
        else:
            interval = manual_interval(self._schedule, at, now) or (None, None)
        after = run_after if run_after is not None else (date if date is not None else now)
        row = store.create_run(
            NewRun(
                dag_id=self.dag.dag_id,
                run_id=f"manual__{(iso(date if date is not None else after) or '').replace('Z', '+00:00')}",
                run_type=RunType.MANUAL,
                version=store.need_dag(self.dag.dag_id).version,
                logical_date=date,
                interval_start=interval[0],
                interval_end=interval[1],
                run_after=after,
                at=now,
                triggered_by="test",
                conf=msgspec.json.encode(conf) if conf else None,
            )
        )
        scheduler.load()
        with _shown_logs():
            while not (ended := self._finished(row.id)):
                if not self._executor.step(scheduler):
                    self._jump(row.id)
        self._tell(ended)
        return ended

    def _register(self, now: int) -> None:
        data = encode_definition(self._definition)
        dags = (ParsedDag(self.dag.dag_id, data, version_hash(data)),)
        fileloc = self._definition.fileloc
        parsed = ParsedFile("dags", fileloc, "", dags, problem=None, duration=0, is_dynamic=False, at=now)
        self.store.register_file(parsed, paused_at_creation=False)
        for pool in {"default_pool", *(task.pool for task in self._definition.tasks)}:
            self.store.set_pool(PoolRow(pool, -1, "made by dag.test()", False), "dag.test", now)

    def _finished(self, run: int) -> TestedRun | None:
        """Let the scheduler decide what it can; the outcome, once there is one."""
        scheduler = self._scheduler
        scheduler.process()
        if scheduler.trouble is not None:
            raise Conflict(f"the run cannot go on: {scheduler.trouble}")
        row = self.store.run(run)
        assert row is not None
        if row.state is RunState.RUNNING and run not in scheduler.active_runs_by_id:
            raise Conflict("the run cannot go on: deciding it failed inside Tradewind; the log above says where")
        return self._outcome(row) if row.state in FINISHED_RUNS else None

    def _jump(self, run: int) -> None:
        """Nothing can be done now: go to the next moment at which something can."""
        due = self._scheduler.timers.next_due()
        if due is None:
            waiting = [
                task for task in self._outcome(self.store.run(run)).tasks.values() if task.state is not TaskState.SUCCESS
            ]
            names = ", ".join(f"{task.task_id} ({task.state.value})" for task in waiting[:10])
            raise Conflict(f"the run cannot go on, and no moment will change that. Its unfinished tasks: {names}")
        ahead = due - self.clock.wall()
        if ahead > SECOND:
            self._say(f"… nothing to do for {_span(ahead)}: skipped")
        self.clock.jump_to(due)

    # --- attempts ---------------------------------------------------------------------------------------------------

    def _perform(self, workload: Workload) -> Report:
        """Make one attempt."""
        task_id = workload.task_id
        name = task_id if workload.map_index < 0 else f"{task_id}[{workload.map_index}]"
        if self._take_for_done is not None and self._take_for_done.fullmatch(task_id):
            if self.only_task is None:
                self._say(f"[{name}] taken for done")
            return Report(2, Outcome.SUCCESS, reason="it was taken for done (mark_success_pattern)", ended=self.clock.wall())
        again = f", try {workload.try_number}" if workload.try_number > 1 else ""
        self._say(f"[{name}] running{again}")
        began, lead = self.clock.wall(), self.clock.lead
        with installed(InlineRuntime(self.store, self.clock, workload.key, self.outside)), self._minding_interrupts():
            task = self.dag.task_dict[task_id]
            result, record = make_attempt(task, _in_real_time(workload, lead), self.clock, keep_log=self._keep_logs)
        self._attempts.append(record)
        self._leave_if_asked(result)
        ended = self.clock.wall()
        late = workload.execution_timeout is not None and ended - began > workload.execution_timeout
        self._say(f"[{name}] {_told(result)} after {_span(ended - began)}")
        if late and workload.execution_timeout is not None:
            self._say(
                f"[{name}] longer than its execution_timeout of {_span(workload.execution_timeout)}: "
                "in production it would have been stopped"
            )
        return Report(
            2,
            result.outcome,
            reason=result.reason,
            ended=ended,
            reschedule_at=None if result.reschedule_at is None else result.reschedule_at + lead,
            xcoms=tuple(result.pushed),
            branch=result.branch,
            map_length=result.map_length,
            map_label=result.map_label,
            assets=result.assets,
            rendered=result.rendered,
            deferral=self._told_of(name, result.deferral, lead),
        )

    def _told_of(self, name: str, deferral: Deferral | None, lead: int) -> Deferral | None:
        """What a task waits for, at moments of the jumping clock; what cannot come is said."""
        if deferral is None:
            return None
        others = {wait.dag_id for wait in tasks_waits(deferral.wait)} - {self.dag.dag_id}
        for dag_id in sorted(others):
            self._say(
                f"[{name}] waits for DAG {dag_id!r}, of which dag.test() makes no runs: nothing will come until its timeout. "
                f"To go on: mark_success_pattern={re.escape(name.partition('[')[0])!r}"
            )
        wait, timeout = deferral.wait, deferral.timeout_at
        if isinstance(wait, MomentWait) and wait.at < NEVER_BY_ITSELF:
            wait = msgspec.structs.replace(wait, at=wait.at + lead)
        return msgspec.structs.replace(deferral, wait=wait, timeout_at=None if timeout is None else timeout + lead)

    @contextmanager
    def _minding_interrupts(self) -> Iterator[None]:
        """Ctrl-C ends the task, as an exception does, and is remembered: it was meant for all of this."""
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
            yield
            return

        def interrupt(number: int, frame: object) -> None:
            self._interrupted = True
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _leave_if_asked(self, result: TaskResult) -> None:
        if self._interrupted or result.reason == "BdbQuit":
            raise KeyboardInterrupt

    # --- what it came to --------------------------------------------------------------------------------------------

    def _outcome(self, row: RunRow | None) -> TestedRun:
        assert row is not None
        return tested_run(self.store, row, self._attempts)

    def _tell(self, ended: TestedRun) -> None:
        """The final table."""
        for line in ["", *ended.table(self.only_task)]:
            self._say(line)


def inline_config(folder: str, parallelism: int = 1) -> SchedulerConfig:
    """A scheduler in this process, whose attempts cannot get lost."""
    return SchedulerConfig(
        dags_folder=folder,
        parallelism=parallelism,
        executor=InlineExecutor.name,
        requeue_limit=0,
        resubmit_interval=DAY,
        sweep_interval=DAY,
        batch_max_rows=100_000,
        kill_grace=0,
        paused_at_creation=False,
        retention=0,
        retention_keep_runs=0,
        retention_interval=DAY,
        default_execution_timeout=None,
        xcom_folder="",
    )


def _in_real_time(workload: Workload, lead: int) -> Workload:
    """Tasks read the system's clock: what they compare with it must not be ahead of it."""
    first = None if workload.first_started is None else workload.first_started - lead
    return msgspec.structs.replace(workload, first_started=first)


def _told(result: TaskResult) -> str:
    reason = f" ({result.reason})" if result.reason else ""
    return f"{result.outcome.value}{reason}"


def _span(micros: int) -> str:
    seconds = micros / SECOND
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def _shown_logs() -> Iterator[None]:
    """What tasks log appears on stderr, unless this process has its own idea of logging."""
    root, logger = logging.getLogger(), logging.getLogger("tradewind.task")
    if root.handlers or logger.handlers:
        yield
        return
    handler, level = logging.StreamHandler(sys.stderr), logger.level
    handler.setFormatter(logging.Formatter("    %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
