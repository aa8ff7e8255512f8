"""What the simulation has found in how callbacks are called, one small history each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import MINUTE, SECOND
from tradewind.simulation.callbacks import Calling, Fate
from tradewind.simulation.checks import R_SUCCESS
from tradewind.simulation.faults import CALM
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World


def world(task: TaskDefinition, duration: int = SECOND, **callbacks: tuple[str, ...]) -> World:
    """One DAG that is triggered now and then; nothing breaks but what the test breaks."""
    definition = DagDefinition("d", tasks=(task,), is_paused_upon_creation=False, fileloc="d.py", callbacks=callbacks)
    plan = Plan(definition, {task.task_id: Habit("plain", duration, 0, 0, 0)}, 4)
    return World(1, plans=[plan], profile=CALM, hours=1)


def test_a_callback_that_hangs_is_ended_and_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its start is accepted at once: asking for it again must not take the place of its time limit."""

    def fates() -> Iterator[Fate]:
        yield Fate("hangs", 0)
        while True:
            yield Fate("well", SECOND)

    drawn = fates()
    monkeypatch.setattr(Calling, "fate", lambda calling: next(drawn))
    history = world(TaskDefinition("t"), on_success_callback=("tell",)).run()
    assert history.violations == []
    assert len(history.posts.calls) == len(history.checks.shadow.runs) > 1
    assert set(history.posts.calls.values()) == {1}


def test_a_task_that_ends_well_behind_its_time_limit_tells_of_its_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it makes of its AirflowTaskTimeout stands, and its process calls what belongs to it."""
    callbacks = dict.fromkeys(("on_success_callback", "on_failure_callback"), ("tell",))
    history = world(TaskDefinition("t", execution_timeout=MINUTE, callbacks=callbacks), duration=10 * MINUTE)
    monkeypatch.setattr(history.chance, "random", lambda: 0.0)  # asked to end, it catches that and returns
    history.run()
    assert history.violations == []
    assert {run.state for run in history.checks.shadow.runs.values()} == {R_SUCCESS}
    assert not [asked for asked in history.posts.calls if asked.argument == "on_failure_callback"]


@pytest.mark.parametrize("seed", [4, 15])
def test_where_nothing_breaks_each_is_called_once(seed: int) -> None:
    history = World(seed, profile=CALM, hours=0.5)
    assert history.calling.drawn
    assert history.run().violations == []
    assert set(history.posts.calls.values()) == {1}
