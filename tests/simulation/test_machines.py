"""Several machines: gateways, remote workers, a standby scheduler and a broker, under cuts, crashes and lost messages."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

pytest.importorskip("websockets", reason="simulations of several machines need websockets: pip install 'tradewind[remote]'")

from tests.simulation.machine_mutants import MACHINE_MUTANTS
from tests.simulation.mutants import Mutant, hunt
from tradewind.testing import simulate

pytestmark = pytest.mark.timeout(600)  # much computing, which other tests slow down

BUDGET = 60

FOUND = {
    0: "a gateway told a new scheduler of an end from long ago, and the worker had moved to another gateway",
    8: "the answer to a registration was lost, and the worker went on under the leases of its former gateway",
    11: "the report of an attempt that was given up stayed on a restarted worker for ever",
    24: "a worker went on under the lease of a gateway without a scheduler, after its own gateway had come back",
    48: "each connection to a gateway without a scheduler began the time of an outage again",
}
"""Seeds that have found a fault, and what it was."""


@pytest.mark.parametrize("seed", [*FOUND, 3, 5])
def test_the_guarantees_hold_on_several_machines(seed: int) -> None:
    simulate(seed, machines=True)


@pytest.mark.long
def test_the_same_seed_gives_the_same_history() -> None:
    one, two = simulate(10, machines=True), simulate(10, machines=True)
    assert (one.digest, one.faults, one.sometimes) == (two.digest, two.faults, two.sometimes)
    assert simulate(10).digest != one.digest, "another kind of world"


@pytest.mark.parametrize("mutant", MACHINE_MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_a_mutant_can_be_made(mutant: Mutant) -> None:
    """The source code that the mutant changes still exists."""
    with ExitStack() as stack:
        mutant.patches(stack)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MACHINE_MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_a_mutant_is_found(mutant: Mutant) -> None:
    found = hunt(mutant, BUDGET, machines=True)
    assert found is not None, f"{mutant.name} lives: {mutant.what}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 50))
def test_the_guarantees_hold_under_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        simulate(seed, machines=True)


@pytest.mark.slow
def test_every_fault_and_situation_is_reached() -> None:
    done = [simulate(seed, machines=True) for seed in range(60)]
    reached = set().union(*(one.faults for one in done), *(one.sometimes for one in done))
    assert reached >= {
        "machine of a scheduler cut off",
        "machine of a remote worker cut off",
        "machine lost",
        "remote worker and active scheduler lost together",
        "the answer to a registration is lost",
        "gateway away for long",
        "scheduler taken over while the former one lives",
        "a worker reports about an attempt of another one",
        "the broker lost a message",
        "the broker repeated a message",
        "the broker delayed a message",
        "broker flushed",
        "Celery worker crashed",
        "a gateway gives up a silent worker",
    }
