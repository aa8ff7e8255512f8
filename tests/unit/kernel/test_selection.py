"""Which task instances a clear or a mark selects, and which states a person's change of a run gives."""

from __future__ import annotations

import pytest

from tests.unit.kernel.machine_driver import setup, task, teardown
from tradewind.kernel.rules.run_by_hand import new_states
from tradewind.kernel.rules.selection import choose, holds, with_setups
from tradewind.kernel.topology import Topology
from tradewind.model.definition import DagDefinition, GroupDefinition, MapLiteral
from tradewind.model.states import RunState, TaskState

S = TaskState
DIAMOND = Topology(
    DagDefinition(
        "d", tasks=(task("top"), task("left", "top"), task("right", "top"), task("low", "left", "right"), task("alone"))
    )
)
GROUP = Topology(
    DagDefinition(
        "d",
        tasks=(task("a"), task("g.one", "a", group="g"), task("g.two", "g.one", group="g"), task("z", "g.two")),
        groups=(GroupDefinition("g", mapped=True, expand=(MapLiteral(3),)),),
    )
)


@pytest.mark.spec("S439")
def test_choose_adds_upstream_and_downstream_tasks() -> None:
    assert set(choose(DIAMOND)) == set(DIAMOND.ids)
    assert set(choose(DIAMOND, ["left"])) == {"left"}
    assert set(choose(DIAMOND, ["left"], upstream=True)) == {"left", "top"}
    assert set(choose(DIAMOND, ["left"], downstream=True)) == {"left", "low"}
    assert set(choose(DIAMOND, ["left"], upstream=True, downstream=True)) == {"left", "top", "low"}
    in_turn = choose(DIAMOND, ["left"], upstream=True, downstream=True, in_turn=True)
    assert set(in_turn) == {"left", "top", "low", "right"}, "right is below top"
    assert choose(DIAMOND, ["nobody"], downstream=True) == {}, "this version does not have it"


def test_relatives_of_one_map_index() -> None:
    chosen = choose(GROUP, [], [("g.one", 1)], upstream=True, downstream=True)
    assert chosen == {"a": None, "g.one": frozenset({1}), "g.two": frozenset({1}), "z": None}
    assert holds(chosen, "g.two", 1)
    assert not holds(chosen, "g.two", 0)
    assert holds(chosen, "z", -1)
    assert not holds(chosen, "other", -1)
    both = choose(GROUP, ["a"], [("g.two", 2)], downstream=True)
    assert both == {"a": None, "g.one": None, "g.two": None, "z": None}, "all of them are below a"


def test_with_setups_adds_the_same_map_indexes() -> None:
    tasks = (setup("g.up", group="g"), task("g.work", "g.up", group="g"), teardown("g.down", "g.work", "g.up", group="g"))
    groups = (GroupDefinition("g", mapped=True, expand=(MapLiteral(3),)),)
    topology = Topology(DagDefinition("d", tasks=tasks, groups=groups))
    assert with_setups(topology, {"g.work": frozenset({2})}) == dict.fromkeys(topology.ids, frozenset({2}))
    assert with_setups(topology, {"g.work": None}) == dict.fromkeys(topology.ids)


@pytest.mark.parametrize(
    ("state", "marks", "spared"),
    [
        (RunState.SUCCESS, {S.SUCCESS: [1, 3, 4]}, [2]),
        (RunState.FAILED, {S.FAILED: [1], S.SKIPPED: [4]}, [2]),
    ],
)
def test_new_states_when_a_person_sets_the_run_state(
    state: RunState, marks: dict[TaskState, list[int]], spared: list[int]
) -> None:
    """The teardown of a successful setup keeps its state."""
    topology = Topology(
        DagDefinition(
            "d", tasks=(setup("up"), task("work", "up"), teardown("down", "work", "up"), task("bad"), task("z", "bad"))
        )
    )
    has = (S.SUCCESS, S.RUNNING, S.NONE, S.FAILED, S.SCHEDULED)
    found = new_states(topology, [(slot, topology.ids[slot], -1, one) for slot, one in enumerate(has)], state)
    assert (found.marks, found.teardowns) == (marks, spared)
