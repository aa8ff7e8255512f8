"""Modules of Airflow 1 and 2 that went to provider packages, and names that plugins offer."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.airflow import moved_modules, names
from tradewind.sdk import plugins
from tradewind.sdk.import_paths import PLUGINS_FOLDER


@pytest.mark.parametrize(
    ("old", "name", "package"),
    [
        ("airflow.contrib.operators.bigquery_operator", "BigQueryOperator", "google"),
        ("airflow.contrib.hooks.ssh_hook", "SSHHook", "ssh"),
        ("airflow.operators.hive_operator", "HiveOperator", "apache-hive"),
        ("airflow.hooks.postgres_hook", "PostgresHook", "postgres"),
        ("airflow.sensors.s3_key_sensor", "S3KeySensor", "amazon"),
        ("airflow.kubernetes.secret", "Secret", "cncf-kubernetes"),
        ("airflow.operators", "HiveOperator", "apache-hive"),
        ("airflow.hooks", "S3Hook", "amazon"),
        ("airflow.contrib.hooks", "SSHHook", "ssh"),
        ("airflow.contrib.operators", "SSHOperator", "ssh"),
        ("airflow.contrib.operators.ssh_execute_operator", "SSHExecuteOperator", "ssh"),
        ("airflow.contrib.sensors.hdfs_sensors", "HdfsSensorFolder", "apache-hdfs"),
        ("airflow.contrib.operators.mlengine_operator_utils", "create_evaluate_ops", "google"),
        ("airflow.contrib.operators.s3_to_gcs_transfer_operator", "S3ToGoogleCloudStorageTransferOperator", "google"),
    ],
)
def test_an_old_module_names_the_package_that_has_its_class_today(old: str, name: str, package: str) -> None:
    with pytest.raises(ImportError, match=f"tradewind providers install {package}$"):
        exec(f"from {old} import {name}")


def test_every_line_of_the_table_names_a_module_and_names() -> None:
    assert len(moved_modules.modules()) > 250
    for module in moved_modules.modules():
        found = moved_modules.names_of(module)
        assert found
        assert names.is_module(module)
        assert all(target.startswith("airflow.providers.") for target in found.values())


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed provider package `ftp`, which has the hook and lacks the sensor."""
    folder = tmp_path / "airflow" / "providers" / "ftp"
    for package in (folder, folder / "hooks", folder / "sensors"):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    (folder / "hooks" / "ftp.py").write_text("class FTPHook:\n    pass\n")
    (folder / "sensors" / "ftp.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    monkeypatch.delitem(sys.modules, "airflow.providers", raising=False)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith("airflow.") and ("ftp" in name or name == "airflow.providers"):
            del sys.modules[name]


def test_an_old_module_leads_to_the_installed_package(acme: Path) -> None:
    root = importlib.import_module("airflow")
    root.__path__.append(str(acme / "airflow"))
    try:
        found = importlib.import_module("airflow.contrib.hooks.ftp_hook").FTPHook
        assert found.__module__ == "airflow.providers.ftp.hooks.ftp"
        with pytest.raises(ImportError, match="installed apache-airflow-providers-ftp has no such name"):
            exec("from airflow.contrib.sensors.ftp_sensor import FTPSensor")
    finally:
        root.__path__.remove(str(acme / "airflow"))


# --- plugins ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def plugin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(PLUGINS_FOLDER, str(tmp_path))
    plugins.plugins_of_process.cache_clear()
    known = set(sys.modules)
    yield tmp_path
    plugins.plugins_of_process.cache_clear()
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)) or name == "airflow.operators.ours":
            del sys.modules[name]


PLUGIN = """
from airflow.models import BaseOperator
from airflow.operators import BashOperator
from airflow.plugins_manager import AirflowPlugin


class StageOperator(BaseOperator):
    pass


class OurPlugin(AirflowPlugin):
    name = "ours"
    operators = [StageOperator]
"""


def test_operators_of_plugins_stand_where_airflow_1_had_them(plugin_folder: Path) -> None:
    (plugin_folder / "our_plugin.py").write_text(PLUGIN)
    bare = importlib.import_module("airflow.operators").StageOperator
    named = importlib.import_module("airflow.operators.ours").StageOperator
    assert bare is named
    assert bare.__module__ == "our_plugin"


def test_a_missing_operator_is_said_to_be_in_no_plugin(plugin_folder: Path) -> None:
    with pytest.raises(ImportError, match=r"no plugin has this name.*Plugins are read from"):
        exec("from airflow.operators import NoSuchOperator")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("airflow.operators.no_such_plugin")


def test_a_plugin_that_cannot_be_loaded_is_named(plugin_folder: Path) -> None:
    (plugin_folder / "broken.py").write_text("import no_such_library\n")
    with pytest.raises(ImportError, match=r"broken\.py.*no_such_library"):
        exec("from airflow.operators import NoSuchOperator")


LISTED = """
from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.base import Timetable


class Own(Timetable):
    pass


class Link:
    pass


class OurPlugin(AirflowPlugin):
    name = "listed"
    timetables = [Own]
    operator_extra_links = [Link()]
    flask_blueprints = ["blueprint"]
    fastapi_apps = [{"name": "app"}]
"""


def test_what_plugins_contain_is_listed_as_by_airflow(plugin_folder: Path) -> None:
    (plugin_folder / "listed.py").write_text(LISTED)
    (plugin_folder / "broken.py").write_text("import no_such_library\n")
    manager = importlib.import_module("airflow.plugins_manager")
    assert {path: kind.__name__ for path, kind in manager.get_timetables_plugins().items()} == {"listed.Own": "Own"}
    assert [type(link).__name__ for link in manager.get_operator_extra_links()] == ["Link"]
    assert manager.get_global_operator_extra_links() == []
    assert manager.get_priority_weight_strategy_plugins() == manager.get_windows_plugins() == {}
    assert manager.get_partition_mapper_plugins() == manager.get_deadline_references_plugins() == {}
    assert manager.get_flask_plugins() == ([{"name": "listed", "blueprint": "blueprint"}], [], [])
    assert manager.get_fastapi_plugins() == ([{"name": "app"}], [])
    ((source, error),) = manager.get_import_errors().items()
    assert source.endswith("broken.py")
    assert error == "ModuleNotFoundError: No module named 'no_such_library'"
    (shown,) = manager.get_plugin_info(["timetables"])
    assert shown == {"name": "listed", "source": "$PLUGINS_FOLDER/listed.py", "timetables": ["listed.Own"]}


def test_constants_and_helpers_of_a_moved_module_come_from_the_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table names the classes; Airflow 1's modules had constants, too."""
    home = types.ModuleType("airflow.providers.google.cloud.hooks.cloud_storage_transfer_service")
    vars(home)["TRANSFER_OPTIONS"] = "transferOptions"
    for name in ("google", "google.cloud", "google.cloud.hooks"):
        monkeypatch.setitem(sys.modules, f"airflow.providers.{name}", types.ModuleType(f"airflow.providers.{name}"))
    monkeypatch.setitem(sys.modules, home.__name__, home)
    old = importlib.import_module("airflow.contrib.hooks.gcp_transfer_hook")
    assert old.TRANSFER_OPTIONS == "transferOptions"
    with pytest.raises(ImportError, match="no release of Airflow has it there"):
        exec("from airflow.contrib.hooks.gcp_transfer_hook import NO_SUCH_CONSTANT")


def test_core_classes_of_contrib_of_airflow_1_8() -> None:
    from airflow.contrib.operators.fs_operator import FileSensor
    from airflow.sensors.filesystem import FileSensor as Present
    from airflow.utils.operator_resources import GB, MB, TB

    assert FileSensor is Present
    assert (MB, GB, TB) == (1, 1024, 1024**2)
