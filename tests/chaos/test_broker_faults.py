"""Faults of brokers and Celery workers under load, judged by what the tasks wrote themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("celery", reason="tests of the CeleryExecutor need celery: pip install 'tradewind[celery]'")

from tests.chaos.broker_faults import BrokerFaults
from tests.chaos.namespace import namespace
from tests.integration.celery.brokers import Broker, rabbitmq_broker, redis_broker

Make = Callable[[Broker], BrokerFaults]
MAKERS = {"redis": redis_broker, "rabbitmq": rabbitmq_broker}
BOTH = pytest.mark.parametrize("kind", ["redis", "rabbitmq"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "broker").mkdir()
    return tmp_path / "broker"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    seed = int(os.environ.get("CHAOS_SEED", "7"))
    made: list[BrokerFaults] = []

    def one(broker: Broker) -> BrokerFaults:
        made.append(BrokerFaults(tmp_path / "world", broker, seed, print))
        made[0].start()
        return made[0]

    try:
        yield one
    finally:
        for world in made:
            world.close()


def judge_all(world: BrokerFaults, *, unended: bool = False) -> None:
    outcome = world.verdict()
    print(f"{len(outcome.runs)} runs, {outcome.verdict.attempts} attempts, {outcome.verdict.unended} without an end")
    assert outcome.verdict.problems == []
    assert outcome.verdict.attempts > 60
    assert unended or outcome.verdict.unended == 0, "a fault of the broker ends no attempt"


@pytest.mark.long
@pytest.mark.timeout(400)
@BOTH
def test_a_broker_that_crashes_or_loses_its_messages(make: Make, folder: Path, kind: str) -> None:
    """Killed and restarted with its messages, killed for 15 s, its data deleted, its queues deleted by an operator."""
    world = make(MAKERS[kind](folder, durable=True))
    with world.fault("the broker is killed, and starts again"):
        world.broker.restart()
    world.broker_is_away(15)
    with world.fault("the broker loses everything"):
        world.broker.lose_everything()
    with world.fault("an operator deletes the queues"):
        world.broker.flush()
    judge_all(world)


@pytest.mark.slow
@pytest.mark.timeout(600)
@BOTH
def test_a_broker_that_hangs(make: Make, folder: Path, kind: str) -> None:
    """SIGSTOP for 20 s and for 60 s: connections stay open and nothing answers."""
    world = make(MAKERS[kind](folder))
    world.freeze_broker(20)
    world.freeze_broker(60)
    judge_all(world)


@pytest.mark.slow
@pytest.mark.timeout(600)
@BOTH
def test_a_broker_whose_network_is_cut(make: Make, folder: Path, kind: str) -> None:
    """No packet arrives in either direction for 45 s. Then the machine of the broker is lost: nobody is told that the connections
    have ended, and another machine with its address has no messages.
    """
    with namespace() as net:
        world = make(MAKERS[kind](folder, net.guest, net.prefix))
        with world.fault("the network to the broker is cut for 45 s"):
            net.cut()
            world.load_for(45)
            net.mend()
        with world.fault("the machine of the broker is replaced"):
            net.remove()
            world.broker.kill()
            net.make()
            world.broker.lose_everything()
        judge_all(world)


@pytest.mark.slow
@pytest.mark.timeout(600)
@BOTH
def test_celery_workers_that_die_or_hang(make: Make, folder: Path, kind: str) -> None:
    world = make(MAKERS[kind](folder))
    world.kill_worker("near")
    world.stop_worker("far", 15, alone=True)
    world.stop_worker("near", 15, alone=False)
    world.kill_worker_host("far")
    judge_all(world, unended=True)
