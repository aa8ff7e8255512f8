"""Several worker hosts on one machine: who is given what."""

from __future__ import annotations

import pytest

from tradewind.executors.local import LocalExecutor
from tradewind.model.executor_names import LOCAL, SEQUENTIAL
from tradewind.model.waits import TriggerWait
from tradewind.wire.messages import (
    AttemptKey,
    Cancel,
    DropTriggers,
    FromScheduler,
    Reconcile,
    RunTriggers,
    StandbyReady,
    Submit,
    TriggerOrder,
    Withdraw,
    Workload,
)


class Hosts:
    """An executor and what each of its workers was sent."""

    def __init__(self) -> None:
        self.living: set[str] = set()
        self.executor = LocalExecutor(lambda worker: worker in self.living)
        self.sent: dict[str, list[FromScheduler]] = {}

    def connect(
        self,
        worker: str,
        slots: int = 0,
        queues: tuple[str, ...] = (),
        live: tuple[AttemptKey, ...] = (),
        process: str = "p",
        executors: tuple[str, ...] = (),
    ) -> None:
        self.living.add(worker)
        messages = self.sent[worker] = []
        send = messages.append
        self.executor.connect(f"{worker}.{process}", send, executors=executors, slots=slots, queues=queues, live=live)

    def end(self, worker: str) -> None:
        """Its process and everything below it ends."""
        self.living.discard(worker)
        self.executor.disconnect(worker)

    def submitted(self, worker: str) -> list[AttemptKey]:
        return [work.key for message in self.sent[worker] if isinstance(message, Submit) for work in message.workloads]

    def triggers(self, worker: str) -> int:
        """How many triggers the worker was told to run with the last such message."""
        last = self.messages(worker, RunTriggers)[-1]
        assert isinstance(last, RunTriggers)
        return len(last.triggers)

    def messages(self, worker: str, kind: type) -> list[FromScheduler]:
        return [message for message in self.sent[worker] if isinstance(message, kind)]


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


def work(slot: int, fence: int = 1, queue: str = "default", previous_host: str = "", executor: str = "") -> Workload:
    return Workload(1, slot, fence, "d", f"t{slot}", "r", queue=queue, previous_host=previous_host, executor=executor)


def test_attempts_are_shared_between_the_workers(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.connect("w2")
    hosts.executor.submit([work(slot) for slot in range(10)])
    assert (len(hosts.submitted("w1")), len(hosts.submitted("w2"))) == (5, 5)


def test_a_queue_goes_to_the_workers_that_serve_it(hosts: Hosts) -> None:
    hosts.connect("w1", queues=("default",))
    hosts.connect("w2", queues=("etl",))
    hosts.executor.submit([work(0, queue="etl"), work(1), work(2, queue="etl")])
    assert hosts.submitted("w1") == [(1, 1, 1)]
    assert hosts.submitted("w2") == [(1, 0, 1), (1, 2, 1)]


def test_an_executor_goes_to_the_workers_that_take_it_and_does_not_block_another_one(hosts: Hosts) -> None:
    hosts.connect("w1", executors=(LOCAL,), slots=1)
    hosts.executor.submit([work(0, executor=LOCAL), work(1, executor=LOCAL), work(2, executor=SEQUENTIAL)])
    assert hosts.submitted("w1") == [(1, 0, 1)]
    hosts.connect("w2", executors=(SEQUENTIAL,), slots=1)
    assert hosts.submitted("w2") == [(1, 2, 1)]
    assert hosts.executor.serves(SEQUENTIAL, "default")
    assert not hosts.executor.serves("CeleryExecutor", "default")


def test_what_no_worker_can_take_waits_for_a_free_slot_in_order(hosts: Hosts) -> None:
    hosts.connect("w1", slots=1)
    hosts.executor.submit([work(0), work(1), work(2)])
    assert hosts.submitted("w1") == [(1, 0, 1)]
    hosts.executor.release((1, 0))
    assert hosts.submitted("w1") == [(1, 0, 1), (1, 1, 1)]
    hosts.connect("w2", slots=1)
    assert hosts.submitted("w2") == [(1, 2, 1)]


def test_what_waits_for_a_slot_and_is_not_current_any_more_is_left_out(hosts: Hosts) -> None:
    hosts.connect("w1", slots=1)
    hosts.executor.submit([work(0), work(1), work(2)])
    hosts.executor.release((1, 1))
    hosts.executor.release((1, 0))
    assert hosts.submitted("w1") == [(1, 0, 1), (1, 2, 1)]


def test_an_attempt_that_is_submitted_again_goes_to_the_same_worker(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.connect("w2")
    hosts.executor.submit([work(0)])
    hosts.executor.submit([work(0)])
    assert hosts.submitted("w1") == [(1, 0, 1), (1, 0, 1)]
    assert hosts.submitted("w2") == []


def test_a_worker_that_connects_keeps_what_it_says_that_it_has(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.connect("w2", live=((1, 0, 1),))
    hosts.executor.submit([work(0)])
    assert hosts.submitted("w2") == [(1, 0, 1)]
    assert hosts.submitted("w1") == []


def test_a_worker_that_has_gone_has_nothing_any_more(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.executor.submit([work(0)])
    assert hosts.executor.disconnect("w1") == [(1, 0)]
    assert hosts.executor.worker_of((1, 0, 1)) is None
    hosts.connect("w2")
    hosts.executor.submit([work(0)])
    assert hosts.submitted("w2") == [(1, 0, 1)]


def test_a_draining_worker_gives_back_what_it_has_not_started(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.executor.submit([work(0), work(1)])
    assert hosts.executor.drain("w1", [(1, 0, 1)]) == [(1, 1)]
    hosts.connect("w2")
    hosts.executor.submit([work(1)])
    assert hosts.submitted("w2") == [(1, 1, 1)]


# --- two attempts of one task instance on two workers -----------------------------------------------------------------


def next_attempt(hosts: Hosts) -> Workload:
    """Attempt 1 ran on w1, which has no free slot now; attempt 2 was submitted."""
    hosts.connect("w1", slots=1)
    hosts.executor.submit([work(9)])
    hosts.connect("w2")
    second = work(0, 2, previous_host="w1.p")
    hosts.executor.submit([second])
    return second


def test_the_next_attempt_goes_to_the_worker_of_the_one_before(hosts: Hosts) -> None:
    """Only that worker can wait for the end of its process."""
    hosts.connect("w1")
    hosts.connect("w2")
    hosts.executor.submit([work(5), work(0, 2, previous_host="w1.p")])
    assert hosts.submitted("w1") == [(1, 5, 1), (1, 0, 2)]


def test_an_attempt_waits_until_the_former_worker_has_ended_the_one_before(hosts: Hosts) -> None:
    second = next_attempt(hosts)
    assert hosts.submitted("w2") == []
    assert [message.attempt for message in hosts.messages("w1", Withdraw) if isinstance(message, Withdraw)] == [second.key]
    hosts.executor.withdrawn("w1", second.key)
    assert hosts.submitted("w2") == [second.key]


def test_an_answer_about_an_older_attempt_lets_nothing_go(hosts: Hosts) -> None:
    next_attempt(hosts)
    hosts.executor.withdrawn("w1", (1, 0, 1))
    hosts.executor.withdrawn("w2", (1, 0, 2))
    assert hosts.submitted("w2") == []


def test_a_lost_question_is_asked_again_when_the_attempt_is_submitted_again(hosts: Hosts) -> None:
    second = next_attempt(hosts)
    hosts.executor.submit([second])
    assert len(hosts.messages("w1", Withdraw)) == 2


def test_the_end_of_the_former_worker_lets_the_attempt_go(hosts: Hosts) -> None:
    second = next_attempt(hosts)
    hosts.end("w1")
    assert hosts.submitted("w2") == [second.key]


def test_another_process_of_the_former_worker_lets_the_attempt_go(hosts: Hosts) -> None:
    """It begins when the one before has ended, with everything below it."""
    second = next_attempt(hosts)
    hosts.executor.disconnect("w1")
    hosts.connect("w1", slots=1, live=((1, 9, 1),), process="q")
    assert hosts.submitted("w2") == [second.key]


def test_a_former_worker_that_only_lost_its_connection_may_still_run_the_process(hosts: Hosts) -> None:
    second = next_attempt(hosts)
    hosts.executor.disconnect("w1")
    assert hosts.submitted("w2") == []
    hosts.connect("w1", slots=1, live=((1, 9, 1),))
    hosts.executor.submit([second])
    assert hosts.submitted("w2") == []
    hosts.executor.withdrawn("w1", second.key)
    assert hosts.submitted("w2") == [second.key]


# --- messages to the right worker -------------------------------------------------------------------------------------


def test_messages_about_an_attempt_go_to_its_worker(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.connect("w2")
    hosts.executor.submit([work(0)])
    hosts.executor.cancel((1, 0, 1), "it was cleared", 5)
    hosts.executor.reconcile("w2", {(1, 7, 1): "nonce"})
    assert len(hosts.messages("w1", Cancel)) == 1
    assert hosts.messages("w2", Cancel) == []
    assert len(hosts.messages("w2", Reconcile)) == 1


def test_a_cancel_for_an_attempt_of_an_unknown_worker_goes_to_all(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.connect("w2")
    hosts.executor.cancel((1, 0, 1), "it was cleared", 5)
    assert len(hosts.messages("w1", Cancel)) == len(hosts.messages("w2", Cancel)) == 1


def test_triggers_are_shared_and_move_when_their_worker_goes(hosts: Hosts) -> None:
    hosts.connect("w1")
    hosts.connect("w2")
    orders = [TriggerOrder((1, slot, 1), TriggerWait("pkg.T")) for slot in range(4)]
    hosts.executor.run_triggers(orders)
    assert [hosts.triggers(worker) for worker in ("w1", "w2")] == [2, 2]
    hosts.end("w1")
    hosts.executor.run_triggers(orders)
    assert hosts.triggers("w2") == 4
    hosts.executor.drop_triggers([orders[0].key])
    assert len(hosts.messages("w2", DropTriggers)) == 1


def test_workers_learn_of_a_standby(hosts: Hosts) -> None:
    """Not the worker of a SQLite file. For a remote worker its gateway has to know it."""
    for worker in ("w1@here-1f2e", "etl@remote", "w1"):
        hosts.connect(worker)
    hosts.executor.standby_is_ready()
    hosts.connect("w2@here-1f2e")
    received = [worker for worker in hosts.sent if hosts.messages(worker, StandbyReady)]
    assert received == ["w1@here-1f2e", "etl@remote", "w2@here-1f2e"]


def test_a_report_that_a_registration_lists_keeps_no_slot_from_the_next_attempt(hosts: Hosts) -> None:
    """The connection broke after the report of attempt 1 was stored and before it was acknowledged."""
    hosts.connect("w1", slots=1, live=((1, 0, 1),))
    hosts.executor.submit([work(0, fence=2, previous_host="w1.p")])
    assert hosts.submitted("w1") == [(1, 0, 2)]
    hosts.executor.release((1, 0))
    hosts.executor.submit([work(1)])
    assert hosts.submitted("w1") == [(1, 0, 2), (1, 1, 1)]
