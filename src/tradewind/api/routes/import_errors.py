"""Import errors of DAG files."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Limit, Number, Offset, Order, Text, described, json_response, page_size, total_of
from tradewind.api.routes.ranges import Pattern, Prefix, conditions
from tradewind.api.shapes import ImportErrors
from tradewind.store.views import ImportErrorView

router = APIRouter(prefix="/api/v2/importErrors", tags=["Import Error"])


@router.get("", responses=described(ImportErrors, also=(400,)))
@allow("read", "import_error")
def list_import_errors(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    filename: Text = None,
    filename_pattern: Pattern = None,
    filename_prefix_pattern: Prefix = None,
    bundle_name: Text = None,
    order_by: Order = None,
) -> Response:
    """List the files that cannot be imported, with the reason."""
    given = {"filename": filename, "bundle_name": bundle_name}
    among = {name: None if one is None else [one] for name, one in given.items()}
    fields = conditions({"filename": filename_pattern}, {"filename": filename_prefix_pattern}, among)
    found = api.reader().import_errors(
        conditions=fields, limit=page_size(api, limit), offset=offset, order_by=order_by or ("id",)
    )
    return json_response(ImportErrors(found.rows, total_of(found, offset)))


@router.get("/{import_error_id}", responses=described(ImportErrorView, also=(404,)))
@allow("read", "import_error")
def get_import_error(api: Api, import_error_id: Number) -> Response:
    """One import error."""
    return json_response(api.reader().import_error(import_error_id))
