"""Attributes of a DAG whose default is a setting, as tests of DAG files and policies read them."""

from __future__ import annotations

import pytest

from tradewind.model.definition import DefinitionDefaults
from tradewind.sdk import open_dags
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition


def test_attributes_without_a_value_have_the_values_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = DAG("d", schedule=None)
    assert (dag.catchup, dag.max_active_runs, dag.max_active_tasks) == (False, 16, 16)
    monkeypatch.setenv("AIRFLOW__CORE__MAX_ACTIVE_RUNS_PER_DAG", "3")
    monkeypatch.setenv("AIRFLOW__SCHEDULER__CATCHUP_BY_DEFAULT", "True")
    assert (dag.catchup, dag.max_active_runs) == (True, 3)


def test_what_the_author_or_a_policy_gives_counts() -> None:
    dag = DAG("d", schedule=None, catchup=True, max_active_runs=2, max_active_tasks=5)
    assert (dag.catchup, dag.max_active_runs, dag.max_active_tasks, dag.concurrency) == (True, 2, 5, 5)
    dag.max_active_runs = 4
    dag.catchup = False
    found = to_definition(dag, "d.py", DefinitionDefaults(max_active_runs=9, catchup=True))
    assert (found.max_active_runs, found.catchup) == (4, False)


def test_the_defaults_of_the_scheduler_apply_to_what_is_not_given() -> None:
    """Reading the attributes gives nothing: the definition still takes the defaults that the scheduler sent."""
    dag = DAG("d", schedule=None)
    assert dag.max_active_runs == 16
    found = to_definition(dag, "d.py", DefinitionDefaults(max_active_runs=9, max_active_tasks=8, catchup=True))
    assert (found.max_active_runs, found.max_active_tasks, found.catchup) == (9, 8, True)


def test_a_file_for_airflow_2_catches_up_by_default() -> None:
    with open_dags.collecting(2):
        assert DAG("d", schedule=None).catchup is True
