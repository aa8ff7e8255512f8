"""Which callbacks are requested with a step, and how the dispatcher has them called."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import Bench, Outcome, failing, on_commit, task
from tradewind.model.errors import StoreError
from tradewind.model.moments import SECOND
from tradewind.scheduler.callbacks.callback_dispatcher import ABSENCE
from tradewind.wire.messages import Call, CallbackDone, CallbackOrder

CALLBACKS = {"on_failure_callback": ("tell", "shout"), "on_retry_callback": ("again",)}


class Host:
    """A worker host that records orders and answers as the test says."""

    def __init__(self, bench: Bench, worker: str = "w1") -> None:
        self.bench = bench
        self.orders: list[CallbackOrder] = []
        bench.scheduler.callbacks.attach(worker, self.orders.append)

    def turn(self) -> list[str]:
        """Let the dispatcher run once; return the requests that it sent, in words."""
        before = len(self.orders)
        self.bench.scheduler.callbacks.run_once(self.bench.clock.wall())
        return [said(order) for order in self.orders[before:]]

    def answer(self, order: CallbackOrder, problem: str = "") -> None:
        self.bench.scheduler.callbacks.done(CallbackDone(order.callback_id, order.tries, not problem, problem, order.due))


def said(order: CallbackOrder) -> str:
    call = order.workload.call
    assert call is not None
    return f"{order.workload.task_id}.{call.argument}[{call.index}]"


def call_of(order: CallbackOrder) -> Call:
    assert order.workload.call is not None
    return order.workload.call


@pytest.fixture
def host(bench: Bench) -> Host:
    return Host(bench)


def failed(bench: Bench, run: str = "r1", **fields: Any) -> None:
    """Return a run whose one task failed without having called its callbacks."""
    if "d" not in bench.store.dag_ids():
        bench.dag("d", task("a", callbacks=CALLBACKS, **fields))
    bench.trigger("d", run)
    bench.fail(f"{run}.a")


def test_callbacks_that_a_process_calls_itself_are_not_sent(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a", callbacks=CALLBACKS, retries=1))
    bench.trigger("d", "r1")
    bench.finish("r1.a", outcome=Outcome.FAILED, calls_back=True)
    assert bench.state("r1.a").value == "up_for_retry"
    assert host.turn() == []
    assert len(bench.store.outbox_items()) == 1
    bench.restart()
    host = Host(bench)
    assert host.turn() == []
    bench.scheduler.callbacks.called_back(bench.attempt("r1.a").key, True)
    assert host.turn() == []
    assert bench.store.outbox_items() == []


@pytest.mark.parametrize("reported", [True, False])
def test_callbacks_that_a_process_did_not_call_are_sent_to_a_host(bench: Bench, host: Host, reported: bool) -> None:
    """At once where its worker says so; else when it should have been through with it."""
    bench.dag("d", task("a", callbacks={"on_success_callback": ("cheer", "clap")}))
    bench.trigger("d", "r1")
    bench.finish("r1.a", calls_back=True)
    if reported:
        bench.scheduler.callbacks.called_back(bench.attempt("r1.a").key, False)
    else:
        bench.pass_time(60 * SECOND)
    assert host.turn() == ["a.on_success_callback[0]", "a.on_success_callback[1]"]


def test_a_process_that_has_called_its_callbacks_leaves_no_request(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a", callbacks=CALLBACKS))
    bench.trigger("d", "r1")
    bench.finish("r1.a", outcome=Outcome.FAILED, calls_back=True, called_back=True)
    assert bench.store.outbox_items() == []


def test_callbacks_are_requested_in_the_transaction_of_the_step(bench: Bench, host: Host) -> None:
    failed(bench, email=("a@b.c",))
    batch = bench.watched.commits[-1]
    assert [post.kind for write in batch.runs for post in write.callback_requests] == ["callback", "callback", "mail"]
    assert host.turn() == ["a.on_failure_callback[0]", "a.on_failure_callback[1]", "a.email[0]"]
    order = host.orders[0]
    assert (order.workload.bundle, order.workload.run_id, order.workload.task_id) == ("dags", "r1", "a")
    assert call_of(order).state == "failed"
    assert order.workload.log == "d/r1/a~attempt=1.1.log"


def test_a_retry_requests_its_own_callbacks(bench: Bench, host: Host) -> None:
    failed(bench, retries=1, email=("a@b.c",), email_on_retry=False)
    assert host.turn() == ["a.on_retry_callback[0]"]
    assert call_of(host.orders[0]).state == "up_for_retry"


@pytest.mark.spec("S393")
def test_a_lost_task_requests_its_callbacks(bench: Bench, host: Host) -> None:
    """Its process is gone: the scheduler has its callbacks called and its mails sent, for the try that failed and for the last."""
    mails = {"email": ("a@b.c",), "email_on_retry": True, "email_on_failure": True}
    bench.dag("d", task("a", callbacks=CALLBACKS, retries=1, retry_delay=0, **mails))
    bench.trigger("d", "r1")
    bench.start("r1.a")
    bench.vanish("r1.a")
    assert host.turn() == ["a.on_retry_callback[0]", "a.email[0]"]
    assert (call_of(host.orders[0]).state, call_of(host.orders[0]).reason) == ("up_for_retry", "it died")
    for order in host.orders:
        host.answer(order)
    bench.start("r1.a")
    bench.vanish("r1.a")
    assert bench.state("r1.a").value == "failed"
    assert host.turn() == ["a.on_failure_callback[0]", "a.on_failure_callback[1]", "a.email[0]"]
    assert call_of(host.orders[-1]).reason == "it died"


def test_an_attempt_lost_before_its_start_requests_nothing_until_the_limit(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a", callbacks=CALLBACKS))
    bench.trigger("d", "r1")
    for _ in range(2):
        bench.vanish("r1.a")
        assert host.turn() == []
    bench.vanish("r1.a")
    assert bench.state("r1.a").value == "failed"
    assert host.turn() == ["a.on_failure_callback[0]", "a.on_failure_callback[1]"]
    assert "lost 3 times" in str(call_of(host.orders[0]).reason)


def test_a_task_that_never_began_requests_nothing(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a"), task("b", "a", callbacks=CALLBACKS, email=("a@b.c",)))
    bench.trigger("d", "r1")
    bench.fail("r1.a")
    assert bench.state("r1.b").value == "upstream_failed"
    assert host.turn() == []


def test_the_end_of_a_run_requests_its_callbacks(bench: Bench, host: Host) -> None:
    names = {"on_success_callback": ("fine",), "on_failure_callback": ("bad",), "sla_miss_callback": ("late",)}
    bench.dag("d", task("a"), task("b"), callbacks=names, dagrun_timeout=5 * SECOND)
    bench.trigger("d", "r1")
    bench.finish("r1.a", "r1.b")
    bench.trigger("d", "r2")
    bench.finish("r2.b")
    bench.fail("r2.a")
    bench.trigger("d", "r3")
    bench.pass_time(5 * SECOND)
    assert host.turn() == ["b.on_success_callback[0]", "a.on_failure_callback[0]", "b.on_failure_callback[0]"]
    assert [call_of(order).end_reason for order in host.orders] == ["success", "task_failure", "timed_out"]
    assert [call_of(order).run_state for order in host.orders] == ["success", "failed", "failed"]
    assert host.orders[0].workload.log == "d/r1/~callbacks.log"


def test_the_next_end_of_a_cleared_run_requests_callbacks_again(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a"), callbacks={"on_success_callback": ("fine",)})
    bench.trigger("d", "r1")
    bench.finish("r1.a")
    bench.clear("d", "r1", "a")
    bench.finish("r1.a")
    assert len(host.turn()) == 2


def test_a_successful_request_is_deleted_and_may_be_reported_again(bench: Bench, host: Host) -> None:
    failed(bench)
    host.turn()
    for order in [*host.orders, *host.orders]:
        host.answer(order)
        host.turn()
    assert bench.store.outbox_items() == []
    assert bench.scheduler.callbacks.due() is None


def test_a_failing_request_is_retried_and_parked_in_the_end(bench: Bench, host: Host) -> None:
    failed(bench)
    host.turn()
    bad, good = host.orders
    host.answer(good)
    for pause in (10, 60, 360):
        host.answer(host.orders[-1] if host.orders[-1].callback_id == bad.callback_id else bad, "the pager is away")
        assert host.turn() == []
        due = bench.scheduler.callbacks.due()
        assert due == bench.clock.wall() + pause * SECOND
        bench.clock.advance(pause * SECOND)
        assert host.turn() == ["a.on_failure_callback[0]"]
    host.answer(host.orders[-1], "the pager is away")
    assert host.turn() == []
    (item,) = bench.store.outbox_items(parked=True)
    assert item.parked == "tried 4 times, the last time: the pager is away"
    assert bench.scheduler.callbacks.due() is None
    (sentence,) = bench.why_answer("r1.a")["callbacks"]
    assert sentence.startswith(
        "Its on_failure_callback failed 4 times and is not tried again by itself: the pager is away. Try it now: tradewind"
    )
    assert bench.command("retry_callbacks", ids=[item.id]) == {"ids": [item.id]}
    assert bench.scheduler.callbacks.due() == 0, "at once"
    assert host.turn() == ["a.on_failure_callback[0]"]
    assert bench.command("drop_callbacks", ids=[item.id]) == {"ids": [item.id]}
    assert bench.store.outbox_items() == []


def test_retry_all_includes_requests_that_wait_for_their_retry(bench: Bench, host: Host) -> None:
    failed(bench)
    host.turn()
    bad, good = host.orders
    host.answer(good)
    host.answer(bad, "the pager is away")
    bench.dag("e", task("a", callbacks=CALLBACKS, retries=1))
    bench.trigger("e", "r9")
    bench.finish("r9.a", outcome=Outcome.FAILED, calls_back=True)  # its own process has still to call
    assert host.turn() == []
    assert bench.command("retry_callbacks") == {"ids": [bad.callback_id]}
    assert host.turn() == ["a.on_failure_callback[0]"]


def test_a_repeated_failure_report_counts_once(bench: Bench, host: Host) -> None:
    failed(bench)
    host.turn()
    first = host.orders[0]
    host.answer(first, "away")
    host.turn()
    host.answer(first, "away")
    host.turn()
    found = bench.store.outbox_item(first.callback_id)
    assert found is not None
    assert found.tries == 1


def test_an_outdated_failure_does_not_count_after_a_manual_retry(bench: Bench, host: Host) -> None:
    """Its tries begin anew, so the very first one and the first one now bear the same number. Seed 2034 found it."""
    failed(bench)
    host.turn()
    first = host.orders[0]
    host.answer(first, "away")
    host.turn()
    bench.clock.advance(SECOND)
    bench.command("retry_callbacks", ids=[first.callback_id])
    host.turn()
    host.answer(first, "away")
    host.turn()
    found = bench.store.outbox_item(first.callback_id)
    assert found is not None
    assert found.tries == 0
    host.answer(next(order for order in reversed(host.orders) if order.callback_id == first.callback_id), "away")
    host.turn()
    found = bench.store.outbox_item(first.callback_id)
    assert found is not None
    assert found.tries == 1


def test_callback_parallelism_limits_open_requests(bench: Bench, host: Host) -> None:
    for number in range(3):
        failed(bench, f"r{number}")
    assert len(host.turn()) == 4
    assert host.turn() == []
    host.answer(host.orders[0])
    assert len(host.turn()) == 1


def test_another_host_gets_the_open_requests(bench: Bench, host: Host) -> None:
    failed(bench)
    assert len(host.turn()) == 2
    bench.scheduler.callbacks.detach("w1", bench.clock.wall())
    assert host.turn() == []
    assert len(Host(bench).turn()) == 2


def test_a_worker_that_connects_again_gets_its_callbacks_and_no_other_worker_does(bench: Bench, host: Host) -> None:
    """Only that worker knows whether the callback is under way."""
    failed(bench)
    assert len(host.turn()) == 2
    other = Host(bench, "w2")
    bench.scheduler.callbacks.detach("w1", bench.clock.wall())
    assert other.turn() == []
    again = Host(bench)
    assert len(again.turn()) == 2
    assert other.orders == []


def test_the_callbacks_of_a_worker_that_stays_away_go_to_another_one(bench: Bench, host: Host) -> None:
    failed(bench)
    assert len(host.turn()) == 2
    other = Host(bench, "w2")
    bench.scheduler.callbacks.detach("w1", bench.clock.wall())
    assert other.turn() == []
    assert bench.scheduler.callbacks.due() == bench.clock.wall() + ABSENCE
    bench.clock.advance(ABSENCE)
    assert len(other.turn()) == 2


def test_another_scheduler_sends_the_open_requests(bench: Bench, host: Host) -> None:
    failed(bench)
    bench.restart()
    assert len(Host(bench).turn()) == 2


@pytest.mark.parametrize("later", [121 * SECOND, -1800 * SECOND])
def test_a_request_without_a_result_is_sent_again(bench: Bench, host: Host, later: int) -> None:
    """Also when the clock was set back meanwhile: it is not waited for until it has come to where it was."""
    failed(bench)
    bench.clock.advance(3600 * SECOND)
    assert len(host.turn()) == 2
    bench.clock.jump_wall(later)
    bench.scheduler.callbacks.compare_with_store(bench.clock.wall())
    assert len(host.turn()) == 2


def test_a_failed_commit_requests_nothing_and_its_repetition_once(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a", callbacks=CALLBACKS))
    bench.trigger("d", "r1")
    bench.start("r1.a")
    with failing(bench.watched, on_commit({1: "unknown"})):
        bench.report("r1.a", Outcome.FAILED)
    assert bench.scheduler.recover()
    bench.process()
    assert len(host.turn()) == 2
    assert len(bench.store.outbox_items()) == 2


def test_results_are_kept_while_the_store_fails(bench: Bench, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    failed(bench)
    host.turn()

    def away(*_: Any) -> None:
        raise StoreError("locked")

    for order in host.orders:
        host.answer(order)
    with monkeypatch.context() as patch:
        patch.setattr(bench.watched.inner, "delete_outbox_item", away)
        host.turn()
    assert bench.scheduler.callbacks.due() == bench.clock.wall() + SECOND
    host.turn()
    assert bench.store.outbox_items() == []
