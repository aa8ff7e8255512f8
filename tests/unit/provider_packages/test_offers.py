"""What installed provider packages offer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.provider_packages.packages import install_package
from tradewind.cli.main import cli
from tradewind.provider_packages import installed, offers

INFO = {
    "package-name": "apache-airflow-providers-acme",
    "name": "Acme",
    "description": "`Acme <https://acme.example>`__\n",
    "connection-types": [
        {
            "connection-type": "acme",
            "hook-class-name": "airflow.providers.acme.hooks.acme.AcmeHook",
            "hook-name": "Acme",
            "conn-fields": {"region": {"schema": {"type": "string"}}},
            "ui-field-behaviour": {"hidden-fields": ["schema"]},
        }
    ],
    "hook-class-names": ["airflow.providers.acme.hooks.acme.AcmeHook", "airflow.providers.acme.hooks.old.OldHook"],
    "task-decorators": [{"name": "acme", "class-name": "airflow.providers.acme.decorators.acme.acme_task"}],
    "extra-links": ["airflow.providers.acme.links.AcmeLink"],
    "notifications": ["airflow.providers.acme.notifications.acme.AcmeNotifier"],
    "secrets-backends": ["airflow.providers.acme.secrets.Vault"],
    "triggers": [{"integration-name": "Acme", "python-modules": ["airflow.providers.acme.triggers.acme"]}],
    "asset-uris": [{"schemes": ["acme"], "handler": "airflow.providers.acme.assets.check"}],
    "config": {
        "acme": {
            "description": "Acme",
            "options": {"retries": {"default": "3"}, "token": {"default": None}, "more": {"default": "{{}}"}},
        }
    },
    "plugins": [{"name": "acme", "plugin-class": "airflow.providers.acme.plugins.AcmePlugin"}],
}


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with one good provider package, one broken one and a backport."""
    monkeypatch.syspath_prepend(str(tmp_path))
    install_package(
        tmp_path,
        "apache-airflow-providers-acme",
        "1.2.3",
        {
            "airflow/providers/acme/__init__.py": "raise ImportError('listing must not import the package')\n",
            "airflow/providers/acme/get_provider_info.py": f"def get_provider_info():\n    return {INFO!r}\n",
        },
        "[apache_airflow_provider]\nprovider_info = airflow.providers.acme.get_provider_info:get_provider_info\n",
    )
    install_package(
        tmp_path,
        "apache-airflow-providers-broken",
        "0.1",
        {"airflow/providers/broken/get_provider_info.py": "def get_provider_info():\n    raise KeyError('no')\n"},
        "[apache_airflow_provider]\nprovider_info = airflow.providers.broken.get_provider_info:get_provider_info\n",
    )
    install_package(
        tmp_path,
        "apache-airflow-backport-providers-old",
        "2021.3.3",
        {"airflow/providers/old/hooks/old.py": "", "airflow/providers/old/hooks/__init__.py": ""},
    )
    offers.forget()
    yield tmp_path
    offers.forget()


@pytest.mark.usefixtures("acme")
def test_descriptions() -> None:
    found = installed.providers()
    assert found["apache-airflow-providers-acme"].version == "1.2.3"
    assert found["apache-airflow-providers-broken"].problem == "KeyError: 'no'"
    assert ("apache-airflow-backport-providers-old", "airflow.providers.old.hooks.old") in offers.backport_hook_modules()


@pytest.mark.usefixtures("acme")
def test_offers() -> None:
    assert offers.hooks()["acme"].class_name == "airflow.providers.acme.hooks.acme.AcmeHook"
    assert offers.old_hook_classes() == (("apache-airflow-providers-acme", "airflow.providers.acme.hooks.old.OldHook"),)
    assert offers.task_decorators()["acme"] == "airflow.providers.acme.decorators.acme.acme_task"
    assert offers.config_defaults()["acme", "retries"] == "3"
    assert offers.config_defaults()["acme", "more"] == "{}"
    assert ("acme", "token") not in offers.config_defaults()
    assert offers.asset_uri_handlers()["acme"] == "airflow.providers.acme.assets.check"


def rows(*words: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(cli, ["providers", *words, "-o", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("acme")
def test_commands() -> None:
    listed = {row["package_name"]: row for row in rows("list")}
    assert listed["apache-airflow-providers-acme"]["description"] == "Acme https://acme.example"
    assert {"connection_type": "acme", "hook_name": "Acme"}.items() <= rows("hooks")[0].items()
    assert rows("widgets")[0]["connection_parameter_name"] == "extra__acme__region"
    assert rows("behaviours") == [{"field_behaviours": "acme"}]
    assert rows("links") == [{"extra_link_class_name": "airflow.providers.acme.links.AcmeLink"}]
    assert rows("notifications") == [{"notification_class_name": "airflow.providers.acme.notifications.acme.AcmeNotifier"}]
    assert rows("secrets") == [{"secrets_backend_class_name": "airflow.providers.acme.secrets.Vault"}]
    assert rows("decorators")[0]["decorator"] == "@task.acme"
    assert rows("configs") == [{"provider_config": "acme", "options": ["more", "retries", "token"]}]
    assert rows("executors") == []


@pytest.mark.usefixtures("acme")
def test_one_package() -> None:
    done = CliRunner().invoke(cli, ["providers", "get", "acme", "--full", "-o", "json"], catch_exceptions=False)
    assert json.loads(done.stdout)["connection-types"][0]["connection-type"] == "acme"
