"""The arguments that pip gets, and a genuine Airflow in the environment."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.unit.provider_packages.packages import install_package
from tradewind.provider_packages import environment


def test_pip_conf_keeps_what_other_files_say() -> None:
    listing = "global.constraint='/etc/c.txt'\nglobal.find-links='/opt/wheels\\n/more'\n:env:.find-links='/ignored'\n"
    inherited = environment.parsed_pip_config(listing)
    assert inherited == {"constraint": ["/etc/c.txt"], "find-links": ["/opt/wheels", "/more"]}
    text = environment.merged_pip_conf("[global]\ntimeout = 9\n", inherited, {"constraint": "/v/c.txt", "find-links": "/v"})
    assert "timeout = 9" in text
    assert "constraint = \n\t/etc/c.txt\n\t/v/c.txt\n" in text
    assert "find-links = \n\t/opt/wheels\n\t/more\n\t/v\n" in text
    assert environment.merged_pip_conf(text, inherited, {"constraint": "/v/c.txt", "find-links": "/v"}) == text


def test_constraints_pin_every_part_of_airflow() -> None:
    assert environment.constraints_text("3.3.2+tradewind").splitlines() == [
        "apache-airflow==3.3.2+tradewind",
        "apache-airflow-core==3.3.2+tradewind",
        "apache-airflow-task-sdk==3.3.2+tradewind",
    ]


def test_a_genuine_airflow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install_package(tmp_path, "apache-airflow", "3.3.2+tradewind", {"airflow/__init__.py": "# ours\n"})
    assert environment.genuine_airflow() == []
    install_package(tmp_path, "apache-airflow-core", "3.1.0", {})
    assert environment.genuine_airflow() == ["apache-airflow-core 3.1.0"]


def test_an_overwritten_stand_in_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install_package(tmp_path, "apache-airflow", "3.3.2+tradewind", {"airflow/__init__.py": "# ours\n"})
    assert environment.overwritten_by() is None
    install_package(tmp_path, "apache-airflow-core", "3.1.0", {"airflow/__init__.py": "# Airflow\n"})
    assert environment.overwritten_by() == "apache-airflow-core 3.1.0"
    (tmp_path / "airflow" / "__init__.py").unlink()
    assert environment.overwritten_by() == f"{tmp_path / 'airflow' / '__init__.py'} is missing"
    # This package puts itself before the standard library's `importlib.metadata`; its `files` leave out missing files.
    importlib.import_module("importlib_metadata")
    assert environment.overwritten_by() == f"{tmp_path / 'airflow' / '__init__.py'} is missing"
