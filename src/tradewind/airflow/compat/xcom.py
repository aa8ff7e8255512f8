"""`airflow.models.xcom`: the functions of Airflow's class for XComs, which extra links of provider packages use.

All of them work in a running task. They read through the task's own `ti.xcom_pull`; no function reads a database.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tradewind.airflow.compat import test_rows
from tradewind.airflow.compat.json_coding import XComDecoder, XComEncoder
from tradewind.airflow.compat.models import Table
from tradewind.execution.context import get_current_context, workload_that_runs
from tradewind.execution.local_database import LocalRun, database, is_open, open_database
from tradewind.execution.run_queries import find_runs
from tradewind.execution.task_instance import micros_of
from tradewind.execution.xcom_backend import backend
from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.sdk.exceptions import AirflowException
from tradewind.wire import runtime
from tradewind.wire.messages import XComPull, XComs

__all__ = ["BaseXCom", "XCom", "resolve_xcom_backend"]

_RETURN_VALUE = "return_value"


class BaseXCom(Table):
    """Base of XComs and of XCom backends."""

    XCOM_RETURN_KEY = _RETURN_VALUE

    @classmethod
    def get_value(cls, *, ti_key: Any, key: str = _RETURN_VALUE, session: Any = None) -> Any:
        """The value that a task instance pushed, or None.

        Args:
            ti_key: the key of the task instance: DAG id, task id, run id and map index.
        """
        index = getattr(ti_key, "map_index", -1)
        return cls.get_one(
            key=key, dag_id=ti_key.dag_id, task_id=ti_key.task_id, run_id=ti_key.run_id, map_index=None if index < 0 else index
        )

    @classmethod
    def get_one(
        cls,
        execution_date: datetime | None = None,
        key: str = _RETURN_VALUE,
        task_id: str | None = None,
        dag_id: str | None = None,
        include_prior_dates: bool = False,
        session: Any = None,
        *,
        run_id: str | None = None,
        map_index: int | None = None,
        **_ignored: Any,
    ) -> Any:
        """The value of one key, or None. Without a task id: the value that the running task pushed itself.

        Args:
            execution_date: logical date of the run, the first argument of Airflow 1 and 2; without effect if `run_id` is given.
            session: ignored.
        """
        if workload_that_runs() is None and is_open():
            return _of_test(execution_date, key, task_id, dag_id, run_id, -1 if map_index is None else map_index)
        if workload_that_runs() is None and runtime.is_installed() and runtime.is_local():
            return _of_stand_in(XComPull(0, dag_id or "", run_id or "", (task_id or "",), key, _indexes(map_index)))
        ti = _running_task()
        if run_id is None and execution_date is not None and micros_of(execution_date) != ti.workload.logical_date:
            runs = find_runs(dag_id or ti.dag_id, execution_date=execution_date)
            if not runs:
                return None
            run_id = runs[-1].run_id
        own = (dag_id or ti.dag_id, run_id or ti.run_id, task_id or ti.task_id) == (ti.dag_id, ti.run_id, ti.task_id)
        if own and (map_index is None or map_index == ti.map_index) and key in ti.pushed:
            return ti.pushed[key]
        index = {} if map_index is None else {"map_indexes": map_index}
        return ti.xcom_pull(
            task_ids=task_id or ti.task_id,
            dag_id=dag_id,
            run_id=run_id,
            key=key,
            include_prior_dates=include_prior_dates,
            **index,
        )

    @classmethod
    def get_many(
        cls,
        execution_date: datetime | None = None,
        key: str | None = None,
        task_ids: str | Iterable[str] | None = None,
        dag_ids: str | Iterable[str] | None = None,
        map_indexes: int | Iterable[int] | None = None,
        include_prior_dates: bool = False,
        limit: int | None = None,
        session: Any = None,
        *,
        run_id: str | None = None,
    ) -> Any:
        """XComs of several tasks or DAGs, those of the latest run first. Limits as for `settings.Session()` (see `queries`).

        Args:
            execution_date: logical date of the run.
            key: without a key, the XComs under all keys.
            include_prior_dates: the runs before this date, too.
            session: ignored.

        Returns:
            A query (`first`, `all`, `count`), which is also a list. Its objects have the attributes `value`, `key`, `task_id`,
            `dag_id`, `run_id` and `map_index`.
        """
        query = importlib.import_module("tradewind.airflow.compat.queries").XComQuery(
            (cls,)
        )  # it needs the class of this module
        if run_id is None and execution_date is None and workload_that_runs() is not None and dag_ids is None:
            run_id = _running_task().run_id
        if key:
            query = query.filter(cls.key == key)
        for column, wanted in ((cls.task_id, task_ids), (cls.dag_id, dag_ids), (cls.map_index, map_indexes)):
            if wanted is not None:
                query = query.filter(column.in_([wanted] if isinstance(wanted, str | int) else list(wanted)))
        if run_id is not None and not include_prior_dates:
            query = query.filter(cls.run_id == run_id)
        elif execution_date is not None:
            date = cls.logical_date
            query = query.filter(date <= execution_date if include_prior_dates else date == execution_date)
        return query.order_by(cls.logical_date.desc()).limit(limit)

    @classmethod
    def get_all(cls, *, dag_id: str, task_id: str, run_id: str, key: str = _RETURN_VALUE, **_ignored: Any) -> Any:
        """The values of all instances of a mapped task."""
        return _running_task().xcom_pull(task_ids=[task_id], dag_id=dag_id, run_id=run_id, key=key)

    @classmethod
    def set(
        cls,
        key: str,
        value: Any,
        execution_date: datetime | None = None,
        task_id: str | None = None,
        dag_id: str | None = None,
        session: Any = None,
        *,
        run_id: str | None = None,
        map_index: int = -1,
        **_more: Any,
    ) -> None:
        """Push a value as the running task. In a test without a running task: for any task of a run of this process.

        Raises:
            AirflowException: another task instance is given.
        """
        if workload_that_runs() is None and test_rows.is_possible():
            _set_in_test(execution_date, run_id, dag_id or "", (task_id or "", map_index, key), value)
            return
        ti = _running_task()
        for name, given in (("dag_id", dag_id), ("run_id", run_id), ("task_id", task_id)):
            if given is not None and given != getattr(ti, name):
                raise AirflowException(f"a task can push only its own XComs; {name} is {given!r}")
        ti.xcom_push(key=key, value=value)

    @staticmethod
    def serialize_value(value: Any, **_where: Any) -> Any:
        """A value as JSON."""
        return json.dumps(value, cls=XComEncoder)

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        """A value from its JSON, which is `result` itself or its attribute `value`."""
        text = getattr(result, "value", result)
        return None if text is None else json.loads(text, cls=XComDecoder)

    @staticmethod
    def purge(xcom: Any, *_args: Any) -> None:
        """Called before an XCom is deleted; backends remove the data that they have stored elsewhere."""


class XCom(BaseXCom):
    """XComs."""


def _set_in_test(date: datetime | None, run_id: str | None, dag_id: str, where: tuple[str, int, str], value: Any) -> None:
    """Keep a value in a run that a test has created in this process. A run that is missing is created."""
    at = None if date is None else micros_of(date)
    run = open_database().find(dag_id, run_id, at)
    if run is None:
        run = open_database().add(LocalRun(dag_id, run_id or f"manual__{date}", {"logical_date": at}))
    run.xcoms[where] = encode_xcom(value)


def _of_test(
    date: datetime | None, key: str, task_id: str | None, dag_id: str | None, run_id: str | None, map_index: int
) -> Any:
    """The value of a run that a test has created in this process, or None."""
    run = database().find(dag_id or "", run_id, None if date is None else micros_of(date))
    data = None if run is None else run.xcoms.get((task_id or "", map_index, key))
    return None if data is None else decode_xcom(data)


def _indexes(map_index: int | None) -> tuple[int, ...] | None:
    return None if map_index is None else (map_index,)


def _of_stand_in(question: XComPull) -> Any:
    """The value that a test's replacement for the supervisor has, or None."""
    answer = runtime.ask(question)
    values = answer.values if isinstance(answer, XComs) else ()
    return decode_xcom(values[0][2]) if values else None


def _running_task() -> Any:
    return get_current_context()["ti"]


def resolve_xcom_backend() -> type[BaseXCom]:
    """The class of XComs: the configured backend, or `XCom`.

    Raises:
        AirflowConfigException: there is no such class.
    """
    return backend() or XCom
