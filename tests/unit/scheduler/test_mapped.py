"""Mapped tasks in the scheduler: expanded in bounded transactions, complete after a crash, cleared one by one."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tests.unit.scheduler.test_huge import measured
from tradewind.model.definition import MapLiteral, MapXCom, TaskDefinition
from tradewind.model.errors import NotFound
from tradewind.model.moments import DAY
from tradewind.model.rows import Batch
from tradewind.model.states import RunState


def fan_out(**more: object) -> list[TaskDefinition]:
    """Return a DAG: first → one instance for each element → last."""
    return [
        task("first"),
        task("each", "first", mapped=True, expand=(MapXCom("first"),), **more),
        task("last", "each"),
    ]


def test_a_list_is_expanded_to_task_instances(bench: Bench) -> None:
    """Each with its map index, its own XComs and its own use of limits."""
    bench.dag("d", *fan_out(max_active_tis_per_dagrun=2))
    bench.trigger("d", "r")
    bench.finish("r.first", map_length=3)
    assert [work.map_index for work in bench.executor.submitted] == [-1, 0, 1]
    bench.finish("r.each[1]", xcoms={"return_value": b"11"})
    bench.finish("r.each[0]", xcoms={"return_value": b"10"})
    bench.finish("r.each[2]")
    run = bench.run("r").id
    assert [row[:3] for row in bench.store.xcoms(run, ["each"], "return_value")] == [("each", 0, b"10"), ("each", 1, b"11")]
    bench.finish("r.last")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_a_long_list_is_expanded_in_bounded_transactions(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", *fan_out(empty=True))
    bench.trigger("d", "r")
    with measured(bench):
        bench.finish("r.first", map_length=7000)
    assert len([name for name in bench.states("r") if name.startswith("each[")]) == 7000
    bench.finish("r.last")
    bench.check()


@pytest.mark.parametrize("deaths_at", [{2}, {3, 5}, {4, 6, 7}])
def test_a_crash_during_an_expansion(make_bench: MakeBench, deaths_at: set[int]) -> None:
    """Written instances stay; the next scheduler adds the others, and no instance runs before all exist."""
    bench = make_bench(batch_max_rows=40)
    bench.dag("d", *fan_out(empty=True))
    bench.trigger("d", "r")
    bench.start("r.first")
    count = 0

    def die(batch: Batch) -> None:
        nonlocal count
        count += 1
        if count in deaths_at:
            raise KeyboardInterrupt

    bench.watched.faults.append(die)
    for again in range(len(deaths_at) + 1):
        try:
            if not again:
                bench.report("r.first", map_length=100)
            else:
                bench.restart()
        except KeyboardInterrupt:
            continue
    bench.watched.faults.remove(die)
    bench.restart()
    states = bench.states("r")
    assert {states[f"each[{i}]"] for i in range(100)} == {"success"}
    bench.finish("r.last")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_one_instance_is_cleared(bench: Bench) -> None:
    bench.dag("d", *fan_out())
    bench.trigger("d", "r")
    bench.finish("r.first", map_length=3)
    bench.finish("r.each[0]", "r.each[1]", "r.each[2]", "r.last")
    found = bench.clear("d", "r", "each", instances=[["each", 1]])
    assert [(one["task_id"], one["map_index"]) for one in found["task_instances"]] == [("each", 1)]
    assert bench.executor.submitted[-1].map_index == 1
    assert bench.states("r")["each[0]"] == "success"
    bench.check()


@pytest.mark.parametrize(("again", "states"), [(1, ["queued", "removed", "removed"]), (5, ["queued"] * 5)])
def test_a_list_of_another_length_after_a_clear(bench: Bench, again: int, states: list[str]) -> None:
    """Superfluous instances are removed, missing ones are added; downstream tasks wait for the remaining ones."""
    bench.dag("d", *fan_out())
    bench.trigger("d", "r")
    bench.finish("r.first", map_length=3)
    bench.finish("r.each[0]", "r.each[1]", "r.each[2]", "r.last")
    bench.clear("d", "r", "first", downstream=True)
    bench.finish("r.first", map_length=again)
    found = bench.states("r")
    assert [found[f"each[{i}]"] for i in range(max(3, again))] == states
    for i in range(again):
        assert bench.states("r")["last"] == "none", "it waits for all that there are now"
        bench.finish(f"r.each[{i}]")
    bench.finish("r.last")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_downstream_tasks_wait_for_instances_of_a_longer_list(bench: Bench) -> None:
    """Only the tasks before and after the mapped task were cleared: both are examined when the list exists again."""
    bench.dag("d", task("first"), task("each", "first", mapped=True, expand=(MapXCom("first"),)), task("last", "first", "each"))
    bench.trigger("d", "r")
    bench.finish("r.first", map_length=1)
    bench.finish("r.each[0]", "r.last")
    bench.clear("d", "r", "first", "last")
    bench.finish("r.first", map_length=2)
    assert bench.states("r") == {"first": "success", "each[0]": "success", "each[1]": "queued", "last": "none"}
    bench.finish("r.each[1]", "r.last")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_why(bench: Bench) -> None:
    """Before the list is known, and then for one instance."""
    bench.dag("d", task("a"), *fan_out(max_active_tis_per_dagrun=1))
    bench.trigger("d", "r")
    assert "mapped over a list that is not known yet: first has to end first" in bench.why("r.each")["list"]
    bench.finish("r.first", map_length=2)
    assert "1 of 1 allowed instances" in bench.why("r.each", map_index=1)["max_active_tis_per_dagrun"]
    with pytest.raises(NotFound, match="it has 0 to 1"):
        bench.why("r.each", map_index=2)


def test_a_literal_list_is_expanded_when_the_run_starts(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a", mapped=True, expand=(MapLiteral(2), MapLiteral(2))))
    bench.trigger("d", "r")
    assert bench.states("r") == {"a": "queued", "b[0]": "none", "b[1]": "none", "b[2]": "none", "b[3]": "none"}
    bench.fail("r.a")
    assert set(bench.states("r").values()) == {"failed", "upstream_failed"}
    bench.check()


def test_an_empty_list_does_not_block_later_runs(bench: Bench) -> None:
    """All instances are removed; a clear gives the same empty list, so nobody could ever unblock the next run."""
    bench.dag("d", *fan_out(depends_on_past=True))
    bench.trigger("d", "r1", logical_date=NOW - 2 * DAY)
    bench.finish("r1.first", map_length=2)
    bench.finish("r1.each[0]", "r1.each[1]", "r1.last")
    bench.clear("d", "r1", "first", downstream=True)
    bench.finish("r1.first", map_length=0)
    assert {bench.states("r1")[f"each[{i}]"] for i in range(2)} == {"removed"}
    bench.work()
    bench.trigger("d", "r2", logical_date=NOW - DAY)
    bench.finish("r2.first", map_length=1)
    bench.finish("r2.each[0]")
    bench.work()
    assert bench.run("r2").state is RunState.SUCCESS
    bench.check()
