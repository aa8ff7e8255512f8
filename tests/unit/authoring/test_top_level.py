"""`import tradewind`: light, and complete."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tradewind
from tradewind import authoring

HEAVY = {"jinja2", "pendulum", "fastapi", "rich", "cryptography", "dateutil", "sqlite3"}


def modules_after(code: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout
    return set(printed.split())


def test_importing_it_loads_nothing_else_of_it() -> None:
    loaded = modules_after("import tradewind")
    assert {name for name in loaded if name.startswith("tradewind")} == {"tradewind"}
    assert not loaded & (HEAVY | {"msgspec", "logging"})


def test_a_dag_file_loads_nothing_heavy() -> None:
    loaded = modules_after(
        "from tradewind import DAG, BaseOperator, TaskGroup, Param, Label, chain\n"
        "from tradewind.authoring.definition import DefinitionDefaults, to_definition\n"
        "with DAG('d', schedule='@daily') as dag: BaseOperator('t')\n"
        "to_definition(dag, 'f', DefinitionDefaults())"
    )
    assert not loaded & HEAVY


@pytest.mark.spec("S412")
@pytest.mark.parametrize("name", tradewind.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(tradewind, name) is not None
    assert name in dir(tradewind)


@pytest.mark.parametrize("name", sorted(authoring.NAMES))
def test_every_name_of_authoring_is_there(name: str) -> None:
    assert getattr(authoring, name) is not None


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Dag'"):
        tradewind.Dag  # noqa: B018
    with pytest.raises(ImportError):
        from tradewind import no_such_name  # noqa: F401


def test_its_version() -> None:
    assert tradewind.__version__
