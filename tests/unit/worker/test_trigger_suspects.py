"""Who ends the process of all triggers: found by halving, whatever else waits."""

from __future__ import annotations

import pytest

from tradewind.model.moments import DAY, SECOND
from tradewind.wire.messages import AttemptKey
from tradewind.worker.trigger_suspects import ENDS_MAX, LIVED_WELL, PROBATION, Suspects


def _hunt(number: int, culprit: int) -> tuple[AttemptKey | None, int]:
    """(who was found, how many ends and probations that took)."""
    keys = [(1, n, 1) for n in range(number)]
    suspects = Suspects()
    for turn in range(1, 100):
        if (1, culprit, 1) in suspects.held:
            suspects.survived()
            continue
        found = suspects.ended([key for key in keys if key not in suspects.held], SECOND)
        if found is not None:
            return found, turn
    return None, 100


@pytest.mark.parametrize("number", [1, 2, 3, 7, 100])
def test_the_one_is_found_soon_and_nobody_else(number: int) -> None:
    for culprit in range(number):
        found, turns = _hunt(number, culprit)
        assert found == (1, culprit, 1)
        assert turns <= ENDS_MAX + 2 * number.bit_length()


def test_ends_that_are_far_apart_accuse_nobody() -> None:
    suspects = Suspects()
    for _ in range(10):
        assert suspects.ended([(1, 1, 1), (1, 2, 1)], LIVED_WELL) is None
        assert suspects.held == frozenset()


def test_when_nothing_ends_any_more_all_are_begun() -> None:
    keys = [(1, n, 1) for n in range(8)]
    suspects = Suspects()
    for _ in range(ENDS_MAX):
        suspects.ended(keys, SECOND)
    assert len(suspects.held) == 4
    for _ in range(4):
        assert suspects.probation is not None
        suspects.survived()
    assert (suspects.held, suspects.probation) == (frozenset(), None)


def test_nobody_is_held_back_for_the_days_that_the_process_lived_well() -> None:
    suspects = Suspects()
    for lived in (7 * DAY, SECOND, SECOND):
        suspects.ended([(1, 1, 1), (1, 2, 1)], lived)
    assert len(suspects.held) == 1
    assert suspects.probation == PROBATION


def test_a_half_has_to_live_longer_than_the_process_did_before() -> None:
    suspects = Suspects()
    for lived in (1, 90, 2):
        suspects.ended([(1, 1, 1), (1, 2, 1)], lived * SECOND)
    assert suspects.probation == 180 * SECOND
    assert PROBATION < 180 * SECOND


def test_one_that_came_during_the_hunt_is_not_taken_for_a_suspect() -> None:
    keys = [(1, n, 1) for n in range(4)]
    suspects = Suspects()
    for _ in range(ENDS_MAX):
        suspects.ended(keys, SECOND)
    assert suspects.ended([(1, 9, 1)], SECOND) is None
    assert suspects.held == frozenset(), "none of the suspects ran"
