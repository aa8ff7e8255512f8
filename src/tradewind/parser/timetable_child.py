"""In a parse child: call methods of a custom timetable, or of a partition mapper of users.

The child has the same limits as a child that reads a DAG file, and no credentials. It handles one request and ends.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from tradewind.model.dag_run_type import DagRunType
from tradewind.model.definition import CustomSchedule, decode_schedule
from tradewind.model.errors import ScheduleError
from tradewind.parser import problems
from tradewind.parser.parse_result import ChildReport
from tradewind.sdk.load import load_file, module_of, open_folders
from tradewind.timetables.base import Timetable
from tradewind.timetables.custom import (
    compute_backfill_runs,
    compute_manual_interval,
    compute_next_run,
    compute_run_id,
    load_timetable,
)
from tradewind.timetables.runs import Bounds, RunTimes
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

BACKFILL_RUNS_MAX = 10_000
"""Maximum number of runs of a backfill of a custom timetable: they are stored with the backfill."""


def answer(ask: TimetableQuestion, folder: str, memory_limit: int) -> ChildReport:
    """The answer of the timetable. An exception becomes a problem.

    Args:
        folder: absolute path of the bundle that has the DAG file.
    """
    path = os.path.join(folder, ask.file)
    try:
        if ask.mapper:
            return ChildReport(timetable_answer=_map_keys(ask, folder))
        schedule = decode_schedule(ask.schedule)
        if not isinstance(schedule, CustomSchedule):
            raise ScheduleError(f"{schedule!r} is not a custom timetable, so it needs no child process")
        return ChildReport(
            timetable_answer=call_timetable(
                load_timetable(_class_of(schedule.module, schedule.name, ask, folder), schedule.data), ask
            )
        )
    except MemoryError as error:
        return ChildReport(problems=(problems.out_of_memory(error, path, memory_limit),))
    except BaseException as error:
        return ChildReport(problems=(problems.from_exception(error, path),))


def call_timetable(timetable: Timetable, ask: TimetableQuestion) -> TimetableAnswer:
    """Call the method of the timetable. Raises any exception of its code."""
    if ask.manual_at is not None:
        return _about_manual_run(timetable, ask, ask.manual_at)
    if ask.between is not None:
        runs = compute_backfill_runs(timetable, *ask.between, most=BACKFILL_RUNS_MAX)
        return TimetableAnswer(ask.number, runs=tuple(runs))
    last = None if ask.last is None else RunTimes(*ask.last)
    bounds = Bounds(ask.earliest, ask.latest, ask.catchup)
    return TimetableAnswer(ask.number, run=compute_next_run(timetable, last, bounds, named=True))


def _about_manual_run(timetable: Timetable, ask: TimetableQuestion, at: int) -> TimetableAnswer:
    interval = compute_manual_interval(timetable, at) if ask.interval is None else ask.interval
    start, end = interval if interval is not None and ask.dated else (None, None)
    times = RunTimes(start, start, end, at if ask.run_after is None else ask.run_after, ask.partition_key)
    run_id = compute_run_id(timetable, DagRunType(ask.run_type), times)
    return TimetableAnswer(ask.number, interval=interval, run_id=run_id)


def _map_keys(ask: TimetableQuestion, folder: str) -> TimetableAnswer:
    """The downstream keys that a partition mapper gives. An exception for a key is a problem of this key only."""
    from tradewind.sdk import partitions  # lazy import: few DAGs have such mappers

    mapper = partitions.decode_mapper(ask.mapper, lambda module, name: _class_of(module, name, ask, folder))
    return TimetableAnswer(ask.number, mapped=tuple(partitions.map_key(mapper, key, date) for key, date in ask.keys))


def _class_of(module_name: str, name: str, ask: TimetableQuestion, folder: str) -> Any:
    if module_name:
        open_folders(folder, ask.file)
        module = importlib.import_module(module_name)
    else:
        load_file(folder, ask.file, analyse=False)
        module = sys.modules[module_of(ask.file)]
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise ScheduleError(f"{module_name or ask.file} does not contain the class {name} any more")
    return found
