"""XComs."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, with_dag, with_run, xcom
from tradewind.model.errors import NotFound
from tradewind.model.moments import DAY
from tradewind.store.port import Store


@pytest.mark.spec("S119")
def test_xcoms_are_ordered_by_task_as_requested_and_by_map_index(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    pushed = [xcom("t1", b"10", map_index=10), xcom("t1", b"2", map_index=2), xcom("t0", b"0"), xcom("t0", b"9", "other")]
    store.push_xcoms(run.id, pushed)
    t1 = [("t1", 2, b"2", None), ("t1", 10, b"10", None)]
    assert store.xcoms(run.id, ["t1", "nobody", "t0"], "return_value") == [*t1, ("t0", -1, b"0", None)]
    assert store.xcoms(run.id, ["t1"], "return_value", [10]) == t1[1:]
    assert store.xcoms(run.id, ["t0", "t1"], "return_value", [-1]) == [("t0", -1, b"0", None)]
    assert store.xcoms(run.id, ["t0"], "other", []) == []
    assert store.xcoms(run.id + 1, ["t0"], "return_value") == []


def test_an_xcom_pushed_again_replaces_the_first(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    store.push_xcoms(run.id, [xcom("t0", b"1")])
    store.push_xcoms(run.id, [xcom("t0", None, spill="abc")])
    assert store.xcoms(run.id, ["t0"], "return_value") == [("t0", -1, b"", "abc")]


def test_runs_do_not_read_xcoms_of_each_other(store: Store) -> None:
    with_dag(store)
    one, two = with_run(store), with_run(store, "r2")
    store.push_xcoms(one.id, [xcom("t0", b"1")])
    assert store.xcoms(two.id, ["t0"], "return_value") == []


def test_a_missing_run_takes_no_xcoms(store: Store) -> None:
    with pytest.raises(NotFound, match="no run number 5"):
        store.push_xcoms(5, [xcom("t0")])


def test_the_latest_run_with_an_xcom(store: Store) -> None:
    with_dag(store)
    with_dag(store, "other")
    runs = [with_run(store, f"r{day}", day=day) for day in range(4)]
    store.push_xcoms(with_run(store, "x", "other", day=3).id, [xcom("t0")])
    store.push_xcoms(with_run(store, "dateless").id, [xcom("t0")])
    store.push_xcoms(runs[0].id, [xcom("t0")])
    store.push_xcoms(runs[2].id, [xcom("t0"), xcom("t1", key="k")])

    def latest(day: int, task_id: str = "t0", key: str = "return_value") -> int | None:
        return store.last_run_with_xcom("d", NOW + day * DAY, task_id, key)

    assert [latest(day) for day in (-1, 0, 1, 2, 3)] == [None, runs[0].id, runs[0].id, runs[2].id, runs[2].id]
    assert (latest(3, "t1"), latest(3, "t1", "k"), latest(3, "t2")) == (None, runs[2].id, None)
