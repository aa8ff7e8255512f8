"""Warnings about a DAG that can be used: arguments that are accepted but have no effect, or not the full effect of Airflow.

There is one warning for each such argument, however many tasks have it. The warnings are part of the definition; the CLI, the API
and the web interface show them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tradewind.model.executor_names import entries
from tradewind.sdk import access_control
from tradewind.sdk.default_args import IGNORED

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator


_OF_TASKS: tuple[tuple[str, Callable[[BaseOperator], bool], str], ...] = (
    (
        "outlets",
        lambda task: any(not hasattr(one, "condition") for one in task.outlets),
        "an outlet that is not an Asset or AssetAlias is only recorded and shown; it emits no asset events",
    ),
    (
        "weight_rule",
        lambda task: hasattr(task.weight_rule, "get_weight"),
        "the weight is computed when the file is imported, for the first try; later tries have the same weight",
    ),
    (
        "executor_config",
        lambda task: bool(task.executor_config),
        "it configures executors of other machines; it has no effect on tasks that run on this machine",
    ),
    (
        "resources",
        lambda task: bool(task.resources),
        "they are not reserved; to limit tasks that need much memory or CPU, use a pool",
    ),
)
"""(argument, condition on the task, effect)."""


def all_of(dag: DAG, executors: str, catchup: bool, *, never: bool, older: bool) -> tuple[str, ...]:
    """All warnings of a DAG; for the arguments see the functions below."""
    return (*of_dag(dag), *of_executors(dag, executors), *of_schedule(dag, catchup, never=never, older=older))


def of_dag(dag: DAG) -> tuple[str, ...]:
    """The warnings of a DAG."""
    found = [f"access_control: {name} is not a permission of a DAG" for name in access_control.unknown(dag.access_control)]
    for name, applies, effect in _OF_TASKS:
        ids = [task.task_id for task in dag.task_dict.values() if applies(task)]
        if ids:
            more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
            found.append(f"{name} of task {ids[0]}{more}: {effect}")
    return (*found, *_of_ignored_arguments(dag))


def _of_ignored_arguments(dag: DAG) -> list[str]:
    """Warnings about arguments that operators do not take, of files that older releases of Airflow accept."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for task in dag.task_dict.values():
        for name in vars(task).get(IGNORED, ()):
            tasks.setdefault((name, task.operator_name), []).append(task.task_id)
    found = []
    for (name, operator), ids in tasks.items():
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        found.append(f"{name} of task {ids[0]}{more}: {operator} does not take this argument, so it has no effect")
    return found


def of_executors(dag: DAG, setting: str) -> list[str]:
    """The warnings about executors that tasks name and the deployment does not have: one for each name.

    Args:
        setting: the value of `core.executor`.
    """
    present = entries(setting)
    known = {name for entry in present for name in entry if name}
    tasks: dict[str, list[str]] = {}
    for task in dag.task_dict.values():
        if task.executor and task.executor not in known:
            tasks.setdefault(task.executor, []).append(task.task_id)
    names = ", ".join(name for name, _ in present)
    return [
        f"executor of task {ids[0]}{f' and {len(ids) - 1} more' if len(ids) > 1 else ''}: {name} is not an executor of this "
        f"deployment (core.executor: {names}); {'the task runs' if len(ids) == 1 else 'they run'} on {present[0][0]}"
        for name, ids in tasks.items()
    ]


def of_schedule(dag: DAG, catchup: bool, *, never: bool, older: bool) -> list[str]:
    """The warnings about the schedule of a DAG.

    Args:
        catchup: whether missed runs are created.
        never: catchup is on, and there is no start date.
        older: the DAG is read with the rules of Airflow 1 or 2.
    """
    without_start = (
        "start_date: neither the DAG nor a task has one, so with catchup=True no run is scheduled, as in Airflow; add a "
        "start_date, or set catchup=False"
    )
    return [*([without_start] if never else []), *([of_generation(dag, catchup)] if older else [])]


def of_generation(dag: DAG, catchup: bool) -> str:
    """The warning that the DAG is read with the rules of Airflow 1 or 2.

    Args:
        catchup: whether missed runs are created; the warning mentions it if the file does not set catchup.
    """
    missed = ", missed runs are created (catchup)" if catchup and dag.given("catchup") is None else ""
    return (
        f"schedule: the file is one for Airflow {dag.generation}, so runs cover the interval before they start{missed} and "
        "max_active_tasks counts over all runs, as in Airflow 2; to change this, set core.schedule_meaning_of_folders"
    )


def callback_name(callback: Any) -> str:
    """The name of a callback for people: the name of the function, or the class name of an object."""
    while isinstance(callback, partial):
        callback = callback.func
    return str(getattr(callback, "__name__", None) or type(callback).__name__)
