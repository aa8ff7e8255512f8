"""The store of the simulation: production's store in memory, with faults. It reports every commit.

A fault happens at a statement, or at the start or the end of a transaction: busy, full, a commit with an unknown outcome (an
error, but written or not), and a crash at any of these steps. Each commit is reported to `StoreFaults.committed` at once.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from tradewind.model.definition import decode_definition
from tradewind.model.errors import StoreBusy, StoreError, StoreFull
from tradewind.model.rows import Batch, Committed
from tradewind.model.waits import Deferral, Resumption
from tradewind.simulation.shadow import AssetEvent, Change, Dag, Delivery, Miss, Pool, Post, Run, Step, Task, Try, Wait
from tradewind.simulation.timeline import Crash, Process, Timeline
from tradewind.store.memory import empty_database
from tradewind.store.sql.dags import unpack_definition
from tradewind.store.sql.dialects.sqlite import SqliteEngine
from tradewind.store.sql.store import SqlStore

ENDLESS = 5_000
"""Maximum number of transactions at one moment. If there are more, the process counts as repeating itself forever."""


class StoreFaults:
    """Decides which faults the store has now, and receives every commit.

    Args:
        committed: called after each commit with its changes.
    """

    def __init__(self, timeline: Timeline, committed: Callable[[list[Change]], None]) -> None:
        self.timeline = timeline
        self.committed = committed
        self.rng: random.Random = timeline.stream("store")
        self.worker: Process | None = None
        """The process that uses the store now."""
        self.fail_in = -1
        """Number of statements until the next failure; negative: no failure."""
        self.failure = "busy"
        self.broken_until = 0
        """Time until which every transaction fails with `failure`."""
        self.unknown = 0.0
        """Share of commits with an unknown outcome."""
        self.epoch: int | None = None
        """Epoch of the scheduler whose batch is being written; None outside of a batch."""
        self.shares: set[int] = set()
        """Runs that the batch writes."""
        self.endless: Callable[[], None] = lambda: None
        """Called when too many transactions happen at one time."""
        self.cut_off: Callable[[Process], bool] = lambda process: False
        """Whether the machine of a process cannot reach the database."""
        self._moment = self._turns = 0
        self.quiet = 0
        """Above 0: the checks read the store, and nothing fails."""

    def step(self, what: str) -> None:
        if self.worker is not None:
            self.worker.step(what)

    def statement(self) -> str | None:
        """Return the error of the next statement or query, or None."""
        if self.quiet or self.worker is None:
            return None
        if self.cut_off(self.worker):
            return "busy"
        if self.fail_in >= 0:
            self.fail_in -= 1
            if self.fail_in < 0:
                self.timeline.faults[f"store {self.failure} at a statement"] += 1
                return self.failure
        return None

    def begin(self) -> str | None:
        """Return the error of the start of a transaction, or None."""
        if self.quiet or self.worker is None:
            return None
        self.step("begin")
        self._turns = self._turns + 1 if self._moment == self.timeline.now else 0
        self._moment = self.timeline.now
        if self._turns > ENDLESS:
            self.endless()
            raise Crash
        if self.cut_off(self.worker):
            return "busy"
        if self.broken_until > self.timeline.now:
            self.timeline.faults[f"store {self.failure} for a while"] += 1
            return self.failure
        return None

    def commit_is_unknown(self) -> str | None:
        """Return the outcome of a commit that raises an error: "applied" or "lost"; None: the commit raises no error."""
        if self.quiet or self.worker is None:
            return None
        self.step("commit")
        if self.unknown and self.rng.random() < self.unknown:
            which = self.rng.choice(("applied", "lost"))
            self.timeline.faults[f"commit unknown, {which}"] += 1
            return which
        return None

    @contextmanager
    def writing(self, batch: Batch) -> Iterator[None]:
        self.epoch, self.shares = batch.epoch, {write.run for write in batch.runs}
        try:
            yield
        finally:
            self.epoch, self.shares = None, set()

    def done(self, changes: list[Change]) -> None:
        if changes:
            self.committed(changes)


def _error(failure: str) -> StoreError:
    if failure == "full":
        return StoreFull("the disk is full (simulated)")
    return StoreBusy("the database is held by somebody else (simulated)")


_WATCHED = {
    "dag_run": ("run", ("id",)),
    "task_instance": ("task", ("run", "slot")),
    "journal": ("journal", ("run", "seq")),
    "attempt": ("attempt", ("run", "slot", "fence")),
    "xcom": ("xcom", ("run", "task_id", "map_index", "key")),
    "deferral": ("wait", ("run", "slot")),
    "pool": ("pool", ("name",)),
    "dag": ("dag", ("dag_id",)),
    "dag_version": ("version", ("id",)),
    "scheduler": ("epoch", ("epoch",)),
    "outbox": ("outbox", ("id",)),
    "deadline_miss": ("miss", ("id",)),
    "asset_event": ("asset event", ("id",)),
    "asset_delivery": ("delivery", ("dag_id", "event", "target")),
}

_READ = {
    "run": """SELECT dag_id, run_id, run_type, state, version, logical_date, run_after, started_at, ended_at, revision, journal_seq,
        clear_number, task_count, rows_created, backfill, queued_at FROM dag_run WHERE id = ?""",
    "task": """SELECT state, fence, try_number, max_tries, resume, requeues, coalesce(due_at, 0), coalesce(started_at, 0),
        coalesce(ended_at, 0), task_id, map_index FROM task_instance WHERE run = ? AND slot = ?""",
    "journal": "SELECT slot, fence, before, after, at, cause FROM journal WHERE run = ? AND seq = ?",
    "attempt": """SELECT try_number, nonce, started_at, ended_at, outcome FROM attempt
        WHERE run = ? AND slot = ? AND fence = ?""",
    "xcom": "SELECT value FROM xcom WHERE run = ? AND task_id = ? AND map_index = ? AND key = ?",
    "wait": "SELECT fence, since, deferral, resumption FROM deferral WHERE run = ? AND slot = ?",
    "pool": "SELECT slots, include_deferred FROM pool WHERE name = ?",
    "dag": "SELECT version, is_paused, is_active FROM dag WHERE dag_id = ?",
    "version": "SELECT definition FROM dag_version WHERE id = ?",
    "epoch": "SELECT epoch FROM scheduler WHERE epoch = ?",
    "outbox": "SELECT identity, payload, created_at, due_at, tries, parked, kind, run FROM outbox WHERE id = ?",
    "miss": "SELECT run, task_id, name, due_at FROM deadline_miss WHERE id = ?",
    "asset event": """SELECT a.name, a.id, e.source_dag, e.source_run, coalesce(e.source_task, ''), e.source_index, e.at,
        e.extra, e.aliases FROM asset_event e JOIN asset a ON a.id = e.asset WHERE e.id = ?""",
    "delivery": "SELECT counts, outcome, run FROM asset_delivery WHERE dag_id = ? AND event = ? AND target = ?",
}

_decode_deferral = msgspec.msgpack.Decoder(Deferral).decode
_decode_resumption = msgspec.msgpack.Decoder(Resumption).decode

_SHAPES: dict[str, Callable[..., Any]] = {
    "run": Run,
    "task": lambda s, f, t, m, r, *rest: Task(s, f, t, m, bool(r), *rest),
    "journal": Step,
    "attempt": Try,
    "wait": lambda fence, since, deferral, resumption: Wait(
        fence, since, _decode_deferral(deferral), None if resumption is None else _decode_resumption(resumption)
    ),
    "pool": lambda slots, counts: Pool(slots, bool(counts)),
    "outbox": Post,
    "miss": Miss,
    "asset event": lambda *parts: AssetEvent(*parts)._replace(aliases=tuple(msgspec.json.decode(parts[-1]))),
    "delivery": lambda counts, outcome, run: Delivery(bool(counts), outcome, run),
    "version": lambda data: decode_definition(unpack_definition(data)),
    "dag": lambda version, paused, active: Dag(version, bool(paused), bool(active)),
}


def _sqlite_error(text: str, code: int) -> sqlite3.OperationalError:
    """An error like those of the sqlite3 module."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


class _FaultyDatabase:
    """A connection of the sqlite3 module with the faults of `StoreFaults`. A rollback never fails."""

    def __init__(self, real: sqlite3.Connection, store_faults: StoreFaults) -> None:
        self._real = real
        self._faults = store_faults
        self.changes: list[Change] = []
        """The outcome of the current transaction."""

    @property
    def in_transaction(self) -> bool:
        return self._real.in_transaction

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        self._fail(sql)
        cursor = self._real.execute(sql, parameters)
        if sql == "COMMIT":
            changes, self.changes = self.changes, []
            self._faults.done(changes)
        return cursor

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        self._fail(sql)
        return self._real.executemany(sql, parameters)

    def _fail(self, sql: str) -> None:
        if sql.startswith(("ROLLBACK", "RELEASE")):
            return
        failure = self._faults.statement()
        if failure is not None:
            if failure == "full":
                raise _sqlite_error("database or disk is full", sqlite3.SQLITE_FULL)
            raise _sqlite_error("database is locked", sqlite3.SQLITE_BUSY)

    def close(self) -> None:
        self._real.close()


class _WorldEngine(SqliteEngine):
    def __init__(self, store_faults: StoreFaults) -> None:
        super().__init__(":memory:")
        self.store_faults = store_faults
        self.plain: sqlite3.Connection | None = None
        """The connection without faults, after `watch`."""

    def watch(self) -> None:
        """Record every change with SQL triggers. From now on, statements may fail."""
        db = self.db
        db.execute("CREATE TEMP TABLE changed (kind TEXT, a, b, c, d)")
        for table, (kind, columns) in _WATCHED.items():
            for event, rows in (("INSERT", ("NEW",)), ("UPDATE", ("NEW",)), ("DELETE", ("OLD",))):
                for row in rows:
                    values = ", ".join([f"{row}.{column}" for column in columns] + ["NULL"] * (4 - len(columns)))
                    db.execute(
                        f"CREATE TEMP TRIGGER changed_{table}_{event} AFTER {event} ON main.{table} "
                        f"BEGIN INSERT INTO changed VALUES ('{kind}', {values}); END"
                    )
        self.plain = db
        self.db = cast(Any, _FaultyDatabase(db, self.store_faults))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        plain = self.plain
        if plain is None or self.db.in_transaction:
            with super().transaction():
                yield
            return
        store_faults = self.store_faults
        failure = store_faults.begin()
        if failure is not None:
            raise _error(failure)
        with super().transaction():
            yield
            unknown = store_faults.commit_is_unknown()
            if unknown == "lost":
                raise _sqlite_error("disk I/O error", sqlite3.SQLITE_IOERR)
            cast(_FaultyDatabase, self.db).changes = _changes(plain)
        store_faults.step("committed")
        if unknown == "applied":
            raise StoreError("nobody knows whether the commit was written (simulated)")


def _changes(plain: sqlite3.Connection) -> list[Change]:
    """Return the changes of the current transaction."""
    found = []
    for kind, *parts in plain.execute("SELECT DISTINCT kind, a, b, c, d FROM changed").fetchall():
        key = tuple(part for part in parts if part is not None)
        row = plain.execute(_READ[kind], key).fetchone()
        shape = _SHAPES.get(kind)
        found.append((kind, key, None if row is None else shape(*row) if shape is not None else row[0]))
    plain.execute("DELETE FROM changed")
    return found


class WorldStore(SqlStore):
    """The store with faults."""

    def __init__(self, store_faults: StoreFaults) -> None:
        self._faults = store_faults
        engine = _WorldEngine(store_faults)
        empty_database().copy_into(engine)
        super().__init__(engine)
        engine.watch()
        store_faults.done([("pool", (pool.name,), Pool(pool.slots, pool.include_deferred)) for pool in self.pools()])

    def commit(self, batch: Batch) -> Committed:
        with self._faults.writing(batch):
            return super().commit(batch)

    def release_memory(self) -> None:
        self._definitions.clear()
