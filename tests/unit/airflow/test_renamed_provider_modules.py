"""Modules that provider packages have renamed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.airflow import renamed_provider_modules


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A provider package `cncf-kubernetes` of today, with one module."""
    package = tmp_path / "airflow" / "providers" / "cncf" / "kubernetes"
    (package / "operators").mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '10.25.0'\n")
    (package / "operators" / "__init__.py").write_text("")
    (package / "operators" / "pod.py").write_text("class KubernetesPodOperator:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "airflow"}
    for name in before:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "airflow"]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.usefixtures("installed")
def test_an_old_module_leads_to_the_present_one() -> None:
    old = importlib.import_module("airflow.providers.cncf.kubernetes.operators.kubernetes_pod")
    new = importlib.import_module("airflow.providers.cncf.kubernetes.operators.pod")
    assert old.KubernetesPodOperator is new.KubernetesPodOperator


@pytest.mark.usefixtures("installed")
def test_a_module_that_the_installed_package_lacks_is_not_one_to_install() -> None:
    with pytest.raises(
        ModuleNotFoundError, match=r"installed apache-airflow-providers-cncf-kubernetes 10\.25\.0 has no such module"
    ):
        importlib.import_module("airflow.providers.cncf.kubernetes.operators.spark_on_mars")


def test_without_the_package_the_error_names_it() -> None:
    with pytest.raises(ModuleNotFoundError, match="tradewind providers install cncf-kubernetes"):
        importlib.import_module("airflow.providers.cncf.kubernetes.operators.kubernetes_pod")


def test_every_line_of_the_table_renames_something() -> None:
    for old, known in renamed_provider_modules._targets().items():
        assert known
        assert all(target.partition(":")[0] != old and target.partition(":")[2] for target in known.values())
