"""Future and missed deadlines."""

from __future__ import annotations

from typing import Any

from tests.unit.store.suite.build import NOW, S, definition, finish, parsed, step, with_run
from tradewind.model.definition import DeadlineDefinition
from tradewind.model.rows import DEADLINE, DeadlineMiss
from tradewind.model.states import RunState, RunType
from tradewind.store.port import Store

ALERT = DeadlineDefinition("queued_at", 50)


def watched(store: Store, **fields: Any) -> None:
    store.register_file(parsed(definition("d", **fields)), paused_at_creation=False)


def to_come(store: Store, at: int = NOW * 2) -> list[tuple[str, bytes, int]]:
    return [(item.identity, item.payload, item.due_at) for item in store.due_outbox_items(at, only=DEADLINE)]


def test_a_run_is_created_with_its_deadlines(store: Store) -> None:
    watched(store, slas=(7,), deadlines=(ALERT,))
    run = with_run(store, run_type=RunType.SCHEDULED, day=0)
    assert to_come(store) == [
        (f"deadline/{run.id}/0/sla/7", b"sla/7", NOW + 7),
        (f"deadline/{run.id}/0/alert/0", b"alert/0", NOW + 50),
    ]
    assert store.next_outbox_due(0) == NOW + 7
    assert store.due_outbox_items(NOW * 2, without=DEADLINE) == []
    assert store.outbox_items() == []


def test_a_run_of_a_dag_without_deadlines_has_none(store: Store) -> None:
    watched(store)
    with_run(store)
    assert to_come(store) == []


def test_a_cleared_run_gets_its_deadlines_again(store: Store) -> None:
    watched(store, deadlines=(ALERT,))
    run = with_run(store)
    step(store, run.id, S.SUCCESS)
    finish(store, run.id, RunState.FAILED, NOW + 5)
    store.clear(run.id, [0], "ada", NOW + 100)
    assert to_come(store) == [(f"deadline/{run.id}/1/alert/0", b"alert/0", NOW + 150)]


def test_a_cleared_run_of_a_dag_that_has_no_deadlines_any_more_has_none(store: Store) -> None:
    watched(store, deadlines=(ALERT,))
    run = with_run(store)
    watched(store)
    step(store, run.id, S.SUCCESS, version=store.need_dag("d").version)
    finish(store, run.id, RunState.FAILED, NOW + 5)
    store.clear(run.id, [0], "ada", NOW + 100)
    assert to_come(store) == []


def test_an_average_counts_the_latest_runs_that_ended(store: Store) -> None:
    watched(store, deadlines=(DeadlineDefinition("average", 1, max_runs=2, min_runs=2),))
    for day, took in enumerate((1000, 10, 20)):
        run = with_run(store, f"r{day}", day=day)
        step(store, run.id, S.SUCCESS)
        finish(store, run.id, RunState.SUCCESS, NOW + took)
    last = with_run(store, "r9", day=9)
    assert (f"deadline/{last.id}/0/alert/0", b"alert/0", NOW + 16) in to_come(store)


def test_a_missed_deadline_is_recorded_once_and_deleted_with_its_run(store: Store) -> None:
    watched(store)
    run, other = with_run(store), with_run(store, "r2")
    miss = DeadlineMiss(run.id, "d", run.run_id, "t0", "sla/7", None, NOW, NOW + 1)
    alert = DeadlineMiss(run.id, "d", run.run_id, None, "alert/0", "slow", NOW, NOW + 1)
    assert [store.record_deadline_miss(one) for one in (miss, alert, miss, alert, miss._replace(due_at=NOW + 9))] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert store.deadline_misses() == [miss._replace(due_at=NOW + 9), alert, miss]
    assert store.deadline_misses("d", run.id, at_most=1) == [miss._replace(due_at=NOW + 9)]
    assert store.deadline_misses(run=other.id) == store.deadline_misses("nobody") == []
    finish(store, run.id, RunState.FAILED, NOW)
    store.delete_old_runs(NOW + 1, 0, NOW)
    assert store.deadline_misses() == []
