"""`why` is asked all the time in the simulation, and nothing of its history changes by that."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.simulation.mutants import rewrite
from tradewind.kernel import explain
from tradewind.testing.world.life import World


@pytest.mark.parametrize(("seed", "store"), [(8, "memory"), (11, "sqlite")])
def test_asking_why_changes_nothing(seed: int, store: str) -> None:
    asked, silent = World(seed, store=store, hours=1), World(seed, store=store, hours=1)
    silent.why.on = False
    for world in (asked, silent):
        assert world.run().violations == []
    assert asked.timeline.digest == silent.timeline.digest
    assert asked.timeline.faults == silent.timeline.faults
    named = {what for what in asked.timeline.sometimes if what.startswith("why: ")}
    assert len(named) > 5
    assert set(asked.timeline.sometimes) - set(silent.timeline.sometimes) == named


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        (rewrite((explain, "limits", ("max(0, capacity - used) < amount", "False"))), "is in the way of .* and is not named"),
        (rewrite((explain, "limits", ("max(0, capacity - used) < amount", "True"))), "is not in the way of .* but why says"),
        (
            rewrite((explain, "dependencies", ("found += _of_the_graph(machine, slot, number)", ""))),
            "trigger_rule is in the way",
        ),
    ],
    ids=["forgets limits", "limits that are not reached", "forgets what is above"],
)
def test_a_lie_is_found(lie: Callable[[ExitStack], None], sentence: str) -> None:
    with ExitStack() as stack:
        lie(stack)
        found = next(found for seed in range(9) for found in World(seed, store="memory").run().violations)
    assert found.rule == "why"
    assert re.search(sentence, found.text)
