"""Dynamic task mapping as an author meets it: what is written, run in this process, and what comes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tradewind import DAG, chain, get_current_context, setup, task, task_group, teardown
from tradewind.model.errors import DefinitionError, UnknownArgument
from tradewind.model.states import TaskState
from tradewind.operators.bash import BashOperator
from tradewind.sdk.exceptions import AirflowSkipException
from tradewind.sdk.operator import BaseOperator
from tradewind.testing.results import TestedRun


def silent(line: str) -> None:
    """Nobody reads the progress."""


def dag(**more: Any) -> DAG:
    return DAG("mapped", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), **more)


def run(made: DAG) -> TestedRun:
    tested: TestedRun = made.test(say=silent)
    return tested


def states(tested: TestedRun, task_id: str) -> list[str]:
    return [one.state.value for one in tested.instances_of(task_id)]


@task
def numbers(count: int = 3) -> list[int]:
    return list(range(1, count + 1))


@task
def double(x: int, plus: int = 0) -> int:
    return 2 * x + plus


@task
def total(values: Any) -> int:
    return sum(values)


@task
def same(v: Any) -> Any:
    return v


class TestFunctions:
    def test_over_a_result_and_back(self) -> None:
        """Each instance gets its element; what is behind them gets the list of what they returned, by map index."""
        with dag() as made:
            total(double.partial(plus=1).expand(x=numbers()))
        tested = run(made)
        assert tested.xcom("double") == [3, 5, 7]
        assert tested.xcom("total") == 15

    def test_the_last_argument_varies_fastest(self) -> None:
        @task
        def pair(a: int, b: str) -> str:
            return f"{a}{b}"

        with dag() as made:
            pair.expand(a=[1, 2], b=["x", "y", "z"])
        assert run(made).xcom("pair") == ["1x", "1y", "1z", "2x", "2y", "2z"]

    def test_a_dictionary_gives_pairs(self) -> None:
        @task
        def show(item: tuple[str, int]) -> str:
            return f"{item[0]}={item[1]}"

        with dag() as made:
            show.expand(item={"a": 1, "b": 2})
        assert run(made).xcom("show") == ["a=1", "b=2"]

    def test_dictionaries_of_arguments(self) -> None:
        with dag() as made:
            double.expand_kwargs([{"x": 1}, {"x": 2, "plus": 5}])
        assert run(made).xcom("double") == [2, 9]

    def test_mapped_over_mapped(self) -> None:
        with dag() as made:
            double.override(task_id="again").expand(x=double.expand(x=numbers()))
        assert run(made).xcom("again") == [4, 8, 12]

    def test_an_empty_list_skips(self) -> None:
        with dag() as made:
            total(double.expand(x=numbers(0)))
        tested = run(made)
        assert states(tested, "double") == ["skipped"]
        assert states(tested, "total") == ["skipped"]
        assert "empty" in (tested.task("double").reason or "")

    def test_one_instance_fails_and_the_others_go_on(self) -> None:
        @task
        def picky(x: int) -> int:
            if x == 2:
                raise ValueError("two")
            return x

        with dag() as made:
            total(picky.expand(x=numbers()))
            total.override(task_id="rest", trigger_rule="all_done")(picky.override(task_id="more").expand(x=numbers(3)))
        tested = run(made)
        assert states(tested, "picky") == ["success", "failed", "success"]
        assert states(tested, "total") == ["upstream_failed"]
        assert tested.xcom("rest") == 4

    def test_a_label_in_place_of_the_index(self) -> None:
        @task(map_index_template="{{ who }}")
        def greet(name: str) -> None:
            get_current_context()["who"] = name.upper()

        with dag() as made:
            greet.expand(name=["ann", "bob"])
        tested = run(made)
        assert states(tested, "greet") == ["success", "success"]
        shown = [tested.store.task_instance(tested.dag_id, tested.run_id, "greet", index) for index in (0, 1)]
        assert [one.rendered_map_index for one in shown] == ["ANN", "BOB"]

    def test_a_label_from_the_arguments_and_a_wrong_label(self) -> None:
        """As in Airflow, an error in the template fails a task that has succeeded, and hides no other error."""
        with dag() as made:
            same.override(task_id="named", map_index_template="{{ v }}|{{ ti.map_index }}").expand(v=["a"])
            same.override(task_id="wrong", map_index_template="{{ nothere }}").expand(v=["a"])
        tested = run(made)
        assert (states(tested, "named"), states(tested, "wrong")) == (["success"], ["failed"])
        assert tested.store.task_instance(tested.dag_id, tested.run_id, "named", 0).rendered_map_index == "a|0"
        assert "nothere" in (tested.tasks["wrong[0]"].reason or "")

    def test_a_mapped_teardown_is_a_teardown(self) -> None:
        """So its failure does not count, and a mapped setup gets its teardown by `as_teardown` as any other."""

        @setup
        def build(x: int) -> None:
            """One of several."""

        @teardown
        def clean(x: int) -> None:
            raise ValueError(x)

        with dag() as made:
            chain(double(1), clean.expand(x=[1, 2]))
            chain(build.expand(x=[1]), clean.override(task_id="more").partial().expand_kwargs([{"x": 1}]))
        assert [made.get_task(one).is_teardown for one in ("clean", "more", "build")] == [True, True, False]
        assert made.get_task("build").is_setup
        tested = run(made)
        assert states(tested, "clean") == ["failed", "failed"]
        assert tested.state.value == "success"


class TestLists:
    def test_map_zip_and_concat(self) -> None:
        """A function on each element, in the task that uses it; `AirflowSkipException` in it skips one instance."""

        def odd(x: int) -> int:
            if x == 2:
                raise AirflowSkipException("even")
            return x * 100

        @task
        def keep(v: Any) -> Any:
            return v

        with dag() as made:
            first = numbers()
            second = numbers.override(task_id="two")(2)
            keep.override(task_id="mapped").expand(v=first.map(odd))
            keep.override(task_id="zipped").expand(v=first.zip(second))
            keep.override(task_id="filled").expand(v=first.zip(second, fillvalue=0))
            keep.override(task_id="joined").expand(v=first.concat(second))
        tested = run(made)
        assert states(tested, "mapped") == ["success", "skipped", "success"]
        assert tested.xcom("mapped") == [100, 300]
        assert tested.xcom("zipped") == [(1, 1), (2, 2)]
        assert tested.xcom("filled") == [(1, 1), (2, 2), (3, 0)]
        assert tested.xcom("joined") == [1, 2, 3, 1, 2]


class TestOperators:
    def test_values_of_the_file_are_rendered_and_lists_of_other_tasks_are_not(self) -> None:
        """As Airflow 3.3.2 does; in `expand_kwargs`, it also renders what another task has returned."""

        @task
        def given() -> list[str]:
            return ["echo '{{ ds }}'"]

        @task
        def dictionaries() -> list[dict[str, str]]:
            return [{"bash_command": "echo '{{ ds }}'"}]

        with dag() as made:
            shell = BashOperator.partial
            shell(task_id="say", env={"DS": "{{ ds }}"}).expand(bash_command=["echo $DS", "echo '{{ ds }}'"])
            shell(task_id="raw").expand(bash_command=given())
            shell(task_id="written").expand_kwargs([{"bash_command": "echo '{{ ds }}'"}])
            shell(task_id="returned").expand_kwargs(dictionaries())
            same.expand(v=["{{ ds }}"])
        tested = made.test(datetime(2026, 3, 4, tzinfo=UTC), say=silent)
        assert tested.xcom("say") == ["2026-03-04", "2026-03-04"]
        assert tested.xcom("raw") == ["{{ ds }}"]
        assert [tested.xcom(one) for one in ("written", "returned", "same")] == [["2026-03-04"]] * 3

    def test_the_definition_is_the_operators_own(self) -> None:
        with dag(default_args={"retries": 2}):
            mapped = BashOperator.partial(task_id="say", pool="few").expand(bash_command=["true"])
        assert (mapped.operator_name, mapped.retries, mapped.pool) == ("BashOperator", 2, "few")

    @pytest.mark.parametrize(
        ("write", "error", "words"),
        [
            (lambda: BashOperator.partial(task_id="t", comand="x"), UnknownArgument, "comand"),
            (lambda: BashOperator.partial(task_id="t").expand(bash_comand=["x"]), UnknownArgument, "bash_command"),
            (lambda: BashOperator.partial(task_id="t").expand(env=[{}]), TypeError, "bash_command is missing"),
            (lambda: BashOperator.partial(task_id="t").expand(), TypeError, "at least one argument"),
            (lambda: BashOperator.partial(task_id="t").expand(bash_command="echo"), TypeError, "cannot be mapped over"),
            (lambda: BashOperator.partial(bash_command="x"), TypeError, "task_id"),
            (lambda: double.expand(y=[1]), TypeError, "'y'"),
            (lambda: double.partial(x=1).expand(x=[1]), TypeError, "x is given both to partial"),
            (lambda: double.expand(x=5), TypeError, "cannot be mapped over"),
            (lambda: double.expand(plus=[5]), TypeError, "without the argument 'x'"),
            (lambda: double.expand(x=numbers()["k"]), DefinitionError, "only the return value can"),
            (lambda: double.expand_kwargs({"x": 1}), TypeError, "not one dictionary"),
            (lambda: numbers().map(double), TypeError, "plain function"),
        ],
    )
    def test_what_cannot_be_is_said_where_it_is_written(self, write: Any, error: type[Exception], words: str) -> None:
        with dag(), pytest.raises(error, match=words):
            write()


class TestResultsThatCannotBe:
    @pytest.mark.parametrize(
        ("result", "words"),
        [(None, "returned nothing"), (5, "returned int"), ("text", "returned str"), (list(range(1025)), "max_map_length=1024")],
    )
    def test_the_task_that_returns_it_fails(self, result: Any, words: str) -> None:
        @task
        def gives() -> Any:
            return result

        with dag() as made:
            double.expand(x=gives())
        tested = run(made)
        assert states(tested, "gives") == ["failed"]
        assert words in (tested.task("gives").reason or "")
        assert states(tested, "double") == ["upstream_failed"]


class TestGroups:
    def test_tasks_inside_meet_index_by_index(self) -> None:
        @task_group
        def steps(x: int, plus: int) -> Any:
            one = double(x)
            return double.override(task_id="then")(one, plus=plus)

        with dag() as made:
            total(steps.partial(plus=1).expand(x=numbers()))
        tested = run(made)
        assert tested.xcom("steps.double") == [2, 4, 6]
        assert tested.xcom("steps.then") == [5, 9, 13]
        assert tested.xcom("total") == 27

    def test_one_index_fails_alone(self) -> None:
        @task
        def picky(x: int) -> int:
            if x == 2:
                raise ValueError("two")
            return x

        @task_group
        def steps(x: int) -> Any:
            return double(picky(x))

        with dag() as made:
            steps.expand(x=numbers())
        tested = run(made)
        assert states(tested, "steps.picky") == ["success", "failed", "success"]
        assert states(tested, "steps.double") == ["success", "upstream_failed", "success"]

    def test_nothing_mapped_inside_a_mapped_group(self) -> None:
        @task_group
        def steps(x: int) -> Any:
            return double.expand(x=[1, 2])

        with dag(), pytest.raises(DefinitionError, match="inside a mapped group"):
            steps.expand(x=[1])


def test_what_a_mapped_task_is_in_code() -> None:
    """It stands among the DAG's tasks like any other, with arrows from what it is mapped over."""
    with dag() as made:
        given = numbers()
        double.expand(x=given)
    mapped = made.task_dict["double"]
    assert isinstance(mapped, BaseOperator)
    assert mapped.upstream_task_ids == {"numbers"}
    assert TaskState.SUCCESS.value == "success"
