"""The hint of an import error of a third-party package."""

from __future__ import annotations

import pytest

from tradewind.provider_packages.third_party import advice


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("cosmos.airflow.dag", "astronomer-cosmos"),
        ("dagfactory", "dag-factory"),
        ("gusty", "gusty"),
        ("openlineage.airflow", "openlineage-airflow"),
        ("astronomer.providers.amazon", "astronomer-providers"),
    ],
)
def test_a_package_that_requires_airflow_is_installed_without_airflow(module: str, distribution: str) -> None:
    """pip alone would install Airflow with it, where no stand-in is installed yet."""
    said = advice(module)
    assert f"write {distribution} into a file requirements.txt" in said
    assert "tradewind providers install -r requirements.txt" in said
    assert "pip install" not in said


@pytest.mark.parametrize(
    ("module", "distribution"), [("yaml", "PyYAML"), ("duckdb", "duckdb"), ("airflow_client.client", "apache-airflow-client")]
)
def test_another_package_is_installed_with_pip(module: str, distribution: str) -> None:
    assert advice(module).endswith(f"pip install {distribution}")


def test_modules_of_airflow_have_other_hints() -> None:
    assert advice("airflow.operators.nothing") == ""
