"""Plugins, as a child process of the parser found them. Their code never runs in this process."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Limit, Offset, described, json_response, page_size
from tradewind.api.shapes import PluginImportErrors, Plugins
from tradewind.store.views import PluginImportErrorView, read_plugins

router = APIRouter(prefix="/api/v2/plugins", tags=["Plugin"])


@router.get("", responses=described(Plugins))
@allow("read", "plugin")
def list_plugins(api: Api, limit: Limit = 50, offset: Offset = 0) -> Response:
    """List plugins by name. `recorded_only` names the parts of a plugin that have no effect yet."""
    found = read_plugins(api.reader().plugins())
    return json_response(Plugins(found[offset:][: page_size(api, limit)], len(found)))


@router.get("/importErrors", responses=described(PluginImportErrors))
@allow("read", "plugin")
def list_plugin_import_errors(api: Api) -> Response:
    """List the files of the plugins folder and the packages that cannot be loaded."""
    found = [
        PluginImportErrorView(source=view.filename, error=view.stack_trace)
        for view in api.reader().import_errors(limit=None).rows
        if view.bundle_name == "plugins"
    ]
    return json_response(PluginImportErrors(found, len(found)))
