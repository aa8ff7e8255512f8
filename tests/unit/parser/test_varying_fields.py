"""Which fields of a DAG differ between two readings of an unchanged file."""

from __future__ import annotations

from typing import Any

from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.parser.parse_result import ReadDag
from tradewind.parser.varying_fields import varying_fields


def read(dag_id: str = "a", **fields: Any) -> ReadDag:
    data = encode_definition(DagDefinition(dag_id, **fields))
    return ReadDag(dag_id, data, version_hash(data), "", "a.py")


def test_the_key_of_a_value_is_named() -> None:
    one = read(default_args={"retries": 1, "made": "10:00"}, tasks=(TaskDefinition("t", params={"day": 1}),))
    two = read(default_args={"retries": 1, "made": "10:01"}, tasks=(TaskDefinition("t", params={"day": 2}),))
    assert varying_fields([one], [two]) == ["default_args.made of DAG a", "tasks.t.params.day of DAG a"]


def test_a_list_of_another_length_and_a_missing_value_are_named() -> None:
    one, two = read(tags=("x",), start_date=1), read(tags=("x", "y"))
    assert varying_fields([one], [two]) == ["start_date of DAG a", "tags of DAG a"]


def test_at_most_three_fields_are_named() -> None:
    many = [[read(dag_id, start_date=number) for dag_id in "abcde"] for number in (1, 2)]
    assert varying_fields(*many) == [f"start_date of DAG {dag_id}" for dag_id in "abc"]


def test_the_same_dags_and_other_dags_have_no_fields_to_name() -> None:
    assert varying_fields([read()], [read()]) == []
    assert varying_fields([read("a")], [read("b")]) == []
