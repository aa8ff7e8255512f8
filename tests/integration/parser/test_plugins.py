"""The plugins folder of a running parser: it is importable, is loaded in a child process and reported; a change reads DAG files
again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands import arguments
from tests.integration.parser.running_parser import RunningParser, Store
from tradewind.model.assets import AliasKey, AssetKey
from tradewind.model.definition import CustomSchedule, decode_definition
from tradewind.sdk.import_paths import PLUGINS_FOLDER
from tradewind.wire.commands import Command, RegisterPlugins
from tradewind.wire.messages import AssetsChanged, OutsideAssetEvent

PLUGIN = """
from tradewind import AirflowPlugin
from tradewind.timetables.base import Timetable
TASKS = 1
class Fortnightly(Timetable):
    pass
class Ours(AirflowPlugin):
    name = "ours"
    timetables = [Fortnightly]
"""
DAG_FILE = """
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
from our_plugin import TASKS, Fortnightly
with DAG("d", schedule=Fortnightly()):
    for number in range(TASKS):
        EmptyOperator(task_id=f"t{number}")
"""


class PluginStore(Store):
    """A fake scheduler that also stores plugins."""

    def __init__(self) -> None:
        super().__init__()
        self.plugins: list[dict[str, Any]] = []

    def command(self, command: Command[Any]) -> Any:
        if isinstance(command, RegisterPlugins):
            self.plugins.append(arguments(command))
            return None
        return super().command(command)


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    monkeypatch.setenv(PLUGINS_FOLDER, str(folder))
    return folder


def started(tmp_path: Path, plugins: Path) -> tuple[RunningParser, PluginStore]:
    store = PluginStore()
    (tmp_path / "dags").mkdir(exist_ok=True)
    running = RunningParser(tmp_path / "dags", store, plugins_folder=str(plugins))
    return running, store


def tasks_of(running: RunningParser) -> int:
    registration = running.registrations_of("d.py")[-1]
    return len(decode_definition(registration["dags"][0][1]).tasks)


def test_a_plugin_is_imported_and_listed_and_its_changes_are_noticed(tmp_path: Path, plugins: Path) -> None:
    (plugins / "our_plugin.py").write_text(PLUGIN)
    running, store = started(tmp_path, plugins)
    running.write("d.py", DAG_FILE)
    running.write("other.py", "from tradewind import DAG\nDAG('other')\nD = DAG('other2')\n")
    try:
        running.start()
        running.until(lambda: bool(store.plugins))
        assert store.problems == {}
        definition = decode_definition(running.registrations_of("d.py")[-1]["dags"][0][1])
        assert definition.schedule == CustomSchedule("our_plugin", "Fortnightly")
        result = store.plugins[-1]
        assert [(plugin["name"], plugin["timetables"]) for plugin in result["plugins"]] == [
            ("ours", ["our_plugin.Fortnightly"])
        ]
        assert result["problems"] == []
        (plugins / "our_plugin.py").write_text(PLUGIN.replace("TASKS = 1", "TASKS = 3"))
        running.until(lambda: tasks_of(running) == 3)
        running.until(lambda: len(store.plugins) == 2)
    finally:
        running.close()


def test_a_broken_plugin_is_reported_until_it_is_corrected(tmp_path: Path, plugins: Path) -> None:
    (plugins / "our_plugin.py").write_text("import os\nos.nonsense\n")
    running, store = started(tmp_path, plugins)
    try:
        running.start()
        running.until(lambda: bool(store.plugins))
        (problem,) = store.plugins[-1]["problems"]
        assert (problem["file"], problem["line"]) == ("our_plugin.py", 2)
        assert "AttributeError" in problem["message"]
        (plugins / "our_plugin.py").write_text("import os\nos._exit(9)\n")
        running.until(lambda: len(store.plugins) == 2)
        (problem,) = store.plugins[-1]["problems"]
        assert "loading the plugins ended the process: os._exit(9)" in problem["message"]
        (plugins / "our_plugin.py").write_text(PLUGIN)
        running.until(lambda: len(store.plugins) == 3)
        assert store.plugins[-1]["problems"] == []
    finally:
        running.close()


LISTENER = """
import os
from tradewind import AirflowPlugin
from tradewind.sdk.listeners import hookimpl


def note(event, filename, stacktrace):
    with open(os.path.join(os.path.dirname(__file__), "import_errors.txt"), "a") as file:
        file.write(f"{event} {os.path.basename(filename)} {stacktrace.splitlines()[-1]}\\n")


class Errors:
    @hookimpl
    def on_new_dag_import_error(self, filename, stacktrace):
        note("new", filename, stacktrace)

    @hookimpl
    def on_existing_dag_import_error(self, filename, stacktrace):
        note("existing", filename, stacktrace)


class Ours(AirflowPlugin):
    name = "ours"
    listeners = [Errors()]
"""


def test_listeners_are_told_of_import_errors(tmp_path: Path, plugins: Path) -> None:
    (plugins / "our_plugin.py").write_text(LISTENER)
    result = plugins / "import_errors.txt"

    def lines() -> list[str]:
        return result.read_text().splitlines() if result.exists() else []

    running, _ = started(tmp_path, plugins)
    running.write("d.py", "from tradewind import DAG\nraise ValueError('first')\n")
    try:
        running.start()
        running.until(lambda: len(lines()) == 1)
        running.write("d.py", "from tradewind import DAG\nraise ValueError('second')\n")
        running.until(lambda: len(lines()) == 2)
        assert lines() == ["new d.py ValueError: first", "existing d.py ValueError: second"]
    finally:
        running.close()


ASSET_LISTENER = """
import os
from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin


def note(*words):
    with open(os.path.join(os.path.dirname(__file__), "created.txt"), "a") as file:
        file.write(" ".join(words) + "\\n")


class Broken:
    @hookimpl
    def on_asset_created(self, asset):
        raise ValueError("an error of a listener")


class Created:
    @hookimpl
    def on_asset_created(self, asset):
        note("asset", asset.name, asset.uri, asset.group, str(asset.extra))

    @hookimpl
    def on_asset_alias_created(self, asset_alias):
        note("alias", asset_alias.name, asset_alias.group)


class Changed:
    @hookimpl
    def on_asset_changed(self, asset):
        note("changed", asset.name, asset.uri)

    @hookimpl
    def on_asset_event_emitted(self, asset_event):
        event = asset_event
        note("event", event.asset.name, str(event.extra), str(event.source_dag_id), str(event.partition_key))


class Ours(AirflowPlugin):
    name = "ours"
    listeners = [Broken(), Created(), Changed()]
"""


def test_listeners_are_told_of_events_that_a_person_has_created(tmp_path: Path, plugins: Path) -> None:
    """Also of those that came before the plugins were loaded."""
    (plugins / "our_plugin.py").write_text(ASSET_LISTENER)
    result = plugins / "created.txt"
    running, _ = started(tmp_path, plugins)
    try:
        event = OutsideAssetEvent(AssetKey("a", "s3://a"), {"rows": 2}, "2026-01-01")
        running.service.tell_changed_assets(AssetsChanged(events=(event,)))
        running.start()
        running.until(lambda: result.exists() and len(result.read_text().splitlines()) == 2)
        assert result.read_text().splitlines() == ["changed a s3://a/", "event a {'rows': 2} None 2026-01-01"]
    finally:
        running.close()


def test_listeners_are_told_of_new_assets(tmp_path: Path, plugins: Path) -> None:
    """Also of those that came before the plugins were loaded."""
    (plugins / "our_plugin.py").write_text(ASSET_LISTENER)
    result = plugins / "created.txt"
    running, _ = started(tmp_path, plugins)
    asset = AssetKey("a", "s3://a", "g", b'{"k": 1}')
    try:
        running.service.tell_changed_assets(AssetsChanged((asset, AliasKey("x"))))
        running.start()
        running.until(lambda: result.exists() and len(result.read_text().splitlines()) == 2)
        running.service.tell_changed_assets(AssetsChanged((AssetKey("b", "b"),)))
        running.until(lambda: len(result.read_text().splitlines()) == 3)
        assert result.read_text().splitlines() == ["asset a s3://a/ g {'k': 1}", "alias x asset", "asset b b asset {}"]
    finally:
        running.close()
