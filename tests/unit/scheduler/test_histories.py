"""Random histories: nothing is lost or duplicated, whatever crashes or fails, and rows and memory agree."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.world import World
from tradewind.store.memory import MemoryStore

SEEDS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_histories(seed: int) -> None:
    """In the end every run ends, the journal is complete, and no two processes of one task instance ran at the same time."""
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
