"""The feed of a run: numbered entries, read in order after a cursor."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.store.suite.build import NOW, S, step, with_dag, with_run
from tradewind.store.port import Store


def test_entries_are_numbered_without_gaps_and_read_after_a_cursor(store: Store) -> None:
    with_dag(store, tasks=2)
    run = with_run(store)
    assert store.feed(run.id) == []
    assert [store.append_feed(run.id, "note", bytes([n]), "ann", NOW + n) for n in range(3)] == [1, 2, 3]
    later = [(entry.seq, entry.payload, entry.at) for entry in store.feed(run.id, 1)]
    assert later == [(2, b"\x01", NOW + 1), (3, b"\x02", NOW + 2)]


def test_the_cursor_never_goes_back(store: Store) -> None:
    with_dag(store, tasks=2)
    run = with_run(store)
    store.append_feed(run.id, "note", b"", "ann", NOW)
    for upto, stands in ((1, 1), (0, 1), (1, 1)):
        store.consume_feed(run.id, upto)
        found = store.run(run.id)
        assert found is not None
        assert found.feed_seq == stands


def test_a_clear_is_in_the_feed_and_consumed_at_once(store: Store) -> None:
    with_dag(store, tasks=2)
    run = with_run(store)
    step(store, run.id, S.SUCCESS, slot=0)
    after = store.clear(run.id, [0], "ann", NOW, "wrong input")
    (entry,) = store.feed(run.id)
    assert (entry.kind, entry.actor, entry.at) == ("clear", "ann", NOW)
    assert msgspec.msgpack.decode(entry.payload) == {"slots": [0], "reason": "wrong input"}
    assert after.feed_seq == entry.seq


def test_what_is_rolled_back_is_not_in_the_feed(store: Store) -> None:
    with_dag(store, tasks=2)
    run = with_run(store)

    def interrupted() -> None:
        with store.transaction():
            store.append_feed(run.id, "note", b"", "ann", NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert store.feed(run.id) == []
