"""Sensors that end their process and let the scheduler wait: when they do, for what, and how they continue."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from tests.unit.execution.world import DAY, World, carry_out
from tests.unit.operators.test_sensors import Clock
from tradewind import DAG
from tradewind.execution.run_task import TaskResult
from tradewind.model.moments import HOUR, MINUTE, SECOND, parse_moment
from tradewind.model.states import Outcome
from tradewind.model.waits import NEVER_BY_ITSELF, TIMEOUT, Deferral, MomentWait, Resumption, TasksWait
from tradewind.sensors import base
from tradewind.sensors.date_time import DateTimeSensor, DateTimeSensorAsync
from tradewind.sensors.external_task import ExternalTaskSensor
from tradewind.sensors.time import TimeSensor, TimeSensorAsync
from tradewind.sensors.time_delta import TimeDeltaSensor, TimeDeltaSensorAsync, WaitSensor
from tradewind.sensors.weekday import DayOfWeekSensor

START = parse_moment(DAY)
WEEK = 7 * 24 * HOUR

pytestmark = pytest.mark.usefixtures("world")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """It is midnight of a Tuesday."""
    found = Clock()
    monkeypatch.setattr(base, "_sleep", found.sleep)
    monkeypatch.setattr(base, "_now", lambda: found.now)
    monkeypatch.setattr(base, "_elapsed", lambda: found.now + 12345)
    return found


def _sensor(cls: Any, **kwargs: Any) -> Any:
    with DAG("d", schedule=None):
        return cls(task_id="t", **kwargs)


def _deferral(result: TaskResult) -> Deferral:
    assert result.outcome is Outcome.DEFERRED, result
    assert result.deferral is not None
    return result.deferral


@pytest.mark.spec("S408", "S409")
@pytest.mark.parametrize("mode", ["poke", "reschedule"])
@pytest.mark.parametrize("deferrable", [False, True])
def test_a_wait_for_a_point_in_time_needs_no_process(clock: Clock, mode: str, deferrable: bool) -> None:
    sensor = _sensor(DateTimeSensor, target_time=datetime(2024, 3, 5, 1, tzinfo=UTC), mode=mode, deferrable=deferrable)
    deferral = _deferral(carry_out(sensor))
    assert deferral == Deferral(MomentWait(START + HOUR), None, timeout_at=START + WEEK)
    assert clock.slept == []
    clock.now += 3600
    assert carry_out(sensor).outcome is Outcome.SUCCESS


@pytest.mark.parametrize(
    ("sensor", "at"),
    [
        (lambda: _sensor(DateTimeSensorAsync, target_time="{{ macros.ds_add(ds, 1) }}"), START + 24 * HOUR),
        (lambda: _sensor(TimeSensor, target_time=time(5)), START + 5 * HOUR),
        (lambda: _sensor(TimeSensorAsync, target_time=time(5), end_from_trigger=True), START + 5 * HOUR),
        (lambda: _sensor(WaitSensor, time_to_wait=3), START + 3 * MINUTE),
        (lambda: _sensor(DayOfWeekSensor, week_day="thursday"), START + 48 * HOUR),
        (lambda: _sensor(DayOfWeekSensor, week_day="friday", use_task_logical_date=True), NEVER_BY_ITSELF),
    ],
)
def test_waits_of_each_sensor_of_time(sensor: Any, at: int) -> None:
    assert _deferral(carry_out(sensor())).wait == MomentWait(at)


def test_a_duration_after_the_data_interval() -> None:
    for cls in (TimeDeltaSensor, TimeDeltaSensorAsync):
        result = carry_out(_sensor(cls, delta=timedelta(days=3)), interval_end=START)
        assert _deferral(result).wait == MomentWait(START + 72 * HOUR)


@pytest.mark.spec("S408")
def test_a_wait_for_tasks_of_another_dag_needs_no_process(world: World) -> None:
    sensor = _sensor(
        ExternalTaskSensor,
        external_dag_id="up",
        external_task_ids=["a", "b"],
        failed_states=["failed"],
        execution_delta=timedelta(hours=1),
        soft_fail=True,
        timeout=60,
    )
    assert _deferral(carry_out(sensor)) == Deferral(
        TasksWait("up", (START - HOUR,), task_ids=("a", "b"), failed=("failed",), soft_fail=True),
        None,
        timeout_at=START + 60 * SECOND,
        soft_fail=True,
    )


def test_the_task_makes_the_first_poke_itself(world: World) -> None:
    world.states = [(START, None, "success")]
    assert carry_out(_sensor(ExternalTaskSensor, external_dag_id="up")).outcome is Outcome.SUCCESS
    world.states = [(START, None, "failed")]
    failing = _sensor(ExternalTaskSensor, external_dag_id="up", failed_states=["failed"], never_fail=True)
    assert carry_out(failing).outcome is Outcome.SKIPPED


def test_soft_fail_and_never_fail_apply_to_the_wait(world: World) -> None:
    """silent_fail: continue to wait. never_fail: become skipped."""
    about = {"external_dag_id": "up", "failed_states": ["failed"]}
    silent = _deferral(carry_out(_sensor(ExternalTaskSensor, **about, silent_fail=True))).wait
    assert isinstance(silent, TasksWait)
    assert (silent.failed, silent.soft_fail) == ((), False)
    never = _deferral(carry_out(_sensor(ExternalTaskSensor, **about, never_fail=True))).wait
    assert isinstance(never, TasksWait)
    assert (never.failed, never.soft_fail) == (("failed",), True)


def test_the_timeout_counts_from_the_first_start_of_the_try() -> None:
    sensor = _sensor(WaitSensor, time_to_wait=600, timeout=3600)
    assert _deferral(carry_out(sensor, first_started=START - MINUTE)).timeout_at == START - MINUTE + HOUR
    late = carry_out(_sensor(WaitSensor, time_to_wait=600, timeout=3600), first_started=START - 2 * HOUR)
    assert late.outcome is Outcome.FAILED_FINAL


class _LooksItself(DateTimeSensor):
    def poke(self, context: Any) -> bool:
        return super().poke(context)


class _RunsItself(ExternalTaskSensor):
    def execute(self, context: Any) -> Any:
        return super().execute(context)


class _OtherMoment(DateTimeSensor):
    def moment(self, context: Any) -> datetime:
        return super().moment(context) + timedelta(hours=1)


def test_a_subclass_with_its_own_poke_uses_it(clock: Clock, world: World) -> None:
    own = _sensor(_LooksItself, target_time="2024-03-05T00:00:30", poke_interval=20)
    assert carry_out(own).outcome is Outcome.SUCCESS
    assert clock.slept == [20, 10]
    external = _sensor(_RunsItself, external_dag_id="up", mode="reschedule")
    assert carry_out(external).outcome is Outcome.RESCHEDULE
    assert _deferral(carry_out(_sensor(_OtherMoment, target_time=DAY))).wait == MomentWait(START + HOUR)


def test_callbacks_and_hooks_are_called_after_the_wait(clock: Clock) -> None:
    """The task continues in one more attempt, which calls its callbacks and hooks."""
    called: list[Any] = []
    sensor = _sensor(
        WaitSensor, time_to_wait=1, on_success_callback=lambda context: None, post_execute=lambda c, r: called.append(r)
    )
    deferral = _deferral(carry_out(sensor))
    assert deferral.method == "after_wait"
    assert called == []
    clock.now += 60
    assert carry_out(sensor, resumption=Resumption("after_wait"), first_started=START).outcome is Outcome.SUCCESS
    assert called == [None]


@pytest.mark.parametrize(
    ("arguments", "outcome", "words"),
    [
        ({"timeout": 60}, Outcome.FAILED_FINAL, "longer than its timeout of 60 seconds"),
        ({"timeout": 60, "soft_fail": True}, Outcome.SKIPPED, "soft_fail"),
        ({"execution_timeout": timedelta(seconds=60)}, Outcome.FAILED, "execution_timeout"),
    ],
)
def test_a_wait_that_is_too_long(clock: Clock, arguments: Any, outcome: Outcome, words: str) -> None:
    def make() -> Any:
        return _sensor(WaitSensor, time_to_wait=600, on_failure_callback=print, **arguments)

    assert _deferral(carry_out(make())).timeout_at == START + 60 * SECOND
    clock.now += 61
    result = carry_out(make(), resumption=Resumption("after_wait", error=TIMEOUT), first_started=START)
    assert result.outcome is outcome
    assert words in (result.reason or "")


def test_without_a_scheduler_the_sensor_pokes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "scheduler_can_wait", lambda: False)
    assert carry_out(_sensor(WaitSensor, time_to_wait=1)).outcome is Outcome.SUCCESS
    assert clock.slept == [60]
