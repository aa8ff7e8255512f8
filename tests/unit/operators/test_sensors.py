"""Sensors: when they poke, what ends the wait, and how they fail. The tests control the clock."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import DAY, World, carry_out, pushed
from tradewind import DAG, task
from tradewind.model.definition import DefinitionDefaults, ExternalMark
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import HOUR, SECOND, parse_moment
from tradewind.model.states import Outcome
from tradewind.sdk.definition import to_definition
from tradewind.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, AirflowSkipException
from tradewind.sensors import base
from tradewind.sensors.base import BaseSensorOperator, PokeReturnValue, poke_mode_only
from tradewind.sensors.external_task import ExternalTaskMarker, ExternalTaskSensor
from tradewind.sensors.filesystem import FileSensor
from tradewind.sensors.python import PythonSensor

START = parse_moment(DAY)


class Clock:
    """A clock that advances only in `sleep`."""

    def __init__(self) -> None:
        self.now = START / SECOND
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(base, "_sleep", found.sleep)
    monkeypatch.setattr(base, "_now", lambda: found.now)
    monkeypatch.setattr(base, "_elapsed", lambda: found.now + 12345)
    return found


class _Waits(BaseSensorOperator):
    """Returns (or raises) the given values one after the other; the last one repeats."""

    def __init__(self, answers: Any = (True,), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.answers = list(answers)

    def poke(self, context: Any) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _waits(*answers: Any, **kwargs: Any) -> _Waits:
    with DAG("d", schedule=None):
        return _Waits(task_id="t", answers=answers, **kwargs)


# --- the wait ----------------------------------------------------------------------------------------------------------


def test_a_sensor_pokes_until_the_condition_is_met(clock: Clock) -> None:
    result = carry_out(_waits(False, None, True, poke_interval=30))
    assert result.outcome is Outcome.SUCCESS
    assert clock.slept == [30, 30]


def test_a_poke_can_push_a_value(clock: Clock) -> None:
    result = carry_out(_waits(PokeReturnValue(False, "early"), PokeReturnValue(True, {"found": 1})))
    assert pushed(result) == {"return_value": {"found": 1}}
    assert len(clock.slept) == 1


def test_a_timeout_fails_without_a_retry(clock: Clock) -> None:
    result = carry_out(_waits(False, timeout=timedelta(minutes=2), poke_interval=timedelta(seconds=50)))
    assert result.outcome is Outcome.FAILED_FINAL
    assert result.reason == "AirflowSensorTimeout: The sensor waited 150 seconds, longer than its timeout of 120 seconds"
    assert clock.slept == [50, 50, 50]


@pytest.mark.spec("S408")
def test_mode_reschedule_frees_the_slot(clock: Clock) -> None:
    result = carry_out(_waits(False, mode="reschedule", poke_interval=300))
    assert (result.outcome, result.reschedule_at) == (Outcome.RESCHEDULE, START + 300 * SECOND)
    assert clock.slept == []


def test_the_timeout_of_a_rescheduling_sensor_counts_from_its_first_start(clock: Clock) -> None:
    sensor = _waits(False, mode="reschedule", timeout=3600)
    assert carry_out(sensor, first_started=START - HOUR).outcome is Outcome.RESCHEDULE
    assert carry_out(sensor, first_started=START - HOUR - SECOND).outcome is Outcome.FAILED_FINAL
    # in poke mode an earlier start of the try means nothing
    assert carry_out(_waits(True, timeout=1), first_started=START - HOUR).outcome is Outcome.SUCCESS


def test_backoff_doubles_with_a_deterministic_variation(clock: Clock) -> None:
    sensor = _waits(False, poke_interval=10, exponential_backoff=True)
    waits = [sensor.next_poke_interval(count, "d.t.r1") for count in range(1, 6)]
    assert all(10 * 2**n <= wait < 10 * 2 ** (n + 1) for n, wait in enumerate(waits))
    assert waits == [sensor.next_poke_interval(count, "d.t.r1") for count in range(1, 6)]
    assert waits != [sensor.next_poke_interval(count, "d.t.r2") for count in range(1, 6)]
    assert sensor.next_poke_interval(10**6, "x") == sensor.timeout
    capped = _waits(False, poke_interval=10, exponential_backoff=True, max_wait=25)
    assert max(capped.next_poke_interval(count, "x") for count in range(1, 50)) == 25


def test_backoff_continues_across_reschedules(clock: Clock) -> None:
    sensor = _waits(False, mode="reschedule", poke_interval=10, exponential_backoff=True)
    at = carry_out(sensor, reschedules=3, first_started=START).reschedule_at
    assert at is not None
    assert 80 * SECOND <= at - START < 160 * SECOND


# --- failing -----------------------------------------------------------------------------------------------------------

_OK, _RETRY, _FINAL, _SKIP = Outcome.SUCCESS, Outcome.FAILED, Outcome.FAILED_FINAL, Outcome.SKIPPED
_WAIT = Outcome.DEFERRED


@pytest.mark.parametrize(
    ("error", "plain", "soft", "silent", "never"),
    [
        (ValueError("x"), _RETRY, _RETRY, _OK, _SKIP),
        (AirflowFailException("x"), _FINAL, _SKIP, _FINAL, _SKIP),
        (AirflowSensorTimeout("x"), _FINAL, _SKIP, _FINAL, _SKIP),
        (AirflowSkipException("x"), _SKIP, _SKIP, _SKIP, _SKIP),
    ],
    ids=repr,
)
def test_exceptions_of_a_poke(error: Exception, plain: Outcome, soft: Outcome, silent: Outcome, never: Outcome) -> None:
    assert carry_out(_waits(error, True)).outcome is plain
    assert carry_out(_waits(error, True, soft_fail=True)).outcome is soft
    assert carry_out(_waits(error, True, silent_fail=True)).outcome is silent
    assert carry_out(_waits(error, True, never_fail=True)).outcome is never


def test_a_timeout_with_soft_fail_skips() -> None:
    result = carry_out(_waits(False, timeout=1, soft_fail=True))
    assert result.outcome is Outcome.SKIPPED
    assert "skipped because of soft_fail" in (result.reason or "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"mode": "pok"}, "mode is 'pok'; it must be poke or reschedule"),
        ({"timeout": -1}, "timeout is -1; it must not be negative"),
        ({"poke_interval": "5"}, "poke_interval is '5'; it must be a timedelta or a number of seconds"),
        ({"soft_fail": True, "never_fail": True}, "set only one of"),
    ],
)
def test_invalid_arguments_are_errors(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        _waits(True, **arguments)


def test_poke_mode_only_rejects_reschedule() -> None:
    @poke_mode_only
    class Keeps(_Waits):
        pass

    with DAG("d", schedule=None), pytest.raises(DefinitionError, match="it must be poke"):
        Keeps(task_id="t", mode="reschedule")


# --- functions ---------------------------------------------------------------------------------------------------------


def test_python_sensor_and_decorator(clock: Clock) -> None:
    looks: list[str] = []

    def ready(ds: str, goal: int) -> bool:
        looks.append(ds)
        return len(looks) >= goal

    with DAG("d", schedule=None) as dag:
        sensor = PythonSensor(task_id="t", python_callable=ready, op_kwargs={"goal": "{{ 2 }}"})
        sensor.op_kwargs = {"goal": 2}

        @task.sensor(poke_interval=5, mode="poke")
        def look(x: int) -> PokeReturnValue:
            return PokeReturnValue(is_done=True, xcom_value=x)

        look(4)
    assert carry_out(sensor).outcome is Outcome.SUCCESS
    assert looks == ["2024-03-05"] * 2
    assert pushed(carry_out(dag.task_dict["look"])) == {"return_value": 4}


# --- files -------------------------------------------------------------------------------------------------------------


def _file(path: Any, **kwargs: Any) -> FileSensor:
    with DAG("d", schedule=None):
        return FileSensor(task_id="t", filepath=path, timeout=0, poke_interval=1, **kwargs)


@pytest.mark.spec("S6", "S409")
def test_files_folders_and_glob_patterns_are_found(tmp_path: Path) -> None:
    def there(pattern: str, **kwargs: Any) -> bool:
        return carry_out(_file(str(tmp_path / pattern), **kwargs)).outcome is Outcome.SUCCESS

    (tmp_path / "data" / "2024-03-05" / "deep").mkdir(parents=True)
    assert not there("data")  # folders only: no file yet
    (tmp_path / "data" / "2024-03-05" / "deep" / "x.csv").touch()
    assert there("data")
    assert there("data/{{ ds }}/deep/x.csv")
    assert there("data/*/deep/*.csv")
    assert not there("data/**/x.csv")
    assert there("data/**/x.csv", recursive=True)
    assert not there("none")


def test_relative_paths_are_relative_to_the_path_of_the_connection(world: World, tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    world.connections["fs_default"] = {"conn_type": "fs", "extra": {"path": str(tmp_path)}}
    world.connections["other"] = {"conn_type": "fs", "extra": {"path": str(tmp_path / "no")}}
    assert carry_out(_file("x")).outcome is Outcome.SUCCESS
    assert carry_out(_file("x", fs_conn_id="other")).outcome is Outcome.FAILED_FINAL
    missing = carry_out(_file("x", fs_conn_id="nope"))
    assert missing.outcome is Outcome.FAILED
    assert "filepath 'x' of task 't' is relative, and there is no connection 'nope'." in (missing.reason or "")


# --- other DAGs --------------------------------------------------------------------------------------------------------


def _external(**kwargs: Any) -> ExternalTaskSensor:
    with DAG("d", schedule=None):
        return ExternalTaskSensor(task_id="t", external_dag_id="up", timeout=0, poke_interval=1, **kwargs)


@pytest.mark.spec("S6", "S408")
@pytest.mark.parametrize(
    ("arguments", "rows", "outcome"),
    [
        ({}, [(START, None, "success")], _OK),
        ({}, [(START, None, "running")], _WAIT),
        ({}, [], _WAIT),
        ({"external_task_id": "a"}, [(START, "a", "success")], _OK),
        ({"external_task_id": "a"}, [(START, "a", None)], _WAIT),
        ({"external_task_ids": ["a", "b"]}, [(START, "a", "success")], _WAIT),
        ({"external_task_ids": ["a", "b"]}, [(START, "a", "success"), (START, "b", "success")], _OK),
        ({"external_task_id": "m"}, [(START, "m", "success"), (START, "m", "running")], _WAIT),
        ({"external_task_group_id": "g"}, [(START, "g.a", "success"), (START, "g.b", "success")], _OK),
        ({"external_task_group_id": "g"}, [(START, "g.a", "success"), (START, "g.b", None)], _WAIT),
        ({"allowed_states": ["failed", "success"]}, [(START, None, "failed")], _OK),
        ({"failed_states": ["failed"]}, [(START, None, "failed")], _RETRY),
        ({"failed_states": ["failed"], "soft_fail": True}, [(START, None, "failed")], _SKIP),
        ({"external_task_id": "a", "skipped_states": ["skipped"]}, [(START, "a", "skipped")], _SKIP),
        ({"check_existence": True}, None, _RETRY),
        ({}, None, _WAIT),
    ],
)
def test_states_of_another_dag_end_the_wait(world: World, arguments: dict[str, Any], rows: Any, outcome: Outcome) -> None:
    world.states = rows
    assert carry_out(_external(**arguments)).outcome is outcome


def test_logical_dates_of_the_other_dag(world: World) -> None:
    def dates(**kwargs: Any) -> Any:
        carry_out(_external(**kwargs))
        question: Any = world.questions[-1]
        return [(at - START) // HOUR for at in question.logical_dates]

    assert dates() == [0]
    assert dates(execution_delta=timedelta(hours=3)) == [-3]
    assert dates(execution_date_fn=lambda at: at.subtract(hours=1)) == [-1]
    assert dates(execution_date_fn=lambda at, ti: [at, at.add(hours=ti.try_number)]) == [0, 1]


def test_a_subclass_reads_the_dates_as_in_airflow(world: World) -> None:
    class Pushes(ExternalTaskSensor):
        def poke(self, context: Any, session: Any = None) -> Any:
            return PokeReturnValue(is_done=True, xcom_value=[date.isoformat() for date in self._get_dttm_filter(context)])

    with DAG("d", schedule=None):
        sensor = Pushes(task_id="t", external_dag_id="other", execution_delta=timedelta(hours=3))
    assert pushed(carry_out(sensor)) == {"return_value": ["2024-03-04T21:00:00+00:00"]}


def test_a_subclass_may_pass_a_session_as_in_airflow_2(world: World) -> None:
    class Passes(ExternalTaskSensor):
        def poke(self, context: Any, session: Any = None) -> Any:
            return super().poke(context, session=session)

    world.states = [(START, None, "success")]
    with DAG("d", schedule=None):
        sensor = Passes(task_id="t", external_dag_id="other")
    assert carry_out(sensor).outcome is Outcome.SUCCESS


def test_runs_of_all_dates_must_exist(world: World) -> None:
    world.states = [(START, None, "success")]
    sensor = _external(execution_date_fn=lambda at: [at, at.add(hours=1)])
    assert carry_out(sensor).outcome is _WAIT
    world.states.append((START + HOUR, None, "success"))
    assert carry_out(sensor).outcome is Outcome.SUCCESS


def test_a_run_without_a_logical_date_is_an_error(world: World) -> None:
    assert "this run has no logical date" in (carry_out(_external(), at=None).reason or "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"external_task_id": "a", "external_task_ids": ["b"]}, "give only one of external_task_id"),
        ({"execution_delta": timedelta(1), "execution_date_fn": print}, "give only one of execution_delta"),
        ({"allowed_states": ["succes"]}, "'succes', which is not a state of a run. Did you mean 'success'?"),
        ({"allowed_states": ["skipped"]}, "'skipped', which is not a state of a run"),
        ({"external_task_id": "a", "failed_states": ["success"]}, "the state 'success' may be in only one of"),
        ({"external_task_ids": "abc"}, "external_task_ids is a string"),
    ],
)
def test_invalid_arguments_of_external_task_sensor_are_errors(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        _external(**arguments)
    assert sentence in str(caught.value)


def test_deferrable_has_no_effect_on_external_task_sensor(world: World) -> None:
    assert carry_out(_external(deferrable=True, poll_interval=5)).outcome is _WAIT
    assert carry_out(_external(deferrable=True, poll_interval=5)).deferral == carry_out(_external()).deferral


# --- marks for other DAGs ------------------------------------------------------------------------------------------------


def test_a_marker_is_in_the_definition_and_does_nothing() -> None:
    with DAG("d", schedule=None) as dag:
        ExternalTaskMarker(task_id="t", external_dag_id="other", external_task_id="x", recursion_depth=3)
        ExternalTaskMarker(task_id="u", external_dag_id="other", external_task_id="y", execution_date="{{ execution_date }}")
    marks = {one.task_id: one for one in to_definition(dag, "d.py", DefinitionDefaults()).tasks}
    assert marks["t"].external == ExternalMark("other", "x", 3)
    assert marks["u"].external == ExternalMark("other", "y", 10)
    assert (marks["t"].empty, marks["t"].waits_for) == (True, ("other",))


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"logical_date": "{{ macros.ds_add(ds, 1) }}"}, "only the logical date of the own run is supported yet"),
        ({"external_dag_id": "{{ params.dag }}"}, "must be the id itself"),
        ({"recursion_depth": 0}, "an integer of at least 1"),
    ],
)
def test_invalid_arguments_of_a_marker_are_errors(kwargs: Any, words: str) -> None:
    with DAG("d", schedule=None), pytest.raises(DefinitionError, match=words):
        ExternalTaskMarker(**{"task_id": "t", "external_dag_id": "o", "external_task_id": "x", **kwargs})


def test_the_connection_of_a_file_sensor_is_a_template(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRADEWIND_CONN_LANDING_EU", json.dumps({"conn_type": "fs", "extra": {"path": str(tmp_path)}}))
    sensor = FileSensor(task_id="t", filepath="{{ name }}.csv", fs_conn_id="landing_{{ region }}")
    sensor.render_template_fields({"name": "a", "region": "eu"})
    assert sensor.path == str(tmp_path / "a.csv")
