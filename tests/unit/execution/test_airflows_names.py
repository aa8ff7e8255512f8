"""Every template variable, macro and filter of Airflow 1, 2 and 3 exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tradewind
from tests.unit.execution.world import World, carry_out, installed, workload
from tradewind import sdk
from tradewind.execution import macros
from tradewind.execution.context import build_context
from tradewind.execution.run_task import TaskResult
from tradewind.execution.templates import FILTERS
from tradewind.execution.xcom_codec import decode_xcom
from tradewind.sdk.dag import DAG
from tradewind.sdk.load import get_parsing_context
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.operator_link import BaseOperatorLink
from tradewind.sdk.xcom_arg import literal


def words(text: str) -> list[str]:
    return text.split()


EVERY_RUN = words(
    """dag task ti task_instance dag_run run_id params macros var conn inlets outlets test_mode task_instance_key_str conf
    prev_start_date_success prev_end_date_success map_index_template expanded_ti_count try_number templates_dict
    inlet_events outlet_events triggering_dataset_events triggering_asset_events partition_key partition_date
    task_reschedule_count task_state_store asset_state_store"""
)
WITH_A_DATE = words(
    """ds ds_nodash ts ts_nodash ts_nodash_with_tz logical_date data_interval_start data_interval_end
    prev_data_interval_start_success prev_data_interval_end_success execution_date next_execution_date prev_execution_date
    prev_execution_date_success next_ds next_ds_nodash prev_ds prev_ds_nodash yesterday_ds yesterday_ds_nodash tomorrow_ds
    tomorrow_ds_nodash END_DATE end_date latest_date tables"""
)
MACROS = words(
    "datetime timedelta time uuid json yaml dateutil random ds_add ds_format ds_format_locale datetime_diff_for_humans"
)


@pytest.fixture(autouse=True)
def world() -> Iterator[World]:
    with installed() as found:
        yield found


def a_task() -> BaseOperator:
    with DAG("d", schedule="@daily"):
        return BaseOperator("t")


@pytest.mark.parametrize("name", EVERY_RUN + WITH_A_DATE)
def test_a_template_variable_exists(name: str) -> None:
    context = build_context(a_task(), workload())
    assert name in context
    assert context[name] is context[name]


@pytest.mark.parametrize("name", WITH_A_DATE)
def test_without_a_logical_date_derived_variables_do_not_exist(name: str) -> None:
    context = build_context(a_task(), workload(at=None))
    assert name not in context
    with pytest.raises(KeyError, match="This run has no logical date"):
        context[name]


@pytest.mark.parametrize("name", MACROS)
def test_a_macro_exists(name: str) -> None:
    assert getattr(macros, name) is not None


def test_filters_exist() -> None:
    assert set(FILTERS) == {"ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz"}


def test_kwargs_take_all_variables() -> None:
    from tradewind.operators.python import PythonOperator

    seen: list[str] = []

    def takes(**kwargs: Any) -> None:
        seen.extend(kwargs)

    with DAG("d", schedule="@daily"):
        task = PythonOperator(task_id="t", python_callable=takes)
    assert carry_out(task).reason is None
    assert {"outlet_events", "ds", "ti"} <= set(seen)


def test_variables_with_common_names_are_passed_only_to_parameters_without_default() -> None:
    from tradewind.operators.python import PythonOperator

    seen: list[Any] = []

    def default(partition_key: str = "mine") -> None:
        seen.append(partition_key)

    def needed(partition_key: Any) -> None:
        seen.append(partition_key)

    for function in (default, needed):
        assert carry_out(PythonOperator(task_id="t", python_callable=function)).reason is None
    assert seen == ["mine", None]


@pytest.mark.parametrize("name", sorted(set(tradewind.NAMES)))
def test_every_listed_name_can_be_imported(name: str) -> None:
    assert getattr(tradewind, name) is not None


@pytest.mark.parametrize("name", sorted(sdk.NAMES))
def test_every_listed_name_can_be_imported_from_tradewind(name: str) -> None:
    assert getattr(sdk, name) is not None


# --- smaller things ---------------------------------------------------------------------------------------------------


class Echo(BaseOperator):
    template_fields = ("text",)

    def __init__(self, *, text: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.text = text

    def execute(self, context: Any) -> Any:
        return self.text


def returned(result: TaskResult) -> Any:
    return {one.key: decode_xcom(one.value) for one in result.pushed}


def test_a_literal_is_not_rendered() -> None:
    result = carry_out(Echo(task_id="t", text=[literal("{{ ds }}"), "{{ ds }}"]))
    assert returned(result) == {"return_value": ["{{ ds }}", "2024-03-05"]}


def test_get_parsing_context_names_no_task() -> None:
    assert get_parsing_context() == (None, None)


def test_operator_links_are_pushed_at_the_end_of_the_task(caplog: pytest.LogCaptureFixture) -> None:
    class JobLink(BaseOperatorLink):
        name = "Job"

        def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
            return f"https://jobs/{ti_key.dag_id}/{ti_key.run_id}/{operator.text}"  # type: ignore[attr-defined]

    class Broken(JobLink):
        def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
            raise ValueError("no job")

    class Linked(Echo):
        operator_extra_links = (JobLink(), Broken())

        def execute(self, context: Any) -> Any:
            raise RuntimeError

    result = carry_out(Linked(task_id="t", text="{{ ds }}"))
    assert returned(result) == {"_link_JobLink": "https://jobs/d/r1/2024-03-05"}
    assert "cannot compute the link Broken of task t" in caplog.text


def test_email_of_the_task_is_in_the_environment() -> None:
    class Env(BaseOperator):
        def execute(self, context: Any) -> Any:
            import os

            return os.environ["AIRFLOW_CTX_DAG_EMAIL"]

    assert returned(carry_out(Env("t", email=["a@b.c", "d@e.f"]))) == {"return_value": "a@b.c,d@e.f"}


def test_an_operator_can_render_templates_itself() -> None:
    class Renders(BaseOperator):
        def execute(self, context: Any) -> Any:
            env = self.get_template_env()
            return [self.render_template({"day": "{{ ds }}"}, context), env.from_string("{{ 1 + 1 }}").render()]

    with DAG("d"):
        task = Renders("t")
    assert returned(carry_out(task)) == {"return_value": [{"day": "2024-03-05"}, "2"]}


def test_inlets_and_outlets_can_be_added_later() -> None:
    with DAG("d"):
        task = BaseOperator("t", inlets="a")
    task.add_inlets(["b"])
    task.add_outlets(["c"])
    assert (task.get_inlet_defs(), task.get_outlet_defs()) == (["a", "b"], ["c"])
