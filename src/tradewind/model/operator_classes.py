"""The classes that Airflow has for the operators of decorators, by their shown names: `@task` is `_PythonDecoratedOperator`."""

from __future__ import annotations

_DECORATORS = "airflow.providers.standard.decorators"

_CLASSES = {
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


def class_name(shown: str) -> str:
    """The name of the class of an operator, as Airflow has it."""
    return _CLASSES[shown][1] if shown in _CLASSES else shown


def class_of(shown: str, module: str) -> tuple[str, str]:
    """The module and the name of the class of an operator.

    Args:
        module: the module of our class; for a decorator, Airflow's module is returned instead.
    """
    if shown not in _CLASSES:
        return module, shown
    part, name = _CLASSES[shown]
    return f"{_DECORATORS}.{part}", name
