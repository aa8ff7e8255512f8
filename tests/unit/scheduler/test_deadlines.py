"""Deadlines that come while the scheduler runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.test_callback_dispatcher import Host, call_of
from tradewind.model.definition import DeadlineDefinition
from tradewind.model.errors import NotFound, Stale
from tradewind.model.moments import SECOND
from tradewind.model.rows import DEADLINE, NewRun
from tradewind.model.states import RunType
from tradewind.scheduler.callbacks import missed_deadlines
from tradewind.scheduler.server import SchedulerServer

ALERT = DeadlineDefinition("queued_at", 10 * SECOND, name="slow", callback="page")


@pytest.fixture
def host(bench: Bench) -> Host:
    return Host(bench)


def scheduled(bench: Bench, *tasks: Any, **fields: Any) -> None:
    """Return a scheduled run that is due now."""
    bench.dag("d", *tasks, **fields)
    version = bench.store.need_dag("d").version
    bench.store.create_run(NewRun("d", "r1", RunType.SCHEDULED, version, NOW, NOW, NOW, NOW, NOW, "test"))
    bench.scheduler.schedules.refresh("d")
    bench.process()


def test_a_missed_deadline_is_reported_once(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a"), deadlines=(ALERT,))
    bench.trigger("d", "r1")
    assert host.turn() == []
    assert bench.scheduler.callbacks.due() == NOW + 10 * SECOND
    bench.clock.advance(10 * SECOND)
    assert host.turn() == [".deadline[0]"]
    (miss,) = bench.store.deadline_misses("d")
    assert (miss.run_id, miss.task_id, miss.label, miss.due_at) == ("r1", None, "slow", NOW + 10 * SECOND)
    call = call_of(host.orders[0])
    assert (call.due, call.run_state, call.of_run) == (NOW + 10 * SECOND, "running", True)
    host.answer(host.orders[0])
    host.turn()
    assert bench.scheduler.callbacks.due() is None


def test_a_deadline_removed_from_the_dag_is_not_reported(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a"), deadlines=(ALERT,))
    bench.trigger("d", "r1")
    bench.dag("d", task("a"))
    bench.clock.advance(10 * SECOND)
    assert host.turn() == []
    assert (bench.store.deadline_misses("d"), bench.store.due_outbox_items(bench.clock.wall(), only=DEADLINE)) == ([], [])


def test_the_deadline_of_a_new_run_is_noticed_at_once(bench: Bench, host: Host) -> None:
    """Otherwise one before the next check of the safety net would be noticed late."""
    bench.dag("d", task("a"), deadlines=(ALERT,))
    host.turn()
    assert bench.scheduler.callbacks.due() is None
    bench.trigger("d", "r1")
    assert bench.scheduler.callbacks.due() == 0
    host.turn()
    assert bench.scheduler.callbacks.due() == NOW + 10 * SECOND


def test_a_superseded_scheduler_reports_no_missed_deadline(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a"), deadlines=(ALERT,))
    bench.trigger("d", "r1")
    bench.clock.advance(10 * SECOND)
    bench.store.begin_epoch("another", 1, "boot", bench.clock.wall())
    with pytest.raises(Stale):
        host.turn()
    assert bench.store.deadline_misses() == []
    bench.scheduler.callbacks.wake()
    SchedulerServer._run_callbacks(cast("SchedulerServer", SimpleNamespace(scheduler=bench.scheduler, clock=bench.clock)))
    assert bench.scheduler.superseded, "the server stops it"
    assert bench.store.due_outbox_items(bench.clock.wall(), only=DEADLINE)


def test_a_run_that_succeeds_in_time_is_not_reported(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a"), deadlines=(ALERT,))
    bench.trigger("d", "r1")
    bench.finish("r1.a")
    bench.clock.advance(20 * SECOND)
    assert host.turn() == []
    assert bench.store.deadline_misses() == []


def test_a_missed_deadline_is_noticed_without_a_worker_and_after_a_restart(bench: Bench) -> None:
    bench.dag("d", task("a"), deadlines=(ALERT,))
    bench.trigger("d", "r1")
    bench.clock.advance(20 * SECOND)
    bench.restart()
    bench.scheduler.callbacks.run_once(bench.clock.wall())
    assert [miss.name for miss in bench.store.deadline_misses()] == ["alert/0"]


@pytest.mark.spec("S125", "S260")
def test_missed_slas_are_recorded_and_reported_once(bench: Bench, host: Host) -> None:
    sla = 5 * SECOND
    scheduled(
        bench,
        task("a", sla=sla, email=("a@b.c", "d@e.f")),
        task("b", sla=sla, email=("a@b.c",)),
        task("c"),
        slas=(sla,),
        callbacks={"sla_miss_callback": ("tell",)},
    )
    bench.finish("r1.a")
    bench.clock.advance(sla)
    assert host.turn() == [".sla_miss_callback[0]", ".email[0]"]
    first, mail = map(call_of, host.orders)
    assert (first.late, first.blocking) == (("b",), (("b", "queued"), ("c", "queued")))
    assert mail.to == ("a@b.c",)
    assert [(miss.task_id, miss.name) for miss in bench.store.deadline_misses()] == [("b", f"sla/{sla}")]
    bench.clear("d", "r1", "a")
    bench.finish("r1.a", "r1.b", "r1.c")
    assert host.turn() == []


def test_a_run_cleared_after_its_sla_is_not_late_again(bench: Bench, host: Host) -> None:
    sla = 5 * SECOND
    scheduled(bench, task("a", sla=sla), slas=(sla,), callbacks={"sla_miss_callback": ("tell",)})
    bench.finish("r1.a")
    bench.clock.advance(sla)
    assert host.turn() == []
    bench.clear("d", "r1", "a")
    assert host.turn() == []
    assert bench.store.deadline_misses() == []


def test_a_manual_run_has_no_sla(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a", sla=SECOND), slas=(SECOND,), callbacks={"sla_miss_callback": ("tell",)})
    bench.trigger("d", "r1")
    bench.clock.advance(SECOND)
    assert host.turn() == []


def test_many_deadlines_are_handled_in_bounded_steps(bench: Bench, host: Host) -> None:
    bench.dag("d", task("a"), deadlines=(ALERT,) * 60)
    bench.trigger("d", "r1")
    bench.clock.advance(10 * SECOND)
    host.turn()
    assert len(bench.store.deadline_misses()) == 50
    assert bench.scheduler.callbacks.due() == 0
    host.turn()
    assert len(bench.store.deadline_misses()) == 60


def test_two_schedulers_report_a_missed_deadline_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have read that it is due, before either has written."""
    bench.dag("d", task("a"), deadlines=(ALERT,))
    bench.trigger("d", "r1")
    now = NOW + 10 * SECOND
    due = bench.store.due_outbox_items(now, 10, only=DEADLINE)
    monkeypatch.setattr(bench.store, "due_outbox_items", lambda *args, **more: due)
    for _ in range(2):
        missed_deadlines.record_missed(bench.store, now, bench.scheduler.epoch)
    assert len(bench.store.deadline_misses("d")) == 1


@pytest.mark.parametrize("command", ["retry_callbacks", "drop_callbacks"])
def test_deadlines_are_not_listed_as_callbacks(bench: Bench, command: str) -> None:
    """They share the numbers of callbacks; a wrong number must not retry or delete one. Found by the simulation (seed 643)."""
    bench.dag("d", task("a"), deadlines=(ALERT,))
    bench.trigger("d", "r1")
    (deadline,) = bench.store.due_outbox_items(NOW + 10 * SECOND, only=DEADLINE)
    with pytest.raises(NotFound, match="there is no callback"):
        bench.command(command, ids=[deadline.id])
    assert bench.store.due_outbox_items(NOW + 10 * SECOND, only=DEADLINE) == [deadline]
