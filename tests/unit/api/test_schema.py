"""Schemathesis over the whole API: no internal error, and no answer that the OpenAPI document does not describe.

Requests are made from the document, valid and invalid ones. Three of four name objects that exist (`full_world.py`), so that
answers have content that can be compared with its schema. The requests are the same in each run.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok

from tests.unit.api import full_world
from tests.unit.api.conftest import World
from tradewind.api.app import create_app
from tradewind.api.config import ApiConfig
from tradewind.api.openapi import document

_NOWHERE = ApiConfig(database="", scheduler_socket="", logs="", accounts="", passwords="", jwt_key="")
DOCUMENT = document(create_app(_NOWHERE))


def without_tuples(schema: Any) -> Any:
    """The same document with lists of a fixed length in place of tuples, which schemathesis cannot check in answers."""
    if isinstance(schema, list):
        return [without_tuples(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: without_tuples(one) for name, one in schema.items()}
    if "prefixItems" in found:
        found["items"] = {"anyOf": found.pop("prefixItems")}
    return found


SCHEMA = schemathesis.openapi.from_dict(without_tuples(DOCUMENT))
OPERATIONS = sorted((one.ok() for one in SCHEMA.get_all_operations() if isinstance(one, Ok)), key=lambda one: str(one.label))
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = {"/api/tradewind/v1/events"}
"""Streams without an end."""
EXAMPLES = [2, pytest.param(10, marks=pytest.mark.long)]
"""Requests for each operation: few in the suite, more in the tests that take long."""


NOT_THERE = {
    "/api/v2/connections/enqueue-test",  # a test that was started
    "/api/v2/dagSources/{dag_id}",  # the file
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/externalLogUrl/{try_number}",
    "/auth/oidc/login",  # an identity provider
    "/auth/oidc/callback",
}
"""GET of something that `full_world` does not have."""

OTHER_VALUES: dict[str, dict[str, Any]] = {
    "wait": {"dag_run_id": "r0"},  # the other run never ends
    "queuedEvents": {"dag_id": "report"},
    "hitlDetails": {"task_id": "ask"},
    "listMapped": {"task_id": "many"},
}
"""Word in a path → its own values for parameters."""


def values_for(path: str, known: dict[str, Any]) -> dict[str, Any]:
    found = dict(known)
    for word, values in OTHER_VALUES.items():
        if word in path.split("/"):
            found |= values
    return found


def request_of(case: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an HTTP request. `known`: values for the parameters of the path."""
    given = case.as_transport_kwargs(base_url="http://tradewind.test")
    path = case.path
    for name, value in {**case.path_parameters, **{n: v for n, v in known.items() if n in case.path_parameters}}.items():
        path = path.replace("{" + name + "}", str(value))
    headers = {name: str(value) for name, value in (case.headers or {}).items() if name.lower() != "authorization"}
    more: dict[str, Any] = {"params": given.get("params") or {}, "headers": headers}
    if "json" in given:
        more["content"] = json.dumps(given["json"])
        more["headers"]["Content-Type"] = "application/json"
    elif isinstance(given.get("data"), dict):  # a form
        more["content"] = urlencode(given["data"], doseq=True)
        more["headers"]["Content-Type"] = case.media_type
    elif given.get("data") is not None:
        more["content"] = given["data"]
        more["headers"]["Content-Type"] = case.media_type or "application/json"
    return {"method": case.method, "path": path, **more}


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize(
    "operation", [one for one in OPERATIONS if one.path not in ENDLESS], ids=lambda one: str(one.label).replace(" ", "-")
)
def test_every_answer_is_in_the_schema(world: World, operation: Any, examples: int) -> None:
    known = values_for(operation.path, full_world.fill(world))

    @seed(12)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def sweep(data: st.DataObject) -> None:
        mode = data.draw(st.sampled_from((GenerationMode.POSITIVE, GenerationMode.POSITIVE, GenerationMode.NEGATIVE)))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        exists = data.draw(st.integers(0, 3)) > 0
        answer = world.request(**request_of(case, known if exists else {}))
        if answer.status_code == 503 and "503" in DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]:
            return
        case.validate_response(answer, checks=[not_a_server_error, *CHECKS])

    sweep()


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one.method == "get" and one.path not in ENDLESS | NOT_THERE],
    ids=lambda one: str(one.path),
)
def test_what_exists_is_answered_in_the_schema(world: World, operation: Any) -> None:
    """So that the sweep above compares contents, not only errors, with their schemas."""
    known = values_for(operation.path, full_world.fill(world))
    names = re.findall(r"\{(\w+)\}", operation.path)
    case = operation.Case(path_parameters={name: known[name] for name in names})
    query = {"search": {"q": "sales"}, "wait": {"interval": "1"}}.get(operation.path.rpartition("/")[2], {})
    answer = world.get(case.formatted_path, params=query)
    assert answer.status_code in (200, 307), answer.text
    case.validate_response(answer, checks=CHECKS)
