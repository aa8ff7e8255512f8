"""The forecast is computed by the code that creates runs: it agrees with the runs that are created."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands import as_dict
from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.model.definition import CronSchedule, Delta, DeltaSchedule
from tradewind.model.errors import ScheduleError, WrongArgument
from tradewind.model.moments import DAY, HOUR, MINUTE, iso
from tradewind.model.states import Outcome
from tradewind.scheduler.explain.questions import ask
from tradewind.scheduler.explain.upcoming import upcoming
from tradewind.wire.commands import build

HOURLY = CronSchedule(("0 * * * *",))
DAILY = CronSchedule(("30 1 * * *",))


def forecast(bench: Bench, count: int = 5, *, live: bool = True, **more: Any) -> dict[str, Any]:
    scheduler = bench.scheduler if live else None
    return as_dict(ask(build("upcoming", {"count": count, **more}), bench.store, scheduler, bench.clock.wall()))


def names(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["at"], one["dag_id"], one["kind"]) for one in answer["upcoming"]]


def test_the_forecast_has_runs_of_all_dags_by_time(bench: Bench) -> None:
    bench.dag("h", task("a", empty=True), schedule=HOURLY, start_date=NOW + HOUR)
    bench.dag("d", task("a", empty=True), schedule=DAILY, start_date=NOW)
    bench.dag("p", task("a", empty=True), schedule=HOURLY, start_date=NOW, paused=True)
    bench.dag("n", task("a", empty=True))
    answer = forecast(bench)
    assert names(answer) == [
        ("2026-01-01T01:00:00Z", "h", "run"),
        ("2026-01-01T01:30:00Z", "d", "run"),
        ("2026-01-01T02:00:00Z", "h", "run"),
        ("2026-01-01T03:00:00Z", "h", "run"),
        ("2026-01-01T04:00:00Z", "h", "run"),
    ]
    assert answer["paused_dags"] == 1
    assert answer == forecast(bench, live=False), "without a scheduler the same forecast comes from the store"
    assert [one["dag_id"] for one in forecast(bench, dag_ids=["d"])["upcoming"]] == ["d"] * 5


def test_the_forecast_agrees_with_the_runs_that_are_created(bench: Bench) -> None:
    bench.dag("h", task("a", empty=True), schedule=HOURLY, start_date=NOW)
    bench.dag("x", task("a", empty=True), schedule=DeltaSchedule(Delta(micros=25 * MINUTE)), start_date=NOW)
    bench.dag("d", task("a", empty=True), schedule=DAILY, start_date=NOW - 3 * DAY, catchup=True)
    foretold = [(one.dag_id, one.run_id) for one in upcoming(bench.store, bench.scheduler, NOW, 200) if one.at <= NOW + 2 * DAY]
    known = {(dag_id, row.run_id) for dag_id in ("h", "x", "d") for row in bench.runs(dag_id)}
    for _ in range(2 * 24 * 12):
        bench.pass_time(5 * MINUTE)
    made = {(dag_id, row.run_id) for dag_id in ("h", "x", "d") for row in bench.runs(dag_id)} - known
    assert made == set(foretold)
    assert len(foretold) > 100


def test_the_forecast_has_tasks_and_runs_that_wait_for_a_moment(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=HOUR), task("s"), max_active_runs=1)
    bench.trigger("d", "r1")
    bench.fail("r1.a")
    bench.finish("r1.s", outcome=Outcome.RESCHEDULE, reschedule_at=NOW + MINUTE)
    bench.trigger("d", "r2")
    bench.trigger("d", "r3", run_after=NOW + 2 * HOUR)
    answer = forecast(bench)
    assert [(one["at"], one["kind"], one["run_id"], one["task_id"]) for one in answer["upcoming"]] == [
        (iso(NOW), "queued", "r2", None),
        (iso(NOW + MINUTE), "reschedule", "r1", "s"),
        (iso(NOW + HOUR), "retry", "r1", "a"),
        (iso(NOW + 2 * HOUR), "queued", "r3", None),
    ]
    assert answer["upcoming"][0]["held_by"] == "1 run of the DAG is running; its max_active_runs is 1."


def test_the_forecast_names_what_blocks_a_due_run(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=HOURLY, start_date=NOW, max_active_runs=1, catchup=True)
    bench.pass_time(2 * HOUR)
    first, second = forecast(bench, 2)["upcoming"]
    assert (first["run_id"], first["held_by"]) == (
        "scheduled__2026-01-01T01:00:00+00:00",
        "1 run has not ended; max_active_runs is 1",
    )
    assert second["run_id"] == "scheduled__2026-01-01T02:00:00+00:00"


def test_times_are_shown_in_a_zone(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=HOURLY, start_date=NOW + HOUR)
    (one,) = forecast(bench, 1, timezone="Europe/Berlin")["upcoming"]
    assert (one["at"], one["local"]) == ("2026-01-01T01:00:00Z", "2026-01-01 02:00:00+01:00")
    with pytest.raises(ScheduleError, match="Europe/Berlin"):
        forecast(bench, timezone="Europe/Berlinn")


def test_a_question_without_its_argument_is_refused(bench: Bench) -> None:
    with pytest.raises(WrongArgument, match="`dag_id`"):
        ask(build("why", {}), bench.store, bench.scheduler, NOW)
