"""XComArg: dependencies when the file is imported, values when the task runs."""

from __future__ import annotations

from typing import Any

import pytest

from tradewind.sdk.dag import DAG
from tradewind.sdk.exceptions import XComNotFound
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.sdk.xcom_arg import XComArg


class Take(BaseOperator):
    template_fields = ("value",)

    def __init__(self, *, value: Any = None, other: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.value = value
        self.other = other


class Box:
    template_fields = ("inside",)

    def __init__(self, inside: Any) -> None:
        self.inside = inside


class FakeTaskInstance:
    """Holds values by (task id, key)."""

    def __init__(self, values: dict[tuple[str, str], Any]) -> None:
        self.values = values

    def xcom_pull(self, task_ids: str, key: str, default: Any) -> Any:
        return self.values.get((task_ids, key), default)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda arg: arg,
        lambda arg: [arg],
        lambda arg: ({"deep": [1, (arg,)]},),
        lambda arg: {"x": {"y": arg["key"]}},
        lambda arg: Box([arg]),
    ],
)
def test_a_result_in_a_template_field_creates_a_dependency(wrap: Any) -> None:
    with DAG("d"), TaskGroup("g"):
        first = Take(task_id="first")
        second = Take(task_id="second", value=wrap(first.output))
    assert second.upstream_list == [first]


def test_a_result_in_another_attribute_creates_no_dependency() -> None:
    with DAG("d"):
        first = Take(task_id="first")
        assert Take(task_id="second", other=first.output).upstream_list == []


def test_a_result_that_is_set_later_is_found_when_the_dag_is_validated() -> None:
    with DAG("d") as dag:
        first, second = Take(task_id="first"), Take(task_id="second")
        second.value = first.output
    dag.validate()
    assert second.upstream_list == [first]


def test_dependencies_of_results() -> None:
    with DAG("d") as dag:
        a, b, c, d = (Take(task_id=name) for name in "abcd")
        a.output >> b.output >> c
        [a.output, b] >> d
        b << d.output
    assert {f"{up}{t.task_id}" for t in dag.tasks for up in t.upstream_task_ids} == {"ab", "bc", "ad", "bd", "db"}


def test_resolve_reads_the_xcom() -> None:
    with DAG("d"):
        task = Take(task_id="t")
    context = {"ti": FakeTaskInstance({("t", "return_value"): 5, ("t", "nothing"): None})}
    assert task.output.resolve(context) == 5
    assert task.output["nothing"].resolve(context) is None
    with pytest.raises(XComNotFound, match="multiple_outputs=True"):
        task.output["absent"].resolve(context)
    assert task.output.resolve({"ti": FakeTaskInstance({})}) is None


def test_a_result_in_a_string_becomes_a_template() -> None:
    with DAG("d"):
        task = Take(task_id="t")
    assert f"{task.output['k']}" == "{{ task_instance.xcom_pull(task_ids='t', dag_id='d', key='k') }}"
    assert "dag_id" not in str(Take(task_id="free").output)


def test_iterating_or_indexing_a_result_is_an_error() -> None:
    task = Take(task_id="t")
    with pytest.raises(TypeError, match="iterated over"):
        list(task.output)
    with pytest.raises(TypeError, match="indexed with 0"):
        task.output[0]  # type: ignore[index]
    for call in (task.output.map, task.output.zip, task.output.concat):
        with pytest.raises(TypeError, match="not None"):
            call(None)  # type: ignore[arg-type]


def test_results_are_equal_if_task_and_key_are_equal() -> None:
    task = Take(task_id="t")
    assert task.output == XComArg(task)
    assert task.output != task.output["k"]
    assert len({task.output, XComArg(task)}) == 1
