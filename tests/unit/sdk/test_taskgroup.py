"""Task groups: ids, nesting, dependencies of groups."""

from __future__ import annotations

import warnings

import pytest

from tradewind.model.errors import DefinitionError, DuplicateTaskId
from tradewind.operators.python import PythonOperator
from tradewind.sdk.dag import DAG
from tradewind.sdk.decorators import task_group
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import TaskGroup

from .test_edges import edges


def test_ids_have_the_enclosing_groups_as_prefix() -> None:
    with DAG("d") as dag, TaskGroup("g") as outer:
        with TaskGroup("h") as inner:
            task = BaseOperator("t")
        with TaskGroup("bare", prefix_group_id=False) as bare:
            plain = BaseOperator("plain")
    assert (task.task_id, inner.group_id, bare.group_id, plain.task_id) == ("g.h.t", "g.h", "g.bare", "g.plain")
    assert (task.label, inner.label, outer.label, plain.label) == ("t", "h", "g", "plain")
    assert dag["g.h"] is inner
    assert dag["g.h.t"] is task
    assert dag.task_group_dict == {"g": outer, "g.h": inner, "g.bare": bare}
    assert outer.has_task(task)
    assert list(outer.iter_tasks()) == [task, plain]
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
