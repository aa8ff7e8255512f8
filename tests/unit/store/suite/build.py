"""Builds the rows that the suite writes into stores: small DAGs, runs, and batches that change their task instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.moments import DAY
from tradewind.model.rows import (
    Batch,
    Committed,
    ImportProblem,
    JournalEntry,
    NewRun,
    ParsedDag,
    ParsedFile,
    RunRow,
    RunWrite,
    ScheduledRun,
    SchedulePosition,
    TaskRow,
    TaskWrite,
    XComWrite,
)
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.store.port import Store
from tradewind.store.sql.store import SqlStore

S = TaskState
NOW = 1_700_000_000_000_000


def definition(dag_id: str = "d", tasks: Mapping[str, Iterable[str]] | int = 3, **fields: Any) -> DagDefinition:
    """A DAG of `tasks` (name → upstream names), or a chain t0 → t1 → … of that many. Each task has one retry."""
    if isinstance(tasks, int):
        tasks = {f"t{i}": [f"t{i - 1}"] if i else [] for i in range(tasks)}
    built = tuple(TaskDefinition(name, upstream=tuple(sorted(above)), retries=1) for name, above in tasks.items())
    return DagDefinition(dag_id, tasks=built, **fields)


def parsed(*definitions: DagDefinition, file: str = "d.py", at: int = NOW, **fields: Any) -> ParsedFile:
    """A parsed file with these DAGs."""
    dags = tuple(ParsedDag(one.dag_id, data := encode_definition(one), version_hash(data)) for one in definitions)
    given: dict[str, Any] = {"file_hash": f"hash of {file}", "problem": None, "duration": 5, "is_dynamic": False}
    return ParsedFile(bundle="dags", file=file, dags=dags, at=at, **{**given, **fields})


def broken(file: str = "d.py", message: str = "SyntaxError: invalid syntax") -> ParsedFile:
    """A file that could not be imported."""
    return parsed(file=file, problem=ImportProblem(message, f"Traceback …\n{message}", 7))


def with_dag(store: Store, dag_id: str = "d", tasks: Mapping[str, Iterable[str]] | int = 3, **fields: Any) -> int:
    """Register a DAG that is not paused; return the number of its version."""
    store.register_file(parsed(definition(dag_id, tasks, **fields), file=f"{dag_id}.py"), paused_at_creation=False)
    return store.need_dag(dag_id).version


def new_run(store: Store, run_id: str = "r1", dag_id: str = "d", day: int | None = None, **fields: Any) -> NewRun:
    """A manual run; with a logical date if a day is given."""
    date = None if day is None else NOW + day * DAY
    given: dict[str, Any] = {
        "run_type": RunType.MANUAL,
        "version": store.need_dag(dag_id).version,
        "logical_date": date,
        "interval_start": date,
        "interval_end": date,
        "run_after": date if date is not None else NOW,
        "at": NOW,
        "triggered_by": "test",
    }
    return NewRun(dag_id=dag_id, run_id=run_id, **{**given, **fields})


def due(new: NewRun, before: tuple[int | None, int | None, int | None, int] | None = None) -> ScheduledRun:
    """A scheduled run, with the new position of a schedule whose position was `before`."""
    last = (new.logical_date, new.interval_start, new.interval_end, new.run_after)
    return ScheduledRun(new, SchedulePosition(new.dag_id, before, last, None))


def with_run(store: Store, run_id: str = "r1", dag_id: str = "d", day: int | None = None, **fields: Any) -> RunRow:
    return store.create_run(new_run(store, run_id, dag_id, day, **fields))


def rows(store: Store, run: int) -> dict[int, TaskRow]:
    """The task instances of a run, by slot."""
    snapshot = store.snapshot(run)
    assert snapshot is not None
    return {row.slot: row for row in snapshot.rows}


def share(store: Store, run: int, steps: Mapping[int, TaskState], **changes: Any) -> RunWrite:
    """A run's part of a batch, which changes these slots to the given states; QUEUED raises the fence."""
    row = store.run(run)
    assert row is not None
    held = rows(store, run)
    tasks, journal = [], []
    for slot, state in steps.items():
        before = held[slot]
        fence = before.fence + (state is S.QUEUED)
        after = before._replace(state=state.code, fence=fence, try_number=max(1, before.try_number))
        tasks.append(TaskWrite(after, before.state, before.fence))
        journal.append(JournalEntry(slot, fence, before.state, state.code, NOW, f"to {state.value}"))
    given: dict[str, Any] = {
        "state": RunState.RUNNING,
        "started_at": NOW,
        "ended_at": None,
        "reason": None,
        "journal_seq": row.journal_seq,
        "tasks": tasks,
        "journal": journal,
    }
    return RunWrite(run, row.revision, **{**given, **changes})


def commit(store: Store, *writes: RunWrite, epoch: int = 0, **parts: Any) -> Committed:
    return store.commit(Batch(epoch, NOW, list(writes), **parts))


def step(store: Store, run: int, *states: TaskState, slot: int = 0, **changes: Any) -> None:
    """Change one slot to these states, one batch for each."""
    for state in states:
        assert commit(store, share(store, run, {slot: state}, **changes)).stale == {}


def finish(store: Store, run: int, state: RunState = RunState.SUCCESS, at: int = NOW) -> None:
    """End a run without its tasks."""
    assert commit(store, share(store, run, {}, state=state, ended_at=at)).stale == {}


def xcom(task_id: str, value: bytes | None = b"1", key: str = "return_value", map_index: int = -1, **fields: Any) -> XComWrite:
    return XComWrite(task_id, map_index, key, value, fields.pop("spill", None), len(value or b""), fields.pop("at", NOW))


# --- rows that no operation returns -------------------------------------------------------------------------------------------


def attempts(store: Store, run: int) -> list[tuple[int, int, int | None, str | None, str | None]]:
    """(slot, fence, end, outcome, reason) of every attempt, in order."""
    assert isinstance(store, SqlStore)
    return [(one.slot, one.fence, one.ended_at, one.outcome, one.reason) for one in store.attempts_of_run(run)]


def notes(store: Store, run: int) -> dict[int, str]:
    """The notes of task instances, by slot."""
    assert isinstance(store, SqlStore)
    sql = "SELECT slot, note FROM task_instance WHERE run = ? AND note IS NOT NULL ORDER BY slot"
    return dict(store.engine.rows(sql, (run,)))
