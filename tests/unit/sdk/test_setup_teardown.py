"""Setups and teardowns in DAG files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.sdk.test_edges import edges
from tradewind.model.definition import DefinitionDefaults
from tradewind.model.errors import DefinitionError
from tradewind.model.states import TriggerRule
from tradewind.sdk.dag import DAG
from tradewind.sdk.decorators import task, task_group
from tradewind.sdk.definition import to_definition
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.setup_teardown import context_wrapper, setup, teardown
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.testing.dag_test import run_dag_test


def marks(dag: DAG) -> dict[str, str]:
    """`s` or `t` for each setup and teardown."""
    found = {task.task_id: "s" * task.is_setup + "t" * task.is_teardown for task in dag.tasks}
    return {task_id: mark for task_id, mark in found.items() if mark}


def make(*names: str) -> list[BaseOperator]:
    return [BaseOperator(name) for name in names]


def test_as_teardown_marks_its_task_and_connects_the_setups() -> None:
    with DAG("d") as dag:
        s, other, w, t = make("s", "other", "w", "t")
        assert t.as_teardown(setups=[s, other], on_failure_fail_dagrun=True) is t
        s >> w >> t
    assert marks(dag) == {"s": "s", "other": "s", "t": "t"}
    assert edges(dag) == {"s>w", "w>t", "s>t", "other>t"}
    found = {task.task_id: task for task in to_definition(dag, "f.py", DefinitionDefaults()).tasks}
    assert found["s"].is_setup
    assert found["t"].is_teardown
    assert found["t"].on_failure_fail_dagrun
    assert found["t"].trigger_rule is TriggerRule.ALL_DONE_SETUP_SUCCESS


def test_a_block_connects_the_tasks_that_are_created_inside() -> None:
    with DAG("d") as dag:
        s, t = make("s", "t")
        with s.as_setup() >> t.as_teardown():
            a, b, _c = make("a", "b", "c")
            a >> b
    assert edges(dag) == {"s>t", "s>a", "a>b", "b>t", "s>c", "c>t"}


def test_the_block_of_a_setup_finds_its_teardown() -> None:
    with DAG("d") as dag:
        s, t = make("s", "t")
        t.as_teardown(setups=s)
        with s:
            make("a")
    assert edges(dag) == {"s>t", "s>a", "a>t"}


def test_blocks_of_several_setups_and_of_tasks_created_before() -> None:
    with DAG("d") as dag:
        s1, s2, early = make("s1", "s2", "early")
        with context_wrapper([s1.as_setup(), s2.as_setup()]) as scope:
            scope.add_task(early)
    assert edges(dag) == {"s1>early", "s2>early"}


def test_blocks_can_be_nested() -> None:
    with DAG("d") as dag:
        s1, t1 = make("s1", "t1")
        with s1.as_setup() >> t1.as_teardown():
            s2, t2 = make("s2", "t2")
            with s2.as_setup() >> t2.as_teardown():
                make("w")
    assert edges(dag) == {"s1>t1", "s1>s2", "s2>t2", "s2>w", "w>t2", "t2>t1"}


def test_an_error_in_a_block_leaves_no_block_open() -> None:
    with DAG("d") as dag:
        s, _ = make("s", "t")

        def block() -> None:
            with s.as_setup():
                make("a")
                _ = 1 / 0

        with pytest.raises(ZeroDivisionError):
            block()
        make("b")
    assert edges(dag) == set()


def test_setup_and_teardown_decorators() -> None:
    with DAG("d") as dag:

        @setup
        def up() -> str:
            return "cluster"

        @task
        def work() -> None: ...

        @teardown(on_failure_fail_dagrun=True)
        @task(retries=2)
        def down(name: str) -> None: ...

        @teardown
        def plain() -> None: ...

        name = up()
        with down(name):
            work()
        plain.override(task_id="other")()
    assert marks(dag) == {"up": "s", "down": "t", "other": "t"}
    assert edges(dag) == {"up>down", "up>work", "work>down"}
    assert (dag.get_task("down").retries, dag.get_task("down").on_failure_fail_dagrun) == (2, True)
    assert not dag.get_task("other").on_failure_fail_dagrun


def test_as_setup_and_as_teardown_work_on_results() -> None:
    with DAG("d") as dag:

        @task
        def one() -> None: ...

        @task
        def two() -> None: ...

        two().as_teardown(setups=one())
    assert (marks(dag), edges(dag)) == ({"one": "s", "two": "t"}, {"one>two"})


def test_a_task_downstream_of_a_group_does_not_wait_for_its_teardown() -> None:
    with DAG("d") as dag:
        with TaskGroup("g") as group:
            s, w, t = make("s", "w", "t")
            s >> w >> t.as_teardown(setups=s)
        group >> BaseOperator("after")
    assert edges(dag) == {"g.s>g.w", "g.w>g.t", "g.s>g.t", "g.w>after"}


def test_invalid_setups_and_teardowns_are_errors() -> None:
    with DAG("d"):
        a, b, c = make("a", "b", "c")
        with pytest.raises(DefinitionError, match="'a' is a setup; it cannot also be a teardown"):
            a.as_setup().as_teardown()
        with pytest.raises(DefinitionError, match="'b' is a teardown; it cannot also be a setup"):
            b.as_teardown().as_setup()
        with pytest.raises(DefinitionError, match="only setups or only teardowns"), c:
            pass
        with pytest.raises(DefinitionError, match="setups has 'a'"):
            c.as_teardown(setups="a")

        @task_group
        def group() -> None: ...

        with pytest.raises(DefinitionError, match="can decorate a task, not a task group"):
            setup(group)
        with pytest.raises(DefinitionError, match="'f': its trigger rule is always all_done_setup_success"):

            @teardown
            @task(trigger_rule="all_done")
            def f() -> None: ...


def test_trigger_rules_that_ignore_a_setup_are_errors() -> None:
    with DAG("d") as dag:
        s = BaseOperator("s").as_setup()
        s >> BaseOperator("w", trigger_rule="all_done")
    with pytest.raises(DefinitionError, match="'w' is directly downstream of the setup 's'"):
        dag.validate()
    with DAG("e") as dag:
        t = BaseOperator("t", trigger_rule="one_failed").as_teardown()
        assert t.trigger_rule is TriggerRule.ALL_DONE_SETUP_SUCCESS
        t.trigger_rule = TriggerRule.ALWAYS
    with pytest.raises(DefinitionError, match="'t' is a teardown"):
        dag.validate()


@pytest.mark.parametrize("counts", [False, True])
def test_a_teardown_runs_after_a_failure_and_does_not_hide_it(counts: bool) -> None:
    done: list[str] = []
    with DAG("d") as dag:

        @setup
        def up() -> None:
            done.append("up")

        @task
        def work() -> None:
            raise ValueError("no")

        @teardown(on_failure_fail_dagrun=counts)
        def down() -> None:
            done.append("down")

        with up() >> down():
            work()
    run = run_dag_test(dag, say=lambda line: None)
    assert done == ["up", "down"]
    assert {name: one.state.value for name, one in run.tasks.items()} == {"up": "success", "work": "failed", "down": "success"}
    assert run.state == ("success" if counts else "failed")


def test_a_failed_teardown_fails_the_run_only_with_on_failure_fail_dagrun() -> None:
    def run(counts: bool) -> Any:
        with DAG("d") as dag:

            @setup
            def up() -> None: ...

            @teardown(on_failure_fail_dagrun=counts)
            def down() -> None:
                raise ValueError("no")

            with up() >> down():
                BaseOperator("nothing").execute = lambda context: None  # type: ignore[method-assign]
        return run_dag_test(dag, say=lambda line: None).state

    assert (run(False), run(True)) == ("success", "failed")


def test_partial_subset_includes_the_needed_setups() -> None:
    with DAG("d") as dag:
        before, s, a, b, t, beyond = make("before", "s", "a", "b", "t", "beyond")
        before >> s >> a >> b >> t.as_teardown(setups=s) >> beyond
    for chosen, kept in (("a", {"s", "a", "t"}), ("beyond", {"beyond"}), ("s", {"s", "t"}), ("before", {"before"})):
        assert set(dag.partial_subset([chosen], include_upstream=False).task_ids) == kept
    assert set(dag.partial_subset(["b"]).task_ids) == {"before", "s", "a", "b", "t"}


def test_classes_make_setups_and_teardowns_as_in_airflow_2_6() -> None:
    class Own(BaseOperator):
        def __init__(self, word: str, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.word = word

    with DAG("d") as dag:
        up = Own.as_setup("hello", task_id="up", retries=2)
        work = BaseOperator("work")
        down = Own.as_teardown(word="bye", task_id="down", setups=up, on_failure_fail_dagrun=True)
        up >> work >> down
        BaseOperator.as_setup(BaseOperator("marked"))
    assert (marks(dag), up.word, up.retries) == ({"up": "s", "down": "t", "marked": "s"}, "hello", 2)
    assert (edges(dag), down.on_failure_fail_dagrun) == ({"up>work", "work>down", "up>down"}, True)
    with DAG("e"), pytest.raises(TypeError, match="task_id"):
        Own.as_setup("hello")
