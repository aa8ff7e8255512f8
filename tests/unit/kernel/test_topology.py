"""The graph of a DAG and the values that are computed from it once."""

from __future__ import annotations

import pytest

from tests.unit.kernel.machine_driver import dag, fan, task
from tradewind.kernel import topology as topology_module
from tradewind.kernel.topology import PRIORITY_MAX, PRIORITY_MIN, Topology


def weights(*tasks: object) -> dict[str, int]:
    shape = Topology(dag(*tasks))  # type: ignore[arg-type]
    return dict(zip(shape.ids, shape.priority, strict=True))


def test_rows_of_edges() -> None:
    """Both directions, each edge once."""
    shape = Topology(dag(task("a"), task("b", "a"), task("c", "a", "b")))
    assert [list(shape.downstream(slot)) for slot in range(3)] == [[1, 2], [2], []]
    assert [list(shape.upstream(slot)) for slot in range(3)] == [[], [0], [0, 1]]
    assert shape.descendants(0) == {1, 2}
    assert shape.ancestors(2) == {0, 1}


def test_downstream_weight_counts_each_descendant_once() -> None:
    """In a diamond the join is reached on two ways and still weighs once."""
    assert weights(
        task("top", priority_weight=1),
        task("left", "top", priority_weight=10),
        task("right", "top", priority_weight=100),
        task("join", "left", "right", priority_weight=1000),
    ) == {"top": 1111, "left": 1010, "right": 1100, "join": 1000}


def test_upstream_weight_counts_each_ancestor_once() -> None:
    """The same diamond in the other direction."""
    rule = {"weight_rule": "upstream"}
    assert weights(
        task("top", priority_weight=1, **rule),
        task("left", "top", priority_weight=10, **rule),
        task("right", "top", priority_weight=100, **rule),
        task("join", "left", "right", priority_weight=1000, **rule),
    ) == {"top": 1, "left": 11, "right": 101, "join": 1111}


def test_every_task_has_its_own_rule() -> None:
    """Absolute is the weight alone; the rule of one task does not change others."""
    assert weights(
        task("a", priority_weight=5, weight_rule="absolute"),
        task("b", "a", priority_weight=7, weight_rule="upstream"),
        task("c", "b", priority_weight=9),
    ) == {"a": 5, "b": 12, "c": 9}


def test_equal_weights_over_joins() -> None:
    """Counting bits gives the same result as adding weights."""
    shape = Topology(fan(30))
    assert list(shape.priority) == [32, *[2] * 30, 1]


@pytest.mark.parametrize(("weight", "clamped"), [(2**31, PRIORITY_MAX), (-(2**31) - 1, PRIORITY_MIN), (2**40, PRIORITY_MAX)])
def test_weights_are_clamped_to_32_bits(weight: int, clamped: int) -> None:
    """As Airflow's column is."""
    assert weights(task("a", priority_weight=weight, weight_rule="absolute")) == {"a": clamped}
    assert weights(task("a", priority_weight=weight // 2), task("b", "a", priority_weight=weight - weight // 2))["a"] == clamped


def test_huge_dags_with_joins_are_estimated_in_the_right_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit a join counts once per path: no task that is upstream of another gets less than it."""
    monkeypatch.setattr(topology_module, "EXACT_WEIGHT_TASKS", 3)
    tasks = [task("t0")]
    for layer in range(60):  # 2^60 paths
        top = tasks[-1].task_id
        tasks += [task(f"l{layer}", top), task(f"r{layer}", top), task(f"t{layer + 1}", f"l{layer}", f"r{layer}")]
    shape = Topology(dag(*tasks))
    assert shape.priority[0] == PRIORITY_MAX
    for slot in range(shape.count):
        assert all(shape.priority[slot] >= shape.priority[child] for child in shape.downstream(slot))


def test_the_leaves_that_decide() -> None:
    """Teardowns that do not decide are ignored."""
    shape = Topology(
        dag(
            task("a"),
            task("t", "a", is_teardown=True),
            task("after", "t"),
            task("b"),
            task("u", "b", is_teardown=True, on_failure_fail_dagrun=True),
        )
    )
    assert [shape.ids[slot] for slot in shape.verdict] == ["a", "after", "u"]
