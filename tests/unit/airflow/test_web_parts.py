"""Plugins with views for the web server of Airflow 1 and 2: their files load, and the views have no effect."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tradewind.airflow  # noqa: F401 (activates the namespace)
from tradewind.sdk.plugins import describe_plugin, load_plugins

VIEWS = """
from airflow.plugins_manager import AirflowPlugin
from airflow.www.app import csrf
from airflow.www.auth import has_access as may
from airflow.www.decorators import action_logging
from airflow.www.views import AirflowBaseView
from airflow.security import permissions
from flask import Blueprint, request
from flask_admin import BaseView
from flask_admin.base import MenuLink
from flask_appbuilder import BaseView as BuilderView, expose, has_access
from flask_appbuilder.models.sqla.interface import SQLAInterface

views = Blueprint("views", __name__, template_folder="templates")

@views.route("/x")
@csrf.exempt
def page():
    return request.args.get("x")

class Paused(AirflowBaseView):
    default_view = "list"

    @expose("/")
    @may([(permissions.ACTION_CAN_READ, permissions.RESOURCE_DAG)])
    @action_logging
    def list(self):
        return self.render_template("paused.html")

class Builder(BuilderView):
    datamodel = SQLAInterface(str)

    @expose("/", methods=["GET"])
    @has_access
    def test(self):
        return 1

class Admin(BaseView):
    @expose("/")
    def test(self):
        return self.render("x.html")

def double(number):
    return 2 * number

class Ours(AirflowPlugin):
    name = "views_of_ours"
    macros = [double]
    admin_views = [Admin(category="Test", name="Test")]
    flask_blueprints = [views]
    menu_links = [MenuLink(category="Docs", name="Wiki", url="https://wiki")]
    appbuilder_views = [{"name": "Paused", "category": "Ours", "view": Paused()}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TRADEWIND__CORE__PLUGINS_FOLDER", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(("views_of_ours", "flask")):
            del sys.modules[name]


def test_a_plugin_with_views_loads_and_its_macros_work(folder: Path) -> None:
    (folder / "views_of_ours.py").write_text(VIEWS)
    loaded = load_plugins(str(folder))
    assert loaded.errors == []
    (found,) = [one for one in loaded.plugins if one.name == "views_of_ours"]
    assert found.plugin.macros[0](2) == 4
    module = sys.modules["views_of_ours"]
    assert module.page.__name__ == "page", "a decorator leaves its function as it is"
    assert module.Builder.test(None) == 1
    described = describe_plugin(found)
    assert {"flask_blueprints", "appbuilder_views"} <= set(described["recorded_only"]), "it is said what has no effect"


def test_other_files_are_told_that_the_package_is_missing(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="flask_appbuilder"):
        importlib.import_module("flask_appbuilder")


def test_dependencies_of_fastapi_can_be_types_of_arguments() -> None:
    fastapi = pytest.importorskip("fastapi")
    from airflow.api_fastapi.common.db.common import SessionDep
    from airflow.api_fastapi.core_api.security import GetUserDep

    app = fastapi.FastAPI()

    def page(session: Any, user: Any) -> None:
        """A page of a plugin."""

    page.__annotations__.update(session=SessionDep, user=GetUserDep)
    app.get("/x")(page)

    assert any(route.path == "/x" for route in app.routes)
