"""Golden outcomes of Airflow 3.3.2's templates: at least 99 % of the names that are not disputed agree."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.conformance.golden import specifications
from tests.conformance.templates import outcome

SPECIFICATIONS = list(specifications("D"))
HAS_YAML = importlib.util.find_spec("yaml") is not None


def _judged(spec: dict[str, Any]) -> list[str]:
    disputed = set(spec.get("disputed_keys", ()))
    return [name for name in spec["templates"] if name not in disputed]


def _needs_yaml(spec: dict[str, Any], name: str) -> bool:
    """`macros.yaml` is PyYAML where that is installed, and an error that says so where it is not."""
    return "macros.yaml" in str(spec["templates"][name]) and not HAS_YAML


def _differences(spec: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Name → (what Airflow renders, what we render). Of errors only the fact counts."""
    told, wanted = outcome(spec)["rendered"], spec["expect"]["outcome"]["rendered"]

    def normal(shown: dict[str, Any]) -> Any:
        return "error" if "error" in shown else shown

    return {name: (wanted[name], told[name]) for name in _judged(spec) if normal(wanted[name]) != normal(told[name])}


@pytest.mark.parametrize("spec", SPECIFICATIONS, ids=lambda spec: spec["id"])
def test_agrees_with_airflow(spec: dict[str, Any]) -> None:
    different = {name: pair for name, pair in _differences(spec).items() if not _needs_yaml(spec, name)}
    assert different == {}


def test_at_least_99_percent_agree() -> None:
    judged = sum(len(_judged(spec)) for spec in SPECIFICATIONS)
    different = sum(len(_differences(spec)) for spec in SPECIFICATIONS)
    assert judged >= 800
    assert different <= judged / 100
