"""Warnings about a DAG that can be used: arguments that are accepted but have no effect, or not the full effect of Airflow.

There is one warning for each such argument, however many tasks have it. The warnings are part of the definition; the CLI, the API
and the web interface show them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from tradewind.model.executor_names import KUBERNETES, class_name, entries
from tradewind.model.phrases import Phrase, english, phrase
from tradewind.sdk import access_control
from tradewind.sdk.default_args import IGNORED
from tradewind.sdk.pod_override import pod_override

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.open_dags import AuthorWarning
    from tradewind.sdk.operator import BaseOperator


_OF_TASKS: tuple[tuple[str, Callable[[BaseOperator], bool]], ...] = (
    ("outlets", lambda task: any(not hasattr(one, "condition") for one in task.outlets)),
    ("weight_rule", lambda task: hasattr(task.weight_rule, "get_weight")),
    ("resources", lambda task: bool(task.resources)),
)
"""(argument, condition on the task)."""


def all_of(dag: DAG, executors: str, catchup: bool, *, never: bool, older: bool) -> tuple[str, ...]:
    """All warnings of a DAG; for the arguments see the functions below."""
    return (
        *of_dag(dag),
        *of_executors(dag, executors),
        *of_executor_configs(dag, executors),
        *of_schedule(dag, catchup, never=never, older=older),
    )


SHOWN_MAX = 20
"""Maximum number of warnings of the author's code in one definition."""
_LENGTH_MAX = 500
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def of_author(found: Iterable[AuthorWarning], dag: DAG) -> tuple[str, ...]:
    """The warnings about the author's code that belong to a DAG, or to no DAG of the file: at most `SHOWN_MAX` and one more.

    Two readings of the same file give the same texts, because a definition with other texts is a new version of the DAG: they
    are sorted, each is there once, and memory addresses are removed.
    """
    texts = sorted({_ADDRESS.sub("", one.message)[:_LENGTH_MAX] for one in found if one.dag is None or one.dag is dag})
    left = len(texts) - SHOWN_MAX
    return (*texts[:SHOWN_MAX], *([english(phrase("warnings_left_out", count=str(left)))] if left > 0 else ()))


def of_dag(dag: DAG) -> tuple[str, ...]:
    """The warnings of a DAG."""
    found = [phrase("warning_access_control", name=name) for name in access_control.unknown(dag.access_control)]
    for name, applies in _OF_TASKS:
        ids = [task.task_id for task in dag.task_dict.values() if applies(task)]
        if ids:
            found.append(_of_tasks(name, ids))
    return (*map(english, found), *_of_ignored_arguments(dag))


def _of_tasks(name: str, ids: list[str]) -> Phrase:
    """The warning about one task, or the one about several tasks, which names the first."""
    if len(ids) > 1:
        return phrase(f"tasks_warning_{name}", task=ids[0], count=str(len(ids) - 1))
    return phrase(f"task_warning_{name}", task=ids[0])


def _of_ignored_arguments(dag: DAG) -> list[str]:
    """Warnings about arguments that operators do not take, of files that older releases of Airflow accept."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for task in dag.task_dict.values():
        for name in vars(task).get(IGNORED, ()):
            tasks.setdefault((name, task.operator_name), []).append(task.task_id)
    found = []
    for (name, operator), (task_id, *more) in tasks.items():
        if more:
            found.append(phrase("warning_ignored_arguments", name=name, task=task_id, count=str(len(more)), operator=operator))
        else:
            found.append(phrase("warning_ignored_argument", name=name, task=task_id, operator=operator))
    return [english(one) for one in found]


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
    chosen, found = present[0][0], []
    for name, (first, *more) in tasks.items():
        if more:
            count = str(len(more))
            found.append(phrase("warning_executor_of_tasks", task=first, count=count, name=name, names=names, chosen=chosen))
        else:
            found.append(phrase("warning_executor", task=first, name=name, names=names, chosen=chosen))
    return [english(one) for one in found]


def of_executor_configs(dag: DAG, setting: str) -> list[str]:
    """The warning about an `executor_config` that changes nothing: the executor of its task is not the KubernetesExecutor, or the
    value describes no pod.

    Args:
        setting: the value of `core.executor`.
    """
    present = entries(setting)
    names = {name: name for name, _ in present} | {alias: name for name, alias in present if alias}

    def executor_of(task: BaseOperator) -> str:
        return names.get(class_name(task.executor), present[0][0]) if task.executor else present[0][0]

    ids: dict[str, list[str]] = {}
    for task in dag.task_dict.values():
        if not task.executor_config:
            continue
        if executor_of(task) != KUBERNETES:
            ids.setdefault("executor_config", []).append(task.task_id)
        elif not pod_override(task.executor_config):
            ids.setdefault("pod_override", []).append(task.task_id)
    return [english(_of_tasks(name, found)) for name, found in ids.items()]


def of_schedule(dag: DAG, catchup: bool, *, never: bool, older: bool) -> list[str]:
    """The warnings about the schedule of a DAG.

    Args:
        catchup: whether missed runs are created.
        never: catchup is on, and there is no start date.
        older: the DAG is read with the rules of Airflow 1 or 2.
    """
    return [*([english(phrase("warning_no_start"))] if never else []), *([of_generation(dag, catchup)] if older else [])]


def of_generation(dag: DAG, catchup: bool) -> str:
    """The warning that the DAG is read with the rules of Airflow 1 or 2.

    Args:
        catchup: whether missed runs are created; the warning mentions it if the file does not set catchup.
    """
    generation = str(dag.generation)
    if catchup and dag.given("catchup") is None:
        return english(phrase("warning_generation_catchup", generation=generation))
    return english(phrase("warning_generation", generation=generation))


def callback_name(callback: Any) -> str:
    """The name of a callback for people: the name of the function, or the class name of an object."""
    while isinstance(callback, partial):
        callback = callback.func
    return str(getattr(callback, "__name__", None) or type(callback).__name__)
