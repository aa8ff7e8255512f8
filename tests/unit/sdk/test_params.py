"""Param and ParamsDict: the schema, the errors, and overriding default values."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tradewind.model.definition import DefinitionDefaults, decode_definition, encode_definition
from tradewind.model.errors import DefinitionError
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.params import Param, ParamsDict

FITTING: list[tuple[Any, dict[str, Any]]] = [
    ("x", {"type": "string"}),
    (5, {"type": "integer"}),
    (5.0, {"type": "integer"}),
    (5, {"type": "number", "minimum": 5, "maximum": 5}),
    (None, {"type": ["null", "string"]}),
    (None, {"type": "null"}),
    (True, {"type": "boolean"}),
    ([1, 2], {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2, "uniqueItems": True}),
    ({"a": 1}, {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 1}}, "additionalProperties": False}),
    ("b", {"enum": ["a", "b"]}),
    (None, {"type": ["string", "null"], "minLength": 3}),
    (7, {"const": 7}),
    ("abc", {"minLength": 3, "maxLength": 3, "pattern": "^a.c$"}),
    ("2024-02-29", {"type": "string", "format": "date"}),
    ("2024-02-29T06:00:00+01:00", {"format": "date-time"}),
    ("2024-02-29T06:00:00Z", {"format": "date-time"}),
    ("06:30:00", {"format": "time"}),
    ("anything", {"format": "multiline", "title": "Shown", "section": "Form"}),
    (4, {"multipleOf": 2, "exclusiveMinimum": 3, "exclusiveMaximum": 5}),
    ("x", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    ("PT36H", {"format": "duration"}),
    ((1, 2), {"type": "array", "prefixItems": [{"const": 1}]}),
    (5, {"$ref": "#/$defs/small", "$defs": {"small": {"maximum": 5}}}),
    ([1, "x"], {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}, {"type": "string"}]}),
    ({"a": 1}, {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False}),
]

FAILING: list[tuple[Any, dict[str, Any], str]] = [
    ("5", {"type": "integer"}, "'5' is not of type integer"),
    (True, {"type": "integer"}, "not of type integer"),
    (True, {"type": "number"}, "not of type number"),
    (5.5, {"type": "integer"}, "not of type integer"),
    (None, {"type": "string"}, "not of type string"),
    (1, {"type": ["null", "string"]}, "null or string"),
    (4, {"minimum": 5}, "less than the minimum of 5"),
    (6, {"maximum": 5}, "greater than the maximum of 5"),
    (5, {"exclusiveMinimum": 5}, "not greater than 5"),
    (5, {"exclusiveMaximum": 5}, "not less than 5"),
    (3, {"multipleOf": 2}, "multiple of 2"),
    ("blu", {"enum": ["red", "blue"]}, "'red', 'blue'. Did you mean 'blue'"),
    (8, {"const": 7}, "only value allowed"),
    ("ab", {"minLength": 3}, "shorter than 3"),
    ("abcd", {"maxLength": 3}, "longer than 3"),
    ("xyz", {"pattern": "^a"}, "does not match the pattern"),
    ("2023-02-29", {"format": "date"}, "not a date like"),
    ("2024-02-29T06:00:00", {"format": "date-time"}, "with a UTC offset"),
    ("25:00", {"format": "time"}, "not a time"),
    ([1, "x"], {"items": {"type": "integer"}}, "item 1: 'x' is not of type integer"),
    ([1], {"minItems": 2}, "fewer than 2"),
    ([1, 2], {"maxItems": 1}, "more than 1"),
    ([1, 1], {"uniqueItems": True}, "twice"),
    ({}, {"required": ["a"]}, "'a' is missing"),
    ({"a": 0}, {"properties": {"a": {"minimum": 1}}}, "'a': 0 is less"),
    ({"b": 0}, {"properties": {"a": {}}, "additionalProperties": False}, "'b' is not among 'a'"),
    ([], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "none of the 2 alternatives"),
    ("a day", {"format": "duration"}, "not a duration like"),
    ("x", {"format": "uuid"}, "not a UUID like"),
    ("x", {"format": "email"}, "not an e-mail address"),
    ("2024-02-29T06", {"format": "date-time"}, "with a UTC offset"),
    ("06:30", {"format": "time"}, "not a time"),
    (1, {"not": {"const": 1}}, "should not be valid under"),
    (1, {"oneOf": [{"minimum": 0}, {"maximum": 5}]}, "valid under each of"),
    (1, {"allOf": [{"minimum": 0}, {"maximum": 0}]}, "greater than the maximum of 0"),
    (7, {"if": {"minimum": 5}, "then": {"multipleOf": 2}}, "multiple of 2"),
    ({"a": 1}, {"dependentRequired": {"a": ["b"]}}, "'b' is a dependency of 'a'"),
    ([1, 2], {"contains": {"type": "string"}}, "does not contain items matching"),
    ({"bc": 1}, {"propertyNames": {"maxLength": 1}}, "'bc' is longer than 1"),
    ({"a": 1}, {"minProperties": 2}, "not have enough properties"),
    ([1, "x"], {"prefixItems": [{"type": "string"}]}, "item 0: 1 is not of type string"),
    (6, {"$ref": "#/$defs/small", "$defs": {"small": {"maximum": 5}}}, "greater than the maximum of 5"),
    (
        ["x"],
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]},
        "item 0: 'x' is not of type integer",
    ),
]


@pytest.mark.parametrize(("value", "schema"), FITTING)
def test_valid_values_are_accepted(value: Any, schema: dict[str, Any]) -> None:
    assert Param(value, **schema).resolve() == value


@pytest.mark.parametrize(("value", "schema", "says"), FAILING)
def test_invalid_values_are_errors(value: Any, schema: dict[str, Any], says: str) -> None:
    with pytest.raises(ParamValidationError, match=says):
        Param(value, **schema).resolve()
    assert Param(value, **schema).resolve(suppress_exception=True) is None


def test_a_param_without_a_default_needs_a_value() -> None:
    param = Param(type="integer")
    with pytest.raises(ParamValidationError, match="no default"):
        param.resolve()
    assert param.resolve(3) == 3


def test_an_unknown_type_is_an_error_of_the_schema() -> None:
    with pytest.raises(DefinitionError, match="Did you mean 'integer'"):
        Param(1, type="interger").resolve()


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"minimum": "x"}, r"the schema\['minimum'\] is not a valid JSON schema"),
        ({"pattern": "("}, r"the schema\['pattern'\] is not a valid JSON schema"),
        ({"$ref": "http://127.0.0.1:9/schema"}, "refers to 'http://127.0.0.1:9/schema', which it does not contain"),
    ],
)
def test_an_invalid_schema_is_an_error_of_the_schema(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        Param(1, **schema).resolve()


def test_keywords_for_the_form_may_have_numbers_as_names() -> None:
    with DAG("d", params={"n": Param(1, enum=[1, 2], values_display={1: "one", 2: "two"})}) as dag:
        pass
    made = to_definition(dag, "f.py", DefinitionDefaults())
    assert made.params[0].schema == {"enum": [1, 2], "values_display": {"1": "one", "2": "two"}}
    assert decode_definition(encode_definition(made)) == made


@pytest.mark.parametrize("schema", [{}, {"type": "integer"}])
def test_jsonschema_is_imported_only_for_a_schema(schema: dict[str, Any]) -> None:
    program = (
        "import sys; from tradewind import DAG, Param\n"
        "assert 'jsonschema' not in sys.modules\n"
        f"assert DAG('d', params={{'n': Param(1, **{schema})}}).params['n'] == 1\n"
        f"assert ('jsonschema' in sys.modules) is {bool(schema)}"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_default_must_be_json() -> None:
    with pytest.raises(ParamValidationError, match="cannot be written as JSON"):
        Param({1, 2})
    with pytest.raises(ParamValidationError, match="cannot be written as JSON"):
        Param(1, enum=range(3))


def test_schema_as_a_dictionary() -> None:
    assert Param(1, schema={"minimum": 1}).schema == {"minimum": 1}


class TestParamsDict:
    def test_items_are_read_as_values(self) -> None:
        params = ParamsDict({"a": 1, "b": Param("x", description="B", type="string")})
        assert dict(params) == {"a": 1, "b": "x"}
        assert params.get_param("b").description == "B"
        with pytest.raises(KeyError, match="no parameter 'c'"):
            params["c"]

    def test_setting_a_known_parameter_checks_the_value_and_keeps_the_schema(self) -> None:
        params = ParamsDict({"n": Param(1, minimum=0)})
        params["n"] = 5
        assert params["n"] == 5
        with pytest.raises(ParamValidationError, match="parameter 'n': -1 is less"):
            params["n"] = -1
        assert params["n"] == 5

    def test_values_of_a_run_override_defaults(self) -> None:
        base = ParamsDict({"n": Param(1, minimum=0), "s": "x"})
        assert dict(base.deep_merge({"n": 2, "extra": [1]})) == {"n": 2, "s": "x", "extra": [1]}
        assert base["n"] == 1
        with pytest.raises(ParamValidationError, match="parameter 'n'"):
            base.deep_merge({"n": -2})

    def test_update_from_params_takes_their_schemas(self) -> None:
        params = ParamsDict({"n": 1})
        params.update(ParamsDict({"n": Param(type="integer", minimum=5)}))
        with pytest.raises(ParamValidationError, match="no default"):
            params["n"]
        params.update({"n": 6})
        assert params.validate() == {"n": 6}

    def test_validate_names_the_parameter(self) -> None:
        with pytest.raises(ParamValidationError, match=r"parameter 'b': .* not of type"):
            ParamsDict({"a": 1, "b": Param(1, type="string")}).validate()


class TestDagParam:
    def test_conf_of_the_run_wins_over_the_default(self) -> None:
        dag = DAG("d", params={"n": 1})
        param = dag.param("n")
        assert param.resolve({"dag_run": SimpleNamespace(conf={"n": 9}), "params": {"n": 1}}) == 9
        assert param.resolve({"dag_run": SimpleNamespace(conf={}), "params": {"n": 2}}) == 2
        assert param.resolve({}) == 1
        assert str(param) == "{{ params['n'] }}"

    def test_dag_param_can_have_its_own_default(self) -> None:
        dag = DAG("d")
        dag.param("n", 4)
        dag.param("required")
        assert dag.params["n"] == 4
        assert not dag.params.get_param("required").has_value

    def test_a_task_has_the_params_of_its_dag(self) -> None:
        """Custom operators read `self.params`, also in `__init__`; a conf changes what they read in a run."""
        seen: list[Any] = []

        class Reads(BaseOperator):
            def __init__(self, x: int = 0, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                seen.append(dict(self.params))

            def execute(self, context: Any) -> Any:
                return dict(self.params)

        with DAG("d", schedule=None, params={"p": 1, "q": Param(2, type="integer")}) as dag:
            Reads(task_id="plain")
            Reads(task_id="own", params={"q": 5, "r": 6})
            Reads.partial(task_id="mapped", params={"r": 7}).expand(x=[1])
        assert seen == [{"p": 1, "q": 2}, {"p": 1, "q": 5, "r": 6}]
        tested = dag.test(run_conf={"p": 9, "other": 1}, say=lambda line: None)
        assert tested.xcom("plain") == {"p": 9, "q": 2}
        assert tested.xcom("own") == {"p": 9, "q": 5, "r": 6}
        assert tested.xcom("mapped") == [{"p": 9, "q": 2, "r": 7}]
