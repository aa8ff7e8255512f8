"""PostgreSQL 13 or newer: a connection, its transactions, and the translation of its errors.

The statements go through `psycopg.pq`, the binding of PostgreSQL's own client library, in pipeline mode: each is prepared once, and
many are sent in one round trip. Statements without a result (BEGIN, SAVEPOINT, RELEASE) are sent together with the next
statement. The changes of runs cost one round trip with their COMMIT: the server itself counts the rows of each guarded
statement and fails if the count is not one, so that no later statement is executed. Other transactions cost one more round
trip for the COMMIT.

The tables are in the schema `tradewind` of the database, so the database may also contain the tables of Airflow.
"""

from __future__ import annotations

import re
import select
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tradewind.model.database_urls import client_url, without_password
from tradewind.model.errors import (
    ConfigError,
    StatementError,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreInterrupted,
    StoreRefused,
    StoreUnreachable,
    StoreUnwritable,
    TradewindError,
)
from tradewind.observe.failpoints import fp
from tradewind.store.sql.engine import Change, Engine, Row
from tradewind.store.sql.visible_dags import CONDITIONS

try:
    import psycopg
    from psycopg import pq
    from psycopg.adapt import Transformer
except ImportError as missing:  # the driver is an extra
    raise ConfigError(
        f"a PostgreSQL database needs the package psycopg ({missing}); install it with: pip install 'tradewind[postgres]'"
    ) from None

if TYPE_CHECKING:
    from tradewind.store.factory import DatabaseOptions

SCHEMA = "tradewind"
"""The schema of Tradewind's tables."""

CONNECT_SECONDS = 10
"""Timeout for connecting."""

ANSWER_SECONDS = 60.0
"""Timeout for one round trip. Afterwards the connection counts as lost. Migrations have no timeout."""

SCHEDULER_ANSWER_SECONDS = 20.0
"""The same timeout for a scheduler. Its loop waits during this time, so its lease has expired afterwards, and a standby may have
taken over.
"""

IDLE_SECONDS = 30
"""The server ends a transaction that has executed no statement for this time: its process is stopped, or its machine has failed."""

PREPARED_MAX = 300
"""Maximum number of statements that a connection keeps prepared. The statement of a list depends on the number of its values, so
there may be many; the oldest are dropped.
"""

SENT_MAX = 1000
"""Maximum number of statements in one round trip, so that memory stays bounded; more statements need several round trips."""

OLDEST = 130000
"""The oldest supported server, as `server_version_num`."""

MIGRATION_LOCK = 0x7472_6164_6500
"""Advisory lock that a migrating process holds."""


class ServerError(Exception):
    """An error that the server reported, or the loss of its connection.

    Attributes:
        sqlstate: PostgreSQL's code; "08006" for a lost connection.
    """

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        self.before: list[int] = []
        """Rows that each statement of the same round trip changed, up to the one that failed."""


LOST = "08006"
"""SQLSTATE connection_failure."""

_CREATED_MEANWHILE = ("23505", "42P06")
"""SQLSTATE unique_violation and duplicate_schema: another process has just created the schema. IF NOT EXISTS does not prevent
this.
"""


class PostgresDialect:
    """Renders the common form of statements for PostgreSQL."""

    name = "postgres"
    ordered_join = "JOIN"

    def render(self, statement: str) -> str:
        return render(statement)

    def index_hint(self, index: str) -> str:
        return ""

    def contains(self, column: str) -> str:
        return f"{column} ILIKE ? ESCAPE ''"

    def ordering(self, column: str, descending: bool) -> str:
        if column.rpartition(".")[2] not in NULLABLE and "(" not in column:
            return f"{column} DESC" if descending else column
        return f"{column} DESC NULLS LAST" if descending else f"{column} NULLS FIRST"

    def translate(self, error: Exception, database: str) -> TradewindError:
        assert isinstance(error, ServerError)
        return translate(error, database)


NULLABLE = frozenset(
    {
        "bundle_version",
        "completed_at",
        "description",
        "due_at",
        "end_date",
        "ended_at",
        "file_hash",
        "host",
        "hostname",
        "interval_end",
        "interval_start",
        "last_parsed_at",
        "line",
        "logical_date",
        "missing_since",
        "next_end",
        "next_logical_date",
        "next_run_after",
        "next_start",
        "note",
        "pid",
        "queued_at",
        "reason",
        "responded_at",
        "responded_by_id",
        "responded_by_name",
        "schedule_summary",
        "source_dag",
        "source_run",
        "source_task",
        "start_date",
        "started_at",
        "team",
        "triggering_user",
    }
)
"""Columns that may be NULL somewhere. PostgreSQL sorts NULL last, the other databases first."""

POSTGRES = PostgresDialect()

_MARK = re.compile(r"\bIS NOT \?|\bIS \?|\?|\bAS INTEGER\)")


@lru_cache(maxsize=1000)
def render(statement: str) -> str:
    """Translate a statement of the common form into the SQL of PostgreSQL."""
    number = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal number
        text = found.group()
        if text == "AS INTEGER)":
            return "AS BIGINT)"
        number += 1
        if text == "IS ?":
            return f"IS NOT DISTINCT FROM ${number}"
        if text == "IS NOT ?":
            return f"IS DISTINCT FROM ${number}"
        return f"${number}"

    return _MARK.sub(replace, statement)


Encoded = tuple[list[bytes | None], list[int] | None]


def encode(values: Sequence[Any]) -> Encoded:
    """Encode parameters for the server: texts, whose types the server knows from the statement, and bytes unchanged."""
    found: list[bytes | None] = []
    formats: list[int] | None = None
    for place, value in enumerate(values):
        if value is None:
            found.append(None)
        elif isinstance(value, int):
            found.append(b"%d" % value)
        elif isinstance(value, str):
            # PostgreSQL cannot store the character NUL in a text
            found.append((value.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in value else value).encode())
        elif isinstance(value, bytes | bytearray | memoryview):
            if formats is None:
                formats = [0] * len(values)
            formats[place] = 1
            found.append(bytes(value))
        elif isinstance(value, float):
            found.append(repr(value).encode())
        else:
            raise TypeError(f"a parameter of a statement has the type {type(value).__name__}")
    return found, formats


class PostgresEngine(Engine):
    """A connection to a PostgreSQL server.

    Args:
        url: `postgresql://user:password@host:port/database?option=value`, or in SQLAlchemy's form `postgresql+psycopg2://…`.
        busy_timeout_ms: how long a statement waits for a lock of another connection.
        read_only: open for reading; writes raise.
        application_name: the name under which the server lists this connection (pg_stat_activity).
        answer_seconds: timeout of one round trip.
    """

    dialect: PostgresDialect = POSTGRES
    errors = (ServerError,)
    has_round_trips = True

    def __init__(
        self,
        url: str,
        *,
        busy_timeout_ms: int = 30_000,
        read_only: bool = False,
        application_name: str = "tradewind",
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.path = without_password(url)
        self.read_only = read_only
        self.server_version = 0
        self.guard: Callable[[], tuple[str, Sequence[Any]]] | None = None
        """The query with which every transaction begins, and its parameters. If it returns no row, `guard_failed` is raised."""
        self.guard_failed: Callable[[], Exception] = AssertionError
        self._url = client_url(url)
        self._busy_timeout_ms = busy_timeout_ms
        self._application_name = application_name
        self._shown: frozenset[str] | None = None
        self._deadline: float | None = None
        self._patience: float | None = answer_seconds
        self._connection: Any = None
        self._queued: list[tuple[str, Encoded]] = []
        self._prepared: OrderedDict[str, bytes] = OrderedDict()
        self._forgotten: list[bytes] = []
        self._names = 0
        self._in_transaction = False
        self._connect()

    # --- the connection ---------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Connect. Raises StoreError."""
        try:
            self._connection = connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                application_name=self._application_name,
                tcp_user_timeout=30_000,
            )
        except psycopg.Error as error:
            raise not_connected(error, self.path) from None
        self._pq = connection.pgconn
        self.server_version = self._pq.server_version
        if self.server_version < OLDEST:
            self.close()
            raise ConfigError(
                f"the server of {self.path} is PostgreSQL {self.server_version // 10000}; Tradewind needs PostgreSQL 13 or newer"
            )
        self._transformer = Transformer(connection)
        self._queued.clear()
        self._prepared.clear()
        self._forgotten.clear()
        self._in_transaction = False
        try:
            for statement in self._session():
                result = self._pq.exec_(statement.encode())
                if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
                    raise self._error(result)
            self._pq.nonblocking = 1
            self._pq.enter_pipeline_mode()
            if self._shown is not None:
                self._limit(self._shown)
        except ServerError as error:
            self.close()
            raise translate(error, self.path) from error

    def _session(self) -> list[str]:
        """The statements that set up the session."""
        found = [
            "SET client_encoding TO 'UTF8'",
            f"SET lock_timeout TO {self._busy_timeout_ms:d}",
            f"SET idle_in_transaction_session_timeout TO {IDLE_SECONDS * 1000:d}",
            "SET default_transaction_isolation TO 'read committed'",
            "SET statement_timeout TO 0",
            f"SET search_path TO {SCHEMA}",
        ]
        if self.read_only:
            found.append("SET default_transaction_read_only TO on")
        return found

    @property
    def connected(self) -> bool:
        """Whether the connection is open, as far as this process knows."""
        return self._connection is not None and self._pq.status == pq.ConnStatus.OK

    @property
    def backend(self) -> int:
        """Process id of the server process for this connection."""
        return int(self._pq.backend_pid)

    def reconnect(self) -> None:
        """Connect again after the connection was lost. Not inside a transaction. Raises StoreError."""
        self.close()
        self._connect()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._in_transaction = False
        self._queued.clear()

    def _lost(self, why: str) -> ServerError:
        """Mark the connection as unusable, and return the error."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._queued.clear()
        return ServerError(LOST, " ".join(why.split()))

    # --- statements -------------------------------------------------------------------------------------------------

    def _send(self, sql: str, parameters: Encoded, prepared_now: dict[str, bytes]) -> int:
        """Put one statement into the pipeline. Returns the number of commands that this takes: each command has a result."""
        values, formats = parameters
        name = self._prepared.get(sql) or prepared_now.get(sql)
        commands = 1
        if name is None:
            self._names += 1
            name = b"t%d" % self._names
            self._pq.send_prepare(name, render(sql).encode())
            prepared_now[sql] = name
            commands = 2
        self._pq.send_query_prepared(name, values, formats, 1)
        return commands

    def _round_trip(self, statements: Sequence[tuple[str, Encoded]]) -> list[Any]:
        """Execute statements in one round trip, after the queued ones. Returns their results."""
        if self._connection is None:
            raise ServerError(LOST, "the connection to the server was lost")
        queued, self._queued = self._queued, []
        everything = [*queued, *statements] if queued else statements
        guard_at = next((i for i, one in enumerate(queued) if one[0] is _GUARD), -1) if self.guard is not None else -1
        prepared_now: dict[str, bytes] = {}
        try:
            expected = 0
            is_prepare: list[bool] = []
            for sql, parameters in everything:
                if sql is _GUARD:
                    assert self.guard is not None
                    text, values = self.guard()
                    sql, parameters = text, encode(values)
                commands = self._send(sql, parameters, prepared_now)
                is_prepare += [True, False] if commands == 2 else [False]
                expected += commands
            forgotten, self._forgotten = self._forgotten, []
            for name in forgotten:
                self._pq.send_query_params(b"DEALLOCATE " + name, None)
            self._pq.pipeline_sync()
            results = self._receive()[:expected]
        except psycopg.Error as error:
            raise self._lost(str(error).strip()) from None
        failed: ServerError | None = None
        found: list[Any] = []
        for result, prepare in zip(results, is_prepare, strict=True):
            status = result.status
            if status == pq.ExecStatus.FATAL_ERROR and failed is None:
                failed = self._error(result)
                failed.before = [one.command_tuples or 0 for one in found[len(queued) :]]
            elif not prepare:
                found.append(result)
        if failed is not None:
            # which statements of this trip are prepared is unknown: their names are not used again
            if self._pq.status != pq.ConnStatus.OK:
                self._lost(str(failed))
            raise failed
        for sql, name in prepared_now.items():
            self._remember(sql, name)
        if guard_at >= 0 and found[guard_at].ntuples == 0:
            raise self.guard_failed()
        return found[len(queued) :]

    def _remember(self, sql: str, name: bytes) -> None:
        self._prepared[sql] = name
        if len(self._prepared) > PREPARED_MAX:
            _, oldest = self._prepared.popitem(last=False)
            self._forgotten.append(oldest)

    def _receive(self) -> list[Any]:
        """Return the results of all commands of a round trip."""
        results: list[Any] = []
        connection = self._pq
        socket = connection.socket
        poller = select.poll()
        until = None if self._patience is None else time.monotonic() + self._patience
        deadline, cancelled = self._deadline, False
        unsent = connection.flush()
        while True:
            while not connection.is_busy():
                result = connection.get_result()
                if connection.status != pq.ConnStatus.OK:
                    failed = [one for one in results if one.status == pq.ExecStatus.FATAL_ERROR]
                    raise self._lost(str(self._error(failed[0])) if failed else "the server closed the connection")
                if result is None:  # the end of the results of one command
                    continue
                if result.status == pq.ExecStatus.PIPELINE_SYNC:
                    if cancelled:
                        self._await_cancel()
                        raise ServerError("57014", "canceling statement due to time limit")
                    return results
                results.append(result)
            now = time.monotonic()
            if deadline is not None and not cancelled and now >= deadline:
                self._cancel()
                cancelled = True
            if until is not None and now >= until:
                raise self._lost(f"the server did not answer within {self._patience:g} s")
            ends = [one for one in (until, None if cancelled else deadline) if one is not None]
            wait = None if not ends else max(0.0, min(ends) - now) * 1000 + 1
            poller.register(socket, select.POLLIN | (select.POLLOUT if unsent else 0))
            events = poller.poll(wait)
            if not events:
                continue
            if unsent and events[0][1] & select.POLLOUT:
                unsent = connection.flush()
            if events[0][1] & ~select.POLLOUT:
                connection.consume_input()
                if unsent:
                    unsent = connection.flush()

    def _cancel(self) -> None:
        """Ask the server to cancel the running statement."""
        try:
            self._pq.get_cancel().cancel()
        except psycopg.Error:
            pass  # the connection is lost; the next statement notices this

    def _await_cancel(self) -> None:
        """After a request to cancel, execute a statement without effect. The request cancels this statement if the other one had
        already ended.
        """
        self._deadline = None
        for _ in range(2):
            self._pq.send_query_params(b"SELECT 1", None)
            self._pq.pipeline_sync()
            self._receive()

    def _error(self, result: Any) -> ServerError:
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        text = result.error_message.decode(errors="replace").strip() if hasattr(result, "error_message") else ""
        primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        detail = result.error_field(pq.DiagnosticField.MESSAGE_DETAIL)
        parts = [part.decode(errors="replace") for part in (primary, detail) if part]
        return ServerError(
            state.decode() if state else LOST, "; ".join(parts) or text or "the connection to the server was lost"
        )

    def _one(self, sql: str, parameters: Any) -> Any:
        (result,) = self._round_trip([(sql, encode(parameters))])
        return result

    def _query(self, sql: str, parameters: Any) -> Any:
        """Execute a query; outside of a transaction it is repeated once on a new connection if the old one was lost."""
        try:
            if self._connection is None and not self._in_transaction and self.guard is None:
                self.reconnect()
            return self._one(sql, parameters)
        except ServerError as error:
            if self._in_transaction or self.guard is not None or not is_lost(error):
                raise translate(error, self.path) from error
        self.reconnect()
        try:
            return self._one(sql, parameters)
        except ServerError as error:
            raise translate(error, self.path) from error

    def rows(self, sql: str, parameters: Any = ()) -> list[Row]:
        return self._load(self._query(sql, parameters))

    def row(self, sql: str, parameters: Any = ()) -> Row | None:
        found = self._load(self._query(sql, parameters), 1)
        return found[0] if found else None

    def _load(self, result: Any, at_most: int | None = None) -> list[Row]:
        count = result.ntuples if at_most is None else min(at_most, result.ntuples)
        if not count:
            return []
        self._transformer.set_pgresult(result, set_loaders=True, format=1)
        found: list[Row] = self._transformer.load_rows(0, count, tuple)
        return found

    def run(self, sql: str, parameters: Any = ()) -> int:
        return self._one(sql, parameters).command_tuples or 0

    def insert(self, sql: str, parameters: Any = ()) -> int:
        ((number,),) = self._load(self._one(f"{sql} RETURNING id", parameters))
        return int(number)

    def many(self, sql: str, parameters: Any) -> int:
        return sum(result.command_tuples or 0 for result in self._all([(sql, encode(one)) for one in parameters]))

    def execute(self, changes: Iterable[Change]) -> bool:
        """See `Engine`. All statements are sent at once. If a statement fails after a guarded statement that did not match,
        the answer is also False.
        """
        wanted = [(sql, one, guarded) for sql, parameters, guarded in changes for one in parameters]
        for start in range(0, len(wanted), SENT_MAX):
            part = wanted[start : start + SENT_MAX]
            try:
                done = [one.command_tuples or 0 for one in self._round_trip([(sql, encode(values)) for sql, values, _ in part])]
            except ServerError as error:
                if _missed(part, error.before):
                    return False
                raise
            if _missed(part, done):
                return False
        return True

    def commit_changes(self, changes: Sequence[Change]) -> bool:
        """See `Engine`. Transactions that are too large for one round trip are executed step by step."""
        wanted = [(_counted(sql) if guarded else sql, one) for sql, parameters, guarded in changes for one in parameters]
        if self._queued or self._in_transaction or len(wanted) > SENT_MAX:
            return super().commit_changes(changes)
        begun: list[tuple[str, Encoded]] = [_BEGIN]
        if self.guard is not None:
            text, values = self.guard()
            begun.append((_counted(text), encode(values)))
        statements = [*begun, *((sql, encode(values)) for sql, values in wanted), ("COMMIT", ([], None))]
        fp("store.before_commit")
        try:
            self._round_trip(statements)
        except ServerError as error:
            self._in_transaction = True
            self.roll_back()
            if error.sqlstate != MISSED:
                raise translate(error, self.path) from error
            if len(error.before) == 1 and self.guard is not None:
                raise self.guard_failed() from None
            return False
        fp("store.after_commit")
        return True

    def _all(self, statements: list[tuple[str, Encoded]]) -> list[Any]:
        if len(statements) <= SENT_MAX:
            return self._round_trip(statements) if statements else []
        return [
            one
            for start in range(0, len(statements), SENT_MAX)
            for one in self._round_trip(statements[start : start + SENT_MAX])
        ]

    # --- transactions -----------------------------------------------------------------------------------------------

    @property
    def is_guarded(self) -> bool:
        return self.guard is not None

    @property
    def in_transaction(self) -> bool:
        return self._in_transaction

    def begin(self) -> None:
        if self._connection is None:
            if self.guard is not None:
                raise ServerError(LOST, "the connection to the server was lost")
            self.reconnect()
        self._in_transaction = True
        self._queued.append(_BEGIN)
        if self.guard is not None:
            self._queued.append((_GUARD, ([], None)))

    def commit(self) -> None:
        if self._queued and self._queued[0] is _BEGIN:  # nothing was executed
            self._queued.clear()
            self._in_transaction = False
            return
        result = self._one("COMMIT", ())
        self._in_transaction = False
        if result.command_status != b"COMMIT":
            raise ServerError("25P02", f"the server rolled the transaction back ({result.command_status!r})")

    def roll_back(self) -> None:
        if not self._in_transaction:
            return
        self._in_transaction = False
        begun = not (self._queued and self._queued[0] is _BEGIN)
        self._queued.clear()
        if begun and self._connection is not None:
            try:
                self._one("ROLLBACK", ())
            except ServerError:
                self._lost("the transaction could not be rolled back")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        mark: tuple[str, Encoded] = ("SAVEPOINT part", ([], None))
        self._queued.append(mark)
        try:
            yield
        except BaseException:
            place = self._place(mark)
            if place is not None:  # nothing was executed since
                del self._queued[place:]
            elif self._in_transaction:
                self._queued += [_ROLL_BACK_PART, _RELEASE_PART]
            raise
        if self._place(mark) is None:
            self._queued.append(_RELEASE_PART)
        else:
            del self._queued[self._place(mark) :]

    def _place(self, mark: tuple[str, Encoded]) -> int | None:
        """The position of a statement in the queue; None: it was already sent."""
        return next((place for place, one in enumerate(self._queued) if one is mark), None)

    def exclusive(self) -> None:
        self._one(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK:d})", ())

    # --- the database as a whole --------------------------------------------------------------------------------------

    def prepare_schema(self) -> None:
        """Create the schema of the tables if there is none. Raises our errors."""
        if self.row("SELECT 1 FROM pg_namespace WHERE nspname = ?", (SCHEMA,)) is None:
            try:
                self.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            except ServerError as error:
                if error.sqlstate not in _CREATED_MEANWHILE:
                    raise translate(error, self.path) from error

    def has_table(self, name: str) -> bool:
        sql = """SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = ? AND c.relname = ? AND c.relkind IN ('r', 'p')"""
        return self.row(sql, (SCHEMA, name)) is not None

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        self._deadline = time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = None

    @contextmanager
    def without_deadline(self) -> Iterator[None]:
        before, self._patience = self._patience, None
        try:
            yield
        finally:
            self._patience = before

    def show_only(self, dag_ids: Collection[str]) -> None:
        """See `Engine`. Temporary views come before the tables of the same name."""
        wanted = frozenset(dag_ids)
        try:
            if self._connection is None:
                self._shown = wanted
                self.reconnect()
                return
            self._limit(wanted)
        except ServerError as error:
            raise translate(error, self.path) from error
        self._shown = wanted

    def _limit(self, dag_ids: frozenset[str]) -> None:
        plain: Encoded = ([], None)
        statements: list[tuple[str, Encoded]] = [("BEGIN READ WRITE", plain)]
        (found,) = self._round_trip([("SELECT 1 FROM pg_class WHERE oid = to_regclass('pg_temp.visible_dag_id')", plain)])
        if not found.ntuples:
            self._round_trip(
                [
                    *statements,
                    ("SET LOCAL client_min_messages TO warning", plain),
                    ('CREATE TEMP TABLE visible_dag_id (dag_id TEXT COLLATE "C" PRIMARY KEY)', plain),
                    ("COMMIT", plain),
                ]
            )
            # each view needs its own round trip: the server parses all statements of a trip before it creates the first view
            views = []
            for table, condition in CONDITIONS.items():
                where = condition.format(main=f"{SCHEMA}.", table=table, visible="pg_temp.visible_dag_id")
                views.append((f"CREATE TEMP VIEW {table} AS SELECT * FROM {SCHEMA}.{table} {table} WHERE {where}", plain))
            self._round_trip([*statements, *views, ("COMMIT", plain)])
            self._prepared.clear()  # these statements were prepared for the whole tables
        self._round_trip(
            [
                *statements,
                ("DELETE FROM pg_temp.visible_dag_id", plain),
                *(("INSERT INTO pg_temp.visible_dag_id (dag_id) VALUES (?)", encode((one,))) for one in sorted(dag_ids)),
                ("COMMIT", plain),
            ]
        )

    def release_memory(self) -> None:
        """Do nothing: the server manages its own memory."""

    def copy_into(self, other: Engine) -> None:
        raise StoreError(f"{self.path} cannot be copied as a whole; use pg_dump")

    def back_up(self, file: str) -> None:
        raise StoreError(
            f"{self.path} is backed up with PostgreSQL's own tools, for example: pg_dump --format=custom --file={file}"
        )

    def problems(self, at_most: int) -> list[str]:
        """PostgreSQL detects damage of its files by checksums when it reads them. So this reads every row once."""
        found = []
        tables = self.rows(
            """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = ? AND c.relkind IN ('r', 'p') ORDER BY c.relname""",
            (SCHEMA,),
        )
        with self.without_deadline():
            for (table,) in tables:
                try:
                    self.row(f'SELECT count(*), max(pg_column_size(t.*)) FROM {SCHEMA}."{table}" t')
                except StoreError as error:
                    found.append(f"{table}: {error}")
        return found[:at_most]

    def size(self) -> int:
        """Size of the tables and indexes of Tradewind's schema."""
        sql = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'"""
        ((found,),) = self.rows(sql, (SCHEMA,))
        return int(found)

    def kind(self) -> dict[str, Any]:
        found = self.settings()
        return {"server": f"PostgreSQL {found['server_version']}", "synchronous_commit": found["synchronous_commit"]}

    def erase(self) -> bool:
        try:
            found = self.row("SELECT 1 FROM pg_namespace WHERE nspname = ?", (SCHEMA,)) is not None
            self.run("SET client_min_messages TO warning")
            self.run(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        except ServerError as error:
            raise translate(error, self.path) from error
        self._prepared.clear()
        return found

    def settings(self) -> dict[str, Any]:
        names = ("server_version", "synchronous_commit", "fsync", "max_connections", "lock_timeout", "search_path")
        rows = self.rows("SELECT name, setting FROM pg_settings WHERE name IN (?, ?, ?, ?, ?, ?)", names)
        return dict(rows)

    def query(self, sql: str) -> tuple[list[str], list[Row]]:
        try:
            result = self._execute_plain(sql)
        except ServerError as error:
            raise StoreError(f"the statement failed: {error}") from None
        names = [(result.fname(place) or b"").decode() for place in range(result.nfields)]
        return names, self._load_text(result)

    def _execute_plain(self, sql: str) -> Any:
        """Execute a statement of a user, without parameters and without preparing it."""
        if self._connection is None:
            self.reconnect()
        self._pq.send_query_params(sql.encode(), None, None, None, None, 0)
        self._pq.pipeline_sync()
        (result,) = self._receive()
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise self._error(result)
        return result

    @staticmethod
    def _load_text(result: Any) -> list[Row]:
        def value(row: int, column: int) -> Any:
            found = result.get_value(row, column)
            if found is None:
                return None
            text = found.decode(errors="replace")
            return int(text) if result.ftype(column) in (20, 21, 23) else text

        return [tuple(value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]

    @property
    def is_current(self) -> bool:
        """Whether a lost connection can be opened again: yes for a reader; for a scheduler, the loss ends its epoch."""
        return self.guard is None or self.connected

    def replaced(self) -> str | None:
        return None


_BEGIN: tuple[str, Encoded] = ("BEGIN", ([], None))
_ROLL_BACK_PART: tuple[str, Encoded] = ("ROLLBACK TO SAVEPOINT part", ([], None))
_RELEASE_PART: tuple[str, Encoded] = ("RELEASE SAVEPOINT part", ([], None))
_GUARD = "the guard of the transaction"


def application_name(holder: str) -> str:
    """The application name of the connections of a scheduler."""
    return f"tradewind scheduler {holder}"


MISSED = "22012"
"""SQLSTATE division_by_zero: a statement of `_counted` did not change its row."""


@lru_cache(maxsize=200)
def _counted(statement: str) -> str:
    """Return a statement that fails unless the given statement changes, or finds, exactly one row: otherwise it divides by 0."""
    returning = "" if statement.startswith("SELECT") else " RETURNING 1"
    return f"WITH found AS ({statement}{returning}) SELECT 1 / CASE WHEN count(*) = 1 THEN 1 ELSE 0 END FROM found"


def _missed(statements: Sequence[tuple[str, Row, bool]], done: Sequence[int]) -> bool:
    """Whether a guarded statement did not change exactly one row. `done`: numbers of changed rows of the first statements."""
    return any(guarded and rows != 1 for (_, _, guarded), rows in zip(statements, done, strict=False))


def connect(url: str, options: DatabaseOptions, *, read_only: bool) -> PostgresEngine:
    """Connect to the database of a URL. For writing, create Tradewind's schema if it does not exist."""
    engine = PostgresEngine(
        url,
        busy_timeout_ms=options.busy_timeout_ms,
        read_only=read_only,
        application_name=application_name(options.holder) if options.holder else "tradewind",
        answer_seconds=SCHEDULER_ANSWER_SECONDS if options.holder else ANSWER_SECONDS,
    )
    if not read_only:
        engine.prepare_schema()
    return engine


# --- errors ----------------------------------------------------------------------------------------------------------

_KINDS: dict[str, type[TradewindError]] = {
    "55P03": StoreBusy,  # lock_not_available
    "40P01": StoreBusy,  # deadlock_detected
    "40001": StoreBusy,  # serialization_failure
    "55006": StoreBusy,  # object_in_use
    "53100": StoreFull,  # disk_full
    "58030": StoreFull,  # io_error
    "25006": StoreUnwritable,  # read_only_sql_transaction
    "42501": StoreUnwritable,  # insufficient_privilege
    "57014": StoreInterrupted,  # query_canceled
}
"""SQLSTATE → error class of Tradewind; classes of codes are below. Any other code is a bug in Tradewind: a statement that
PostgreSQL refuses.
"""

_CLASSES: dict[str, type[TradewindError]] = {
    "08": StoreUnreachable,  # connection exceptions
    "22": StoreRefused,  # data exceptions: a number out of range, an invalid text
    "23": StoreRefused,  # constraints
    "28": StoreUnreachable,  # authentication
    "3D": StoreUnreachable,  # no such database
    "53": StoreUnreachable,  # no connection is free, no memory
    "54": StoreRefused,  # program limits: a value that is too large
    "57": StoreUnreachable,  # the server was shut down or restarts, or an administrator ended the connection
    "58": StoreError,  # system errors
    "XX": StoreError,  # internal errors, damaged data
}


def is_lost(error: ServerError) -> bool:
    """Whether an error means that the connection is lost."""
    return error.sqlstate[:2] == "08" or error.sqlstate in ("57P01", "57P02", "57P03", "25P03", "57P05")


_OTHER_SESSION = {"42P05", "26000"}
"""A prepared statement exists already, or does not exist: the session is not the one in which this process prepared it."""


def translate(error: ServerError, database: str) -> TradewindError:
    """Translate an error of the server by its code. The message says what to do."""
    text = f"{error} [{error.sqlstate}]"
    if error.sqlstate == "25P03":
        return StoreUnreachable(
            f"the database {database} ended a transaction of this process, which was stopped meanwhile ({text})"
        )
    if error.sqlstate in _OTHER_SESSION:
        return StatementError(
            f"the database {database} is used through a pooler that gives each transaction another session, such as PgBouncer with "
            f"pool_mode = transaction ({text}). Tradewind needs a session for each of its connections: let "
            "TRADEWIND__DATABASE__URL name the server itself, or set pool_mode = session for this database"
        )
    kind = _KINDS.get(error.sqlstate) or _CLASSES.get(error.sqlstate[:2], StatementError)
    if kind is StoreRefused:
        return StoreRefused(f"the database {database} refuses this: {text}")
    if kind is StoreInterrupted:
        return StoreInterrupted(f"a query to the database {database} took too long and was cancelled ({text})")
    if kind is StoreBusy:
        return StoreBusy(
            f"the database {database} is locked by another connection ({text}); Tradewind tries again. "
            "If this goes on, find it with: SELECT * FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        )
    if kind is StoreUnwritable:
        return StoreUnwritable(
            f"the database {database} cannot be written ({text}). The user needs CREATE on the database, or owns its schema "
            f"{SCHEMA}: CREATE SCHEMA {SCHEMA} AUTHORIZATION …; a standby server is read-only: name the primary one."
        )
    if kind is StoreFull:
        return StoreFull(
            f"the disk of the database {database} is full or has an error ({text}); nothing was lost. "
            "Work continues by itself when the server can write again."
        )
    if kind is StoreUnreachable:
        return StoreUnreachable(
            f"the database {database} cannot be reached ({text}). Work continues by itself when the server answers again."
        )
    if kind is StoreError:
        return StoreError(f"the database {database} reported: {text}; Tradewind tries again. See the server's log")
    return StatementError(
        f"the database {database} does not understand a statement of Tradewind ({text}). If nobody has changed its tables by hand, "
        "this is a bug in Tradewind: please report it, with the traceback from the log"
    )


def not_connected(error: Exception, database: str) -> TradewindError:
    """Return the error for a connection that could not be made."""
    text = " ".join(str(error).split())
    state: str | None = getattr(error, "sqlstate", None)
    if "does not exist" in text and "database" in text:
        return StoreUnreachable(f"the server has no such database ({text}). Create it: CREATE DATABASE …, or: createdb …")
    return StoreUnreachable(f"the database {database} cannot be reached ({text}{f' [{state}]' if state else ''})")
