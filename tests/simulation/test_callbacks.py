"""Users who retry or drop failed callbacks, in the simulation."""

from __future__ import annotations

import pytest

from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import MINUTE, SECOND
from tradewind.simulation.callbacks import CallbackWorkload, CallOutcome
from tradewind.simulation.faults import CALM
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World


def world() -> World:
    """A simulation of one run, whose callback raises an exception at every call in the first half hour."""
    definition = DagDefinition(
        "d",
        tasks=(TaskDefinition("t"),),
        is_paused_upon_creation=False,
        fileloc="d.py",
        callbacks={"on_success_callback": ("tell",)},
    )
    history = World(1, plans=[Plan(definition, {"t": Habit("plain", SECOND, 0, 0, 0)}, 0)], profile=CALM, hours=1)
    history.timeline.at(MINUTE, None, lambda: history.operator.send("trigger", dag_id="d", run_id="r"))
    return history


@pytest.fixture(autouse=True)
def _raises_for_half_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw_outcome(calling: CallbackWorkload) -> CallOutcome:
        return CallOutcome("raises" if calling._world.timeline.now < 30 * MINUTE else "well", SECOND)

    monkeypatch.setattr(CallbackWorkload, "draw_outcome", draw_outcome)


def test_a_parked_callback_is_called_after_a_retry() -> None:
    history = world()
    history.timeline.at(40 * MINUTE, None, lambda: history.operator.send("retry_callbacks"))
    history.run()
    assert history.violations == []
    assert history.callback_checks.posts == {}
    assert list(history.callback_checks.calls.values()) == [1]
    assert history.timeline.sometimes["a person had a callback called that was parked"] == 1


def test_a_dropped_callback_is_never_called() -> None:
    history = world()
    history.timeline.at(40 * MINUTE, None, lambda: history.operator.send("drop_callbacks"))
    history.run()
    assert history.violations == []
    assert history.callback_checks.posts == {}
    assert not history.callback_checks.calls


def test_a_parked_callback_stays_parked_without_a_retry() -> None:
    history = world().run()
    assert history.violations == []
    assert [row.tries for row in history.callback_checks.posts.values()] == [4]
