"""Makes the commands that store runs, from the rows of an Airflow database. Pure, except for large XComs, which become files."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tradewind.cli.import_airflow.database import Row
from tradewind.cli.import_airflow.decisions import decide_run, run_type, task_state
from tradewind.cli.import_airflow.source import SourceRun
from tradewind.cli.import_airflow.values import Unreadable, conf_of_run, micros, xcom_value
from tradewind.execution.xcom_codec import encode_xcom
from tradewind.model.states import RunState
from tradewind.sdk.exceptions import XComNotSerializable
from tradewind.wire import commands as c


class Prepared(NamedTuple):
    """A run that can be stored, or the reason why it cannot; and notes about parts that are left out."""

    run: c.ImportedRun | None
    reason: str
    notes: list[str]


class XComRules(NamedTuple):
    """How XComs are stored. Values above `inline_max` bytes become files, which `spill` writes and names. Values above `most`
    bytes are left out.
    """

    inline_max: int
    most: int
    spill: Callable[[bytes], str]


def prepare_run(source: SourceRun, rules: XComRules, *, is_paused: bool, scheduler_lives: bool) -> Prepared:
    """Convert a run. `decide_run` decides whether it is imported."""
    row = source.row
    states = [(task["task_id"], task["state"]) for task in source.tasks]
    decision = decide_run(row["state"], states, is_paused=is_paused, scheduler_lives=scheduler_lives)
    if decision.state is None:
        return Prepared(None, decision.reason, [])
    notes: list[str] = []
    try:
        conf = conf_of_run(row["conf"])
    except Unreadable as problem:
        notes.append(f"conf of {row['dag_id']} {row['run_id']}: {problem}")
        conf = {}
    try:
        run = _run(source, decision.state, conf, _xcoms(source, rules, notes))
    except Unreadable as problem:
        return Prepared(None, str(problem), notes)
    return Prepared(run, "", notes)


def _run(source: SourceRun, state: RunState, conf: dict[str, object], xcoms: list[c.ImportedXCom]) -> c.ImportedRun:
    row, date = source.row, source.logical_date
    start, end = micros(row["data_interval_start"]), micros(row["data_interval_end"])
    started = micros(row["start_date"])
    after = micros(row["run_after"]) or end or date or started
    if after is None:
        raise Unreadable("the run has no date")
    tasks = [_task(task, finished=state is not RunState.QUEUED) for task in source.tasks]
    return c.ImportedRun(
        row["dag_id"],
        row["run_id"],
        run_type(row["run_type"], row["run_id"]),
        state,
        date,
        date if start is None else start,
        end,
        after,
        micros(row["queued_at"]) or started or after,
        started,
        micros(row["end_date"]) if state is not RunState.QUEUED else None,
        conf,
        row["note"],
        row["triggering_user_name"],
        tasks,
        xcoms,
        row["partition_key"] or None,
        micros(row["partition_date"]),
    )


def _task(row: Row, *, finished: bool) -> c.ImportedTask:
    state = task_state(row["state"])
    max_tries = row["max_tries"]
    return c.ImportedTask(
        row["task_id"],
        state,
        -1 if row["map_index"] is None else row["map_index"],
        max(row["try_number"] or 0, 0),
        None if max_tries is None or max_tries < 0 else max_tries,
        micros(row["queued_dttm"]),
        micros(row["start_date"]),
        micros(row["end_date"]),
        row["hostname"] or None,
        row["operator"],
        row["length"],
        f"{row['state']} in Airflow" if finished and row["state"] not in (None, state.value) else None,
        row["note"],
        [_try(one) for one in sorted(row["tries"], key=lambda one: one["try_number"] or 0)],
    )


def _try(row: Row) -> c.ImportedTry:
    state = row["state"]
    return c.ImportedTry(
        max(row["try_number"] or 1, 1),
        state if state in ("success", "failed", "skipped") else "failed",
        micros(row["queued_dttm"]),
        micros(row["start_date"]),
        micros(row["end_date"]),
        row["hostname"] or None,
    )


def _xcoms(source: SourceRun, rules: XComRules, notes: list[str]) -> list[c.ImportedXCom]:
    """The XComs of a run. An XCom that cannot be converted is left out, with a note. Of several XComs with the same name, the
    latest is used.
    """
    found: dict[tuple[str, int, str], c.ImportedXCom] = {}
    for row in sorted(source.xcoms, key=lambda one: micros(one["timestamp"]) or 0):
        index = -1 if row["map_index"] is None else row["map_index"]
        where = f"XCom {row['key']} of {source.row['dag_id']}.{row['task_id']} in {source.row['run_id']}"
        try:
            data = encode_xcom(xcom_value(row["value"]), row["key"])
        except (Unreadable, XComNotSerializable) as problem:
            notes.append(f"{where}: {problem}")
            continue
        if len(data) > rules.most:
            notes.append(f"{where}: it has {len(data)} bytes; at most {rules.most} are allowed (core.xcom_max_bytes)")
            continue
        large = len(data) > rules.inline_max
        found[row["task_id"], index, row["key"]] = c.ImportedXCom(
            row["task_id"],
            index,
            row["key"],
            None if large else data,
            rules.spill(data) if large else None,
            len(data),
            micros(row["timestamp"]) or 0,
        )
    return list(found.values())
