"""The running task instance and its DAG run, as user code sees them: views of the workload, and access to XComs.

There is no database connection. Pushed XComs are kept here and become part of the attempt's report. Pulled XComs are requested from
the runtime of this process.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tradewind.execution import state_queries, xcom_backend, xcom_pulls
from tradewind.execution.instance_names import XCOM_RETURN_KEY, TaskInstanceKey, log_url, micros_of, to_pendulum
from tradewind.execution.older_instance_methods import OlderInstanceMethods, settable
from tradewind.execution.older_run_methods import OlderRunMethods
from tradewind.execution.other_instances import OtherTaskInstance, instances_of_run
from tradewind.model.branch import Branch
from tradewind.model.dag_run_type import DagRunType
from tradewind.model.errors import NotYetSupported
from tradewind.model.ids import ANY_KEY
from tradewind.model.moments import from_micros
from tradewind.model.states import RunType, TaskState
from tradewind.sdk.columns import of_table
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.mapping import MappedOperator
from tradewind.sdk.templater import needs_preparation
from tradewind.sdk.variables import NOTSET, request_value
from tradewind.wire import runtime
from tradewind.wire.messages import GetPreviousRun, Workload, XComPull

if TYPE_CHECKING:
    from pendulum import DateTime

__all__ = [
    "XCOM_RETURN_KEY",
    "Branch",
    "DagRun",
    "DagRunType",
    "OtherTaskInstance",
    "TaskInstance",
    "TaskInstanceKey",
    "micros_of",
    "to_pendulum",
]

log = logging.getLogger("tradewind.task")


_TRIGGERED_BY = {
    DagRunType.SCHEDULED: "timetable",
    DagRunType.BACKFILL_JOB: "backfill",
    DagRunType.ASSET_TRIGGERED: "asset",
    DagRunType.OPERATOR_TRIGGERED: "operator",
}


def _date_of(name: str, doc: str | None = None) -> Any:
    """A date of a run as an attribute. Tests set it; the run of the deployment keeps its own."""

    def read(run: DagRun) -> DateTime | None:
        return to_pendulum(run._dates.get(name))

    def write(run: DagRun, date: datetime | None) -> None:
        run._dates = {**run._dates, name: None if date is None else micros_of(date)}

    return property(read, write, doc=doc)


_ENDED = frozenset({"success", "failed"})
"""States of a run that has ended."""


class DagRun(OlderRunMethods):
    """A run of a DAG, read-only. Dates are pendulum datetimes in UTC; None for a date that the run does not have (yet)."""

    # DAG files for Airflow 1 and 2 name these as columns of a table: `DagRun.state`
    state: str | None = None
    dag_id: str = ""
    run_id: str = ""
    external_trigger: bool = False
    dag_versions: Sequence[Any] = ()
    """Tests for Airflow 3 replace it."""
    bundle_version: str | None = None

    @staticmethod
    def generate_run_id(
        run_type: str = RunType.MANUAL,
        execution_date: datetime | None = None,
        *,
        logical_date: datetime | None = None,
        run_after: datetime | None = None,
    ) -> str:
        """Return an id for a new run, from its type and date. Runs without a logical date get a random ending.

        Args:
            execution_date: Airflow 2's name of `logical_date`.
        """
        date = execution_date or run_after or logical_date or datetime.now(UTC)
        random = "" if execution_date or logical_date else f"_{secrets.token_hex(4)}"
        return DagRunType(str(getattr(run_type, "value", run_type))).generate_run_id(suffix=f"{date.isoformat()}{random}")

    def __init__(
        self,
        *,
        dag_id: str = "",
        run_id: str = "",
        run_type: str = RunType.MANUAL,
        state: str | None = None,
        dates: Mapping[str, int | None] | None = None,
        conf: Mapping[str, Any] | None = None,
        number: int | None = None,
        triggering_user_name: str | None = None,
        dag: Any = None,
        data_interval: tuple[datetime, datetime] | None = None,
        note: str | None = None,
        partition_key: str | None = None,
        **moments: Any,
    ) -> None:
        """Create a run. Users' tests create runs with Airflow's arguments.

        Args:
            dates: logical_date, data_interval_start, data_interval_end, run_after, start_date, end_date, queued_at; microseconds.
            number: the number of the run in the database.
            data_interval, moments: the same dates as datetimes. Airflow 2 calls the logical date `execution_date`.

        Raises:
            TypeError: an argument does not exist in Airflow.
        """
        self.dag_id = dag_id
        self.run_id = run_id
        self.run_type = DagRunType(str(getattr(run_type, "value", run_type)))
        self.state = state
        self.conf: dict[str, Any] = dict(conf or {})
        self.id = number
        self.triggering_user_name = triggering_user_name
        self.dag = dag
        self.external_trigger = self.run_type is DagRunType.MANUAL
        self.clear_number = 0
        self.note = note
        self.partition_key = partition_key
        self._dates = {**(dates or {}), **_dates_of(data_interval, moments)}

    @staticmethod
    def find(*args: Any, **filters: Any) -> list[DagRun]:
        """Runs of a DAG; see `run_queries.find_runs`."""
        from tradewind.execution.run_queries import find_runs  # lazy import: the module needs this class

        return find_runs(*args, **filters)

    @staticmethod
    def fetch_task_instances(
        dag_id: str | None = None,
        run_id: str | None = None,
        task_ids: Iterable[str] | None = None,
        state: str | Iterable[str | None] | None = None,
        session: Any = None,
    ) -> list[OtherTaskInstance]:
        """The task instances of a run with their current states. Listeners of packages (openlineage) call it.

        Args:
            task_ids: None: of all tasks.
            session: ignored, since tasks have no access to the database.

        Raises:
            AirflowException: the run is not named.
        """
        if dag_id is None or run_id is None:
            raise AirflowException("fetch_task_instances needs dag_id and run_id")
        tasks = None if task_ids is None else tuple(task_ids)
        found = [] if tasks == () else instances_of_run(dag_id, run_id, tasks or ())
        wanted = _states_of(state)
        return [instance for instance in found if wanted is None or instance.state in wanted]

    @staticmethod
    def _get_partial_task_ids(dag: Any) -> list[str] | None:
        """The tasks that `fetch_task_instances` requests."""
        return None if dag is None else list(dag.task_ids)

    @property
    def triggered_by(self) -> str | None:
        """How the run was created, if its type says so: Airflow's `DagRunTriggeredByType`."""
        return _TRIGGERED_BY.get(self.run_type)

    @classmethod
    def of_workload(cls, workload: Workload, dag: Any = None) -> DagRun:
        """Return the run of this attempt."""
        return cls(
            dag_id=workload.dag_id,
            run_id=workload.run_id,
            run_type=workload.run_type,
            state="running",
            dates={
                "logical_date": workload.logical_date,
                "data_interval_start": None if workload.logical_date is None else workload.interval_start,
                "data_interval_end": None if workload.logical_date is None else workload.interval_end,
                "run_after": workload.run_after,
                "start_date": workload.run_started,
                "queued_at": workload.queued_at,
                "partition_date": workload.partition_date,
            },
            conf=workload.conf,
            partition_key=workload.partition_key,
            number=workload.run,
            triggering_user_name=workload.triggering_user,
            dag=dag,
        )

    logical_date = _date_of("logical_date", "None for a run without one.")
    execution_date = _date_of("logical_date", "Airflow 1 and 2's name of the logical date.")
    data_interval_start = _date_of("data_interval_start")
    data_interval_end = _date_of("data_interval_end")
    run_after = _date_of("run_after")
    partition_date = _date_of("partition_date", "The time for which the partition key stands.")
    start_date = _date_of("start_date")
    end_date = _date_of("end_date")
    queued_at = _date_of("queued_at")

    @property
    def consumed_asset_events(self) -> list[Any]:
        """The asset events that started this run; none outside of a task."""
        # lazy import: only tasks that read asset events need it
        from tradewind.execution import asset_events, context

        try:
            running = context.get_current_context()
        except context.NoCurrentContext:
            return []
        return asset_events.consumed_by(running)

    @property
    def is_backfill(self) -> bool:
        return self.run_type is DagRunType.BACKFILL_JOB

    def get_state(self) -> str | None:
        return self.state

    def set_state(self, state: Any) -> None:
        """Set the state, in tests. A run that starts gets a start date, and one that ends gets an end date.

        Raises:
            NotYetSupported: a scheduler has started this process; only the states of tasks decide the state of a run.
        """
        if runtime.is_installed() and not runtime.is_local():
            raise NotYetSupported("dag_run.set_state() cannot change a run; its state follows from the states of its tasks")
        before, self.state = self.state, str(getattr(state, "value", state))
        if self.state == before:
            return
        now = datetime.now(UTC)
        if self.state in _ENDED:
            self.end_date = self.end_date if before in _ENDED else now
        elif self.state == "queued":
            self.queued_at, self.start_date, self.end_date = now, None, None
        elif self.state == "running":
            self.start_date = now if before in _ENDED else self.start_date or now
            self.end_date = None

    def refresh_from_db(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: the object has the values of the run when the object was made."""

    @property
    def task_instances(self) -> Sequence[OtherTaskInstance | TaskInstance]:
        """See `get_task_instances`."""
        return self.get_task_instances()

    def get_previous_dagrun(self, state: Any = None, session: Any = None) -> DagRun | None:
        """The latest run of the DAG with an earlier logical date; only a run in `state` if given."""
        date = self.logical_date
        known = [] if date is None else self.find(dag_id=self.dag_id, state=state, execution_end_date=date)
        earlier = [run for run in known if run.logical_date is not None and run.logical_date < date]
        return max(earlier, key=lambda run: run.logical_date, default=None)

    def get_dag(self) -> Any:
        return self.dag

    def get_task_instances(
        self, state: str | Iterable[str | None] | None = None, session: Any = None
    ) -> Sequence[OtherTaskInstance | TaskInstance]:
        """The task instances of this run with their current states; only those in `state` (one or several) if given."""
        found = instances_of_run(self.dag_id, self.run_id, (), self)
        wanted = _states_of(state)
        return found if wanted is None else [instance for instance in found if instance.state in wanted]

    def get_task_instance(
        self, task_id: str, session: Any = None, *, map_index: int = -1
    ) -> OtherTaskInstance | TaskInstance | None:
        """The task instance of this task with its current state; None if the run has none.

        Args:
            session: ignored.
            map_index: index of an instance of a mapped task. -1: the task is not mapped; of a mapped task, the first instance.
        """
        found = instances_of_run(self.dag_id, self.run_id, (task_id,), self)
        return next((one for one in found if map_index in (-1, one.map_index)), None)

    def __repr__(self) -> str:
        return f"<DagRun {self.dag_id} {self.run_id!r} {self.state}>"


def _states_of(state: str | Iterable[str | None] | None) -> set[str | None] | None:
    """The argument `state` (one state or several) as a set of names; None: all states."""
    if state is None:
        return None
    given = [state] if isinstance(state, str) else state
    return {None if one is None else str(getattr(one, "value", one)) for one in given}


of_table(
    DagRun,
    """id dag_id run_id run_type state conf external_trigger logical_date execution_date data_interval_start data_interval_end
    run_after start_date end_date queued_at clear_number note partition_key duration updated_at created_at triggered_by
    triggering_user_name bundle_version task_instances creating_job_id last_scheduling_decision dag_hash backfill_id dag_model""",
)


_RUNNING = TaskState.RUNNING.value

MAX_MAP_LENGTH = 1024
"""Airflow's default of `core.max_map_length`."""


class TaskInstance(OlderInstanceMethods):
    """The running task instance.

    Attributes:
        triggered: number of runs of other DAGs that it has requested.
        pushed: values pushed so far, by key. They are part of the report of the attempt.
        branch: the decision of a branching operator; the scheduler applies it.
    """

    # DAG files for Airflow 1 and 2 name these as columns of a table: `TaskInstance.state`
    state: str | None = None
    dag_id: str = ""
    task_id: str = ""
    run_id: str = ""
    try_number: int = 0

    triggered = 0
    max_map_length = MAX_MAP_LENGTH

    get_ti_count = staticmethod(state_queries.count_task_instances)
    get_task_states = staticmethod(state_queries.task_states_by_run)
    get_dr_count = staticmethod(state_queries.count_runs)
    get_dagrun_state = staticmethod(state_queries.run_state)

    @staticmethod
    def is_task_schedulable(task: Any) -> bool:
        """True if the task needs an attempt; False if the scheduler sets it to success because it does nothing."""
        calls = task.on_execute_callback or task.on_success_callback or task.outlets or task.inlets
        return not task.inherits_from_empty_operator or bool(calls)

    def __init__(
        self,
        task: Any,
        workload: Workload | datetime | None = None,
        *,
        started: int | None = None,
        execution_date: datetime | None = None,
        run_id: str | None = None,
        state: str | None = None,
        map_index: int = -1,
        dag_version_id: Any = None,
        made_by_hand: bool = False,
    ) -> None:
        """Create the instance of a task.

        Args:
            task: the operator.
            workload: the description of the attempt. Users' tests create instances without an attempt, as in Airflow: from a
                date, or with a run id, a state or a map index.
            started: start of the attempt in microseconds. None: now.
            dag_version_id: ignored; tests for Airflow 3 pass it.
            made_by_hand: no scheduler knows the attempt that `workload` describes.
        """
        del dag_version_id
        self.by_hand = made_by_hand or not isinstance(workload, Workload)
        """Whether this instance was made without an attempt."""
        if not isinstance(workload, Workload):
            workload = _workload_by_hand(task, execution_date or workload, run_id, map_index)
        self.task = task
        self.workload = workload
        self.context_variables: dict[str, str] = {}
        """Environment variables that the policy `get_airflow_context_vars` adds."""
        self.dag_id = workload.dag_id
        self.task_id = workload.task_id
        self.run_id = workload.run_id
        self.map_index = workload.map_index
        self.try_number = workload.try_number
        self.max_tries = workload.max_tries
        self.pool = workload.pool
        self.queue = workload.queue
        self.priority_weight = workload.priority
        self.state = state if self.by_hand else _RUNNING
        self.pushed: dict[str, Any] = {}
        self.branch: Branch | None = None
        self.context: Any = None
        self.map_length: int | None = None
        self.map_label: str | None = None
        self._encoded: dict[str, bytes] = {}
        self.started = time.time_ns() // 1000 if started is None else started
        self.ended: int | None = None
        """Time in microseconds; set when callbacks are called."""
        self.rendered = b""
        """The rendered templated fields as JSON, after rendering."""
        self._dag_run: DagRun | None = None
        self._previous: dict[str | None, DagRun | None] = {}

    def __repr__(self) -> str:
        where = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"<TaskInstance: {self.dag_id}.{self.task_id}{where} {self.run_id} [{self.state}]>"

    # --- properties -----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Identifies this attempt."""
        return "-".join(map(str, self.workload.key))

    @property
    def key(self) -> TaskInstanceKey:
        return TaskInstanceKey(self.dag_id, self.task_id, self.run_id, self.try_number, self.map_index)

    @property
    def dag_run(self) -> DagRun:
        if self._dag_run is None:
            self._dag_run = DagRun.of_workload(self.workload, self.task.get_dag())
        return self._dag_run

    @dag_run.setter
    def dag_run(self, dag_run: DagRun) -> None:
        """Set the run; only users' tests do this."""
        self._dag_run = dag_run

    def get_dagrun(self, session: Any = None) -> DagRun:
        return self.dag_run

    @property
    def logical_date(self) -> DateTime | None:
        return to_pendulum(self.workload.logical_date)

    @property
    def execution_date(self) -> DateTime | None:
        """Airflow 1 and 2's name of the logical date."""
        return to_pendulum(self.workload.logical_date)

    @property
    def start_date(self) -> DateTime | None:
        """When this attempt started."""
        return to_pendulum(self.started)

    @start_date.setter
    def start_date(self, date: datetime) -> None:
        """Users' tests set it."""
        self.started = micros_of(date)

    @property
    def end_date(self) -> DateTime | None:
        """None while the task is running; set for callbacks."""
        return to_pendulum(self.ended)

    @end_date.setter
    def end_date(self, date: datetime | None) -> None:
        """Users' tests set it."""
        self.ended = None if date is None else micros_of(date)

    @property
    def duration(self) -> float | None:
        """Seconds; None while the task is running."""
        return None if self.ended is None else (self.ended - self.started) / 1e6

    @property
    def log(self) -> logging.Logger:
        """The logger of the task."""
        found: logging.Logger = self.task.log
        return found

    @settable
    def queued_dttm(self) -> DateTime | None:
        return to_pendulum(self.workload.queued_at)

    @settable
    def hostname(self) -> str:
        import socket  # lazy import: most tasks do not need it

        return socket.gethostname()

    @property
    def operator(self) -> str:
        """The name of the operator's class."""
        return str(getattr(self.task, "task_type", type(self.task).__name__))

    @property
    def is_mapped(self) -> bool:
        return self.map_index >= 0

    @property
    def rendered_map_index(self) -> str | None:
        return (self.map_label or str(self.map_index)) if self.map_index >= 0 else None

    def expanded_count(self) -> int | None:
        """The number of instances of the task; None if the task is not mapped."""
        dag = self.task.get_dag()
        mapped = dag.task_dict.get(self.task_id) if dag is not None else None
        owner = mapped if mapped is not None and "expand_input" in mapped.__dict__ else self.task.mapped_group
        if owner is None or self.map_index < 0:
            return None
        return int(owner.expand_input.length(self.get_template_context()))

    @property
    def log_url(self) -> str:
        """The URL of the task log; the setting `api.base_url` is its first part."""
        return log_url(self.dag_id, self.run_id, self.task_id, self.map_index, self.try_number)

    @property
    def mark_success_url(self) -> str:
        """The URL of the page where the task can be marked: the same as `log_url`, as in Airflow 3."""
        return self.log_url

    def current_state(self, session: Any = None) -> str | None:
        """The state; for an instance without an attempt, the state that its run has for it."""
        if not self.by_hand:
            return self.state
        found: str | None = hand_made().current_state(self)
        return found

    def refresh_from_db(self, session: Any = None, **_options: Any) -> None:
        """Read the state again."""
        self.state = self.current_state()

    def refresh_from_task(self, task: Any, pool_override: str | None = None) -> None:
        """Take queue, pool and retries from the task. Airflow 2 has this method."""
        self.task = task
        self.queue, self.pool, self.max_tries = task.queue, pool_override or task.pool, task.retries

    def set_state(self, state: Any, session: Any = None) -> bool:
        """Set the state, in tests of DAG files. Returns whether it has changed.

        Raises:
            NotYetSupported: the scheduler has created this instance; only the result of the task decides its state.
        """
        if not self.by_hand:
            raise NotYetSupported(
                "ti.set_state() cannot change a running task; raise AirflowSkipException or another exception"
            )
        changed: bool = hand_made().set_state(self, state)
        return changed

    def dry_run(self) -> None:
        """Replace the task of this instance with a copy, render the templates of the copy, and log them."""
        hand_made().dry_run(self)

    def are_dependencies_met(self, *_args: Any, **_options: Any) -> bool:
        """In tests of DAG files: whether the upstream tasks have ended as the task requires."""
        met: bool = hand_made().are_dependencies_met(self)
        return met

    def get_template_context(self, *_args: Any, **_kwargs: Any) -> Any:
        """The context variables of this task. (Airflow 2 takes a session.)"""
        if self.context is None:
            from tradewind.execution import context  # lazy import: it imports this module

            context.build_context(self.task, self.workload, ti=self)
        return self.context

    def run(
        self,
        *_args: Any,
        mark_success: bool = False,
        ignore_ti_state: bool = False,
        ignore_all_deps: bool = False,
        **_more: Any,
    ) -> TaskInstance:
        """Run the task in this process, as tests of DAG files for Airflow 1 and 2 do.

        A task that an earlier task of the run has skipped stays skipped, unless `ignore_ti_state` or `ignore_all_deps` is given.
        Airflow's other arguments (`test_mode` …) have no effect. The state and the XComs are kept in the memory of the process; see
        `hand_made`.

        Raises:
            Exception: the exception of the task.
        """
        if self.current_state() != TaskState.SKIPPED.value or ignore_ti_state or ignore_all_deps:
            hand_made().run(self, mark_success)
        return self

    @classmethod
    def model_construct(cls, _fields_set: Any = None, **fields: Any) -> TaskInstance:
        """An instance from the values of Airflow 3's `RuntimeTaskInstance`, as tests make one."""
        made: TaskInstance = hand_made().construct(fields)
        return made

    def environment(self) -> dict[str, str]:
        """Environment variables for programs that the task starts, with Airflow's names."""
        workload = self.workload
        found = {
            "AIRFLOW_CTX_DAG_OWNER": str(getattr(self.task, "owner", workload.owner)),
            "AIRFLOW_CTX_DAG_ID": self.dag_id,
            "AIRFLOW_CTX_TASK_ID": self.task_id,
            "AIRFLOW_CTX_TRY_NUMBER": str(self.try_number),
            "AIRFLOW_CTX_DAG_RUN_ID": self.run_id,
        }
        email = getattr(self.task, "email", None)
        if email:
            found["AIRFLOW_CTX_DAG_EMAIL"] = email if isinstance(email, str) else ",".join(email)
        if workload.logical_date is not None:
            at = from_micros(workload.logical_date).isoformat()
            found["AIRFLOW_CTX_LOGICAL_DATE"] = found["AIRFLOW_CTX_EXECUTION_DATE"] = at
        return {**found, **self.context_variables}

    def render_templates(self, context: Any = None, jinja_env: Any = None) -> Any:
        """Render the templated fields of the task. Returns the task; of a mapped task, that of this instance."""
        values = context if context is not None else self.get_template_context()
        if isinstance(self.task, MappedOperator):
            self.task = values["task"] = self.task.unmap(values)
        elif needs_preparation(self.task):
            self.task.resolve_template_files()
        self.task.render_template_fields(values, jinja_env)
        return self.task

    def get_first_reschedule_date(self, context: Any = None) -> DateTime | None:
        """When the first attempt of this try started; None if the task was not rescheduled."""
        return to_pendulum(self.workload.first_started) if self.workload.reschedules else None

    # --- XComs ----------------------------------------------------------------------------------------------------

    def xcom_push(self, key: str, value: Any, execution_date: Any = None, session: Any = None) -> None:
        """Store a value for other tasks. It is encoded now and is part of the report of the attempt.

        Args:
            execution_date, session: arguments of Airflow 1 and 2, ignored.

        Raises:
            XComNotSerializable: the value cannot be stored; the message names the part of the value.
        """
        if not isinstance(key, str) or not key:
            raise AirflowException(f"the key of an XCom must be a non-empty string, not {key!r}")
        self._encoded[key] = xcom_backend.encode(self, key, value)
        self.pushed[key] = value
        if self.by_hand and runtime.is_local():
            hand_made().keep_xcom(self, key, self._encoded[key])

    @property
    def encoded(self) -> Mapping[str, bytes]:
        """The pushed values in encoded form, by key."""
        return self._encoded

    def xcom_pull(
        self,
        task_ids: str | Iterable[str] | None = None,
        dag_id: str | None = None,
        key: str | None = XCOM_RETURN_KEY,
        include_prior_dates: bool = False,
        *,
        map_indexes: Any = NOTSET,
        default: Any = None,
        run_id: str | None = None,
        session: Any = None,
    ) -> Any:
        """Read values that tasks have pushed.

        Args:
            task_ids: for one id the result is a value (for a mapped task a list), for several ids a list in the same order. None:
                the value that this task instance pushed itself; without one, the value of the nearest upstream task. (Airflow 1 and
                2 use the latest value of any task, Airflow 3 only the own value.)
            dag_id: id of another DAG, in its run with the same run id or with `run_id`.
            key: default: `return_value`. None, with task_ids: the returned value of each task, else any other value that it pushed.
            include_prior_dates: also search earlier runs; the result is the latest value.
            map_indexes: one index or several indexes of a mapped task. Default: all.
            default: result for a value that was not pushed.
            run_id: id of another run.
            session: ignored.

        Raises:
            AirflowException: the runtime could not answer.
        """
        if key is None and task_ids is not None:
            key = ANY_KEY
        if not isinstance(key, str):
            raise AirflowException(f"the key of an XCom must be a string, not {key!r}")
        if task_ids is None:
            return self._pull_nearest(key, include_prior_dates, default)
        single = isinstance(task_ids, str)
        ids: tuple[str, ...] = (task_ids,) if isinstance(task_ids, str) else tuple(task_ids)
        if dag_id not in (None, self.dag_id) and run_id is None:
            dag_id, ids = self._of_sub_dag(dag_id, ids)
        indexes = xcom_pulls.indexes_of(map_indexes)
        if map_indexes is NOTSET and single and dag_id in (None, self.dag_id) and run_id in (None, self.run_id):
            indexes = self._same_map_index(ids[0])
        rows = self._request_xcoms(ids, key, dag_id or self.dag_id, run_id or self.run_id, indexes, include_prior_dates)
        return xcom_pulls.result_of(ids, rows, single=single, map_indexes=map_indexes, indexes=indexes, default=default)

    def _same_map_index(self, task_id: str) -> tuple[int, ...] | None:
        """In a mapped task group, a task sees only the values of its own map index."""
        dag = self.task.get_dag()
        other = dag.task_dict.get(task_id) if dag is not None and self.map_index >= 0 else None
        group = other.mapped_group if other is not None else None
        return (self.map_index,) if group is not None and group is self.task.mapped_group else None

    def _pull_nearest(self, key: str, include_prior_dates: bool, default: Any) -> Any:
        """`xcom_pull` with `task_ids=None`."""
        own = self._request_xcoms((self.task_id,), key, self.dag_id, self.run_id, None, include_prior_dates).get(
            self.task_id, {}
        )
        if own:
            return own.get(self.map_index, next(iter(own.values())))()
        upstream = _upstream_nearest_first(self.task)
        if not upstream:
            return default
        rows = self._request_xcoms(upstream, key, self.dag_id, self.run_id, None, include_prior_dates)
        for task_id in upstream:
            values = rows.get(task_id)
            if values:
                found = [values[index]() for index in sorted(values)]
                return found if any(index >= 0 for index in values) else found[0]
        return default

    def _request_xcoms(
        self,
        task_ids: Sequence[str],
        key: str,
        dag_id: str,
        run_id: str,
        map_indexes: tuple[int, ...] | None,
        include_prior_dates: bool,
    ) -> xcom_pulls.Rows:
        """Values that this attempt pushed take precedence over stored ones."""
        rows: xcom_pulls.Rows = {}
        own = dag_id == self.dag_id and run_id == self.run_id and self.task_id in task_ids and key in self._encoded
        if not own or len(task_ids) > 1 or self.map_index >= 0:
            request = XComPull(
                op=0,
                dag_id=dag_id,
                run_id=run_id,
                task_ids=tuple(task_ids),
                key=key,
                map_indexes=map_indexes,
                include_prior_dates=include_prior_dates,
            )
            with self._answering():
                rows = xcom_pulls.request_rows(request)
        if own and (map_indexes is None or self.map_index in map_indexes):
            rows.setdefault(self.task_id, {})[self.map_index] = xcom_pulls.reader(self._encoded[key])
        return rows

    def _answering(self) -> AbstractContextManager[Any]:
        """For an instance that a test has created: let the rows of this process answer requests inside the block."""
        return hand_made().answering(self) if self.by_hand else nullcontext()

    def _of_sub_dag(self, dag_id: str | None, task_ids: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
        """Translate a sub-DAG and its task ids into this DAG and the tasks of a group; other ids stay unchanged."""
        dag = self.task.get_dag() if self.task is not None else None
        for group in dag.task_group_dict.values() if dag is not None else ():
            if getattr(getattr(group, "subdag", None), "dag_id", None) == dag_id:
                return self.dag_id, tuple(group.child_id(task_id) for task_id in task_ids)
        return dag_id, task_ids

    # --- earlier runs ---------------------------------------------------------------------------------------------

    def get_previous_dagrun(self, state: str | None = None, session: Any = None) -> DagRun | None:
        """The run of this DAG with the latest earlier logical date, in `state` if given; None if there is none."""
        wanted = None if state is None else str(getattr(state, "value", state))
        at = self.workload.logical_date
        if at is None:
            return None
        if wanted not in self._previous:
            request = GetPreviousRun(op=0, dag_id=self.dag_id, logical_date=at, state=wanted)
            with self._answering():
                answer = request_value(request, f"cannot read the run before {self.run_id!r}")
            row = answer.value if answer.found else None
            self._previous[wanted] = None if row is None else run_of(self.dag_id, row, self.task.get_dag())
        return self._previous[wanted]

    def get_previous_ti(
        self, state: str | None = None, session: Any = None, **_more: Any
    ) -> OtherTaskInstance | TaskInstance | None:
        """The instance of this task in the previous run, in `state` if given; None if there is none."""
        run = self.get_previous_dagrun()
        found = run.get_task_instance(self.task_id, map_index=self.map_index) if run is not None else None
        wanted = None if state is None else str(getattr(state, "value", state))
        return found if found is not None and (wanted is None or found.state == wanted) else None

    @property
    def previous_ti(self) -> OtherTaskInstance | TaskInstance | None:
        return self.get_previous_ti()

    @property
    def previous_ti_success(self) -> OtherTaskInstance | TaskInstance | None:
        return self.get_previous_ti("success")

    def get_previous_logical_date(self, state: str | None = None, session: Any = None) -> DateTime | None:
        run = self.get_previous_dagrun(state)
        return None if run is None else run.logical_date

    get_previous_execution_date = get_previous_logical_date

    def get_previous_start_date(self, state: str | None = None, session: Any = None) -> DateTime | None:
        run = self.get_previous_dagrun(state)
        return None if run is None else run.start_date


_LEFT_OUT = frozenset({"external_trigger", "creating_job_id", "bundle_version", "triggered_by", "backfill_id", "id"})
"""Arguments of Airflow's `DagRun` that have no meaning in Tradewind."""


def _dates_of(interval: tuple[datetime, datetime] | None, moments: Mapping[str, Any]) -> dict[str, int | None]:
    """The dates of a run in microseconds, from Airflow's arguments of `DagRun`."""
    given = {name: date for name, date in moments.items() if name not in _LEFT_OUT}
    if "execution_date" in given:
        given["logical_date"] = given.pop("execution_date")
    if interval is not None:
        given["data_interval_start"], given["data_interval_end"] = interval
    unknown = given.keys() - set(_DATES)
    if unknown:
        raise TypeError(f"DagRun() got an unexpected keyword argument {min(unknown)!r}")
    return {name: None if date is None else micros_of(date) for name, date in given.items()}


def hand_made() -> Any:
    """Return the module for task instances that tests create."""
    from tradewind.execution import hand_made as module  # lazy import: only tests make task instances; it imports this module

    return module


def _workload_by_hand(task: Any, date: datetime | None, run_id: str | None, map_index: int) -> Workload:
    """The attempt of a task instance that a test creates: in the run with this id or date, otherwise in a new manual run."""
    at = None if date is None else micros_of(date)
    if at is not None or run_id is not None:
        found: Workload | None = hand_made().workload_of_run(task, run_id, at, map_index)
        if found is not None:
            return found
    after = at if at is not None else time.time_ns() // 1000
    return Workload(
        run=0,
        slot=0,
        fence=0,
        dag_id=getattr(task, "dag_id", "") or "",
        task_id=task.task_id,
        run_id=run_id or DagRunType.MANUAL.generate_run_id(suffix=from_micros(after).isoformat()),
        map_index=map_index,
        max_tries=getattr(task, "retries", 0) or 0,
        logical_date=at,
        interval_start=at,
        interval_end=at,
        run_after=after,
    )


_DATES = (
    "logical_date",
    "data_interval_start",
    "data_interval_end",
    "run_after",
    "start_date",
    "end_date",
    "queued_at",
    "partition_date",
)


def run_of(dag_id: str, row: Mapping[str, Any], dag: Any) -> DagRun:
    """A run from the row in an answer of the scheduler."""
    run = DagRun(
        dag_id=dag_id,
        run_id=row["run_id"],
        run_type=row.get("run_type", RunType.MANUAL),
        state=row.get("state"),
        dates={name: row.get(name) for name in _DATES},
        conf=row.get("conf"),
        number=row.get("id"),
        triggering_user_name=row.get("triggering_user_name"),
        dag=dag,
        note=row.get("note"),
        partition_key=row.get("partition_key"),
    )
    run.clear_number = row.get("clear_number", 0)
    run.bundle_version = row.get("bundle_version")
    return run


def _upstream_nearest_first(task: Any) -> tuple[str, ...]:
    """Ids of all upstream tasks. Each task comes before the tasks that it depends on."""
    order: list[str] = []
    seen: set[str] = set()
    # depth first, without recursion: a task is added after all its upstream tasks
    stack: list[tuple[Any, Iterator[Any]]] = [(task, iter(task.upstream_list))]
    while stack:
        node, rest = stack[-1]
        step = next(rest, None)
        if step is None:
            stack.pop()
            if node is not task:
                order.append(node.task_id)
        elif step.task_id not in seen:
            seen.add(step.task_id)
            stack.append((step, iter(step.upstream_list)))
    return tuple(reversed(order))


of_table(
    TaskInstance,
    """dag_id task_id run_id state map_index try_number execution_date logical_date start_date end_date duration pool queue
    operator hostname max_tries queued_dttm updated_at pid executor priority_weight pool_slots note rendered_map_index
    custom_operator_name dag_run dag_model""",
)
