"""`import tradewind` imports little, and has every public name."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import tradewind
from tradewind import sdk
from tradewind.sdk.moved_names import MOVED

HEAVY = {"jinja2", "pendulum", "fastapi", "rich", "cryptography", "dateutil", "sqlite3"}


def modules_after(code: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout
    return set(printed.split())


def test_import_tradewind_loads_no_other_module_of_tradewind() -> None:
    loaded = modules_after("import tradewind")
    assert {name for name in loaded if name.startswith("tradewind")} == {"tradewind", "tradewind.lazy_names"}
    assert not loaded & (HEAVY | {"msgspec", "logging"})


def test_a_dag_file_loads_no_large_library() -> None:
    loaded = modules_after(
        "from tradewind import DAG, BaseOperator, TaskGroup, Param, Label, chain\n"
        "from tradewind.sdk.definition import DefinitionDefaults, to_definition\n"
        "with DAG('d', schedule='@daily') as dag: BaseOperator('t')\n"
        "to_definition(dag, 'f', DefinitionDefaults())"
    )
    assert not loaded & HEAVY


@pytest.mark.parametrize("name", tradewind.__all__)
def test_every_name_exists(name: str) -> None:
    assert getattr(tradewind, name) is not None
    assert name in dir(tradewind)


@pytest.mark.parametrize("name", sorted(sdk.NAMES))
def test_every_name_of_airflow_sdk_exists(name: str) -> None:
    assert getattr(sdk, name) is not None


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Dag'"):
        tradewind.Dag  # noqa: B018
    with pytest.raises(ImportError):
        from tradewind import no_such_name  # noqa: F401


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("from tradewind.models import Variable", "from tradewind import .*Variable"),
        ("from tradewind import models", "from tradewind import .*DAG"),
        ("from tradewind.models.baseoperator import chain", "from tradewind import .*chain"),
        ("from tradewind.decorators import task", "from tradewind import .*task"),
        ("from tradewind.datasets import Dataset", "from tradewind import Dataset"),
        ("from tradewind.exceptions import AirflowSkipException", "from tradewind import .*AirflowSkipException"),
        ("from tradewind.exceptions import TaskDeferred", "from tradewind.sdk.exceptions import .*TaskDeferred"),
        ("from tradewind.utils.task_group import TaskGroup", "from tradewind import .*TaskGroup"),
        ("from tradewind.utils.dates import days_ago", "days_ago: write a fixed date"),
        ("from tradewind.operators.bash_operator import BashOperator", "from tradewind.operators.bash import BashOperator"),
        ("from tradewind.operators import BashOperator", "from tradewind.operators.bash import BashOperator"),
        ("from tradewind.contrib.operators.x import Y", "keep Airflow's name"),
        ("import tradewind.providers.standard.operators.bash", "use: from airflow.providers"),
    ],
)
def test_the_error_of_an_airflow_path_gives_the_correct_path(statement: str, place: str) -> None:
    with pytest.raises(ImportError, match=place):
        exec(statement)


def test_every_path_in_such_an_error_exists() -> None:
    for names, place in [one for table in MOVED.values() for one in table.items()]:
        if " " not in place:
            module = importlib.import_module(place)
            assert [name for name in names.split() if not hasattr(module, name)] == [], place


@pytest.mark.parametrize("module", sorted(MOVED))
def test_the_table_of_paths_contains_no_existing_module(module: str) -> None:
    with pytest.raises(ImportError, match=r"Use: |use: "):
        importlib.import_module(f"tradewind.{module}")


def test_other_unknown_modules_raise_pythons_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'tradewind.foo'$"):
        importlib.import_module("tradewind.foo")
    assert not hasattr(tradewind, "models")


def test_a_dag_file_may_try_airflows_path_first() -> None:
    try:
        from tradewind.models import DAG as found  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        from tradewind import DAG as found
    assert found is tradewind.DAG


def test_the_version_is_that_of_the_package() -> None:
    assert tradewind.__version__
