"""@task, @task_group, @dag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

import pytest

from tradewind.model.errors import NotYetSupported, UnknownArgument
from tradewind.sdk import decorators
from tradewind.sdk.dag import DAG
from tradewind.sdk.decorators import DecoratedOperator, dag, task, task_group
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.params import DagParam, Param
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.sdk.xcom_arg import XComArg


class Plain(DecoratedOperator):
    """The smallest operator behind a decorator."""

    custom_operator_name = "@task"

    def execute(self, context: Any) -> Any:
        return self.python_callable(*self.op_args, **self.op_kwargs)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(decorators.TASK_DECORATORS, "python", f"{__name__}:Plain")
    monkeypatch.setitem(decorators.TASK_DECORATORS, "custom", f"{__name__}:Plain")


@pytest.fixture
def made() -> Iterator[DAG]:
    with DAG("d") as made:
        yield made


class Pair(TypedDict):
    left: int
    right: int


class TestTask:
    def test_a_call_creates_a_task_and_returns_its_result(self, made: DAG) -> None:
        @task
        def add(x: int, y: int = 2) -> int:
            """Add.

            Two numbers."""
            return x + y

        result = add(1)
        assert isinstance(result, XComArg)
        operator = made.get_task("add")
        assert operator.execute({}) == 3
        assert operator.doc_md is not None
        assert operator.doc_md.startswith("Add.")
        assert operator.operator_name == "@task"
        assert add.function(4, 5) == 9
        assert add.multiple_outputs is False
        assert add.__name__ == "add"  # type: ignore[attr-defined]

    def test_a_docstring_is_used_only_where_no_documentation_is_given(self, made: DAG) -> None:
        @task(doc="By hand.")
        def one(n: int) -> None:
            """Docstring."""

        one(1)
        one.override(task_id="mapped").expand(n=[1, 2])
        one.override(task_id="neither", doc=None)(1)
        documents = [(found.doc, found.doc_md) for found in made.tasks]
        assert documents == [("By hand.", None), ("By hand.", None), (None, "Docstring.")]

    def test_default_args_give_missing_arguments_of_the_function(self) -> None:
        @task
        def greet(name: str, owner: str, region: str = "eu") -> str:
            return f"{name} {owner} {region}"

        with DAG("d", default_args={"owner": "ann", "region": "us", "name": "not this"}) as dag:
            greet("hello")
            greet.override(task_id="given")("hello", owner="bob")
        first, given = dag.tasks
        assert (first.execute({}), given.execute({})) == ("hello ann us", "hello bob us")

    def test_override_changes_arguments_for_one_call(self, made: DAG) -> None:
        @task(retries=2, task_id="named")
        def f() -> None: ...

        f()
        f.override(retries=5, task_id="other", trigger_rule="all_done")()
        assert made.get_task("named").retries == 2
        assert made.get_task("other").retries == 5
        assert made.get_task("other").trigger_rule == "all_done"
        assert f.task_id == "named"

    def test_task_ids_of_repeated_calls_are_numbered(self, made: DAG) -> None:
        @task
        def f() -> None: ...

        for _ in range(3):
            f()
        with TaskGroup("g"):
            f()
            f()
        f.override(task_id="f__1")()
        assert made.task_ids == ["f", "f__1", "f__2", "g.f", "g.f__1", "f__3"]

    def test_results_as_arguments_create_dependencies(self, made: DAG) -> None:
        @task
        def f(*args: Any, **kwargs: Any) -> None: ...

        a, b, c = f(), f(), f()
        f(a, deep={"x": [b["key"]]}, text=f"see {c}")
        assert made.get_task("f__3").upstream_task_ids == {"f", "f__1"}
        a >> c
        assert made.get_task("f__2").upstream_task_ids == {"f"}

    def test_default_args_apply_to_decorated_tasks(self) -> None:
        @task
        def f() -> None: ...

        with DAG("d", default_args={"retries": 4, "owner": "me"}) as made:
            f()
        assert (made.get_task("f").retries, made.get_task("f").owner) == (4, "me")

    def test_multiple_outputs_from_the_annotation(self, made: DAG) -> None:
        @task
        def as_dict() -> dict[str, int]: ...  # type: ignore[empty-body]
        @task
        def as_typed() -> Pair: ...  # type: ignore[empty-body]
        @task
        def as_list() -> list[int]: ...  # type: ignore[empty-body]
        @task(multiple_outputs=False)
        def refused() -> dict[str, int]: ...  # type: ignore[empty-body]
        @task
        def unknown() -> NoSuchName: ...  # type: ignore[name-defined]  # noqa: F821

        for function in (as_dict, as_typed, as_list, refused, unknown):
            function()
        outputs = {operator.task_id: operator.multiple_outputs for operator in made.tasks}
        assert outputs == {"as_dict": True, "as_typed": True, "as_list": False, "refused": False, "unknown": False}

    def test_a_call_with_wrong_arguments_is_an_error(self, made: DAG) -> None:
        @task
        def f(x: int, ds: str, *, ti: Any, size: int = 1) -> None: ...

        f(1)  # ds and ti come from the context
        with pytest.raises(TypeError, match="'f' is called without the argument 'x'"):
            f()
        with pytest.raises(TypeError, match=r"'f': got an unexpected keyword argument 'sze'. Did you mean 'size'"):
            f(1, sze=2)
        with pytest.raises(TypeError, match="'f': too many positional"):
            f(1, "2", 3)

    def test_a_common_parameter_name_is_not_filled_from_the_context(self, made: DAG) -> None:
        @task
        def load(tables: list[str]) -> None: ...

        with pytest.raises(TypeError, match="'tables'"):
            load()

    def test_a_misspelt_argument_of_the_decorator_is_an_error(self, made: DAG) -> None:
        @task(retires=2)
        def f() -> None: ...

        with pytest.raises(UnknownArgument, match=r"@task 'f' takes no argument 'retires'. Did you mean 'retries'"):
            f()

    def test_a_call_outside_a_dag_is_an_error(self) -> None:
        @task
        def f() -> None: ...

        assert not f().operator.has_dag()

    def test_coroutine_functions_can_be_decorated(self, made: DAG) -> None:
        @task
        async def f(x: int) -> int:
            return x

        assert f(1).operator.task_id == "f"

    def test_other_task_decorators_are_found_by_name(self, made: DAG) -> None:
        @task.custom
        def f() -> None: ...

        @task.custom(retries=1)
        def g() -> None: ...

        f() >> g()
        assert made.get_task("g").upstream_task_ids == {"f"}
        with pytest.raises(AttributeError, match=r"no @task.custm. Did you mean 'custom'"):
            task.custm  # noqa: B018
        with pytest.raises(NotYetSupported, match="tradewind providers install docker"):
            task.docker  # noqa: B018
        assert not hasattr(task, "__wrapped__")

    def test_wrong_use_of_the_decorator_is_an_error(self) -> None:
        with pytest.raises(TypeError, match="only keyword arguments"):
            task("f")  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="can decorate only a function"):
            task(int)
        with pytest.raises(TypeError, match="already a task"):
            task(task(print))


class TestTaskGroup:
    def test_a_call_creates_a_group(self, made: DAG) -> None:
        @task
        def step(x: Any = None) -> None: ...

        @task_group
        def both(x: Any) -> Any:
            """Two steps."""
            return step(step(x))

        @task_group(group_id="named", default_args={"retries": 2})
        def nothing() -> None:
            step()

        result = both(1)
        group = nothing()
        both(2)
        result >> group
        assert made.task_ids == ["both.step", "both.step__1", "named.step", "both__1.step", "both__1.step__1"]
        assert isinstance(group, TaskGroup)
        assert made.get_task("named.step").retries == 2
        assert made.get_task("named.step").upstream_task_ids == {"both.step__1"}
        assert made.task_group_dict["both"].tooltip == "Two steps."

    def test_a_misspelt_argument_of_task_group_is_an_error(self) -> None:
        with pytest.raises(UnknownArgument, match="Did you mean 'tooltip'"):
            task_group(tooltop="x")


class TestDag:
    def test_a_decorated_function_creates_a_dag_per_call(self) -> None:
        @task
        def show(n: Any) -> None: ...

        @dag(schedule="@daily", tags=["x"])
        def flow(n: int = 3, name: Any = Param("a", type="string")) -> None:
            """What it is for."""
            assert isinstance(n, DagParam)
            show(n)

        made = flow()
        assert made.dag_id == "flow"
        assert made.doc_md == "What it is for."
        assert made.schedule == "@daily"
        assert dict(made.params) == {"n": 3, "name": "a"}
        assert made.get_task("show").op_args[0].resolve({"params": {"n": 8}}) == 8  # type: ignore[attr-defined]
        assert flow(n=5).params["n"] == 5

    def test_the_dag_decorator_works_with_and_without_arguments(self) -> None:
        @dag
        def bare() -> None: ...

        @dag("named", params={"n": Param(1, minimum=0)})
        def other(n: int | None = None) -> None: ...

        assert bare().dag_id == "bare"
        assert other().dag_id == "named"
        assert other().params["n"] == 1
        with pytest.raises(ParamValidationError, match="argument n cannot be a parameter"):
            other(-1)


def test_the_function_may_be_an_argument_as_generators_of_dags_give_it(made: DAG) -> None:
    """dag-factory calls `task(python_callable=f, retries=2)(x=21)`."""

    def double(x: int) -> int:
        return 2 * x

    decorated: Any = task(python_callable=double, retries=2)
    result = decorated(x=21)
    assert (result.operator.task_id, result.operator.retries, result.operator.op_kwargs) == ("double", 2, {"x": 21})


def test_an_argument_python_callable_that_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="python_callable"):
        task(python_callable="double")(lambda: None)()
