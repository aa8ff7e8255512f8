"""Methods of Airflow's `DAG` and `BaseOperator` with which tests create and execute runs in their own process.

`dag.create_dagrun`, `dag.run`, `dag.clear`, `task.run`, `task.clear`. The rows are in the memory of the process (`local_database`).
In a process that a scheduler has started they are refused: user code does not change the rows of a deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tradewind import timetables
from tradewind.execution import hand_made
from tradewind.execution.local_database import LocalRun, database, open_database, run_type_of
from tradewind.execution.older_dag_methods import OlderDagMethods
from tradewind.execution.task_instance import DagRun, TaskInstance, micros_of
from tradewind.model.errors import NotYetSupported
from tradewind.model.states import RunType
from tradewind.sdk import open_dags
from tradewind.sdk.exceptions import AirflowException
from tradewind.wire import runtime

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator

DATES_MAX = 1_000
"""Maximum number of runs that one call of `run` executes."""


class CreatedRun(DagRun):
    """A run that a test has created. Its state can be set; its task instances can run."""

    def __init__(self, row: LocalRun, dag: DAG | None = None) -> None:
        """Make a run from its row.

        Args:
            dag: the DAG object of this test: another test may have created the run with another DAG of the same id.
        """
        row.dag = dag or row.dag
        facts = row.facts
        dates = {name: facts.get(name) for name in facts if name.endswith(("_date", "_after", "_at", "_start", "_end"))}
        super().__init__(
            dag_id=row.dag_id,
            run_id=row.run_id,
            run_type=run_type_of(facts["run_type"]),
            state=facts["state"],
            dates=dates,
            conf=facts["conf"],
            dag=row.dag,
            partition_key=facts.get("partition_key"),
        )
        self._row = row
        self._instances: dict[tuple[str, int], TaskInstance] = {}

    def set_state(self, state: Any) -> None:
        """Set the state of the run, and its dates."""
        super().set_state(state)
        self._row.facts["state"] = self.state

    def get_task_instance(self, task_id: str, session: Any = None, *, map_index: int = -1) -> TaskInstance | None:
        """The task instance of a task, with its current state; None: the DAG has no such task."""
        task = self.dag.task_dict.get(task_id) if self.dag is not None else None
        if task is None:
            return None
        key = (task_id, map_index)
        if key not in self._instances:
            made = TaskInstance(task, self._row.workload(task, map_index), made_by_hand=True)
            made._dag_run = self
            self._instances[key] = made
        found = self._instances[key]
        found.state = self._row.states.get(key)
        return found

    def get_task_instances(self, state: Any = None, session: Any = None) -> list[TaskInstance]:
        """The task instances of all tasks with their current states; only those in `state` (one or several) if given."""
        every = [self.get_task_instance(task_id) for task_id in (self.dag.task_ids if self.dag is not None else ())]
        if state is None:
            return [ti for ti in every if ti is not None]
        given = [state] if isinstance(state, str) else state
        wanted = {None if one is None else str(getattr(one, "value", one)) for one in given}
        return [ti for ti in every if ti is not None and ti.state in wanted]

    def update_state(self, session: Any = None, execute_callbacks: bool = True) -> tuple[list[Any], None]:
        """Set the state of the run if all tasks without downstream tasks have ended."""
        leaves = [self._row.states.get((task.task_id, -1)) for task in self.dag.leaves]
        if any(state in ("failed", "upstream_failed") for state in leaves):
            self.set_state("failed")
        elif all(state in ("success", "skipped") for state in leaves):
            self.set_state("success")
        return [], None

    def refresh_from_db(self, *_args: Any, **_options: Any) -> None:
        """Read the state again from the memory of the process."""
        self.state = self._row.facts["state"]

    def verify_integrity(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: task instances are made when they are needed."""


class LocalDagMethods:
    """The methods of a DAG, which its `__getattr__` finds here."""

    def __init__(self, dag: DAG) -> None:
        self._dag = dag

    def create_dagrun(
        self,
        state: Any = None,
        execution_date: datetime | None = None,
        run_id: str | None = None,
        start_date: datetime | None = None,
        external_trigger: bool | None = False,
        conf: Mapping[str, Any] | None = None,
        run_type: Any = None,
        session: Any = None,
        dag_hash: Any = None,
        creating_job_id: Any = None,
        data_interval: Any = None,
        *,
        logical_date: datetime | None = None,
        run_after: datetime | None = None,
        partition_key: str | None = None,
        **_more: Any,
    ) -> CreatedRun:
        """Create a run in the memory of this process; one with the same id is replaced.

        Args:
            execution_date, logical_date: two names of the logical date; None: a run without one.
            run_id: default is one made of the type and the date.
            data_interval: its start and end; default is the interval of the schedule.
            conf: the configuration of the run.

        Raises:
            NotYetSupported: a scheduler has started this process.
        """
        self._check("create_dagrun")
        kind = run_type_of(run_type or _type_in(run_id))
        date = logical_date or execution_date
        at = None if date is None else micros_of(date)
        name = run_id or DagRun.generate_run_id(kind, logical_date=date, run_after=run_after)
        start, end = self._interval(kind, at, data_interval)
        facts = {
            "run_type": kind.value,
            "state": str(getattr(state, "value", state) or "running"),
            "logical_date": at,
            "data_interval_start": start,
            "data_interval_end": end,
            "run_after": micros_of(run_after) if run_after is not None else end if end is not None else _now(),
            "start_date": None if start_date is None else micros_of(start_date),
            "queued_at": _now(),
            "conf": dict(conf or {}),
            "partition_key": partition_key,
        }
        return CreatedRun(open_database().add(LocalRun(self._dag.dag_id, name, facts, self._dag)))

    def _interval(self, kind: RunType, at: int | None, given: Any) -> tuple[int | None, int | None]:
        """Start and end of the data interval, microseconds."""
        if given is not None:
            return micros_of(given[0]), micros_of(given[1])
        if at is None:
            return None, None
        try:
            schedule = OlderDagMethods(self._dag)._times()
            if kind in (RunType.SCHEDULED, RunType.BACKFILL):
                return at, timetables.following(schedule, at) or at
            return timetables.manual_interval(schedule, at, at) or (at, at)
        except NotYetSupported:  # the timetable is code of the author
            return at, at

    def run(
        self,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        mark_success: bool = False,
        *_positional: Any,
        conf: Mapping[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        """Execute a run for each date of the schedule, as `dag.test()` does, in this process.

        Args:
            start_date: default is the start date of the DAG.
            end_date: default is now.
            mark_success: all tasks count as success and do not run.

        Raises:
            AirflowException: a run has failed, or there are more than `DATES_MAX` dates.
            NotYetSupported: a scheduler has started this process.
        """
        self._check("run")
        failed = []
        open_database()  # the runs are kept there
        for date in _dates_of(self._dag, start_date, end_date):
            tested = self._dag.test(
                logical_date=date, run_conf=dict(conf) if conf else None, mark_success_pattern=".*" if mark_success else None
            )
            if str(tested.state) != "success":
                bad = [name for name, task in tested.tasks.items() if str(task.state) == "failed"]
                failed.append(f"{tested.run_id}: {', '.join(bad[:5]) or 'no task failed'}")
        if failed:
            raise AirflowException(f"runs of DAG {self._dag.dag_id!r} have failed: {'; '.join(failed[:5])}")

    def clear(
        self,
        task_ids: Any = None,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        only_failed: bool = False,
        dag_run_state: Any = "queued",
        dry_run: bool = False,
        **_more: Any,
    ) -> int:
        """Remove the states and XComs of task instances of this process. Returns how many had a state.

        Raises:
            NotYetSupported: a scheduler has started this process.
        """
        self._check("clear")
        wanted = None if task_ids is None else {one if isinstance(one, str) else one[0] for one in task_ids}
        cleared = 0
        for run in _runs_between(self._dag, start_date, end_date):
            for (task_id, index), state in list(run.states.items()):
                if (wanted is not None and task_id not in wanted) or (
                    only_failed and state not in ("failed", "upstream_failed")
                ):
                    continue
                cleared += state is not None
                if not dry_run:
                    run.states[task_id, index] = None
                    run.forget(task_id, index)
            if not dry_run and dag_run_state:
                run.facts["state"] = str(getattr(dag_run_state, "value", dag_run_state))
        return cleared

    def get_task_instances(
        self, start_date: datetime | None = None, end_date: datetime | None = None, state: Any = None, **_more: Any
    ) -> list[TaskInstance]:
        """The task instances of the runs of this process whose logical dates lie between two dates, those in `state` if given."""
        self._check("get_task_instances")
        runs = [CreatedRun(run, self._dag) for run in _runs_between(self._dag, start_date, end_date)]
        return [ti for run in runs for ti in run.get_task_instances(state)]

    def set_dag_runs_state(
        self,
        state: Any = "running",
        session: Any = None,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        dag_ids: Any = None,
    ) -> None:
        """Set the state of the runs of this process whose logical dates lie between two dates."""
        self._check("set_dag_runs_state")
        for run in _runs_between(self._dag, start_date, end_date):
            run.facts["state"] = str(getattr(state, "value", state))

    def get_dagruns_between(self, start_date: datetime, end_date: datetime, session: Any = None) -> list[DagRun]:
        """The runs of this process whose logical dates lie between two dates."""
        self._check("get_dagruns_between")
        return [CreatedRun(run, self._dag) for run in _runs_between(self._dag, start_date, end_date)]

    def sync_to_db(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: without a scheduler there is no list of DAGs."""
        self._check("sync_to_db")

    def _check(self, name: str) -> None:
        """Raises NotYetSupported: a scheduler has started this process."""
        if open_dags.is_reading() or not runtime.is_local():
            self._dag._refuse(name)


def run_task_of_dates(task: BaseOperator, start_date: datetime | None, end_date: datetime | None, mark_success: bool) -> None:
    """`task.run()`: execute one task for each date of the schedule of its DAG, in this process.

    Raises:
        NotYetSupported: a scheduler has started this process.
        AirflowException: there are more than `DATES_MAX` dates.
        Exception: the exception of the task.
    """
    dag = task.dag
    methods = LocalDagMethods(dag)
    methods._check("run")
    for date in _dates_of(dag, start_date or task.start_date, end_date):
        row = open_database().find(dag.dag_id, logical_date=micros_of(date))
        run = CreatedRun(row, dag) if row is not None else methods.create_dagrun(execution_date=date, run_type="scheduled")
        ti = run.get_task_instance(task.task_id)
        assert ti is not None
        ti.task = task.copy_for(dag)
        ti.task._upstream, ti.task._downstream = task._upstream, task._downstream
        hand_made.run(ti, mark_success)


def keep_tested(tested: Any, dag: DAG) -> None:
    """Keep the states and XComs of a run of `dag.test()` in the memory of this process."""
    row = tested.row
    facts = {
        "run_type": row.run_type.value,
        "state": row.state.value,
        "logical_date": row.logical_date,
        "data_interval_start": row.interval_start,
        "data_interval_end": row.interval_end,
        "run_after": row.run_after,
        "start_date": row.started_at,
        "end_date": row.ended_at,
    }
    kept = database().add(LocalRun(dag.dag_id, tested.run_id, facts, dag))
    for task in tested.tasks.values():
        kept.states[task.task_id, task.map_index] = task.state.value
    for task_id, index, key, data in tested.every_xcom():
        kept.xcoms[task_id, index, key] = data


def _runs_between(dag: DAG, start_date: datetime | None, end_date: datetime | None) -> Iterator[LocalRun]:
    start, end = (None if date is None else micros_of(date) for date in (start_date, end_date))
    for run in database().of_dag(dag.dag_id):
        if (start is None or run.moment >= start) and (end is None or run.moment <= end):
            yield run


def _dates_of(dag: DAG, start_date: datetime | None, end_date: datetime | None) -> list[datetime]:
    """The first date, and the later dates of the schedule up to the last date.

    Raises:
        AirflowException: there is no first date, or there are too many.
    """
    start = start_date or dag.start_date or dag.default_args.get("start_date")
    starts = [task.start_date for task in dag.tasks if task.start_date is not None]
    if start is None and starts:
        start = min(starts)
    if start is None:
        raise AirflowException(f"DAG {dag.dag_id!r} has no start_date; call run(start_date=…)")
    end = end_date or dag.end_date or datetime.now(UTC)
    first, last = micros_of(start), micros_of(end)
    found = [start]
    for date in OlderDagMethods(dag).get_run_dates(start, end) if last > first else ():
        if micros_of(date) > first:
            found.append(date)
        if len(found) > DATES_MAX:
            raise AirflowException(
                f"run() of DAG {dag.dag_id!r} from {start.isoformat()} has more than {DATES_MAX} dates; give an end_date"
            )
    return found


def _type_in(run_id: str | None) -> str:
    """The type of a run that its id names (`scheduled__…`)."""
    return (run_id or "").partition("__")[0]


def _now() -> int:
    return micros_of(datetime.now(UTC))
