"""Features of the base classes that operators, triggers and hooks of provider packages use."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tradewind import DAG
from tradewind.model.errors import DefinitionError
from tradewind.sdk.conf import SettingsReader
from tradewind.sdk.decorators import DecoratedOperator, task_decorator_factory
from tradewind.sdk.exceptions import AirflowConfigException
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.trigger import BaseTrigger
from tradewind.sdk.variables import BaseHook
from tradewind.sensors.base import BaseSensorOperator


class _Container(DecoratedOperator):
    custom_operator_name = "@task.container"

    def execute(self, context: Any) -> Any:
        return self.get_python_source(), dict(self.determine_kwargs(context))


def container(function: Any = None, **arguments: Any) -> Any:
    return task_decorator_factory(function, decorated_operator_class=_Container, **arguments)


def _keep(function: Any) -> Any:
    return function


def test_the_source_of_a_decorated_function_has_no_task_decorators() -> None:
    task = SimpleNamespace(container=container)

    with DAG("d"):

        @task.container(
            retries=2,
        )
        # a comment
        @_keep
        def work(x: int, ds: str | None = None) -> int:
            return x

        operator = work(1).operator
    text, kwargs = operator.execute({"ds": "2024-01-01", "other": 1})
    assert kwargs == {"ds": "2024-01-01"}
    assert text == "@_keep\ndef work(x: int, ds: str | None = None) -> int:\n    return x\n"


class _Strict(DecoratedOperator):
    """An operator of a DAG folder, which names all arguments, as Airflow's own operators of decorators do."""

    custom_operator_name = "@task.strict"

    def __init__(self, *, python_callable: Any, op_args: Any, op_kwargs: Any, **kwargs: Any) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)


def test_a_mapped_task_of_a_decorator_of_ones_own_gets_all_arguments_of_a_call() -> None:
    with DAG("d"):
        mapped = (
            task_decorator_factory(lambda x, y: None, decorated_operator_class=_Strict, task_id="t").partial(y=1).expand(x=[2])
        )
    instance = mapped.operator.unmap({"x": 2})
    assert (instance.op_args, instance.op_kwargs) == ([], {"y": 1, "x": 2})


def test_loggers_have_airflows_names_in_packages_of_airflow() -> None:
    operator = type("AcmeOperator", (BaseOperator,), {"__module__": "airflow.providers.acme.operators.acme"})
    assert operator(task_id="t").log.name == "airflow.task.operators.airflow.providers.acme.operators.acme.AcmeOperator"
    assert operator(task_id="t", logger_name="mine").log.name == "airflow.task.operators.mine"
    hook = type("AcmeHook", (BaseHook,), {"__module__": "airflow.providers.acme.hooks.acme", "__init__": lambda self: None})
    assert hook().log.name == "airflow.task.hooks.airflow.providers.acme.hooks.acme.AcmeHook"


def test_a_trigger_renders_the_arguments_of_its_task() -> None:
    class Wait(BaseTrigger):
        def __init__(self, path: str, other: str) -> None:
            super().__init__()
            self.path, self.other = path, other

    trigger = Wait("{{ ds }}/a", "{{ ds }}")
    arguments = SimpleNamespace(trigger_kwargs={"path": "{{ ds }}/a"})
    owner = SimpleNamespace(
        template_fields=("path", "other"), template_ext=(), start_trigger_args=arguments, get_dag=lambda: None
    )
    trigger.task_instance = SimpleNamespace(task_id="t", task=owner)
    assert (trigger.task_id, trigger.template_fields) == ("t", ("path",))
    trigger.render_template_fields({"ds": "2024-01-01"})
    assert (trigger.path, trigger.other) == ("2024-01-01/a", "{{ ds }}")


def test_a_sensor_can_be_executed_without_a_task_instance() -> None:
    class Twice(BaseSensorOperator):
        left = 2

        def poke(self, context: Any) -> bool:
            self.left -= 1
            return not self.left

    sensor = Twice(task_id="t", poke_interval=0)
    assert sensor.execute(None) is None
    assert sensor.left == 0


def test_settings_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = SettingsReader()
    conf.install({"core.parallelism": "8"})
    for name, value in (("JSON", '{"a": [1]}'), ("CLASS", "collections.OrderedDict"), ("BAD", "{"), ("SECONDS", "90")):
        monkeypatch.setenv(f"AIRFLOW__MINE__{name}", value)
    assert conf.getjson("mine", "json") == {"a": [1]}
    assert conf.getjson("mine", "nothing", fallback=[]) == []
    assert conf.getimport("mine", "class").__name__ == "OrderedDict"
    assert conf.gettimedelta("mine", "seconds") == timedelta(seconds=90)
    assert conf.getsection("mine") == {"json": '{"a": [1]}', "class": "collections.OrderedDict", "bad": "{", "seconds": 90}
    assert conf.getsection("nothing") is None
    assert conf.get("operators", "default_owner") == "airflow"
    assert conf.get("operators", "default_owner", fallback="me") == "airflow", "a default is stronger than a fallback"
    assert conf.get("mine", "nothing", fallback="me") == "me"
    assert conf.value_if_set("operators", "default_owner") is None
    assert (conf.has_option("smtp", "smtp_host"), conf.is_set("smtp", "smtp_host")) == (True, False)
    with pytest.raises(AirflowConfigException, match="is not valid JSON"):
        conf.getjson("mine", "bad")
    with pytest.raises(AirflowConfigException, match="cannot be loaded"):
        conf.getimport("mine", "json")


def test_a_unit_test_may_replace_the_init_of_a_base() -> None:
    class Check(BaseOperator):
        def __init__(self, sql: str, **kwargs: Any) -> None:
            super().__init__(**kwargs)

    class AcmeCheck(Check):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)

    with mock.patch.object(Check, "__init__", return_value=None) as init:
        AcmeCheck(task_id="t", sql="select 1")
    init.assert_called_once_with(task_id="t", sql="select 1", default_args={})

    class Forgets(BaseOperator):
        def __init__(self, **kwargs: Any) -> None: ...

    with pytest.raises(DefinitionError, match="does not call super"):
        Forgets(task_id="t")
