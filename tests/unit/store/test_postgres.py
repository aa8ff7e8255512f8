"""PostgreSQL: its tables are those of SQLite, its errors are ours, and a lost connection is noticed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.postgres_server import PostgresServer, unavailable
from tests.unit.store.suite.build import S, commit, rows, share, step, with_dag, with_run, xcom
from tradewind.model.database_urls import without_password
from tradewind.model.errors import (
    ConfigError,
    Stale,
    StatementError,
    StoreBusy,
    StoreInterrupted,
    StoreUnreachable,
    StoreUnwritable,
)
from tradewind.model.rows import NewJob
from tradewind.store.factory import active_scheduler, copy_store, open_lease, open_reader, open_store, split
from tradewind.store.memory import empty_database
from tradewind.store.port.lease import Holder, Lease
from tradewind.store.sql import schema
from tradewind.store.sql.store import SqlStore


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    store = open_store(postgres_url, busy_timeout_ms=200)
    yield store
    store.close()


def test_an_active_scheduler_is_found_from_every_machine(postgres_url: str) -> None:
    """`db restore` and `db reset` ask for it, before they replace its tables."""
    assert active_scheduler(postgres_url) is None
    store = open_store(postgres_url, holder="one")
    lease = open_lease(postgres_url, store, "one", "box", 4711)
    assert lease is not None
    assert active_scheduler(postgres_url) is None, "it stands by"
    lease.acquire(0)
    assert active_scheduler(postgres_url) == Holder(lease.epoch, "box", 4711)
    store.close()
    assert active_scheduler(postgres_url) is None


def test_a_session_that_is_another_one_is_explained(store: SqlStore) -> None:
    """A pooler in transaction mode: what this process has prepared does not exist in the session of the next transaction."""
    store.pools()
    store.engine.run("DEALLOCATE ALL")
    with pytest.raises(StatementError, match=r"PgBouncer with pool_mode = transaction .*\[26000\].*set pool_mode = session"):
        store.pools()


def test_both_databases_have_the_same_tables_and_columns(store: SqlStore) -> None:
    """The same names in the same order, NULL allowed in the same columns, and the same keys."""
    light = empty_database()
    tables = [
        name
        for (name,) in light.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
    ]
    found = store.engine.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'tradewind' ORDER BY tablename")
    assert [name for (name,) in found] == tables
    for table in tables:
        columns = light.rows(f"PRAGMA table_info({table})")
        theirs = store.engine.rows(
            """SELECT column_name, is_nullable FROM information_schema.columns
               WHERE table_schema = 'tradewind' AND table_name = ? ORDER BY ordinal_position""",
            (table,),
        )
        assert theirs == [(name, "NO" if required or key else "YES") for _, name, _, required, _, key in columns], (
            f"columns of {table}"
        )
        key = [name for _, name, _, _, _, place in sorted(columns, key=lambda one: one[5]) if place]
        assert _keys(store, table, "p") == [key], f"primary key of {table}"
        unique = [
            sorted(name for _, _, name in light.rows(f"PRAGMA index_info({index})"))
            for _, index, is_unique, origin, _ in light.rows(f"PRAGMA index_list({table})")
            if is_unique and origin == "u"
        ]
        assert sorted(map(sorted, _keys(store, table, "u"))) == sorted(unique), f"unique columns of {table}"


def _keys(store: SqlStore, table: str, kind: str) -> list[list[str]]:
    rows = store.engine.rows(
        """SELECT c.conname, a.attname FROM pg_constraint c
           JOIN pg_class t ON t.oid = c.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
           JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k (number, place) ON c.contype = ?
           JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number
           WHERE n.nspname = 'tradewind' AND t.relname = ? ORDER BY c.conname, k.place""",
        (kind, table),
    )
    found: dict[str, list[str]] = {}
    for name, column in rows:
        found.setdefault(name, []).append(column)
    return list(found.values())


def test_migrations_have_the_numbers_and_names_of_sqlite() -> None:
    assert [one[:2] for one in schema.migrations("postgres")] == [one[:2] for one in schema.migrations("sqlite")]


def test_no_index_on_task_instances_names_a_column_that_changes(store: SqlStore) -> None:
    """Then a change of a state writes no index (heap-only update)."""
    rows = store.engine.rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'tradewind' AND tablename = 'task_instance'")
    assert [one for (one,) in rows if not re.search(r"\(run, slot\)$", one)] == []


def test_two_processes_that_migrate_at_once_both_succeed(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()
    problems: list[BaseException] = []

    def migrate() -> None:
        try:
            open_store(url).close()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=migrate) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    postgres_server.drop_database(url)


def test_tables_of_others_are_left_alone(postgres_server: PostgresServer) -> None:
    """The database of an Airflow has tables of the same names in another schema."""
    url = postgres_server.create_database()
    name = url.partition("?")[0].rpartition("/")[2]
    postgres_server.execute("CREATE TABLE dag_run (id integer)", name)
    postgres_server.execute("INSERT INTO dag_run VALUES (7)", name)
    store = open_store(url)
    assert store.active_runs() == []
    store.close()
    assert postgres_server.execute("SELECT * FROM public.dag_run", name) == [(7,)]
    postgres_server.drop_database(url)


def test_a_text_with_nul_is_stored_without_it(store: SqlStore) -> None:
    with_dag(store)
    run = with_run(store, note="a\0b")
    assert run.note == "a\N{REPLACEMENT CHARACTER}b"


def test_urls_of_sqlalchemy_name_the_same_database(postgres_url: str) -> None:
    plain = open_reader(postgres_url)
    for scheme in ("postgres", "postgresql+psycopg2", "postgresql+asyncpg", "postgresql+psycopg"):
        reader = open_reader(postgres_url.replace("postgresql", scheme, 1))
        assert reader.engine.path == plain.engine.path
        reader.close()
    plain.close()
    assert split("postgresql+psycopg2://h/d")[0] == "postgresql"


def test_messages_never_show_the_password() -> None:
    for url in (
        "postgresql://ann:s3cret@db.example.com:5433/tw?sslmode=require&password=s3cret",
        "postgresql+psycopg2://ann:s3cret@db.example.com:5433/tw",
    ):
        assert without_password(url) == "postgresql://ann@db.example.com:5433/tw"
    assert "s3cret" not in without_password("postgresql://ann:s3cret@[::1/tw")


def test_the_error_of_a_server_that_is_not_reachable_does_not_show_the_password() -> None:
    if find_spec("psycopg") is None:
        unavailable("the driver psycopg is not installed (extra postgres)")
    with pytest.raises(StoreUnreachable) as refused:
        open_store("postgresql://ann:s3cret@127.0.0.1:1/tw")
    assert "s3cret" not in str(refused.value)


def test_a_database_that_does_not_exist_is_named(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreUnreachable, match=r"no such database.*createdb"):
        open_store(postgres_server.url("nowhere"))


def test_a_user_without_rights_is_told_what_is_needed(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()
    postgres_server.execute("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(StoreUnwritable, match="needs CREATE on the database"):
            open_store(url.replace("postgres@", "guest@"))
    finally:
        postgres_server.drop_database(url)
        postgres_server.execute("DROP ROLE guest")


def test_a_lock_of_another_connection_is_waited_for_and_then_named(store: SqlStore, postgres_url: str) -> None:
    other = open_store(postgres_url)
    with other.transaction():
        other.engine.run("LOCK TABLE variable IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy, match="pg_stat_activity"):
            store.variables()
    assert store.variables() == []
    other.close()


def test_a_reader_cannot_write(postgres_url: str) -> None:
    reader = open_reader(postgres_url)
    with pytest.raises(StoreUnwritable), reader.transaction():
        reader.engine.run("DELETE FROM pool")
    reader.close()


def test_a_bug_in_a_statement_is_named_as_such(store: SqlStore) -> None:
    with pytest.raises(StatementError):
        store.engine.rows("SELECT nothing FROM nowhere")
    assert store.variables() == [], "the connection goes on"


def test_a_query_that_takes_too_long_is_cancelled_and_the_next_one_is_not(store: SqlStore) -> None:
    for _ in range(5):
        with pytest.raises(StoreInterrupted), store.engine.time_limit(0.02):
            store.engine.rows("SELECT pg_sleep(30)")
        assert store.variables() == []


def test_a_reader_connects_again_after_its_connection_was_lost(postgres_url: str, store: SqlStore) -> None:
    reader = open_reader(postgres_url)
    with_dag(store)
    reader.show_only(frozenset({"d"}))
    assert end_others(store) == 1
    assert [row.dag_id for row in reader.list_dags().rows] == ["d"]
    reader.show_only(frozenset())
    end_others(store)
    assert reader.list_dags().rows == []
    reader.close()


def end_others(store: SqlStore) -> int:
    """End all other connections to the database; how many there were."""
    rows = store.engine.rows(
        """SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
    )
    return len(rows)


def test_a_connection_lost_in_a_transaction_writes_nothing(postgres_url: str, store: SqlStore) -> None:
    with_dag(store)
    run = with_run(store)
    other = open_store(postgres_url)

    def write() -> None:
        with store.transaction():
            store.engine.run("UPDATE dag_run SET note = 'lost' WHERE id = ?", (run.id,))
            end_others(other)
            store.engine.run("UPDATE dag_run SET note = 'lost twice' WHERE id = ?", (run.id,))

    with pytest.raises(StoreUnreachable):
        write()
    again = store.run(run.id)
    assert again is not None
    assert again.note is None
    other.close()


def trips_of(store: SqlStore, work: Callable[[], object]) -> int:
    """The number of round trips to the server that `work` takes."""
    trips = 0
    trip = store.engine._round_trip  # type: ignore[attr-defined]

    def counted(statements: object) -> object:
        nonlocal trips
        trips += 1
        return trip(statements)

    store.engine._round_trip = counted  # type: ignore[attr-defined]
    try:
        work()
    finally:
        store.engine._round_trip = trip  # type: ignore[attr-defined]
    return trips


def test_a_commit_of_many_runs_costs_one_round_trip(schedulers: list[Scheduler]) -> None:
    """The check of the lease, all writes and the COMMIT."""
    first, _ = schedulers
    first.lease.acquire(0)
    store = first.store
    with_dag(store)
    runs = [with_run(store, f"r{number}") for number in range(20)]
    writes = [share(store, run.id, {0: S.SCHEDULED}) for run in runs]
    assert trips_of(store, lambda: commit(store, *writes, epoch=first.lease.epoch)) == 1
    assert {rows(store, run.id)[0].state for run in runs} == {S.SCHEDULED.code}


def test_one_stale_run_does_not_hold_up_the_others_of_a_commit(schedulers: list[Scheduler]) -> None:
    """The round trip of all is rolled back; then each run is written alone."""
    first, _ = schedulers
    first.lease.acquire(0)
    store = first.store
    with_dag(store)
    runs = [with_run(store, f"r{number}") for number in range(3)]
    writes = [share(store, run.id, {0: S.SCHEDULED}) for run in runs]
    step(store, runs[1].id, S.SCHEDULED)
    assert commit(store, *writes, epoch=first.lease.epoch).stale == {runs[1].id: []}
    assert [rows(store, run.id)[0].state for run in runs] == [S.SCHEDULED.code] * 3
    assert [row.revision for row in store.active_runs()] == [1, 1, 1]


def test_a_superseded_scheduler_learns_it_in_one_round_trip(schedulers: list[Scheduler], store: SqlStore) -> None:
    first, second = schedulers
    first.lease.acquire(0)
    with_dag(first.store)
    run = with_run(first.store)
    write = share(first.store, run.id, {0: S.SCHEDULED})
    expire(store)
    second.lease.acquire(0)
    first.store.engine.reconnect()  # type: ignore[attr-defined]  # its connection was ended; another one does not help

    def commit_it() -> None:
        with pytest.raises(Stale):
            commit(first.store, write, epoch=1)

    assert trips_of(first.store, commit_it) == 2, "the transaction, and its end"
    assert rows(store, run.id)[0].state == S.NONE.code
    assert first.store.variables() == [], "the connection goes on"


def test_many_different_statements_do_not_fill_the_server(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from tradewind.store.sql.dialects import postgres

    monkeypatch.setattr(postgres, "PREPARED_MAX", 10)
    for number in range(40):
        assert store.engine.rows(f"SELECT {number}") == [(number,)]
    ((kept,),) = store.engine.rows("SELECT count(*) FROM pg_prepared_statements")
    assert kept <= 12


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "tradewind.store.sql.dialects.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install 'tradewind\[postgres\]'"):
        open_store("postgresql://localhost/tw")


# --- the lease of the scheduler -----------------------------------------------------------------------------------------------


class Scheduler(NamedTuple):
    """The store and the lease of a scheduler."""

    store: SqlStore
    lease: Lease


@pytest.fixture
def schedulers(postgres_url: str) -> Iterator[list[Scheduler]]:
    """Two schedulers on the same database; none is active yet."""
    made = []
    for name in ("first", "second"):
        store = open_store(postgres_url, holder=name)
        lease = open_lease(postgres_url, store, name, f"host of {name}", 7)
        assert lease is not None
        made.append(Scheduler(store, lease))
    yield made
    for one in made:
        one.store.close()


def test_the_active_scheduler_sees_that_another_one_stands_by(schedulers: list[Scheduler]) -> None:
    first, second = schedulers
    assert first.lease.try_acquire() is None
    assert second.lease.try_acquire() is not None
    assert first.lease.has_standby()
    second.lease.release()
    deadline = time.monotonic() + 10
    while first.lease.has_standby():
        assert time.monotonic() < deadline, "its connection has ended"


def test_one_scheduler_holds_the_lease_and_the_other_learns_which(schedulers: list[Scheduler]) -> None:
    first, second = schedulers
    assert first.lease.try_acquire() is None
    assert second.lease.try_acquire() == Holder(1, "host of first", 7)
    with pytest.raises(StoreBusy, match="process 7 on host of first"):
        second.lease.acquire(0)
    first.lease.renew()
    assert first.store.begin_epoch("here", 1, "boot", 1, first.lease.epoch) == 1
    first.store.close()
    assert second.lease.try_acquire() is None, "the end of the first releases the lease"
    assert second.lease.epoch == 2


def test_a_standby_takes_over_as_soon_as_the_connections_of_the_active_one_end(schedulers: list[Scheduler]) -> None:
    first, second = schedulers
    first.lease.acquire(0)
    began = time.monotonic()
    first.lease._engine.close()  # type: ignore[attr-defined]  # as after kill -9, the server sees the end of the connection
    second.lease.acquire(5)
    assert time.monotonic() - began < 2, "not after the end of the lease"
    with pytest.raises(StoreUnreachable):
        first.lease.renew()


def test_a_superseded_scheduler_cannot_commit(schedulers: list[Scheduler], store: SqlStore) -> None:
    """Its transaction had not begun: nothing of it is written, in whatever operation."""
    first, second = schedulers
    first.lease.acquire(0)
    with_dag(first.store)
    run = with_run(first.store)
    write = share(first.store, run.id, {0: S.SCHEDULED})
    expire(store)
    second.lease.acquire(0)
    with_run(second.store, "r2")
    first.store.engine.reconnect()  # type: ignore[attr-defined]  # its connection was ended; another one does not help
    operations: list[Callable[[], object]] = [
        lambda: commit(first.store, write, epoch=1),
        lambda: commit(first.store, write),
        lambda: with_run(first.store, "r3"),
        lambda: first.store.begin_epoch("here", 1, "boot", 1, 1),
    ]
    for operation in operations:
        with pytest.raises(Stale):
            operation()
    assert {row.run_id for row in second.store.active_runs()} == {"r1", "r2"}
    with pytest.raises((Stale, StoreUnreachable)):
        first.lease.renew()


def expire(store: SqlStore) -> None:
    """The lease has not been renewed in time, as that of a stopped process."""
    with store.transaction():
        store.engine.change("UPDATE scheduler_lease SET lease_until = 1 WHERE id = ?", (1,), "the lease")


def test_a_takeover_ends_a_transaction_of_the_stopped_scheduler(schedulers: list[Scheduler], store: SqlStore) -> None:
    """SIGSTOP in the middle of a transaction: it holds the lock on the lease, and its connections stay open."""
    first, second = schedulers
    first.lease.acquire(0)
    with_dag(first.store)
    run = with_run(first.store)

    def stopped() -> None:
        with first.store.transaction():
            first.store.engine.run("UPDATE dag_run SET note = 'late' WHERE id = ?", (run.id,))
            store.engine.run("SELECT 1")
            with pytest.raises(StoreBusy):
                expire(store)
            second_takes_over()
            first.store.engine.run("UPDATE dag_run SET note = 'later' WHERE id = ?", (run.id,))

    def second_takes_over() -> None:
        second.lease._lease = 0  # type: ignore[attr-defined]
        first.lease._engine.close()  # type: ignore[attr-defined]  # frees the advisory lock: the lease counts as lost
        second.lease.acquire(5)

    with pytest.raises(StoreUnreachable):
        stopped()
    found = second.store.run(run.id)
    assert found is not None
    assert found.note is None


def test_many_standbys_and_one_of_them_takes_over(postgres_url: str, schedulers: list[Scheduler]) -> None:
    """Whatever they try at the same time, each epoch has one holder."""
    taken: list[int] = []
    guard = threading.Lock()

    def stand_by(name: str) -> None:
        own = open_store(postgres_url, holder=name)
        lease = open_lease(postgres_url, own, name, name, 1)
        assert lease is not None
        lease.acquire(20)
        with guard:
            taken.append(own.begin_epoch(name, 1, "boot", 1, lease.epoch))
        own.close()

    schedulers[0].lease.acquire(0)
    threads = [threading.Thread(target=stand_by, args=(f"standby {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    schedulers[0].store.close()
    for thread in threads:
        thread.join(30)
    assert sorted(taken) == [2, 3, 4, 5]


def test_the_lock_alone_does_not_end_a_valid_lease(postgres_url: str, schedulers: list[Scheduler], store: SqlStore) -> None:
    """The first scheduler has released its row, but its connection with the lock still exists: the second takes over without the
    lock, and a third gets the lock before the second does.
    """
    first, second = schedulers
    first.lease.acquire(0)
    with store.transaction():
        store.engine.change("UPDATE scheduler_lease SET holder = '', lease_until = 0 WHERE id = ?", (1,), "the lease")
    assert second.lease.try_acquire() is None
    first.lease._engine.close()  # type: ignore[attr-defined]  # frees the lock
    own = open_store(postgres_url, holder="third")
    try:
        third = open_lease(postgres_url, own, "third", "host of third", 7)
        assert third is not None
        assert third.try_acquire() == Holder(2, "host of second", 7)
        assert second.store.begin_epoch("here", 1, "boot", 1, second.lease.epoch) == 2
        second.lease._engine.close()  # type: ignore[attr-defined]  # as after kill -9
        until = time.monotonic() + 5
        while third.try_acquire() is not None:
            assert time.monotonic() < until, "the end of the connection frees the lease at once"
        assert third.epoch == 3
    finally:
        own.close()


def test_a_file_needs_no_lease(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t.db", holder="a")
    assert open_lease(tmp_path / "t.db", store, "a", "here", 1) is None
    store.close()


def test_a_file_is_copied_with_its_numbers(tmp_path: Path, postgres_server: PostgresServer) -> None:
    """All rows, and no number is given twice: also not that of a row that was deleted."""
    path = tmp_path / "t.db"
    source = open_store(path)
    with_dag(source)
    run = with_run(source, note="a\0b")
    step(source, run.id, S.QUEUED, S.RUNNING, S.SUCCESS)
    source.push_xcoms(run.id, [xcom("t0", b"\x00\xff")])
    with source.transaction():
        gone = source.engine.insert(
            """INSERT INTO job (life, job_type, state, hostname, unixname, pid, started_at, heartbeat_at)
               VALUES ('x', 'y', 'success', 'h', 'u', 1, 1, 1)"""
        )
        source.engine.run("DELETE FROM job WHERE id = ?", (gone,))
    source.close()
    url = postgres_server.create_database()
    target = open_store(url)
    copied = copy_store(path, url)
    assert copied["dag_run"] == 1
    assert copied["task_instance"] == 3
    assert "scheduler_lease" not in copied
    found = target.snapshot(run.id)
    assert found is not None
    assert found.run.note == "a\N{REPLACEMENT CHARACTER}b"
    assert next(row.state for row in found.rows) == S.SUCCESS.code
    assert target.xcoms(run.id, ["t0"], "return_value") == [("t0", -1, b"\x00\xff", None)]
    target.begin_job(NewJob("next", "SchedulerJob", "h", "u", 1, None), 1)
    assert target.jobs(1)[0].id == gone + 1
    assert with_run(target, "r2").id == run.id + 1
    target.close()
    postgres_server.drop_database(url)
