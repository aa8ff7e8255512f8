"""Tasks that only wait: their wait in the definition, and the cases in which an attempt is needed."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pendulum
import pytest

from tradewind import DAG
from tradewind.model.definition import DefinitionDefaults, decode_definition, encode_definition
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, to_micros
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan
from tradewind.operators.empty import EmptyOperator
from tradewind.sdk.definition import to_definition
from tradewind.sensors.date_time import DateTimeSensor, DateTimeSensorAsync
from tradewind.sensors.external_task import ExternalTaskMarker, ExternalTaskSensor
from tradewind.sensors.python import PythonSensor
from tradewind.sensors.time import TimeSensor
from tradewind.sensors.time_delta import TimeDeltaSensor, WaitSensor
from tradewind.sensors.weekday import DayOfWeekSensor

AT = datetime(2026, 1, 2, tzinfo=UTC)
WEEK = 7 * DAY


def plan(cls: Any, zone: str = "UTC", **kwargs: Any) -> WaitPlan | None:
    with DAG("d", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz=zone)) as dag:
        cls(task_id="t", **kwargs)
    data = encode_definition(to_definition(dag, "d.py", DefinitionDefaults()))
    return decode_definition(data).tasks[0].wait


@pytest.mark.parametrize(
    ("cls", "kwargs", "until"),
    [
        (DateTimeSensor, {"target_time": AT}, MomentPlan("epoch", to_micros(AT))),
        (DateTimeSensorAsync, {"target_time": "2026-01-02"}, MomentPlan("epoch", to_micros(AT))),
        (TimeDeltaSensor, {"delta": timedelta(hours=3)}, MomentPlan("interval_end", 3 * HOUR)),
        (WaitSensor, {"time_to_wait": 2, "mode": "reschedule"}, MomentPlan("start", 2 * MINUTE)),
        (TimeSensor, {"target_time": time(6, 30)}, MomentPlan("midnight", 6 * HOUR + 30 * MINUTE, "UTC")),
        (TimeSensor, {"target_time": time(6), "zone": "Asia/Tokyo"}, MomentPlan("midnight", 6 * HOUR, "Asia/Tokyo")),
        (ExternalTaskSensor, {"external_dag_id": "up"}, TasksPlan("up")),
        (
            ExternalTaskSensor,
            {
                "external_dag_id": "up",
                "external_task_ids": ["a", "b"],
                "execution_delta": timedelta(hours=1),
                "failed_states": ["failed"],
                "deferrable": True,
                "never_fail": True,
            },
            TasksPlan("up", HOUR, task_ids=("a", "b"), failed=("failed",), failing_skips=True),
        ),
        (
            ExternalTaskSensor,
            {"external_dag_id": "up", "external_task_group_id": "g", "failed_states": ["failed"], "silent_fail": True},
            TasksPlan("up", group="g"),
        ),
    ],
)
def test_waits_that_are_known_when_the_file_is_imported(cls: Any, kwargs: Any, until: MomentPlan | TasksPlan) -> None:
    assert plan(cls, **kwargs) == WaitPlan(until, WEEK)
    assert plan(cls, **kwargs, timeout=90, soft_fail="never_fail" not in kwargs) is not None


def test_the_timeout_is_in_the_definition() -> None:
    assert plan(WaitSensor, time_to_wait=1, timeout=90, soft_fail=True) == WaitPlan(
        MomentPlan("start", MINUTE), 90 * SECOND, soft_fail=True
    )


class _Own(WaitSensor):
    """A subclass with its own code."""


def _call(*args: Any) -> None:
    """A callback."""


@pytest.mark.parametrize(
    ("cls", "kwargs"),
    [
        (DateTimeSensor, {"target_time": "{{ data_interval_end }}"}),
        (DateTimeSensor, {"target_time": "tomorrow"}),
        (ExternalTaskSensor, {"external_dag_id": "up_{{ ds }}"}),
        (ExternalTaskSensor, {"external_dag_id": "up", "external_task_id": "{% if 1 %}x{% endif %}"}),
        (ExternalTaskSensor, {"external_dag_id": "up", "execution_date_fn": lambda date: date}),
        (ExternalTaskSensor, {"external_dag_id": "up", "check_existence": True}),
        (DayOfWeekSensor, {"week_day": "monday"}),
        (PythonSensor, {"python_callable": _call}),
        (EmptyOperator, {}),
        (ExternalTaskMarker, {"external_dag_id": "up", "external_task_id": "x"}),
        (_Own, {"time_to_wait": 1}),
        (WaitSensor, {"time_to_wait": 1, "on_success_callback": _call}),
        (WaitSensor, {"time_to_wait": 1, "on_execute_callback": _call}),
        (WaitSensor, {"time_to_wait": 1, "pre_execute": _call}),
        (WaitSensor, {"time_to_wait": 1, "post_execute": _call}),
        (WaitSensor, {"time_to_wait": 1, "email": "ann@example.org"}),
        (WaitSensor, {"time_to_wait": 1, "outlets": ["x"]}),
        (WaitSensor, {"time_to_wait": 1, "execution_timeout": timedelta(hours=1)}),
    ],
)
def test_tasks_that_need_an_attempt(cls: Any, kwargs: Any) -> None:
    assert plan(cls, **kwargs) is None


def test_mapped_tasks_need_an_attempt() -> None:
    with DAG("d", schedule=None) as dag:
        WaitSensor.partial(task_id="t").expand(time_to_wait=[1, 2])
    assert to_definition(dag, "d.py", DefinitionDefaults()).tasks[0].wait is None
