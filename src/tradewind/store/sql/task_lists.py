"""Lists of task instances, their tries and attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from zlib import crc32

import msgspec

from tradewind.model.counts import counted
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import SECOND, iso
from tradewind.model.operator_classes import class_name
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import RunRow
from tradewind.model.secret_names import masked
from tradewind.model.states import FINISHED, TASK_CODES, TASK_STATES, WAITING, Outcome, TaskState
from tradewind.model.waits import Deferral, TriggerWait
from tradewind.store.sql import task_conditions
from tradewind.store.sql.cursors import cursor_page
from tradewind.store.sql.dag_lists import ShownTask, ShownVersion, identity
from tradewind.store.sql.engine import NO_LIMIT, Row
from tradewind.store.sql.queries import Term, Value, Where, count, order_clause, order_terms, page, rows_among
from tradewind.store.sql.run_lists import RunLists, seconds_between
from tradewind.store.views import (
    NO_CONDITIONS,
    AttemptView,
    Conditions,
    Listing,
    LogFile,
    StepView,
    TaskInstanceView,
    TooBroad,
    TriedView,
    UnknownValue,
)
from tradewind.wire.log_paths import earlier_log_path, log_path

_UNFINISHED = frozenset(
    state.code for state in TaskState if state not in FINISHED and state not in (TaskState.NONE, TaskState.REMOVED)
)
"""Unfinished states: only unfinished runs have task instances in these states."""

_TRY_GOES_ON = frozenset(state.code for state in WAITING | {TaskState.UP_FOR_RESCHEDULE, TaskState.SCHEDULED})
"""States between two attempts of one try."""

_FAILURES = f"t.state IN ({TaskState.FAILED.code}, {TaskState.UPSTREAM_FAILED.code})"
"""The WHERE clause of the partial index `task_instance_failed`; SQLite uses the index only if a query repeats it."""

_TRY_STATES = {
    Outcome.SUCCESS.value: TaskState.SUCCESS,
    Outcome.SKIPPED.value: TaskState.SKIPPED,
    Outcome.RESCHEDULE.value: TaskState.UP_FOR_RESCHEDULE,
    Outcome.DEFERRED.value: TaskState.DEFERRED,
    Outcome.AWAITING_INPUT.value: TaskState.AWAITING_INPUT,
}
"""The state in which an earlier try ended, by outcome. All other outcomes are failures."""


class TaskLists(RunLists):
    """See `store.port.lists`."""

    def list_task_instances(
        self,
        dag_id: str = "~",
        run_id: str = "~",
        *,
        task_id: str | None = None,
        states: Sequence[str | None] = (),
        ranges: Mapping[str, int] | None = None,
        map_indexes: Sequence[int] = (),
        conditions: Conditions = NO_CONDITIONS,
        task_group: str | None = None,
        cursor: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = (),
    ) -> Listing[TaskInstanceView]:
        where, codes = Where(), [task_code(state) for state in states]
        source, natural = self._source(dag_id, run_id, codes, where)
        where.one_of("t.state", codes)
        if task_id is not None:
            where.add("t.task_id = ?", task_id)
        where.one_of("t.map_index", list(map_indexes))
        where.ranges(_RANGES, ranges or {})
        in_database, in_definition = task_conditions.split(conditions)
        where.conditions(self.engine.dialect, _FIELDS, in_database)
        if task_group is not None or not task_conditions.is_empty(in_definition):
            self._add_task_conditions(where, dag_id, run_id, in_definition, task_group)
        terms = order_terms(order_by, {**TASK_ORDERS, "id": natural}, natural)
        if cursor is not None:
            return self._instances_at(source, where, terms, cursor, NO_LIMIT if limit is None else limit)
        sql = f"SELECT {INSTANCE_COLUMNS} FROM {source}{ATTEMPT_JOIN}{where.sql}{order_clause(self.engine.dialect, terms)}"
        rows = page(self.engine, sql, where.parameters, limit, offset)
        if self._is_plain(where):
            total = self._rows_of_runs(dag_id)
        else:
            total = count(self.engine, f"SELECT count(*) FROM {source}{where.sql}", where.parameters)
        return Listing(self.instance_views(rows), total)

    def _instances_at(
        self, source: str, where: Where, terms: Sequence[Term], cursor: str, limit: int
    ) -> Listing[TaskInstanceView]:
        def select(columns: str, where: Where) -> tuple[str, Sequence[Value]]:
            return f"SELECT {INSTANCE_COLUMNS}, {columns} FROM {source}{ATTEMPT_JOIN}{where.sql}", where.parameters

        found = cursor_page(self.engine, select, where, terms, cursor, limit)
        return Listing(self.instance_views(found.rows), None, found.next_cursor, found.previous_cursor)

    def _add_task_conditions(
        self, where: Where, dag_id: str, run_id: str, conditions: Conditions, task_group: str | None
    ) -> None:
        """Add the conditions on fields that only definitions contain.

        Raises:
            NotFound: no version has the task group.
            TooBroad: the conditions concern the tasks of too many versions.
        """
        pool = task_conditions.only(conditions, ["pool"])
        rest = task_conditions.only(conditions, [name for name in task_conditions.FIELDS if name != "pool"])
        versions = self._versions_of(dag_id, run_id)
        if task_group is not None and not any(self._has_group(version, task_group) for version in versions):
            raise NotFound(f"There is no task group {task_group!r} in {'any DAG' if dag_id == '~' else f'DAG {dag_id}'}.")
        where.add(*_flat(self._tasks_term(versions, rest, task_group)))
        if not task_conditions.is_empty(pool):
            of_definition, parameters = self._tasks_term(versions, pool, None)
            chosen, more = task_conditions.chosen_pool_term(pool, "t.pool")
            where.add(f"(({chosen}) OR (t.pool IS NULL AND {of_definition}))", *more, *parameters)

    def _versions_of(self, dag_id: str, run_id: str) -> list[int]:
        """Return the versions of the runs that a list examines. Raises TooBroad."""
        if dag_id != "~" and run_id != "~":
            return [self.need_run(dag_id, run_id).version]
        condition, parameters = ("", ()) if dag_id == "~" else (" WHERE dag_id = ?", (dag_id,))
        found = self.engine.rows(
            f"SELECT id FROM dag_version{condition} LIMIT ?", (*parameters, task_conditions.VERSIONS_MAX + 1)
        )
        if len(found) > task_conditions.VERSIONS_MAX:
            raise TooBroad("This filter looks at the tasks of too many DAGs. Name a DAG, or a run.")
        return [row[0] for row in found]

    def _has_group(self, version: int, group: str) -> bool:
        return any(one.group_id == group for one in self.shown_version(version).dag.groups)

    def _tasks_term(self, versions: Sequence[int], conditions: Conditions, group: str | None) -> tuple[str, list[Value]]:
        matches = task_conditions.matcher(conditions)
        found = []
        for version in versions:
            facts = self._task_facts(version)
            ids = [task.task_id for task in facts if matches(task) and (group is None or group in task.groups)]
            found.append(task_conditions.VersionTasks(version, ids, len(ids) == len(facts)))
        return task_conditions.tasks_term(found, "r.version", "t.task_id")

    def _task_facts(self, version: int) -> list[task_conditions.TaskFacts]:
        dag = self.shown_version(version).dag
        parents = {one.group_id: one.parent for one in dag.groups}
        return [
            task_conditions.TaskFacts(
                task.task_id,
                task.pool,
                task.queue,
                task.operator,
                task.executor,
                task.display_name or task.task_id,
                _groups_around(task.group, parents),
            )
            for task in dag.tasks
        ]

    def task_instance(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> TaskInstanceView:
        return self.instance_view(self.instance_row(dag_id, run_id, task_id, map_index))

    def task_tries(
        self, dag_id: str, run_id: str, task_id: str, map_index: int = -1, *, present_state: bool = False
    ) -> list[TriedView]:
        row = self.instance_row(dag_id, run_id, task_id, map_index)
        version = self.shown_version(row[3])
        scheduled = self._scheduled_attempts(row[0], row[1])
        tries: dict[int, list[Row]] = {}
        for attempt in self._attempt_rows(row[0], row[1]):
            tries.setdefault(attempt[0], []).append(attempt)
        current = row[9]
        if current and current not in tries:
            tries[current] = []
        found = []
        for number in sorted(tries):
            attempts = tries[number]
            lost = sum(attempt[8] == Outcome.LOST.value and attempt[6] is not None for attempt in attempts)
            shown = {"reason": attempts[-1][9] if attempts else None, "lost_attempts": lost}
            if number == current and row[7] != TaskState.UP_FOR_RETRY.code:
                fields = self._try_fields(row, version)
                fields["scheduled_when"] = iso(scheduled.get(attempts[-1][1] if attempts else row[8]))
                found.append(TriedView(**fields, **shown))
                continue
            first, last = attempts[0], attempts[-1]
            started = next((attempt[6] for attempt in attempts if attempt[6] is not None), None)
            fields = self._try_fields(row, version)
            fields.update(
                try_number=number,
                start_date=iso(started),
                end_date=iso(last[7]),
                duration=seconds_between(started, last[7]),
                state=fields["state"]
                if present_state and number == current
                else _TRY_STATES.get(last[8], TaskState.FAILED).value,
                queued_when=iso(first[5]),
                scheduled_when=iso(scheduled.get(first[1])),
                hostname=last[3] or "",
                pid=last[4],
            )
            found.append(TriedView(**fields, **shown))
        return found

    def _scheduled_attempts(self, run: int, slot: int) -> dict[int, int]:
        """Fence of an attempt → when it was scheduled. The fence grows when the attempt is queued, which is the next change."""
        rows = self.engine.rows(
            f"SELECT fence, max(at) FROM journal WHERE run = ? AND slot = ? AND after = {TaskState.SCHEDULED.code} GROUP BY fence",
            (run, slot),
        )
        return {fence + 1: at for fence, at in rows}

    def attempts(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[AttemptView]:
        row = self.instance_row(dag_id, run_id, task_id, map_index)
        return [
            AttemptView(
                try_number=a[0],
                fence=a[1],
                executor=a[2],
                hostname=a[3],
                pid=a[4],
                queued_when=iso(a[5]),
                start_date=iso(a[6]),
                end_date=iso(a[7]),
                outcome=a[8],
                reason=a[9],
                exit_code=a[10],
                signal=a[11],
                cpu_seconds=None if a[12] is None else a[12] / SECOND,
                peak_memory_bytes=a[13],
            )
            for a in self._attempt_rows(row[0], row[1])
        ]

    def task_history(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[StepView]:
        row = self.instance_row(dag_id, run_id, task_id, map_index)
        steps = self.engine.rows(
            "SELECT at, before, after, fence, cause FROM journal WHERE run = ? AND slot = ? ORDER BY seq", (row[0], row[1])
        )
        ends = [step[0] for step in steps[1:]]
        return [
            StepView(
                at=iso(at) or "",
                state=TASK_STATES[after].shown,
                before=TASK_STATES[before].shown,
                attempt=fence,
                lasted=seconds_between(at, ends[place]) if place < len(ends) else None,
                cause=cause,
            )
            for place, (at, before, after, fence, cause) in enumerate(steps)
        ]

    def log_files(self, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int) -> list[LogFile]:
        row = self.instance_row(dag_id, run_id, task_id, map_index)

        def named(fence: int, ended: int | None, outcome: str | None = None) -> LogFile:
            which = (dag_id, run_id, task_id, map_index, try_number, fence)
            return LogFile(fence, log_path(*which), ended, earlier_log_path(*which), outcome)

        attempts = self._attempt_rows(row[0], row[1])
        found = [named(attempt[1], attempt[7], attempt[8]) for attempt in attempts if attempt[0] == try_number]
        if try_number == row[9] and row[7] in _UNFINISHED and not any(file.fence == row[8] for file in found):
            found.append(named(row[8], None))
        elif try_number == row[9] and row[7] in _TRY_GOES_ON and found:
            found[-1] = found[-1]._replace(
                ended_at=None
            )  # its trigger still writes to this log, and another attempt will follow
        if not found and try_number != row[9]:
            known = sorted({attempt[0] for attempt in attempts} | ({row[9]} if row[9] else set()))
            raise NotFound(
                f"{task_id} in {run_id} had no try {try_number}; "
                + (f"its tries: {', '.join(map(str, known))}" if known else "it was not started yet")
            )
        return found

    # --- queries --------------------------------------------------------------------------------------------------

    def _source(self, dag_id: str, run_id: str, codes: list[int], where: Where) -> tuple[str, str]:
        """Return the joined tables in the order in which they are to be read, and the resulting order of rows without sorting."""
        dialect = self.engine.dialect
        join = dialect.ordered_join
        if dag_id != "~":
            self.need_dag(dag_id)
        if run_id != "~":
            if dag_id != "~":
                where.add("t.run = ?", self.need_run(dag_id, run_id).id)
                return f"task_instance t {join} dag_run r ON r.id = t.run", "t.slot"
            where.add("r.run_id = ?", run_id)
            return f"dag_run r {join} task_instance t ON t.run = r.id", "r.id, t.slot"
        runs = "dag_run r"
        if dag_id != "~":
            where.add("r.dag_id = ?", dag_id)
        if codes and _UNFINISHED.issuperset(codes):
            where.add("r.state < 2")
            runs = f"dag_run r{dialect.index_hint('dag_run_active')}"
        elif codes and {TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code}.issuperset(codes):
            where.add(_FAILURES)
            tasks = f"task_instance t{dialect.index_hint('task_instance_failed')}"
            return f"{tasks} {join} dag_run r ON r.id = t.run", "t.run, t.slot"
        natural = "r.run_after, r.id, t.slot" if dag_id != "~" else "r.id, t.slot"
        return f"{runs} {join} task_instance t ON t.run = r.id", natural

    @staticmethod
    def _is_plain(where: Where) -> bool:
        return not where.terms or where.terms == ["r.dag_id = ?"]

    def _rows_of_runs(self, dag_id: str) -> int | None:
        condition, parameters = ("", ()) if dag_id == "~" else (" WHERE dag_id = ?", (dag_id,))
        return count(self.engine, f"SELECT sum(rows_created) FROM dag_run{condition}", parameters)

    def instance_row(self, dag_id: str, run_id: str, task_id: str, map_index: int) -> Row:
        run = self._known_run(dag_id, run_id)
        sql = f"SELECT {INSTANCE_COLUMNS} FROM task_instance t JOIN dag_run r ON r.id = t.run{ATTEMPT_JOIN} WHERE t.run = ?"
        tasks = self.shown_version(run.version).dag.tasks
        slot = next((i for i, task in enumerate(tasks) if task.task_id == task_id), None)
        row = None if slot is None else self.engine.row(f"{sql} AND t.slot = ?", (run.id, slot))
        if row is None or (row[4], row[5]) != (task_id, map_index):
            row = self.engine.row(f"{sql} AND t.task_id = ? AND t.map_index = ?", (run.id, task_id, map_index))
        if row is None:
            if slot is None:
                near = did_you_mean(task_id, [task.task_id for task in tasks])
                raise NotFound(english(phrase("error_no_task_in_run", dag=dag_id, task=task_id, run=run_id)) + near)
            have = self.engine.row("SELECT count(*) FROM task_instance WHERE run = ? AND task_id = ?", (run.id, task_id))
            if have is not None and have[0] and map_index < 0:
                raise NotFound(
                    f"{task_id} is mapped: in the run {run_id!r} of DAG {dag_id} it has {counted(have[0], 'task instance')}; "
                    f"give a map index from 0 to {have[0] - 1}."
                )
            if map_index < 0:
                raise NotFound(english(phrase("error_no_instance", run=run_id, dag=dag_id, task=task_id)))
            raise NotFound(english(phrase("error_no_map_index", run=run_id, dag=dag_id, task=task_id, index=map_index)))
        return self._with_last_attempts([row])[0]

    def _with_last_attempts(self, rows: Sequence[Row]) -> list[Row]:
        """Add the last attempt to the rows of task instances that a person marked: the mark's new fence has no attempt."""
        missing = [row for row in rows if row[19] is None and row[8] and TASK_STATES[row[7]] in FINISHED]
        last: dict[tuple[int, int, int], Row] = {}
        for found in self._rows_of(
            f"""SELECT run, slot, try_number, hostname, pid, executor, rendered, started_at, ended_at, {_UNIX_NAME} FROM attempt a
                WHERE {{}} ORDER BY fence""",
            "run = ? AND slot = ? AND try_number = ?",
            [(row[0], row[1], row[9]) for row in missing],
        ):
            last[found[0], found[1], found[2]] = found[3:]
        marked = {(row[0], row[1]) for row in missing}
        return [
            (*row[:17], *last[key][:4], *row[21:23], *last[key][4:6], row[25], last[key][6])
            if (row[0], row[1]) in marked and (key := (row[0], row[1], row[9])) in last
            else row
            for row in rows
        ]

    def _rows_of(self, sql: str, condition: str, keys: Sequence[tuple[Value, ...]]) -> list[Row]:
        """Return the rows of a statement for many keys. `sql`: `{}` stands for the conditions."""
        found: list[Row] = []
        for start in range(0, len(keys), KEYS_PER_STATEMENT):
            block = keys[start : start + KEYS_PER_STATEMENT]
            terms = " OR ".join([f"({condition})"] * len(block))
            found += self.engine.rows(sql.format(terms), [value for key in block for value in key])
        return found

    def _known_run(self, dag_id: str, run_id: str) -> RunRow:
        run = self.find_run(dag_id, run_id)
        if run is None:
            self.need_dag(dag_id)
            run = self.need_run(dag_id, run_id)
        return run

    def _attempt_rows(self, run: int, slot: int) -> list[Row]:
        return self.engine.rows(
            """SELECT try_number, fence, executor, hostname, pid, queued_at, started_at, ended_at, outcome, reason, exit_code,
               signal, cpu, peak_memory FROM attempt WHERE run = ? AND slot = ? ORDER BY fence""",
            (run, slot),
        )

    # --- fields --------------------------------------------------------------------------------------------------

    def instance_view(self, row: Row) -> TaskInstanceView:
        return self.instance_views([row])[0]

    def instance_views(self, rows: Sequence[Row]) -> list[TaskInstanceView]:
        """Return the views of rows of `INSTANCE_COLUMNS`. The number of statements does not depend on the number of rows."""
        rows = self._with_last_attempts(rows)
        shown = self.shown_versions([row[3] for row in rows])
        triggers = self._triggers([(row[0], row[1], row[8]) for row in rows if row[7] == TaskState.DEFERRED.code])
        job = self._triggerer_job() if triggers else None
        scheduled = self._scheduled(rows)
        found = []
        for row in rows:
            trigger = triggers.get((row[0], row[1]))
            if trigger is not None and job is not None:
                trigger["triggerer_id"] = job["id"]
            fields = self._try_fields(row, shown[row[3]])
            fields["scheduled_when"] = iso(scheduled.get((row[0], row[1])))
            view = TaskInstanceView(
                **fields,
                id=identity(1, row[0], row[1]),
                logical_date=iso(row[14]),
                run_after=iso(row[15]) or "",
                note=row[16],
                rendered_map_index=row[21] if row[21] is not None else (str(row[5]) if row[5] >= 0 else None),
                rendered_fields=_rendered(row, shown[row[3]].task(row[1], row[4])),
                trigger=trigger,
                triggerer_job=None if trigger is None else job,
            )
            found.append(view)
        return found

    def _scheduled(self, rows: Sequence[Row]) -> dict[tuple[int, int], int]:
        """(run, slot) → when the task instance was scheduled last, from the journal."""
        left, runs = JOURNAL_ROWS_MAX, list[Value]()
        for run, entries in {row[0]: row[25] for row in rows}.items():
            if entries <= left:
                left -= entries
                runs.append(run)
        found = rows_among(self.engine, _SCHEDULED, runs)
        return {(run, slot): at for run, slot, at in found}

    def _triggers(self, deferred: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int], dict[str, Any]]:
        """(run, slot) → the trigger that a deferred task instance waits for, with secret arguments masked.

        Args:
            deferred: (run, slot, fence).
        """
        found = {}
        for run, slot, fence, since, data in self._rows_of(
            "SELECT run, slot, fence, since, deferral FROM deferral WHERE {}", "run = ? AND slot = ? AND fence = ?", deferred
        ):
            wait = msgspec.msgpack.decode(data, type=Deferral).wait
            if isinstance(wait, TriggerWait):
                found[run, slot] = {
                    "id": fence,
                    "classpath": wait.classpath,
                    "kwargs": msgspec.json.encode(masked(msgspec.json.decode(wait.kwargs))).decode()[:TRIGGER_KWARGS_MAX],
                    "created_date": iso(since),
                    "queue": None,
                    "triggerer_id": None,
                }
        return found

    def _triggerer_job(self) -> dict[str, Any] | None:
        """The worker host that connected last: its triggerer runs all triggers. The health page says whether it runs now."""
        row = self.engine.row("SELECT name, hostname, seen_at FROM worker_host ORDER BY seen_at DESC LIMIT 1")
        if row is None:
            return None
        return {
            "id": crc32(row[0].encode()),  # Airflow has a number here; a worker host has a name
            "dag_id": None,
            "state": "running",
            "job_type": "TriggererJob",
            "start_date": iso(row[2]),
            "end_date": None,
            "latest_heartbeat": iso(row[2]),
            "executor_class": None,
            "hostname": row[1],
            "unixname": None,
            "dag_display_name": None,
        }

    @staticmethod
    def _try_fields(row: Row, version: ShownVersion) -> dict[str, Any]:
        """The fields that both task instances and tries have."""
        task = version.task(row[1], row[4])
        started, ended = _times(row)
        return {
            "task_id": row[4],
            "dag_id": row[2],
            "dag_run_id": row[6],
            "map_index": row[5],
            "start_date": iso(started),
            "end_date": iso(ended),
            "duration": seconds_between(started, ended),
            "state": TASK_STATES[row[7]].shown,
            "try_number": row[9],
            "max_tries": row[10],
            "task_display_name": task.display_name or task.task_id,
            "dag_display_name": version.dag.shown_name,
            "hostname": row[17] or "",
            "unixname": task.run_as_user or row[26],
            "pool": row[22] or task.pool,
            "pool_slots": task.pool_slots,
            "queue": task.queue,
            "priority_weight": version.priority(row[1], row[4]),
            "operator": class_name(task.operator),
            "operator_name": task.operator,
            "queued_when": iso(row[11]),
            "scheduled_when": None,
            "pid": row[18],
            "executor": task.executor,
            "executor_config": task.executor_config or "{}",
            "dag_version": version.view,
        }


KEYS_PER_STATEMENT = 100
"""Maximum number of task instances in one statement. SQLite allows 1,000 terms in a condition."""

TRIGGER_KWARGS_MAX = 4000
"""Maximum length of the text of a trigger's arguments, characters; the rest is cut off."""

JOURNAL_ROWS_MAX = 50_000
"""Maximum number of journal entries that one list reads for `scheduled_when`; runs with more entries show null."""

_UNIX_NAME = "(SELECT j.unixname FROM job j WHERE j.hostname = a.hostname ORDER BY j.id DESC LIMIT 1)"
"""The user of the machine's services, who started the attempt's process."""

INSTANCE_COLUMNS = (
    """t.run, t.slot, r.dag_id, r.version, t.task_id, t.map_index, r.run_id, t.state, t.fence, t.try_number,
    t.max_tries, t.queued_at, t.started_at, t.ended_at, r.logical_date, r.run_after, t.note, a.hostname, a.pid, a.executor,
    a.rendered, t.map_label, t.pool, a.started_at, a.ended_at, r.journal_seq, """
    + _UNIX_NAME
)

ATTEMPT_JOIN = " LEFT JOIN attempt a ON a.run = t.run AND a.slot = t.slot AND a.fence = t.fence"

_SCHEDULED = f"""SELECT run, slot, max(at) FROM journal WHERE run IN ({{}}) AND after = {TaskState.SCHEDULED.code}
    GROUP BY run, slot"""

_WAITS_FOR_TRY = frozenset({TaskState.UP_FOR_RETRY.code, TaskState.UP_FOR_RESCHEDULE.code})
_NEVER_STARTED = frozenset({TaskState.SKIPPED.code, TaskState.UPSTREAM_FAILED.code})


def _times(row: Row) -> tuple[int | None, int | None]:
    """The start and the end of a row of `INSTANCE_COLUMNS` as Airflow shows them: a task that waits for its next attempt has the
    end of the last one, and a task that was skipped without a start started when it ended.
    """
    started, ended = row[12], row[13]
    if ended is None and row[7] in _WAITS_FOR_TRY:
        ended = row[24]
    if started is None and row[7] in _NEVER_STARTED:
        started = ended
    return started, ended


_EMPTY_FIELDS: Mapping[str, Any] = MappingProxyType({"op_args": [], "op_kwargs": {}})
"""The values of template fields that are not None when a task has none of its fields set."""


def _rendered(row: Row, task: ShownTask) -> dict[str, Any]:
    """The rendered fields of a row of `INSTANCE_COLUMNS`.

    Nothing is stored for an attempt whose fields are all empty. Attempts of earlier releases have only those that are not empty.
    """
    found: dict[str, Any] = msgspec.json.decode(row[20]) if row[20] else {}
    if not found and row[23] is None:
        return {}  # it has not started
    return {**{name: _EMPTY_FIELDS.get(name) for name in task.template_fields}, **found}


_RANGES = {
    "run_after": "r.run_after",
    "logical_date": "r.logical_date",
    "start_date": "t.started_at",
    "end_date": "t.ended_at",
}

_CHANGED = "coalesce(t.ended_at, t.started_at, t.queued_at, r.queued_at)"
"""The time of the last change of a task instance, as far as its row shows: Airflow's `updated_at`."""

_LABEL = "coalesce(t.map_label, CASE WHEN t.map_index >= 0 THEN CAST(t.map_index AS TEXT) END)"

_RANGES |= {"duration": "t.ended_at - t.started_at", "updated_at": _CHANGED}

_FIELDS = {
    "dag_id": "r.dag_id",
    "run_id": "r.run_id",
    "task_id": "t.task_id",
    "map_index": "t.map_index",
    "try_number": "t.try_number",
    "rendered_map_index": _LABEL,
    "version_number": "(SELECT v.number FROM dag_version v WHERE v.id = r.version)",
}
"""The fields in the database by which lists can be filtered, besides states and ranges."""

TASK_ORDERS = {
    "id": "",  # replaced by the order of `_source`
    "task_id": "t.task_id",
    "map_index": "t.map_index",
    "state": "t.state",
    "try_number": "t.try_number",
    "start_date": "t.started_at",
    "end_date": "t.ended_at",
    "duration": "t.ended_at - t.started_at",
    "queued_when": "t.queued_at",
    "run_after": "r.run_after",
    "logical_date": "r.logical_date",
    "dag_id": "r.dag_id",
    "run_id": "r.run_id",
    "dag_run_id": "r.run_id",
    "rendered_map_index": "t.map_label, t.map_index",
    "data_interval_start": "r.interval_start",
    "data_interval_end": "r.interval_end",
    "updated_at": _CHANGED,
}


def _flat(term: tuple[str, list[Value]]) -> tuple[Any, ...]:
    return (term[0], *term[1])


def _groups_around(group: str | None, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    found: list[str] = []
    while group is not None and group not in found:
        found.append(group)
        group = parents.get(group)
    return tuple(found)


def task_code(name: str | None) -> int:
    if name is None or name in ("none", "null", ""):
        return TaskState.NONE.code
    try:
        return TASK_CODES[TaskState(name)]
    except ValueError:
        raise UnknownValue(
            f"{name!r} is not a state of a task instance; possible are: {', '.join(TASK_STATES)}."
            f"{did_you_mean(name, [state.value for state in TASK_STATES])}"
        ) from None
