"""Arguments that are accepted without effect: the definition contains them and a warning."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tradewind.model.definition import DagDefinition, DefinitionDefaults, decode_definition, encode_definition
from tradewind.operators.empty import EmptyOperator
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.xcom_arg import referenced_operators


def define(dag: DAG) -> DagDefinition:
    found = to_definition(dag, "file.py", DefinitionDefaults())
    assert decode_definition(encode_definition(found)) == found
    return found


def shout(context: Any) -> None: ...


def test_callbacks_are_one_or_several_and_their_names_are_in_the_definition() -> None:
    with DAG("d", on_failure_callback=shout, default_args={"on_retry_callback": [shout]}) as dag:
        one = BaseOperator("one", on_failure_callback=shout, on_success_callback=[shout, partial(shout, 1)])
        BaseOperator("two", on_retry_callback=None)
    assert one.on_failure_callback == [shout]
    found = define(dag)
    assert found.callbacks == {"on_failure_callback": ("shout",)}
    assert found.tasks[0].callbacks == {
        "on_success_callback": ("shout", "shout"),
        "on_failure_callback": ("shout",),
        "on_retry_callback": ("shout",),
    }
    assert found.tasks[1].callbacks is None


def test_a_callback_that_is_no_function_is_ignored() -> None:
    """Airflow 3.3.2 accepts it, and fails to call it."""
    with pytest.warns(UserWarning, match="on_failure_callback has 'shout', which is not a function, and is ignored"):
        assert BaseOperator("t", on_failure_callback=["shout", print]).on_failure_callback == [print]  # type: ignore[list-item]
    with pytest.warns(UserWarning, match="on_success_callback has 1"):
        assert DAG("d", on_success_callback=[1]).on_success_callback is None  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        ({"outlets": "s3://b/k"}, "outlets of task one and 1 more: an outlet that is not an Asset"),
        ({"executor_config": {"a": 1}}, "executor_config of task one and 1 more: only the KubernetesExecutor uses it"),
        ({"resources": {"cpus": 2}}, "resources of task one and 1 more: they are not reserved"),
    ],
)
def test_an_argument_without_effect_is_one_warning_for_all_tasks(arguments: dict[str, Any], warning: str) -> None:
    with DAG("d", default_args=arguments) as dag:
        BaseOperator("one")
        BaseOperator("two")
    (message,) = define(dag).warnings
    assert message.startswith(warning)


def test_an_executor_that_the_deployment_does_not_have_is_a_warning() -> None:
    with DAG("d", default_args={"executor": "CeleryExecutor"}) as dag:
        BaseOperator("one")
        BaseOperator("two")
        BaseOperator("three", executor="airflow.executors.local_executor.LocalExecutor")
        BaseOperator("four", executor="slow")
    defaults = DefinitionDefaults(executors="LocalExecutor,slow:SequentialExecutor")
    assert to_definition(dag, "d.py", defaults).warnings == (
        "executor of task one and 1 more: CeleryExecutor is not an executor of this deployment (core.executor: LocalExecutor, "
        "SequentialExecutor); they run on LocalExecutor",
    )


def test_an_executor_config_has_an_effect_with_the_kubernetes_executor() -> None:
    pod = {"spec": {"containers": [{"name": "base", "image": "large:1"}]}}
    with DAG("d", default_args={"executor_config": {"pod_override": pod}}) as dag:
        BaseOperator("one")
        BaseOperator("two", executor="slow")
        BaseOperator("three", executor_config={"pod_override": "large"})
        BaseOperator("four", executor="airflow.executors.local_executor.LocalExecutor")
    definition = to_definition(
        dag, "d.py", DefinitionDefaults(executors="KubernetesExecutor,LocalExecutor,slow:SequentialExecutor")
    )
    assert definition.tasks[0].pod_override == json.dumps(pod, sort_keys=True)
    without, wrong = definition.warnings
    assert without == "executor_config of task two and 1 more: only the KubernetesExecutor uses it, so it has no effect"
    assert wrong.startswith("executor_config of task three: it changes no pod")


def test_an_argument_with_effect_is_no_warning() -> None:
    with DAG("d", on_failure_callback=shout) as dag:
        BaseOperator("t", email="a@b.c")
        BaseOperator("u", email_on_failure=True, on_failure_callback=shout)
    assert define(dag).warnings == ()


@pytest.mark.parametrize(
    ("given", "granted"),
    [
        ({"Op": {"can_edit", "can_read"}}, {"Op": ("edit", "read")}),
        ({"a": ["can_dag_read"], "b": {"can_delete"}}, {"a": ("read",), "b": ("delete",)}),
        ({"a": {"DAGs": {"can_read"}, "DAG Runs": {"can_create"}}}, {"a": ("read", "run")}),
        (None, {}),
        ({}, {}),
    ],
)
def test_access_control_of_a_dag_is_in_its_definition(given: Any, granted: Any) -> None:
    definition = define(DAG("d", access_control=given))
    assert (definition.access_control, definition.warnings) == (granted, ())


def test_an_unknown_permission_is_a_warning_and_gives_nothing() -> None:
    definition = define(DAG("d", access_control={"a": {"can_fly"}, "b": {"Pools": {"can_read"}}, "c": 7}))
    assert definition.access_control == {}
    assert len(definition.warnings) == 2
    assert all("is not a permission of a DAG" in warning for warning in definition.warnings)


def test_warnings_are_in_the_definition() -> None:
    class Table:
        uri = "db://orders"

    with DAG("d") as dag:
        BaseOperator("t", email="a@b.c", email_on_retry=False, sla=timedelta(seconds=5), inlets=[Table()], outlets=["x", Table])
    (task,) = define(dag).tasks
    assert (task.email, task.email_on_failure, task.email_on_retry, task.sla) == (("a@b.c",), True, False, 5_000_000)
    assert (task.inlets, task.outlets) == (("db://orders",), ("x", "db://orders"))


def test_an_empty_operator_with_callbacks_gets_a_process() -> None:
    with DAG("d") as dag:
        EmptyOperator(task_id="plain")
        EmptyOperator(task_id="tells", on_success_callback=shout)
        EmptyOperator(task_id="fails", on_failure_callback=shout)
        EmptyOperator(task_id="makes", outlets=["x"])
    assert [task.empty for task in define(dag).tasks] == [True, False, True, False]


class AnswersAll:
    """As the clients of some databases and services: every attribute exists, and the object has no truth value."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return AnswersAll()

    def __bool__(self) -> bool:
        raise NotImplementedError("no truth value")


class Unreachable:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no connection")


@pytest.mark.parametrize("client", [AnswersAll, Unreachable])
def test_a_client_as_an_argument_references_no_task(client: type) -> None:
    assert list(referenced_operators([client()])) == []


def test_objects_with_template_fields_may_reference_each_other() -> None:
    class Part:
        template_fields = ("other", "value")

        def __init__(self) -> None:
            self.other: Any = None
            self.value: Any = None

    with DAG("d"):
        up = BaseOperator("up")
    one, two = Part(), Part()
    one.other, two.other, two.value = two, one, up.output
    held: list[Any] = [one]
    held.append(held)
    assert list(referenced_operators(held)) == [up]
