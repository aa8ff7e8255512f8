"""The OpenAPI document: FastAPI's, with the shapes of the answers that msgspec knows."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tradewind.api.shapes import ANSWERS
from tradewind.store.views import Shape

_REFERENCE = "#/components/schemas/{name}"


def document(app: FastAPI) -> dict[str, Any]:
    """Built when it is first asked for."""
    if app.openapi_schema is None:
        found = get_openapi(
            title="Tradewind",
            version=app.version,
            description="Airflow's REST API v2, served by Tradewind.",
            routes=app.routes,
        )
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        schemas.update(schemas_of_answers())
        found["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
        found["security"] = [{"bearer": []}]
        app.openapi_schema = found
    return app.openapi_schema


def schemas_of_answers() -> dict[str, Any]:
    """JSON schemas of all shapes, by name."""
    _, schemas = msgspec.json.schema_components([*ANSWERS, *Shape.__subclasses__()], ref_template=_REFERENCE)
    return schemas
