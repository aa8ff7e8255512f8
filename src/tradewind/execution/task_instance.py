"""The running task instance and its run, as user code sees them: views of the workload, and a door for XComs.

There is no database behind them. What a task pushes is kept here and reported together with its verdict; what it pulls
is asked of the runtime of this process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.branch import Branch
from tradewind.model.moments import from_micros, to_micros
from tradewind.model.states import RunType, TaskState
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.lazy_list import LazyList
from tradewind.sdk.variables import NOTSET, request_value
from tradewind.wire import runtime
from tradewind.wire.messages import Failure, GetPreviousRun, GetTaskStates, Value, Workload, XComPull, XComs

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
    "moment",
    "states_on_dates",
    "task_states",
]

log = logging.getLogger("tradewind.task")

XCOM_RETURN_KEY = "return_value"


class DagRunType(str, Enum):  # noqa: UP042 (Airflow's texts: str() of a member is its name, it equals its value)
    """How a run came to be. A template shows `DagRunType.SCHEDULED`; comparing with `"scheduled"` works."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"
    BACKFILL_JOB = "backfill"
    ASSET_TRIGGERED = "asset_triggered"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"


def moment(micros: int | None) -> DateTime | None:
    """A date for DAG authors: pendulum's, in UTC."""
    if micros is None:
        return None
    import pendulum  # lazy door: costs 80 ms, and many tasks look at no date

    return pendulum.instance(from_micros(micros))


def micros_of(date: datetime) -> int:
    """Microseconds of a date that an author wrote; without a zone, UTC is meant. Any subclass of datetime will do."""
    # by its text: pendulum's own subtraction gives an interval, which cannot be divided by a plain timedelta
    plain = datetime.fromisoformat(date.isoformat())
    return to_micros(plain if plain.tzinfo is not None else plain.replace(tzinfo=UTC))


class DagRun:
    """A run of a DAG, read-only. Dates are pendulum's, in UTC; moments that were not reached are None."""

    def __init__(
        self,
        *,
        dag_id: str,
        run_id: str,
        run_type: str = RunType.MANUAL,
        state: str | None = None,
        dates: Mapping[str, int | None] | None = None,
        conf: Mapping[str, Any] | None = None,
        number: int | None = None,
        triggering_user_name: str | None = None,
        dag: Any = None,
    ) -> None:
        """`dates`: logical_date, data_interval_start, data_interval_end, run_after, start_date, end_date, queued_at."""
        self.dag_id = dag_id
        self.run_id = run_id
        self.run_type = DagRunType(str(run_type))
        self.state = state
        self.conf: dict[str, Any] = dict(conf or {})
        self.id = number
        self.triggering_user_name = triggering_user_name
        self.dag = dag
        self.external_trigger = self.run_type is DagRunType.MANUAL
        self.clear_number = 0
        self.note: str | None = None
        self.partition_key: str | None = None
        self._dates = dict(dates or {})

    @classmethod
    def of_workload(cls, workload: Workload, dag: Any = None) -> DagRun:
        """The run that this attempt belongs to."""
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
            },
            conf=workload.conf,
            number=workload.run,
            triggering_user_name=workload.triggering_user,
            dag=dag,
        )

    def _date(self, name: str) -> DateTime | None:
        return moment(self._dates.get(name))

    @property
    def logical_date(self) -> DateTime | None:
        return self._date("logical_date")

    @property
    def consumed_asset_events(self) -> list[Any]:
        """Events that began the run of the running task."""
        # lazy door: only tasks that look at events pay
        from tradewind.execution import asset_events, context

        return asset_events.consumed_by(context.get_current_context())

    @property
    def execution_date(self) -> DateTime | None:
        """Airflow 1 and 2's name of the logical date."""
        return self._date("logical_date")

    @property
    def data_interval_start(self) -> DateTime | None:
        return self._date("data_interval_start")

    @property
    def data_interval_end(self) -> DateTime | None:
        return self._date("data_interval_end")

    @property
    def run_after(self) -> DateTime | None:
        return self._date("run_after")

    @property
    def start_date(self) -> DateTime | None:
        return self._date("start_date")

    @property
    def end_date(self) -> DateTime | None:
        return self._date("end_date")

    @property
    def queued_at(self) -> DateTime | None:
        return self._date("queued_at")

    @property
    def is_backfill(self) -> bool:
        return self.run_type is DagRunType.BACKFILL_JOB

    def get_state(self) -> str | None:
        return self.state

    def get_dag(self) -> Any:
        return self.dag

    def get_task_instances(self, state: str | Iterable[str] | None = None) -> list[OtherTaskInstance]:
        """The task instances of this run as they are now, those in `state` (one or several) when given."""
        if self.dag is None:
            raise AirflowException(f"the tasks of run {self.run_id!r} are not known here; ask for one with its id")
        found = task_states(self.dag_id, self.run_id, tuple(self.dag.task_ids))
        if state is None:
            return found
        wanted = {state} if isinstance(state, str) else set(state)
        return [instance for instance in found if instance.state in wanted]

    def get_task_instance(self, task_id: str) -> OtherTaskInstance | None:
        """The task instance of that task as it is now; None when the run has none."""
        found = task_states(self.dag_id, self.run_id, (task_id,))
        return found[0] if found else None

    def __repr__(self) -> str:
        return f"<DagRun {self.dag_id} {self.run_id!r} {self.state}>"


class TaskInstanceKey(NamedTuple):
    """Names one try of a task instance."""

    dag_id: str
    task_id: str
    run_id: str
    try_number: int = 1
    map_index: int = -1


class OtherTaskInstance:
    """Another task instance than the running one: where it is and in which state it was when it was asked for."""

    __slots__ = ("dag_id", "run_id", "state", "task_id")

    def __init__(self, dag_id: str, task_id: str, run_id: str, state: str | None) -> None:
        self.dag_id = dag_id
        self.task_id = task_id
        self.run_id = run_id
        self.state = state

    def current_state(self) -> str | None:
        """Its state now."""
        found = task_states(self.dag_id, self.run_id, (self.task_id,))
        return found[0].state if found else None

    def __repr__(self) -> str:
        return f"<TaskInstance {self.dag_id}.{self.task_id} {self.run_id} {self.state}>"


def task_states(dag_id: str, run_id: str, task_ids: tuple[str, ...]) -> list[OtherTaskInstance]:
    """Ask for task instances of one run. Those that do not exist are absent."""
    answer = request_value(
        GetTaskStates(op=0, dag_id=dag_id, run_ids=(run_id,), task_ids=task_ids),
        f"cannot read the states of tasks of {dag_id!r}",
    )
    rows = answer.value if answer.found and answer.value else ()
    return [OtherTaskInstance(dag_id, task_id, run_id, state) for _, task_id, state in rows if task_id is not None]


def states_on_dates(dag_id: str, dates: Sequence[int], task_ids: tuple[str, ...], group: str | None) -> Value:
    """Ask for the states of tasks (without any: of runs) of a DAG on logical dates: see `GetTaskStates`."""
    question = GetTaskStates(op=0, dag_id=dag_id, logical_dates=tuple(dates), task_ids=task_ids, group=group)
    return request_value(question, f"cannot look at DAG {dag_id!r}")


_RUNNING = TaskState.RUNNING.value

MAX_MAP_LENGTH = 1024
"""Airflow's default of `core.max_map_length`."""


class TaskInstance:
    """The task instance that is running.

    Attributes:
        triggered: how many runs of other DAGs it has asked for.
        pushed: values pushed so far, by key. They are reported with the verdict.
        branch: which downstream tasks go on; set by branching operators, applied by the scheduler.
    """

    triggered = 0
    max_map_length = MAX_MAP_LENGTH

    def __init__(self, task: Any, workload: Workload, *, started: int | None = None) -> None:
        self.task = task
        self.workload = workload
        self.dag_id = workload.dag_id
        self.task_id = workload.task_id
        self.run_id = workload.run_id
        self.map_index = workload.map_index
        self.try_number = workload.try_number
        self.max_tries = workload.max_tries
        self.pool = workload.pool
        self.queue = workload.queue
        self.priority_weight = workload.priority
        self.state: str | None = _RUNNING
        self.pushed: dict[str, Any] = {}
        self.branch: Branch | None = None
        self.context: Any = None
        self.map_length: int | None = None
        self.map_label: str | None = None
        self._encoded: dict[str, bytes] = {}
        self.started = time.time_ns() // 1000 if started is None else started
        self.ended: int | None = None
        """Microseconds; known to callbacks."""
        self.rendered = b""
        """JSON of what the templated fields came to, once they are rendered."""
        self._dag_run: DagRun | None = None
        self._previous: dict[str | None, DagRun | None] = {}

    def __repr__(self) -> str:
        where = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"<TaskInstance: {self.dag_id}.{self.task_id}{where} {self.run_id} [{self.state}]>"

    # --- what it is -----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Names this attempt."""
        return "-".join(map(str, self.workload.key))

    @property
    def key(self) -> TaskInstanceKey:
        return TaskInstanceKey(self.dag_id, self.task_id, self.run_id, self.try_number, self.map_index)

    @property
    def dag_run(self) -> DagRun:
        if self._dag_run is None:
            self._dag_run = DagRun.of_workload(self.workload, self.task.get_dag())
        return self._dag_run

    def get_dagrun(self) -> DagRun:
        return self.dag_run

    @property
    def logical_date(self) -> DateTime | None:
        return moment(self.workload.logical_date)

    @property
    def execution_date(self) -> DateTime | None:
        """Airflow 1 and 2's name of the logical date."""
        return moment(self.workload.logical_date)

    @property
    def start_date(self) -> DateTime | None:
        """When this start of the task began."""
        return moment(self.started)

    @property
    def end_date(self) -> DateTime | None:
        """None while it runs; callbacks see when it ended."""
        return moment(self.ended)

    @property
    def duration(self) -> float | None:
        """Seconds, once it has ended."""
        return None if self.ended is None else (self.ended - self.started) / 1e6

    @property
    def log(self) -> logging.Logger:
        """The task's logger."""
        found: logging.Logger = self.task.log
        return found

    @property
    def queued_dttm(self) -> DateTime | None:
        return moment(self.workload.queued_at)

    @property
    def hostname(self) -> str:
        import socket  # lazy door: most tasks do not ask

        return socket.gethostname()

    @property
    def operator(self) -> str:
        return str(getattr(self.task, "operator_name", type(self.task).__name__))

    @property
    def is_mapped(self) -> bool:
        return self.map_index >= 0

    @property
    def rendered_map_index(self) -> str | None:
        return (self.map_label or str(self.map_index)) if self.map_index >= 0 else None

    def expanded_count(self) -> int | None:
        """How many instances its task has; None when it is not mapped."""
        dag = self.task.get_dag()
        mapped = dag.task_dict.get(self.task_id) if dag is not None else None
        owner = mapped if mapped is not None and "expand_input" in mapped.__dict__ else self.task.mapped_group
        if owner is None or self.map_index < 0:
            return None
        return int(owner.expand_input.length(self.get_template_context()))

    @property
    def log_url(self) -> str:
        """Where people find the log: setting `api.base_url`."""
        from urllib.parse import quote  # lazy door: most tasks do not ask

        base = str(conf.get("api", "base_url", fallback="http://localhost:8080")).rstrip("/")
        mapped = f"/mapped/{self.map_index}" if self.map_index >= 0 else ""
        return (
            f"{base}/dags/{quote(self.dag_id)}/runs/{quote(self.run_id)}/tasks/{quote(self.task_id)}{mapped}"
            f"?try_number={self.try_number}"
        )

    @property
    def mark_success_url(self) -> str:
        """The page with the buttons: the same as `log_url`, as in Airflow 3."""
        return self.log_url

    def current_state(self) -> str | None:
        return self.state

    def get_template_context(self) -> Any:
        """The context variables of this task."""
        if self.context is None:
            raise AirflowException(f"{self!r} has no context yet")
        return self.context

    def environment(self) -> dict[str, str]:
        """Environment variables by which programs that a task starts know where they are (Airflow's names)."""
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
        return found

    def render_templates(self, context: Any = None) -> Any:
        """Render the templated fields of the task; returns the task."""
        self.task.render_template_fields(context if context is not None else self.get_template_context())
        return self.task

    def get_first_reschedule_date(self, context: Any = None) -> DateTime | None:
        """When the first start of this try was accepted; None when it was not rescheduled."""
        return moment(self.workload.first_started) if self.workload.reschedules else None

    # --- XComs ----------------------------------------------------------------------------------------------------

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep a value for other tasks. It is stored as it is now, and reported with the verdict.

        Raises:
            XComNotSerializable: it cannot be stored; the message names the place inside the value.
        """
        if not isinstance(key, str) or not key:
            raise AirflowException(f"an XCom's key must be a text, not {key!r}")
        self._encoded[key] = encode_xcom(value, key)
        self.pushed[key] = value

    @property
    def encoded(self) -> Mapping[str, bytes]:
        """What was pushed, as it will be stored."""
        return self._encoded

    def xcom_pull(
        self,
        task_ids: str | Iterable[str] | None = None,
        dag_id: str | None = None,
        key: str = XCOM_RETURN_KEY,
        include_prior_dates: bool = False,
        *,
        map_indexes: Any = NOTSET,
        default: Any = None,
        run_id: str | None = None,
    ) -> Any:
        """Read what tasks have pushed.

        Args:
            task_ids: one id gives one value (a list, for a mapped task); several ids give a list in their order. None: what
                this task instance itself pushed, else the value of the task before it that comes last in the DAG's
                order (Airflow 1 and 2 take the latest of any task, Airflow 3 only its own).
            dag_id: another DAG; its run has the same run id, unless `run_id` says another.
            key: `return_value` unless it was pushed by hand.
            include_prior_dates: also look in earlier runs; the latest value counts.
            map_indexes: one gives its value, several a list; not given: all of a mapped task.
            default: stands for what was not pushed.
            run_id: another run.

        Raises:
            AirflowException: the question could not be answered.
        """
        if not isinstance(key, str):
            raise AirflowException(f"an XCom's key must be a text, not {key!r}")
        if task_ids is None:
            return self._pull_nearest(key, include_prior_dates, default)
        single = isinstance(task_ids, str)
        ids: tuple[str, ...] = (task_ids,) if isinstance(task_ids, str) else tuple(task_ids)
        indexes = _indexes(map_indexes)
        if map_indexes is NOTSET and single and dag_id in (None, self.dag_id) and run_id in (None, self.run_id):
            indexes = self._own_index(ids[0])
        rows = self._ask(ids, key, dag_id or self.dag_id, run_id or self.run_id, indexes, include_prior_dates)
        found: list[Any] = []
        for task_id in ids:
            values = rows.get(task_id, {})
            if indexes is not None:
                found.extend(values[index]() if index in values else default for index in indexes)
            elif not values:
                found.append(default)
            elif single and any(index >= 0 for index in values):
                return _lazily([values[index] for index in sorted(values)])
            else:
                found.extend(values[index]() for index in sorted(values))
        one_index = map_indexes is NOTSET or map_indexes is None or isinstance(map_indexes, int)
        return found[0] if single and one_index else found

    def _own_index(self, task_id: str) -> tuple[int, ...] | None:
        """Inside a mapped task group the instances of one map index see each other only."""
        dag = self.task.get_dag()
        other = dag.task_dict.get(task_id) if dag is not None and self.map_index >= 0 else None
        group = other.mapped_group if other is not None else None
        return (self.map_index,) if group is not None and group is self.task.mapped_group else None

    def _pull_nearest(self, key: str, include_prior_dates: bool, default: Any) -> Any:
        """What `task_ids=None` means."""
        own = self._ask((self.task_id,), key, self.dag_id, self.run_id, None, include_prior_dates).get(self.task_id, {})
        if own:
            return own.get(self.map_index, next(iter(own.values())))()
        upstream = _upstream_nearest_first(self.task)
        if not upstream:
            return default
        rows = self._ask(upstream, key, self.dag_id, self.run_id, None, include_prior_dates)
        for task_id in upstream:
            values = rows.get(task_id)
            if values:
                found = [values[index]() for index in sorted(values)]
                return found if any(index >= 0 for index in values) else found[0]
        return default

    def _ask(
        self,
        task_ids: Sequence[str],
        key: str,
        dag_id: str,
        run_id: str,
        map_indexes: tuple[int, ...] | None,
        include_prior_dates: bool,
    ) -> dict[str, dict[int, Callable[[], Any]]]:
        """Task id → map index → reader of the value. What this attempt pushed stands before what is stored."""
        rows: dict[str, dict[int, Callable[[], Any]]] = {}
        own = dag_id == self.dag_id and run_id == self.run_id and self.task_id in task_ids and key in self._encoded
        if not own or len(task_ids) > 1 or self.map_index >= 0:
            question = XComPull(
                op=0,
                dag_id=dag_id,
                run_id=run_id,
                task_ids=tuple(task_ids),
                key=key,
                map_indexes=map_indexes,
                include_prior_dates=include_prior_dates,
            )
            answer = runtime.ask(question)
            if not isinstance(answer, XComs):
                reason = answer.reason if isinstance(answer, Failure) else f"got {type(answer).__name__} for an answer"
                raise AirflowException(f"cannot pull the XCom {key!r} of {', '.join(task_ids)}: {reason}")
            for task_id, index, data, spill in answer.values:
                rows.setdefault(task_id, {})[index] = _reader(data, spill)
        if own and (map_indexes is None or self.map_index in map_indexes):
            rows.setdefault(self.task_id, {})[self.map_index] = _reader(self._encoded[key], None)
        return rows

    # --- earlier runs ---------------------------------------------------------------------------------------------

    def get_previous_dagrun(self, state: str | None = None) -> DagRun | None:
        """The run of this DAG with the latest logical date before this one's, in `state` when given; None: there is none."""
        wanted = None if state is None else str(getattr(state, "value", state))
        at = self.workload.logical_date
        if at is None:
            return None
        if wanted not in self._previous:
            question = GetPreviousRun(op=0, dag_id=self.dag_id, logical_date=at, state=wanted)
            answer = request_value(question, f"cannot read the run before {self.run_id!r}")
            row = answer.value if answer.found else None
            self._previous[wanted] = None if row is None else _run_of(self.dag_id, row, self.task.get_dag())
        return self._previous[wanted]

    def get_previous_ti(self, state: str | None = None) -> OtherTaskInstance | None:
        """This task in the run before; None when there is none (in `state`, when given)."""
        run = self.get_previous_dagrun()
        found = run.get_task_instance(self.task_id) if run is not None else None
        wanted = None if state is None else str(getattr(state, "value", state))
        return found if found is not None and (wanted is None or found.state == wanted) else None

    @property
    def previous_ti(self) -> OtherTaskInstance | None:
        return self.get_previous_ti()

    @property
    def previous_ti_success(self) -> OtherTaskInstance | None:
        return self.get_previous_ti("success")

    def get_previous_logical_date(self, state: str | None = None) -> DateTime | None:
        run = self.get_previous_dagrun(state)
        return None if run is None else run.logical_date

    get_previous_execution_date = get_previous_logical_date

    def get_previous_start_date(self, state: str | None = None) -> DateTime | None:
        run = self.get_previous_dagrun(state)
        return None if run is None else run.start_date


_DATES = ("logical_date", "data_interval_start", "data_interval_end", "run_after", "start_date", "end_date", "queued_at")


def _run_of(dag_id: str, row: Mapping[str, Any], dag: Any) -> DagRun:
    return DagRun(
        dag_id=dag_id,
        run_id=row["run_id"],
        run_type=row.get("run_type", RunType.MANUAL),
        state=row.get("state"),
        dates={name: row.get(name) for name in _DATES},
        conf=row.get("conf"),
        dag=dag,
    )


def _lazily(readers: Sequence[Callable[[], Any]]) -> LazyList:
    """Values that are decoded when they are looked at."""
    return LazyList(len(readers), lambda place: readers[place]())


def _indexes(map_indexes: Any) -> tuple[int, ...] | None:
    """None: whatever there is."""
    if map_indexes is NOTSET or map_indexes is None:
        return None
    return (map_indexes,) if isinstance(map_indexes, int) else tuple(map_indexes)


def _reader(data: bytes, spill: str | None) -> Callable[[], Any]:
    if spill is None:
        return lambda: decode_xcom(data)
    return lambda: decode_xcom(runtime.current().read_spill(spill))


def _upstream_nearest_first(task: Any) -> tuple[str, ...]:
    """All tasks before this one; a task stands before those that it depends on."""
    order: list[str] = []
    seen: set[str] = set()
    # depth first without recursion: a task is put down after everything before it was
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
