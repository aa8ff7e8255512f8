"""`python -m benchmarks.page_data --home FOLDER --dags N --tasks N --runs N`: a database for tests and measurements of the page.

Writes real DAG files (`FOLDER/dags`), registers them, and fills the database with runs, task instances, attempts and logs by SQL:
some 100,000 task instances a second. The same arguments give the same data, except for the times, which end at the present. No
scheduler may be running in the home folder.

Nine of ten runs are successful. A failed run has one failed task, whose downstream tasks are upstream_failed. With
`--unfinished N`, the newest run of the first N DAGs has not ended: some of its tasks are successful, two wait for a retry, two run,
the next wait for a slot. These DAGs are paused. A scheduler that starts later treats their attempts as lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tradewind.kernel.run_summary import encode_summary, summarise
from tradewind.model.definition import DagDefinition, decode_definition
from tradewind.model.states import RunState, TaskState
from tradewind.store.sql.dags import unpack_definition
from tradewind.wire.log_paths import log_path

SECOND = 1_000_000
DAY = 86_400 * SECOND
GROUP = 100
"""Tasks of one group."""
WIDTH = 10
"""Tasks of one layer of a group."""
MAPPED = 12
"""Instances of the mapped task that each DAG of at least ten tasks has."""

SUBJECTS = ("orders", "billing", "weather", "customers", "inventory", "ledger", "sessions", "prices", "shipments", "tickets")
RHYTHMS = ("nightly", "daily", "import", "export", "close", "sync", "forecast", "quality", "archive", "training")
STAGES = ("extract", "check", "load", "score", "publish")
OWNERS = ("ada", "data-platform", "finance", "research")
TAGS = ("finance", "ml", "nightly", "raw", "reporting", "team-a", "team-b")

_FILE = '''"""Generated for tests of the web page."""

from datetime import datetime

from tradewind import DAG, TaskGroup
from tradewind.operators.bash import BashOperator
from tradewind.operators.empty import EmptyOperator

with DAG(
    {dag_id!r},
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    description="Generated with {tasks} tasks.",
    tags={tags!r},
    default_args={{"owner": {owner!r}, "retries": 2}},
    is_paused_upon_creation=False,
) as dag:
    before = None
    for group_id, tasks in {groups!r}:
        with TaskGroup(group_id) as group:
            for place, task_id in enumerate(tasks):
                task = EmptyOperator(task_id=task_id)
                if place >= {width}:
                    group.children[f"{{group_id}}.{{tasks[place - {width}]}}"] >> task
        if before is not None:
            before >> group
        before = group
{mapped}'''

_MAPPED = """    part = BashOperator.partial(task_id="report_part").expand(bash_command=["true"] * {mapped})
    before >> part
"""


class Wanted(NamedTuple):
    """How much data."""

    dags: int
    tasks: int
    """For each DAG."""
    runs: int
    """For each DAG."""
    unfinished: int = 0
    """How many DAGs have a newest run that has not ended."""
    attempts: int = 3
    """Number of the newest runs of each DAG for which attempts and journal are written."""
    log_mb: int = 0
    """Size of the log of one failed task, MB; 0: as short as the others."""
    paused: bool = False
    """Pause the DAGs, so that a scheduler starts no further run."""


class Shape(NamedTuple):
    """What the task instances of a run are made from."""

    version: int
    ids: tuple[str, ...]
    up: list[list[int]]
    down: list[list[int]]
    level: list[int]
    further: tuple[tuple[str, int], ...]
    """(task id, map index) of the rows after the tasks' own."""
    mapped: int
    """Number of the mapped task; −1: there is none."""


def dag_ids(number: int) -> list[str]:
    """The ids of the generated DAGs."""
    names = [f"{subject}_{rhythm}" for rhythm in RHYTHMS for subject in SUBJECTS]
    return [names[i % len(names)] + (f"_{i // len(names):03d}" if i >= len(names) else "") for i in range(number)]


def source_of(dag_id: str, tasks: int, number: int) -> str:
    """The DAG file of one generated DAG."""
    has_mapped = tasks >= WIDTH
    plain = tasks - 1 if has_mapped else tasks
    groups = []
    subject = dag_id.partition("_")[0]
    for start in range(0, plain, GROUP):
        stage = STAGES[start // GROUP % len(STAGES)]
        names = [f"{stage}_{subject}_{i:05d}" for i in range(start, min(start + GROUP, plain))]
        groups.append((f"{stage}_{start // GROUP:02d}", names))
    return _FILE.format(
        dag_id=dag_id,
        tasks=tasks,
        tags=[TAGS[number % len(TAGS)], TAGS[number * 3 % len(TAGS)]] if number % 4 else [TAGS[number % len(TAGS)]],
        owner=OWNERS[number % len(OWNERS)],
        groups=groups,
        width=WIDTH,
        mapped=_MAPPED.format(mapped=MAPPED) if has_mapped else "",
    )


def fill(home: Path, *groups: Wanted) -> dict[str, float]:
    """Create the home folder and its data, with the DAGs of each group after those of the one before. Returns figures:
    `task_instances`, `seconds`.

    Raises:
        ValueError: the home folder has a database already.
    """
    began = time.monotonic()
    if (home / "tradewind.db").exists():
        raise ValueError(f"{home} has a database already; name a new folder")
    dags = home / "dags"
    dags.mkdir(parents=True, mode=0o700)
    owners = [(wanted, place) for wanted in groups for place in range(wanted.dags)]
    ids = dag_ids(len(owners))
    for number, (dag_id, (wanted, _)) in enumerate(zip(ids, owners, strict=True)):
        (dags / f"{dag_id}.py").write_text(source_of(dag_id, wanted.tasks, number))
    _register(home, dags)
    database = sqlite3.connect(home / "tradewind.db", isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("BEGIN")
    number = 0
    for count, (dag_id, (wanted, place)) in enumerate(zip(ids, owners, strict=True), 1):
        number += _fill_dag(database, home / "logs", dag_id, wanted, place)
        if count % 100 == 0:
            database.execute("COMMIT")
            database.execute("BEGIN")
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return {"task_instances": number, "seconds": round(time.monotonic() - began, 1)}


def _register(home: Path, dags: Path) -> None:
    from benchmarks.deployment import register_folder  # imports the settings, which read the environment

    os.environ["TRADEWIND_HOME"] = str(home)
    register_folder(str(dags))


def _fill_dag(database: sqlite3.Connection, logs: Path, dag_id: str, wanted: Wanted, place: int) -> int:
    version, packed = database.execute(
        "SELECT v.id, v.definition FROM dag d JOIN dag_version v ON v.id = d.version WHERE d.dag_id = ?", (dag_id,)
    ).fetchone()
    shape = shape_of(version, decode_definition(unpack_definition(packed)))
    numbers = {task_id: number for number, task_id in enumerate(shape.ids)}
    dice = random.Random(place)
    today = time.time_ns() // 1000 // DAY * DAY
    unfinished = place < wanted.unfinished
    rows = 0
    for back in range(wanted.runs - 1, -1, -1):
        date = today - back * DAY - (DAY if datetime.now(UTC).hour < 3 else 0) + 2 * 3600 * SECOND
        newest = back == 0
        state = RunState.RUNNING if newest and unfinished else RunState.FAILED if dice.random() < 0.1 else RunState.SUCCESS
        run = _insert_run(database, dag_id, shape, state, date)
        tasks = list(_task_rows(run, shape, state, date + 2 * SECOND, dice))
        database.executemany(_INSERT_TASK, tasks)
        database.execute(
            "UPDATE dag_run SET ended_at = ? WHERE id = ? AND state >= 2", (max(row[9] or date for row in tasks), run)
        )
        if state is not RunState.RUNNING:
            summary = summarise(shape.version, numbers, ((row[2], row[4]) for row in tasks))
            database.execute(_INSERT_SUMMARY, (run, encode_summary(summary), run))
        if back < wanted.attempts:
            _insert_history(database, run, tasks)
            large = wanted.log_mb if place == 0 else 0
            _write_logs(logs, dag_id, date, tasks, large)
        rows += len(tasks)
    if unfinished or wanted.paused:
        database.execute("UPDATE dag SET is_paused = 1 WHERE dag_id = ?", (dag_id,))
    return rows


def shape_of(version: int, definition: DagDefinition) -> Shape:
    """The edges and levels of a DAG. A task comes after its upstream tasks in generated files."""
    index = {task.task_id: i for i, task in enumerate(definition.tasks)}
    up = [[index[one] for one in task.upstream] for task in definition.tasks]
    down: list[list[int]] = [[] for _ in up]
    level = [0] * len(up)
    for i, parents in enumerate(up):
        for parent in parents:
            down[parent].append(i)
        level[i] = max((level[parent] + 1 for parent in parents), default=0)
    mapped = next((i for i, task in enumerate(definition.tasks) if task.mapped), -1)
    further = tuple((definition.tasks[mapped].task_id, i) for i in range(1, MAPPED)) if mapped >= 0 else ()
    return Shape(version, tuple(index), up, down, level, further, mapped)


def run_id_of(date: int) -> str:
    return f"scheduled__{datetime.fromtimestamp(date / SECOND, UTC).isoformat()}"


_INSERT_TASK = """INSERT INTO task_instance (run, slot, task_id, map_index, state, fence, try_number, max_tries, queued_at,
    started_at, ended_at, reason) VALUES (?, ?, ?, ?, ?, ?, ?, 2, ?, ?, ?, ?)"""

_INSERT_SUMMARY = """INSERT INTO run_summary (run, journal_seq, summary) SELECT ?, journal_seq, ? FROM dag_run WHERE id = ?"""

TaskTuple = tuple[int, int, str, int, int, int, int, int | None, int | None, int | None, str | None]


def _insert_run(database: sqlite3.Connection, dag_id: str, shape: Shape, state: RunState, date: int) -> int:
    count = len(shape.ids) + len(shape.further)
    cursor = database.execute(
        """INSERT INTO dag_run (dag_id, run_id, run_type, state, version, logical_date, interval_start, interval_end, run_after,
           queued_at, started_at, ended_at, triggered_by, task_count, rows_created, revision, journal_seq)
           VALUES (?, ?, 'scheduled', ?, ?, ?, ?, ?, ?, ?, ?, NULL, 'timetable', ?, ?, 1, ?)""",
        (dag_id, run_id_of(date), state.code, shape.version, *[date] * 5, date + SECOND, count, count, 4 * count),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _task_rows(run: int, shape: Shape, state: RunState, start: int, dice: random.Random) -> Iterator[TaskTuple]:
    states = states_of(shape, state, dice)
    begins = [start + level * 40 * SECOND for level in shape.level]
    for slot, code in enumerate(states):
        own = slot < len(shape.ids)
        task_id, index = (shape.ids[slot], -1) if own else shape.further[slot - len(shape.ids)]
        if slot == shape.mapped:
            index = 0
        began = begins[slot if own else shape.mapped]
        lasts = (5 + (slot * 7919) % 30) * SECOND
        tried = 0 if code in _NEVER_TRIED else 3 if code == _FAILED else 1
        queued = None if not tried else began
        started = None if not tried or code == _QUEUED else began + SECOND // 4
        ended = began + lasts if code in _ENDED else None
        reason = "KeyError: 'sku'" if code == _FAILED else None
        yield (run, slot, task_id, index, code, tried, tried, queued, started, ended, reason)


_NONE, _SCHEDULED, _QUEUED, _RUNNING = (one.code for one in tuple(TaskState)[:4])
_SUCCESS, _FAILED, _SKIPPED, _UPSTREAM_FAILED = (one.code for one in tuple(TaskState)[4:8])
_UP_FOR_RETRY = TaskState.UP_FOR_RETRY.code
_NEVER_TRIED = frozenset({_NONE, _SCHEDULED, _SKIPPED, _UPSTREAM_FAILED})
_ENDED = frozenset({_SUCCESS, _FAILED, _SKIPPED, _UPSTREAM_FAILED, _UP_FOR_RETRY})


def states_of(shape: Shape, state: RunState, dice: random.Random) -> bytearray:
    """The states of a run's task instances by slot, as codes of `TaskState`."""
    count = len(shape.ids)
    states = bytearray([_SUCCESS]) * (count + len(shape.further))
    if state is RunState.SUCCESS:
        for i in dice.sample(range(count), count // 50):
            if not shape.down[i]:
                states[i] = _SKIPPED
    elif state is RunState.FAILED:
        failed = dice.randrange(count)
        stack, states[failed] = list(shape.down[failed]), _FAILED
        while stack:
            one = stack.pop()
            if states[one] == _SUCCESS:
                states[one] = _UPSTREAM_FAILED
                stack.extend(shape.down[one])
    else:
        place = count * 2 // 3
        for i in range(place, len(states)):
            first = i - place
            code = _UP_FOR_RETRY if first < 2 else _RUNNING if first < 4 else _SCHEDULED if first < 8 else _NONE
            states[i] = code if i < count else _NONE
    return states


def _insert_history(database: sqlite3.Connection, run: int, tasks: Sequence[TaskTuple]) -> None:
    """The attempts and the journal of a run."""
    attempts, steps = [], []
    for _, slot, _, _, code, _, tried, queued, started, ended, reason in tasks:
        for number in range(1, tried + 1):
            last = number == tried
            shift = (tried - number) * 60 * SECOND
            attempts.append(
                (
                    *(run, slot, number, number, "local", "host", "localhost", 4000 + slot % 1000),
                    *(_shifted(queued, shift), _shifted(started, shift), _shifted(ended, shift)),
                    ("success" if code == _SUCCESS else "failed" if ended else None) if last else "failed",
                    reason,
                )
            )
            for before, after, at in (
                (_NONE if number == 1 else _UP_FOR_RETRY, _SCHEDULED, queued),
                (_SCHEDULED, _QUEUED, queued),
                (_QUEUED, _RUNNING, started),
                (_RUNNING, code if last else _UP_FOR_RETRY, ended),
            ):
                if at is not None:
                    steps.append((slot, number, before, after, at - shift, "generated"))
    steps.sort(key=lambda step: step[4])
    database.executemany(
        """INSERT INTO attempt (run, slot, fence, try_number, executor, host, hostname, pid, queued_at, started_at, ended_at,
           outcome, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        attempts,
    )
    database.executemany(
        "INSERT INTO journal (run, seq, slot, fence, before, after, at, cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((run, seq, *step) for seq, step in enumerate(steps, 1)),
    )
    for table, column in (("dag_run", "id"), ("run_summary", "run")):
        database.execute(f"UPDATE {table} SET journal_seq = ? WHERE {column} = ?", (len(steps), run))


def _shifted(moment: int | None, by: int) -> int | None:
    return None if moment is None else moment - by


_TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/opt/dags/load.py", line 41, in load',
    '    totals[row["sku"]] += row["amount"]',
    "KeyError: 'sku'",
)


def _write_logs(logs: Path, dag_id: str, date: int, tasks: Sequence[TaskTuple], large_mb: int) -> None:
    """The log of the last try of each failed task."""
    for _, _, task_id, index, code, fence, tried, _, started, _, _ in tasks:
        if code != _FAILED or started is None:
            continue
        path = logs / log_path(dag_id, run_id_of(date), task_id, index, tried, fence)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        line = _log_line(started, "info", "\x1b[32mread\x1b[0m 1000 rows from the warehouse")
        with path.open("w") as file:
            for _ in range(max(20, large_mb * 1_000_000 // len(line))):
                file.write(line)
            for text in _TRACEBACK:
                file.write(_log_line(started + SECOND, "error", text))


def _log_line(moment: int, level: str, event: str) -> str:
    stamp = datetime.fromtimestamp(moment / SECOND, UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"timestamp": stamp, "level": level, "event": event}, separators=(",", ":")) + "\n"


def main() -> int:
    """Read the arguments, fill, and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_data", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--home", type=Path, required=True, help="a new home folder; then start with TRADEWIND_HOME=FOLDER")
    parser.add_argument("--dags", type=int, default=1)
    parser.add_argument("--tasks", type=int, default=10, help="number for each DAG")
    parser.add_argument("--runs", type=int, default=10, help="number for each DAG, one for each day")
    parser.add_argument("--unfinished", type=int, default=0, help="number of DAGs whose newest run has not ended")
    parser.add_argument("--attempts", type=int, default=3, help="newest runs of each DAG with attempts, journal and logs")
    parser.add_argument("--log-mb", type=int, default=0, help="size of one failed task's log in the first DAG, MB")
    given = parser.parse_args()
    wanted = Wanted(given.dags, given.tasks, given.runs, given.unfinished, given.attempts, given.log_mb)
    try:
        print(json.dumps(fill(given.home.absolute(), wanted)))
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
