"""Plugins: loading from a folder and from packages, errors, and macros in templates."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.execution import macros
from tradewind.execution.templates import environment_for
from tradewind.sdk import load, plugins
from tradewind.sdk.plugins import describe_plugin, load_plugins
from tradewind.store.views import read_plugins

OURS = """
from tradewind import AirflowPlugin
from tradewind.timetables.base import Timetable

class Workdays(Timetable):
    pass

class Listener:
    pass

def double(number):
    return 2 * number

class OurPlugin(AirflowPlugin):
    name = "ours"
    macros = [double]
    timetables = [Workdays]
    listeners = [Listener()]
    external_views = [{"name": "Wiki", "href": "https://wiki"}]
    loaded = 0

    @classmethod
    def on_load(cls, *args, **kwargs):
        cls.loaded += 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plugins folder of this process, whose modules are removed at the end of the test."""
    before, path = set(sys.modules), list(sys.path)
    monkeypatch.setenv(load.PLUGINS_FOLDER, str(tmp_path))
    plugins.plugins_of_process.cache_clear()
    yield tmp_path
    plugins.plugins_of_process.cache_clear()
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_plugins_of_a_folder_are_loaded(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "our_plugin.py").write_text(OURS)
    (folder / ".hidden.py").write_text("raise ValueError")
    (folder / "helper_of_plugins.py").write_text("from sub.our_plugin import OurPlugin\n")
    loaded = load_plugins(str(folder))
    assert loaded.errors == []
    assert [(found.name, found.source) for found in loaded.plugins] == [("ours", "$PLUGINS_FOLDER/sub/our_plugin.py")]
    assert loaded.plugins[0].plugin.loaded == 1
    listed = describe_plugin(loaded.plugins[0])
    assert listed["macros"] == ["sub.our_plugin.double"]
    assert listed["timetables"] == ["sub.our_plugin.Workdays"]
    assert listed["listeners"] == ["sub.our_plugin.Listener"]
    assert listed["external_views"] == ["Wiki"]
    assert listed["recorded_only"] == ["listeners", "external_views"]


def test_an_invalid_plugin_does_not_affect_the_others(folder: Path) -> None:
    (folder / "a_bad_plugin.py").write_text("raise SystemExit(3)")
    (folder / "b_our_plugin.py").write_text(OURS)
    (folder / "c_same_plugin.py").write_text(OURS)
    (folder / "d_nameless_plugin.py").write_text("from tradewind import AirflowPlugin\nclass Nameless(AirflowPlugin): pass\n")
    loaded = load_plugins(str(folder))
    assert [found.source for found in loaded.plugins] == ["$PLUGINS_FOLDER/b_our_plugin.py"]
    told = {trouble.source.rpartition("/")[2]: str(trouble.error) for trouble in loaded.errors}
    assert told == {
        "a_bad_plugin.py": "3",
        "c_same_plugin.py": "the plugin name 'ours' is already used by $PLUGINS_FOLDER/b_our_plugin.py; choose another name",
        "d_nameless_plugin.py": "the plugin Nameless needs a name, such as name = 'ours'",
    }


def test_packages_provide_plugins_by_airflows_entry_point(folder: Path) -> None:
    (folder / "packaged_plugin.py").write_text(OURS.replace('"ours"', '"packaged"'))
    info = folder / "our_package-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-package\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[airflow.plugins]\none = packaged_plugin:OurPlugin\nbad = packaged_plugin:Workdays\ngone = no_such_module:X\n"
    )
    empty = folder / "empty"
    empty.mkdir()
    sys.path.append(str(folder))
    loaded = load_plugins(str(empty))
    sources = [found.source for found in loaded.plugins]
    assert sources == ["package our-package==1.2: packaged_plugin:OurPlugin"]
    assert sorted(str(trouble.error).partition(" ")[0] for trouble in loaded.errors) == ["<class", "No"]


def test_without_a_folder_there_are_no_plugins(tmp_path: Path) -> None:
    assert load_plugins(str(tmp_path / "none")).plugins == []


def test_macros_are_below_the_name_of_the_plugin(folder: Path) -> None:
    (folder / "our_plugin.py").write_text(OURS)
    from tradewind import DAG

    template = environment_for(DAG("d")).from_string("{{ macros.ours.double(21) }}")
    assert template.render(macros=macros) == "42"
    with pytest.raises(AttributeError, match="no macro 'theirs', and no plugin with this name"):
        _ = macros.theirs


def test_the_list_of_plugins_for_people(folder: Path) -> None:
    listed = '[{"name": "b", "source": "s", "macros": ["m"], "later": 1}, {"name": "a", "source": "s"}]'
    assert [(plugin.name, plugin.macros) for plugin in read_plugins(listed)] == [("a", []), ("b", ["m"])]


def test_a_dag_file_depends_on_the_modules_it_imports_from_the_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dags = tmp_path_factory.mktemp("dags")
    (folder / "calendar_of_ours.py").write_text("DAYS = 3\n")
    (dags / "d.py").write_text("from tradewind import DAG\nimport calendar_of_ours\nDAG('d')\n")
    sources = [source.path for source in load.load_file(str(dags), "d.py").sources]
    assert sources == [str(dags / "d.py"), str(folder / "calendar_of_ours.py")], "templates compare these with the disk"
