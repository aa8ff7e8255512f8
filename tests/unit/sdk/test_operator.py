"""BaseOperator: its arguments, what fills them in, and what it says when they are wrong."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta
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
    def test_what_is_not_given_has_airflows_defaults(self) -> None:
        task = BaseOperator("t")
        assert (task.owner, task.retries, task.retry_delay) == ("airflow", 0, timedelta(minutes=5))
        assert (task.pool, task.pool_slots, task.queue) == ("default_pool", 1, "default")
        assert task.trigger_rule is TriggerRule.ALL_SUCCESS
        assert task.weight_rule is WeightRule.DOWNSTREAM
        assert task.do_xcom_push is True

    def test_none_means_not_given(self) -> None:
        task = BaseOperator("t", retries=None, pool=None, execution_timeout=None)
        assert (task.retries, task.pool, task.execution_timeout) == (0, "default_pool", None)

    @pytest.mark.parametrize(
        ("name", "given", "kept"),
        [
            ("retry_delay", 90, timedelta(seconds=90)),
            ("retry_delay", timedelta(hours=1), timedelta(hours=1)),
            ("retries", "3", 3),
            ("retry_exponential_backoff", True, 2.0),
            ("retry_exponential_backoff", 1.5, 1.5),
            ("trigger_rule", "none_failed_or_skipped", TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS),
            ("trigger_rule", "dummy", TriggerRule.ALWAYS),
            ("trigger_rule", TriggerRule.ONE_DONE, TriggerRule.ONE_DONE),
            ("weight_rule", "absolute", WeightRule.ABSOLUTE),
            ("start_date", "2024-02-29", datetime(2024, 2, 29)),  # noqa: DTZ001 (the DAG's zone is meant)
        ],
    )
    def test_values_are_read(self, name: str, given: Any, kept: Any) -> None:
        assert getattr(BaseOperator("t", **{name: given}), name) == kept

    @pytest.mark.parametrize(
        ("name", "given", "says"),
        [
            ("retries", -1, "at least 0"),
            ("retries", 1.5, "integer"),
            ("retries", "many", "integer"),
            ("pool_slots", 0, "at least 1"),
            ("retry_delay", "soon", "timedelta or a number of seconds"),
            ("retry_delay", timedelta(seconds=-1), "negative"),
            ("execution_timeout", 60, r"timedelta\(minutes=5\)"),
            ("trigger_rule", "all_sucess", "Did you mean 'all_success'"),
            ("weight_rule", "downstrem", "Did you mean 'downstream'"),
            ("start_date", "soon", "2026-01-31"),
            ("pool", 7, "must be a string"),
            ("pre_execute", "f", "function"),
        ],
    )
    def test_a_wrong_value_is_refused_with_its_name_and_task(self, name: str, given: Any, says: str) -> None:
        with pytest.raises(DefinitionError, match=says) as caught:
            Shell(task_id="t1", command="x", **{name: given})
        assert "Shell 't1'" in str(caught.value)
        assert name in str(caught.value)

    def test_wait_for_downstream_implies_depends_on_past(self) -> None:
        assert BaseOperator("t", wait_for_downstream=True).depends_on_past is True

    def test_names_of_airflow_1_are_understood(self) -> None:
        with pytest.warns(DeprecationWarning, match="max_active_tis_per_dag") as said:
            task = BaseOperator("t", task_concurrency=4)  # type: ignore[call-arg]
        assert task.max_active_tis_per_dag == 4
        assert said[0].filename == __file__
        with pytest.warns(DeprecationWarning, match="do_xcom_push"):
            assert BaseOperator("t", xcom_push=False).do_xcom_push is False  # type: ignore[call-arg]

    def test_tools_see_every_argument_in_the_signature(self) -> None:
        names = inspect.signature(BaseOperator.__init__).parameters
        assert {"task_id", "retries", "dag", "on_failure_callback", "pool"} <= set(names)
        assert names["retries"].default == 0


class TestUnknown:
    def test_a_misspelt_argument_names_the_nearest_one(self) -> None:
        with pytest.raises(UnknownArgument, match=r"Shell 't' takes no argument 'retires'. Did you mean 'retries'\?"):
            Shell(task_id="t", command="x", retires=3)

    def test_it_is_a_type_error_as_in_airflow(self) -> None:
        with pytest.raises(TypeError):
            BaseOperator("t", no_such_thing=1)  # type: ignore[call-arg]

    def test_arguments_of_every_class_are_near(self) -> None:
        with pytest.raises(UnknownArgument, match="Did you mean 'login'"):
            LoginShell(task_id="t", command="x", logn="me")

    def test_a_misspelt_required_argument_is_found_before_the_missing_one(self) -> None:
        with pytest.raises(UnknownArgument, match="Did you mean 'command'"):
            Shell(task_id="t", comand="x")  # type: ignore[call-arg]

    def test_a_missing_argument_is_named(self) -> None:
        with pytest.raises(TypeError, match="Shell 't' needs the argument command"):
            Shell(task_id="t")  # type: ignore[call-arg]

    def test_a_class_that_takes_no_further_arguments(self) -> None:
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

    def test_a_forgotten_super_call_is_noticed(self) -> None:
        class Forgetful(BaseOperator):
            def __init__(self, **kwargs: Any) -> None:
                pass

        with pytest.raises(DefinitionError, match=r"super\(\).__init__"):
            Forgetful(task_id="t")

    def test_template_fields_must_not_be_a_text(self) -> None:
        with pytest.raises(DefinitionError, match="must be a tuple"):
            type("Typo", (BaseOperator,), {"template_fields": "command"})


class TestLater:
    @pytest.mark.parametrize("name", ["deadline"])
    def test_a_known_argument_without_behaviour_is_refused_when_it_says_something(self, name: str) -> None:
        with pytest.raises(NotYetSupported, match=f"Shell 't': the argument {name}.* not supported yet"):
            Shell(task_id="t", command="x", **{name: object()})  # type: ignore[arg-type]

    @pytest.mark.parametrize("value", [None, [], {}, False, ""])
    def test_and_accepted_when_it_says_nothing(self, value: Any) -> None:
        Shell(task_id="t", command="x", retry_policy=value, deadline=value)

    def test_another_executor_is_refused(self) -> None:
        with pytest.raises(NotYetSupported, match=r"executor is 'Celery'.* not supported yet"):
            Shell(task_id="t", command="x", executor="Celery")

    def test_an_executor_by_the_path_of_its_class(self) -> None:
        task = Shell(task_id="t", command="x", executor="airflow.executors.local_executor.LocalExecutor")
        assert task.executor == "LocalExecutor"

    def test_what_is_no_weight_strategy(self) -> None:
        with pytest.raises(DefinitionError, match="absolute or a PriorityWeightStrategy"):
            Shell(task_id="w", command="x", weight_rule=object())
        with pytest.raises(DefinitionError, match="cannot be imported"):
            Shell(task_id="w", command="x", weight_rule="no.such.Strategy")

    def test_what_is_no_retry_policy(self) -> None:
        with pytest.raises(DefinitionError, match="must be a RetryPolicy"):
            Shell(task_id="w", command="x", retry_policy=object())


class TestDefaultArgs:
    def test_fill_arguments_of_every_class_by_name(self) -> None:
        with DAG("d", default_args={"retries": 2, "shell": "zsh", "login": "me", "command": "ls"}):
            task = LoginShell(task_id="t")
        assert (task.retries, task.shell, task.login, task.command) == (2, "zsh", "me", "ls")

    def test_the_nearer_ones_win(self) -> None:
        with (
            DAG("d", default_args={"retries": 1, "owner": "dag", "pool": "p", "queue": "q"}),
            TaskGroup("outer", default_args={"owner": "outer", "pool": "outer"}),
            TaskGroup("inner", default_args={"pool": "inner"}),
        ):
            task = Shell(task_id="t", command="x", default_args={"queue": "own"}, retries=9)
        assert (task.retries, task.owner, task.pool, task.queue) == (9, "outer", "inner", "own")

    def test_a_none_given_wins_over_a_default(self) -> None:
        with DAG("d", default_args={"execution_timeout": timedelta(1)}):
            assert Shell(task_id="t", command="x", execution_timeout=None).execution_timeout is None

    def test_what_no_class_takes_is_left_alone_here(self) -> None:
        with DAG("d", default_args={"mine": 1}):
            Shell(task_id="t", command="x")

    def test_later_arguments_are_refused_from_there_too(self) -> None:
        with (
            DAG("d", default_args={"deadline": print}),
            pytest.raises(NotYetSupported, match="deadline is not supported yet"),
        ):
            Shell(task_id="t", command="x")

    def test_an_operator_made_inside_another_has_its_own(self) -> None:
        class Outer(BaseOperator):
            def __init__(self, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                self.inner = Shell(task_id=f"{self.task_id}_inner", command="x", dag=DAG("other"))

        with DAG("d", default_args={"retries": 5}):
            task = Outer(task_id="t")
        assert (task.retries, task.inner.retries) == (5, 0)


class TestPlace:
    @pytest.mark.parametrize("task_id", ["", "a b", "ä", "a/b", "x" * 251, None, 7])
    def test_bad_ids(self, task_id: Any) -> None:
        with pytest.raises(DefinitionError, match="task_id"):
            BaseOperator(task_id)

    def test_good_ids(self) -> None:
        for task_id in ("a", "A-b_c.d9", "x" * 250):
            assert BaseOperator(task_id).task_id == task_id

    def test_a_second_task_of_that_id(self) -> None:
        with DAG("d"):
            BaseOperator("t")
            with pytest.raises(DuplicateTaskId, match=r"'d'.*already a task 't'"):
                BaseOperator("t")

    def test_the_dag_given_wins_over_the_open_one(self) -> None:
        other = DAG("other")
        with DAG("open"):
            task = BaseOperator("t", dag=other)
        assert task.dag is other
        assert task.dag_id == "other"

    def test_a_group_of_another_dag(self) -> None:
        group = TaskGroup("g", dag=DAG("one"))
        with pytest.raises(DefinitionError, match="'two', but the task group 'g' belongs to DAG 'one'"):
            BaseOperator("t", dag=DAG("two"), task_group=group)

    def test_a_task_without_a_dag(self) -> None:
        task = BaseOperator("t")
        assert not task.has_dag()
        assert task.get_dag() is None
        with pytest.raises(DefinitionError, match="in no DAG"):
            _ = task.dag
        task.dag = DAG("d")
        assert task.dag.get_task("t") is task

    @pytest.mark.spec("S20")
    def test_relatives(self) -> None:
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
