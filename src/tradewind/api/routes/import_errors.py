"""Import errors of DAG files."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Limit, Number, Offset, Order, described, json_response, page_size, total_of
from tradewind.api.shapes import ImportErrors
from tradewind.store.views import ImportErrorView

router = APIRouter(prefix="/api/v2/importErrors", tags=["Import Error"])


@router.get("", responses=described(ImportErrors, also=(400,)))
@allow("read", "import_error")
def list_import_errors(
    api: Api, limit: Limit = 50, offset: Offset = 0, filename_pattern: str | None = None, order_by: Order = None
) -> Response:
    """List the files that cannot be imported, with the reason."""
    found = api.reader().import_errors(
        filename_pattern=filename_pattern, limit=page_size(api, limit), offset=offset, order_by=order_by or ("id",)
    )
    return json_response(ImportErrors(found.rows, total_of(found, offset)))


@router.get("/{import_error_id}", responses=described(ImportErrorView, also=(404,)))
@allow("read", "import_error")
def get_import_error(api: Api, import_error_id: Number) -> Response:
    """One import error."""
    return json_response(api.reader().import_error(import_error_id))
