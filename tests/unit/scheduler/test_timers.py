"""Timers of the scheduler."""

from __future__ import annotations

from tradewind.scheduler.inbox import SettleRun
from tradewind.scheduler.timers import PRUNE_MIN, Timers


def test_timers_of_ended_runs_are_pruned() -> None:
    """Each run has a timeout of a year and ends at once; ten are active."""
    timers, live, most = Timers(), set(range(10)), 0
    timers.add(5, "a_dag")
    for run in range(20_000):
        timers.add(10_000_000 + run, SettleRun(run))
        timers.prune(lambda item: item.run in live)
        most = max(most, len(timers))
    assert most <= PRUNE_MIN + 2 * (len(live) + 1) + 1
    assert timers.due(5) == ["a_dag"]
    assert timers.due(10_000_009) == [SettleRun(run) for run in range(10)]


def test_duplicate_timers_are_pruned_and_a_dag_keeps_its_earliest() -> None:
    timers = Timers()
    timers.add(9, "a_dag")
    timers.add(7, "a_dag")
    for _ in range(PRUNE_MIN + 1):
        timers.add(8, SettleRun(1))
    timers.prune(lambda item: True)
    assert len(timers) == 2
    assert timers.due(10) == ["a_dag", SettleRun(1)]
