"""The web page recognises why a value is refused by the templates of `ui/src/i18n/refusals.json`, to show it in its language."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.conftest import World
from tradewind.model.errors import Conflict
from tradewind.model.ids import check_run_id
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.param_schema import check_schema
from tradewind.sdk.params import NOTSET, Param, ParamsDict

TEMPLATES: dict[str, str] = json.loads(
    (Path(__file__).parents[3] / "ui" / "src" / "i18n" / "refusals.json").read_text(encoding="utf-8")
)


def codes(text: str) -> set[str]:
    """The codes of all templates that fit a text."""
    return {
        code
        for code, template in TEMPLATES.items()
        if re.fullmatch(
            "".join(".+" if at % 2 else re.escape(part) for at, part in enumerate(re.split(r"(\{\w+\})", template))), text
        )
    }


POOL = "/api/v2/pools"
CONNECTION = {"connection_id": "ab", "conn_type": "http"}


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", POOL, {"slots": 1}, "missing"),
        ("POST", POOL, {"name": "", "slots": 1}, "empty"),
        ("POST", POOL, {"name": 3, "slots": 1}, "text"),
        ("POST", POOL, {"name": "n" * 300, "slots": 1}, "long"),
        ("POST", POOL, {"name": "a", "slots": "many"}, "integerText"),
        ("POST", POOL, {"name": "a", "slots": 1.5}, "integerText"),
        ("POST", POOL, {"name": "a", "slots": None}, "integer"),
        ("POST", POOL, {"name": "a", "slots": -5}, "least"),
        ("POST", POOL, {"name": "a", "slots": 1, "include_deferred": "perhaps"}, "booleanText"),
        ("POST", POOL, {"name": "a", "slots": 1, "more": 1}, "unknown"),
        ("POST", "/api/v2/connections", {**CONNECTION, "connection_id": "a b"}, "pattern"),
        ("POST", "/api/v2/connections", {**CONNECTION, "port": 99_999_999}, "most"),
        ("POST", "/api/v2/connections", {**CONNECTION, "extra": "[1"}, "value"),
        ("POST", "/api/v2/dags/a/dagRuns", {"logical_date": "x"}, "moment"),
        ("POST", "/api/v2/dags/a/dagRuns", {"logical_date": None, "conf": []}, "object"),
        ("POST", "/api/tradewind/v1/me/tokens", {"label": "a", "days": -1}, "above"),
        ("POST", "/api/tradewind/v1/me/tokens", {"label": "a", "days": "x"}, "numberText"),
    ],
)
def test_the_page_knows_why_a_value_is_refused(world: World, method: str, path: str, body: dict[str, Any], code: str) -> None:
    found = world.request(method, path, json=body)
    assert found.status_code == 422, found.text
    texts = [one["msg"] for one in found.json()["detail"]]
    assert any(code in codes(text) for text in texts), texts


@pytest.mark.parametrize(
    ("value", "schema", "code"),
    [
        (1, {"type": "string"}, "paramType"),
        ("z", {"enum": ["a", "b"]}, "paramEnum"),
        (1, {"minimum": 2}, "paramLeast"),
        (3, {"maximum": 2}, "paramMost"),
        (1, {"exclusiveMinimum": 1}, "paramAbove"),
        (1, {"exclusiveMaximum": 1}, "paramBelow"),
        (3, {"multipleOf": 2}, "paramStep"),
        ("a", {"minLength": 2}, "paramShort"),
        ("abc", {"maxLength": 2}, "paramLong"),
        ("a", {"pattern": "^b"}, "paramPattern"),
        ([], {"minItems": 1}, "paramFew"),
        ([1, 2], {"maxItems": 1}, "paramMany"),
        ([1, 1], {"uniqueItems": True}, "paramTwice"),
    ],
)
def test_the_page_knows_why_a_param_is_refused(value: Any, schema: dict[str, Any], code: str) -> None:
    with pytest.raises(ParamValidationError) as caught:
        check_schema(value, schema)
    assert codes(str(caught.value)) == {code}


def test_the_page_knows_the_name_of_a_refused_param_and_refused_run_ids() -> None:
    with pytest.raises(ParamValidationError) as caught:
        ParamsDict({"day": Param(NOTSET, type="string")}).validate()
    assert codes(str(caught.value)) >= {"param"}
    assert codes(str(caught.value).partition(": ")[2]) == {"paramNone"}
    for run_id, code in (("n" * 300, "runIdLong"), ("a/b", "runIdLetters")):
        with pytest.raises(Conflict) as refused:
            check_run_id(run_id)
        assert codes(str(refused.value)) == {code}
