"""Bugs that the simulation has found in the calls of callbacks, with one small simulation each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import MINUTE, SECOND
from tradewind.simulation.callbacks import CallbackWorkload, CallOutcome
from tradewind.simulation.checks import R_SUCCESS
from tradewind.simulation.faults import CALM
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World


def world(task: TaskDefinition, duration: int = SECOND, **callbacks: tuple[str, ...]) -> World:
    """A simulation of one DAG that is triggered from time to time, without faults except those of the test."""
    definition = DagDefinition("d", tasks=(task,), is_paused_upon_creation=False, fileloc="d.py", callbacks=callbacks)
    plan = Plan(definition, {task.task_id: Habit("plain", duration, 0, 0, 0)}, 4)
    return World(1, plans=[plan], profile=CALM, hours=1)


def test_a_hanging_callback_is_stopped_and_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of the call is accepted at once; a repeated start request must not reset its time limit."""

    def fates() -> Iterator[CallOutcome]:
        yield CallOutcome("hangs", 0)
        while True:
            yield CallOutcome("well", SECOND)

    drawn = fates()
    monkeypatch.setattr(CallbackWorkload, "draw_outcome", lambda calling: next(drawn))
    history = world(TaskDefinition("t"), on_success_callback=("tell",)).run()
    assert history.violations == []
    assert len(history.callback_checks.calls) == len(history.checks.shadow.runs) > 1
    assert set(history.callback_checks.calls.values()) == {1}


def test_a_task_that_succeeds_after_its_time_limit_calls_its_success_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task catches AirflowTaskTimeout, its success counts, and its process calls the success callback."""
    callbacks: dict[str, tuple[str, ...]] = dict.fromkeys(("on_success_callback", "on_failure_callback"), ("tell",))
    history = world(TaskDefinition("t", execution_timeout=MINUTE, callbacks=callbacks), duration=10 * MINUTE)
    monkeypatch.setattr(history.chance, "random", lambda: 0.0)  # the task catches the signal and returns
    history.run()
    assert history.violations == []
    assert {run.state for run in history.checks.shadow.runs.values()} == {R_SUCCESS}
    assert not [asked for asked in history.callback_checks.calls if asked.argument == "on_failure_callback"]


@pytest.mark.parametrize("seed", [4, 15])
def test_without_faults_each_callback_is_called_once(seed: int) -> None:
    history = World(seed, profile=CALM, hours=0.5)
    assert history.callback_workload.drawn
    assert history.run().violations == []
    assert set(history.callback_checks.calls.values()) == {1}
