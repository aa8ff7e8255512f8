"""Every name that public DAG files import from Airflow, and every argument that they give to its classes, works.

`names_of_dag_files.tsv` lists them, with the number of files. It was taken from 885 public DAG files of 43 repositories.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tradewind.airflow  # noqa: F401  Airflow's names
from tradewind import operators, sensors
from tradewind.airflow import names
from tradewind.operators.python import PythonOperator
from tradewind.sdk.dag import DAG
from tradewind.sdk.default_args import accepted_names
from tradewind.sdk.open_dags import collecting
from tradewind.sdk.operator import BaseOperator

FILE = Path(__file__).with_name("names_of_dag_files.tsv")
OF_PLUGINS = frozenset(
    [
        "CreateConnectionsFromVariable",
        "CreateRedshiftTablesOperator",
        "DataQualityOperator",
        "DummySensorOperator",
        "EmailListChangedSensor",
        "EmailValidationOperator",
        "FacebookAdsInsightsToS3Operator",
        "GithubToS3Operator",
        "GoogleAnalyticsReportingToS3Operator",
        "HubspotToS3Operator",
        "ImapToS3Operator",
        "LoadDimensionOperator",
        "LoadFactOperator",
        "MarketoToS3Operator",
        "MongoToS3Operator",
        "RateLimitOperator",
        "SSHHook",
        "SingerOperator",
        "StageToRedshiftOperator",
        "salesforce_plugin",
    ]
)
"""Names that plugins of the authors offer in `airflow.operators` and `airflow.hooks`."""
OF_AUTHORS = frozenset(("conn", "dag_id", "end_date", "start_date", "task_id"))
"""Arguments that the authors pass to their functions themselves (`op_kwargs`)."""
LIBRARIES = ("provider package", "apache-airflow-providers", "pip install")
"""What the sentence about a missing package contains."""


def rows(kind: str) -> Iterator[tuple[str, str]]:
    for line in FILE.read_text(encoding="utf-8").splitlines():
        cells = line.split("\t")
        if cells[0] == kind:
            yield cells[1], cells[2]


def imports() -> list[tuple[str, str]]:
    return sorted(set(rows("import")))


def test_the_file_is_complete() -> None:
    assert len(imports()) > 500
    assert len(list(rows("kwarg"))) > 500


def missing_package(path: str, *attributes: str) -> str:
    """The sentence about a package that is not installed here and to which this module leads; empty: the attributes are there."""
    try:
        found = importlib.import_module(path)
        for name in filter(None, attributes):
            found = getattr(found, name)
    except ImportError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module, name in imports()
        if not module.startswith("airflow.providers") and OF_PLUGINS.isdisjoint((name, module.rpartition(".")[2]))
    ],
)
def test_an_import_of_airflow_itself_works(module: str, name: str) -> None:
    sentence = missing_package(module, name)
    assert not sentence or any(words in sentence for words in LIBRARIES), sentence


@pytest.mark.parametrize("module", sorted({module for module, _ in imports() if module.startswith("airflow.providers")}))
def test_a_module_of_a_provider_package_is_there_or_its_package_is_named(module: str) -> None:
    sentence = missing_package(module)
    assert not sentence or names.provider_package(module).removeprefix("apache-airflow-providers-") in sentence, sentence


@pytest.mark.parametrize(("owner", "name"), sorted(set(rows("attribute"))))
def test_an_attribute_of_an_imported_name_works(owner: str, name: str) -> None:
    module, _, attribute = owner.rpartition(".")
    sentence = missing_package(module or owner, attribute if module else "", *name.split("."))
    assert not sentence or any(words in sentence for words in LIBRARIES), sentence


def test_the_import_of_a_module_does_not_replace_the_function_of_this_name() -> None:
    for path in ("airflow.decorators.task_group", "airflow.sdk.task", "airflow.sdk.dag"):
        importlib.import_module(path)
        package, _, name = path.rpartition(".")
        assert not inspect.ismodule(getattr(importlib.import_module(package), name))


def is_operator(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseOperator)


@functools.cache
def own_classes() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for package in (operators, sensors):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found.update(inspect.getmembers(importlib.import_module(module.name), is_operator))
    return found


@pytest.mark.parametrize(
    ("callee", "argument"), [one for one in sorted(set(rows("kwarg"))) if one[0] in own_classes() and one[1] != "**"]
)
def test_an_argument_of_an_operator_is_accepted(callee: str, argument: str) -> None:
    if argument in accepted_names(own_classes()[callee]):
        return
    with collecting(1), warnings.catch_warnings(record=True) as warned:  # an older argument
        warnings.simplefilter("always")
        with contextlib.suppress(TypeError):  # another argument is missing; UnknownArgument is one, and is a warning here
            own_classes()[callee](task_id="t", **{argument: None})
    assert not [str(one.message) for one in warned if "takes no argument" in str(one.message)]


@pytest.mark.parametrize("argument", sorted({name for callee, name in rows("kwarg") if callee in ("DAG", "dag", "@dag")}))
def test_an_argument_of_a_dag_is_accepted(argument: str) -> None:
    values: dict[str, Any] = {
        "dag_id": "other",
        "tags": ["a"],
        "default_args": {},
        "params": {},
        "start_date": None,
        "user_defined_macros": {},
        "max_active_runs": 1,
    }
    with collecting(1):
        given: dict[str, Any] = {"dag_id": "d", argument: values.get(argument)}
        DAG(**given)


@pytest.mark.parametrize("key", sorted({name for _, name in rows("default_args key")}))
def test_a_key_of_default_args_is_accepted(key: str) -> None:
    with collecting(1), DAG("d", default_args={key: None}):
        BaseOperator(task_id="t")


def test_every_key_of_the_context_exists() -> None:
    wanted = {name for _, name in rows("context key")} - OF_AUTHORS
    seen: set[str] = set()

    def look(**context: Any) -> None:
        seen.update(name for name in wanted if name in context or name in dict(context))

    with (
        collecting(2),
        DAG("d", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule="@daily", default_args={"provide_context": True}) as dag,
    ):
        PythonOperator(task_id="look", python_callable=look)
    dag.test(datetime(2026, 1, 2, tzinfo=UTC))
    assert wanted - seen == set()
