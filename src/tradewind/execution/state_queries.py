"""States and numbers of runs and task instances, also of other DAGs: `ti.get_ti_count(…)`, `ti.get_task_states(…)` of Airflow 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tradewind.execution.instance_names import micros_of
from tradewind.sdk.variables import request_value
from tradewind.wire.messages import FindRuns, GetTaskStates, ListRows, Value

Row = Mapping[str, Any]


def count_task_instances(
    dag_id: str,
    map_index: int | None = None,
    task_ids: Sequence[str] | None = None,
    task_group_id: str | None = None,
    logical_dates: Sequence[datetime] | None = None,
    run_ids: Sequence[str] | None = None,
    states: Sequence[Any] | None = None,
) -> int:
    """Number of task instances of a DAG. Each argument that is given limits what is counted.

    Args:
        task_ids, task_group_id: the tasks; a group includes the groups in it.
        logical_dates, run_ids: the runs. Without both: the latest 1,000 runs.
        states: names of states; None in it stands for task instances without a state.
    """
    wanted = _states(states)
    rows = _instances(dag_id, map_index, task_ids, task_group_id, logical_dates, run_ids)
    return sum(wanted is None or row["state"] in wanted for row in rows)


def task_states_by_run(
    dag_id: str,
    map_index: int | None = None,
    task_ids: Sequence[str] | None = None,
    task_group_id: str | None = None,
    logical_dates: Sequence[datetime] | None = None,
    run_ids: Sequence[str] | None = None,
) -> dict[str, dict[str, str | None]]:
    """States of task instances: run id → task id → state. Instances of a mapped task are `task_0`, `task_1`, …

    Arguments as for `count_task_instances`.
    """
    found: dict[str, dict[str, str | None]] = {}
    for row in _instances(dag_id, map_index, task_ids, task_group_id, logical_dates, run_ids):
        name = row["task_id"] if row["map_index"] < 0 else f"{row['task_id']}_{row['map_index']}"
        found.setdefault(row["run_id"], {})[name] = row["state"]
    return found


def count_runs(
    dag_id: str,
    logical_dates: Sequence[datetime] | None = None,
    run_ids: Sequence[str] | None = None,
    states: Sequence[Any] | None = None,
) -> int:
    """Number of runs of a DAG on some logical dates or with some ids (without both: of its latest 1,000 runs), in some states."""
    wanted = _states(states)
    return sum(wanted is None or run["state"] in wanted for run in _runs(dag_id, logical_dates, run_ids))


def run_state(dag_id: str, run_id: str) -> str | None:
    """The current state of a run; None if there is no such run."""
    answer = request_value(
        GetTaskStates(0, dag_id, run_ids=(run_id,)), f"cannot read the state of run {run_id!r} of DAG {dag_id!r}"
    )
    return next((state for _, _, state in answer.value or ()), None) if answer.found else None


def states_on_dates(dag_id: str, dates: Sequence[int], task_ids: tuple[str, ...], group: str | None) -> Value:
    """Request the states of tasks of a DAG on logical dates; without `task_ids` the states of runs. See `GetTaskStates`."""
    request = GetTaskStates(op=0, dag_id=dag_id, logical_dates=tuple(dates), task_ids=task_ids, group=group)
    return request_value(request, f"cannot read the states of DAG {dag_id!r}")


def _states(given: Sequence[Any] | None) -> set[str | None] | None:
    return None if given is None else {None if state is None else str(getattr(state, "value", state)) for state in given}


def _runs(dag_id: str, dates: Sequence[datetime] | None, run_ids: Sequence[str] | None) -> list[Row]:
    """The runs with these ids and on these dates; without both the latest runs."""
    if not dates and not run_ids:
        questions = [FindRuns(0, dag_id)]
    else:
        questions = [FindRuns(0, dag_id, run_id=run_id) for run_id in run_ids or ()]
        for at in map(micros_of, dates or ()):
            questions.append(FindRuns(0, dag_id, start=at, end=at))
    found: dict[str, Row] = {}
    for question in questions:
        answer = request_value(question, f"cannot read the runs of DAG {dag_id!r}")
        found.update((run["run_id"], run) for run in answer.value or () if answer.found)
    return list(found.values())


def _instances(
    dag_id: str,
    map_index: int | None,
    task_ids: Sequence[str] | None,
    group: str | None,
    dates: Sequence[datetime] | None,
    run_ids: Sequence[str] | None,
) -> list[Row]:
    found = list(run_ids) if run_ids and not dates else [run["run_id"] for run in _runs(dag_id, dates, run_ids)]
    question = ListRows(0, "task_instance", dag_id=dag_id, run_ids=tuple(found), task_ids=tuple(task_ids or ()), group=group)
    rows = request_value(question, f"cannot read the task instances of DAG {dag_id!r}").value if found else ()
    return [row for row in rows or () if map_index is None or row["map_index"] == map_index]
