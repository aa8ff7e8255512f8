"""Answers and bodies have the fields that Airflow's clients insist on (`airflow_fields.json`)."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.unit.api.conftest import World
from tradewind.api.openapi import response_schemas
from tradewind.api.routes.backfills import NewBackfill
from tradewind.api.routes.connections import NewConnection
from tradewind.api.routes.dag_runs import Trigger
from tradewind.api.routes.dags import DagPatch
from tradewind.api.routes.pools import NewPool, PoolPatch
from tradewind.api.routes.run_edits import ClearRun, RunPatch
from tradewind.api.routes.task_edits import Clear, TaskPatch
from tradewind.api.routes.variables import NewVariable

FIELDS = json.loads((Path(__file__).parent / "airflow_fields.json").read_text())
BODIES: dict[str, type[BaseModel]] = {
    model.__name__: model
    for model in (
        Trigger,
        Clear,
        ClearRun,
        RunPatch,
        TaskPatch,
        NewBackfill,
        NewPool,
        PoolPatch,
        NewVariable,
        NewConnection,
        DagPatch,
    )
}


def nullable(schema: dict[str, Any]) -> bool:
    return any(one.get("type") == "null" for one in schema.get("anyOf", []))


@pytest.mark.parametrize("name", sorted(FIELDS["answers"]))
def test_a_response_has_all_fields_and_nulls_only_where_clients_accept_them(name: str) -> None:
    schema, theirs = response_schemas()[name], FIELDS["answers"][name]
    ours = schema["properties"]
    assert set(theirs["required"]) <= set(ours)
    assert set(theirs["required"]) <= set(schema.get("required", [])) | {"team_name"}
    for field in (*theirs["required"], *theirs["optional"]):
        if field in ours and nullable(ours[field]):
            assert field in theirs["nullable"], f"{name}.{field} may be null here and not in Airflow"


@pytest.mark.parametrize("name", sorted(FIELDS["bodies"]))
def test_a_body_accepts_the_fields_of_clients_and_requires_no_others(name: str) -> None:
    schema, theirs = BODIES[name].model_json_schema(by_alias=True), FIELDS["bodies"][name]
    assert set(schema["properties"]) == {*theirs["required"], *theirs["optional"]}
    assert set(schema.get("required", [])) == set(theirs["required"])


def test_the_openapi_document_describes_every_response(world: World) -> None:
    document = world.bare("GET", "/openapi.json").json()
    known = document["components"]["schemas"]
    references = set()

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                references.add(node["$ref"].removeprefix("#/components/schemas/"))
            for value in node.values():
                collect(value)
        elif isinstance(node, list):
            for value in node:
                collect(value)

    collect(document)
    assert references <= set(known)
    assert "DagView" in references
    assert document["security"] == [{"bearer": []}]


def test_the_page_of_the_reference_is_up_to_date() -> None:
    """`make docs` writes it again."""
    docs = Path(__file__).parents[3] / "docs"
    generated = runpy.run_path(str(docs / "generate_api.py"))["page"]()
    assert (docs / "reference" / "api.md").read_text(encoding="utf-8") == generated


def test_the_documentation_page_names_every_operation_and_runs_no_script(world: World) -> None:
    page = world.bare("GET", "/docs")
    document = world.bare("GET", "/openapi.json").json()
    assert all(path in page.text for path in document["paths"])
    assert "<script" not in page.text
    assert "script" not in page.headers["content-security-policy"]
