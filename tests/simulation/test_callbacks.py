"""People who look after callbacks that failed, in the simulated world."""

from __future__ import annotations

import pytest

from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import MINUTE, SECOND
from tradewind.simulation.callbacks import Calling, Fate
from tradewind.simulation.faults import CALM
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World


def world() -> World:
    """One run, whose callback raises whenever it is called in the first half hour."""
    definition = DagDefinition(
        "d",
        tasks=(TaskDefinition("t"),),
        is_paused_upon_creation=False,
        fileloc="d.py",
        callbacks={"on_success_callback": ("tell",)},
    )
    history = World(1, plans=[Plan(definition, {"t": Habit("plain", SECOND, 0, 0, 0)}, 0)], profile=CALM, hours=1)
    history.timeline.at(MINUTE, None, lambda: history.operator.say("trigger", dag_id="d", run_id="r"))
    return history


@pytest.fixture(autouse=True)
def _raises_for_half_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    def fate(calling: Calling) -> Fate:
        return Fate("raises" if calling._world.timeline.now < 30 * MINUTE else "well", SECOND)

    monkeypatch.setattr(Calling, "fate", fate)


def test_a_parked_callback_is_called_when_somebody_asks_for_it() -> None:
    history = world()
    history.timeline.at(40 * MINUTE, None, lambda: history.operator.say("retry_callbacks"))
    history.run()
    assert history.violations == []
    assert history.posts.posts == {}
    assert list(history.posts.calls.values()) == [1]
    assert history.timeline.sometimes["a person had a callback called that was parked"] == 1


def test_one_that_is_given_up_is_never_called() -> None:
    history = world()
    history.timeline.at(40 * MINUTE, None, lambda: history.operator.say("drop_callbacks"))
    history.run()
    assert history.violations == []
    assert history.posts.posts == {}
    assert not history.posts.calls


def test_one_that_nobody_asks_for_stays_parked() -> None:
    history = world().run()
    assert history.violations == []
    assert [row.tries for row in history.posts.posts.values()] == [4]
