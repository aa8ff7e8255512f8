"""Task groups: ids, nesting, dependencies of groups."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tradewind.model.definition import DefinitionDefaults
from tradewind.model.errors import DefinitionError, DuplicateTaskId, NotFound
from tradewind.operators.python import PythonOperator
from tradewind.sdk import graph
from tradewind.sdk.dag import DAG
from tradewind.sdk.decorators import task_group
from tradewind.sdk.definition import to_definition
from tradewind.sdk.dependencies import Label
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import MappedTaskGroup, TaskGroup

from .test_edges import edges


def test_ids_have_the_enclosing_groups_as_prefix() -> None:
    with DAG("d") as dag, TaskGroup("g") as outer:
        with TaskGroup("h") as inner:
            task = BaseOperator("t")
        with TaskGroup("bare", prefix_group_id=False) as bare:
            plain = BaseOperator("plain")
    assert (task.task_id, inner.group_id, bare.group_id, plain.task_id) == ("g.h.t", "g.h", "g.bare", "plain")
    assert (task.label, inner.label, outer.label, plain.label) == ("t", "h", "g", "plain")
    assert dag["g.h"] is inner
    assert dag["g.h.t"] is task
    assert dag.task_group_dict == {"g": outer, "g.h": inner, "g.bare": bare}
    assert outer.has_task(task)
    assert list(outer) == list(outer.iter_tasks()) == [task, plain]
    assert outer.get_child_by_label("h") is inner


def test_tasks_and_groups_share_their_ids() -> None:
    with DAG("d"):
        BaseOperator("x")
        with pytest.raises(DuplicateTaskId, match="task or group 'x'"):
            TaskGroup("x")
        TaskGroup("y")
        with pytest.raises(DuplicateTaskId, match="task group 'y'"):
            BaseOperator("y")
        assert TaskGroup("y", add_suffix_on_collision=True).group_id == "y__1"
        assert TaskGroup("y", add_suffix_on_collision=True).group_id == "y__2"


@pytest.mark.parametrize("group_id", ["a.b", "", "a b", None])
def test_invalid_group_ids_are_errors(group_id: str | None) -> None:
    with DAG("d"), pytest.raises(DefinitionError, match="group_id"):
        TaskGroup(group_id)


def test_an_id_that_is_too_long_with_its_prefix_is_an_error() -> None:
    with DAG("d"), TaskGroup("g" * 200), pytest.raises(DefinitionError, match="251 characters"):
        BaseOperator("t" * 50)


def test_a_group_needs_a_dag() -> None:
    with pytest.raises(DefinitionError, match="in no DAG"):
        TaskGroup("g")
    dag = DAG("d")
    group = TaskGroup("g", dag=dag)
    assert BaseOperator("t", task_group=group).task_id == "g.t"
    with group:
        assert BaseOperator("u").dag is dag


def test_dependencies_of_groups_connect_leaves_and_roots() -> None:
    with DAG("d") as dag:
        start, end = BaseOperator("start"), BaseOperator("end")
        with TaskGroup("g") as g:
            a, b, c = (BaseOperator(name) for name in "abc")
            a >> b
        with TaskGroup("h") as h:
            BaseOperator("x")
        start >> g >> h >> end
        [start] >> h
    assert edges(dag) == {"start>g.a", "start>g.c", "g.a>g.b", "g.b>h.x", "g.c>h.x", "h.x>end", "start>h.x"}
    assert (g.roots, g.leaves) == ([a, c], [b, c])


def test_a_dependency_connects_the_tasks_that_the_group_has_at_that_time() -> None:
    with DAG("d") as dag:
        start = BaseOperator("start")
        with TaskGroup("g") as g:
            BaseOperator("a")
            start >> g
            BaseOperator("b")
    assert edges(dag) == {"start>g.a"}


def test_a_dependency_on_an_empty_group_is_a_warning() -> None:
    with DAG("d"):
        start, group = BaseOperator("start"), TaskGroup("g")
        with pytest.warns(UserWarning, match="'g', which has no tasks yet"):
            start >> group


def test_a_dependency_of_a_group_includes_its_nested_groups() -> None:
    with DAG("d") as dag:
        with TaskGroup("g") as g:
            with TaskGroup("one"):
                BaseOperator("a")
            with TaskGroup("two"):
                BaseOperator("b")
        g >> BaseOperator("end")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert edges(dag) == {"g.one.a>end", "g.two.b>end"}


def test_a_block_left_by_an_error_is_closed() -> None:
    dag = DAG("d")
    with pytest.raises(ZeroDivisionError), dag, TaskGroup("g"):
        _ = 1 / 0
    assert not BaseOperator("free").has_dag()


def test_only_the_roots_of_a_mapped_group_depend_on_its_list() -> None:
    """As in Airflow. A further dependency would change the result of the trigger rules downstream of the roots."""
    with DAG("d") as dag:
        source = PythonOperator(task_id="source", python_callable=list)

        @task_group
        def group(value: object) -> None:
            first = PythonOperator(task_id="first", python_callable=print, op_args=[value])
            first >> BaseOperator("second") >> BaseOperator("third")

        group.expand(value=source.output)
    assert edges(dag) == {"source>group.first", "group.first>group.second", "group.second>group.third"}


def test_a_group_knows_what_was_set_around_it() -> None:
    with DAG("d") as dag:
        start, end = BaseOperator("start"), BaseOperator("end")
        with TaskGroup("g") as group:
            inner = TaskGroup("inner")
        with TaskGroup("h") as other:
            BaseOperator("a")
        with pytest.warns(UserWarning, match="no tasks yet"):
            [start] >> group
        group >> [other, end]
        with pytest.warns(UserWarning, match="no tasks yet"):
            group >> inner
    assert (group.upstream_task_ids, group.downstream_task_ids) == ({"start"}, {"end"})
    assert (group.upstream_group_ids, group.downstream_group_ids) == (set(), {"h", "g.inner"})
    assert (other.upstream_group_ids, inner.upstream_group_ids) == ({"g"}, {"g"})
    assert (group.upstream_list, group.downstream_list) == ([start], [end])
    assert group.get_direct_relative_ids(upstream=True) == {"start"}
    assert group.get_direct_relatives() == [end]
    assert (group.dag_id, group.get_dag(), group.has_dag()) == ("d", dag, True)
    assert set(dag.task_group.get_task_group_dict()) == {None, "g", "g.inner", "h"}


def test_what_comes_after_an_empty_group_runs_after_what_comes_before_it() -> None:
    with DAG("d") as dag:
        start, group, end = BaseOperator("start"), TaskGroup("g"), BaseOperator("end")
        with pytest.warns(UserWarning, match="no tasks yet"):
            start >> group
        group >> end
    assert edges(dag) == {"start>end"}
    assert dag.partial_subset(["end"]).task_group_dict == {}


def pair(name: str) -> tuple[TaskGroup, BaseOperator, BaseOperator]:
    with TaskGroup(name) as group:
        return group, BaseOperator("a"), BaseOperator("b")


def recorded(group: TaskGroup) -> tuple[set[str], set[str], set[str], set[str]]:
    return group.upstream_group_ids, group.downstream_group_ids, group.upstream_task_ids, group.downstream_task_ids


class TestLabelsOfGroups:
    """Expected values: Airflow 3.3.2."""

    def test_a_label_between_groups_belongs_to_their_join_points(self) -> None:
        with DAG("d") as dag:
            g, h = pair("g")[0], pair("h")[0]
            g >> Label("l") >> h
        assert dag.edge_info == {"g.downstream_join_id": {"h.upstream_join_id": {"label": "l"}}}
        assert recorded(g) == (set(), {"h"}, set(), set())
        assert recorded(h) == ({"g"}, set(), {"g.a", "g.b"}, set())
        assert edges(dag) == {"g.a>h.a", "g.a>h.b", "g.b>h.a", "g.b>h.b"}

    def test_a_label_after_a_task_of_a_group_belongs_to_the_group(self) -> None:
        with DAG("d") as dag:
            g, a, _ = pair("g")
            x = BaseOperator("x")
            a >> Label("l") >> x
        assert edges(dag) == {"g.a>x", "g.b>x"}
        assert dag.edge_info == {"g.downstream_join_id": {"x": {"label": "l"}}}
        assert recorded(g) == (set(), set(), set(), {"x"})

    def test_a_label_before_a_task_of_a_group_belongs_to_the_task(self) -> None:
        with DAG("d") as dag:
            _, a, _ = pair("g")
            BaseOperator("x") >> Label("l") >> a
        assert edges(dag) == {"x>g.a"}
        assert dag.edge_info == {"x": {"g.a": {"label": "l"}}}

    def test_a_label_between_tasks_of_one_group(self) -> None:
        with DAG("d") as dag:
            _, a, b = pair("g")
            a >> Label("l") >> b
        assert edges(dag) == {"g.a>g.b"}
        assert dag.edge_info == {"g.a": {"g.b": {"label": "l"}}}

    def test_a_label_between_tasks_and_a_group_belongs_to_the_group_and_to_each_edge(self) -> None:
        with DAG("d") as dag:
            g = pair("g")[0]
            [BaseOperator("x")] >> Label("l") >> g
        label = {"label": "l"}
        assert dag.edge_info == {"x": {"g.upstream_join_id": label, "g.a": label, "g.b": label}}
        assert recorded(g) == (set(), set(), {"x"}, set())

    def test_the_definition_has_the_label_at_each_edge(self) -> None:
        with DAG("d") as dag:
            g, x = pair("g")[0], BaseOperator("x")
            g >> Label("l") >> x
        assert graph.edge_labels(dag) == (("g.a", "x", "l"), ("g.b", "x", "l"))
        assert graph.edge_labels(dag.partial_subset(["x"])) == (("g.a", "x", "l"), ("g.b", "x", "l"))


class TestAttributes:
    def test_children_are_found_by_their_ids_in_the_group(self) -> None:
        with DAG("d"):
            g, a, _ = pair("g")
        assert g["a"] is a
        with pytest.raises(NotFound, match="has no task or group 'x'"):
            g["x"]

    def test_orders_of_the_children(self) -> None:
        with DAG("d"), TaskGroup("g") as g:
            last, first = BaseOperator("z"), BaseOperator("b")
            with TaskGroup("inner") as inner:
                inside = BaseOperator("i")
            tail = BaseOperator("c")
            first >> inner >> last
        assert list(g) == [last, first, inside, tail]
        assert list(g.iter_tasks()) == [last, first, tail, inside]
        assert g.topological_sort() == [first, inner, tail, last]
        assert g.hierarchical_alphabetical_sort() == [inner, first, tail, last]

    def test_everything_after_a_group(self) -> None:
        with DAG("d"):
            g = pair("g")[0]
            x, y = BaseOperator("x"), BaseOperator("y")
            g >> x >> y
        assert g.get_flat_relatives() == [x, y]
        assert g.get_flat_relative_ids() == {"x", "y"}
        assert g.get_flat_relatives(upstream=True) == []

    def test_the_label_is_the_display_name(self) -> None:
        with DAG("d"), TaskGroup("g", group_display_name="All") as g:
            assert BaseOperator("a", task_display_name="First").label == "First"
            assert BaseOperator("b").label == "b"
        assert g.label == "All"

    def test_its_documentation_may_be_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "doc.md").write_text("# Text")
        with DAG("d") as dag:
            assert TaskGroup("g", doc_md=str(tmp_path / "doc.md")).doc_md == "# Text"
            assert TaskGroup("h", doc_md="missing.md").doc_md == "missing.md"
        definition = to_definition(dag, "d.py", DefinitionDefaults())
        assert [group.tooltip for group in definition.groups] == ["# Text", "missing.md"]

    def test_a_mapped_group_is_a_mapped_task_group(self) -> None:
        with DAG("d") as dag:

            @task_group
            def mapped(x: int) -> None:
                BaseOperator("t")

            mapped.expand(x=[1, 2])
        (found,) = dag.task_group_dict.values()
        assert isinstance(found, MappedTaskGroup)
        assert list(found.iter_mapped_task_groups()) == [found]
