"""The log of each attempt ends with the decision on its task, in Airflow's words, and only after the commit."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import Bench, failing, journal, task
from tradewind.model.errors import StoreBusy
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, iso
from tradewind.model.rows import Batch
from tradewind.model.states import Outcome
from tradewind.model.wait_plans import MomentPlan, WaitPlan
from tradewind.model.waits import Deferral, MomentWait
from tradewind.wire.messages import Accepted, LastLine, Refused


def one_task(bench: Bench, **more: object) -> None:
    bench.dag("d", task("a", **more), task("b", "a"))
    bench.trigger("d", "r")


def line_of(answer: Accepted | Refused | None) -> LastLine:
    assert answer is not None
    assert answer.last is not None
    return answer.last


@pytest.mark.spec("S474")
@pytest.mark.parametrize(
    ("outcome", "reason", "level", "text"),
    [
        (Outcome.SUCCESS, None, "info", "Marking task as SUCCESS."),
        (Outcome.SKIPPED, "no data today", "info", "Marking task as SKIPPED: no data today."),
        (Outcome.FAILED, "ValueError: x", "error", "Marking task as FAILED: ValueError: x."),
    ],
)
def test_the_answer_to_a_report_has_the_decision(
    bench: Bench, outcome: Outcome, reason: str | None, level: str, text: str
) -> None:
    one_task(bench)
    bench.start("r.a")
    work = bench.attempt("r.a")
    assert line_of(bench.report("r.a", outcome, reason=reason)) == LastLine(level, text, work.log)


@pytest.mark.spec("S474")
def test_the_last_log_line_has_the_retry_moment_or_the_reason(bench: Bench) -> None:
    one_task(bench, retries=1, retry_delay=5 * MINUTE)
    bench.start("r.a")
    due = bench.clock.wall() + 5 * MINUTE
    first = line_of(bench.report("r.a", Outcome.FAILED, reason="OSError: no route"))
    assert (first.level, first.text) == (
        "warning",
        f"Marking task as UP_FOR_RETRY: OSError: no route. Try 2 of 2 begins at {iso(due)} at the earliest.",
    )
    bench.next_timer()
    bench.start("r.a")
    last = line_of(bench.report("r.a", Outcome.FAILED, reason="OSError: no route"))
    assert (last.level, last.text) == ("error", "All retries failed; marking task as FAILED: OSError: no route.")


def test_the_log_line_follows_the_commit(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")

    def busy(batch: Batch) -> StoreBusy | None:
        return StoreBusy("held") if any(run.ends for run in batch.runs) else None

    with failing(bench.watched, busy):
        assert bench.report("r.a") is None


def test_a_report_accepted_by_an_earlier_scheduler_is_answered_with_the_state(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    bench.report("r.a")
    bench.restart()
    again = bench.report("r.a")
    assert isinstance(again, Refused)
    assert line_of(again).text == "Marking task as SUCCESS."


def test_the_log_of_a_deferred_task_names_the_wait_and_its_failure(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    until = bench.clock.wall() + 3600 * SECOND
    wait = Deferral(MomentWait(until), timeout_at=bench.clock.wall() + MINUTE)
    work = bench.attempt("r.a")
    received = line_of(bench.report("r.a", Outcome.DEFERRED, deferral=wait))
    assert received.text == f"Marking task as DEFERRED: it waits for {iso(until)}."
    bench.next_timer()
    assert bench.states("r")["a"] == "failed"
    (end,) = bench.executor.ended_logs
    assert (end.level, end.log) == ("error", work.log)
    assert end.text.startswith("Marking task as FAILED: ")


def test_the_log_of_an_attempt_that_vanished_is_ended_by_the_scheduler(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    work = bench.attempt("r.a")
    bench.vanish("r.a")
    assert [(line.log, "it died" in line.text) for line in bench.executor.ended_logs] == [(work.log, True)]


@pytest.mark.spec("S121")
def test_the_journal_names_the_wait_of_a_deferred_task(bench: Bench) -> None:
    one_task(bench)
    bench.start("r.a")
    until = bench.clock.wall() + MINUTE
    bench.report("r.a", Outcome.DEFERRED, deferral=Deferral(MomentWait(until)))
    bench.next_timer()
    assert bench.states("r")["a"] == "success", "the wait is over, and its row is gone"
    steps = [entry for _, entry in journal(bench.watched.inner, bench.run("r").id) if entry.slot == 0]
    assert [(entry.cause, entry.at) for entry in steps if "waits for" in entry.cause] == [
        (f"it waits for {iso(until)}", until - MINUTE)
    ]
    assert steps[-1].at == until


def test_the_journal_names_the_wait_of_a_task_without_attempts(bench: Bench) -> None:
    bench.dag("d", task("a", wait=WaitPlan(MomentPlan("start", HOUR), timeout=DAY)))
    bench.trigger("d", "r")
    (step,) = [entry for _, entry in journal(bench.watched.inner, bench.run("r").id) if entry.slot == 0]
    assert step.cause.endswith(f": {iso(bench.clock.wall() + HOUR)}")
