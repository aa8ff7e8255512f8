"""The classes that Airflow has for the operators of decorators, by their shown names: `@task` is `_PythonDecoratedOperator`."""

from __future__ import annotations

_DECORATORS = "airflow.providers.standard.decorators"

_CLASSES = {
    "@asset": ("airflow.sdk.definitions.asset.decorators", "_AssetMainOperator"),
    "@task": ("python", "_PythonDecoratedOperator"),
    "@task.bash": ("bash", "_BashDecoratedOperator"),
    "@task.branch": ("branch_python", "_BranchPythonDecoratedOperator"),
    "@task.branch_external_python": ("branch_external_python", "_BranchExternalPythonDecoratedOperator"),
    "@task.branch_virtualenv": ("branch_virtualenv", "_BranchPythonVirtualenvDecoratedOperator"),
    "@task.external_python": ("external_python", "_PythonExternalDecoratedOperator"),
    "@task.sensor": ("sensor", "DecoratedSensorOperator"),
    "@task.short_circuit": ("short_circuit", "_ShortCircuitDecoratedOperator"),
    "@task.virtualenv": ("python_virtualenv", "_PythonVirtualenvDecoratedOperator"),
}


_STANDARD, _SQL = "airflow.providers.standard", "airflow.providers.common.sql"

AIRFLOW_MODULES = {
    **{
        f"tradewind.operators.{name}": f"{_STANDARD}.operators.{name}"
        for name in [
            "bash",
            "branch",
            "datetime",
            "empty",
            "hitl",
            "latest_only",
            "python",
            "smooth",
            "trigger_dagrun",
            "weekday",
        ]
    },
    **{
        f"tradewind.sensors.{name}": f"{_STANDARD}.sensors.{name}"
        for name in ["bash", "date_time", "external_task", "filesystem", "python", "time", "time_delta", "weekday"]
    },
    **{
        f"tradewind.operators.{name}": f"{_STANDARD}.operators.python"
        for name in ["external_python", "separate_interpreter", "virtualenv"]
    },
    "tradewind.operators.email": "airflow.providers.smtp.operators.smtp",
    "tradewind.operators.http": "airflow.providers.http.operators.http",
    "tradewind.operators.sql": f"{_SQL}.operators.sql",
    "tradewind.operators.sql_checks": f"{_SQL}.operators.sql",
    "tradewind.sensors.http": "airflow.providers.http.sensors.http",
    "tradewind.sensors.sql": f"{_SQL}.sensors.sql",
    "tradewind.sensors.base": "airflow.sdk.bases.sensor",
    "tradewind.sdk.operator": "airflow.sdk.bases.operator",
}
"""Our module of operators → Airflow's module of the same classes."""


def class_name(shown: str) -> str:
    """The name of the class of an operator, as Airflow has it."""
    return _CLASSES[shown][1] if shown in _CLASSES else shown


def class_of(shown: str, module: str) -> tuple[str, str]:
    """The module and the name of the class of an operator, as Airflow 3 has it.

    Args:
        module: the module of the class. For our own classes and for decorators, Airflow's module is returned instead.
    """
    if shown not in _CLASSES:
        return AIRFLOW_MODULES.get(module, module), shown
    part, name = _CLASSES[shown]
    return part if "." in part else f"{_DECORATORS}.{part}", name
