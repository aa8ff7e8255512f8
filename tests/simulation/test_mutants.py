"""Each mutant (a bug that is put back) is found within a limited number of seeds; the unchanged code passes the same seeds."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.simulation.mutants import MUTANTS, Mutant, hunt
from tradewind.testing import simulate

BUDGET = 400


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_a_mutant_can_be_made(mutant: Mutant) -> None:
    """The source code that the mutant changes still exists."""
    with ExitStack() as stack:
        mutant.patches(stack)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_a_mutant_is_found(mutant: Mutant) -> None:
    found = hunt(mutant, BUDGET)
    assert found is not None, f"{mutant.name} lives: {mutant.what}"
    assert simulate(found.seed).found == (), "production as it is passes the same seed"
