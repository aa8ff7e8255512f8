"""Timetables that users wrote: written down for the definition, and asked.

Only code that may run users' code calls what is here: the parser's children, task processes, `dag.test()`. The scheduler keeps the
`CustomSchedule` and sends its questions to such a child.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tradewind.model.definition import CustomSchedule
from tradewind.model.errors import ScheduleError
from tradewind.model.ids import DAG_FILE_MODULE
from tradewind.model.moments import to_micros
from tradewind.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable, author_moment
from tradewind.timetables.runs import Bounds, RunTimes


def custom_schedule(timetable: Timetable) -> CustomSchedule:
    """The timetable as the definition keeps it: its class by name, and its arguments.

    Raises:
        ScheduleError: it refuses itself, or cannot be found or made again from what it says.
    """
    kind = type(timetable)
    name = kind.__qualname__
    if "<locals>" in name:
        raise ScheduleError(f"the timetable class {name} is made inside a function; move it to the top level of its module")
    try:
        timetable.validate()
    except Exception as error:
        raise ScheduleError(f"the timetable {name} refuses itself: {error or type(error).__name__}") from error
    try:
        data = json.dumps(timetable.serialize(), sort_keys=True).encode()
    except (TypeError, ValueError) as error:
        raise ScheduleError(f"serialize() of the timetable {name} must give JSON values: {error}") from None
    module = "" if kind.__module__.startswith(DAG_FILE_MODULE) else kind.__module__
    limit, description = timetable.active_runs_limit, timetable.description
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ScheduleError(f"active_runs_limit of the timetable {name} is {limit!r}; it must be None or 1 and more")
    return CustomSchedule(module, name, data, str(description) if description else None, not timetable.can_be_scheduled, limit)


def restored(kind: Any, data: bytes) -> Timetable:
    """A timetable from its class and what it said of itself.

    Raises:
        ScheduleError: the class is none of a timetable, or gives nothing.
    """
    if not (isinstance(kind, type) and issubclass(kind, Timetable)):
        raise ScheduleError(f"{kind!r} is no subclass of Timetable any more")
    found = kind.deserialize(json.loads(data))
    if not isinstance(found, Timetable):
        raise ScheduleError(f"deserialize() of the timetable {kind.__qualname__} gave {found!r}, not a timetable")
    return found


def ask_next(timetable: Timetable, last: RunTimes | None, bounds: Bounds) -> RunTimes | None:
    """The run after `last`, from the timetable's own code.

    Raises:
        ScheduleError: what it answers is no run.
        Exception: whatever it raises.
    """
    before = None
    if last is not None:
        interval = None
        if last.start is not None and last.end is not None:
            interval = DataInterval(author_moment(last.start), author_moment(last.end))
        before = DagRunInfo(author_moment(last.run_after), interval)
    earliest, latest = (None if moment is None else author_moment(moment) for moment in bounds[:2])
    found = timetable.next_dagrun_info_v2(
        last_dagrun_info=before, restriction=TimeRestriction(earliest, latest, bounds.catchup)
    )
    if found is None:
        return None
    name = type(timetable).__qualname__
    if not isinstance(found, DagRunInfo):
        raise ScheduleError(f"next_dagrun_info() of {name} gave {found!r}; it must give a DagRunInfo or None")
    if found.partition_key is not None or found.partition_date is not None:
        raise ScheduleError(f"{name} asks for a run of a partition, which is not built yet; give a data_interval")
    run_after = _moment(f"{name}: run_after", found.run_after)
    if found.data_interval is None:
        return RunTimes(None, None, None, run_after)
    start, end = _interval(name, found.data_interval)
    return RunTimes(start, start, end, run_after)


def ask_manual(timetable: Timetable, at: int) -> tuple[int, int] | None:
    """The data interval of a run by hand.

    Raises:
        ScheduleError: what it answers is no interval.
        Exception: whatever it raises.
    """
    found = timetable.infer_manual_data_interval(run_after=author_moment(at))
    return None if found is None else _interval(type(timetable).__qualname__, found)


def _interval(name: str, found: Any) -> tuple[int, int]:
    if not isinstance(found, tuple) or len(found) != 2:
        raise ScheduleError(f"{name} gave the data interval {found!r}; it must be a DataInterval")
    start, end = (
        _moment(f"{name}: the data interval's {which}", one) for which, one in zip(("start", "end"), found, strict=True)
    )
    if end < start:
        raise ScheduleError(f"{name} gave a data interval that ends ({found[1]}) before it starts ({found[0]})")
    return start, end


def _moment(what: str, found: Any) -> int:
    if not isinstance(found, datetime):
        raise ScheduleError(f"{what} is {found!r}, a {type(found).__name__}; it must be a datetime")
    if found.tzinfo is None:
        raise ScheduleError(f"{what} is {found}, which has no time zone")
    return to_micros(found)
