"""Plugins: loading from a folder and from packages, errors, and macros in templates."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from airflow_client.client.models.plugin_response import PluginResponse

from tradewind.execution import macros
from tradewind.execution.templates import environment_for
from tradewind.model.definition import DefinitionDefaults
from tradewind.sdk import entry_points, load
from tradewind.sdk.definition import to_definition
from tradewind.sdk.plugins import describe_plugin, load_plugins, plugin_sources
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
    assert listed["external_views"] == [{"name": "Wiki", "href": "https://wiki"}]
    assert listed["recorded_only"] == []


def test_an_invalid_plugin_does_not_affect_the_others(folder: Path) -> None:
    (folder / "a_bad_plugin.py").write_text("raise SystemExit(3)")
    (folder / "b_our_plugin.py").write_text(OURS)
    (folder / "c_same_plugin.py").write_text(OURS)
    (folder / "d_nameless_plugin.py").write_text("from tradewind import AirflowPlugin\nclass Nameless(AirflowPlugin): pass\n")
    loaded = load_plugins(str(folder))
    assert [found.source for found in loaded.plugins] == ["$PLUGINS_FOLDER/b_our_plugin.py"]
    messages = {trouble.source.rpartition("/")[2]: str(trouble.error) for trouble in loaded.errors}
    assert messages == {
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


VIEWS = """
from airflow.plugins_manager import AirflowPlugin
from types import SimpleNamespace

class Middleware: pass

def app(): ...

class Views(AirflowPlugin):
    name = "views"
    fastapi_apps = [{"app": app, "url_prefix": "/ours", "name": "Ours"}]
    fastapi_root_middlewares = [{"middleware": Middleware, "args": [], "kwargs": {}, "name": "Timing"}]
    appbuilder_views = [{"name": "Old", "category": "Data", "view": Middleware()}]
    appbuilder_menu_items = [{"name": "Lake", "href": "https://lake", "category": "Data"}]
    external_views = [{"name": "Costs", "href": "https://costs/{DAG_ID}", "destination": "dag", "url_route": "costs"}]
    menu_links = [SimpleNamespace(name="Wiki", url="https://wiki", category=None)]
    react_apps = [{"name": "Chart", "bundle_url": "https://cdn/chart.js", "nav_top_level": True}]
"""


def test_the_views_of_a_plugin_have_the_shapes_of_airflows_api(folder: Path) -> None:
    (folder / "views_plugin.py").write_text(VIEWS)
    (found,) = load_plugins(str(folder)).plugins
    stored = msgspec.json.encode([describe_plugin(found)]).decode()
    (view,) = read_plugins(stored)
    assert PluginResponse.from_dict(msgspec.to_builtins(view)) is not None
    assert [(one.name, one.href, one.destination) for one in view.external_views] == [
        ("Costs", "https://costs/{DAG_ID}", "dag"),
        ("Lake", "https://lake", "nav"),
        ("Wiki", "https://wiki", "nav"),
    ]
    assert view.fastapi_apps[0].app == "views_plugin.app"
    assert view.recorded_only == ["fastapi_apps", "fastapi_root_middlewares", "react_apps", "appbuilder_views"]


def test_views_that_an_earlier_version_stored_are_left_out() -> None:
    (view,) = read_plugins('[{"name": "a", "source": "s", "external_views": ["Wiki"], "macros": ["a.m"]}]')
    assert (view.external_views, view.macros) == ([], ["a.m"])


LINKS = """
from airflow.models import BaseOperatorLink
from airflow.operators.bash import BashOperator
from airflow.plugins_manager import AirflowPlugin

class Wiki(BaseOperatorLink):
    name = "Wiki"

    def get_link(self, operator, *, ti_key):
        return f"https://wiki/{ti_key.dag_id}/{operator.task_id}"

class Shell(BaseOperatorLink):
    name = "Shell"
    operators = [BashOperator]

    def get_link(self, operator, *, ti_key):
        return "https://shell/" + operator.bash_command

class Links(AirflowPlugin):
    name = "links"
    operator_extra_links = [Shell()]
    global_operator_extra_links = [Wiki()]
"""

TASKS = """
from airflow import DAG
from airflow.models import BaseOperatorLink
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator

class Own(BaseOperatorLink):
    name = "Shell"
    def get_link(self, operator, *, ti_key): ...

class Other(BaseOperatorLink):
    name = "Other"
    def get_link(self, operator, *, ti_key): ...

class OwnBash(BashOperator):
    operator_extra_links = (Own(), Other())

with DAG("d", schedule=None):
    BashOperator(task_id="bash", bash_command="true")
    OwnBash(task_id="own", bash_command="true")
    EmptyOperator(task_id="empty")
"""


@pytest.fixture
def dags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("dags")
    (found / "d.py").write_text(TASKS)
    return found


def links_of_tasks(dags: Path) -> dict[str, list[tuple[str, str]]]:
    """Name and class of the links of each task, as a process that reads the file has them."""
    loaded = load.load_file(str(dags), "d.py")
    return {
        task.task_id: [(link.name, type(link).__name__) for link in task.operator_extra_links]
        for task in loaded.dags["d"].tasks
    }


def test_links_of_plugins_are_added_to_their_operators(folder: Path, dags: Path) -> None:
    """A link of `operators` belongs to exactly these classes, as in Airflow; a global link to all tasks."""
    (folder / "links_plugin.py").write_text(LINKS)
    assert links_of_tasks(dags) == {
        "bash": [("Wiki", "Wiki"), ("Shell", "Shell")],
        "own": [("Wiki", "Wiki"), ("Shell", "Own"), ("Other", "Other")],
        "empty": [("Wiki", "Wiki")],
    }
    task = load.load_file(str(dags), "d.py").dags["d"].get_task("bash")
    definition = to_definition(task.dag, "d.py", DefinitionDefaults()).task("bash")
    assert definition is not None
    assert definition.extra_links == (
        ("Wiki", "_link_Wiki"),
        ("Shell", "_link_Shell"),
    )


def test_no_plugin_is_loaded_for_links_where_none_mentions_them(folder: Path, dags: Path) -> None:
    (folder / "our_plugin.py").write_text(OURS)
    assert links_of_tasks(dags)["empty"] == []
    assert "our_plugin" not in sys.modules


def test_packages_count_if_the_module_of_their_plugin_mentions_the_attribute(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("site")
    for name, text in (("with_links", LINKS), ("without_links", OURS)):
        info = place / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (place / f"{name}.py").write_text(text)
        (info / "entry_points.txt").write_text(f"[airflow.plugins]\nours = {name}:Plugin\n")
    (place / "elsewhere-1.0.dist-info").mkdir()
    (place / "elsewhere-1.0.dist-info" / "entry_points.txt").write_text("[airflow.plugins]\nours = module_elsewhere:Plugin\n")
    sys.path.append(str(place))
    entry_points.read_entry_points.cache_clear()
    found = sorted(path.relative_to(place).as_posix() for path in plugin_sources((b"operator_extra_links",)))
    assert found == ["elsewhere-1.0.dist-info/entry_points.txt", "with_links.py"]
