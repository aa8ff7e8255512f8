"""Modules of Airflow that give every name of another module."""

from __future__ import annotations

import importlib

import pytest
import yaml

import tradewind.airflow  # noqa: F401  Airflow's names


@pytest.mark.parametrize("module", ["airflow.utils.yaml", "airflow.sdk.yaml"])
def test_the_modules_of_yaml_give_all_names_of_the_library(module: str) -> None:
    """The pod operator calls `safe_dump`, which Airflow's module does not define itself."""
    found = importlib.import_module(module)
    assert found.safe_load("a: [1]") == {"a": [1]}
    assert found.safe_dump({"a": 1}) == found.dump({"a": 1}) == "a: 1\n"
    assert found.FullLoader is yaml.FullLoader
    with pytest.raises(AttributeError, match="safe_dumb"):
        found.safe_dumb  # noqa: B018
