"""BaseOperator: its arguments, their default values, and the errors for wrong arguments."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tradewind.model.errors import DefinitionError, DuplicateTaskId, NotFound, NotYetSupported, UnknownArgument
from tradewind.model.states import TriggerRule, WeightRule
from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import TaskGroup


class Shell(BaseOperator):
    template_fields = ("command",)

    def __init__(self, *, command: str, shell: str = "sh", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.shell = shell


class LoginShell(Shell):
    def __init__(self, *, login: str = "nobody", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.login = login


class TestArguments:
    @pytest.mark.spec("S394")
    def test_missing_arguments_have_airflows_defaults(self) -> None:
        task = BaseOperator("t")
        assert (task.owner, task.retries, task.retry_delay) == ("airflow", 0, timedelta(minutes=5))
        assert (task.pool, task.pool_slots, task.queue) == ("default_pool", 1, "default")
        assert task.trigger_rule is TriggerRule.ALL_SUCCESS
        assert task.weight_rule is WeightRule.DOWNSTREAM
        assert task.do_xcom_push is True

    def test_none_means_the_default(self) -> None:
        task = BaseOperator("t", retries=None, pool=None, execution_timeout=None)
        assert (task.retries, task.pool, task.execution_timeout) == (0, "default_pool", None)

    @pytest.mark.parametrize(
        ("name", "given", "kept"),
        [
            ("retry_delay", 90, timedelta(seconds=90)),
            ("retry_delay", timedelta(hours=1), timedelta(hours=1)),
            ("retries", "3", 3),
            ("retry_exponential_backoff", True, True),
            ("retry_exponential_backoff", 1.5, 1.5),
            ("trigger_rule", "none_failed_or_skipped", TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS),
            ("trigger_rule", "dummy", TriggerRule.ALWAYS),
            ("trigger_rule", TriggerRule.ONE_DONE, TriggerRule.ONE_DONE),
            ("weight_rule", "absolute", WeightRule.ABSOLUTE),
            ("start_date", "2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ],
    )
    def test_values_are_converted(self, name: str, given: Any, kept: Any) -> None:
        assert getattr(BaseOperator("t", **{name: given}), name) == kept

    @pytest.mark.parametrize(
        ("name", "given", "says"),
        [
            ("depends_on_past", "False", "True or False"),
            ("retries", "many", "integer"),
            ("pool_slots", 0, "at least 1"),
            ("retry_delay", "soon", "timedelta or a number of seconds"),
            ("execution_timeout", 60, r"timedelta\(minutes=5\)"),
            ("trigger_rule", "all_sucess", "Did you mean 'all_success'"),
            ("weight_rule", "downstrem", "Did you mean 'downstream'"),
            ("start_date", "soon", "2026-01-31"),
            ("pool", 7, "must be a string"),
            ("pre_execute", "f", "function"),
        ],
    )
    def test_the_error_of_a_wrong_value_names_argument_and_task(self, name: str, given: Any, says: str) -> None:
        with pytest.raises(DefinitionError, match=says) as caught:
            Shell(task_id="t1", command="x", **{name: given})
        assert "Shell 't1'" in str(caught.value)
        assert name in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "given", "kept"),
        [
            ("retries", -1, 0),
            ("retries", 1.5, 1),
            ("retry_delay", timedelta(seconds=-1), timedelta(0)),
            ("execution_timeout", timedelta(seconds=-1), timedelta(0)),
            ("retry_exponential_backoff", -2, 0),
        ],
    )
    def test_a_value_that_airflow_accepts_is_replaced_with_a_warning(self, name: str, given: Any, kept: Any) -> None:
        with pytest.warns(UserWarning, match=f"{name} is .*; it is replaced by {0 if name != 'retries' else kept}"):
            assert getattr(BaseOperator("t", **{name: given}), name) == kept

    @pytest.mark.parametrize(("given", "kept"), [(["a", "b"], "a, b"), (1, "1")])
    def test_an_owner_becomes_a_text(self, given: Any, kept: str) -> None:
        assert BaseOperator("t", owner=given).owner == kept

    def test_wait_for_downstream_implies_depends_on_past(self) -> None:
        assert BaseOperator("t", wait_for_downstream=True).depends_on_past is True

    def test_names_of_airflow_1_work(self) -> None:
        with pytest.warns(DeprecationWarning, match="max_active_tis_per_dag") as caught:
            task = BaseOperator("t", task_concurrency=4)  # type: ignore[call-arg]
        assert task.max_active_tis_per_dag == 4
        assert caught[0].filename == __file__
        with pytest.warns(DeprecationWarning, match="do_xcom_push"):
            assert BaseOperator("t", xcom_push=False).do_xcom_push is False  # type: ignore[call-arg]

    def test_the_signature_lists_every_argument(self) -> None:
        names = inspect.signature(BaseOperator.__init__).parameters
        assert {"task_id", "retries", "dag", "on_failure_callback", "pool"} <= set(names)
        assert names["retries"].default == 0


class TestUnknown:
    def test_a_misspelt_argument_names_the_nearest_one(self) -> None:
        with pytest.raises(UnknownArgument, match=r"Shell 't' takes no argument 'retires'. Did you mean 'retries'\?"):
            Shell(task_id="t", command="x", retires=3)

    def test_an_unknown_argument_is_a_type_error_as_in_airflow(self) -> None:
        with pytest.raises(TypeError):
            BaseOperator("t", no_such_thing=1)  # type: ignore[call-arg]

    def test_suggestions_include_arguments_of_every_base_class(self) -> None:
        with pytest.raises(UnknownArgument, match="Did you mean 'login'"):
            LoginShell(task_id="t", command="x", logn="me")

    def test_a_misspelt_required_argument_is_reported_as_misspelt(self) -> None:
        with pytest.raises(UnknownArgument, match="Did you mean 'command'"):
            Shell(task_id="t", comand="x")  # type: ignore[call-arg]

    def test_a_missing_argument_is_named(self) -> None:
        with pytest.raises(TypeError, match="Shell 't' needs the argument command"):
            Shell(task_id="t")  # type: ignore[call-arg]

    def test_an_unknown_argument_of_a_class_without_kwargs_is_an_error(self) -> None:
        class Closed(BaseOperator):
            def __init__(self, task_id: str, size: int = 1) -> None:
                super().__init__(task_id)
                self.size = size

        with pytest.raises(UnknownArgument, match="Did you mean 'size'"):
            Closed("t", sze=2)  # type: ignore[call-arg]

    def test_positional_arguments_keep_their_names(self) -> None:
        class Old(BaseOperator):
            def __init__(self, task_id: str, path: str, **kwargs: Any) -> None:
                super().__init__(task_id, **kwargs)
                self.path = path

        task = Old("t", "/tmp", retries=1)
        assert (task.task_id, task.path, task.retries) == ("t", "/tmp", 1)
        with pytest.raises(TypeError, match="got two values"):
            Old("t", "/tmp", path="/")  # type: ignore[misc]
        with pytest.raises(TypeError, match="pass the arguments by name"):
            Old("t", "/tmp", 3)  # type: ignore[call-arg]

    def test_a_missing_super_init_call_is_an_error(self) -> None:
        class Forgetful(BaseOperator):
            def __init__(self, **kwargs: Any) -> None:
                pass

        with pytest.raises(DefinitionError, match=r"super\(\).__init__"):
            Forgetful(task_id="t")

    def test_template_fields_that_are_a_string_are_one_name(self) -> None:
        """As in Airflow: an operator of a provider package of 2025 has `template_fields = ("chat_id")`."""
        with pytest.warns(UserWarning, match="is the text 'command'; it should be a tuple"):
            typo: Any = type("Typo", (BaseOperator,), {"template_fields": "command"})
        assert typo.template_fields == ("command",)


class TestLater:
    @pytest.mark.parametrize("name", ["deadline"])
    def test_an_unsupported_argument_with_a_value_is_an_error(self, name: str) -> None:
        with pytest.raises(NotYetSupported, match=f"Shell 't': the argument {name}.* not supported yet"):
            Shell(task_id="t", command="x", **{name: object()})  # type: ignore[arg-type]

    @pytest.mark.parametrize("value", [None, [], {}, False, ""])
    def test_an_unsupported_argument_without_a_value_is_accepted(self, value: Any) -> None:
        Shell(task_id="t", command="x", retry_policy=value, deadline=value)

    def test_the_deployment_decides_which_executors_there_are(self) -> None:
        assert Shell(task_id="t", command="x", executor="CeleryExecutor").executor == "CeleryExecutor"

    def test_an_executor_can_be_given_by_the_path_of_its_class(self) -> None:
        task = Shell(task_id="t", command="x", executor="airflow.executors.local_executor.LocalExecutor")
        assert task.executor == "LocalExecutor"

    def test_an_invalid_weight_strategy_is_an_error(self) -> None:
        with pytest.raises(DefinitionError, match="absolute or a PriorityWeightStrategy"):
            Shell(task_id="w", command="x", weight_rule=object())
        with pytest.raises(DefinitionError, match="cannot be imported"):
            Shell(task_id="w", command="x", weight_rule="no.such.Strategy")

    def test_an_invalid_retry_policy_is_an_error(self) -> None:
        with pytest.raises(DefinitionError, match="must be a RetryPolicy"):
            Shell(task_id="w", command="x", retry_policy=object())


class TestDefaultArgs:
    def test_default_args_set_arguments_of_every_base_class(self) -> None:
        with DAG("d", default_args={"retries": 2, "shell": "zsh", "login": "me", "command": "ls"}):
            task = LoginShell(task_id="t")
        assert (task.retries, task.shell, task.login, task.command) == (2, "zsh", "me", "ls")

    def test_the_innermost_default_args_win(self) -> None:
        with (
            DAG("d", default_args={"retries": 1, "owner": "dag", "pool": "p", "queue": "q"}),
            TaskGroup("outer", default_args={"owner": "outer", "pool": "outer"}),
            TaskGroup("inner", default_args={"pool": "inner"}),
        ):
            task = Shell(task_id="t", command="x", default_args={"queue": "own"}, retries=9)
        assert (task.retries, task.owner, task.pool, task.queue) == (9, "outer", "inner", "own")

    def test_an_explicit_none_wins_over_default_args(self) -> None:
        with DAG("d", default_args={"execution_timeout": timedelta(1)}):
            assert Shell(task_id="t", command="x", execution_timeout=None).execution_timeout is None

    def test_default_args_that_no_class_accepts_are_ignored_here(self) -> None:
        with DAG("d", default_args={"mine": 1}):
            Shell(task_id="t", command="x")

    def test_unsupported_arguments_in_default_args_are_errors(self) -> None:
        with (
            DAG("d", default_args={"deadline": print}),
            pytest.raises(NotYetSupported, match="deadline is not supported yet"),
        ):
            Shell(task_id="t", command="x")

    def test_an_operator_created_inside_another_has_its_own_default_args(self) -> None:
        class Outer(BaseOperator):
            def __init__(self, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                self.inner = Shell(task_id=f"{self.task_id}_inner", command="x", dag=DAG("other"))

        with DAG("d", default_args={"retries": 5}):
            task = Outer(task_id="t")
        assert (task.retries, task.inner.retries) == (5, 0)


class TestPlace:
    @pytest.mark.parametrize("task_id", ["", "a b", "ä!", "a/b", "x" * 251, None, 7])
    def test_invalid_task_ids_are_errors(self, task_id: Any) -> None:
        with pytest.raises(DefinitionError, match="task_id"):
            BaseOperator(task_id)

    def test_valid_task_ids_are_accepted(self) -> None:
        for task_id in ("a", "A-b_c.d9", "x" * 250):
            assert BaseOperator(task_id).task_id == task_id

    def test_a_duplicate_task_id_is_an_error(self) -> None:
        with DAG("d"):
            BaseOperator("t")
            with pytest.raises(DuplicateTaskId, match=r"'d'.*already a task 't'"):
                BaseOperator("t")

    def test_the_dag_argument_wins_over_the_open_dag(self) -> None:
        other = DAG("other")
        with DAG("open"):
            task = BaseOperator("t", dag=other)
        assert task.dag is other
        assert task.dag_id == "other"

    def test_a_group_of_another_dag_is_an_error(self) -> None:
        group = TaskGroup("g", dag=DAG("one"))
        with pytest.raises(DefinitionError, match="'two', but the task group 'g' belongs to DAG 'one'"):
            BaseOperator("t", dag=DAG("two"), task_group=group)

    def test_a_task_can_be_created_without_a_dag(self) -> None:
        task = BaseOperator("t")
        assert not task.has_dag()
        assert task.get_dag() is None
        with pytest.raises(DefinitionError, match="in no DAG"):
            _ = task.dag
        task.dag = DAG("d")
        assert task.dag.get_task("t") is task

    @pytest.mark.spec("S20")
    def test_upstream_and_downstream_tasks_can_be_read(self) -> None:
        with DAG("d") as dag:
            a, b, c, d = (BaseOperator(name) for name in "abcd")
            a >> [b, c] >> d
        assert a.downstream_task_ids == {"b", "c"}
        assert d.upstream_list == [b, c]
        assert d.upstream_task_ids == {"b", "c"}
        assert a.get_flat_relatives() == [b, c, d]
        assert d.get_flat_relative_ids(upstream=True) == {"a", "b", "c"}
        assert (dag.roots, dag.leaves) == ([a], [d])
        with pytest.raises(NotFound, match="Did you mean"):
            dag.get_task("aa")


def test_tasks_are_ordered_by_their_ids() -> None:
    """As in Airflow, so a file with the slip `a > b` loads; nothing depends on anything then."""
    with DAG("d", schedule=None):
        b, a = BaseOperator(task_id="b"), BaseOperator(task_id="a")
    assert sorted([b, a]) == [a, b]
    assert a <= b
    assert b >= a
    with pytest.warns(UserWarning, match="a > b compares two tasks and makes no dependency. Did you mean a >> b?"):
        assert not a > b
    assert not a.downstream_task_ids
    with pytest.raises(TypeError):
        _ = a < "b"


def test_a_deep_copy_shares_what_the_operator_says() -> None:
    import copy

    constant = object()

    class Google(BaseOperator):
        """As the package google: a constant that must not be copied."""

        shallow_copy_attrs = ("client",)

        def __init__(self, given: Any, client: Any, **arguments: Any) -> None:
            super().__init__(**arguments)
            self.given, self.client = given, client

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            memo[id(constant)] = constant
            return super().__deepcopy__(memo)

    inner = [1]
    with DAG("d", schedule=None):
        task = Google(task_id="a", given=[constant, inner], client=[inner])
    copied = copy.deepcopy(task)
    assert copied is not task
    assert copied.given[0] is constant
    assert copied.given[1] is not inner
    assert copied.client is not task.client
    assert copied.client[0] is inner
