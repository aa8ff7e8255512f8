"""Sensors that wait for a point in time or a day, and BashSensor. The tests control the clock."""

from __future__ import annotations

import threading
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest

from tests.unit.execution.world import DAY, carry_out, workload
from tests.unit.operators.test_sensors import Clock
from tradewind import DAG
from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import HOUR, MINUTE, SECOND, parse_moment
from tradewind.model.states import Outcome
from tradewind.sensors import base
from tradewind.sensors.bash import BashSensor
from tradewind.sensors.date_time import DateTimeSensor
from tradewind.sensors.time import TimeSensor
from tradewind.sensors.time_delta import TimeDeltaSensor, WaitSensor
from tradewind.sensors.weekday import DayOfWeekSensor

START = parse_moment(DAY)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """It is midnight of a Tuesday."""
    found = Clock()
    monkeypatch.setattr(base, "_sleep", found.sleep)
    monkeypatch.setattr(base, "_now", lambda: found.now)
    monkeypatch.setattr(base, "_elapsed", lambda: found.now + 12345)
    return found


def _sensor(cls: Any, zone: str = "UTC", **kwargs: Any) -> Any:
    with DAG("d", schedule=None, start_date=pendulum.datetime(2020, 1, 1, tz=zone)):
        return cls(task_id="t", **kwargs)


@pytest.mark.spec("S6", "S409")
def test_date_time_sensor_ends_exactly_at_its_time(clock: Clock) -> None:
    result = carry_out(_sensor(DateTimeSensor, target_time="2024-03-05T00:02:30+00:00"))
    assert result.outcome is Outcome.SUCCESS
    assert clock.slept == [60, 60, 30]


@pytest.mark.parametrize(
    "target",
    [
        "{{ (logical_date + macros.timedelta(seconds=30)).isoformat() }}",
        "2024-03-05 00:00:30",
        datetime.fromisoformat("2024-03-05T00:00:30"),
    ],
    ids=str,
)
def test_target_time_accepts_datetimes_and_strings(clock: Clock, target: Any) -> None:
    assert carry_out(_sensor(DateTimeSensor, target_time=target)).outcome is Outcome.SUCCESS
    assert clock.slept == [30]


def test_an_invalid_target_time_is_an_error() -> None:
    result = carry_out(_sensor(DateTimeSensor, target_time="tomorrow"))
    assert result.outcome is Outcome.FAILED
    assert "target_time of task 't': 'tomorrow' is not a date and time" in str(result.reason)
    with pytest.raises(DefinitionError, match="target_time is 7"):
        _sensor(DateTimeSensor, target_time=7)


def test_a_reschedule_is_exactly_at_the_target_time() -> None:
    sensor = _sensor(DateTimeSensor, target_time="2024-03-05T00:00:30Z", mode="reschedule", poke_interval=300)
    assert carry_out(sensor).reschedule_at == START + 30 * SECOND


def test_a_timeout_before_the_target_time(clock: Clock) -> None:
    result = carry_out(_sensor(DateTimeSensor, target_time="2024-03-06", timeout=90))
    assert result.outcome is Outcome.FAILED_FINAL
    assert clock.slept == [60, 60]


def test_a_time_of_day_is_in_the_time_zone_of_the_dag(clock: Clock) -> None:
    assert carry_out(_sensor(TimeSensor, target_time=time(0, 1))).outcome is Outcome.SUCCESS
    assert clock.slept == [60]
    clock.slept.clear()
    assert carry_out(_sensor(TimeSensor, "Europe/Berlin", target_time=time(1, 0, 30))).outcome is Outcome.SUCCESS
    assert clock.slept == []  # it is past one o'clock there
    assert carry_out(_sensor(TimeSensor, target_time=time(0, 0))).outcome is Outcome.SUCCESS
    assert clock.slept == []


def test_a_time_of_day_is_on_the_day_on_which_the_try_started() -> None:
    """A sensor that is rescheduled past midnight does not wait until the next day."""
    sensor = _sensor(TimeSensor, target_time=time(23, 59), mode="reschedule")
    assert carry_out(sensor, first_started=START - HOUR).outcome is Outcome.SUCCESS
    assert carry_out(sensor, first_started=START).outcome is Outcome.RESCHEDULE


def test_time_delta_sensor_counts_from_the_end_of_the_data_interval(clock: Clock) -> None:
    sensor = _sensor(TimeDeltaSensor, delta=timedelta(minutes=2), poke_interval=3600)
    assert carry_out(sensor, at="2024-03-04T00:00:00Z", until=DAY).outcome is Outcome.SUCCESS
    assert clock.slept == [120]
    clock.slept.clear()
    clock.now = START / SECOND
    assert carry_out(sensor, at=None, run_after=START - MINUTE).outcome is Outcome.SUCCESS
    assert clock.slept == [60]


def test_wait_sensor_counts_from_the_first_start_of_the_try(clock: Clock) -> None:
    assert carry_out(_sensor(WaitSensor, time_to_wait=1)).outcome is Outcome.SUCCESS
    assert clock.slept == [60]
    sensor = _sensor(WaitSensor, time_to_wait=timedelta(hours=2), mode="reschedule", poke_interval=timedelta(days=1))
    assert carry_out(sensor, first_started=clock.now * SECOND - HOUR).reschedule_at == clock.now * SECOND + HOUR
    assert carry_out(sensor, first_started=clock.now * SECOND - 2 * HOUR).outcome is Outcome.SUCCESS


def test_day_of_week_sensor_waits_for_its_day(clock: Clock) -> None:
    assert carry_out(_sensor(DayOfWeekSensor, week_day="wednesday", poke_interval=3600)).outcome is Outcome.SUCCESS
    assert len(clock.slept) == 24
    other = _sensor(DayOfWeekSensor, week_day={"Sunday"}, use_task_logical_date=True, timeout=1, soft_fail=True)
    assert carry_out(other).outcome is Outcome.SKIPPED
    assert carry_out(other, at="2024-03-03").outcome is Outcome.SUCCESS


# --- commands ----------------------------------------------------------------------------------------------------------


def _bash(command: str, **kwargs: Any) -> TaskResult:
    return carry_out(_sensor(BashSensor, bash_command=command, **kwargs))


def test_bash_sensor_waits_until_its_command_succeeds(clock: Clock, tmp_path: Path) -> None:
    count = tmp_path / "count"
    assert _bash(f"echo x >> {count}; test $(wc -l < {count}) -ge 3").outcome is Outcome.SUCCESS
    assert clock.slept == [60, 60]


def test_after_retry_exit_code_bash_sensor_continues_to_wait(clock: Clock) -> None:
    assert _bash("exit 3", retry_exit_code=3, timeout=50, mode="reschedule").outcome is Outcome.RESCHEDULE
    result = _bash("exit 4", retry_exit_code=3)
    assert result.outcome is Outcome.FAILED_FINAL
    assert "ended with exit code 4; the sensor waits only after exit code 3" in str(result.reason)
    assert _bash("exit 4", retry_exit_code=3, soft_fail=True).outcome is Outcome.SKIPPED


def test_the_command_of_bash_sensor_has_env_and_templates(capfd: pytest.CaptureFixture[str]) -> None:
    result = _bash('/usr/bin/test "$WHAT {{ ds }}" = "day 2024-03-05" && /usr/bin/test -z "$HOME"', env={"WHAT": "day"})
    assert result.outcome is Outcome.SUCCESS
    assert _bash("  ").outcome is Outcome.FAILED_FINAL
    assert _bash("x", env={"A": 1}).reason is not None


def test_stopping_the_task_stops_the_command_of_bash_sensor(tmp_path: Path) -> None:
    import os

    ready = tmp_path / "ready"
    os.mkfifo(ready)
    sensor = _sensor(BashSensor, bash_command=f"echo $$ > {ready}; exec sleep 1000", soft_fail=True)
    found: list[TaskResult] = []
    thread = threading.Thread(daemon=True, target=lambda: found.append(execute_task(sensor, workload("t"))))
    thread.start()
    pid = int(ready.read_text())
    sensor.on_kill()
    thread.join(30)
    assert found[0].outcome is Outcome.FAILED
    assert not Path(f"/proc/{pid}").exists()
