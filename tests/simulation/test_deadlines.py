"""Deadlines in the simulation, and bugs that it found there."""

from __future__ import annotations

from tradewind.model.definition import DagDefinition, DeadlineDefinition, Delta, DeltaSchedule, TaskDefinition
from tradewind.model.moments import HOUR, MINUTE
from tradewind.simulation.faults import CALM, Profile
from tradewind.simulation.timeline import START
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World


def world(duration: int, profile: Profile = CALM) -> World:
    """A simulation of four hourly runs, the first of them two hours ago; each has a deadline of five minutes."""
    definition = DagDefinition(
        "d",
        tasks=(TaskDefinition("t", sla=5 * MINUTE, email=("a@b.example",)),),
        schedule=DeltaSchedule(Delta(60 * MINUTE)),
        start_date=START - 2 * HOUR,
        end_date=START + HOUR,
        catchup=True,
        slas=(5 * MINUTE,),
        deadlines=(DeadlineDefinition("queued_at", 5 * MINUTE, callback="tell"),),
        is_paused_upon_creation=False,
        fileloc="d.py",
    )
    return World(1, plans=[Plan(definition, {"t": Habit("plain", duration, 0, 0, 0)}, 0)], profile=profile, hours=1.5)


def test_only_late_runs_are_reported_and_only_once() -> None:
    history = world(MINUTE).run()
    assert history.violations == []
    seen = history.timeline.sometimes
    assert seen["a run met its deadline"] == len(history.checks.shadow.runs) == 4
    assert "a run missed its deadline" not in seen
    assert (seen["tasks met their sla"], seen["tasks missed their sla"]) == (2, 2), "what is caught up with is late already"
    slow = world(10 * MINUTE).run()
    assert slow.violations == []
    assert slow.timeline.sometimes["a run missed its deadline"] == 4


def test_misses_are_reported_although_the_scheduler_crashes_often() -> None:
    history = world(10 * MINUTE, Profile(scheduler_crashes=60)).run()
    assert history.violations == []
    assert history.timeline.faults["scheduler crashed"]
    assert history.timeline.sometimes["a run missed its deadline"] == 4
    deadline_calls = [asked for asked in history.callback_checks.calls if asked.argument == "deadline"]
    assert len(deadline_calls) == 4


def test_a_run_that_a_backfill_repeats_has_no_sla() -> None:
    """The run kept the old sla of its schedule, so its task was late before it started (seed 451)."""
    history = world(MINUTE)

    def again() -> None:
        date = START - 2 * HOUR
        history.operator.send(
            "create_backfill",
            dag_id="d",
            from_date=date,
            to_date=date,
            max_active_runs=1,
            reprocess_behavior="completed",
        )

    history.timeline.at(30 * MINUTE, None, again)
    history.run()
    assert history.violations == []
    assert [row.kind for row in history.checks.shadow.runs.values()].count("backfill") == 1
    assert history.timeline.sometimes["a cleared run has its deadlines anew"] == 1
