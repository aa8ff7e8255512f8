"""Policies of a deployment for every DAG and task: the functions of a module `airflow_local_settings`.

    def task_policy(task):           # `policy` in Airflow 1
        if task.task_type == "BashOperator" and not task.execution_timeout:
            task.execution_timeout = timedelta(hours=1)

    def dag_policy(dag):
        if not dag.tags:
            raise AirflowClusterPolicyViolation(f"{dag.dag_id} has no tags")

    def task_instance_mutation_hook(task_instance):
        if task_instance.task_id.startswith("train_"):
            task_instance.queue = "gpu"

    def get_airflow_context_vars(context):
        return {"TEAM": context["dag"].owner}

The module is in `$TRADEWIND_HOME/config` or `$AIRFLOW_HOME/config`, in the plugins folder, or elsewhere on Python's path.
Installed packages offer such modules with the entry point group `airflow.policy`. Policies are user code: they run where DAG files
are read, after each file, and `get_airflow_context_vars` in the process of the task.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.model.states import WeightRule
from tradewind.sdk.entry_points import packages_offering
from tradewind.sdk.import_paths import add_config_folders

if TYPE_CHECKING:
    from types import ModuleType

    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator

MODULE = "airflow_local_settings"
ENTRY_POINTS = "airflow.policy"
SKIP = "AirflowClusterPolicySkipDag"

_Policy = Callable[[Any], Any]


class Policies(NamedTuple):
    """The functions of all modules."""

    of_tasks: tuple[_Policy, ...] = ()
    of_dags: tuple[_Policy, ...] = ()
    of_instances: tuple[_Policy, ...] = ()
    context_variables: tuple[_Policy, ...] = ()
    files: tuple[str, ...] = ()
    """The files of the modules."""


@functools.cache
def policies_of_process() -> Policies:
    """The policies. The first call imports the modules.

    Raises:
        BaseException: an exception of a module during its import, with a note that names the module.
    """
    modules = list(_modules())
    if not modules:
        return Policies()

    def functions(*names: str) -> tuple[_Policy, ...]:
        found = (getattr(module, name, None) for module in modules for name in names)
        return tuple(function for function in found if callable(function))

    return Policies(
        functions("policy", "task_policy"),
        functions("dag_policy"),
        functions("task_instance_mutation_hook"),
        functions("get_airflow_context_vars"),
        tuple(file for module in modules if (file := getattr(module, "__file__", None))),
    )


def _modules() -> Iterator[ModuleType | Any]:
    add_config_folders()
    if importlib.util.find_spec(MODULE) is not None:
        try:
            yield importlib.import_module(MODULE)
        except BaseException as error:
            error.add_note(f"The module {MODULE} of the policies cannot be imported{_line(error)}")
            raise
    if packages_offering(ENTRY_POINTS):
        from tradewind.sdk.policy_hooks import policies_of_packages  # lazy import: needs pluggy, and few packages have policies

        yield from policies_of_packages()


def apply_policies(dags: list[DAG]) -> list[DAG]:
    """Call the policies for the DAGs of a file. Policies may change the DAGs.

    Returns:
        The DAGs without those for which a policy raised `AirflowClusterPolicySkipDag`.

    Raises:
        Exception: what a policy raises, such as `AirflowClusterPolicyViolation`, with a note that names the policy and its line.
    """
    policies = policies_of_process()
    if not (policies.of_tasks or policies.of_dags or policies.of_instances):
        return dags
    kept = []
    for dag in dags:
        try:
            for dag_policy in policies.of_dags:
                _call(dag_policy, dag)
            for task in list(dag.task_dict.values()):
                for task_policy in policies.of_tasks:
                    _call(task_policy, task)
                for hook in policies.of_instances:
                    _change_instances(hook, task)
        except Exception as error:
            if type(error).__name__ == SKIP:
                continue
            raise
        kept.append(dag)
    return kept


def _call(policy: _Policy, value: Any) -> Any:
    try:
        return policy(value)
    except Exception as error:
        name = getattr(policy, "__name__", repr(policy))
        if type(error).__name__ != SKIP:
            error.add_note(f"Raised by the policy {name} for {value!r}{_line(error)}")
        raise


def _line(error: BaseException) -> str:
    """The place of the innermost line of a policy in a traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    found, step = "", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if os.path.basename(file) == f"{MODULE}.py":
            found = f" ({file}, line {step.tb_lineno})"
        step = step.tb_next
    return found


# --- task instances -----------------------------------------------------------------------------------------------------

_CHANGEABLE = ("queue", "pool", "pool_slots", "priority_weight", "executor", "executor_config", "run_as_user", "max_tries")
_PER_RUN = ("dag_run", "run_id", "execution_date", "logical_date", "state", "start_date", "job_id", "hostname", "queued_dttm")


class PlannedInstance:
    """All future instances of a task, as `task_instance_mutation_hook` sees them.

    The scheduler runs no user code, so the hook is called once for each task when its DAG file is read, before any run.
    """

    def __init__(self, task: BaseOperator, try_number: int) -> None:
        self.task = task
        self.dag_id, self.task_id = task.dag_id, task.task_id
        self.map_index = -1
        self.operator = task.task_type
        self.try_number = try_number
        self.max_tries = task.retries
        self.queue, self.pool, self.pool_slots = task.queue, task.pool, task.pool_slots
        self.priority_weight = task.priority_weight
        self.executor, self.executor_config = task.executor, task.executor_config
        self.run_as_user = task.run_as_user

    def __getattr__(self, name: str) -> Any:
        if name in _PER_RUN:
            raise AttributeError(
                f"task_instance_mutation_hook reads task_instance.{name}: here the hook is called when the DAG file is read, "
                "before any run, so it can depend only on the DAG and the task"
            )
        raise AttributeError(f"the task instance that task_instance_mutation_hook gets has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<TaskInstance: {self.dag_id}.{self.task_id}>"


def _change_instances(hook: _Policy, task: BaseOperator) -> None:
    """Call the hook for the instances of a task; the changes become arguments of the task."""
    before, instance, retry = PlannedInstance(task, 0), PlannedInstance(task, 0), PlannedInstance(task, 1)
    _call(hook, instance)
    _call(hook, retry)
    for name in _CHANGEABLE:
        value = getattr(instance, name)
        if getattr(retry, name) != value:
            warnings.warn(
                f"task_instance_mutation_hook gives retries of {instance!r} another {name} ({getattr(retry, name)!r}); they keep "
                f"that of the first try ({value!r}), because the hook is called when the DAG file is read",
                UserWarning,
                stacklevel=2,
            )
        if value == getattr(before, name):
            continue
        if name == "max_tries":
            task.retries = value
        else:
            setattr(task, name, value)
            if name == "priority_weight":  # the weight of an instance is final
                task.weight_rule = WeightRule.ABSOLUTE


# --- variables of the environment ---------------------------------------------------------------------------------------


def context_variables(context: Any) -> dict[str, str]:
    """The environment variables that `get_airflow_context_vars` returns for a task. Lists are joined with commas.

    Raises:
        TypeError: a name is not a string, or a value is not a string, list or date.
        Exception: what the function raises.
    """
    found: dict[str, str] = {}
    for function in policies_of_process().context_variables:
        for name, value in (_call(function, context) or {}).items():
            if not isinstance(name, str):
                raise TypeError(f"get_airflow_context_vars returned the name {name!r}; names must be strings")
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                value = ",".join(value)
            elif isinstance(value, datetime):
                value = value.isoformat()
            if not isinstance(value, str):
                raise TypeError(
                    f"get_airflow_context_vars returned {name}={value!r}; values must be strings, lists of strings or dates"
                )
            found[name] = value
    return found
