"""DAGs and task instances without a database, for `dag_maker` and `run_task`."""

from __future__ import annotations

import datetime
from typing import Any

from tradewind.execution.context import TaskInstance, build_context, current_context
from tradewind.execution.run_task import push_result, run_to_end
from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.moments import to_micros
from tradewind.model.states import RunType, TaskState
from tradewind.sdk.exceptions import AirflowSkipException, TaskDeferred
from tradewind.wire.messages import Workload

DEFAULT_DATE = datetime.datetime(2016, 1, 1, tzinfo=datetime.UTC)


_NOT_OF_DAG = ("session", "serialized", "activate_assets", "bundle_name", "bundle_version", "fileloc", "relative_fileloc")
"""Arguments of `dag_maker` that are not arguments of a DAG."""

_NOT_GIVEN: Any = object()


class DagMaker:
    """`with dag_maker("dag") as dag:` creates a DAG; `dag_maker.create_dagrun()` creates a run of it in the memory of the
    process.
    """

    def __init__(self, default_start: Any = DEFAULT_DATE) -> None:
        self.dag: Any = None
        self.dag_run: Any = None
        self.start_date = self._default_start = default_start
        self.session: Any = None

    def __call__(self, dag_id: str = "test_dag", **kwargs: Any) -> DagMaker:
        from airflow.sdk import DAG
        from airflow.utils.session import create_session

        given = {name: kwargs.pop(name) for name in _NOT_OF_DAG if name in kwargs}
        with create_session() as own:
            self.session = given.get("session") or own
        start = kwargs.get("start_date") or (kwargs.get("default_args") or {}).get("start_date") or self._default_start
        self.start_date = kwargs["start_date"] = start
        kwargs.setdefault("schedule", datetime.timedelta(days=1))
        self.dag = DAG(dag_id, **kwargs)
        return self

    def __enter__(self) -> Any:
        if self.dag is None:
            self()
        self.dag.__enter__()
        return self.dag

    def __exit__(self, *exc_info: Any) -> None:
        self.dag.__exit__(*exc_info)

    @property
    def serialized_dag(self) -> Any:
        """The DAG itself: Tradewind has no second class for serialized DAGs."""
        return self.dag

    def create_dagrun(self, *, logical_date: Any = _NOT_GIVEN, **kwargs: Any) -> Any:
        """Create a run of the DAG. The default date is the start date of the DAG."""
        kind = str(getattr(kwargs.get("run_type"), "value", kwargs.get("run_type")) or "manual")
        date = kwargs.pop("execution_date", None)
        if logical_date is not _NOT_GIVEN:
            date = logical_date
        elif date is None:
            date = self.start_date
        if "run_type" not in kwargs:
            kwargs.setdefault("run_id", "test")
        options = {"state": "running", "start_date": self.start_date, **kwargs, "run_type": kind}
        self.dag_run = self.dag.create_dagrun(logical_date=date, **options)
        return self.dag_run

    def create_dagrun_after(self, dagrun: Any, **kwargs: Any) -> Any:
        """The run that follows another run by the schedule."""
        following = self.dag.following_schedule(dagrun.logical_date)
        return self.create_dagrun(logical_date=following, **kwargs)

    def create_ti(
        self, task_id: str, dag_run: Any = None, dag_run_kwargs: Any = None, map_index: int = -1, **_more: Any
    ) -> Any:
        """The task instance of a task, in a new run if none is given."""
        run = dag_run if dag_run is not None else self.create_dagrun(**(dag_run_kwargs or {}))
        found = run.get_task_instance(task_id, map_index=map_index)
        if found is None:
            raise ValueError(f"the run has no task {task_id!r}; it has {', '.join(self.dag.task_ids)}")
        return found

    def run_ti(self, task_id: str, dag_run: Any = None, dag_run_kwargs: Any = None, map_index: int = -1, **options: Any) -> Any:
        """Run a task. Its error is raised."""
        return self.create_ti(task_id, dag_run, dag_run_kwargs, map_index).run(**options)

    def get_serialized_data(self) -> dict[str, Any]:
        """The DAG as JSON data."""
        from airflow.serialization.serialized_objects import DagSerialization

        data: dict[str, Any] = DagSerialization.to_dict(self.dag)
        return data

    def sync_dag_to_db(self) -> None:
        """Do nothing: there is no table of DAGs."""

    sync_dagbag_to_db = sync_dag_to_db


def _workload(
    task: Any, logical_date: Any, run_id: str | None, run_type: Any, try_number: int, max_tries: int, map_index: int
) -> Workload:
    at = None if logical_date is None else to_micros(logical_date)
    dag = task.get_dag()
    return Workload(
        run=1,
        slot=0,
        fence=1,
        dag_id=dag.dag_id if dag is not None else "test_dag",
        task_id=task.task_id,
        run_id=run_id or f"manual__{DEFAULT_DATE.isoformat()}",
        run_type=RunType(str(getattr(run_type, "value", run_type) or "manual")),
        logical_date=at,
        interval_start=at,
        interval_end=at,
        run_after=at or to_micros(DEFAULT_DATE),
        try_number=try_number,
        max_tries=max_tries,
        map_index=map_index,
    )


def make_runtime_ti(
    task: Any,
    *,
    dag_id: str = "test_dag",
    run_id: str | None = None,
    logical_date: Any = DEFAULT_DATE,
    run_type: Any = None,
    try_number: int = 1,
    max_tries: int = 0,
    map_index: int | None = None,
    conf: dict[str, Any] | None = None,
    run_after: Any = None,
    **_more: Any,
) -> Any:
    """A task instance with a context."""
    if task.get_dag() is None:
        from airflow.sdk import DAG

        task.dag = DAG(dag_id, start_date=DEFAULT_DATE)
    index = -1 if map_index is None else map_index
    workload = _workload(task, logical_date, run_id, run_type, try_number, max_tries, index)
    if run_after is not None:
        workload.run_after = to_micros(run_after)
    ti: Any = TaskInstance(task, workload)
    ti.dag_run.conf = dict(conf or {})
    context = build_context(task, workload, ti=ti)
    ti.get_template_context = lambda *_args, **_kwargs: context
    return ti


def run_task_instance(ti: Any, task: Any, **_more: Any) -> Any:
    """Run a task as an attempt does; its error is raised."""
    ti.task = task
    return ti.run()


class Pushed(dict[str, Any]):
    """Key → value that a task has pushed."""

    def get(self, key: str = "return_value", default: Any = None, **_where: Any) -> Any:
        return super().get(key, default)

    def assert_pushed(self, key: str, value: Any, **_where: Any) -> None:
        assert self[key] == value


class RunTask:
    """`run_task(operator)` runs one task; the attributes contain its result."""

    def __init__(self) -> None:
        self.state: Any = None
        self.error: BaseException | None = None
        self.ti: Any = None
        self.context: Any = None
        self.xcom = Pushed()

    def __call__(
        self, task: Any, *, logical_date: Any = DEFAULT_DATE, run_id: Any = None, run_type: Any = None, **_: Any
    ) -> Any:
        self.ti = make_runtime_ti(task, logical_date=logical_date, run_id=run_id, run_type=run_type)
        self.context = self.ti.context
        self.error = None
        self.xcom = Pushed()
        try:
            with current_context(self.context):
                task.render_template_fields(self.context)
                task.pre_execute(self.context)
                result = run_to_end(task.execute(self.context))
                task.post_execute(self.context, result)
                push_result(task, self.ti, result)
            self.state = TaskState.SUCCESS
        except AirflowSkipException as error:
            self.state, self.error = TaskState.SKIPPED, error
        except TaskDeferred as error:
            self.state, self.error = TaskState.DEFERRED, error
        except Exception as error:
            self.state, self.error = TaskState.FAILED, error
        self.xcom = Pushed({key: decode_xcom(encode_xcom(value)) for key, value in self.ti.pushed.items()})
        return self.state, None, self.error

    @property
    def dagrun(self) -> Any:
        return self.context["dag_run"]
