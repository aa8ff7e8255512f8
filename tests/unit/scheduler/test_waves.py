"""Task instances are admitted between two waves of decisions of one moment."""

from __future__ import annotations

from tests.unit.scheduler.bench import Bench, task


def test_an_earlier_wave_is_admitted_before_higher_priority_of_a_later_one(bench: Bench) -> None:
    """`big` is scheduled only after `skips` was decided, at the same moment as `small`: the one slot is taken by then."""
    bench.pool("one", 1)
    bench.dag(
        "d",
        task("a"),
        task("small", "a", pool="one", weight_rule="absolute"),
        task("empty", "a", empty=True),
        task("big", "empty", pool="one", priority_weight=100, weight_rule="absolute"),
    )
    bench.trigger("d", "r")
    bench.finish("r.a")
    assert bench.states("r") == {"a": "success", "small": "queued", "empty": "success", "big": "scheduled"}
    bench.work()
    bench.check()


def test_waves_of_one_moment_are_one_transaction(bench: Bench) -> None:
    bench.dag("d", task("a"), *(task(f"e{i}", f"e{i - 1}" if i else "a", empty=True) for i in range(20)), task("z", "e19"))
    bench.trigger("d", "r")
    bench.start("r.a")
    before = len(bench.watched.commits)
    bench.report("r.a")
    assert bench.states("r")["z"] == "queued"
    assert len(bench.watched.commits) == before + 1


def test_a_long_chain_of_waves_takes_several_transactions(bench: Bench) -> None:
    """Each transaction is bounded."""
    small = Bench(bench.watched.inner, batch_max_rows=10)
    small.dag("d", task("a"), *(task(f"e{i}", f"e{i - 1}" if i else "a", empty=True) for i in range(30)), task("z", "e29"))
    small.trigger("d", "r")
    small.work()
    assert set(small.states("r").values()) == {"success"}
    assert max(small.watched.rows_of(batch) for batch in small.watched.commits[1:] if not batch.new_runs) <= 20
    small.check()
