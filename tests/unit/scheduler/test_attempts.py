"""Attempts: one accepted process and one accepted report each, whatever is repeated, late or lost."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import Bench, failing, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.errors import StoreBusy, StoreRefused
from tradewind.model.moments import SECOND
from tradewind.model.rows import Batch
from tradewind.model.states import Outcome, RunState
from tradewind.scheduler.inbox import FromWorker
from tradewind.wire.messages import Accepted, Refused, Report


def one_task(bench: Bench, **more: object) -> None:
    bench.dag("d", task("a", **more), task("b", "a"))
    bench.trigger("d", "r")


@pytest.mark.spec("S172", "S185", "S354")
def test_a_start_is_accepted_once_and_its_repetition_gets_the_same_answer(bench: Bench) -> None:
    one_task(bench)
    assert isinstance(bench.ask("r.a", "n1"), Accepted)
    assert isinstance(bench.ask("r.a", "n1"), Accepted)
    assert bench.ask("r.a", "n2") == Refused(bench._op, "another process was started for this attempt", "n2")
    bench.restart()
    assert isinstance(bench.ask("r.a", "n1"), Accepted)
    assert isinstance(bench.ask("r.a", "n2"), Refused)
    assert len(bench.snapshot("r").live) == 1
    bench.check()


@pytest.mark.spec("S223", "S320")
def test_a_report_is_answered_however_often_it_comes(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    assert isinstance(bench.report("r.a"), Accepted)
    assert isinstance(bench.report("r.a", Outcome.FAILED), Refused)
    bench.restart()
    assert isinstance(bench.report("r.a"), Refused)
    assert bench.states("r")["a"] == "success"
    bench.finish("r.b")
    assert isinstance(bench.report("r.b"), Refused), "its run has ended: the host need not keep the verdict"
    bench.check()


def test_a_result_without_an_accepted_start_does_not_count(bench: Bench) -> None:
    one_task(bench)
    assert isinstance(bench.report("r.a"), Refused)
    assert bench.states("r")["a"] == "queued"
    bench.check()


@pytest.mark.spec("S14", "S224")
def test_an_event_of_an_older_attempt_is_refused(bench: Bench) -> None:
    one_task(bench, retries=1, retry_delay=0)
    old = bench.attempt("r.a")
    bench.fail("r.a")
    assert bench.attempt("r.a").fence == 2
    answer = bench.ask(old)
    assert isinstance(answer, Refused)
    assert answer.reason == "it came from attempt 1, but attempt 2 is the current one"
    assert isinstance(bench.report(old), Refused)
    assert bench.states("r")["a"] == "queued"
    bench.vanish("r.a")
    bench.finish("r.a")
    assert bench.states("r")["a"] == "success"
    bench.check()


def tries_until_the_end(bench: Bench, *, started: bool) -> list[int]:
    """Lose every attempt of `a`, before or after its start, and return the tries of these attempts."""
    tries = []
    while bench.run("r").state is RunState.RUNNING:
        tries.append(bench.attempt("r.a").try_number)
        if started:
            bench.start("r.a")
        bench.vanish("r.a")
    return tries


@pytest.mark.spec("S168")
def test_an_attempt_lost_before_its_start_is_queued_again_a_bounded_number_of_times(bench: Bench) -> None:
    one_task(bench, retries=1, retry_delay=0)
    assert tries_until_the_end(bench, started=False) == [1, 1, 1, 2, 2, 2], "requeue_limit is 2"
    reason = bench.snapshot("r").rows[0].reason
    assert reason == "it died; it was lost 3 times, which is the limit"
    bench.check()


@pytest.mark.spec("S183", "S207")
def test_an_attempt_lost_after_its_start_has_used_up_its_try(bench: Bench) -> None:
    """It waits for its retry_delay as after any failure; without tries left it has failed, and the loss is its reason."""
    one_task(bench, retries=1, retry_delay=30 * SECOND)
    bench.start("r.a")
    bench.vanish("r.a")
    row = bench.snapshot("r").rows[0]
    assert bench.states("r")["a"] == "up_for_retry"
    assert (row.try_number, row.reason, row.due_at) == (1, "it died", bench.clock.wall() + 30 * SECOND)
    bench.pass_time(30 * SECOND)
    assert bench.attempt("r.a").try_number == 2
    bench.start("r.a")
    bench.vanish("r.a")
    assert bench.states("r") == {"a": "failed", "b": "upstream_failed"}
    assert bench.snapshot("r").rows[0].reason == "it died"
    bench.check()


@pytest.mark.spec("S183")
def test_without_retries_a_lost_attempt_is_not_repeated(bench: Bench) -> None:
    """`retries=0` means at most one execution."""
    one_task(bench)
    assert tries_until_the_end(bench, started=True) == [1]
    assert bench.states("r")["a"] == "failed"
    assert [work.fence for work in bench.executor.submitted if work.task_id == "a"] == [1]
    bench.check()


@pytest.mark.parametrize(
    ("deployment", "task_says", "expected"),
    [(False, None, [1]), (True, None, [1, 1, 1]), (False, "repeat", [1, 1, 1]), (True, "fail", [1])],
)
def test_lost_attempts_are_repeated_only_where_configured(
    make_bench: MakeBench, deployment: bool, task_says: str | None, expected: list[int]
) -> None:
    """By the task, else by the deployment; at most requeue_limit times, which is 2 here."""
    bench = make_bench(repeat_lost=deployment)
    one_task(bench, lost_attempts=task_says)
    assert tries_until_the_end(bench, started=True) == expected
    bench.restart()
    bench.check()


def test_a_process_without_permission_to_start_costs_no_try(bench: Bench) -> None:
    """The start was accepted, but the process died before it knew: its worker host knows that no code of the task ran."""
    one_task(bench)
    bench.start("r.a")
    assert isinstance(bench.report("r.a", Outcome.REFUSED, reason="it ended before its start was accepted"), Accepted)
    assert bench.states("r")["a"] == "queued"
    assert (bench.attempt("r.a").try_number, bench.attempt("r.a").fence) == (1, 2)
    bench.check()


def test_reschedules_are_counted_from_zero_in_the_try_after_a_lost_one(bench: Bench) -> None:
    one_task(bench, retries=1, retry_delay=0)
    bench.finish("r.a", outcome=Outcome.RESCHEDULE, reschedule_at=bench.clock.wall())
    assert bench.attempt("r.a").reschedules == 1
    bench.vanish("r.a")  # before its start: the same try
    assert (bench.attempt("r.a").try_number, bench.attempt("r.a").reschedules) == (1, 1)
    bench.start("r.a")
    bench.vanish("r.a")
    assert (bench.attempt("r.a").try_number, bench.attempt("r.a").reschedules) == (2, 0)
    bench.check()


# --- reports of a process that is not the one whose start was accepted ----------------------------------------------------


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.LOST, Outcome.FAILED, Outcome.SUCCESS])
def test_a_second_process_cannot_report_under_the_same_fence(bench: Bench, outcome: Outcome) -> None:
    """The order was delivered twice. The process that was refused ends, and the other one continues."""
    one_task(bench)
    assert isinstance(bench.ask("r.a", "n1"), Accepted)
    second = bench.attempt("r.a")
    assert isinstance(bench.ask(second, "n2"), Refused)
    answer = bench.report(second, outcome, nonce="n2")
    assert isinstance(answer, Refused)
    assert (answer.reason, answer.nonce) == ("another process was started for this attempt", "n2")
    bench.vanish(second, nonce="n2")
    assert bench.states("r")["a"] == "running"
    bench.restart()
    assert isinstance(bench.report(second, outcome, nonce="n2"), Refused)
    bench.vanish(second, nonce="n2")
    assert bench.states("r")["a"] == "running"
    assert isinstance(bench.report(second, nonce="n1"), Accepted)
    assert bench.states("r")["a"] == "success"
    assert isinstance(bench.report(second, nonce="n1"), Refused), "said again"
    bench.check()


def test_a_failed_fork_of_a_second_process_does_not_end_the_first(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    assert isinstance(bench.report("r.a", Outcome.REFUSED, reason="no process could be made", nonce=""), Refused)
    bench.vanish("r.a", nonce="", host="host")
    assert bench.states("r")["a"] == "running"
    bench.check()


def test_a_cleared_attempt_ends_with_its_own_process(bench: Bench) -> None:
    """Not with a second process that was refused: the first one still lives."""
    one_task(bench)
    bench.ask("r.a", "n1")
    cleared = bench.attempt("r.a")
    bench.clear("d", "r", "a")
    assert bench.states("r")["a"] == "restarting"
    bench.vanish(cleared, nonce="n2")
    assert isinstance(bench.report(cleared, Outcome.REFUSED, nonce="n2"), Refused)
    assert bench.states("r")["a"] == "restarting"
    bench.vanish(cleared, nonce="n1")
    assert bench.states("r")["a"] == "queued"
    bench.check()


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [(Outcome.SUCCESS, True), (Outcome.FAILED, True), (Outcome.LOST, False), (Outcome.REFUSED, False)],
)
def test_a_report_of_an_older_release_without_nonce_counts(bench: Bench, outcome: Outcome, counts: bool) -> None:
    """It counts where only the process whose start was accepted can have sent it."""
    one_task(bench)
    bench.start("r.a")
    answer = bench.report("r.a", outcome, nonce="", host="")
    assert isinstance(answer, Accepted if counts else Refused)
    assert (bench.states("r")["a"] != "running") is counts
    bench.check()


def test_reconciliation_names_the_process_of_an_attempt(bench: Bench) -> None:
    one_task(bench)
    bench.ask("r.a", "n1")
    bench.scheduler.hosts.reconcile()
    assert bench.executor.asked_for == {bench.attempt("r.a").key: "n1"}


# --- who took it away -----------------------------------------------------------------------------------------------------


def test_the_reason_of_a_loss_names_how_the_worker_host_ended(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    bench.restart()  # what a host says of the one before it is said to every scheduler
    bench.scheduler.hosts.note_process("next", "host", "the worker host that ran it (process 7) was killed")
    bench.vanish("r.a", host="next")
    assert bench.snapshot("r").rows[0].reason == "the worker host that ran it (process 7) was killed"
    bench.check()


def test_the_reason_of_a_loss_on_an_unknown_host(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    bench.scheduler.hosts.note_process("third", "second", "it was stopped")
    bench.vanish("r.a", host="third")
    assert bench.snapshot("r").rows[0].reason == "the worker host that ran it has ended"
    bench.check()


def test_a_vanished_attempt_that_reports_is_refused_also_after_a_restart(bench: Bench) -> None:
    """Its accepted nonce is known, but its attempt has ended."""
    bench.pool("p", 1)
    one_task(bench, pool="p", lost_attempts="repeat")
    old = bench.attempt("r.a")
    bench.start("r.a")
    bench.command("set_pool", name="p", slots=0)
    bench.vanish("r.a")
    assert bench.states("r")["a"] == "scheduled"
    assert isinstance(bench.ask(old), Refused)
    bench.restart()
    assert isinstance(bench.ask(old), Refused)
    assert bench.snapshot("r").live == []
    bench.check()


@pytest.mark.spec("S168", "S222")
def test_an_attempt_that_the_executor_refuses_is_submitted_again(bench: Bench) -> None:
    one_task(bench)
    assert isinstance(bench.report("r.a", Outcome.REFUSED, reason="no process"), Accepted)
    assert bench.states("r")["a"] == "queued"
    assert [w.fence for w in bench.executor.submitted] == [1, 2]
    bench.check()


@pytest.mark.spec("S311")
def test_an_attempt_is_submitted_once(bench: Bench) -> None:
    one_task(bench)
    bench.process()
    bench.scheduler.readmit()
    bench.process()
    assert len(bench.executor.submitted) == 1


@pytest.mark.spec("S224")
def test_airflow_5071_a_late_report_of_one_call_does_not_fail_the_next_one(bench: Bench) -> None:
    """A sensor is rescheduled at once; the late loss of its first call arrives while the second one is queued."""
    one_task(bench, retries=0)
    first = bench.attempt("r.a")
    bench.start("r.a")
    bench.report("r.a", Outcome.RESCHEDULE, reschedule_at=bench.clock.wall())
    assert bench.states("r")["a"] == "queued"
    for outcome in (Outcome.SUCCESS, Outcome.FAILED):
        assert isinstance(bench.report(first, outcome), Refused)
    assert bench.states("r")["a"] == "queued"
    bench.finish("r.a")
    assert bench.states("r")["a"] == "success"
    bench.check()


# --- hosts --------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S164", "S230", "S352")
def test_a_connecting_host_gets_the_attempts_it_lacks(bench: Bench) -> None:
    bench.dag("d", *(task(name) for name in ("held", "queued", "running", "cleared")))
    bench.trigger("d", "r")
    bench.start("r.held", "r.running", "r.cleared")
    bench.clear("d", "r", "cleared")
    keys = {name: bench.attempt(f"r.{name}").key for name in ("held", "queued", "running", "cleared")}
    bench.executor.submitted.clear()
    bench.executor.cancelled.clear()
    stranger = (99, 0, 1)
    bench.scheduler.hosts.register("host", frozenset({keys["held"], keys["cleared"], stranger}))
    bench.process()
    assert [w.key for w in bench.executor.submitted] == [keys["queued"]]
    assert sorted(bench.executor.cancelled) == [keys["cleared"], stranger]
    assert bench.executor.asked == [keys["running"]], "asked for, for its verdict may be on the way"
    assert bench.states("r")["running"] == "running"
    bench.check()


def test_a_report_after_the_registration_counts(bench: Bench) -> None:
    """The host registers only live processes; the report of one that ended meanwhile follows."""
    one_task(bench)
    bench.start("r.a")
    bench.restart()
    bench.scheduler.hosts.register("host", frozenset())
    assert isinstance(bench.report("r.a"), Accepted)
    assert bench.states("r")["a"] == "success"
    assert [w.fence for w in bench.executor.submitted if w.task_id == "a"] == [1]
    bench.check()


@pytest.mark.spec("S164", "S230")
def test_a_queued_attempt_that_never_arrived_is_submitted_again(bench: Bench) -> None:
    one_task(bench)
    bench.executor.submitted.clear()
    assert bench.scheduler.hosts.resubmit_old(bench.clock.wall() - 1) == 0
    assert bench.scheduler.hosts.resubmit_old(bench.clock.wall()) == 1
    bench.finish("r.a")
    assert bench.scheduler.hosts.resubmit_old(bench.clock.wall()) == 1, "b"
    bench.check()


def test_running_attempts_are_reconciled_with_the_hosts(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.scheduler.hosts.reconcile()
    assert bench.executor.asked == [bench.attempt("r.a").key]


def test_while_the_store_fails_a_host_gets_no_messages(make_bench: MakeBench) -> None:
    """Memory may hold changes that were never committed."""
    bench = make_bench()
    one_task(bench)
    bench.start("r.a")
    with failing(bench.watched, lambda batch: StoreBusy("held")):
        assert bench.report("r.a") is None
        sent = len(bench.executor.submitted)
        bench.scheduler.hosts.register("host", frozenset({bench.attempt("r.a").key}))
        bench.process()
        assert len(bench.executor.submitted) == sent
        assert bench.executor.cancelled == []
    assert bench.scheduler.recover()
    bench.process()
    assert bench.states("r") == {"a": "success", "b": "queued"}
    assert bench.executor.cancelled == []
    bench.work()
    bench.check()


# --- poison -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [OverflowError("Python int too large to convert to SQLite INTEGER"), StoreRefused("CHECK constraint failed")],
    ids=type,
)
def test_a_value_that_cannot_be_written_affects_only_its_run(make_bench: MakeBench, error: Exception) -> None:
    """A moment beyond 64 bits: SQLite cannot hold it. The others of the same batch are written."""
    bench = make_bench()
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "bad")
    bench.trigger("d", "good")
    bench.start("bad.a", "good.a")

    def write(batch: Batch) -> None:
        if any(row.row.due_at > 2**63 for run in batch.runs for row in run.tasks):
            raise error

    bench.watched.faults.append(write)
    for name, report in (
        ("bad", Report(501, Outcome.RESCHEDULE, reschedule_at=2**64 - 1)),
        ("good", Report(502, Outcome.SUCCESS)),
    ):
        bench.scheduler.push(FromWorker(bench.attempt(f"{name}.a").key, "host", report))
    bench.process()
    answered = [(type(answer.body), answer.body.op) for answer in bench.executor.answers if answer.body.op in (501, 502)]
    assert answered == [(Accepted, 502)]
    assert bench.states("good") == {"a": "success", "b": "queued"}
    assert bench.states("bad")["a"] == "running"
    assert "quarantined" in bench.why("bad.b")
    bench.pass_time(31 * SECOND)
    assert isinstance(bench.report("bad.a"), Accepted)
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_a_sensor_gets_its_number_of_reschedules_also_after_a_restart(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a", retries=1))
    bench.trigger("d", "r")
    bench.process()
    received = []
    for _ in range(3):
        received.append(bench.executor.submitted[-1].reschedules)
        bench.start("r.a")
        bench.finish("r.a", outcome=Outcome.RESCHEDULE, reschedule_at=bench.clock.wall() + 1)
        bench.restart()
        bench.next_timer()
    assert [*received, bench.executor.submitted[-1].reschedules] == [0, 1, 2, 3]
    bench.start("r.a")
    bench.fail("r.a")
    bench.next_timer()
    assert bench.executor.submitted[-1].reschedules == 0
    assert bench.executor.submitted[-1].try_number == 2


@pytest.mark.parametrize(
    ("worker_says", "expected"),
    [
        (5 * SECOND, 5 * SECOND),
        (0, 3600 * SECOND),
        (-7 * SECOND, 2 * SECOND),
        (9000 * SECOND, 3600 * SECOND),
    ],
    ids=["it waited for a scheduler", "the worker does not say", "a clock that is slow", "a clock that is fast"],
)
def test_the_end_reported_by_a_worker_is_limited_to_the_known_times(bench: Bench, worker_says: int, expected: int) -> None:
    one_task(bench)
    begin = bench.clock.wall()
    bench.clock.advance(2 * SECOND)
    bench.start("r.a")
    bench.clock.advance(3598 * SECOND)
    bench.report("r.a", ended=begin + worker_says if worker_says else 0)
    (row,) = [row for row in bench.snapshot("r").rows if row.slot == 0]
    assert row.ended_at - begin == expected
    bench.check()
