"""Two schedulers on one PostgreSQL database: a takeover comes between any two round trips of a verb of the former one.

The lease lets only one scheduler write, so two writing verbs meet only at a takeover. Whenever it comes, the verb has written all
of its effect or nothing of it, and says so; and nothing of it comes after the takeover.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.unit.store.suite.build import (
    NOW,
    S,
    commit,
    definition,
    due,
    new_run,
    parsed,
    share,
    step,
    with_dag,
    with_run,
    xcom,
)
from tradewind.model.errors import Stale, StoreUnreachable
from tradewind.model.rows import PoolRow
from tradewind.model.states import RunState, TaskState
from tradewind.store.factory import open_lease, open_store
from tradewind.store.port.lease import Lease
from tradewind.store.sql.engine import Row
from tradewind.store.sql.store import SqlStore

Verb = Callable[[SqlStore, int], object]
"""Writes with a store, given the epoch of its scheduler."""


class Scheduler(NamedTuple):
    store: SqlStore
    lease: Lease


def _commit_runs(store: SqlStore, epoch: int) -> object:
    return commit(store, *(share(store, run, {0: S.SCHEDULED, 1: S.SCHEDULED}) for run in (1, 2)), epoch=epoch)


def _commit_new_run(store: SqlStore, epoch: int) -> object:
    position = store.need_dag("d")
    before = None if position.last is None else position.last
    return commit(store, share(store, 1, {0: S.SCHEDULED}), epoch=epoch, new_runs=[due(new_run(store, "s", day=3), before)])


VERBS: dict[str, Verb] = {
    "a commit of several runs": _commit_runs,
    "a commit of a run and a new one": _commit_new_run,
    "create_run": lambda store, epoch: with_run(store, "another"),
    "delete_xcoms": lambda store, epoch: store.delete_xcoms(1, "t2", -1),
    "clear": lambda store, epoch: store.clear(2, [0], "ann", NOW),
    "mark": lambda store, epoch: store.mark(1, [0, 1], TaskState.SUCCESS, "ann", NOW),
    "set_run_state": lambda store, epoch: store.set_run_state(1, RunState.FAILED, "ann", NOW),
    "register_file": lambda store, epoch: store.register_file(
        parsed(definition("e"), definition("f"), file="e.py"), paused_at_creation=True
    ),
    "forget_files": lambda store, epoch: store.forget_files("dags", ["d.py"], NOW),
    "set_paused": lambda store, epoch: store.set_paused("d", True, "ann", NOW),
    "delete_run": lambda store, epoch: store.delete_run(3, "ann", NOW),
    "set_pool": lambda store, epoch: store.set_pool(PoolRow("small", 2, None, False), "ann", NOW),
    "begin_epoch": lambda store, epoch: store.begin_epoch("here", 1, "boot", NOW, epoch),
}


@pytest.fixture
def database(postgres_url: str) -> str:
    """A database with three runs: the second has a task that has ended, the third has ended."""
    store = open_store(postgres_url)
    with_dag(store)
    for name in ("r1", "r2", "r3"):
        with_run(store, name)
    step(store, 2, S.SCHEDULED, S.QUEUED, S.RUNNING, S.SUCCESS)
    store.push_xcoms(1, [xcom("t2")])
    commit(store, share(store, 3, {}, state=RunState.SUCCESS, ended_at=NOW))
    store.close()
    return postgres_url


def scheduler(url: str, name: str) -> Scheduler:
    store = open_store(url, holder=name)
    lease = open_lease(url, store, name, f"host of {name}", 7)
    assert lease is not None
    return Scheduler(store, lease)


@pytest.mark.parametrize("name", VERBS)
def test_a_takeover_between_any_two_round_trips_of(name: str, database: str) -> None:
    places = 0
    while _verb_meets_takeover(VERBS[name], database, places):
        places += 1
    assert places >= 1, "the verb has round trips"


def _verb_meets_takeover(verb: Verb, url: str, place: int) -> bool:
    """Take over before the round trip with this number; False: the verb has fewer, and its effect is there."""
    former, second = scheduler(url, "former"), scheduler(url, "second")
    try:
        former.lease.acquire(0)
        epoch = former.lease.epoch
        before = content(second.store)
        seen: list[list[tuple[str, list[Row]]]] = []

        with second.store.transaction():  # it has not been renewed for long
            second.store.engine.change("UPDATE scheduler_lease SET lease_until = 1 WHERE id = ?", (1,), "the lease")

        def take_over() -> None:
            second.lease.acquire(5)
            seen.append(content(second.store))

        _before_trip(former.store, place, take_over)
        refused: Exception | None = None
        try:
            verb(former.store, epoch)
        except (Stale, StoreUnreachable) as error:
            refused = error
        after = content(second.store)
        if not seen:
            assert refused is None, refused
            assert after != before, "the verb writes something"
            return False
        assert refused is not None, "an answer that says that it was written"
        assert seen[0] == before, "nothing was written before the takeover"
        assert after == before, "nothing was written after the takeover"
        return True
    finally:
        former.store.close()
        second.store.close()


def _before_trip(store: SqlStore, place: int, act: Callable[[], None]) -> None:
    """Act before the round trip with this number; only those of transactions count, what a verb reads before them does not."""
    engine: Any = store.engine
    trip, done = engine._round_trip, 0

    def counted(statements: list[object]) -> object:
        nonlocal done
        if engine.in_transaction or len(statements) > 1:
            done += 1
            if done == place + 1:
                act()
        return trip(statements)

    engine._round_trip = counted


def content(store: SqlStore) -> list[tuple[str, list[Row]]]:
    """All rows of all tables, except for the lease itself."""
    tables = store.engine.rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'tradewind' AND tablename <> 'scheduler_lease' ORDER BY tablename"
    )
    return [(table, sorted(store.engine.rows(f"SELECT * FROM {table}"), key=repr)) for (table,) in tables]
