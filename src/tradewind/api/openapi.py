"""The OpenAPI document: FastAPI's, with the schemas of the responses, which are msgspec structs."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tradewind.api.responses import DESCRIBED_SHAPES
from tradewind.api.shapes import Problem
from tradewind.store.views import Shape

_REFERENCE = "#/components/schemas/{name}"
_PROBLEM = {"application/json": {"schema": {"$ref": _REFERENCE.format(name="Problem")}}}


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
        for operation in (one for path in found["paths"].values() for one in path.values()):
            if "requestBody" in operation:  # of the middleware
                operation["responses"]["413"] = {"description": "The body is too large.", "content": _PROBLEM}
        found["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
        found["security"] = [{"bearer": []}]
        app.openapi_schema = found
    return app.openapi_schema


def response_schemas() -> dict[str, Any]:
    """JSON schemas of all responses, by name. The routes must have been imported."""
    shapes = [Problem, *DESCRIBED_SHAPES.values(), *Shape.__subclasses__()]
    _, schemas = msgspec.json.schema_components(shapes, ref_template=_REFERENCE)
    return schemas
