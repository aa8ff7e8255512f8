"""Runs beside each other in virtual time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tradewind import DAG, task
from tradewind.model.errors import Conflict, DefinitionError, NotFound
from tradewind.model.moments import to_micros
from tradewind.operators.cross_dag import CrossDagDepPythonOperator
from tradewind.operators.empty import EmptyOperator
from tradewind.sensors.external_task import ExternalTaskSensor
from tradewind.sensors.time_delta import WaitSensor
from tradewind.testing import Simulation, log_of, xcom_of
from tradewind.testing.calendars import manual_interval, upcoming_runs
from tradewind.timetables.base import DagRunInfo, DataInterval, Timetable

DAY = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the defaults."""
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))


def an_hour(dag_id: str = "d", **arguments: Any) -> DAG:
    """One task of an hour."""
    with DAG(dag_id, schedule=None, start_date=DAY) as dag:

        @task(**arguments)
        def work(conf: Any = None, dag_run: Any = None) -> Any:
            time.sleep(3600)
            return dag_run.conf

        work()
    return dag


def spans(world: Simulation) -> dict[str, tuple[int, int]]:
    """Run id → hours of its first attempt."""

    def hours(at: datetime) -> int:
        return round((at - DAY) / timedelta(hours=1))

    return {run.run_id: (hours(run.attempts[0].started), hours(run.attempts[0].ended)) for run in world.runs() if run.attempts}


def test_attempts_run_beside_each_other_and_last_as_long_as_they_sleep() -> None:
    world = Simulation(an_hour())
    world.trigger("d", "one", conf={"n": 1})
    world.trigger("d", "two")
    world.trigger("d", "three", at=timedelta(hours=5))
    world.play()
    assert spans(world) == {"one": (0, 1), "two": (0, 1), "three": (5, 6)}
    assert xcom_of(world.run("one"), "work") == {"n": 1}
    assert world.now == DAY + timedelta(hours=6)


def test_a_pool_lets_them_in_one_after_the_other() -> None:
    world = Simulation(an_hour(pool="narrow"), pools={"narrow": 1})
    for name in ("one", "two", "three"):
        world.trigger("d", name)
    world.play()
    assert spans(world) == {"one": (0, 1), "two": (1, 2), "three": (2, 3)}


def test_time_can_be_played_bit_by_bit() -> None:
    world = Simulation(an_hour())
    world.trigger("d", "one")
    world.play(until=timedelta(minutes=30))
    assert (world.run("one").state, world.run("one").attempts) == ("running", [])
    world.play(until=DAY + timedelta(hours=2))
    assert (world.run("one").state, world.now) == ("success", DAY + timedelta(hours=2))


def test_what_is_stopped_is_told_as_stopped() -> None:
    with DAG("d", schedule=None, fail_fast=True) as dag:

        @task
        def bad() -> None:
            time.sleep(60)
            raise ValueError

        @task
        def long() -> None:
            time.sleep(3600)

        bad()
        long()
    world = Simulation(dag)
    world.trigger(dag, "r")
    run = world.play().run("r")
    assert [(one.task_id, one.stopped, one.ended - one.started) for one in run.attempts] == [
        ("bad", False, timedelta(minutes=1)),
        ("long", True, timedelta(minutes=1)),
    ]
    assert (run.state, run.tasks["long"].state) == ("failed", "failed")


def test_what_ends_at_one_moment_is_applied_before_anything_is_decided_from_it() -> None:
    """The child of the first has not been tried when the second fails everything."""
    with DAG("d", schedule=None, fail_fast=True) as dag:

        @task
        def a_good() -> None:
            time.sleep(60)

        @task
        def b_bad() -> None:
            time.sleep(60)
            raise ValueError

        b_bad()
        a_good() >> EmptyOperator(task_id="child", pool="p") >> EmptyOperator(task_id="last")
    world = Simulation(dag)
    world.trigger(dag, "r")
    run = world.play().run("r")
    assert (run.tasks["child"].state, run.tasks["child"].try_number) == ("skipped", 0)


def test_instances_of_a_mapped_task_are_told_one_by_one() -> None:
    with DAG("d", schedule=None) as dag:

        @task
        def wait(minutes: int) -> int:
            time.sleep(60 * minutes)
            return minutes

        wait.expand(minutes=[3, 1, 2])
    world = Simulation(dag)
    world.trigger(dag, "r")
    run = world.play().run("r")
    assert [one.map_index for one in run.attempts] == [1, 2, 0]
    assert xcom_of(run, "wait") == [3, 1, 2]
    ends = {one.map_index for one in world.history() if one.task_id == "wait" and one.after == "success"}
    assert ends == {0, 1, 2}


def test_a_clear_runs_again_and_attempts_go_on_counting() -> None:
    with DAG("d", schedule=None) as dag:

        @task
        def shaky(ti: Any = None) -> None:
            print(f"try {ti.try_number}")
            if ti.try_number == 1:
                raise ValueError

        shaky() >> EmptyOperator(task_id="low")
    world = Simulation(dag)
    world.trigger("d", "r")
    assert world.play().run("r").state == "failed"
    assert world.clear("d", "r", ["shaky"], downstream=True) == [("r", "low", -1), ("r", "shaky", -1)]
    assert world.run("r").state == "queued"
    run = world.play().run("r")
    assert run.state == "success"
    assert "try 2" in log_of(run, "shaky")


def test_history_tells_every_change_with_its_reason() -> None:
    world = Simulation(an_hour())
    world.trigger("d", "r")
    history = [(one.task_id, one.after, (one.at - DAY).total_seconds()) for one in world.play().history()]
    assert history == [
        ("work", "scheduled", 0),
        ("work", "queued", 0),
        ("work", "running", 0),
        (None, "running", 0),
        ("work", "success", 3600),
        (None, "success", 3600),
    ]
    assert all(one.cause for one in world.history() if one.task_id)


def test_the_timeline_says_who_waited() -> None:
    world = Simulation(an_hour(pool="narrow"), pools={"narrow": 1})
    for name in ("one", "two"):
        world.trigger("d", name)
    first, second, third = world.play().timeline()
    assert [one.run_id for one in first.queued] == ["one"]
    assert first.waiting == [("d", "two", "work", -1)]
    assert ([one.run_id for one in second.finished], [one.run_id for one in second.queued], second.waiting) == (
        ["one"],
        ["two"],
        [],
    )
    assert [(one.run_id, one.after) for one in third.finished] == [("two", "success")]


@pytest.mark.parametrize(("state", "wanted"), [("success", "success"), ("failed", "running")])
def test_a_run_of_the_past_is_what_depends_on_past_looks_at(state: str, wanted: str) -> None:
    world = Simulation(an_hour(depends_on_past=True))
    world.past_run("d", "before", logical_date=DAY - timedelta(days=1), state=state)
    world.trigger("d", "now", run_type="scheduled")
    assert world.play().run("now").state == wanted
    assert world.run("before").state == state


def test_a_sleep_beyond_the_time_limit_fails_the_task_there() -> None:
    world = Simulation(an_hour(execution_timeout=timedelta(minutes=10)))
    world.trigger("d", "r")
    run = world.play().run("r")
    assert (run.state, world.now) == ("failed", DAY + timedelta(minutes=10))
    assert "beyond its execution_timeout" in (run.tasks["work"].reason or "")


def test_a_task_that_waits_for_ever_does_not_hang() -> None:
    with DAG("d", schedule=None) as dag:

        @task
        def endless() -> None:
            while True:
                time.sleep(86400)

        endless()
    world = Simulation(dag)
    world.trigger("d", "r")
    assert world.play().run("r").state == "failed"


def test_schedules_are_followed_to_a_given_end() -> None:
    with DAG("d", schedule=timedelta(hours=6), start_date=DAY, catchup=True) as dag:
        EmptyOperator(task_id="t")
    world = Simulation(dag, follow_schedules=True)
    with pytest.raises(Conflict, match="until"):
        world.play()
    world.play(until=timedelta(days=1))
    assert [run.row.run_type for run in world.runs()] == ["scheduled"] * len(world.runs())
    assert 4 <= len(world.runs()) <= 5


class EverySixHours(Timetable):
    """A timetable of a test's own."""

    def next_dagrun_info(self, *, last_automated_data_interval: Any, restriction: Any) -> DagRunInfo:
        if last_automated_data_interval is None:
            return DagRunInfo.exact(restriction.earliest)
        return DagRunInfo.exact(last_automated_data_interval.end + timedelta(hours=6))

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        return DataInterval(run_after - timedelta(hours=6), run_after)


def test_custom_timetables_are_asked_here() -> None:
    with DAG("d", schedule=EverySixHours(), start_date=DAY, catchup=True) as dag:
        EmptyOperator(task_id="t")
    world = Simulation(dag, follow_schedules=True)
    world.play(until=timedelta(days=1))
    dates = [run.row.logical_date for run in world.runs()]
    assert dates[:4] == [to_micros(DAY + timedelta(hours=6 * number)) for number in range(4)]
    found = upcoming_runs(dag, now=DAY, count=2)
    assert [run.logical_date for run in found] == [DAY, DAY + timedelta(hours=6)]
    assert manual_interval(dag, DAY, now=DAY) == (DAY - timedelta(hours=6), DAY)


def test_weights_are_those_of_the_rules() -> None:
    with DAG("d", schedule=None) as dag:
        EmptyOperator(task_id="a") >> EmptyOperator(task_id="b", priority_weight=5)
    assert Simulation(dag).priorities(dag) == {"a": 6, "b": 5}


def test_what_cannot_be_is_said() -> None:
    world = Simulation(an_hour())
    with pytest.raises(NotFound, match="Did you mean 'd'"):
        world.trigger("dd")
    with pytest.raises(NotFound, match="there is no run 'r'; there are: none"):
        world.run("r")
    world.trigger("d", "r")
    with pytest.raises(Conflict):
        world.trigger("d", "r")
    with pytest.raises(DefinitionError, match="same id"):
        Simulation(an_hour(), an_hour())


def test_a_dag_waits_for_another_one_without_an_attempt() -> None:
    """The sensor's wait follows from its definition; the operator behind two conditions looks once."""
    with DAG("up", schedule=None) as up:
        WaitSensor(task_id="early", time_to_wait=timedelta(hours=1)) >> WaitSensor(task_id="late", time_to_wait=60)
    with DAG("down", schedule=None) as down:
        ExternalTaskSensor(task_id="early", external_dag_id="up", external_task_id="early")
        CrossDagDepPythonOperator(
            task_id="both", python_callable=lambda: "all in", dag_dep_conditions=[("up", "early"), ("up", None)]
        )
    world = Simulation(up, down)
    world.trigger("down", "d", logical_date=DAY)
    world.trigger("up", "u", logical_date=DAY, at=timedelta(hours=3))
    world.play()
    run = world.run("d")
    assert run.state == "success"
    assert [(one.task_id, one.ended - DAY) for one in run.attempts] == [("both", timedelta(0)), ("both", timedelta(hours=5))]
    assert (run.tasks["early"].state, run.tasks["early"].seconds) == ("success", None)
    assert xcom_of(run, "both") == "all in"
