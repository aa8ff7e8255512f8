"""The import paths of the talk's plugins."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_modules() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "airflow_plugins"]:
        del sys.modules[name]


@pytest.mark.spec("S399", "S411")
def test_the_plugins_of_the_talk_replace_the_operator_in_an_import() -> None:
    """`from airflow.operators.python_operator import PythonOperator` → `… import CCPythonOperator as PythonOperator`."""
    theirs = importlib.import_module("airflow.operators.python_operator").PythonOperator
    ours = importlib.import_module("airflow_plugins.python_operator").CCPythonOperator
    assert issubclass(ours, theirs)
    task = ours(task_id="t", python_callable=print)
    assert task.task_type == "CCPythonOperator"


@pytest.mark.spec("S411")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("airflow.ti_deps.deps.base_ti_dep", "BaseTIDep"),
        ("airflow.ti_deps.deps.trigger_rule_dep", "TriggerRuleDep"),
        ("airflow.ti_deps.dep_context", "DepContext"),
        ("airflow.executors.base_executor", "BaseExecutor"),
        ("airflow.executors.sequential_executor", "SequentialExecutor"),
        ("airflow.jobs", "BaseJob"),
        ("airflow.operators.python_operator", "PythonOperator"),
        ("airflow.utils.dag_processing", "SimpleDag"),
        ("airflow.utils.dag_processing", "SimpleDagBag"),
        ("airflow.sentry", "Sentry"),
        ("airflow_plugins.cross_dag_dep_python_operatior", "CrossDagDepPythonOperator"),
        ("airflow_plugins.cross_dag_dep_python_operatior", "STATE_WAITING"),
    ],
)
def test_the_import_paths_of_the_documents_exist(module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) is not None


def test_a_package_of_the_users_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "airflow_plugins"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "python_operator.py").write_text("class CCPythonOperator: ours = False\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("airflow_plugins.python_operator").CCPythonOperator.ours is False
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("airflow_plugins.cross_dag_dep_python_operatior")
