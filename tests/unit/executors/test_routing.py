"""Which worker gets an attempt."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from tradewind.executors.routing import WorkerLoad, choose_worker
from tradewind.model.executor_names import LOCAL, SEQUENTIAL


def worker(
    name: str, slots: int = 0, assigned: int = 0, *queues: str, draining: bool = False, executors: Iterable[str] = ()
) -> WorkerLoad:
    return WorkerLoad(name, frozenset(executors), frozenset(queues), slots, assigned, draining)


def test_a_worker_that_serves_the_queue_gets_the_attempt() -> None:
    workers = [worker("a", 0, 0, "etl"), worker("b", 0, 9, "ml")]
    assert choose_worker(LOCAL, "ml", workers) == "b"
    assert choose_worker(LOCAL, "other", workers) is None


def test_a_worker_without_queues_serves_every_queue() -> None:
    assert choose_worker(LOCAL, "anything", [worker("a")]) == "a"


def test_a_worker_takes_only_attempts_of_the_executors_that_it_names() -> None:
    workers = [worker("a", executors=[SEQUENTIAL]), worker("b", 0, 9)]
    assert choose_worker(SEQUENTIAL, "default", workers) == "a"
    assert choose_worker(LOCAL, "default", workers) == "b"
    assert choose_worker(LOCAL, "default", workers[:1]) is None
    assert choose_worker("", "default", workers[:1]) == "a", "an attempt without an executor goes to any worker"


def test_the_smallest_share_of_slots_decides() -> None:
    assert choose_worker(LOCAL, "default", [worker("big", 10, 4), worker("small", 4, 2)]) == "big"
    assert choose_worker(LOCAL, "default", [worker("big", 10, 6), worker("small", 4, 2)]) == "small"


def test_without_limits_the_fewest_attempts_decide() -> None:
    assert choose_worker(LOCAL, "default", [worker("a", 0, 2), worker("b", 0, 1)]) == "b"


def test_a_worker_that_drains_or_is_full_gets_nothing() -> None:
    assert choose_worker(LOCAL, "default", [worker("a", draining=True), worker("b", 1, 1)]) is None


def test_the_preferred_worker_gets_the_attempt_if_it_can_take_it() -> None:
    assert choose_worker(LOCAL, "default", [worker("a", 9, 8), worker("b", 9, 0)], preferred="a") == "a"
    assert choose_worker(LOCAL, "default", [worker("a", 9, 9), worker("b", 9, 0)], preferred="a") == "b"


loads = st.builds(
    WorkerLoad,
    worker=st.sampled_from("abcde"),
    executors=st.frozensets(st.sampled_from([LOCAL, SEQUENTIAL])),
    queues=st.frozensets(st.sampled_from(["default", "etl"])),
    slots=st.integers(0, 3),
    assigned=st.integers(0, 4),
    draining=st.booleans(),
)


@given(st.lists(loads, unique_by=lambda one: one.worker), st.sampled_from(["default", "etl", "ml"]))
def test_an_attempt_goes_to_a_worker_that_can_take_it_whenever_there_is_one(workers: list[WorkerLoad], queue: str) -> None:
    chosen = choose_worker(LOCAL, queue, workers)
    able = {one.worker for one in workers if one.serves(LOCAL, queue) and one.has_free_slot}
    assert chosen in able if able else chosen is None
