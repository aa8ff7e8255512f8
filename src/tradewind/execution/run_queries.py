"""How a task finds runs of a DAG: `DagRun.find` and `get_last_dagrun`, with the arguments of Airflow 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tradewind.execution.task_instance import DagRun, micros_of, run_of
from tradewind.model.states import RunType
from tradewind.sdk.variables import request_value
from tradewind.wire.messages import FindRuns, ListRows

_OTHER_THAN_BACKFILL = tuple(one.value for one in RunType if one is not RunType.BACKFILL)
_BY_SCHEDULE = (RunType.SCHEDULED.value, RunType.BACKFILL.value, RunType.ASSET_TRIGGERED.value)
_EXTERNAL = tuple(one.value for one in RunType if one.value not in _BY_SCHEDULE)


def find_runs(
    dag_id: str | Iterable[str] | None = None,
    run_id: str | Iterable[str] | None = None,
    execution_date: datetime | Iterable[datetime] | None = None,
    state: Any = None,
    external_trigger: bool | None = None,
    no_backfills: bool = False,
    run_type: Any = None,
    session: Any = None,
    execution_start_date: datetime | None = None,
    execution_end_date: datetime | None = None,
    *,
    logical_date: datetime | Iterable[datetime] | None = None,
    logical_start_date: datetime | None = None,
    logical_end_date: datetime | None = None,
) -> list[DagRun]:
    """Return the runs that pass all filters, the oldest first. Of each DAG at most the latest 1,000 runs are searched.

    Args:
        dag_id: one DAG or several. None: all DAGs.
        external_trigger: True: only runs that a person, the API or a task has triggered. False: only the other runs.
        session: ignored.

    Raises:
        AirflowException: a state does not exist.
    """
    del session
    ids = [dag_id] if isinstance(dag_id, str) else _all_dags() if dag_id is None else list(dag_id)
    dates = _moments(execution_date if logical_date is None else logical_date)
    start, end = logical_start_date or execution_start_date, logical_end_date or execution_end_date
    kinds = _run_types(run_type, external_trigger, no_backfills)
    wanted = None if state is None else str(getattr(state, "value", state))
    found: list[DagRun] = []
    for one in ids:
        for name in [run_id] if run_id is None or isinstance(run_id, str) else run_id:
            request = FindRuns(
                op=0,
                dag_id=one,
                run_id=name,
                state=wanted,
                run_types=kinds,
                start=min(dates) if dates else None if start is None else micros_of(start),
                end=max(dates) if dates else None if end is None else micros_of(end),
            )
            answer = request_value(request, f"cannot read the runs of DAG {one!r}")
            found += [run_of(one, row, None) for row in answer.value or ()] if answer.found else []
    return [
        run
        for run in found
        if (not dates or run._dates.get("logical_date") in dates)
        and (wanted is None or run.state == wanted)
        and (not kinds or run.run_type.value in kinds)
    ]


def get_last_dagrun(dag_id: str, session: Any = None, include_externally_triggered: bool = False) -> DagRun | None:
    """The latest run of a DAG, without those that a person, the API or a task has triggered; None if there is none."""
    del session
    kinds = () if include_externally_triggered else _BY_SCHEDULE
    answer = request_value(FindRuns(0, dag_id, run_types=kinds, at_most=1), f"cannot read the last run of DAG {dag_id!r}")
    return run_of(dag_id, answer.value[-1], None) if answer.found and answer.value else None


def is_paused(dag_id: str) -> bool:
    """Whether a DAG is paused. False if there is no such DAG."""
    answer = request_value(ListRows(0, "dag"), f"cannot read whether DAG {dag_id!r} is paused")
    return any(row["is_paused"] for row in answer.value or () if row["dag_id"] == dag_id)


def _all_dags() -> list[str]:
    answer = request_value(ListRows(0, "dag"), "cannot read the DAGs")
    return [row["dag_id"] for row in answer.value or ()]


def _moments(dates: datetime | Iterable[datetime] | None) -> set[int]:
    if dates is None:
        return set()
    return {micros_of(date) for date in ([dates] if isinstance(dates, datetime) else dates)}


def _run_types(run_type: Any, external_trigger: bool | None, no_backfills: bool) -> tuple[str, ...]:
    if run_type is not None:
        return (str(getattr(run_type, "value", run_type)),)
    kinds = None if external_trigger is None else _EXTERNAL if external_trigger else _BY_SCHEDULE
    if no_backfills:
        return tuple(kind for kind in kinds or _OTHER_THAN_BACKFILL if kind != RunType.BACKFILL.value)
    return kinds or ()
