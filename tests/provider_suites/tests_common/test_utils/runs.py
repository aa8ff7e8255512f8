"""DAGs and task instances without a database: what `dag_maker` and `run_task` need."""

from __future__ import annotations

import datetime
from typing import Any

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


def make_runtime_ti(task: Any, **kwargs: Any) -> Any:
    """A task instance with a context, as `dag.test()` makes it."""
    raise NotImplementedError


class RunTask:
    """`run_task(operator)` runs one task; the attributes say how it ended."""

    def __init__(self) -> None:
        self.state: Any = None
        self.error: BaseException | None = None
        self.xcom: dict[str, Any] = {}

    def __call__(self, task: Any, **kwargs: Any) -> Any:
        raise NotImplementedError
