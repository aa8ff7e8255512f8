"""Exponential backoff with a cap and injected jitter."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.platform.backoff import Backoff, backoff_us


def low() -> float:
    return 0.0


def test_the_wait_without_jitter_doubles_up_to_the_cap() -> None:
    backoff = Backoff(100, 1_000, low)
    assert [backoff.failed() for _ in range(6)] == [100, 200, 400, 800, 1_000, 1_000]


def test_a_success_starts_over() -> None:
    backoff = Backoff(100, 1_000, low)
    backoff.failed()
    backoff.failed()
    backoff.succeeded()
    assert (backoff.failures, backoff.failed()) == (0, 100)


def test_the_same_seed_gives_the_same_waits() -> None:
    one, two = (Backoff(1_000, 60_000_000, random.Random(5).random) for _ in range(2))
    assert [one.failed() for _ in range(10)] == [two.failed() for _ in range(10)]


@given(failures=st.integers(1, 5_000), luck=st.floats(0, 1, exclude_max=True), jitter=st.floats(0, 1))
def test_every_wait_lies_between_its_bounds(failures: int, luck: float, jitter: float) -> None:
    plain = 10_000_000 if failures > 20 else min(100 * 2 ** (failures - 1), 10_000_000)
    wait = backoff_us(failures, first_us=100, cap_us=10_000_000, rng=lambda: luck, jitter=jitter)
    assert max(1, int(plain * (1 - jitter)) - 1) <= wait <= plain


def test_no_failure_no_wait() -> None:
    assert backoff_us(0, first_us=100, cap_us=100, rng=low) == 0


@pytest.mark.parametrize(("first", "cap", "factor", "jitter"), [(0, 10, 2, 0), (10, 9, 2, 0), (1, 10, 0.5, 0), (1, 10, 2, 1.5)])
def test_invalid_arguments_are_refused_at_creation(first: int, cap: int, factor: float, jitter: float) -> None:
    with pytest.raises(ValueError, match="not a valid backoff"):
        Backoff(first, cap, low, factor=factor, jitter=jitter)
