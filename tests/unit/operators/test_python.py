"""Tasks that call functions: the arguments of the call, branches and short circuits."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, pushed
from tradewind import DAG, TaskGroup, task
from tradewind.model.branch import Branch
from tradewind.model.errors import DefinitionError, NotYetSupported
from tradewind.model.states import Outcome
from tradewind.operators.branch import BaseBranchOperator, SkipMixin
from tradewind.operators.empty import DummyOperator, EmptyOperator
from tradewind.operators.python import BranchPythonOperator, PythonOperator, ShortCircuitOperator
from tradewind.platform import HAVE_LINUX
from tradewind.sdk.operator import BaseOperator

if HAVE_LINUX:
    from tradewind.platform.linux import start_time, ticks_since_boot


def _value(function: Any, **kwargs: Any) -> Any:
    with DAG("d", schedule=None):
        operator = PythonOperator(task_id="t", python_callable=function, **kwargs)
    result = carry_out(operator)
    assert result.outcome is Outcome.SUCCESS, result.reason
    return pushed(result).get("return_value")


# --- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S3", "S397")
def test_parameters_named_like_context_variables_receive_them() -> None:
    assert _value(lambda ds, run_id: [ds, run_id]) == ["2024-03-05", "r1"]
    assert _value(lambda ds=None, other=7: [ds, other]) == ["2024-03-05", 7]
    assert _value(lambda execution_date, next_ds: [str(execution_date)[:4], next_ds]) == ["2024", None]


def test_op_args_and_op_kwargs_win_over_the_context() -> None:
    assert _value(lambda ds: ds, op_args=["mine"]) == "mine"
    assert _value(lambda ds: ds, op_kwargs={"ds": "mine"}) == "mine"
    assert _value(lambda ds, **kwargs: [ds, kwargs["ti"].task_id, kwargs["x"]], op_args=["a"], op_kwargs={"x": 1}) == [
        "a",
        "t",
        1,
    ]
    assert _value(lambda *args, ds: [*args, ds], op_args=[1, 2]) == [1, 2, "2024-03-05"]
    assert _value(lambda x, /, ds: [x, ds], op_args=[1]) == [1, "2024-03-05"]


@pytest.mark.spec("S397")
def test_provide_context_of_airflow_1_has_no_effect() -> None:
    with DAG("d", schedule=None):
        operator = PythonOperator(task_id="t", python_callable=lambda **context: context["ds"], provide_context=True)
    assert pushed(carry_out(operator))["return_value"] == "2024-03-05"


def test_kwargs_receives_the_whole_context(world: World) -> None:
    names = _value(lambda **kwargs: sorted(kwargs))
    assert {"ds", "ti", "params", "logical_date", "execution_date", "next_ds", "var", "prev_start_date_success"} <= set(names)
    assert world.questions == []


def test_common_parameter_names_keep_their_defaults() -> None:
    """`conf` and `end_date` were context variables in Airflow 1. A parameter with this name and a default keeps its default."""
    assert _value(lambda conf=None, end_date="x", tables=1: [conf, end_date, tables]) == [None, "x", 1]
    assert _value(lambda end_date: end_date) == "2024-03-05"
    assert _value(lambda end_date, **kwargs: end_date, op_args=["given"]) == "given"


def test_op_args_and_op_kwargs_are_templates(world: World) -> None:
    assert _value(lambda *args, **kw: [args, kw["k"]], op_args=["{{ ds }}"], op_kwargs={"k": ["{{ run_id }}"]}) == [
        ("2024-03-05",),
        ["r1"],
    ]
    assert _value(lambda templates_dict: templates_dict, templates_dict={"a": "{{ ds }}"}) == {"a": "2024-03-05"}


def test_an_argument_that_the_function_does_not_accept_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert _value(lambda value=1: value, op_kwargs={"valeu": 2}) == 1
    assert "takes no argument 'valeu'; the argument is ignored. Did you mean 'value'?" in caplog.text


def test_async_functions_and_callable_objects_are_called() -> None:
    async def work(ds: str) -> str:
        return ds

    class Callable:
        def __call__(self, ds: str) -> str:
            return ds

    assert _value(work) == "2024-03-05"
    assert _value(Callable()) == "2024-03-05"
    assert _value(dict, op_kwargs={"a": 1}) == {"a": 1}
    with pytest.raises(DefinitionError, match="python_callable is 5; it must be a function"):
        _value(5)


def test_the_result_is_logged_unless_show_return_value_in_logs_is_false(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        _value(lambda: "s3cret", show_return_value_in_logs=False)
        assert "s3cret" not in caplog.text
        _value(lambda: "public")
        assert "Done. Returned value was: public" in caplog.text


def test_the_task_decorator(world: World) -> None:
    with DAG("d", schedule=None) as dag:

        @task
        def first() -> dict[str, int]:
            return {"a": 1, "b": 2}

        @task
        def second(rows: Any, ds: str | None = None, *, ti: Any = None) -> list[Any]:
            return [rows, ds, ti.task_id]

        second(first()["a"])
    assert pushed(carry_out(dag.task_dict["first"])) == {"a": 1, "b": 2, "return_value": {"a": 1, "b": 2}}
    world.xcoms = {("first", "a", -1): 1}
    assert pushed(carry_out(dag.task_dict["second"]))["return_value"] == [1, "2024-03-05", "second"]


# --- choosing ----------------------------------------------------------------------------------------------------------


def _branching(choice: Any) -> Any:
    with DAG("d", schedule=None):
        branch = BranchPythonOperator(task_id="t", python_callable=lambda: choice)
        a, b, far = (EmptyOperator(task_id=name) for name in ("a", "b", "far"))
        with TaskGroup("g") as group:
            x, y = EmptyOperator(task_id="x"), EmptyOperator(task_id="y")
            EmptyOperator(task_id="z").set_upstream([x, y])
        EmptyOperator(task_id="elsewhere")
        branch >> [a, b, group]
        a >> far
    return carry_out(branch)


@pytest.mark.spec("S410")
@pytest.mark.parametrize(
    ("choice", "tasks"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        (("b",), ("b",)),
        ({"b"}, ("b",)),
        pytest.param(iter(["a"]), ("a",), id="iterator"),
        ("g", ("g.x", "g.y")),
        (["g.x", "g", "a"], ("g.x", "g.y", "a")),
        (None, ()),
        ([], ()),
        ("far", ("far",)),
    ],
    ids=repr,
)
def test_a_branch_runs_the_chosen_tasks(choice: Any, tasks: tuple[str, ...]) -> None:
    result = _branching(choice)
    assert (result.outcome, result.branch) == (Outcome.SUCCESS, Branch("follow", tasks))


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ("x", "Its direct downstream tasks are: a, b, g.x, g.y."),
        ("g.xx", "chose 'g.xx', but DAG 'd' has no such task or task group. Did you mean 'g.x'?"),
        (5, "it must return a task id, a task group id, a list of these, or None"),
        (["a", 5], "returned ['a', 5]"),
        (True, "returned True"),
    ],
    ids=repr,
)
def test_an_invalid_choice_fails_the_task(choice: Any, sentence: str) -> None:
    result = _branching(choice)
    assert result.outcome is Outcome.FAILED
    assert sentence in (result.reason or "")


def test_the_error_suggests_the_id_with_its_group_prefix() -> None:
    with DAG("d", schedule=None), TaskGroup("g"):
        branch = BranchPythonOperator(task_id="t", python_callable=lambda: "a")
        branch >> EmptyOperator(task_id="a")
    assert "Did you mean 'g.a'?" in (carry_out(branch).reason or "")


def test_a_choice_that_is_not_downstream_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert _branching(["a", "elsewhere"]).branch == Branch("follow", ("a", "elsewhere"))
    assert "not downstream of t and are not affected: ['elsewhere']" in caplog.text


def test_the_choice_is_pushed() -> None:
    """The decision too, under Airflow's key."""
    assert pushed(_branching(iter(["a"]))) == {"return_value": ["a"], "skipmixin_key": {"followed": ["a"]}}


def test_branch_operators_and_decorators() -> None:
    class Mine(BaseBranchOperator):
        def choose_branch(self, context: Any) -> str:
            return "a" if context["ds"] < "2025" else "b"

    with DAG("d", schedule=None) as dag:
        mine = Mine(task_id="t")

        @task.branch
        def pick(ds: str) -> str:
            return "b"

        @task.short_circuit(ignore_downstream_trigger_rules=False)
        def go(ok: bool) -> bool:
            return ok

        mine >> [EmptyOperator(task_id="a"), EmptyOperator(task_id="b")]
        go(False) >> pick() >> [dag.task_dict["a"], dag.task_dict["b"]]
    assert carry_out(mine).branch == Branch("follow", ("a",))
    assert carry_out(dag.task_dict["pick"]).branch == Branch("follow", ("b",))
    assert carry_out(dag.task_dict["go"]).branch == Branch("stop", direct_only=True)


@pytest.mark.parametrize(
    ("condition", "ignore", "branch"),
    [
        (True, True, None),
        ([1], True, None),
        (False, True, Branch("stop")),
        (None, True, Branch("stop")),
        ("", False, Branch("stop", direct_only=True)),
    ],
)
def test_a_short_circuit_skips_downstream_tasks(condition: Any, ignore: bool, branch: Branch | None) -> None:
    with DAG("d", schedule=None):
        operator = ShortCircuitOperator(task_id="t", python_callable=lambda: condition, ignore_downstream_trigger_rules=ignore)
        operator >> EmptyOperator(task_id="a")
    result = carry_out(operator)
    assert (result.outcome, result.branch) == (Outcome.SUCCESS, branch)


def test_a_short_circuit_without_downstream_tasks_skips_nothing() -> None:
    with DAG("d", schedule=None):
        operator = ShortCircuitOperator(task_id="t", python_callable=lambda: False)
    assert carry_out(operator).branch is None


class _Skips(SkipMixin, BaseOperator):
    """Skips the next tasks with the arguments that a function makes from the context."""

    def __init__(self, arguments: Callable[[Any], tuple[list[Any], dict[str, Any]]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments

    def execute(self, context: Any) -> None:
        args, named = self.arguments(context)
        self.skip(*args, **named)


@pytest.mark.parametrize(
    "arguments",
    [
        lambda context: ([context["ti"], context["task"].downstream_list], {}),
        lambda context: ([], {"ti": context["ti"], "tasks": context["task"].downstream_list}),
        lambda context: ([context["dag_run"], context["execution_date"], context["task"].downstream_list], {}),
        lambda context: ([context["dag_run"], context["ti"].execution_date], {"tasks": ["a"], "session": None}),
        lambda context: ([], {"dag_run": context["dag_run"], "execution_date": None, "tasks": ["a"], "map_index": -1}),
    ],
)
def test_tasks_are_skipped_with_the_arguments_of_every_generation(arguments: Any) -> None:
    with DAG("d", schedule=None):
        operator = _Skips(arguments, task_id="t")
        operator >> EmptyOperator(task_id="a")
    result = carry_out(operator)
    assert (result.outcome, result.branch) == (Outcome.SUCCESS, Branch("skip", ("a",)))


@pytest.mark.spec("S410")
def test_empty_operator_does_nothing() -> None:
    with DAG("d", schedule=None):
        operator = DummyOperator(task_id="t")
    assert operator.inherits_from_empty_operator
    assert carry_out(operator).outcome is Outcome.SUCCESS


# --- processes that the function starts ----------------------------------------------------------------------------------


@pytest.mark.skipif(not HAVE_LINUX, reason="needs /proc")
def test_on_kill_stops_the_processes_of_the_function_and_no_older_ones() -> None:
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    started: list[subprocess.Popen[bytes]] = []
    with DAG("d", schedule=None):
        operator = PythonOperator(task_id="t", python_callable=lambda: started.append(subprocess.Popen(command)))
    with subprocess.Popen(command) as older:
        try:
            operator.on_kill()  # nothing has begun yet
            born = start_time(older.pid)
            assert born is not None
            while ticks_since_boot() < born + 2:  # start times of processes have no finer unit
                pass
            operator.execute({})
            operator.on_kill()
            assert started[0].wait(30) == -signal.SIGTERM
            assert older.poll() is None
        finally:
            for process in (older, *started):
                process.kill()
                process.wait(30)


def test_a_stub_is_part_of_the_dag_and_fails_when_it_runs() -> None:
    with DAG("d") as dag:

        @task.stub(queue="golang")
        def transform() -> None: ...

        @task
        def load(value: object) -> None: ...

        load(transform())
    stub = dag.get_task("transform")
    assert (stub.queue, stub.downstream_task_ids) == ("golang", {"load"})
    with pytest.raises(NotYetSupported, match=r"'transform' is not in Python \(@task.stub, queue 'golang'\)"):
        stub.execute({})
