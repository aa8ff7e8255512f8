"""What fails again and again is tried less and less often; after a time without failures the pause is short again."""

from __future__ import annotations

from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.scheduler.quarantine import Quarantine

NOW = 1_767_225_600_000_000


def test_pauses_double_up_to_a_limit() -> None:
    quarantine, now, waits = Quarantine(), NOW, []
    for _ in range(9):
        due = quarantine.quarantine_run(7, now)
        waits.append((due - now) // SECOND)
        now = due
    assert waits == [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]
    assert quarantine.failures(7) == 9


def test_a_failure_long_after_the_last_one_is_the_first_again() -> None:
    quarantine = Quarantine()
    due = quarantine.failed("dag", quarantine.failed("dag", NOW))
    assert quarantine.failures("dag") == 2
    assert quarantine.failed("dag", due + 2 * MINUTE) == due + 2 * MINUTE + 30 * SECOND


def test_a_run_is_quarantined_until_it_is_tried_again() -> None:
    quarantine = Quarantine()
    due = quarantine.quarantine_run(7, NOW)
    assert 7 in quarantine
    assert (quarantine.until(7), quarantine.until(8)) == (due, 0)
    assert not quarantine.is_over(7, due - 1)
    assert quarantine.is_over(7, due)
    assert not quarantine.is_over(8, due)
    quarantine.discard(7)
    assert 7 not in quarantine
    assert quarantine.failures(7) == 1


def test_old_failures_are_dropped() -> None:
    quarantine = Quarantine()
    for run in range(5000):
        quarantine.failed(run, NOW + run * HOUR)
    assert sum(quarantine.failures(run) for run in range(5000)) < 1100
