"""`airflow.www.validators`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.www.validators import GreaterEqualThan, ReadOnly, ValidJson, ValidKey


def field(data: Any) -> Any:
    return SimpleNamespace(data=data, flags=SimpleNamespace())


def test_json() -> None:
    ValidJson()(None, field('{"a": 1}'))
    ValidJson()(None, field(None))
    with pytest.raises(ValueError, match="JSON Validation Error"):
        ValidJson()(None, field("{"))


def test_a_key() -> None:
    ValidKey()(None, field("a.b-c_d"))
    with pytest.raises(ValueError, match="a b"):
        ValidKey()(None, field("a b"))


def test_the_value_of_another_field() -> None:
    check = GreaterEqualThan("start")
    check({"start": field(1)}, field(1))
    with pytest.raises(ValueError, match="start"):
        check({"start": field(2)}, field(1))


def test_read_only() -> None:
    found = field("x")
    ReadOnly()(None, found)
    assert found.flags.readonly
