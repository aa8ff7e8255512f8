"""No request may end in a 500, and every answer of 422 has the form that the OpenAPI document declares.

Requests are made from the OpenAPI document itself: each parameter and each field of a body gets values of its type, and extreme
ones that no client should send.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.unit.api.conftest import World
from tradewind.api.app import create_app
from tradewind.api.config import ApiConfig
from tradewind.api.openapi import document

_NOWHERE = ApiConfig(database="", scheduler_socket="", logs="", accounts="", passwords="", jwt_key="")
DOCUMENT = document(create_app(_NOWHERE))
BEYOND = (2**63, -(2**63) - 1, 2**64, 10**30, -(10**30))
WITHIN = (0, 1, -1, 2, 2**31, 2**63 - 1, -(2**63))
TEXTS = ("sales", "r1", "t0", "~", "dags", "", ".", "x\x00y", "ä/ö", "9" * 30, "*", "(")
TEXTS_OF_BODIES = (*TEXTS, "\ud800", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
MOMENTS = ("2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "tomorrow", "", "9" * 30)

_integers = st.sampled_from((*WITHIN, *BEYOND))
_any_json = st.recursive(
    st.one_of(st.none(), st.booleans(), _integers, st.sampled_from(TEXTS_OF_BODIES), st.just(float("nan")), st.just(1e308)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(TEXTS_OF_BODIES), inner, max_size=2)),
    max_leaves=4,
)


def operations() -> Iterator[tuple[str, str]]:
    for path, methods in DOCUMENT["paths"].items():
        for method in methods:
            if not path.startswith("/auth") and not path.endswith("/wait"):  # which waits for the end of a run
                yield method.upper(), path


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return schema if reference is None else DOCUMENT["components"]["schemas"][reference.rsplit("/", 1)[1]]


def in_address(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Values of a parameter of a path or a query, as text."""
    kinds = {one.get("type") for one in (schema, *schema.get("anyOf", ()))}
    if "integer" in kinds:
        return st.one_of(_integers.map(str), st.sampled_from(("x", "1.5", "9" * 5000)))
    if "boolean" in kinds:
        return st.sampled_from(("true", "0", "maybe"))
    if any(one.get("format") == "date-time" for one in (schema, *schema.get("anyOf", ()))):
        return st.sampled_from(MOMENTS)
    return st.sampled_from(TEXTS)


def in_body(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a field of a body: mostly of its type, sometimes any JSON."""
    schema = resolved(schema)
    if "anyOf" in schema:
        good = st.one_of(*(in_body(one, depth + 1) for one in schema["anyOf"]))
    elif "enum" in schema or "const" in schema:
        good = st.sampled_from(schema.get("enum") or [schema["const"]])
    elif schema.get("type") == "integer":
        good = _integers
    elif schema.get("type") == "boolean":
        good = st.booleans()
    elif schema.get("type") == "null":
        good = st.none()
    elif schema.get("type") == "array" and "prefixItems" in schema:
        good = st.tuples(*(in_body(one, depth + 1) for one in schema["prefixItems"])).map(list)
    elif schema.get("type") == "array":
        good = st.lists(in_body(schema.get("items", {}), depth + 1), max_size=2)
    elif schema.get("type") == "object" and "properties" in schema:
        fields = {name: in_body(one, depth + 1) for name, one in schema["properties"].items()}
        needed = {name: fields[name] for name in schema.get("required", ())}
        rest = {name: one for name, one in fields.items() if name not in needed}
        good = st.fixed_dictionaries(needed, optional=rest)
    elif schema.get("type") == "object":
        good = st.dictionaries(st.sampled_from(TEXTS_OF_BODIES), _any_json, max_size=2)
    else:
        good = st.sampled_from(MOMENTS if schema.get("format") == "date-time" else TEXTS_OF_BODIES)
    return st.one_of(good, good, good, _any_json)


def assert_declared(method: str, path: str, answer: Any) -> None:
    """A 422 has its declared form: a list of {loc, msg, type}."""
    declared = DOCUMENT["paths"][path][method.lower()]["responses"]
    assert "422" in declared, f"{method} {path} answers 422, which its description does not name"
    assert declared["422"]["content"]["application/json"]["schema"]["$ref"].endswith("/HTTPValidationError")
    detail = answer.json()["detail"]
    assert isinstance(detail, list)
    assert detail
    for one in detail:
        assert {"loc", "msg", "type"} <= set(one) <= {"loc", "msg", "type", "input", "ctx"}
        assert "input" not in one or one["loc"][0] in ("query", "path"), "a 422 does not repeat the body"
        assert isinstance(one["msg"], str)
        assert isinstance(one["type"], str)
        assert all(isinstance(place, str | int) for place in one["loc"])


@pytest.mark.parametrize(("method", "path"), sorted(operations()))
def test_random_requests_cause_no_internal_error(world: World, method: str, path: str) -> None:
    world.dag()
    world.run()
    operation = DOCUMENT["paths"][path][method.lower()]
    parameters = operation.get("parameters", [])
    content = operation.get("requestBody", {}).get("content", {})
    body = in_body(content["application/json"]["schema"]) if content else st.none()

    @settings(
        max_examples=8,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def sweep(data: st.DataObject) -> None:
        address, query, headers = path, [], {}
        for one in parameters:
            if one["in"] == "path":
                value = data.draw(in_address(one["schema"]), label=one["name"])
                address = address.replace("{" + one["name"] + "}", quote(value, safe="") or "-")
            elif one["in"] == "header":
                headers[one["name"]] = quote(data.draw(in_address(one["schema"]), label=one["name"]))
            elif one.get("required") or data.draw(st.integers(0, 2)) == 0:
                query.append((one["name"], data.draw(in_address(one["schema"]), label=one["name"])))
        more: dict[str, Any] = {"params": query} if query else {}
        if content:
            more["content"] = json.dumps(data.draw(body, label="body"))
            headers["Content-Type"] = "application/json"
        more["headers"] = headers
        answer = world.request(method, address, **more)
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        # clients remove a segment ".", and a "/" in an id splits a segment: then another route responds
        if "/./" not in f"{address}/" and "%2F" not in address:
            assert str(answer.status_code) in operation["responses"], f"{method} {path}: {answer.status_code} {answer.text}"
        if answer.status_code == 422:
            assert_declared(method, path, answer)

    sweep()


@pytest.mark.parametrize(("method", "path"), sorted(one for one in operations() if one[0] != "GET"))
def test_every_route_that_changes_something_declares_its_errors(method: str, path: str) -> None:
    """401: no valid token. 403: no permission. 503: no scheduler."""
    assert {"401", "403", "503"} <= set(DOCUMENT["paths"][path][method.lower()]["responses"])


def test_every_integer_of_a_request_has_bounds_that_the_database_can_hold() -> None:
    """The bounds are in the OpenAPI document, so that clients know them."""

    def unbounded(where: str, schema: dict[str, Any]) -> Iterator[str]:
        schema = resolved(schema)
        if schema.get("type") == "integer":
            low = schema.get("minimum", schema.get("exclusiveMinimum"))
            high = schema.get("maximum", schema.get("exclusiveMaximum"))
            if low is None or high is None or low < -(2**63) or high > 2**63:  # FastAPI writes bounds as floats
                yield where
        for one in (*schema.get("anyOf", ()), *schema.get("prefixItems", ())):
            yield from unbounded(where, one)
        if isinstance(schema.get("items"), dict):
            yield from unbounded(where, schema["items"])
        for name, one in schema.get("properties", {}).items():
            yield from unbounded(f"{where}.{name}", one)

    found: list[str] = []
    for method, path in operations():
        operation = DOCUMENT["paths"][path][method.lower()]
        for one in operation.get("parameters", []):
            found += unbounded(f"{method} {path} {one['name']}", one["schema"])
        for content in operation.get("requestBody", {}).get("content", {}).values():
            found += unbounded(f"{method} {path} body", content["schema"])
    assert found == []


@pytest.mark.parametrize(
    "path",
    [
        "backfills/{}",
        "callbacks/{}",
        "assets/{}",
        "assets/aliases/{}",
        "eventLogs/{}",
        "importErrors/{}",
        "dags/sales/dagVersions/{}",
        "dags/sales/dagRuns/r1/taskInstances/t0/{}",
        "dags/sales/dagRuns/r1/taskInstances/t0/tries/{}",
        "dags/sales/dagRuns/r1/taskInstances/t0/logs/{}",
    ],
)
def test_a_number_of_more_than_64_bits_is_404_or_422(world: World, path: str) -> None:
    world.dag()
    world.run()
    for number in (2**63, -(2**63) - 1, 10**40):
        assert world.get(f"/api/v2/{path.format(number)}").status_code in (404, 422)


@pytest.mark.parametrize(
    "text",
    ['{"logical_date": null, "conf": {"deep": [{"n": 18446744073709551616}]}}', '{"logical_date": null, "note": "\\ud800"}'],
)
def test_an_unstorable_value_in_a_body_is_422_with_its_place(world: World, text: str) -> None:
    world.dag()
    answer = world.request("POST", "/api/v2/dags/sales/dagRuns", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    place = answer.json()["detail"][0]["loc"]
    assert place in (["body", "conf", "deep", 0, "n"], ["body", "note"])


def test_a_422_does_not_repeat_the_body(world: World) -> None:
    """The body may contain a password, which would then be in the log of the client."""
    body = {"connection_id": "db", "password": "very-secret-word"}
    answer = world.request("POST", "/api/v2/connections", json=body)
    assert answer.status_code == 422
    assert "very-secret-word" not in answer.text
