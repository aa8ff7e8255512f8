"""DAGs and task instances without a database: what `dag_maker` and `run_task` need."""

from __future__ import annotations

import datetime
from typing import Any

from tradewind.execution.context import TaskInstance, build_context, current_context
from tradewind.execution.run_task import run_to_end
from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.moments import to_micros
from tradewind.model.states import RunType, TaskState
from tradewind.sdk.exceptions import AirflowSkipException, TaskDeferred
from tradewind.wire.messages import Workload

DEFAULT_DATE = datetime.datetime(2016, 1, 1, tzinfo=datetime.UTC)


class DagMaker:
    """`with dag_maker("dag") as dag:` makes a DAG."""

    def __init__(self) -> None:
        self.dag: Any = None

    def __call__(self, dag_id: str = "test_dag", **kwargs: Any) -> DagMaker:
        from airflow.sdk import DAG

        for name in (
            "session",
            "serialized",
            "activate_assets",
            "bundle_name",
            "bundle_version",
            "fileloc",
            "relative_fileloc",
        ):
            kwargs.pop(name, None)
        kwargs.setdefault("start_date", DEFAULT_DATE)
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
        run_type=RunType(str(run_type or "manual")),
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
    """What a task pushed, by key."""

    def get(self, key: str = "return_value", default: Any = None, **_where: Any) -> Any:
        return super().get(key, default)

    def assert_pushed(self, key: str, value: Any, **_where: Any) -> None:
        assert self[key] == value


class RunTask:
    """`run_task(operator)` runs one task; the attributes say how it ended."""

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
                if result is not None and task.do_xcom_push:
                    self.ti.xcom_push("return_value", result)
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
