"""The plugins, as a child process of the parser found them. Their code never runs here."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.answers import Api, Limit, Offset, described, json_answer, page_size
from tradewind.api.auth.policy import allow
from tradewind.api.shapes import PluginImportErrors, Plugins
from tradewind.store.views import PluginImportErrorView, read_plugins

router = APIRouter(prefix="/api/v2/plugins", tags=["Plugin"])


@router.get("", responses=described(Plugins))
@allow("read", "plugin")
def list_plugins(api: Api, limit: Limit = 50, offset: Offset = 0) -> Response:
    """All plugins, by name. `recorded_only` names what of each has no effect yet."""
    found = read_plugins(api.reader().plugins())
    return json_answer(Plugins(found[offset:][: page_size(api, limit)], len(found)))


@router.get("/importErrors", responses=described(PluginImportErrors))
@allow("read", "plugin")
def list_plugin_import_errors(api: Api) -> Response:
    """The files of the plugins folder, and packages, that cannot be loaded."""
    found = [
        PluginImportErrorView(source=view.filename, error=view.stack_trace)
        for view in api.reader().import_errors(limit=None).rows
        if view.bundle_name == "plugins"
    ]
    return json_answer(PluginImportErrors(found, len(found)))
