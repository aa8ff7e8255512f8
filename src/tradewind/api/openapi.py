"""The OpenAPI document: FastAPI's, with the schemas of the responses, which are msgspec structs."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tradewind.api.shapes import RESPONSE_SHAPES
from tradewind.store.views import Shape

_REFERENCE = "#/components/schemas/{name}"


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, built at the first call."""
    if app.openapi_schema is None:
        found = get_openapi(
            title="Tradewind",
            version=app.version,
            description="Airflow's REST API v2, served by Tradewind.",
            routes=app.routes,
        )
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        schemas.update(response_schemas())
        found["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
        found["security"] = [{"bearer": []}]
        app.openapi_schema = found
    return app.openapi_schema


def response_schemas() -> dict[str, Any]:
    """JSON schemas of all responses, by name."""
    _, schemas = msgspec.json.schema_components([*RESPONSE_SHAPES, *Shape.__subclasses__()], ref_template=_REFERENCE)
    return schemas
