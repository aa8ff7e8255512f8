"""Dependencies: operators, lists, groups, labels, chains."""

from __future__ import annotations

import pytest

from tradewind.model.errors import CycleError, DefinitionError
from tradewind.sdk.dag import DAG
from tradewind.sdk.dependencies import Label, chain, chain_linear, cross_downstream
from tradewind.sdk.operator import BaseOperator


def edges(dag: DAG) -> set[str]:
    return {f"{up}>{task.task_id}" for task in dag.tasks for up in task.upstream_task_ids}


def some(names: str) -> list[BaseOperator]:
    return [BaseOperator(name) for name in names]


def test_all_ways_to_write_a_dependency() -> None:
    with DAG("d") as dag:
        a, b, c, d, e, f = some("abcdef")
        a >> b << c
        [a, b] >> d
        e << [a, b]
        [f] << e
        b.set_downstream([c])
    assert edges(dag) == {"a>b", "c>b", "a>d", "b>d", "a>e", "b>e", "e>f", "b>c"}


def test_a_shift_returns_its_right_operand() -> None:
    with DAG("d"):
        a, b, c = some("abc")
        assert (a >> b) is b
        assert (a << [c]) == [c]


def test_a_repeated_dependency_counts_once() -> None:
    with DAG("d"):
        a, b = some("ab")
        a >> b
        a >> b
    assert b.upstream_list == [a]


def test_a_task_without_a_dag_joins_the_dag_of_the_other_task() -> None:
    with DAG("d") as dag:
        a = BaseOperator("a")
    b = BaseOperator("b")
    a >> b
    assert b.dag is dag


def test_dependencies_without_a_dag_or_between_two_dags_are_errors() -> None:
    with pytest.raises(DefinitionError, match="in no DAG"):
        BaseOperator("a") >> BaseOperator("b")
    a = BaseOperator("a", dag=DAG("one"))
    b = BaseOperator("b", dag=DAG("two"))
    with pytest.raises(DefinitionError, match="connects DAG 'one' with DAG 'two'"):
        a >> b


@pytest.mark.parametrize("wrong", ["b", 7, None, ["b"]])
def test_a_dependency_on_another_object_is_an_error(wrong: object) -> None:
    with DAG("d"):
        a = BaseOperator("a")
        with pytest.raises(DefinitionError, match="a dependency can be set on"):
            a >> wrong


def test_labels_of_dependencies() -> None:
    with DAG("d") as dag:
        a, b, c, d, e = some("abcde")
        a >> Label("yes") >> b
        c << Label("no") << a
        [b, c] >> Label("end") >> [d, e]
    assert edges(dag) == {"a>b", "a>c", "b>d", "b>e", "c>d", "c>e"}
    assert dag.get_edge_info("a", "b") == {"label": "yes"}
    assert dag.get_edge_info("a", "c") == {"label": "no"}
    assert dag.get_edge_info("c", "e") == {"label": "end"}
    assert dag.get_edge_info("b", "a") == {}


def test_chain_connects_tasks_and_lists() -> None:
    with DAG("d") as dag:
        a, b, c, d, e, f = some("abcdef")
        chain(a, [b, c], [d, e], f)
        with pytest.raises(DefinitionError, match="2 and 3"):
            chain([a, b], [c, d, e])
    assert edges(dag) == {"a>b", "a>c", "b>d", "c>e", "d>f", "e>f"}


def test_chain_linear_and_cross_downstream_connect_every_pair() -> None:
    with DAG("d") as dag:
        a, b, c, d, e = some("abcde")
        chain_linear(a, [b, c], [], [d, e])
        with pytest.raises(DefinitionError, match="at least two"):
            chain_linear(a, [])
    assert edges(dag) == {"a>b", "a>c", "b>d", "b>e", "c>d", "c>e"}
    with DAG("x") as dag:
        a, b, c, d = some("abcd")
        cross_downstream([a, b], [c, d])
    assert edges(dag) == {"a>c", "a>d", "b>c", "b>d"}


class TestCycles:
    @pytest.mark.spec("S1")
    def test_the_error_lists_the_tasks_of_the_cycle(self) -> None:
        with DAG("d") as dag:
            start, a, b, c, end = some("sabce")
            start >> a >> b >> c >> a
            c >> end
        with pytest.raises(CycleError, match=r"contain a cycle: a >> b >> c >> a$"):
            dag.validate()

    def test_a_task_that_depends_on_itself_is_an_error(self) -> None:
        with DAG("d") as dag:
            a = BaseOperator("a")
            a >> a
        with pytest.raises(CycleError, match=r"a >> a$"):
            dag.topological_sort()

    @pytest.mark.spec("S1")
    def test_every_task_comes_after_its_upstream(self) -> None:
        with DAG("d") as dag:
            tasks = some("hgfedcba")
            chain(*reversed(tasks))
            tasks[-1] >> tasks[0]
        order = [task.task_id for task in dag.topological_sort()]
        assert order == list("abcdefgh")
