"""Until when may processes of a remote worker that is away still run?"""

from __future__ import annotations

import pytest

from tradewind.model.moments import SECOND
from tradewind.platform.clock import ManualClock
from tradewind.scheduler.attempts.remote_workers import GATEWAYS_MAX, MARGIN, RemoteWorkers
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
    register(found, "g1")
    confirm(found, "g1")
    return found


def register(workers: RemoteWorkers, gateway: str) -> None:
    """As the scheduler does it: the gateway is stored before the registration is answered."""
    gateways = workers.gateways_at_registration(W, gateway)
    if gateways is not None:
        workers.stored(W, gateways)
    workers.connected(W, gateway)


def confirm(workers: RemoteWorkers, gateway: str) -> None:
    """The worker has received the answer."""
    gateways = workers.gateways_at_confirmation(W, gateway)
    if gateways is not None:
        workers.stored(W, gateways)


def after_takeover(clock: ManualClock, *gateways: str) -> RemoteWorkers:
    """A new scheduler. The store says that the worker was registered at one of these gateways."""
    found = RemoteWorkers(clock, OUTAGE)
    found.load({W: frozenset(gateways)})
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
    register(workers, "g2")
    confirm(workers, "g2")
    workers.away("g1", W, 5 * SECOND)
    workers.disconnected(W)
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_an_answer_that_the_worker_may_not_have_received_changes_nothing(workers: RemoteWorkers, clock: ManualClock) -> None:
    """It is lost on its way through the second gateway. The worker returns to the first one, which has no scheduler."""
    workers.disconnected(W)
    workers.gateway_disconnected("g1")
    register(workers, "g2")
    workers.disconnected(W)
    workers.away("g2", W, 5 * SECOND)
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_both_gateways_have_lost_a_worker_that_did_not_confirm(workers: RemoteWorkers, clock: ManualClock) -> None:
    workers.disconnected(W)
    workers.away("g1", W, 25 * SECOND)
    register(workers, "g2")
    workers.disconnected(W)
    workers.away("g2", W, 5 * SECOND)
    assert lives_for(workers, clock) == 25 * SECOND + LEASE_GRACE + MARGIN


def test_a_worker_that_comes_back_has_a_new_lease(workers: RemoteWorkers, clock: ManualClock) -> None:
    workers.disconnected(W)
    workers.away("g1", W, 0)
    register(workers, "g1")
    workers.disconnected(W)
    assert lives_for(workers, clock) == LEASE + LEASE_GRACE + MARGIN


def test_a_gateway_that_was_restarted_has_forgotten_what_it_said(workers: RemoteWorkers, clock: ManualClock) -> None:
    """The worker may be connected to it again, and wait there for its registration under a long lease."""
    workers.disconnected(W)
    workers.away("g1", W, 20 * SECOND)
    workers.gateway_disconnected("g1")
    clock.advance(5 * SECOND)
    workers.gateway_connected("g1")
    assert lives_for(workers, clock) == LEASE + LEASE_GRACE + MARGIN


def test_many_moves_without_a_confirmation_are_kept_as_one(workers: RemoteWorkers, clock: ManualClock) -> None:
    names = [f"g{number}" for number in range(2, 2 + 2 * GATEWAYS_MAX)]
    for name in names:
        register(workers, name)
    workers.disconnected(W)
    for name in ("g1", *names):
        workers.away(name, W, 0)
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN
    register(workers, "g1")
    confirm(workers, "g1")
    workers.disconnected(W)
    workers.away("g1", W, 0)
    assert not workers.may_live(W)


# --- after a takeover, or a restart -------------------------------------------------------------------------------------


def test_a_new_scheduler_believes_the_gateway_of_the_worker(clock: ManualClock) -> None:
    """However long ago the worker has left: it can have a longer lease only through this gateway, which knows of none."""
    workers = after_takeover(clock, "g1")
    workers.gateway_connected("g1")
    rest = workers.away("g1", W, 20 * SECOND)
    assert lives_for(workers, clock) == rest == 20 * SECOND + LEASE_GRACE + MARGIN


def test_a_new_scheduler_does_not_believe_another_gateway(clock: ManualClock) -> None:
    """The worker left it long ago, and is registered at a gateway that is not connected to the new scheduler yet."""
    workers = after_takeover(clock, "g2")
    workers.gateway_connected("g1")
    workers.away("g1", W, 1)
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_a_new_scheduler_asks_every_gateway_of_a_worker_that_did_not_confirm(clock: ManualClock) -> None:
    workers = after_takeover(clock, "g1", "g2")
    workers.away("g1", W, 3 * SECOND)
    assert workers.may_live(W)
    clock.advance(SECOND)
    rest = workers.away("g2", W, 20 * SECOND)
    assert lives_for(workers, clock) == rest == 20 * SECOND + LEASE_GRACE + MARGIN


def test_a_new_scheduler_does_not_believe_the_silence_of_a_gateway(clock: ManualClock) -> None:
    """It may have been restarted, after it gave the worker a lease for an outage."""
    workers = after_takeover(clock, "g1")
    workers.gateway_connected("g1")
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_a_worker_stops_before_it_is_given_up(workers: RemoteWorkers, clock: ManualClock) -> None:
    """It looks at its lease once a second, and kills its tasks after the grace."""
    workers.disconnected(W)
    workers.away("g1", W, LEASE)
    assert lives_for(workers, clock) > LEASE + LEASE_GRACE + CHECK_EVERY


def test_after_a_takeover_an_unknown_worker_may_live(clock: ManualClock) -> None:
    """The new scheduler does not know through which gateway the worker was connected, or whether that gateway lives."""
    workers = RemoteWorkers(clock, OUTAGE)
    assert lives_for(workers, clock) == OUTAGE + LEASE_GRACE + MARGIN


def test_a_worker_that_is_away_for_long_is_forgotten(workers: RemoteWorkers, clock: ManualClock) -> None:
    """With the KubernetesExecutor there is a worker for each attempt."""
    clock.advance(2 * OUTAGE)
    for number in range(100):
        name = f"pod-1-{number}-1@remote"
        workers.stored(name, frozenset({"g1"}))
        workers.connected(name, "g1")
        workers.disconnected(name)
        assert workers.may_live(name)
    assert len(workers._homes) == 101
    clock.advance(2 * OUTAGE)
    for _ in range(20):
        workers.disconnected(W)
    assert set(workers._homes) == {W}
    assert not workers.may_live("pod-1-5-1@remote")
    assert workers.may_live(W)
