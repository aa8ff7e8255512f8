"""What a gateway decides about a remote worker: leases, rights, and what it tells the scheduler about workers that are away."""

from __future__ import annotations

import pytest

from tradewind.gateway.worker_state import DisconnectedWorkers, Refused, WorkerState
from tradewind.model.moments import SECOND
from tradewind.wire import gateway as g
from tradewind.wire.messages import (
    AttemptGone,
    Goodbye,
    HostHello,
    StandbyReady,
    Submit,
    Welcome,
    Workload,
    decode_to_scheduler,
    encode,
)
from tradewind.wire.worker_tokens import WorkerGrant

KEY, OUTAGE = b"k" * 32, 900 * SECOND


def make_state(queues: tuple[str, ...] = ()) -> WorkerState:
    return WorkerState(WorkerGrant("etl", queues), "g1", KEY, OUTAGE, 0)


@pytest.fixture
def state() -> WorkerState:
    """A worker that has registered."""
    made = make_state()
    made.to_forward(encode(hello()))
    made.attempts_in(Welcome(1), 0)
    return made


def hello(host: str = "etl@remote.p1", **changed: object) -> HostHello:
    return HostHello(host, 1, "there", 4, **changed)  # type: ignore[arg-type]


def test_a_lease_lasts_thirty_seconds(state: WorkerState) -> None:
    assert state.renew(g.Renew(1), 5 * SECOND) == g.Renewed(1, g.LEASE, "g1")
    assert state.lease_until == 5 * SECOND + g.LEASE


def test_a_lease_lasts_as_long_as_the_outage_may(state: WorkerState) -> None:
    state.scheduler_lost(100 * SECOND)
    assert state.renew(g.Renew(1), 160 * SECOND).lease == OUTAGE - 60 * SECOND
    assert state.renew(g.Renew(2), 170 * SECOND).lease == OUTAGE - 70 * SECOND, "no scheduler has answered"
    state.attempts_in(Welcome(1), 170 * SECOND)
    assert state.renew(g.Renew(3), 170 * SECOND).lease == g.LEASE


def test_a_lease_ends_with_the_outage_that_is_allowed(state: WorkerState) -> None:
    state.scheduler_lost(0)
    assert state.renew(g.Renew(1), OUTAGE + SECOND).lease == 0


def test_a_scheduler_with_a_standby_that_says_nothing_is_stopped(state: WorkerState) -> None:
    """The standby has taken over, and waits for as long as an outage may last from then on."""
    assert not state.scheduler_is_stopped(600 * SECOND), "a single scheduler has nothing to say"
    state.attempts_in(StandbyReady(), 600 * SECOND)
    assert not state.scheduler_is_stopped(620 * SECOND)
    assert state.scheduler_is_stopped(630 * SECOND)
    state.scheduler_lost(630 * SECOND)
    assert state.renew(g.Renew(1), 640 * SECOND).lease == OUTAGE - 40 * SECOND


def test_an_answer_may_get_lost(state: WorkerState) -> None:
    """The worker has a long lease from an outage. It goes on under it if the next answer does not arrive."""
    state.renew(g.Renew(1, left=600 * SECOND), 10 * SECOND)
    assert state.lease_until == 610 * SECOND


def test_a_worker_speaks_only_about_what_it_was_given(state: WorkerState) -> None:
    gone = encode(AttemptGone((1, 2, 3), "lost"))
    assert state.to_forward(gone) is None
    state.attempts_in(Submit((Workload(1, 2, 3, "d", "t", "r"),)), 0)
    assert state.to_forward(gone) == gone


def test_a_token_of_another_worker_proves_nothing(state: WorkerState) -> None:
    other = WorkerState(WorkerGrant("other"), "g1", KEY, OUTAGE, 0)
    state.holding(g.Holding(other.tokens([(1, 2, 3)]).tokens))
    assert state.to_forward(encode(AttemptGone((1, 2, 3), "lost"))) is None
    state.holding(g.Holding(state.tokens([(1, 2, 3)]).tokens))
    assert state.to_forward(encode(AttemptGone((1, 2, 3), "lost"))) is not None


def test_a_registration_lists_only_proven_attempts(state: WorkerState) -> None:
    state.attempts_in(Submit((Workload(1, 2, 3, "d", "t", "r"),)), 0)
    passed = state.to_forward(encode(hello(live=((1, 2, 3), (4, 5, 6)))))
    assert passed is not None
    message = decode_to_scheduler(passed)
    assert isinstance(message, HostHello)
    assert (message.live, message.gateway) == (((1, 2, 3),), "g1")


def test_a_registration_under_another_name_is_refused(state: WorkerState) -> None:
    with pytest.raises(Refused, match="it registers as mail@remote, and its token is for etl@remote"):
        state.to_forward(encode(hello("mail@remote.p1")))


def test_a_queue_that_the_token_does_not_allow_is_refused() -> None:
    with pytest.raises(Refused, match="does not allow the queue far; it allows near"):
        make_state(("near",)).to_forward(encode(hello(queues=("far",))))


# --- workers that are away --------------------------------------------------------------------------------------------


def test_each_scheduler_is_told_once(state: WorkerState) -> None:
    state.renew(g.Renew(1), 0)
    away = DisconnectedWorkers()
    away.disconnected(state, 10 * SECOND)
    received: dict[str, object] = {}
    (news,) = away.news(received, {}, 12 * SECOND)
    assert (news.worker, news.host, news.lease, news.ago) == ("etl@remote", "etl@remote.p1", 18 * SECOND, 2 * SECOND)
    assert away.news(received, {}, 13 * SECOND) == []
    assert len(away.news({}, {}, 13 * SECOND)) == 1


def test_a_lease_that_has_just_run_out_is_no_normal_end(state: WorkerState) -> None:
    """The scheduler was away meanwhile. The tasks of the worker get TERM, and are killed only after the grace."""
    state.renew(g.Renew(1), 0)
    away = DisconnectedWorkers()
    away.disconnected(state, 15 * SECOND)
    assert away.news({}, {}, 31 * SECOND)[0].lease > 0


def test_a_normal_end_frees_the_attempts_at_once(state: WorkerState) -> None:
    state.renew(g.Renew(1), 0)
    state.to_forward(encode(Goodbye()))
    away = DisconnectedWorkers()
    away.disconnected(state, SECOND)
    assert away.news({}, {}, SECOND)[0].lease == 0


def test_a_worker_that_is_here_again_is_not_away(state: WorkerState) -> None:
    away = DisconnectedWorkers()
    away.disconnected(state, SECOND)
    assert away.news({}, {"etl@remote": state}, SECOND) == []


def test_a_connection_without_registration_says_nothing(state: WorkerState) -> None:
    """It would be taken for a normal end, although the worker runs under a lease of another gateway."""
    away = DisconnectedWorkers()
    away.disconnected(make_state(), SECOND)
    assert away.news({}, {}, SECOND) == []
    state.renew(g.Renew(1), 0)
    away.disconnected(state, SECOND)
    away.disconnected(make_state(), 2 * SECOND)
    assert away.news({}, {}, 2 * SECOND)[0].lease == 28 * SECOND


def test_a_lease_that_a_scheduler_was_told_of_gets_no_longer_before_it_knows_better(state: WorkerState) -> None:
    """It gives the attempts up when this lease has run out. The worker has connected again, and nobody has told the scheduler."""
    state.renew(g.Renew(1), 0)
    away = DisconnectedWorkers()
    away.disconnected(state, 10 * SECOND)
    assert away.limit("etl@remote") is None
    away.news({}, {}, 10 * SECOND)
    again = WorkerState(WorkerGrant("etl"), "g1", KEY, OUTAGE, 20 * SECOND, away.limit("etl@remote"))
    assert again.renew(g.Renew(1), 20 * SECOND).lease == 10 * SECOND
    assert again.renew(g.Renew(2), 25 * SECOND).lease == 5 * SECOND
    again.attempts_in(Welcome(1), 26 * SECOND)
    assert again.renew(g.Renew(3), 26 * SECOND).lease == g.LEASE


def test_a_scheduler_is_told_of_a_lease_without_registration(state: WorkerState) -> None:
    state.renew(g.Renew(1), 0)
    away = DisconnectedWorkers()
    away.disconnected(state, SECOND)
    again = make_state()
    again.renew(g.Renew(1), 2 * SECOND)
    assert away.news({}, {"etl@remote": again}, 2 * SECOND)[0].lease == OUTAGE - 2 * SECOND


def test_a_connection_that_a_scheduler_is_told_of_gets_no_longer_lease_before_it_answers(state: WorkerState) -> None:
    """The connection began before the scheduler was told, and registers later."""
    state.renew(g.Renew(1), 0)
    away = DisconnectedWorkers()
    away.disconnected(state, SECOND)
    again = make_state()
    assert away.news({}, {"etl@remote": again}, 2 * SECOND)[0].lease == g.LEASE - 2 * SECOND
    assert again.renew(g.Renew(1), 3 * SECOND).lease == g.LEASE - 3 * SECOND
    again.attempts_in(Welcome(1), 4 * SECOND)
    assert again.renew(g.Renew(2), 5 * SECOND).lease == g.LEASE
