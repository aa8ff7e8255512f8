"""The part of the simulation that runs in every run of the test suite."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tradewind.testing import simulate

pytestmark = pytest.mark.timeout(600)  # much computing, which other tests slow down

SEEDS = 36
PART = 9


@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_the_guarantees_hold_under_faults(first: int) -> None:
    for seed in range(first, first + PART):
        simulate(seed)


def test_the_same_seed_gives_the_same_history() -> None:
    one, two = simulate(4711), simulate(4711)
    assert one.digest == two.digest
    assert (one.faults, one.sometimes, one.hours) == (two.faults, two.sometimes, two.hours)
    assert simulate(4712).digest != one.digest


def test_the_order_of_sets_has_no_influence() -> None:
    """A failure can be repeated in another process, in which strings have other hashes."""
    script = "from tradewind.testing import simulate; print([simulate(seed, strict=False).digest for seed in (8, 19, 41765)])"

    def output_with(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert output_with("1") == output_with("2")
