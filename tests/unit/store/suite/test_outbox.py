"""The outbox: what has to be done outside because of a commit."""

from __future__ import annotations

from typing import Any

from tests.unit.store.suite.build import NOW, S, commit, finish, new_run, share, step, with_dag, with_run
from tradewind.model.rows import NewCallbackRequest
from tradewind.model.states import RunState
from tradewind.store.port import Store


def identities(items: list[Any]) -> list[str]:
    return [item.identity for item in items]


def test_items_are_returned_when_due_and_once_for_each_identity(store: Store) -> None:
    store.add_outbox_item("mail", "late", b"l", NOW, NOW + 10)
    store.add_outbox_item("mail", "soon", b"s", NOW)
    store.add_outbox_item("mail", "soon", b"again", NOW)
    assert [(item.kind, item.identity, item.payload, item.tries) for item in store.due_outbox_items(NOW)] == [
        ("mail", "soon", b"s", 0)
    ]
    assert [item.identity for item in store.due_outbox_items(NOW + 10)] == ["soon", "late"]
    assert [item.identity for item in store.due_outbox_items(NOW + 10, at_most=1)] == ["soon"]


def test_a_deleted_item_is_gone_and_its_number_is_not_used_again(store: Store) -> None:
    store.add_outbox_item("mail", "a", b"", NOW)
    (first,) = store.due_outbox_items(NOW)
    store.delete_outbox_item(first.id)
    store.add_outbox_item("mail", "b", b"", NOW)
    store.delete_outbox_item(first.id)
    assert [item.identity for item in store.due_outbox_items(NOW)] == ["b"]


def test_a_failed_item_is_due_later_or_parked(store: Store) -> None:
    for identity in ("again", "never"):
        store.add_outbox_item("mail", identity, b"", NOW)
    again, never = store.due_outbox_items(NOW)
    store.postpone_outbox_item(again.id, NOW + 5, problem="the server is away")
    store.postpone_outbox_item(never.id, NOW + 5, "the address does not exist", "refused")
    store.postpone_outbox_item(999, NOW)
    assert store.due_outbox_items(NOW) == []
    assert store.due_outbox_items(NOW + 5) == [again._replace(tries=1, due_at=NOW + 5, problem="the server is away")]
    assert store.outbox_item(never.id) == never._replace(
        tries=1, due_at=NOW + 5, parked="the address does not exist", problem="refused"
    )


def test_a_parked_item_is_retried_on_request(store: Store) -> None:
    store.add_outbox_item("mail", "a", b"", NOW)
    (item,) = store.due_outbox_items(NOW)
    store.postpone_outbox_item(item.id, NOW, "parked", "refused")
    store.retry_outbox_item(item.id, NOW + 3)
    store.retry_outbox_item(999, NOW)
    assert store.due_outbox_items(NOW) == []
    assert store.due_outbox_items(NOW + 3) == [item._replace(due_at=NOW + 3, problem="refused")]


def test_the_next_due_time_is_known(store: Store) -> None:
    assert store.next_outbox_due(0) is None
    for identity, due in (("a", NOW), ("b", NOW + 7), ("c", NOW + 9)):
        store.add_outbox_item("mail", identity, b"", NOW, due)
    assert store.next_outbox_due(NOW) == NOW + 7
    (_, b) = store.due_outbox_items(NOW + 7)
    store.postpone_outbox_item(b.id, NOW + 8, "parked")
    assert store.next_outbox_due(NOW) == NOW + 9
    assert store.next_outbox_due(NOW + 9) is None


def test_items_are_listed_in_order_and_filtered(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    store.add_outbox_item("mail", "a", b"", NOW, run=run.id, slot=2)
    store.add_outbox_item("mail", "b", b"", NOW, NOW + 5)
    store.add_outbox_item("mail", "c", b"", NOW)
    store.postpone_outbox_item(store.outbox_items()[2].id, NOW, "parked")
    assert identities(store.outbox_items()) == ["a", "b", "c"]
    assert identities(store.outbox_items(parked=True)) == ["c"]
    assert identities(store.outbox_items(parked=False, at_most=1)) == ["a"]
    assert [(item.run, item.slot, item.created_at) for item in store.outbox_items(run=run.id)] == [(run.id, 2, NOW)]


def test_items_are_written_with_the_state_change_that_needs_them(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED, S.RUNNING)
    post = NewCallbackRequest("callback", "attempt/1", b"x", NOW, None, 0)
    commit(store, share(store, run.id, {0: S.UP_FOR_RETRY}, callback_requests=[post, post]))
    assert [(item.identity, item.payload, item.run, item.slot) for item in store.due_outbox_items(NOW)] == [
        ("attempt/1", b"x", run.id, 0)
    ]


def test_a_part_whose_guard_does_not_match_adds_no_item(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    late = share(store, run.id, {0: S.SCHEDULED}, callback_requests=[NewCallbackRequest("callback", "a", b"", NOW)])
    step(store, run.id, S.SCHEDULED)
    assert commit(store, late).stale != {}
    assert store.outbox_items() == []


def test_items_are_deleted_with_their_run(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    store.create_run(new_run(store, "r2"))
    store.add_outbox_item("callback", "of the run", b"", NOW, run=run.id)
    store.add_outbox_item("callback", "of nobody", b"", NOW)
    finish(store, run.id, RunState.FAILED, NOW)
    store.delete_old_runs(NOW + 1, 0, NOW)
    assert identities(store.outbox_items()) == ["of nobody"]
    store.add_outbox_item("callback", "of the run", b"", NOW)
    assert identities(store.outbox_items()) == ["of nobody", "of the run"]


def test_items_with_one_prefix_are_settled_together(store: Store) -> None:
    for kind, identity in (
        ("callback", "a/1/x"),
        ("callback", "a/1/y"),
        ("mail", "a/1/m"),
        ("callback", "a/12/x"),
        ("callback", "a/2/x"),
    ):
        store.add_outbox_item(kind, identity, b"", NOW, due=NOW + 60)
    assert store.settle_outbox_items("callback", "a/1/", NOW + 5) == 2
    assert [item.identity for item in store.due_outbox_items(NOW + 5)] == ["a/1/x", "a/1/y"]
    assert store.settle_outbox_items("callback", "a/1/", NOW + 30) == 2, "never later than it was"
    assert len(store.due_outbox_items(NOW + 5)) == 2
    assert store.settle_outbox_items("callback", "a/1/", None) == 2
    assert store.settle_outbox_items("callback", "a/1/", None) == 0
    assert [item.identity for item in store.due_outbox_items(NOW + 60)] == ["a/1/m", "a/12/x", "a/2/x"]
