"""Runs and task instances: the operations that the scheduler uses most often."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tradewind.model.branch import Branch
from tradewind.model.errors import Conflict, NotFound, Stale
from tradewind.model.ids import ANY_KEY
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import (
    Batch,
    Committed,
    DeferralRow,
    InstanceFacts,
    LiveAttempt,
    NewRun,
    OpenWaitRow,
    RunRow,
    RunSnapshot,
    RunWrite,
    SchedulePosition,
    Skipped,
    TaskRow,
    XComWrite,
)
from tradewind.model.states import FINISHED, RUN_STATES, TASK_STATES, WAITING, AttemptState, RunState, RunType, TaskState
from tradewind.model.waits import Deferral, Resumption
from tradewind.observe.log import Log
from tradewind.store.sql.dags import DagOperations
from tradewind.store.sql.deadlines import write_deadlines
from tradewind.store.sql.engine import NO_LIMIT, Change, Engine, Row
from tradewind.store.sql.run_changes import XCOM, changes_of

log = Log("store")

CREATE_CHUNK = 2000
"""Number of task instances that are written together with a new run; those of a larger run follow in further transactions."""

_decode_branch = msgspec.msgpack.Decoder(Branch).decode
_decode_deferral = msgspec.msgpack.Decoder(Deferral).decode
_decode_resumption = msgspec.msgpack.Decoder(Resumption).decode

_FINISHED = ", ".join(str(state.code) for state in sorted(FINISHED, key=lambda one: one.code))
_RUN_COLUMNS = """id, dag_id, run_id, run_type, state, version, logical_date, interval_start, interval_end, run_after,
    queued_at, started_at, ended_at, conf, triggered_by, triggering_user, note, reason, task_count, rows_created,
    revision, journal_seq, feed_seq, clear_number, bundle_version, partition_key, partition_date"""

NEXT_RUN = """(SELECT coalesce(max(number), 0) + 1 FROM (SELECT max(id) AS number FROM dag_run
    UNION ALL SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_run') AS known)"""
"""Returns the number of a new run. No number is used twice, even if the newest runs were deleted."""

_NAMES_MAX = 500
"""Maximum number of task ids that the database compares; more are compared in Python."""

_INSERT_TASKS = "INSERT INTO task_instance (run, slot, task_id, max_tries) VALUES (?, ?, ?, ?)"


class _GuardMissed(Exception):
    """A guard did not match inside a savepoint: the changes of the run are rolled back, then the slots are determined."""


class RunOperations(DagOperations):
    """See `store.port` for the descriptions of the methods."""

    engine: Engine

    # --- the group commit ---------------------------------------------------------------------------------------

    def commit(self, batch: Batch) -> Committed:
        is_plain = self._has_only_changes(batch)
        if is_plain and self.engine.commit_changes(self._all_changes(batch)):
            return Committed({}, [], {})
        stale: dict[int, list[int]] = {}
        consumers: frozenset[str] = frozenset()
        with self.engine.transaction():
            self._check_epoch(batch.epoch)
            for write in () if not is_plain and self._write_together(batch) else batch.runs:
                if write.after & stale.keys():
                    stale[write.run] = []
                    continue
                try:
                    with self.engine.savepoint():
                        if not self.engine.execute(changes_of(write, batch.epoch)):
                            raise _GuardMissed
                        if write.asset_events:
                            consumers |= self._record(write.asset_events)[1]
                except _GuardMissed:
                    stale[write.run] = self._stale_slots(write, batch.epoch)
            # the schedule moves first: if its position is not the expected one, nothing of its run has been written yet
            created: list[RunRow] = []
            moved: set[str] = set()
            for new, position in batch.new_runs:
                if position.dag_id not in moved and self._move_schedule(position):
                    created.append(self._create_run(new))
                else:
                    moved.add(position.dag_id)
            # after the new runs: a position of the same DAG was planned from the last of them
            moved |= {position.dag_id for position in batch.positions if not self._move_schedule(position)}
            rows_created = {run: self._create_rows(run, count) for run, count in batch.more_rows}
        return Committed(stale, created, rows_created, consumers, frozenset(moved))

    def _has_only_changes(self, batch: Batch) -> bool:
        """Whether a batch can be committed in one round trip: it only changes runs, and the database is behind a network."""
        if not self.engine.has_round_trips or batch.new_runs or batch.positions or batch.more_rows:
            return False
        is_checked = self.engine.is_guarded or not batch.epoch
        return bool(batch.runs) and is_checked and not any(write.asset_events for write in batch.runs)

    def _write_together(self, batch: Batch) -> bool:
        """Write the changes of all runs in one round trip. False: nothing was written, because another process has changed one
        of the runs, or one must be written alone. Then each run is written in its own savepoint.
        """
        if not self.engine.has_round_trips or any(write.asset_events for write in batch.runs):
            return False
        try:
            with self.engine.savepoint():
                if not self.engine.execute(self._all_changes(batch)):
                    raise _GuardMissed
        except _GuardMissed:
            return False
        return True

    @staticmethod
    def _all_changes(batch: Batch) -> list[Change]:
        return [one for write in batch.runs for one in changes_of(write, batch.epoch)]

    def _check_epoch(self, epoch: int) -> None:
        if not epoch or self.engine.is_guarded:
            return
        row = self.engine.row("SELECT max(epoch) FROM scheduler")
        if row is not None and row[0] is not None and row[0] > epoch:
            raise Stale(f"scheduler epoch {epoch} was superseded by {row[0]}; this scheduler has to exit")

    def _stale_slots(self, write: RunWrite, epoch: int) -> list[int]:
        """Slots whose row has another state or fence than expected; empty if the run's revision or epoch did not match.

        Called after the roll-back, so every row is as it was before the write.
        """
        run = self.engine.row("SELECT revision, journal_seq, epoch FROM dag_run WHERE id = ?", (write.run,))
        if run is None or (run[0], run[1]) != (write.revision, write.journal_seq) or run[2] > epoch:
            return []
        missed = []
        for task in write.tasks:
            row = self.engine.row(
                "SELECT state, fence FROM task_instance WHERE run = ? AND slot = ?", (write.run, task.row.slot)
            )
            if row is None or tuple(row) != (task.expected_state, task.expected_fence):
                missed.append(task.row.slot)
        return missed

    # --- creating -------------------------------------------------------------------------------------------------

    def create_run(self, new: NewRun) -> RunRow:
        with self.engine.transaction():
            return self._create_run(new)

    def _create_run(self, new: NewRun) -> RunRow:
        engine = self.engine
        existing = self.find_run(new.dag_id, new.run_id)
        if existing is not None:
            if new.run_type is RunType.SCHEDULED and existing.logical_date in (new.logical_date, None):
                return existing
            by_schedule = new.run_type in (RunType.SCHEDULED, RunType.BACKFILL)
            if by_schedule and existing.logical_date not in (new.logical_date, None):
                # Runs of earlier versions, and imported ones of Airflow 2, are named by their logical date. Such a date is the time
                # of the run of the data interval before, which gets the same name now
                return self._create_run(replace(new, run_id=f"{new.run_id}__2"))
            raise Conflict(english(phrase("error_run_exists", dag=new.dag_id, run=new.run_id)))
        if new.logical_date is not None:
            twin = engine.row(
                "SELECT run_id FROM dag_run WHERE dag_id = ? AND logical_date = ?", (new.dag_id, new.logical_date)
            )
            if twin is not None:
                if new.run_type is RunType.SCHEDULED:
                    taken = self.find_run(new.dag_id, twin[0])
                    assert taken is not None
                    return taken
                raise Conflict(english(phrase("error_date_taken", dag=new.dag_id, run=twin[0])))
        version, bundle_version = self._versions_of_new_run(new)
        definition = self.definition(version)
        run = engine.insert(
            f"""INSERT INTO dag_run (id, dag_id, run_id, run_type, state, version, logical_date, interval_start, interval_end,
               run_after, queued_at, conf, triggered_by, triggering_user, note, backfill, task_count, rows_created,
               partition_key, partition_date, bundle_version)
               VALUES ({NEXT_RUN}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)""",
            (
                new.dag_id,
                new.run_id,
                new.run_type.value,
                RunState.QUEUED.code,
                version,
                new.logical_date,
                new.interval_start,
                new.interval_end,
                new.run_after,
                new.at,
                new.conf,
                new.triggered_by,
                new.triggering_user,
                new.note,
                new.backfill,
                len(definition.tasks),
                new.partition_key,
                new.partition_date,
                bundle_version,
            ),
        )
        self._create_rows(run, CREATE_CHUNK)
        found = self.run(run)
        assert found is not None
        write_deadlines(engine, definition, found, new.at)
        return found

    def _versions_of_new_run(self, new: NewRun) -> tuple[int, str | None]:
        """Return the versions of the DAG and of its bundle for a new run. They come from the same parse of the file."""
        plan = self.need_dag(new.dag_id)
        if plan.bundle_version is not None:
            keeps = not self.definition(plan.version).disable_bundle_versioning
            return plan.version, plan.bundle_version if keeps else None
        if self.engine.row("SELECT 1 FROM dag_version WHERE id = ?", (new.version,)) is None:
            return plan.version, None  # the file was parsed again meanwhile
        return new.version, None

    def _create_rows(self, run: int, count: int) -> int:
        """Create up to `count` further task instances of a run; how many exist then."""
        row = self.engine.row("SELECT version, task_count, rows_created FROM dag_run WHERE id = ?", (run,))
        if row is None:
            return 0
        version, task_count, have = row
        upto: int = min(have + count, task_count)
        tasks = self.definition(version).tasks
        self.engine.many(_INSERT_TASKS, [(run, i, tasks[i].task_id, tasks[i].retries) for i in range(have, upto)])
        self.engine.change(
            "UPDATE dag_run SET rows_created = ? WHERE id = ? AND rows_created = ?", (upto, run, have), f"run number {run}"
        )
        return upto

    def _move_schedule(self, position: SchedulePosition) -> bool:
        """Write a schedule's position. False: nothing was written; the position is not the expected one or the DAG was deleted."""
        none = (None, None, None, None)
        moved = self.engine.run(
            """UPDATE dag SET last_logical_date = ?, last_start = ?, last_end = ?, last_run_after = ?,
               next_logical_date = ?, next_start = ?, next_end = ?, next_run_after = ? WHERE dag_id = ?
               AND last_logical_date IS ? AND last_start IS ? AND last_end IS ? AND last_run_after IS ?""",
            (*(position.last or none), *(position.next or none), position.dag_id, *(position.before or none)),
        )
        if moved != 1:
            return False
        if position.skipped is not None:
            self.engine.run(
                """INSERT INTO skipped_interval (dag_id, schedule_epoch, from_date, to_date, reason, at)
                   SELECT dag_id, schedule_epoch, ?, ?, ?, ? FROM dag WHERE dag_id = ?
                   ON CONFLICT (dag_id, schedule_epoch, from_date) DO NOTHING""",
                (*position.skipped, position.dag_id),
            )
        return True

    def skipped(self, dag_id: str, limit: int | None = None) -> list[Skipped]:
        rows = self.engine.rows(
            "SELECT from_date, to_date, reason, at FROM skipped_interval WHERE dag_id = ? ORDER BY at DESC, from_date DESC LIMIT ?",
            (dag_id, NO_LIMIT if limit is None else limit),
        )
        return [Skipped(*row) for row in rows]

    # --- looking --------------------------------------------------------------------------------------------------

    def run(self, run: int) -> RunRow | None:
        row = self.engine.row(f"SELECT {_RUN_COLUMNS} FROM dag_run WHERE id = ?", (run,))
        return None if row is None else run_row(row)

    def find_run(self, dag_id: str, run_id: str) -> RunRow | None:
        row = self.engine.row(f"SELECT {_RUN_COLUMNS} FROM dag_run WHERE dag_id = ? AND run_id = ?", (dag_id, run_id))
        return None if row is None else run_row(row)

    def need_run(self, dag_id: str, run_id: str) -> RunRow:
        found = self.find_run(dag_id, run_id)
        if found is None:
            latest = self.engine.rows(
                "SELECT run_id FROM dag_run WHERE dag_id = ? ORDER BY run_after DESC, id DESC LIMIT 3", (dag_id,)
            )
            hint = ", ".join(row[0] for row in latest)
            if hint:
                raise NotFound(english(phrase("error_no_run_latest", dag=dag_id, run=run_id, runs=hint)))
            raise NotFound(english(phrase("error_no_run", dag=dag_id, run=run_id)))
        return found

    def active_runs(self, dag_id: str | None = None) -> list[RunRow]:
        # the hint names the index: otherwise SQLite reads all of a DAG's history in the requested order
        where, parameters = ("AND dag_id = ?", (dag_id,)) if dag_id is not None else ("", ())
        rows = self.engine.rows(
            f"""SELECT {_RUN_COLUMNS} FROM dag_run{self.engine.dialect.index_hint("dag_run_active")} WHERE state < 2 {where}
            ORDER BY dag_id, run_after, id""",
            parameters,
        )
        found = []
        for row in rows:
            try:
                found.append(run_row(row))
            except (LookupError, ValueError) as error:  # the other runs must continue; the next read tries this one again
                log.error(
                    "the row of a run cannot be read; the run is left alone", run=row[0], run_id=row[2], error=repr(error)
                )
        return found

    def runs_between(self, dag_id: str, start: int | None, end: int | None) -> list[RunRow]:
        moment = "coalesce(logical_date, run_after)"
        rows = self.engine.rows(
            f"SELECT {_RUN_COLUMNS} FROM dag_run WHERE dag_id = ? AND {moment} >= ? AND {moment} <= ? ORDER BY run_after, id",
            (dag_id, start if start is not None else -(2**62), end if end is not None else 2**62),
        )
        return [run_row(row) for row in rows]

    def latest_runs(
        self,
        dag_id: str,
        at_most: int,
        state: RunState | None = None,
        run_types: Collection[str] = (),
        start: int | None = None,
        end: int | None = None,
    ) -> list[RunRow]:
        moment = "coalesce(logical_date, run_after)"
        condition = f"dag_id = ? AND {moment} >= ? AND {moment} <= ?"
        values: list[str | int] = [dag_id, -(2**62) if start is None else start, 2**62 if end is None else end]
        if state is not None:
            condition += " AND state = ?"
            values.append(state.code)
        if run_types:
            condition += f" AND run_type IN ({', '.join('?' * len(run_types))})"
            values += list(run_types)
        rows = self.engine.rows(
            f"SELECT {_RUN_COLUMNS} FROM dag_run WHERE {condition} ORDER BY run_after DESC, id DESC LIMIT ?", (*values, at_most)
        )
        return [run_row(row) for row in reversed(rows)]

    def snapshot(self, run: int) -> RunSnapshot | None:
        found = self.run(run)
        if found is None:
            return None
        rows: list[TaskRow] = []
        pools: dict[int, str] = {}
        for *row, pool in self.engine.rows(
            """SELECT slot, state, fence, try_number, max_tries, resume, requeues, due_at, queued_at, started_at,
               ended_at, reason, branch, task_id, map_index, map_length, version, pool FROM task_instance
               WHERE run = ? ORDER BY slot""",
            (run,),
        ):
            rows.append(task_row(tuple(row)))
            if pool is not None:
                pools[row[0]] = pool
        live = [
            LiveAttempt(*row)
            for row in self.engine.rows(
                "SELECT slot, fence, nonce, host FROM attempt WHERE run = ? AND ended_at IS NULL", (run,)
            )
        ]
        reschedules: dict[int, int] = dict(
            self.engine.rows(
                """SELECT a.slot, count(*) FROM attempt a JOIN task_instance t ON t.run = a.run AND t.slot = a.slot
                   WHERE a.run = ? AND a.outcome = 'reschedule' AND a.try_number = t.try_number GROUP BY a.slot""",
                (run,),
            )
        )
        hosts: dict[int, str] = dict(
            self.engine.rows(
                f"""SELECT a.slot, a.host FROM attempt a JOIN task_instance t ON t.run = a.run AND t.slot = a.slot
                   WHERE a.run = ? AND a.host IS NOT NULL AND t.state NOT IN ({_FINISHED})
                   ORDER BY a.slot, a.fence""",
                (run,),
            )
        )
        deferrals = [
            DeferralRow(
                row[0], row[1], row[2], _decode_deferral(row[3]), None if row[4] is None else _decode_resumption(row[4])
            )
            for row in self.engine.rows(
                "SELECT slot, fence, since, deferral, resumption FROM deferral WHERE run = ? ORDER BY slot", (run,)
            )
        ]
        return RunSnapshot(found, rows, live, reschedules, pools, deferrals, hosts)

    def run_of_partition(self, dag_id: str, partition_date: int) -> RunRow | None:
        row = self.engine.row(
            f"SELECT {_RUN_COLUMNS} FROM dag_run WHERE dag_id = ? AND partition_date = ? ORDER BY id DESC LIMIT 1",
            (dag_id, partition_date),
        )
        return None if row is None else run_row(row)

    def previous_run(
        self, dag_id: str, logical_date: int, *, scheduled_only: bool, state: RunState | None = None
    ) -> RunRow | None:
        kinds = "AND run_type <> 'manual'" if scheduled_only else ""
        states = "" if state is None else f"AND state = {state.code:d}"
        row = self.engine.row(
            f"SELECT {_RUN_COLUMNS} FROM dag_run WHERE dag_id = ? AND logical_date < ? {kinds} {states} "
            "ORDER BY logical_date DESC LIMIT 1",
            (dag_id, logical_date),
        )
        return None if row is None else run_row(row)

    def states_of(self, run: int, task_ids: Iterable[str]) -> dict[str, list[int]]:
        wanted = set(task_ids)
        found: dict[str, list[int]] = {}
        # few task ids are compared by the database: a run may have 100,000 rows
        few = tuple(sorted(wanted)) if len(wanted) <= _NAMES_MAX else ()
        only = f" AND task_id IN ({', '.join('?' * len(few))})" if few else ""
        sql = f"SELECT task_id, state FROM task_instance WHERE run = ?{only} ORDER BY slot"
        for task_id, state in self.engine.rows(sql, (run, *few)) if wanted else ():
            if task_id in wanted:
                found.setdefault(task_id, []).append(state)
        return found

    def instance_facts(self, run: int, task_ids: Collection[str], at_most: int) -> list[InstanceFacts]:
        wanted = set(task_ids)
        few = tuple(sorted(wanted)) if len(wanted) <= _NAMES_MAX else ()
        only = f" AND t.task_id IN ({', '.join('?' * len(few))})" if few else ""
        rows = self.engine.rows(
            f"""SELECT t.slot, t.task_id, t.map_index, t.state, t.try_number, t.max_tries, t.queued_at, t.started_at, t.ended_at,
                t.note, t.map_label, t.pool, a.hostname, a.pid, a.executor
                FROM task_instance t LEFT JOIN attempt a ON a.run = t.run AND a.slot = t.slot AND a.fence = t.fence
                WHERE t.run = ?{only} ORDER BY t.slot""",
            (run, *few),
        )
        found = (
            InstanceFacts._make((*row[:3], TASK_STATES[row[3]], *row[4:])) for row in rows if not wanted or row[1] in wanted
        )
        return list(itertools.islice(found, at_most))

    def task_state_counts(self, run: int) -> dict[TaskState, int]:
        rows = self.engine.rows("SELECT state, count(*) FROM task_instance WHERE run = ? GROUP BY state", (run,))
        return {TASK_STATES[state]: count for state, count in rows}

    def open_waits(self, *, run: int | None = None, dag_id: str | None = None, at_most: int | None = None) -> list[OpenWaitRow]:
        wanted: list[tuple[str, int | str]] = []
        wanted += [("d.run = ?", run)] if run is not None else []
        wanted += [("r.dag_id = ?", dag_id)] if dag_id is not None else []
        rows = self.engine.rows(
            f"""SELECT d.run, d.slot, t.task_id, t.map_index, d.since, d.deferral FROM deferral d
            JOIN task_instance t ON t.run = d.run AND t.slot = d.slot JOIN dag_run r ON r.id = d.run
            WHERE {" AND ".join([_WAITING, *(condition for condition, _ in wanted)])} ORDER BY d.since, d.run, d.slot LIMIT ?""",
            (*(value for _, value in wanted), NO_LIMIT if at_most is None else at_most),
        )
        return [
            OpenWaitRow(number, slot, task_id, map_index, since, _decode_deferral(deferral))
            for number, slot, task_id, map_index, since, deferral in rows
        ]

    def task_ever_ran(self, dag_id: str, task_id: str, before: int) -> bool:
        # a run has the tasks of its version: so this reads a few definitions instead of the rows of all earlier runs
        versions = self.engine.rows(
            "SELECT DISTINCT version FROM dag_run WHERE dag_id = ? AND logical_date < ? ORDER BY version DESC", (dag_id, before)
        )
        return any(self.definition(version).task(task_id) is not None for (version,) in versions)

    # --- XComs ----------------------------------------------------------------------------------------------------

    def xcoms(
        self, run: int, task_ids: Sequence[str], key: str, map_indexes: Sequence[int] | None = None
    ) -> list[tuple[str, int, bytes, str | None]]:
        found = []
        for task_id in task_ids:
            rows = (
                self._any_xcoms(run, task_id)
                if key == ANY_KEY
                else self.engine.rows(
                    "SELECT map_index, value, spill FROM xcom WHERE run = ? AND task_id = ? AND key = ? ORDER BY map_index",
                    (run, task_id, key),
                )
            )
            for map_index, value, spill in rows:
                if map_indexes is None or map_index in map_indexes:
                    found.append((task_id, map_index, value or b"", spill))
        return found

    def pushed_keys(self, run: int) -> list[str]:
        return [row[0] for row in self.engine.rows("SELECT DISTINCT key FROM xcom WHERE run = ? ORDER BY key", (run,))]

    def _any_xcoms(self, run: int, task_id: str) -> list[tuple[int, bytes | None, str | None]]:
        """One XCom for each map index: the returned value, otherwise the XCom whose key sorts first."""
        rows = self.engine.rows(
            """SELECT map_index, value, spill FROM xcom WHERE run = ? AND task_id = ?
               ORDER BY map_index, CASE WHEN key = 'return_value' THEN 0 ELSE 1 END, key""",
            (run, task_id),
        )
        first: dict[int, tuple[int, bytes | None, str | None]] = {}
        for map_index, value, spill in rows:
            first.setdefault(map_index, (map_index, value, spill))
        return list(first.values())

    def last_run_with_xcom(self, dag_id: str, until: int, task_id: str, key: str) -> int | None:
        row = self.engine.row(
            """SELECT r.id FROM dag_run r JOIN xcom x ON x.run = r.id
               WHERE r.dag_id = ? AND r.logical_date <= ? AND x.task_id = ? AND x.key = ?
               ORDER BY r.logical_date DESC LIMIT 1""",
            (dag_id, until, task_id, key),
        )
        return None if row is None else int(row[0])

    def push_xcoms(self, run: int, xcoms: Sequence[XComWrite]) -> None:
        with self.engine.transaction():
            if self.engine.row("SELECT 1 FROM dag_run WHERE id = ?", (run,)) is None:
                raise NotFound(f"there is no run number {run}")
            self.engine.many(XCOM, [(run, *xcom) for xcom in xcoms])

    def delete_xcoms(self, run: int, task_id: str, map_index: int, key: str | None = None) -> int:
        condition, more = ("", ()) if key is None else (" AND key = ?", (key,))
        with self.engine.transaction():
            return self.engine.run(
                f"DELETE FROM xcom WHERE run = ? AND task_id = ? AND map_index = ?{condition}", (run, task_id, map_index, *more)
            )


def run_row(row: Row) -> RunRow:
    return RunRow(row[0], row[1], row[2], RunType(row[3]), RUN_STATES[row[4]], *row[5:])


def task_row(row: Row) -> TaskRow:
    slot, state, fence, tries, max_tries, resume, requeues, due, queued, started, ended, reason, branch, *mapping = row
    return TaskRow(
        slot,
        state,
        fence,
        tries,
        max_tries,
        bool(resume),
        requeues,
        due or 0,
        queued or 0,
        started or 0,
        ended or 0,
        reason,
        None if branch is None else _decode_branch(branch),
        *mapping,
    )


_WAITING = f"t.state IN ({', '.join(str(state.code) for state in sorted(WAITING))})"

LIVE_CODES = (TaskState.QUEUED.code, TaskState.RUNNING.code, TaskState.RESTARTING.code)
ENDED = AttemptState.ENDED.value
