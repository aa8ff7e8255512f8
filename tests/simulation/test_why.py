"""The simulation asks `why` often. The questions do not change the history, and wrong answers are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.simulation.mutants import rewrite
from tradewind.kernel import explain
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.model.states import TriggerRule
from tradewind.model.wait_plans import MomentPlan, WaitPlan
from tradewind.simulation import why_checks
from tradewind.simulation.faults import CALM
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World


@pytest.mark.parametrize("seed", [8, 11])
def test_questions_change_nothing(seed: int) -> None:
    asked, silent = World(seed, hours=1), World(seed, hours=1)
    silent.why.on = False
    for world in (asked, silent):
        assert world.run().violations == []
    assert asked.timeline.digest == silent.timeline.digest
    assert asked.timeline.faults == silent.timeline.faults
    named = {what for what in asked.timeline.sometimes if what.startswith("why: ")}
    assert len(named) > 5
    assert set(asked.timeline.sometimes) - set(silent.timeline.sometimes) == named


@pytest.mark.parametrize(
    ("wrong_answer", "sentence"),
    [
        (
            rewrite((explain, "limits", ("max(0, capacity - used) < amount", "False"))),
            "why does not name it|why names no blocker",
        ),
        (rewrite((explain, "limits", ("max(0, capacity - used) < amount", "True"))), "does not block .*, but why says"),
        (
            rewrite((explain, "dependencies", ("found += _of_the_graph(run, slot, number)", ""))),
            "trigger_rule blocks|why names no blocker",
        ),
    ],
    ids=["forgets limits", "limits that are not reached", "forgets what is above"],
)
def test_a_wrong_answer_is_found(wrong_answer: Callable[[ExitStack], None], sentence: str) -> None:
    with ExitStack() as stack:
        wrong_answer(stack)
        found = next(found for seed in range(9) for found in World(seed).run().violations)
    assert found.rule == "why"
    assert re.search(sentence, found.text)


def test_a_wait_that_enters_a_pool_together_with_a_dispatch_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait needs no admission, but counts in the pool: in a large commit (seed 5) the pool is fuller after the dispatch."""
    monkeypatch.setattr(why_checks, "AN_HOUR", 3600)
    a_minute = WaitPlan(MomentPlan("start", MINUTE), HOUR)
    tasks = (
        TaskDefinition("first", pool="small", priority_weight=9),
        TaskDefinition("next", pool="small"),
        TaskDefinition("behind", upstream=("first",)),
        TaskDefinition("wait", upstream=("behind",), trigger_rule=TriggerRule.ALL_DONE, pool="small", wait=a_minute),
    )
    habit = Habit("plain", 5 * MINUTE, 1, 0, 0)
    definition = DagDefinition("d", tasks=tasks, is_paused_upon_creation=False, fileloc="d.py")
    history = World(5, plans=[Plan(definition, {task.task_id: habit for task in tasks}, 4)], profile=CALM, hours=1)
    history.waiting.counting = "small"
    history.timeline.at(
        2 * SECOND, None, lambda: history.operator.send("set_pool", name="small", slots=1, include_deferred=True)
    )
    assert history.run().violations == []
    assert history.timeline.sometimes["why: pool"]
