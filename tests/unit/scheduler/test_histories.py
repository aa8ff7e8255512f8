"""Random histories: nothing is lost or doubled, whatever dies or fails, and the rows are what the memory says."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.world import World
from tradewind.store.memory import MemoryStore

SEEDS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_histories(seed: int) -> None:
    """Whatever happened, in the end every run ends, the journal adds up, and no process ran beside its twin."""
    store = MemoryStore()
    world = World(store, seed, batch_max_rows=[2000, 10, 40][seed % 3])
    world.host.loses = [0.0, 0.1][seed // 2 % 2]
    for _ in range(120):
        world.step()
        if world.chance.random() < 0.1:
            world.bench.process()
            world.bench.check()
    world.settle()
    world.bench.check()
    world.check_assets()
    store.close()
