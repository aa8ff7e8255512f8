"""Policies of a deployment for every DAG and task: the functions of a module `airflow_local_settings`.

    def task_policy(task):           # `policy` in Airflow 1
        if task.task_type == "BashOperator" and not task.execution_timeout:
            task.execution_timeout = timedelta(hours=1)

    def dag_policy(dag):
        if not dag.tags:
            raise AirflowClusterPolicyViolation(f"{dag.dag_id} has no tags")

The module lies in `$TRADEWIND_HOME/config` or `$AIRFLOW_HOME/config`, in the plugins folder, or elsewhere on Python's path. It is
user code: it runs where DAG files are read, after each file.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

MODULE = "airflow_local_settings"


@functools.cache
def _functions() -> tuple[tuple[Callable[[Any], None], ...], tuple[Callable[[Any], None], ...]]:
    """The policies for tasks and those for DAGs.

    Raises:
        BaseException: whatever the module raises when it is imported.
    """
    homes = (os.environ.get("TRADEWIND_HOME") or os.path.expanduser("~/.tradewind"), os.environ.get("AIRFLOW_HOME"))
    for folder in (os.path.join(home, "config") for home in homes if home):
        if folder not in sys.path and os.path.isfile(os.path.join(folder, f"{MODULE}.py")):
            sys.path.append(folder)
    if importlib.util.find_spec(MODULE) is None:
        return (), ()
    module = importlib.import_module(MODULE)
    of_tasks = tuple(found for name in ("policy", "task_policy") if callable(found := getattr(module, name, None)))
    of_dags = tuple(found for name in ("dag_policy",) if callable(found := getattr(module, name, None)))
    return of_tasks, of_dags


def apply_policies(dags: list[DAG]) -> list[DAG]:
    """Let the policies look at DAGs that a file made, and change them.

    Returns:
        The DAGs without those for which a policy raised `AirflowClusterPolicySkipDag`.

    Raises:
        Exception: what a policy raises, such as `AirflowClusterPolicyViolation`.
    """
    of_tasks, of_dags = _functions()
    if not of_tasks and not of_dags:
        return dags
    kept = []
    for dag in dags:
        try:
            for dag_policy in of_dags:
                dag_policy(dag)
            for task in list(dag.task_dict.values()):
                for task_policy in of_tasks:
                    task_policy(task)
        except Exception as error:
            if type(error).__name__ == "AirflowClusterPolicySkipDag":
                continue
            raise
        kept.append(dag)
    return kept
