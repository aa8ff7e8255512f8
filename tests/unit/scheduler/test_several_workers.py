"""Several worker hosts: each one reports only its own attempts, and the attempts of a lost one fail."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.unit.scheduler.bench import Bench, StubExecutor, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.kernel.events import AttemptVanished
from tradewind.model.moments import SECOND
from tradewind.scheduler.duties.lost_workers import LostWorkers
from tradewind.scheduler.inbox import RunEvent
from tradewind.wire.messages import AttemptKey

FIRST, SECOND_WORKER = "w1.p1", "w2.p1"
LOST_AFTER = 40 * SECOND


class TwoWorkers(StubExecutor):
    """Remembers whom it was to ask."""

    def __init__(self) -> None:
        super().__init__()
        self.connected = ["w1", "w2"]
        self.living = {"w1", "w2"}
        self.given: dict[AttemptKey, str] = {}
        self.asked_where: list[tuple[str, AttemptKey]] = []

    @property
    def workers(self) -> Sequence[str]:
        return self.connected

    def worker_of(self, attempt: AttemptKey) -> str | None:
        return self.given.get(attempt)

    def may_live(self, worker: str) -> bool:
        return worker in self.living

    def reconcile(self, worker: str, attempts: object, *, complete: bool = False) -> None:
        assert isinstance(attempts, dict)
        self.asked_where += [(worker, key) for key in attempts]


@pytest.fixture
def workers() -> TwoWorkers:
    return TwoWorkers()


@pytest.fixture
def two(make_bench: MakeBench, workers: TwoWorkers) -> Bench:
    """Task `a` runs on the first worker, `b` on the second; `c` is queued and given to the second."""
    bench = make_bench(executor=workers)
    bench.dag("d", task("a", retries=1), task("b"), task("c"))
    bench.trigger("d", "r")
    bench.ask("r.a", host=FIRST)
    bench.ask("r.b", host=SECOND_WORKER)
    workers.given[bench.attempt("r.c").key] = "w2"
    workers.submitted.clear()
    return bench


def key(bench: Bench, name: str) -> AttemptKey:
    run = bench.run("r").id
    return next(key for key, _, _ in bench.scheduler.hosts.attempts() if key[0] == run and key[1] == "abc".index(name))


def test_a_registration_describes_only_its_sender(two: Bench, workers: TwoWorkers) -> None:
    two.scheduler.hosts.register("w1.p2", frozenset())
    assert workers.asked_where == [("w1", key(two, "a"))]
    assert workers.submitted == [], "the second worker has what is queued"


def test_what_was_given_to_a_worker_that_does_not_have_it_is_submitted_again(two: Bench, workers: TwoWorkers) -> None:
    two.scheduler.hosts.register("w2.p2", frozenset())
    assert workers.asked_where == [("w2", key(two, "b"))]
    assert [work.task_id for work in workers.submitted] == ["c"]


def test_the_safety_net_asks_each_worker_for_its_own_attempts(two: Bench, workers: TwoWorkers) -> None:
    two.scheduler.hosts.reconcile()
    assert sorted(workers.asked_where) == [("w1", key(two, "a")), ("w2", key(two, "b"))]


def test_a_worker_cannot_give_up_the_attempt_of_another_worker(two: Bench) -> None:
    run, slot, fence = key(two, "a")
    nonce = two.accepted.get((run, slot, fence), f"n{fence}")
    two.scheduler.push(RunEvent(run, AttemptVanished(slot, fence, 0, "it is not here", nonce, SECOND_WORKER)))
    two.process()
    assert two.states("r")["a"] == "running"
    two.scheduler.push(RunEvent(run, AttemptVanished(slot, fence, 0, "it is not here", nonce, "w1.p2")))
    two.process()
    assert two.states("r")["a"] == "up_for_retry"


def lose_first_worker(bench: Bench, workers: TwoWorkers) -> LostWorkers:
    workers.connected = ["w2"]
    workers.living = {"w2"}
    bench.scheduler.hosts.disconnected("w1")
    return LostWorkers(bench.scheduler, SECOND, LOST_AFTER)


def test_the_attempts_of_a_worker_that_does_not_come_back_are_lost(two: Bench, workers: TwoWorkers) -> None:
    duty = lose_first_worker(two, workers)
    two.clock.advance(LOST_AFTER - 1)
    duty.run_once()
    two.process()
    assert two.states("r")["a"] == "running"
    two.clock.advance(1)
    duty.run_once()
    two.process()
    assert two.states("r") == {"a": "up_for_retry", "b": "running", "c": "queued"}
    (row,) = [row for row in two.snapshot("r").rows if row.task_id == "a"]
    assert row.reason is not None
    assert "w1" in row.reason


def test_a_worker_whose_process_lives_is_waited_for(two: Bench, workers: TwoWorkers) -> None:
    """Its tasks may go on; a second attempt must not begin beside them."""
    duty = lose_first_worker(two, workers)
    workers.living.add("w1")
    two.clock.advance(10 * LOST_AFTER)
    duty.run_once()
    two.process()
    assert two.states("r")["a"] == "running"


def test_while_no_worker_is_connected_nothing_is_given_up(two: Bench, workers: TwoWorkers) -> None:
    """Nothing could run again, and reports on the disk of a worker that comes back still count."""
    duty = lose_first_worker(two, workers)
    workers.connected = []
    two.clock.advance(10 * LOST_AFTER)
    duty.run_once()
    two.process()
    assert two.states("r")["a"] == "running"


def test_a_scheduler_that_has_just_begun_gives_a_worker_its_time(two: Bench, workers: TwoWorkers) -> None:
    two.restart()
    workers.connected, workers.living = ["w2"], {"w2"}
    two.clock.advance(LOST_AFTER)
    duty = LostWorkers(two.scheduler, SECOND, LOST_AFTER)
    duty.run_once()
    two.process()
    assert two.states("r")["a"] == "running"
    two.clock.advance(LOST_AFTER)
    duty.run_once()
    two.process()
    assert two.states("r")["a"] == "up_for_retry"


def test_the_next_attempt_names_the_worker_of_the_one_before(two: Bench, workers: TwoWorkers) -> None:
    """Also after a restart of the scheduler."""
    run, slot, fence = key(two, "a")
    two.scheduler.push(RunEvent(run, AttemptVanished(slot, fence, 0, "its process was killed", f"n{fence}", FIRST)))
    two.process()
    two.restart()
    two.clock.advance(3600 * SECOND)
    two.process()
    assert [work.previous_host for work in workers.submitted if work.task_id == "a"] == [FIRST]


def test_an_attempt_that_is_not_current_and_runs_all_the_same_is_cancelled(two: Bench, workers: TwoWorkers) -> None:
    """Its cancel was lost; the answer to the safety net's list names it."""
    stranger, current = (99, 0, 1), key(two, "a")
    two.scheduler.hosts.cancel_unlisted("w1", [stranger, current])
    assert workers.cancelled == [stranger]
