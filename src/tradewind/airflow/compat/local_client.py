"""`airflow.api`: triggers a DAG from a task, as DAG files for Airflow 1 and 2 do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from tradewind.airflow.compat import pools
from tradewind.airflow.compat.models import Pool
from tradewind.execution.context import get_current_context
from tradewind.execution.other_runs import trigger_run
from tradewind.execution.run_queries import find_runs
from tradewind.execution.task_instance import DagRun, micros_of
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.exceptions import AirflowException

__all__ = ["Client", "LocalClient", "get_current_api_client", "trigger_dag"]


def trigger_dag(
    dag_id: str,
    run_id: str | None = None,
    conf: Mapping[str, Any] | str | None = None,
    execution_date: datetime | None = None,
    replace_microseconds: bool = True,
    *,
    logical_date: datetime | None = None,
    **_ignored: Any,
) -> DagRun:
    """Create a run of a DAG from a task.

    Args:
        conf: a mapping, or a JSON object as text.
        execution_date: the logical date; None: a run without one.
        replace_microseconds: cut the logical date to seconds.

    Raises:
        AirflowException: there is no such DAG, a run with this id or date exists, or no task is running.
    """
    ti = get_current_context()["ti"]
    date = logical_date or execution_date
    if date is not None and replace_microseconds:
        date = date.replace(microsecond=0)
    given = json.loads(conf) if isinstance(conf, str) else conf
    done = trigger_run(ti, dag_id, run_id=run_id, logical_date=None if date is None else micros_of(date), conf=given)
    if done.done == "exists":
        raise AirflowException(f"the run {done.run_id!r} of DAG {dag_id!r} exists already")
    found = find_runs(dag_id, done.run_id)
    return (
        found[0] if found else DagRun(dag_id=dag_id, run_id=done.run_id, dates={"logical_date": done.logical_date}, conf=given)
    )


class Client:
    """The client of the API that a task may use: `trigger_dag`, and the methods for pools."""

    def __init__(self, api_base_url: str | None = None, auth: Any = None, session: Any = None) -> None:
        """The arguments have no effect."""

    def trigger_dag(
        self, dag_id: str, run_id: str | None = None, conf: Any = None, execution_date: Any = None, **more: Any
    ) -> DagRun:
        """See `trigger_dag` of this module."""
        return trigger_dag(dag_id, run_id, conf, execution_date, **more)

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotYetSupported(
            "with this client a task can only trigger DAGs and change pools; for lineage and the deletion of DAGs use the REST API "
            "(/api/v2)"
        )

    delete_dag = get_lineage = _refuse

    def create_pool(
        self, name: str, slots: int | str, description: str = "", include_deferred: bool = False
    ) -> tuple[str, int, str | None]:
        """Store a pool: (name, slots, description). See `pools.create_pool`."""
        made = Pool.create_or_update_pool(name, pools.slots_of(name, slots), description, include_deferred)
        return _as_tuple(made)

    def get_pool(self, name: str) -> tuple[str, int, str | None]:
        """The pool with this name. Raises as `pools.get_pool`."""
        return _as_tuple(pools.get_pool(name))

    def get_pools(self) -> list[tuple[str, int, str | None]]:
        """All pools."""
        return [_as_tuple(pool) for pool in pools.get_pools()]

    def delete_pool(self, name: str) -> tuple[str, int, str | None]:
        """Delete a pool. Raises as `pools.delete_pool`."""
        return _as_tuple(pools.delete_pool(name))


def _as_tuple(pool: Pool) -> tuple[str, int, str | None]:
    return str(pool.pool), pool.slots or 0, pool.description


LocalClient = Client


def get_current_api_client() -> Client:
    """The client."""
    return Client()
