"""`dag.test()`: one run of a DAG in this process.

It uses the scheduler and the kernel of production with a store in memory. It calls one attempt after the other, so breakpoints,
print and exceptions behave as in any script. If the remaining work lies in the future (a retry, a rescheduled sensor), the
clock jumps there. A sensor in poke mode really waits.

The difference from production: no task is stopped from outside. If a task takes longer than its `execution_timeout`, a line says
so, but the task continues, because somebody may step through it with a debugger.
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

from tradewind.execution import local_database
from tradewind.execution.local_dag_methods import keep_tested
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
from tradewind.model.waits import NEVER_BY_ITSELF, Deferral, InputWait, MomentWait, tasks_waits
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.runs.params import check_conf
from tradewind.sdk.definition import to_definition
from tradewind.settings import load
from tradewind.store.memory import MemoryStore
from tradewind.testing import inline_executor
from tradewind.testing.attempts import make_attempt
from tradewind.testing.frozen_clock import frozen_now
from tradewind.testing.inline_executor import InlineExecutor
from tradewind.testing.inline_runtime import InlineRuntime, Outside, RehearsedChanges
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
"""Default of `logical_date`: the present. None stands for a run without a logical date."""

Say = Callable[[str], None]

_OTHER_NAMES = {"execution_date": "logical_date", "conf": "run_conf"}
"""Airflow 2's names of arguments."""

_IGNORED = ("session",)
"""Arguments of Airflow 2 that have no effect here."""

_LATER = {
    "use_executor": "dag.test(use_executor=True): runs through an executor come with a later release; use `tradewind dags trigger`",
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
    """Run a DAG once and return the result. If a task fails, the run is failed; this raises no exception.

    Args:
        logical_date: a datetime, in UTC if it has no zone. Default: now. None: a run without a logical date.
        run_conf: the `conf` of the run, checked against the params of the DAG.
        conn_file_path, variable_file_path: files with the connections and variables of this run, as .json, .yaml or .env. Others
            exist
            only in the environment (TRADEWIND_VAR_NAME, TRADEWIND_CONN_ID …) and in `outside`.
        mark_success_pattern: tasks whose whole id matches do not run and count as success.
        run_after: the time at which the run becomes due. Templates can read it; the run does not wait for it.
        say: receives each line of the progress. Default: `print`.
        keep_logs: record in `TestedRun.attempts` what the tasks print. Not for debugging: a debugger needs the terminal itself.
        only_task: run and show only this task; all others count as success.
        outside: a deployment whose variables, connections and XComs are used if this run does not have them.
        others: `execution_date` and `conf` are the names of `logical_date` and `run_conf` in Airflow 2.

    Raises:
        UnknownArgument, NotYetSupported: an invalid argument.
        DefinitionError: the DAG is invalid.
        Conflict: `run_conf` does not fit the params, or the run cannot continue (the message gives the reason).
        KeyboardInterrupt: the user pressed Ctrl-C, or left the debugger.
    """
    named = _known(others, {"logical_date": logical_date, "run_conf": run_conf})
    logical_date, conf = named["logical_date"], named["run_conf"] or {}
    definition = to_definition(dag, os.path.basename(dag.fileloc), configured_defaults(dag.fileloc, dag.generation))
    check_conf(definition, conf)
    if only_task is not None:
        mark_success_pattern = rf"(?!{re.escape(only_task)}\Z).*"
    success_pattern = re.compile(mark_success_pattern) if mark_success_pattern else None
    test_run = _TestRun(dag, definition, success_pattern, say, keep_logs)
    kept = local_database.database() if local_database.is_open() else None
    behind = outside or kept
    test_run.only_task, test_run.outside = only_task, None if behind is None else RehearsedChanges(behind)
    variables, connections = fake_secrets()
    for variable in [*variables, *(read_variables(variable_file_path) if variable_file_path else ())]:
        test_run.store.set_variable(variable, "dag.test", test_run.clock.wall())
    for connection in [*connections, *(read_connections(conn_file_path) if conn_file_path else ())]:
        test_run.store.set_connection(connection, "dag.test", test_run.clock.wall())
    date = test_run.clock.wall() if logical_date is NOW else _moment("logical_date", logical_date)
    tested = test_run.run(date, _moment("run_after", run_after), conf)
    if kept is not None:
        keep_tested(tested, dag)
    return tested


def _known(others: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments under their current names. Raises UnknownArgument or NotYetSupported."""
    for name, value in others.items():
        if name in _OTHER_NAMES:
            present = _OTHER_NAMES[name]
            if given[present] not in (NOW, None):
                raise UnknownArgument(f"dag.test(): {name} is the old name of {present}; use only one of the two")
            given[present] = value
        elif name in _IGNORED:
            continue
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


def configured_defaults(file: str = "", generation: int = 3) -> DefinitionDefaults:
    """The default values of DAG and task arguments that the settings define.

    Args:
        file: absolute path of the DAG file, because a setting may depend on its folder.
        generation: of Airflow, for which the file was written (`DAG.generation`).
    """
    core = load().core
    defaults = core.definition_defaults()
    return defaults.of_file(os.path.relpath(file, core.dags_folder), generation) if file else defaults


class _TestRun:
    """One run of `dag.test()`."""

    def __init__(
        self, dag: DAG, definition: DagDefinition, success_pattern: re.Pattern[str] | None, say: Say, keep_logs: bool
    ) -> None:
        self.dag = dag
        self.store = MemoryStore()
        self.clock = frozen_now() or JumpingClock()
        self._keep_logs = keep_logs
        self._attempts: list[TestedAttempt] = []
        self._schedule: Schedule = definition.schedule
        # without its schedule, the DAG has no other run than the requested one;
        # without planned waits, every task runs, also those for which production would only wait
        tasks = tuple(msgspec.structs.replace(task, wait=None) for task in definition.tasks)
        self._definition = msgspec.structs.replace(
            definition, tasks=tasks, schedule=NoSchedule(), assets=None, is_paused_upon_creation=False
        )
        self._success_pattern = success_pattern
        self._say = say
        self.only_task: str | None = None
        self.outside: RehearsedChanges | None = None
        self._interrupted = False
        self._executor = InlineExecutor(self._execute_attempt)
        self._scheduler = Scheduler(self.store, self.clock, inline_config(), self._executor, 0, lambda notice: None)

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
            while not (ended := self._run_until_idle(row.id)):
                if not self._executor.step(scheduler):
                    self._jump_to_next_timer(row.id)
        self._print_table(ended)
        return ended

    def _register(self, now: int) -> None:
        data = encode_definition(self._definition)
        dags = (ParsedDag(self.dag.dag_id, data, version_hash(data)),)
        fileloc = self._definition.fileloc
        parsed = ParsedFile("dags", fileloc, "", dags, problem=None, duration=0, is_dynamic=False, at=now)
        self.store.register_file(parsed, paused_at_creation=False)
        for pool in {"default_pool", *(task.pool for task in self._definition.tasks)}:
            self.store.set_pool(PoolRow(pool, -1, "created by dag.test()", False), "dag.test", now)

    def _run_until_idle(self, run: int) -> TestedRun | None:
        """Let the scheduler decide everything that is due. Returns the result of the run when it has ended."""
        scheduler = self._scheduler
        scheduler.process()
        if scheduler.trouble is not None:
            raise Conflict(f"the run cannot continue: {scheduler.trouble}")
        row = self.store.run(run)
        assert row is not None
        if row.state is RunState.RUNNING and run not in scheduler.active_runs_by_id:
            raise Conflict("the run cannot continue: an internal error of Tradewind; the log above shows it")
        return self._outcome(row) if row.state in FINISHED_RUNS else None

    def _jump_to_next_timer(self, run: int) -> None:
        """Jump to the time of the next timer, because there is nothing to do before it."""
        due = self._scheduler.timers.next_due()
        if due is None:
            waiting = [
                task for task in self._outcome(self.store.run(run)).tasks.values() if task.state is not TaskState.SUCCESS
            ]
            names = ", ".join(f"{task.task_id} ({task.state.value})" for task in waiting[:10])
            raise Conflict(f"the run cannot continue, and no timer can change this. Its unfinished tasks: {names}")
        ahead = due - self.clock.wall()
        if ahead > SECOND:
            self._say(f"… nothing to do for {_duration_text(ahead)}: the clock jumps")
        self.clock.jump_to(due)

    # --- attempts ---------------------------------------------------------------------------------------------------

    def _execute_attempt(self, workload: Workload) -> Report:
        """Execute one attempt."""
        task_id = workload.task_id
        name = task_id if workload.map_index < 0 else f"{task_id}[{workload.map_index}]"
        if self._success_pattern is not None and self._success_pattern.fullmatch(task_id):
            if self.only_task is None:
                self._say(f"[{name}] counts as success, not run")
            return Report(2, Outcome.SUCCESS, reason="it counts as success (mark_success_pattern)", ended=self.clock.wall())
        again = f", try {workload.try_number}" if workload.try_number > 1 else ""
        self._say(f"[{name}] running{again}")
        began, lead = self.clock.wall(), self.clock.lead
        with installed(InlineRuntime(self.store, self.clock, workload.key, self.outside)), self._recording_interrupts():
            task = self.dag.task_dict[task_id]
            result, record = make_attempt(task, _in_real_time(workload, lead), self.clock, keep_log=self._keep_logs)
        self._attempts.append(record)
        self._raise_if_interrupted(result)
        ended = self.clock.wall()
        late = workload.execution_timeout is not None and ended - began > workload.execution_timeout
        self._say(f"[{name}] {_result_text(result)} after {_duration_text(ended - began)}")
        if late and workload.execution_timeout is not None:
            self._say(
                f"[{name}] it ran longer than its execution_timeout of {_duration_text(workload.execution_timeout)}: "
                "in production it would be stopped"
            )
        return Report(
            2,
            result.outcome,
            reason=result.reason,
            ended=ended,
            reschedule_at=None if result.reschedule_at is None else result.reschedule_at + lead,
            retry_delay=result.retry_delay,
            xcoms=tuple(result.pushed),
            branch=result.branch,
            map_length=result.map_length,
            map_label=result.map_label,
            assets=result.assets,
            rendered=result.rendered,
            deferral=self._shown_deferral(name, result.deferral, lead),
        )

    def _shown_deferral(self, name: str, deferral: Deferral | None, lead: int) -> Deferral | None:
        """The wait of a task with times of the jumping clock. Prints a line for each wait that cannot end."""
        if deferral is None:
            return None
        others = {wait.dag_id for wait in tasks_waits(deferral.wait)} - {self.dag.dag_id}
        for dag_id in sorted(others):
            self._say(
                f"[{name}] waits for DAG {dag_id!r}; dag.test() creates no runs of it, so the wait lasts until its timeout. "
                f"To continue: mark_success_pattern={re.escape(name.partition('[')[0])!r}"
            )
        if isinstance(deferral.wait, InputWait):
            then = (
                "so the wait lasts until its timeout" if deferral.timeout_at is not None else "and it has no response_timeout"
            )
            self._say(
                f"[{name}] asks a person: {deferral.wait.subject!r}; dag.test() asks nobody, {then}. "
                f"To continue: mark_success_pattern={re.escape(name.partition('[')[0])!r}"
            )
        wait, timeout = deferral.wait, deferral.timeout_at
        if isinstance(wait, MomentWait) and wait.at < NEVER_BY_ITSELF:
            wait = msgspec.structs.replace(wait, at=wait.at + lead)
        return msgspec.structs.replace(deferral, wait=wait, timeout_at=None if timeout is None else timeout + lead)

    @contextmanager
    def _recording_interrupts(self) -> Iterator[None]:
        """Ctrl-C ends the task like an exception, and is recorded, because it must end the whole run."""
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

    def _raise_if_interrupted(self, result: TaskResult) -> None:
        if self._interrupted or result.reason == "BdbQuit":
            raise KeyboardInterrupt

    # --- the result ------------------------------------------------------------------------------------------------

    def _outcome(self, row: RunRow | None) -> TestedRun:
        assert row is not None
        return tested_run(self.store, row, self._attempts)

    def _print_table(self, ended: TestedRun) -> None:
        """Print the final table."""
        for line in ["", *ended.table(self.only_task)]:
            self._say(line)


def inline_config(parallelism: int = 1) -> SchedulerConfig:
    """The configuration of a scheduler in this process, whose attempts cannot be lost."""
    return SchedulerConfig(
        parallelism=parallelism,
        executor=inline_executor.NAME,
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
    """Convert a time of the jumping clock to the system clock, which tasks read."""
    first = None if workload.first_started is None else workload.first_started - lead
    return msgspec.structs.replace(workload, first_started=first)


def _result_text(result: TaskResult) -> str:
    reason = f" ({result.reason})" if result.reason else ""
    return f"{result.outcome.value}{reason}"


def _duration_text(micros: int) -> str:
    seconds = micros / SECOND
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def _shown_logs() -> Iterator[None]:
    """Show what tasks log on stderr, also with loggers of the DAG file, unless logging of this process is configured already."""
    root, own, tasks = (logging.getLogger(name) for name in (None, "tradewind", "tradewind.task"))
    if root.handlers or tasks.handlers:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("    %(levelname)s %(message)s"))
    levels = [(logger, logger.level) for logger in (root, own, tasks)]
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    own.setLevel(own.level or logging.WARNING)
    tasks.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        for logger, level in levels:
            logger.setLevel(level)
