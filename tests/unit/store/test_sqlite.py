"""What concerns only a file: locks, a full disk, other releases, a process killed during a write; and what a commit costs."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.store.suite.build import NOW, S, commit, definition, due, new_run, parsed, rows, share, step, with_dag, with_run
from tradewind.model.assets import AssetKey, AssetSchedule
from tradewind.model.errors import (
    Changed,
    StatementError,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreInterrupted,
    StoreLost,
    StoreMismatch,
    StoreRefused,
    StoreUnwritable,
)
from tradewind.model.rows import NewAssetEvent, NewBackfill
from tradewind.model.states import Outcome, RunState
from tradewind.platform.clock import ManualClock
from tradewind.scheduler.core import Scheduler
from tradewind.store import factory
from tradewind.store.factory import open_reader
from tradewind.store.sql import schema
from tradewind.store.sql.dialects.sqlite import WAL_KEPT, SqliteEngine, translate
from tradewind.store.sql.store import SqlStore
from tradewind.testing.dag_test import inline_config
from tradewind.testing.inline_executor import InlineExecutor
from tradewind.wire.messages import Report


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[SqlStore]:
    store = factory.open_store(path, **options)
    try:
        yield store
    finally:
        store.close()


def database(store: SqlStore) -> sqlite3.Connection:
    """The connection below the interfaces of the store."""
    assert isinstance(store.engine, SqliteEngine)
    return store.engine.db


# --- locks ------------------------------------------------------------------------------------------------------------

HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another_process(path: Path) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield
        finally:
            holder.communicate("")


def test_a_locked_database_is_busy_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    with opened(path, busy_timeout_ms=20) as store:
        with_dag(store)
        run = with_run(store)
        write = share(store, run.id, {0: S.SCHEDULED})
        with held_by_another_process(path):
            with pytest.raises(StoreBusy, match=r"tradewind\.db is locked by another process .* tries again\. .*fuser -v "):
                commit(store, write)
            assert store.run(run.id) == run
        assert commit(store, write).stale == {}


def test_a_locked_database_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    with opened(path):
        pass
    with held_by_another_process(path), opened(path, busy_timeout_ms=20) as store:
        with pytest.raises(StoreBusy):
            store.begin_epoch("box", 1, "boot", NOW)
        assert store.plans() == []


# --- full -------------------------------------------------------------------------------------------------------------


def test_a_full_database_takes_a_batch_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    with opened(path) as store:
        with_dag(store, tasks=200)
        pages = database(store).execute("PRAGMA page_count").fetchone()[0]
    with opened(path, max_page_count=pages + 30) as store:
        known = [with_run(store, "r0")]
        with pytest.raises(StoreFull, match=r"cannot grow .*nothing was lost.*max_page_count"):
            fill(store, known)
        assert [run.id for run in store.active_runs()] == [run.id for run in known]
        assert all(len(rows(store, run.id)) == 200 for run in known)
        assert store.engine.rows("SELECT count(*) FROM task_instance") == [(200 * len(known),)]
        before = store.snapshot(known[0].id)
        with pytest.raises(StoreFull):
            commit(store, share(store, known[0].id, {0: S.SCHEDULED}), new_runs=[due(new_run(store, "too much"))])
        assert store.snapshot(known[0].id) == before
        assert store.engine.rows("PRAGMA integrity_check") == [("ok",)]
        store.engine.run(f"PRAGMA max_page_count = {pages + 500:d}")
        assert with_run(store, "too much").rows_created == 200


def fill(store: SqlStore, known: list[Any]) -> None:
    for number in range(1, 100):
        known.append(with_run(store, f"r{number}"))


# --- releases -----------------------------------------------------------------------------------------------------------


def test_a_database_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    with opened(path) as store:
        store.engine.run("UPDATE meta SET value = '999' WHERE key = 'schema'")
    newest = schema.migrations("sqlite")[-1].number
    for opening in (factory.open_store, factory.open_reader):
        with pytest.raises(StoreMismatch, match=rf"has schema 999, but this release knows only {newest}; use the release"):
            opening(path)


def test_a_database_of_an_older_release_is_not_read_but_migrated(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    SqliteEngine(path).close()
    with pytest.raises(StoreLost, match=r"is empty.*tradewind db reset -y"):
        factory.open_store(path, migrate=False)
    with opened(path) as store:
        store.engine.run("UPDATE meta SET value = '1' WHERE key = 'schema'")
    with pytest.raises(StoreMismatch, match=r"has schema 1, this release needs .*tradewind db migrate"):
        factory.open_store(path, migrate=False)
    path.unlink()
    with opened(path) as store:
        assert store.pools()[0].name == "default_pool"
    with opened(path) as store:
        assert schema.migrate(store.engine) == []


BREAK_IN = """
import os, sys
from tradewind.store.sql import schema
from tradewind.store.sql.dialects.sqlite import WAL_KEPT, SqliteEngine, translate
engine = SqliteEngine(sys.argv[1])
left = int(sys.argv[2])
carry_out = engine.run
def counted(sql, parameters=()):
    global left
    if not left:
        os._exit(9)
    left -= 1
    return carry_out(sql, parameters)
engine.run = counted
schema.migrate(engine)
"""


@pytest.mark.parametrize("statements", [0, 1, 20])
def test_a_killed_migration_is_applied_again_from_its_beginning(tmp_path: Path, statements: int) -> None:
    path = tmp_path / "tradewind.db"
    killed = subprocess.run([sys.executable, "-c", BREAK_IN, str(path), str(statements)], check=False)
    assert killed.returncode == 9
    engine = SqliteEngine(path)
    assert schema.applied(engine) == 0
    assert engine.rows("SELECT name FROM sqlite_master") == []
    engine.close()
    with opened(path) as store:
        assert with_dag(store) == 1


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tradewind.db"
    with opened(path) as store:
        with_dag(store)
    real = schema.migrations("sqlite")
    bad = schema.Migration(real[-1].number + 1, "bad", "CREATE TABLE more (a);\nINSERT INTO nowhere VALUES (1);\n")
    monkeypatch.setattr(schema, "migrations", lambda dialect, tables: [*real, bad])
    with pytest.raises(StatementError, match="nowhere"):
        factory.open_store(path)
    monkeypatch.undo()
    with opened(path) as store:
        assert store.dag_ids() == ["d"]
        assert store.engine.row("SELECT 1 FROM sqlite_master WHERE name = 'more'") is None


# --- settings of the connection -----------------------------------------------------------------------------------------


@pytest.mark.spec("S496")
def test_commits_survive_a_power_failure_unless_configured_otherwise(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store:
        pragmas = store.engine.settings()
        assert (pragmas["journal_mode"], pragmas["synchronous"]) == ("wal", 2)
    with opened(tmp_path / "b.db", synchronous="NORMAL") as store:
        assert store.engine.settings()["synchronous"] == 1


@pytest.mark.spec("S496")
def test_readers_do_not_wait_for_the_writer_and_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    with opened(path) as store:
        with_dag(store)
        reader = open_reader(path)
        with store.transaction():
            with_run(store)
            assert reader.find_run("d", "r1") is None
        assert reader.find_run("d", "r1") == store.find_run("d", "r1")
        with pytest.raises(StoreError, match="cannot be written"):
            reader.begin_epoch("box", 1, "boot", NOW)
        reader.close()


# --- cost ------------------------------------------------------------------------------------------------------

STATEMENTS_PER_TASK = 23
"""In a chain no transactions can be combined: two for each task (its start; its end with the dispatch of the next)."""

STATEMENTS_PER_TASK_TOGETHER = 3
"""Tasks that change in one transaction."""

BYTES_PER_TASK = 48_000
"""Growth of the write-ahead log in a chain: two transactions of five pages of 4 KiB each."""


class Costs:
    """Runs a DAG with the real scheduler on a file, and counts."""

    def __init__(self, store: SqlStore, path: Path, outcome: Callable[[str], Outcome]) -> None:
        self.store = store
        self.statements: list[str] = []
        database(store).execute("PRAGMA wal_autocheckpoint = 0")
        database(store).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        executor = InlineExecutor(lambda workload: Report(2, outcome(workload.task_id)))
        clock = ManualClock()
        scheduler = Scheduler(store, clock, inline_config(), executor, 0, lambda notice: None)
        scheduler.load()
        database(store).set_trace_callback(self.statements.append)
        scheduler.process()
        while scheduler.active_runs_by_id:
            if not executor.step(scheduler):
                due = scheduler.timers.next_due()
                assert due is not None
                clock.advance(max(0, due - clock.wall()))
                scheduler.process()
        database(store).set_trace_callback(None)
        self.log_bytes = os.path.getsize(f"{path}-wal")


def test_the_costs_of_a_chain_stay_within_their_budget(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    with opened(path) as store:
        with_dag(store, tasks=40)
        run = with_run(store)
        costs = Costs(store, path, lambda task_id: Outcome.SUCCESS)
        ended = store.run(run.id)
        assert ended is not None
        assert ended.state is RunState.SUCCESS
        assert sum(sql.startswith("COMMIT") for sql in costs.statements) <= 2 * 40 + 2
        assert len(costs.statements) / 40 <= STATEMENTS_PER_TASK
        assert costs.log_bytes / 40 <= BYTES_PER_TASK


def test_tasks_that_end_together_are_written_together(tmp_path: Path) -> None:
    """The children of one task are scheduled in its transaction, not in one of their own."""
    path = tmp_path / "tradewind.db"
    with opened(path) as store:
        store.register_file(
            parsed(definition(tasks={"top": (), **{f"t{i}": ("top",) for i in range(100)}})), paused_at_creation=False
        )
        with_run(store)
        costs = Costs(store, path, lambda task_id: Outcome.FAILED if task_id == "top" else Outcome.SUCCESS)
        assert len(costs.statements) / 100 <= STATEMENTS_PER_TASK_TOGETHER


def test_every_task_instance_has_the_state_of_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.db"
    failed: set[str] = set()

    def fail_once(task_id: str) -> Outcome:
        first = task_id not in failed
        failed.add(task_id)
        return Outcome.FAILED if first else Outcome.SUCCESS

    with opened(path) as store:
        with_dag(store, tasks=6)
        run = with_run(store)
        Costs(store, path, fail_once)
        store.clear(run.id, range(3, 6), "ada", NOW)
        failed.clear()
        Costs(store, path, lambda task_id: Outcome.FAILED_FINAL if task_id == "t4" else fail_once(task_id))
        ended = store.run(run.id)
        assert ended is not None
        assert ended.state is RunState.FAILED
        folded: dict[int, tuple[int, int]] = dict.fromkeys(range(6), (0, 0))
        journal = store.engine.rows("SELECT seq, slot, fence, before, after FROM journal WHERE run = ? ORDER BY seq", (run.id,))
        assert [entry[0] for entry in journal] == list(range(1, ended.journal_seq + 1))
        for _, slot, fence, before, after in journal:
            assert folded[slot][0] == before
            folded[slot] = (after, fence)
        assert {slot: (row.state, row.fence) for slot, row in rows(store, run.id).items()} == folded


def test_migrations_are_numbered_one_by_one() -> None:
    """Of two migrations with the same number only one would be applied."""
    assert [migration.number for migration in schema.migrations("sqlite")] == list(
        range(1, len(schema.migrations("sqlite")) + 1)
    )


# --- errors and the WAL -----------------------------------------------------------------------------------------------


def test_a_violated_constraint_is_not_an_error_of_the_store(tmp_path: Path) -> None:
    """The scheduler retries after an error of the store; a violated constraint would come back for ever."""
    with opened(tmp_path / "t.db") as store, pytest.raises(StoreRefused, match="UNIQUE"), store.transaction():
        store.engine.many("INSERT INTO meta (key, value) VALUES (?, '1')", [("twice",), ("twice",)])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT no_such_full_locked_readonly_busy_column FROM meta",
        "SELEC 1",
        "INSERT INTO meta (key, value) VALUES (?, ?)",
    ],
)
def test_a_bug_in_a_statement_is_not_an_error_of_the_store(tmp_path: Path, statement: str) -> None:
    """Whatever words its message has: otherwise the scheduler would pause for ever."""
    with opened(tmp_path / "t.db") as store:
        with pytest.raises(StatementError, match="bug in Tradewind"):
            store.engine.rows(statement)
        with pytest.raises(StatementError) as caught, store.transaction():
            store.engine.run(statement)
        assert not isinstance(caught.value, StoreError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy),
        (sqlite3.SQLITE_LOCKED_SHAREDCACHE, StoreBusy),
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreFull),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreUnwritable),
        (sqlite3.SQLITE_CANTOPEN, StoreUnwritable),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, StoreRefused),
        (sqlite3.SQLITE_TOOBIG, StoreRefused),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreError),
        (sqlite3.SQLITE_NOTADB, StoreError),
        (sqlite3.SQLITE_NOMEM, StoreError),
        (sqlite3.SQLITE_INTERRUPT, StoreInterrupted),
        (sqlite3.SQLITE_ERROR, StatementError),
        (sqlite3.SQLITE_MISUSE, StatementError),
        (None, StatementError),
    ],
)
def test_errors_are_recognized_by_their_codes(code: int | None, kind: type) -> None:
    error = sqlite3.OperationalError("the words full, locked and malformed mean nothing")
    if code is not None:
        error.sqlite_errorcode = code
    assert type(translate(error, "t.db")) is kind


_EDITS: dict[str, tuple[str, Callable[[SqlStore, int], object]]] = {
    "clear, a task": ("task_instance", lambda store, run: store.clear(run, [0], "ann", NOW)),
    "clear, the run": ("dag_run", lambda store, run: store.clear(run, [0], "ann", NOW)),
    "clear, the run stays": ("dag_run", lambda store, run: store.clear(run, [0], "ann", NOW, reset_run=False)),
    "mark, a task": ("task_instance", lambda store, run: store.mark(run, [0], S.FAILED, "ann", NOW)),
    "mark, the run": ("dag_run", lambda store, run: store.mark(run, [0], S.FAILED, "ann", NOW)),
    "set the run's state": ("dag_run", lambda store, run: store.set_run_state(run, RunState.FAILED, "ann", NOW)),
    "cancel a backfill": ("backfill", lambda store, run: store.complete_backfill(1, NOW, "ann")),
    "drop events": ("asset_delivery", lambda store, run: store.drop_waiting_events("c", None, None, "ann", NOW)),
    "consume events": ("asset_delivery", lambda store, run: store.create_asset_run(new_run(store, "a1", "c"), 99)),
    "a file is gone": ("dag", lambda store, run: store.forget_files("dags", ["d.py"], NOW)),
    "a file is read": ("dag", lambda store, run: store.register_file(parsed(definition("d", 2)), paused_at_creation=False)),
}


@pytest.mark.parametrize("table_and_edit", _EDITS.values(), ids=_EDITS)
def test_an_edit_whose_guard_does_not_match_writes_nothing(
    tmp_path: Path, table_and_edit: tuple[str, Callable[[SqlStore, int], object]]
) -> None:
    """No journal, audit or feed entry of a change that did not happen."""
    table, edit = table_and_edit
    with opened(tmp_path / "t.db") as store:
        with_dag(store)
        asset = AssetKey("x", "s3://x")
        with_dag(store, "c", assets=AssetSchedule(asset, False))
        store.record_asset_events([NewAssetEvent("x", "s3://x", "asset", None, NOW)])
        store.create_backfill(NewBackfill("d", NOW, NOW, None, 1, NOW, b"", "none", False, "ann", 1))
        run = with_run(store).id
        step(store, run, S.SCHEDULED, S.QUEUED, S.RUNNING, S.SUCCESS)
        before = list(database(store).iterdump())
        database(store).execute(f"CREATE TEMP TRIGGER deaf BEFORE UPDATE ON main.{table} BEGIN SELECT RAISE(IGNORE); END")
        with pytest.raises(Changed, match="at the same time"):
            edit(store, run)
        database(store).execute("DROP TRIGGER deaf")
        assert list(database(store).iterdump()) == before
        edit(store, run)
        assert list(database(store).iterdump()) != before


def test_a_clear_reports_what_it_cleared(tmp_path: Path) -> None:
    with opened(tmp_path / "t.db") as store:
        with_dag(store)
        run = with_run(store).id
        step(store, run, S.SCHEDULED, S.QUEUED, S.RUNNING, S.SUCCESS)
        store.clear(run, [0, 1, 77], "ann", NOW)
        assert msgspec.msgpack.decode(store.feed(run)[-1].payload)["slots"] == [0]
        assert store.engine.rows("SELECT detail FROM audit WHERE event = 'clear'") == [('{"count": 1, "reason": ""}',)]


def test_a_database_for_reading_only(tmp_path: Path) -> None:
    with opened(tmp_path / "t.db"):
        pass
    reader = open_reader(tmp_path / "t.db")
    with pytest.raises(StoreUnwritable, match="permissions"), reader.transaction():
        reader.engine.run("INSERT INTO meta (key, value) VALUES ('a', '1')")
    reader.close()


def test_a_long_reader_makes_the_wal_grow_and_it_shrinks_again(tmp_path: Path) -> None:
    wal = tmp_path / "t.db-wal"
    with opened(tmp_path / "t.db") as store:
        store.engine.run("CREATE TABLE big (data BLOB)")
        reader = open_reader(tmp_path / "t.db")
        reader.engine.run("BEGIN")
        assert reader.engine.rows("SELECT count(*) FROM big") == [(0,)]
        while wal.stat().st_size < 2 * WAL_KEPT:
            with store.transaction():
                store.engine.run("INSERT INTO big VALUES (randomblob(1000000))")
        assert reader.engine.rows("SELECT count(*) FROM big") == [(0,)], "it sees what it began with"
        reader.close()
        for _ in range(3):
            with store.transaction():
                store.engine.run("INSERT INTO big VALUES (randomblob(10))")
        assert wal.stat().st_size <= WAL_KEPT


KILLED_WITH_WAL = """
import os, sys
from tradewind.store.factory import open_store
store = open_store(sys.argv[1])
store.engine.run("PRAGMA wal_autocheckpoint = 0")
store.engine.run("CREATE TABLE big (data BLOB)")
for _ in range(40):
    with store.transaction():
        store.engine.run("INSERT INTO big VALUES (randomblob(1000000))")
os.kill(os.getpid(), 9)
"""


def test_a_huge_wal_of_a_killed_writer_is_taken_over(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_WITH_WAL, str(tmp_path / "t.db")], timeout=60, check=False)
    assert done.returncode == -9
    assert (tmp_path / "t.db-wal").stat().st_size > 40_000_000
    with opened(tmp_path / "t.db") as store:
        assert store.engine.rows("SELECT count(*) FROM big") == [(40,)]
        with store.transaction():
            store.engine.run("DELETE FROM big")
