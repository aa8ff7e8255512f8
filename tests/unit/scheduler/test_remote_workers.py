"""Until when may processes of a remote worker that is away still run?"""

from __future__ import annotations

import pytest

from tradewind.model.moments import SECOND
from tradewind.platform.clock import ManualClock
from tradewind.scheduler.attempts.remote_workers import MARGIN, RemoteWorkers
from tradewind.wire.gateway import LEASE, LEASE_GRACE
from tradewind.worker.remote_link import CHECK_EVERY

OUTAGE = 900 * SECOND
W = "etl-1@remote"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def workers(clock: ManualClock) -> RemoteWorkers:
    """A worker that is connected through the gateway g1."""
    found = RemoteWorkers(clock, OUTAGE)
    found.gateway_connected("g1")
    found.connected(W, "g1")
    return found


def lives_for(workers: RemoteWorkers, clock: ManualClock) -> int:
    """Microseconds, to the second, until the worker can have no process any more."""
    begin = clock.monotonic()
    while workers.may_live(W):
        clock.advance(SECOND)
        assert clock.monotonic() - begin <= 2 * OUTAGE
    return clock.monotonic() - begin


def test_a_connected_worker_lives(workers: RemoteWorkers, clock: ManualClock) -> None:
    clock.advance(10 * OUTAGE)
    assert workers.may_live(W)


def test_a_worker_that_its_gateway_lost_lives_until_the_end_of_its_lease(workers: RemoteWorkers, clock: ManualClock) -> None:
    workers.disconnected(W)
    rest = workers.away("g1", W, 20 * SECOND)
    assert rest == 20 * SECOND + LEASE_GRACE + MARGIN
    assert lives_for(workers, clock) == rest


def test_the_news_may_come_before_the_end_of_the_connection(workers: RemoteWorkers, clock: ManualClock) -> None:
    workers.away("g1", W, 20 * SECOND)
    assert workers.may_live(W)
    workers.disconnected(W)
    assert lives_for(workers, clock) == 20 * SECOND + LEASE_GRACE + MARGIN


def test_a_worker_that_ended_normally_is_gone(workers: RemoteWorkers) -> None:
    workers.disconnected(W)
    workers.away("g1", W, 0)
    assert not workers.may_live(W)


def test_tasks_behind_a_dead_gateway_may_run_for_the_outage_lease(workers: RemoteWorkers, clock: ManualClock) -> None:
    workers.disconnected(W)
    workers.gateway_disconnected("g1")
    workers.gateway_connected("g2")  # another gateway does not help a worker that knows only the first one
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_when_the_gateway_is_back_its_workers_connect_or_stop(workers: RemoteWorkers, clock: ManualClock) -> None:
    workers.disconnected(W)
    workers.gateway_disconnected("g1")
    clock.advance(100 * SECOND)
    workers.gateway_connected("g1")
    assert lives_for(workers, clock) == LEASE + LEASE_GRACE + MARGIN


def test_news_of_an_old_gateway_are_ignored(workers: RemoteWorkers, clock: ManualClock) -> None:
    """The worker has moved to another gateway; then that one dies, too."""
    workers.connected(W, "g2")
    assert workers.away("g1", W, 5 * SECOND) == 0
    workers.disconnected(W)
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_a_new_scheduler_does_not_believe_an_old_end(clock: ManualClock) -> None:
    """Since then the worker may have connected through another gateway, which is not connected to the new scheduler yet."""
    workers = RemoteWorkers(clock, OUTAGE)
    workers.gateway_connected("g1")
    assert workers.away("g1", W, 1, ago=600 * SECOND) == 0
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_a_new_scheduler_believes_an_end_that_it_could_have_seen(clock: ManualClock) -> None:
    workers = RemoteWorkers(clock, OUTAGE)
    workers.gateway_connected("g1")
    clock.advance(10 * SECOND)
    rest = workers.away("g1", W, 20 * SECOND, ago=5 * SECOND)
    assert lives_for(workers, clock) == rest == 20 * SECOND + LEASE_GRACE + MARGIN


def test_a_worker_stops_before_it_is_given_up(workers: RemoteWorkers, clock: ManualClock) -> None:
    """It looks at its lease once a second, and kills its tasks after the grace."""
    workers.disconnected(W)
    workers.away("g1", W, LEASE)
    assert lives_for(workers, clock) > LEASE + LEASE_GRACE + CHECK_EVERY


def test_after_a_takeover_an_unknown_worker_may_live(clock: ManualClock) -> None:
    """The new scheduler does not know through which gateway the worker was connected, or whether that gateway lives."""
    workers = RemoteWorkers(clock, OUTAGE)
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN
