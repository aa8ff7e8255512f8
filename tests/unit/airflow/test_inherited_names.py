"""Names that modules of Airflow have only because they import them, and constants: DAG files import both from there."""

from __future__ import annotations

import importlib
from datetime import timedelta

import pytest

import tradewind.airflow  # noqa: F401  Airflow's names
from tests.unit.airflow.test_names import OPTIONAL
from tradewind.airflow import finder, inherited_names

OTHERS = OPTIONAL | {"croniter", "dateutil", "six", "requests", "yaml", "tabulate", "pytz", "sqlalchemy", "google", "boto3"}
"""Third-party packages that some names come from."""


def test_every_inherited_name_leads_to_something() -> None:
    pairs = inherited_names.names()
    assert len(pairs) > 2000
    wrong = []
    for module, name in pairs:
        target = inherited_names.target(module, name) or ""
        try:
            finder.resolve(target)
        except ImportError as error:
            missing = (error.name or "").split(".")[0]
            if missing not in OTHERS and not (error.name or "").startswith("airflow.providers"):
                wrong.append((module, name, target))
        except AttributeError:
            wrong.append((module, name, target))
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "name", "where"),
    [
        ("airflow.models.dag", "DagRun", "airflow.models.DagRun"),
        ("airflow.models.taskinstance", "Context", "airflow.utils.context.Context"),
        ("airflow.operators.bash_operator", "AirflowException", "airflow.exceptions.AirflowException"),
        ("airflow.utils.dates", "timedelta", "datetime.timedelta"),
        ("airflow.decorators.task_group", "TaskGroup", "airflow.utils.task_group.TaskGroup"),
        ("airflow.settings", "conf", "airflow.configuration.conf"),
        ("airflow.models.dataset", "Dataset", "airflow.datasets.Dataset"),
        ("airflow.sdk.definitions.decorators.setup_teardown", "setup_task", "airflow.decorators.setup"),
        (
            "airflow.sdk.definitions.timetables.trigger",
            "CronTriggerTimetable",
            "airflow.timetables.trigger.CronTriggerTimetable",
        ),
        ("airflow.sdk.bases.secrets_backend", "BaseSecretsBackend", "airflow.secrets.BaseSecretsBackend"),
    ],
)
def test_an_inherited_name_is_the_same_object(module: str, name: str, where: str) -> None:
    home, _, original = where.rpartition(".")
    assert getattr(importlib.import_module(module), name) is getattr(importlib.import_module(home), original)


def test_a_name_that_no_release_imports_is_still_an_error() -> None:
    with pytest.raises(ImportError, match="no release of Airflow has it there"):
        exec("from airflow.models.dag import BashOperator")


def test_constants_have_values() -> None:
    from airflow.models.abstractoperator import (
        DEFAULT_RETRIES,
        DEFAULT_RETRY_DELAY,
    )
    from airflow.security.permissions import RESOURCE_VARIABLE

    assert DEFAULT_RETRIES == 0
    assert timedelta(minutes=5) == DEFAULT_RETRY_DELAY
    assert RESOURCE_VARIABLE == "Variables"
    with pytest.raises(ImportError):
        exec("from airflow.security.permissions import RESOURCE_NOTHING")


def test_the_modules_of_macros() -> None:
    from airflow.macros import json, time, uuid

    assert (json.dumps([1]), time.__name__, uuid.__name__) == ("[1]", "time", "uuid")


def test_decorators_under_the_names_of_their_modules() -> None:
    from airflow.decorators import task
    from airflow.decorators.python import python_task
    from airflow.decorators.short_circuit import short_circuit_task

    assert type(python_task) is type(task.python)
    assert short_circuit_task is task.short_circuit or type(short_circuit_task) is type(task.short_circuit)


def test_a_changed_copy_of_the_logging_settings() -> None:
    import copy

    from airflow.config_templates.airflow_local_settings import DEFAULT_LOGGING_CONFIG

    changed = copy.deepcopy(DEFAULT_LOGGING_CONFIG)
    changed["handlers"]["task"]["formatter"] = "mine"
    assert DEFAULT_LOGGING_CONFIG["handlers"]["task"]["formatter"] == "airflow"
