"""Metrics of the scheduler, computed from what it has committed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.unit.scheduler.bench import Bench, task
from tradewind.metrics.config import MetricsConfig
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.meter import Meter
from tradewind.metrics.sender import Sender
from tradewind.model.definition import DeadlineDefinition
from tradewind.model.moments import SECOND
from tradewind.model.rows import JournalEntry
from tradewind.model.states import Outcome, TaskState
from tradewind.model.waits import TriggerEnd
from tradewind.scheduler.callbacks import missed_deadlines
from tradewind.scheduler.duties.metrics import SendMetrics
from tradewind.scheduler.metrics.run_metrics import RunMetrics
from tradewind.scheduler.metrics.scheduler_metrics import SchedulerMetrics


class Kept(Meter):
    """A meter that keeps the measurements."""

    def __init__(self) -> None:
        super().__init__(MetricsConfig("127.0.0.1", 8125), Sender(None))
        self.found: list[Measurement] = []

    def add(self, measurements: Iterable[Measurement]) -> None:
        self.found += measurements

    def take(self) -> list[tuple[str, float, dict[str, object]]]:
        """Name, value and tags of the measurements since the last call."""
        found, self.found = self.found, []
        return [(one.name, one.value, dict(one.tags)) for one in found if one.name != "scheduler.scheduler_loop_duration"]

    def names(self) -> list[str]:
        return [name for name, _, _ in self.take()]


@pytest.fixture
def meter(bench: Bench) -> Kept:
    found = Kept()
    bench.scheduler.metrics = SchedulerMetrics(found, "vm-1")
    return found


T = {"dag_id": "d", "task_id": "t"}
RUN = {"dag_id": "d", "run_type": "manual"}


def test_a_task_that_succeeds(bench: Bench, meter: Kept) -> None:
    bench.dag("d", task("t", operator="BashOperator", queue="fast"))
    bench.trigger("d", "r")
    assert ("task_instance_created", 1, RUN | {"task_type": "BashOperator"}) in meter.take()
    bench.clock.advance(2 * SECOND)
    bench.start("r.t")
    assert meter.take() == [("ti.start", 1, T), ("task.queued_duration", 2000, T | {"queue": "fast"})]
    bench.clock.advance(3 * SECOND)
    bench.report("r.t", Outcome.SUCCESS)
    assert meter.take() == [
        ("ti.finish", 1, T | {"state": "success"}),
        ("operator_successes", 1, T | {"operator_name": "BashOperator"}),
        ("ti_successes", 1, T),
        ("task.duration", 3000, T),
        ("dagrun.duration.success", 5000, RUN),
    ]


def test_each_failed_try_counts(bench: Bench, meter: Kept) -> None:
    bench.dag("d", task("t", retries=1, retry_delay=SECOND))
    bench.trigger("d", "r")
    meter.take()
    bench.finish("r.t", outcome=Outcome.FAILED)
    first = meter.take()
    assert ("ti.finish", 1, T | {"state": "up_for_retry"}) in first
    assert ("ti_failures", 1, T) in first
    bench.clock.advance(2 * SECOND)
    bench.process()
    assert "task.scheduled_duration" not in meter.names(), "only the first try"
    bench.finish("r.t", outcome=Outcome.FAILED)
    second = meter.take()
    assert ("ti.finish", 1, T | {"state": "failed"}) in second
    assert [name for name, _, _ in second].count("operator_failures") == 1
    assert ("dagrun.duration.failed", 2000, RUN) in second
    assert "task.queued_duration" not in [name for name, _, _ in second]


@pytest.mark.parametrize(("outcome", "state"), [(Outcome.SKIPPED, "skipped"), (Outcome.RESCHEDULE, "up_for_reschedule")])
def test_ends_that_are_neither_success_nor_failure(bench: Bench, meter: Kept, outcome: Outcome, state: str) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r")
    meter.take()
    bench.finish("r.t", outcome=outcome)
    found = meter.take()
    assert ("ti.finish", 1, T | {"state": state}) in found
    assert not {"ti_successes", "ti_failures"} & {name for name, _, _ in found}


def test_a_task_without_a_process_does_not_start(bench: Bench, meter: Kept) -> None:
    """As in Airflow, where the scheduler sets an EmptyOperator to success."""
    bench.dag("d", task("t", empty=True))
    bench.trigger("d", "r")
    assert not {name for name in meter.names() if name.startswith("ti")}


def test_time_in_the_state_scheduled(bench: Bench, meter: Kept) -> None:
    bench.pool("p", 1)
    bench.dag("d", task("t", pool="p"), task("u", pool="p"))
    bench.trigger("d", "r")
    assert meter.names().count("task.scheduled_duration") == 1
    bench.clock.advance(7 * SECOND)
    bench.finish("r.t")
    assert ("task.scheduled_duration", 7000, {"dag_id": "d", "task_id": "u", "queue": "default"}) in meter.take()


def test_gauges(bench: Bench, meter: Kept) -> None:
    bench.pool("p q", 3)
    bench.dag("d", task("a", pool="p q", pool_slots=2), task("b", pool="p q", pool_slots=2), task("c"))
    bench.trigger("d", "r")
    bench.start("r.c")
    duty = SendMetrics(bench.scheduler, 5 * SECOND, 30 * SECOND)
    meter.take()
    duty.run_once()
    found = {(name, *map(str, tags.values())): value for name, value, tags in meter.take()}
    assert found["scheduler_heartbeat",] == 1
    assert found["triggerer_heartbeat",] == 1
    assert found["triggers.running", "vm-1"] == 0
    assert found["dagbag_size",] == 1
    assert found["scheduler.dagruns.running",] == 1
    assert found["scheduler.tasks.executable",] == 2
    assert found["scheduler.tasks.starving",] == 1
    assert found["executor.queued_tasks", "queued", "StubExecutor"] == 1
    assert found["executor.running_tasks", "running", "StubExecutor"] == 1
    assert ("executor.open_slots", "open", "StubExecutor") not in found, "unlimited"
    pool = {name.removeprefix("pool."): value for (name, *rest), value in found.items() if rest == ["p_q"]}
    assert pool == {
        "open_slots": 1,
        "queued_slots": 2,
        "running_slots": 0,
        "deferred_slots": 0,
        "scheduled_slots": 2,
        "starving_tasks": 1,
    }
    tasks = {key: value for key, value in found.items() if key[0].startswith("ti.")}
    assert tasks == {
        ("ti.queued", "default", "d", "a"): 1,
        ("ti.scheduled", "default", "d", "b"): 1,
        ("ti.running", "default", "d", "c"): 1,
    }

    bench.report("r.c", Outcome.SUCCESS)
    duty.run_once()
    assert not [name for name in meter.names() if name.startswith("ti.running")], "their interval is not over"
    bench.clock.advance(30 * SECOND)
    duty.run_once()
    again = meter.take()
    assert ("ti.running", 0, {"queue": "default", "dag_id": "d", "task_id": "c"}) in again, "the last value is not kept"
    assert ("scheduler.tasks.executable", 0, {}) in again


def test_nothing_is_sent_while_metrics_are_off(bench: Bench) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r")
    bench.finish("r.t")
    assert SendMetrics(bench.scheduler, SECOND, SECOND).run_once() is False


def test_an_error_in_the_metrics_does_not_stop_the_run(bench: Bench, monkeypatch: pytest.MonkeyPatch, meter: Kept) -> None:
    def fail(_measurements: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(meter, "add", fail)
    bench.dag("d", task("t"))
    bench.trigger("d", "r")
    bench.finish("r.t")
    assert bench.states("r") == {"t": "success"}


def test_each_batch_has_a_duration(bench: Bench, meter: Kept) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r")
    assert "scheduler.scheduler_loop_duration" in [one.name for one in meter.found]


@pytest.mark.parametrize(("error", "name"), [(None, "triggers.succeeded"), ("it broke", "triggers.failed")])
def test_triggers(bench: Bench, meter: Kept, error: str | None, name: str) -> None:
    assert bench.scheduler.metrics is not None
    bench.scheduler.metrics.trigger_ended(TriggerEnd(error=error))
    assert meter.take() == [(name, 1, {})]


def test_a_lost_attempt(bench: Bench, meter: Kept) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r")
    bench.start("r.t")
    meter.take()
    bench.vanish("r.t")
    names = meter.names()
    assert {"scheduler.tasks.killed_externally", "task_instances_without_heartbeats_killed", "ti_failures"} <= set(names)
    assert "ti.finish" not in names, "its process has reported nothing"


def test_deadlines(bench: Bench, meter: Kept) -> None:
    assert bench.scheduler.metrics is not None
    bench.dag("d", task("t"), deadlines=(DeadlineDefinition("queued_at", SECOND, name="slow", callback="page"),))
    bench.trigger("d", "r")
    assert ("deadline_alerts.deadline_created", 1, {"dag_id": "d"}) in meter.take()
    bench.clock.advance(2 * SECOND)
    missed_deadlines.record_missed(
        bench.store, bench.clock.wall(), bench.scheduler.epoch, bench.scheduler.metrics.deadline_missed
    )
    assert meter.take() == [("deadline_alerts.deadline_missed", 1, {"dag_id": "d", "dagrun_id": "r"})]


def test_a_failed_callback_names_its_dag(bench: Bench, meter: Kept) -> None:
    assert bench.scheduler.metrics is not None
    bench.dag("d", task("t"))
    bench.trigger("d", "r")
    run = bench.store.need_run("d", "r")
    bench.store.add_outbox_item("callback", "one", b"", bench.clock.wall(), run=run.id)
    (item,) = bench.store.due_outbox_items(bench.clock.wall(), 10)
    meter.take()
    bench.scheduler.metrics.callback_failed(bench.store, item.id)
    bench.scheduler.metrics.callback_failed(bench.store, 4711)
    assert meter.take() == [("dag.callback_exceptions", 1, {"dag_id": "d"}), ("dag.callback_exceptions", 1, {})]


def test_an_operator_of_a_decorator_has_the_name_of_airflows_class(bench: Bench, meter: Kept) -> None:
    bench.dag("d", task("t", operator="@task.short_circuit"))
    bench.trigger("d", "r")
    bench.finish("r.t")
    assert ("operator_successes", 1, T | {"operator_name": "_ShortCircuitDecoratedOperator"}) in meter.take()


def test_runs_that_are_gone_are_forgotten(bench: Bench, meter: Kept) -> None:
    bench.pool("p", 1)
    bench.dag("d", task("t", pool="p"), task("u", pool="p"))
    bench.trigger("d", "r")
    run = bench.store.need_run("d", "r").id
    metrics = RunMetrics()
    active_run = bench.scheduler.active_runs_by_id[run]
    active_run.journal.append(JournalEntry(1, 1, TaskState.NONE.code, TaskState.SCHEDULED.code, bench.clock.wall(), ""))
    metrics.of_batch(active_run, bench.clock.wall())
    metrics.keep_only({})
    active_run.journal[:] = [JournalEntry(1, 1, TaskState.SCHEDULED.code, TaskState.QUEUED.code, bench.clock.wall(), "")]
    assert [one.name for one in metrics.of_batch(active_run, bench.clock.wall())] == []
