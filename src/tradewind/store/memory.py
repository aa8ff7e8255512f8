"""The store without a file: the same verbs on plain dictionaries.

The twin of the SQLite store. It shares its nouns and none of its code, and one suite holds the two to the same answers. It serves
`dag.test()`, the test kit and simulations: nothing survives the process, everything else is as in production, guards, atomic
shares and roll-backs included.

A roll-back works by an undo log: tables note what a key held before it changed. So a transaction costs what it touches, however
much the store holds. Rows are immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from tradewind.model.assets import encode_asset_schedule
from tradewind.model.definition import DagDefinition, decode_definition, encode_schedule
from tradewind.model.errors import Conflict, NotFound, Stale, StoreRefused, did_you_mean
from tradewind.model.rows import (
    AssetEventRow,
    AssetRow,
    AttemptEnd,
    AttemptStart,
    BackfillOutcome,
    BackfillRow,
    Batch,
    Committed,
    ConnectionRow,
    DagPlan,
    DeadlineMiss,
    DeferralRow,
    FeedEntry,
    ImportProblem,
    JobRow,
    JournalEntry,
    LiveAttempt,
    Marked,
    NewRun,
    OpenWaitRow,
    OutboxItem,
    ParsedDag,
    ParsedFile,
    PoolRow,
    Removed,
    RemovedRun,
    RetiredLog,
    RunRow,
    RunSnapshot,
    RunWrite,
    SchedulePosition,
    Skipped,
    TaskRow,
    VariableRow,
    XComWrite,
)
from tradewind.model.states import FINISHED_RUNS, RunState, RunType, TaskState
from tradewind.store.memory_assets import Delivery, MemoryAssets
from tradewind.store.memory_backfills import MemoryBackfills
from tradewind.store.memory_jobs import MemoryJobs
from tradewind.store.memory_outbox import MemoryOutbox

CREATE_CHUNK = 2000
"""Rows of task instances made with a run; the rest of a huge run follows by `Batch.more_rows`."""

KEPT_OPS = 24 * 3600 * 1_000_000

_STATES = tuple(TaskState)
_LIVE = frozenset({TaskState.QUEUED, TaskState.RUNNING, TaskState.RESTARTING})
_ACTIVE = frozenset({RunState.QUEUED, RunState.RUNNING})
_ABSENT: Final = object()

K = TypeVar("K")
V = TypeVar("V")

Undo = list[tuple[dict[Any, Any], Any, Any]]
"""(table, key, what it held before), oldest first."""


class Table(dict[K, V]):
    """A dictionary that notes what its keys held. Change it by `table[key] = row` and `del table[key]` only."""

    def __init__(self, undo: Undo) -> None:
        self._undo = undo

    def __setitem__(self, key: K, row: V) -> None:
        self._undo.append((self, key, self.get(key, _ABSENT)))
        super().__setitem__(key, row)

    def __delitem__(self, key: K) -> None:
        self._undo.append((self, key, self[key]))
        super().__delitem__(key)


def _undone(undo: Undo, mark: int) -> None:
    """Put back what was there when the log had `mark` entries."""
    while len(undo) > mark:
        table, key, before = undo.pop()
        if before is _ABSENT:
            dict.__delitem__(table, key)
        else:
            dict.__setitem__(table, key, before)


class Attempt(NamedTuple):
    """One attempt, as far as it is known."""

    slot: int
    fence: int
    try_number: int
    executor: str
    queued_at: int
    host: str | None = None
    nonce: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    rendered: bytes | None = None


class Audit(NamedTuple):
    """Somebody changed something."""

    at: int
    event: str
    actor: str
    dag_id: str | None = None
    run_id: str | None = None
    detail: object = None


class _Dag(NamedTuple):
    """A DAG's row beyond its plan."""

    plan: DagPlan
    file_hash: str
    is_dynamic: bool


class _Version(NamedTuple):
    id: int
    dag_id: str
    hash: str
    definition: DagDefinition


class _Run:
    """What belongs to one run."""

    def __init__(self, undo: Undo) -> None:
        self.tasks: Table[int, TaskRow] = Table(undo)
        self.attempts: Table[tuple[int, int], Attempt] = Table(undo)
        self.journal: Table[int, JournalEntry] = Table(undo)
        self.xcoms: Table[tuple[str, int, str], XComWrite] = Table(undo)
        self.feed: Table[int, FeedEntry] = Table(undo)
        self.labels: Table[int, str] = Table(undo)
        self.pools: Table[int, str] = Table(undo)
        self.deferrals: Table[int, DeferralRow] = Table(undo)
        self.notes: Table[int, str | None] = Table(undo)


class _Missed(Exception):
    """A guard missed: undo this run's share and name the slots."""

    def __init__(self, slots: list[int]) -> None:
        self.slots = slots


class MemoryStore(MemoryAssets, MemoryBackfills, MemoryOutbox, MemoryJobs):
    """See the module, and `store.port.Store` for what each verb promises. Not for use by several threads at a time."""

    def __init__(self) -> None:
        undo: Undo = []
        self._undo = undo
        self._depth = 0
        self._ids: Table[str, int] = Table(undo)
        self._dags: Table[str, _Dag] = Table(undo)
        self._versions: Table[int, _Version] = Table(undo)
        self._problems: Table[tuple[str, str], ImportProblem] = Table(undo)
        self._plugins: Table[str, str] = Table(undo)
        self._runs: Table[int, RunRow] = Table(undo)
        self._epochs: Table[int, int] = Table(undo)
        """run → epoch of the scheduler that wrote it last."""
        self._parts: Table[int, _Run] = Table(undo)
        self._by_id: Table[tuple[str, str], int] = Table(undo)
        self._by_date: Table[tuple[str, int], int] = Table(undo)
        self._pools: Table[str, PoolRow] = Table(undo)
        self._variables: Table[str, VariableRow] = Table(undo)
        self._connections: Table[str, ConnectionRow] = Table(undo)
        self._ops: Table[str, tuple[bytes, int]] = Table(undo)
        self._outbox: Table[int, OutboxItem] = Table(undo)
        self._posted: Table[str, int] = Table(undo)
        """identity → number."""
        self._misses: Table[int, DeadlineMiss] = Table(undo)
        self._hosts: Table[str, tuple[str, int, int, int]] = Table(undo)
        self._jobs: Table[str, JobRow] = Table(undo)
        self._retired_logs: Table[tuple[str, str], int] = Table(undo)
        self._audit: Table[int, Audit] = Table(undo)
        self._revoked_tokens: Table[str, int] = Table(undo)
        self._backfills: Table[int, BackfillRow] = Table(undo)
        self._outcomes: Table[tuple[int, int], BackfillOutcome] = Table(undo)
        self._of_backfill: Table[int, int] = Table(undo)
        self._skipped: Table[tuple[str, int], Skipped] = Table(undo)
        self._assets: Table[int, AssetRow] = Table(undo)
        self._members: Table[tuple[str, int], None] = Table(undo)
        self._asset_events: Table[int, AssetEventRow] = Table(undo)
        self._deliveries: Table[tuple[str, int], Delivery] = Table(undo)
        self._definitions_with_assets: Table[str, DagDefinition] = Table(undo)
        self._pools["default_pool"] = PoolRow("default_pool", 128, "Default pool", False)
        undo.clear()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several verbs as one: any exception takes back all of them. Inside another transaction, only its own part."""
        mark = len(self._undo)
        self._depth += 1
        try:
            yield
        except BaseException:
            _undone(self._undo, mark)
            raise
        finally:
            self._depth -= 1
            if not self._depth:
                self._undo.clear()

    def copy(self) -> MemoryStore:
        """A store of its own with the same rows: for asking what would happen. Not inside a transaction."""
        twin = MemoryStore()
        for name, table in vars(self).items():
            if isinstance(table, Table):
                mine: Table[Any, Any] = getattr(twin, name)
                dict.clear(mine)
                dict.update(mine, table)
        for run, parts in self._parts.items():
            own = _Run(twin._undo)
            for name, table in vars(parts).items():
                dict.update(getattr(own, name), table)
            dict.__setitem__(twin._parts, run, own)
        return twin

    def release_memory(self) -> None:
        pass  # it keeps nothing twice

    def close(self) -> None:
        """Nothing is held that needs to be given back."""

    def _next(self, name: str) -> int:
        self._ids[name] = self._ids.get(name, 0) + 1
        return self._ids[name]

    def _note(self, event: str, actor: str, at: int, **about: Any) -> None:
        self._audit[self._next("audit")] = Audit(at, event, actor, **about)

    def note_audit(
        self, event: str, actor: str, at: int, *, dag_id: str | None = None, run_id: str | None = None, detail: object = None
    ) -> None:
        with self.transaction():
            self._note(event, actor, at, dag_id=dag_id, run_id=run_id, detail=detail)

    # --- for test kits: what a database would show ------------------------------------------------------------------

    def journal(self, run: int) -> list[JournalEntry]:
        """Every step of every task instance of a run, in order."""
        return [entry for _, entry in sorted(self._parts[run].journal.items())] if run in self._parts else []

    def attempts(self, run: int) -> list[Attempt]:
        """Every attempt of a run, by slot and fence."""
        return [attempt for _, attempt in sorted(self._parts[run].attempts.items())] if run in self._parts else []

    def labels(self, run: int) -> dict[int, str]:
        """What people are shown in place of map indexes, by slot."""
        return dict(self._parts[run].labels) if run in self._parts else {}

    def notes(self, run: int) -> dict[int, str]:
        """What people noted of task instances, by slot."""
        noted = self._parts[run].notes if run in self._parts else {}
        return {slot: note for slot, note in sorted(noted.items()) if note is not None}

    def audit(self) -> list[Audit]:
        """Who changed what, in order."""
        return list(self._audit.values())

    # --- the group commit -------------------------------------------------------------------------------------------

    def commit(self, batch: Batch) -> Committed:
        stale: dict[int, list[int]] = {}
        consumers: frozenset[str] = frozenset()
        with self.transaction():
            newest = self._ids.get("epoch", 0)
            if batch.epoch and newest > batch.epoch:
                raise Stale(f"scheduler epoch {batch.epoch} was superseded by {newest}; this scheduler has to exit")
            for write in batch.runs:
                if write.after & stale.keys():
                    stale[write.run] = []
                    continue
                try:
                    with self.transaction():
                        self._write_run(write, batch.epoch)
                        if write.asset_events:
                            consumers |= self._record(write.asset_events)[1]
                except _Missed as missed:
                    stale[write.run] = missed.slots
            created: list[RunRow] = []
            moved: set[str] = set()
            for new, position in batch.new_runs:
                if position.dag_id not in moved and self._move_schedule(position):
                    created.append(self._create_run(new))
                else:
                    moved.add(position.dag_id)
            # behind the new runs: a position of the same DAG was planned from the last of them
            moved |= {position.dag_id for position in batch.positions if not self._move_schedule(position)}
            rows_created = {run: self._create_rows(run, count) for run, count in batch.more_rows}
        return Committed(stale, created, rows_created, consumers, frozenset(moved))

    def _move_schedule(self, position: SchedulePosition) -> bool:
        """Take over how far a schedule has come; False where it stands elsewhere than expected, or the DAG is gone."""
        dag = self._dags.get(position.dag_id)
        if dag is None or dag.plan.last != position.before:
            return False
        self._dags[position.dag_id] = dag._replace(plan=dag.plan._replace(last=position.last))
        if position.skipped is not None:
            key = (position.dag_id, position.skipped.from_date)
            if key not in self._skipped:
                self._skipped[key] = position.skipped
        return True

    def _write_run(self, write: RunWrite, epoch: int) -> None:
        row = self._runs.get(write.run)
        expected = (write.revision, write.journal_seq)
        if row is None or (row.revision, row.journal_seq) != expected or self._epochs.get(write.run, 0) > epoch:
            raise _Missed([])
        parts = self._parts[write.run]
        for birth in write.births:
            if birth.slot in parts.tasks:
                raise StoreRefused(f"run {write.run} has a task instance in slot {birth.slot} already")
            parts.tasks[birth.slot] = TaskRow(
                birth.slot, 0, 0, 0, birth.max_tries, False, 0, 0, 0, 0, 0, None, None, birth.task_id, birth.map_index
            )
        missed = [
            task.row.slot
            for task in write.tasks
            if (held := parts.tasks.get(task.row.slot)) is None
            or (held.state, held.fence) != (task.expected_state, task.expected_fence)
        ]
        if missed:
            raise _Missed(missed)
        for task in write.tasks:
            slot = task.row.slot
            if slot in parts.pools and task.expected_state == TaskState.RESTARTING.code != task.row.state:
                del parts.pools[slot]
            parts.tasks[slot] = task.row
        for slot, label in write.labels:
            parts.labels[slot] = label
        for slot, pool in write.pools:
            parts.pools[slot] = pool
        for seq, entry in enumerate(write.journal, write.journal_seq + 1):
            if seq in parts.journal:
                raise StoreRefused(f"run {write.run} has journal entry {seq} already")
            parts.journal[seq] = entry
        for start in write.starts:
            self._start(parts, start)
        for end in write.ends:
            self._end(parts, end)
        for slot in write.undeferred:
            if slot in parts.deferrals:
                del parts.deferrals[slot]
        for deferral in write.deferrals:
            parts.deferrals[deferral.slot] = deferral
        for task_id, map_index in write.cleared_xcoms:
            for key in [key for key in parts.xcoms if key[:2] == (task_id, map_index)]:
                del parts.xcoms[key]
        self._put_xcoms(parts, write.xcoms)
        for post in write.posts:
            self.post(post.kind, post.identity, post.payload, post.at, post.due, write.run, post.slot)
        self._epochs[write.run] = epoch
        self._runs[write.run] = row._replace(
            revision=row.revision + 1,
            state=write.state,
            started_at=write.started_at,
            ended_at=write.ended_at,
            reason=write.reason,
            version=row.version if write.version is None else write.version,
            journal_seq=write.journal_seq + len(write.journal),
            task_count=row.task_count + len(write.births),
            rows_created=row.rows_created + len(write.births),
        )

    @staticmethod
    def _start(parts: _Run, start: AttemptStart) -> None:
        key = (start.slot, start.fence)
        if key in parts.attempts:
            raise StoreRefused(f"attempt {start.fence} of slot {start.slot} was started already")
        parts.attempts[key] = Attempt(
            *key, start.try_number, start.executor, start.queued_at, start.host, start.nonce, start.started_at
        )

    @staticmethod
    def _end(parts: _Run, end: AttemptEnd) -> None:
        key = (end.slot, end.fence)
        begun = parts.attempts.get(key, Attempt(*key, end.try_number, end.executor, end.queued_at))
        parts.attempts[key] = begun._replace(
            ended_at=end.ended_at,
            outcome=end.outcome,
            reason=end.reason,
            exit_code=end.exit_code,
            signal=end.signal,
            rendered=end.rendered,
        )

    # --- creating ---------------------------------------------------------------------------------------------------

    def create_run(self, new: NewRun) -> RunRow:
        with self.transaction():
            return self._create_run(new)

    def _create_run(self, new: NewRun) -> RunRow:
        taken = self._by_id.get((new.dag_id, new.run_id))
        if taken is not None:
            if new.run_type is RunType.SCHEDULED:
                return self._runs[taken]
            raise Conflict(f"DAG {new.dag_id} already has a run {new.run_id!r}; give another run id")
        if new.logical_date is not None:
            twin = self._by_date.get((new.dag_id, new.logical_date))
            if twin is not None:
                if new.run_type is RunType.SCHEDULED:
                    return self._runs[twin]
                run_id = self._runs[twin].run_id
                raise Conflict(f"DAG {new.dag_id} already has the run {run_id!r} for this logical date")
        version = new.version if new.version in self._versions else self.need_dag(new.dag_id).version
        number = self._next("run")
        self._runs[number] = RunRow(
            id=number,
            dag_id=new.dag_id,
            run_id=new.run_id,
            run_type=new.run_type,
            state=RunState.QUEUED,
            version=version,
            logical_date=new.logical_date,
            interval_start=new.interval_start,
            interval_end=new.interval_end,
            run_after=new.run_after,
            queued_at=new.at,
            started_at=None,
            ended_at=None,
            conf=new.conf,
            triggered_by=new.triggered_by,
            triggering_user=new.triggering_user,
            note=new.note,
            reason=None,
            task_count=len(self.definition(version).tasks),
            rows_created=0,
            revision=0,
            journal_seq=0,
            feed_seq=0,
            clear_number=0,
        )
        self._parts[number] = _Run(self._undo)
        self._by_id[new.dag_id, new.run_id] = number
        if new.logical_date is not None:
            self._by_date[new.dag_id, new.logical_date] = number
        if new.backfill is not None:
            self._of_backfill[number] = new.backfill
        self._create_rows(number, CREATE_CHUNK)
        self._post_deadlines(self.definition(version), self._runs[number], new.at)
        return self._runs[number]

    def _create_rows(self, run: int, count: int) -> int:
        row = self._runs.get(run)
        if row is None:
            return 0
        tasks, rows = self.definition(row.version).tasks, self._parts[run].tasks
        upto = min(row.rows_created + count, row.task_count)
        for slot in range(row.rows_created, upto):
            rows[slot] = TaskRow(
                slot, 0, 0, 0, tasks[slot].retries, False, 0, 0, 0, 0, 0, None, None, task_id=tasks[slot].task_id
            )
        self._runs[run] = row._replace(rows_created=upto)
        return upto

    # --- looking ----------------------------------------------------------------------------------------------------

    def run(self, run: int) -> RunRow | None:
        return self._runs.get(run)

    def find_run(self, dag_id: str, run_id: str) -> RunRow | None:
        number = self._by_id.get((dag_id, run_id))
        return None if number is None else self._runs[number]

    def need_run(self, dag_id: str, run_id: str) -> RunRow:
        found = self.find_run(dag_id, run_id)
        if found is None:
            runs = [row for row in self._runs.values() if row.dag_id == dag_id]
            runs.sort(key=lambda row: (row.run_after, row.id), reverse=True)
            hint = ", ".join(row.run_id for row in runs[:3])
            raise NotFound(
                f"DAG {dag_id} has no run {run_id!r}." + (f" Its latest runs: {hint}." if hint else " It has no runs.")
            )
        return found

    def active_runs(self, dag_id: str | None = None) -> list[RunRow]:
        wanted = (row for row in self._runs.values() if row.state in _ACTIVE and dag_id in (None, row.dag_id))
        return sorted(wanted, key=lambda row: (row.dag_id, row.run_after, row.id))

    def runs_between(self, dag_id: str, start: int | None, end: int | None) -> list[RunRow]:
        def lies_between(row: RunRow) -> bool:
            moment = row.run_after if row.logical_date is None else row.logical_date
            return (start is None or moment >= start) and (end is None or moment <= end)

        wanted = (row for row in self._runs.values() if row.dag_id == dag_id and lies_between(row))
        return sorted(wanted, key=lambda row: (row.run_after, row.id))

    def snapshot(self, run: int) -> RunSnapshot | None:
        row = self._runs.get(run)
        if row is None:
            return None
        parts = self._parts[run]
        live = [
            LiveAttempt(attempt.slot, attempt.fence, attempt.nonce, attempt.host)
            for _, attempt in sorted(parts.attempts.items())
            if attempt.ended_at is None
        ]
        reschedules: dict[int, int] = {}
        for _, attempt in sorted(parts.attempts.items()):
            if attempt.outcome == "reschedule" and attempt.try_number == parts.tasks[attempt.slot].try_number:
                reschedules[attempt.slot] = reschedules.get(attempt.slot, 0) + 1
        deferrals = [one for _, one in sorted(parts.deferrals.items())]
        return RunSnapshot(row, self._rows(run), live, reschedules, dict(sorted(parts.pools.items())), deferrals)

    def _rows(self, run: int) -> list[TaskRow]:
        return [row for _, row in sorted(self._parts[run].tasks.items())]

    def previous_run(
        self, dag_id: str, logical_date: int, *, scheduled_only: bool, state: RunState | None = None
    ) -> RunRow | None:
        dates = sorted((date for owner, date in self._by_date if owner == dag_id and date < logical_date), reverse=True)
        for date in dates:
            row = self._runs[self._by_date[dag_id, date]]
            if (state is None or row.state is state) and not (scheduled_only and row.run_type is RunType.MANUAL):
                return row
        return None

    def states_of(self, run: int, task_ids: Iterable[str]) -> dict[str, list[int]]:
        if run not in self._runs:
            return {}
        wanted = set(task_ids)
        found: dict[str, list[int]] = {}
        for row in self._rows(run):
            if row.task_id in wanted:
                found.setdefault(row.task_id, []).append(row.state)
        return found

    def _names(self, run: int) -> list[str]:
        """Task id of each slot."""
        return [task.task_id for task in self.definition(self._runs[run].version).tasks]

    def open_waits(self, *, run: int | None = None, dag_id: str | None = None, at_most: int | None = None) -> list[OpenWaitRow]:
        found = [
            OpenWaitRow(number, one.slot, task.task_id, task.map_index, one.since, one.deferral)
            for number, parts in self._parts.items()
            if run in (None, number) and dag_id in (None, self._runs[number].dag_id)
            for _, one in parts.deferrals.items()
            if (task := parts.tasks[one.slot]).state == TaskState.DEFERRED.code
        ]
        return sorted(found, key=lambda one: (one.since, one.run, one.slot))[:at_most]

    def task_ever_ran(self, dag_id: str, task_id: str, before: int) -> bool:
        return any(
            task_id in self._names(number)
            for (owner, date), number in self._by_date.items()
            if owner == dag_id and date < before
        )

    # --- XComs ------------------------------------------------------------------------------------------------------

    def xcoms(
        self, run: int, task_ids: Sequence[str], key: str, map_indexes: Sequence[int] | None = None
    ) -> list[tuple[str, int, bytes, str | None]]:
        kept = self._parts[run].xcoms if run in self._parts else {}
        return [
            (task_id, index, kept[task_id, index, key].value or b"", kept[task_id, index, key].spill)
            for task_id in task_ids
            for index in sorted(index for owner, index, name in kept if owner == task_id and name == key)
            if map_indexes is None or index in map_indexes
        ]

    def last_run_with_xcom(self, dag_id: str, until: int, task_id: str, key: str) -> int | None:
        dates = sorted((date for owner, date in self._by_date if owner == dag_id and date <= until), reverse=True)
        for date in dates:
            number = self._by_date[dag_id, date]
            if any(owner == task_id and name == key for owner, _, name in self._parts[number].xcoms):
                return number
        return None

    def push_xcoms(self, run: int, xcoms: Sequence[XComWrite]) -> None:
        """Raises NotFound for a run that does not exist."""
        with self.transaction():
            if run not in self._parts:
                raise NotFound(f"there is no run number {run}")
            self._put_xcoms(self._parts[run], xcoms)

    @staticmethod
    def _put_xcoms(parts: _Run, xcoms: Iterable[XComWrite]) -> None:
        for xcom in xcoms:
            parts.xcoms[xcom.task_id, xcom.map_index, xcom.key] = xcom

    # --- DAGs -------------------------------------------------------------------------------------------------------

    def definition(self, version: int) -> DagDefinition:
        found = self._versions.get(version)
        if found is None:
            raise NotFound(f"there is no DAG version {version}")
        return found.definition

    def current_definition(self, dag_id: str) -> DagDefinition:
        return self.definition(self.need_dag(dag_id).version)

    def dag_ids(self) -> list[str]:
        return sorted(self._dags)

    def dag(self, dag_id: str) -> DagPlan | None:
        found = self._dags.get(dag_id)
        return None if found is None else found.plan

    def need_dag(self, dag_id: str) -> DagPlan:
        found = self.dag(dag_id)
        if found is None:
            raise NotFound(f"There is no DAG {dag_id!r}.{did_you_mean(dag_id, self.dag_ids())}")
        return found

    def import_problems(self) -> dict[tuple[str, str], ImportProblem]:
        """By bundle and file."""
        return dict(self._problems)

    def plans(self) -> list[DagPlan]:
        return [self._dags[dag_id].plan for dag_id in self.dag_ids()]

    def register_file(self, parsed: ParsedFile, *, paused_at_creation: bool) -> list[str]:
        changed, taken = [], []
        with self.transaction():
            for dag in parsed.dags:
                held = self._dags.get(dag.dag_id)
                if (
                    held is not None
                    and held.plan.is_active
                    and (held.plan.bundle, held.plan.file) != (parsed.bundle, parsed.file)
                ):
                    taken.append(
                        f"the DAG id {dag.dag_id!r} is already taken by the file {held.plan.file}; "
                        f"give the DAG in {parsed.file} another id"
                    )
                elif self._register_dag(parsed, dag, held, paused_at_creation):
                    changed.append(dag.dag_id)
            if parsed.problem is None:
                kept = {dag.dag_id for dag in parsed.dags}
                changed += self._deactivate(parsed.bundle, parsed.file, lambda dag_id: dag_id not in kept)
            problem = ImportProblem("; ".join(taken), "; ".join(taken), None) if taken else parsed.problem
            if problem is not None:
                self._problems[parsed.bundle, parsed.file] = problem
            elif (parsed.bundle, parsed.file) in self._problems:
                del self._problems[parsed.bundle, parsed.file]
        return changed

    def _register_dag(self, parsed: ParsedFile, dag: ParsedDag, held: _Dag | None, paused_at_creation: bool) -> bool:
        """Take one DAG of a file; whether its plan changed."""
        if held is not None and held.plan.is_active and self._versions[held.plan.version].hash == dag.hash:
            plan = held.plan._replace(parse_duration=parsed.duration)
            self._dags[dag.dag_id] = held._replace(plan=plan, file_hash=parsed.file_hash, is_dynamic=parsed.is_dynamic)
            return False
        definition = decode_definition(dag.definition)
        version = self._version(dag, definition, held)
        wanted = definition.is_paused_upon_creation
        paused = paused_at_creation if wanted is None else wanted
        plan = DagPlan(
            dag_id=dag.dag_id,
            version=version,
            file=parsed.file,
            is_paused=paused if held is None else held.plan.is_paused,
            is_active=True,
            schedule=encode_schedule(definition.schedule),
            start_date=definition.start_date,
            end_date=definition.end_date,
            catchup=definition.catchup,
            max_active_runs=definition.max_active_runs,
            schedule_epoch=1 if held is None else held.plan.schedule_epoch,
            last=None if held is None else held.plan.last,
            bundle=parsed.bundle,
            parse_duration=parsed.duration,
            assets=encode_asset_schedule(definition.assets),
        )
        self._dags[dag.dag_id] = _Dag(plan, parsed.file_hash, parsed.is_dynamic)
        self._note_assets(definition)
        return True

    def _version(self, dag: ParsedDag, definition: DagDefinition, held: _Dag | None) -> int:
        """A hash seen before is that version again; a current version without runs gives way to the new one."""
        for known in self._versions.values():
            if known.dag_id == dag.dag_id and known.hash == dag.hash:
                return known.id
        number = self._next("version")
        self._versions[number] = _Version(number, dag.dag_id, dag.hash, definition)
        if held is not None and not any(row.version == held.plan.version for row in self._runs.values()):
            del self._versions[held.plan.version]
        return number

    def _deactivate(self, bundle: str, file: str, concerned: Callable[[str], bool]) -> list[str]:
        gone = []
        for dag_id in self.dag_ids():
            dag = self._dags[dag_id]
            if dag.plan.is_active and (dag.plan.bundle, dag.plan.file) == (bundle, file) and concerned(dag_id):
                self._dags[dag_id] = dag._replace(plan=dag.plan._replace(is_active=False))
                gone.append(dag_id)
        return gone

    def skipped(self, dag_id: str, limit: int | None = None) -> list[Skipped]:
        found = [one for (owner, _), one in self._skipped.items() if owner == dag_id]
        return sorted(found, key=lambda one: (one.at, one.from_date), reverse=True)[:limit]

    def known_files(self, bundle: str) -> dict[str, tuple[str, bool]]:
        found: dict[str, tuple[str, bool]] = {}
        for dag in self._dags.values():
            if dag.plan.bundle == bundle and dag.plan.is_active:
                known, dynamic = found.get(dag.plan.file, (dag.file_hash, False))
                found[dag.plan.file] = (known if known == dag.file_hash else "", dynamic or dag.is_dynamic)
        for owner, file in self._problems:
            if owner == bundle:
                found[file] = ("", found.get(file, ("", False))[1])
        return found

    def set_plugins(self, listed: str) -> None:
        self._plugins["all"] = listed

    def plugins(self) -> str:
        return self._plugins.get("all", "[]")

    def forget_files(self, bundle: str, files: list[str], at: int) -> list[str]:
        gone: list[str] = []
        with self.transaction():
            for file in files:
                gone += self._deactivate(bundle, file, lambda dag_id: True)
                if (bundle, file) in self._problems:
                    del self._problems[bundle, file]
        return gone

    def set_paused(self, dag_id: str, paused: bool, actor: str, at: int) -> bool:
        with self.transaction():
            changed = self.need_dag(dag_id).is_paused is not paused
            if changed:
                dag = self._dags[dag_id]
                self._dags[dag_id] = dag._replace(plan=dag.plan._replace(is_paused=paused))
                self._note("pause" if paused else "unpause", actor, at, dag_id=dag_id)
        return changed

    # --- edits ------------------------------------------------------------------------------------------------------

    def clearable(
        self, run: RunRow, task_ids: Collection[str], *, only_failed: bool = False, only_running: bool = False
    ) -> list[tuple[int, str, int, TaskState]]:
        found: list[tuple[int, str, int, TaskState]] = []
        for one in self.standing(run, task_ids):
            failed = one[3] in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)
            fits = (only_failed and failed) or (only_running and one[3] in _LIVE) or not (only_failed or only_running)
            if fits and one[3] is not TaskState.NONE:
                found.append(one)
        return found

    def standing(self, run: RunRow, task_ids: Collection[str]) -> list[tuple[int, str, int, TaskState]]:
        if run.id not in self._runs:
            return []
        rows = self._rows(run.id)
        return [(row.slot, row.task_id, row.map_index, _STATES[row.state]) for row in rows if row.task_id in task_ids]

    def clear(
        self, run_id: int, slots: Collection[int], actor: str, at: int, reason: str = "", *, reset_run: bool = True
    ) -> RunRow:
        with self.transaction():
            run = self._runs.get(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            parts = self._parts[run_id]
            version = run.version if run.bundle_version is not None else self.need_dag(run.dag_id).version
            retries = {task.task_id: task.retries for task in self.definition(version).tasks}
            cause = f"cleared by {actor}" + (f": {reason}" if reason else "")
            seq, cleared = run.journal_seq, list[int]()
            for slot in sorted(set(slots)):
                row = parts.tasks.get(slot)
                if row is not None and slot in parts.pools and _STATES[row.state] not in _LIVE:
                    del parts.pools[slot]
                if row is None or _STATES[row.state] in (TaskState.NONE, TaskState.RESTARTING):
                    continue
                live = _STATES[row.state] in _LIVE
                after, fence = (TaskState.RESTARTING, row.fence) if live else (TaskState.NONE, row.fence + 1)
                parts.tasks[slot] = row._replace(
                    state=after.code,
                    fence=fence,
                    max_tries=row.try_number + retries.get(row.task_id, 0),
                    resume=False,
                    requeues=0,
                    due_at=0,
                    ended_at=0,
                    reason=None,
                    branch=None,
                    length=None,
                )
                seq += 1
                cleared.append(slot)
                parts.journal[seq] = JournalEntry(slot, fence, row.state, after.code, at, cause)
            ended = run.state in FINISHED_RUNS
            run = run._replace(revision=run.revision + 1, journal_seq=seq)
            if reset_run or not ended:
                run = run._replace(clear_number=run.clear_number + int(reset_run), ended_at=None, reason=None)
            if reset_run and ended:
                run = run._replace(state=RunState.QUEUED, queued_at=at, started_at=None)
            self._runs[run_id] = run
            if reset_run and ended:
                self._post_deadlines(self.definition(run.version), run, at)
            payload = msgspec.msgpack.encode({"slots": cleared, "reason": reason})
            self.consume_feed(run_id, self.append_feed(run_id, "clear", payload, actor, at))
            detail = {"count": len(cleared), "reason": reason}
            self._note("clear", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)
            return self._runs[run_id]

    def mark(
        self,
        run_id: int,
        slots: Collection[int],
        state: TaskState,
        actor: str,
        at: int,
        reason: str = "",
        *,
        executor: str = "",
    ) -> Marked:
        with self.transaction():
            run = self._runs.get(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            parts, seq = self._parts[run_id], run.journal_seq
            cause = f"marked {state.value} by {actor}" + (f": {reason}" if reason else "")
            live: list[tuple[int, int]] = []
            marked: list[int] = []
            for slot in sorted(set(slots)):
                row = parts.tasks.get(slot)
                if row is None or _STATES[row.state] in (state, TaskState.REMOVED):
                    continue
                if _STATES[row.state] in _LIVE:
                    live.append((slot, row.fence))
                    queued = row.queued_at or at
                    end = AttemptEnd(slot, row.fence, row.try_number, executor, queued, at, "stopped", cause, None, None)
                    self._end(parts, end)
                parts.tasks[slot] = row._replace(
                    state=state.code, fence=row.fence + 1, resume=False, requeues=0, due_at=0, ended_at=at, reason=cause
                )
                seq += 1
                marked.append(slot)
                parts.journal[seq] = JournalEntry(slot, row.fence + 1, row.state, state.code, at, cause)
            self._runs[run_id] = run._replace(revision=run.revision + 1, journal_seq=seq)
            payload = msgspec.msgpack.encode({"slots": marked, "state": state.value, "reason": reason})
            self.consume_feed(run_id, self.append_feed(run_id, "mark", payload, actor, at))
            detail = {"state": state.value, "count": len(marked), "reason": reason}
            self._note("mark", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)
            return Marked(self._runs[run_id], live)

    def set_run_state(self, run_id: int, state: RunState, actor: str, at: int, reason: str = "") -> RunRow:
        with self.transaction():
            run = self._runs.get(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            word = RunState.FAILED if state is RunState.RUNNING else state
            cause = f"marked {word.value} by {actor}" + (f": {reason}" if reason else "")
            after = run._replace(revision=run.revision + 1, ended_at=None, reason=cause)
            if state is RunState.QUEUED:
                after = after._replace(state=state, queued_at=at, started_at=None, reason=None)
            elif state is not RunState.RUNNING:
                after = after._replace(state=state, started_at=run.started_at or at, ended_at=at)
            self._runs[run_id] = after
            payload = msgspec.msgpack.encode({"state": word.value, "reason": reason})
            self.consume_feed(run_id, self.append_feed(run_id, "set run state", payload, actor, at))
            detail = {"before": run.state.value, "after": word.value, "reason": reason}
            self._note("set run state", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)
            return self._runs[run_id]

    def note_run(self, run_id: int, note: str | None, actor: str, at: int) -> RunRow:
        with self.transaction():
            run = self._runs.get(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            self._runs[run_id] = run._replace(note=note)
            self._note("note", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail={"note": note})
            return self._runs[run_id]

    def note_tasks(self, run_id: int, slots: Collection[int], note: str | None, actor: str, at: int) -> None:
        with self.transaction():
            run = self._runs.get(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            parts = self._parts[run_id]
            known = [slot for slot in sorted(set(slots)) if slot in parts.tasks]
            for slot in known:
                parts.notes[slot] = note
            detail = {"note": note, "task_instances": len(known)}
            self._note("note", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)

    # --- the feed ---------------------------------------------------------------------------------------------------

    def append_feed(self, run: int, kind: str, payload: bytes, actor: str, at: int) -> int:
        with self.transaction():
            if run not in self._parts:
                raise NotFound(f"there is no run number {run}")
            entries = self._parts[run].feed
            seq = len(entries) + 1
            entries[seq] = FeedEntry(seq, kind, payload, actor, at)
        return seq

    def feed(self, run: int, after: int = 0) -> list[FeedEntry]:
        parts = self._parts.get(run)
        return [] if parts is None else [entry for seq, entry in sorted(parts.feed.items()) if seq > after]

    def consume_feed(self, run: int, upto: int) -> None:
        with self.transaction():
            row = self._runs.get(run)
            if row is not None and row.feed_seq < upto:
                self._runs[run] = row._replace(feed_seq=upto)

    # --- pools, variables, connections ------------------------------------------------------------------------------

    def pools(self) -> list[PoolRow]:
        return [self._pools[name] for name in sorted(self._pools)]

    def set_pool(self, pool: PoolRow, actor: str, at: int) -> PoolRow:
        if pool.slots < -1:
            raise Conflict(f"pool {pool.name!r}: {pool.slots} slots are not possible; give -1 (unlimited), 0 or more")
        if not pool.name.strip():
            raise Conflict("a pool needs a name")
        with self.transaction():
            self._pools[pool.name] = pool
            self._note("set pool", actor, at, detail={"pool": pool.name, "slots": pool.slots})
        return pool

    def delete_pool(self, name: str, actor: str, at: int) -> None:
        if name == "default_pool":
            raise Conflict("default_pool cannot be deleted; change its slots instead")
        self._delete(self._pools, "pool", name, actor, at, {"pool": name})

    def variables(self) -> list[VariableRow]:
        return [self._variables[key] for key in sorted(self._variables)]

    def variable(self, key: str) -> VariableRow | None:
        return self._variables.get(key)

    def set_variable(self, variable: VariableRow, actor: str, at: int) -> None:
        with self.transaction():
            before = self._variables.get(variable.key)
            if variable.description is None and before is not None:
                variable = variable._replace(description=before.description)
            self._variables[variable.key] = variable
            self._note("set variable", actor, at, detail={"key": variable.key})

    def delete_variable(self, key: str, actor: str, at: int) -> None:
        self._delete(self._variables, "variable", key, actor, at, {"key": key})

    def connections(self) -> list[ConnectionRow]:
        return [self._connections[conn_id] for conn_id in sorted(self._connections)]

    def connection(self, conn_id: str) -> ConnectionRow | None:
        return self._connections.get(conn_id)

    def set_connection(self, connection: ConnectionRow, actor: str, at: int, *, replace: bool = True) -> None:
        with self.transaction():
            if not replace and connection.conn_id in self._connections:
                raise Conflict(f"the connection {connection.conn_id!r} exists already; delete it first or choose another id")
            self._connections[connection.conn_id] = connection
            self._note("set connection", actor, at, detail={"conn_id": connection.conn_id})

    def delete_connection(self, conn_id: str, actor: str, at: int) -> None:
        self._delete(self._connections, "connection", conn_id, actor, at, {"conn_id": conn_id})

    def _delete(self, table: Table[str, Any], kind: str, name: str, actor: str, at: int, detail: object) -> None:
        with self.transaction():
            if name not in table:
                raise NotFound(f"There is no {kind} {name!r}.{did_you_mean(name, table)}")
            del table[name]
            self._note(f"delete {kind}", actor, at, detail=detail)

    # --- the house itself -------------------------------------------------------------------------------------------

    def epoch(self) -> int:
        return self._ids.get("epoch", 0)

    def begin_epoch(self, hostname: str, pid: int, boot: str, at: int) -> int:
        with self.transaction():
            return self._next("epoch")

    def note_host(self, name: str, hostname: str, pid: int, slots: int, at: int) -> None:
        with self.transaction():
            for other in [other for other, known in self._hosts.items() if known[0] == hostname]:
                del self._hosts[other]
            self._hosts[name] = (hostname, pid, slots, at)

    def answered(self, op: str) -> bytes | None:
        known = self._ops.get(op)
        return None if known is None else known[0]

    def remember(self, op: str, answer: bytes, at: int) -> None:
        with self.transaction():
            if op not in self._ops:
                self._ops[op] = (answer, at)

    def revoke_token(self, jti: str, expires_at: int, at: int) -> bool:
        with self.transaction():
            self._forget_expired_tokens(at)
            if jti in self._revoked_tokens:
                return False
            self._revoked_tokens[jti] = expires_at
        return True

    def token_revoked(self, jti: str) -> bool:
        return jti in self._revoked_tokens

    def _forget_expired_tokens(self, at: int) -> None:
        for jti in [jti for jti, expires_at in self._revoked_tokens.items() if expires_at <= at]:
            del self._revoked_tokens[jti]

    def retire(self, ended_before: int, keep_per_dag: int, at: int, at_most: int = 20, dag_id: str | None = None) -> Removed:
        with self.transaction():
            runs = [row for row in self._retirable(ended_before, keep_per_dag) if dag_id in (None, row.dag_id)]
            removed = self._remove(runs[:at_most], at)
            for op in [op for op, (_, answered) in self._ops.items() if answered < at - KEPT_OPS]:
                del self._ops[op]
            if dag_id is None:
                self._retire_events(ended_before)
                self._forget_expired_tokens(at)
                for key in [key for key, one in self._skipped.items() if one.at < ended_before]:
                    del self._skipped[key]
        return removed

    def _remove(self, runs: list[RunRow], at: int) -> Removed:
        spills = {xcom.spill for row in runs for xcom in self._parts[row.id].xcoms.values() if xcom.spill is not None}
        for row in runs:
            del self._runs[row.id], self._parts[row.id], self._by_id[row.dag_id, row.run_id]
            self._retired_logs[row.dag_id, row.run_id] = at
            if row.logical_date is not None:
                del self._by_date[row.dag_id, row.logical_date]
            self._forget_deliveries(row.id)
            for table in (self._epochs, self._of_backfill):
                if row.id in table:
                    del table[row.id]
            for item in [item for item in self._outbox.values() if item.run == row.id]:
                self.acknowledge(item.id)
            for number in [number for number, miss in self._misses.items() if miss.run == row.id]:
                del self._misses[number]
        spills -= {xcom.spill for parts in self._parts.values() for xcom in parts.xcoms.values()}
        removed = sorted(RemovedRun(row.id, row.dag_id, row.run_id, row.logical_date) for row in runs)
        return Removed(removed, sorted(spills))

    def retired_logs(self, at_most: int) -> list[RetiredLog]:
        found = [RetiredLog(*place, at) for place, at in self._retired_logs.items()]
        return sorted(found, key=lambda one: (one.at, one.dag_id, one.run_id))[:at_most]

    def forget_retired_logs(self, gone: Sequence[RetiredLog]) -> None:
        with self.transaction():
            for one in gone:
                if self._retired_logs.get((one.dag_id, one.run_id)) == one.at:
                    del self._retired_logs[one.dag_id, one.run_id]

    def used_spills(self, names: list[str]) -> set[str]:
        used = {xcom.spill for parts in self._parts.values() for xcom in parts.xcoms.values()}
        return {name for name in names if name in used}

    def delete_dag(self, dag_id: str, actor: str, at: int, at_most: int = 20) -> tuple[Removed, bool]:
        with self.transaction():
            self.need_dag(dag_id)
            live = self.active_runs(dag_id)
            if live:
                raise Conflict(
                    f"DAG {dag_id} has {len(live)} runs that have not ended ({live[0].run_id}); pause it and let them end"
                )
            runs = [row for row in self._runs.values() if row.dag_id == dag_id]
            removed = self._remove(runs[:at_most], at)
            gone = len(runs) <= at_most
            if gone:
                for number in [number for number, one in self._backfills.items() if one.dag_id == dag_id]:
                    for key in [key for key in self._outcomes if key[0] == number]:
                        del self._outcomes[key]
                    del self._backfills[number]
                for version in [number for number, one in self._versions.items() if one.dag_id == dag_id]:
                    del self._versions[version]
                self._forget_assets_of(dag_id)
                for place in [place for place in self._skipped if place[0] == dag_id]:
                    del self._skipped[place]
                del self._dags[dag_id]
                self._note("delete dag", actor, at, dag_id=dag_id)
        return removed, gone

    def _retirable(self, ended_before: int, keep_per_dag: int) -> list[RunRow]:
        """Runs that may go, the oldest end first. The run with the highest number stays, so that no number comes twice."""
        newest = max(self._runs, default=0)

        def newer(row: RunRow) -> int:
            return sum(other.dag_id == row.dag_id and other.run_after > row.run_after for other in self._runs.values())

        finished = [
            row
            for row in self._runs.values()
            if row.id != newest and row.state in FINISHED_RUNS and row.ended_at is not None and row.ended_at < ended_before
        ]
        return sorted((row for row in finished if newer(row) >= keep_per_dag), key=lambda row: (row.ended_at, row.id))
