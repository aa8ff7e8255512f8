"""Names that provider packages of five generations import (2021, 2022, 2025, 2026 and the backports for Airflow 1.10).

`names_of_provider_packages.tsv` holds each name and how many modules use it, counted in the wheels of 190 distributions.
`names_of_community_packages.tsv` holds each name that the other packages on PyPI whose description mentions Airflow import, and how
many of these 816 packages do. It leaves out modules that the packages add themselves, and about 60 internal names of Airflow 3
that Tradewind does not have; one or two packages use each of them.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import tradewind.airflow
from tests.unit.airflow.test_names import OPTIONAL
from tradewind.airflow import names
from tradewind.airflow.compat import server_internals
from tradewind.model.errors import NotYetSupported

ONLY_WITH_PACKAGE = {
    "airflow.operators.sql.SQLIntervalCheckOperator": "Tradewind's own SQL operators do not include it; common-sql has it"
}
"""Names that need an installed provider package although Tradewind has the module by itself → why."""

TABLE = Path(__file__).with_name("names_of_provider_packages.tsv")
COMMUNITY = Path(__file__).with_name("names_of_community_packages.tsv")


def is_there(full: str) -> bool:
    """Is it a module, or a name in a module? Names that lead to a package which is not installed count as there."""
    if names.is_module(full):
        return True
    module, _, name = full.rpartition(".")
    try:
        getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        missing = error.name or "" if isinstance(error, ImportError) else ""
        return missing in OPTIONAL or missing.startswith("airflow.providers.")
    return True


@pytest.mark.parametrize("table", [TABLE, COMMUNITY], ids=lambda table: table.stem)
def test_every_name_that_packages_import_is_there(table: Path) -> None:
    assert tradewind.airflow is not None
    uses = dict(line.split("\t") for line in table.read_text(encoding="utf-8").splitlines())
    assert len(uses) > 500
    assert [name for name in uses if not is_there(name) and name not in ONLY_WITH_PACKAGE] == []
    assert not is_there("airflow.models.NoSuchName")


def test_names_of_airflows_own_services_can_be_imported_and_refuse_to_be_used() -> None:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.models.serialized_dag import SerializedDagModel

    assert SerializedDagModel is server_internals.SerializedDagModel
    with pytest.raises(NotYetSupported, match="get_auth_manager is part of Airflow's own services"):
        get_auth_manager()
    with pytest.raises(NotYetSupported, match="SerializedDagModel"):
        SerializedDagModel()
    assert issubclass(type("Mine", (SerializedDagModel,), {}), SerializedDagModel)
