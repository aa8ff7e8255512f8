"""The lease of the active scheduler on PostgreSQL: it decides which of several schedulers may write. The row of
`scheduler_lease` contains an epoch, a random text of the holder, and the end of the lease. This row alone decides who may
write: every transaction of a scheduler begins with a query for the row of its own epoch and holder, and locks the row (FOR
SHARE). A takeover changes the row, so it waits for a transaction that has begun, and every later transaction of the previous
holder finds no row.

A second connection renews the lease and holds an advisory lock. The server frees the lock as soon as this connection ends, for
example after kill -9, so that a standby need not wait for the end of the lease. The lock alone decides nothing: a stopped process
keeps it, and a scheduler that took over after the end of a lease may not get it, if another standby was faster. Therefore a
standby with the lock also looks for the holder's connection before it takes over.
"""

from __future__ import annotations

import time
from functools import partial

from tradewind.model.errors import Stale, StoreBusy, StoreError
from tradewind.store.port.lease import Holder, is_held
from tradewind.store.sql.dialects.postgres import PostgresEngine, ServerError, application_name, translate
from tradewind.store.sql.engine import Engine

LEASE_LOCK = 0x7472_6164_6501
"""Advisory lock of the scheduler that holds the lease."""

_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
_GUARD = "SELECT 1 FROM scheduler_lease WHERE id = 1 AND epoch = ? AND holder = ? FOR SHARE"

LEASE_SECONDS = 10.0
"""Duration of the lease without a renewal."""

LOAD_SECONDS = 60.0
"""Duration of the lease from a takeover to the first renewal. Meanwhile the scheduler loads its state and cannot renew."""

STEP_SECONDS = 0.25
"""Interval in which a standby checks whether it can take over."""

LOCK_TIMEOUT_MS = 1000
"""Time for which one try of a takeover waits for a transaction of the previous holder."""


_LEASE_OF = "lease of "


class PostgresLease:
    """The lease, from `acquire` to `release` or the end of the connection. Used by one thread.

    Args:
        url: as in `PostgresEngine`; not the URL of a transaction pooler.
        holder: a random text; it also names this scheduler in `pg_stat_activity`.
        protected: the connection with which the scheduler writes.
        address: address of the gateway beside this scheduler; empty: none.
        seconds: duration of the lease without a renewal.
    """

    def __init__(
        self,
        url: str,
        protected: PostgresEngine,
        holder: str,
        hostname: str,
        pid: int,
        address: str = "",
        seconds: float = LEASE_SECONDS,
    ) -> None:
        self.epoch = 0
        """The epoch of this scheduler; 0: it does not hold the lease."""
        self._holder, self._hostname, self._pid, self._address = holder, hostname, pid, address
        self._lease = round(seconds * 1_000_000)
        self._engine = PostgresEngine(  # without an answer for this time, the lease has expired
            url, busy_timeout_ms=LOCK_TIMEOUT_MS, application_name=lease_name(holder), answer_seconds=seconds
        )
        self._protected = protected
        self._has_lock = False

    def try_acquire(self) -> Holder | None:
        try:
            return self._try_acquire()
        except ServerError as error:
            raise translate(error, self._engine.path) from error

    def _try_acquire(self) -> Holder | None:
        engine = self._engine
        if not engine.connected:
            engine.reconnect()
            self._has_lock = False
        if not self._has_lock:
            self._has_lock = bool(self._value(f"SELECT pg_try_advisory_lock({LEASE_LOCK:d})"))
        row = engine.row(
            f"SELECT epoch, holder, hostname, pid, address, lease_until > {_NOW} FROM scheduler_lease WHERE id = 1"
        )
        if row is None:
            engine.run(
                """INSERT INTO scheduler_lease (id, epoch, holder, hostname, pid, lease_until) VALUES (1, 0, '', '', 0, 0)
                   ON CONFLICT (id) DO NOTHING"""
            )
            return self._try_acquire()
        epoch, holder, hostname, pid, address, is_valid = row
        if is_held(holder, is_valid, self._has_lock, partial(self._is_connected, holder)):
            return Holder(epoch, hostname, pid, address)
        if holder:
            self._end_connections(holder)
        # never a number that a scheduler has had, even after a table was restored from a backup
        taken = engine.run(
            f"""UPDATE scheduler_lease SET
                epoch = (SELECT CASE WHEN max(s.epoch) > ? THEN max(s.epoch) ELSE ? END + 1 FROM scheduler s),
                holder = ?, hostname = ?, pid = ?, address = ?, lease_until = {_NOW} + ?
                WHERE id = 1 AND epoch = ? AND holder = ?""",
            (
                epoch,
                epoch,
                self._holder,
                self._hostname,
                self._pid,
                self._address,
                round(LOAD_SECONDS * 1_000_000),
                epoch,
                holder,
            ),
        )
        if taken != 1:
            return self._current()
        self.epoch = int(self._value("SELECT epoch FROM scheduler_lease WHERE id = 1"))
        if not self._has_lock:  # the connections of the previous holder have ended, so its lock is free
            self._has_lock = bool(self._value(f"SELECT pg_try_advisory_lock({LEASE_LOCK:d})"))
        self._protect()
        return None

    def _current(self) -> Holder:
        row = self._engine.row("SELECT epoch, hostname, pid, address FROM scheduler_lease WHERE id = 1")
        assert row is not None
        return Holder(*row)

    def _value(self, sql: str) -> int:
        row = self._engine.row(sql)
        assert row is not None
        return int(row[0])

    def _is_connected(self, holder: str) -> bool:
        """Whether the connection with which the holder renews its lease exists."""
        return bool(
            self._engine.rows(
                "SELECT 1 FROM pg_stat_activity WHERE application_name = ? AND usename = current_user", (lease_name(holder),)
            )
        )

    def _end_connections(self, holder: str) -> None:
        """End the connections of a previous holder, so that none of its transactions blocks the takeover."""
        self._engine.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name IN (?, ?) AND usename = current_user",
            (application_name(holder), lease_name(holder)),
        )

    def acquire(self, timeout_seconds: float) -> None:
        until = time.monotonic() + timeout_seconds
        while True:
            try:
                holder = self.try_acquire()
                if holder is None:
                    return
                busy = StoreBusy(held_by(holder, self._engine.path))
            except StoreBusy as error:  # a transaction of the former holder
                busy = error
            if time.monotonic() >= until:
                raise busy
            time.sleep(STEP_SECONDS)

    def _protect(self) -> None:
        """Let every transaction of the scheduler begin with the check of the lease from now on."""
        self._protected.guard = lambda: (_GUARD, (self.epoch, self._holder))
        self._protected.guard_failed = self._superseded

    def _superseded(self) -> Stale:
        return Stale(f"scheduler epoch {self.epoch} was superseded; this scheduler has to exit")

    def renew(self) -> None:
        try:
            renewed = self._engine.run(
                f"UPDATE scheduler_lease SET lease_until = {_NOW} + ? WHERE id = 1 AND epoch = ? AND holder = ?",
                (self._lease, self.epoch, self._holder),
            )
        except ServerError as error:
            raise translate(error, self._engine.path) from error
        if renewed != 1:
            raise self._superseded()

    def has_standby(self) -> bool:
        try:
            return bool(
                self._engine.rows(
                    """SELECT 1 FROM pg_stat_activity
                       WHERE application_name LIKE ? AND application_name <> ? AND usename = current_user""",
                    (f"{_LEASE_OF}%", lease_name(self._holder)),
                )
            )
        except ServerError as error:
            raise translate(error, self._engine.path) from error

    def release(self) -> None:
        try:
            if self.epoch and self._engine.connected:
                self._engine.run(
                    "UPDATE scheduler_lease SET holder = '', lease_until = 0 WHERE id = 1 AND epoch = ? AND holder = ?",
                    (self.epoch, self._holder),
                )
        except (ServerError, StoreError):
            pass  # the lease expires, and the lock is free with the end of the connection
        self.epoch = 0
        self._engine.close()


def lease_name(holder: str) -> str:
    """The application name of the connection that renews the lease. PostgreSQL keeps 63 bytes of a name, so the words that
    distinguish it come first.
    """
    return f"{_LEASE_OF}{application_name(holder)}"


def active_scheduler(engine: Engine) -> Holder | None:
    """The scheduler whose lease has not ended; None: there is none. Raises our errors."""
    if not engine.has_table("scheduler_lease"):
        return None
    row = engine.row(f"SELECT epoch, hostname, pid FROM scheduler_lease WHERE holder <> '' AND lease_until > {_NOW}")
    return Holder(*row) if row is not None else None


def open_lease(url: str, protected: Engine, holder: str, hostname: str, pid: int, address: str) -> PostgresLease:
    """See `store.factory.open_lease`."""
    assert isinstance(protected, PostgresEngine)
    return PostgresLease(url, protected, holder, hostname, pid, address)


def held_by(holder: Holder, database: str) -> str:
    """Return a sentence about the holder of the lease."""
    return (
        f"another scheduler writes to the database {database}: process {holder.pid} on {holder.hostname}. Run the command there, "
        "or stop that scheduler first"
    )
