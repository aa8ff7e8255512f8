"""Which tasks get a base image of their own."""

from __future__ import annotations

from tradewind.model.moments import SECOND
from tradewind.worker.isolated_tasks import DEATHS_MAX, REMEMBERED, IsolatedTasks

KILLER, LONG, SHORT = ("other", "kills"), ("etl", "long"), ("etl", "short")


def test_task_that_was_there_twice_is_a_suspect_and_one_that_was_there_once_is_not() -> None:
    suspects = IsolatedTasks()
    suspects.died(0, [KILLER, LONG, SHORT])
    assert not suspects.is_isolated(KILLER, 0)
    suspects.died(SECOND, [KILLER, LONG])
    assert suspects.is_isolated(KILLER, SECOND)
    assert suspects.is_isolated(LONG, SECOND), "run apart it loses nothing"
    assert not suspects.is_isolated(SHORT, SECOND)


def test_suspicion_ends() -> None:
    suspects = IsolatedTasks()
    suspects.died(0, [KILLER])
    suspects.died(SECOND, [KILLER])
    assert suspects.is_isolated(KILLER, REMEMBERED)
    assert not suspects.is_isolated(KILLER, REMEMBERED + 1)
    assert suspects.remembers(REMEMBERED + 1)
    assert not suspects.remembers(REMEMBERED + SECOND + 1)


def test_deaths_without_a_task_and_many_deaths_take_no_room() -> None:
    suspects = IsolatedTasks()
    suspects.died(0, [])
    assert not suspects.remembers(0)
    for number in range(10 * DEATHS_MAX):
        suspects.died(number, [(str(number), "t")])
    assert len(suspects._deaths) == DEATHS_MAX
