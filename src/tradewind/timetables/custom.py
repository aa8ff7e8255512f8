"""Custom timetables: how they are stored in a definition, and how their methods are called.

Only processes that may run user code call these functions: child processes of the parser, task processes, and `dag.test()`. The
scheduler has only the `CustomSchedule` and sends requests to a child process.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tradewind.model.definition import CustomSchedule
from tradewind.model.errors import ScheduleError
from tradewind.model.ids import DAG_FILE_MODULE
from tradewind.model.moments import to_micros
from tradewind.model.partitions import KEY_MAX
from tradewind.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable, to_pendulum
from tradewind.timetables.runs import Bounds, RunTimes


def to_custom_schedule(timetable: Timetable) -> CustomSchedule:
    """The timetable as stored in the definition: the name of its class, and its arguments.

    Raises:
        ScheduleError: its own validation fails, or it cannot be made again from the stored values.
    """
    kind = type(timetable)
    name = kind.__qualname__
    if "<locals>" in name:
        raise ScheduleError(f"the timetable class {name} is defined inside a function; move it to the top level of its module")
    try:
        timetable.validate()
    except Exception as error:
        raise ScheduleError(f"validate() of the timetable {name} failed: {error or type(error).__name__}") from error
    try:
        data = json.dumps(timetable.serialize(), sort_keys=True).encode()
    except (TypeError, ValueError) as error:
        raise ScheduleError(f"serialize() of the timetable {name} must return JSON values: {error}") from None
    module = "" if kind.__module__.startswith(DAG_FILE_MODULE) else kind.__module__
    limit, description = timetable.active_runs_limit, timetable.description
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ScheduleError(
            f"active_runs_limit of the timetable {name} is {limit!r}; it must be None or an integer of at least 1"
        )
    return CustomSchedule(
        module,
        name,
        data,
        str(description) if description else None,
        not timetable.can_be_scheduled,
        limit,
        bool(timetable.partitioned_at_runtime),
    )


def load_timetable(kind: Any, data: bytes) -> Timetable:
    """Make a timetable from its class and the stored arguments.

    Raises:
        ScheduleError: the class is not a timetable (any more), or its `deserialize` fails to return one.
    """
    if not (isinstance(kind, type) and issubclass(kind, Timetable)):
        raise ScheduleError(f"{kind!r} is not a subclass of Timetable any more")
    found = kind.deserialize(json.loads(data))
    if not isinstance(found, Timetable):
        raise ScheduleError(f"deserialize() of the timetable {kind.__qualname__} returned {found!r}, not a timetable")
    return found


def compute_next_run(timetable: Timetable, last: RunTimes | None, bounds: Bounds) -> RunTimes | None:
    """The run after `last`, computed by the timetable's code.

    Raises:
        ScheduleError: the result is invalid.
        Exception: any exception of the timetable's code.
    """
    before = None
    if last is not None:
        interval = None
        if last.start is not None and last.end is not None:
            interval = DataInterval(to_pendulum(last.start), to_pendulum(last.end))
        before = DagRunInfo(to_pendulum(last.run_after), interval)
    earliest, latest = (None if moment is None else to_pendulum(moment) for moment in bounds[:2])
    found = timetable.next_dagrun_info_v2(
        last_dagrun_info=before, restriction=TimeRestriction(earliest, latest, bounds.catchup)
    )
    if found is None:
        return None
    name = type(timetable).__qualname__
    if not isinstance(found, DagRunInfo):
        raise ScheduleError(f"next_dagrun_info() of {name} returned {found!r}; it must return a DagRunInfo or None")
    run_after = _moment(f"{name}: run_after", found.run_after)
    key, date = found.partition_key, None
    if key is not None and (not isinstance(key, str) or not key.strip() or len(key) > KEY_MAX):
        raise ScheduleError(f"{name} returned the partition key {key!r}; it must be a text with 1 to {KEY_MAX} characters")
    if found.partition_date is not None:
        date = _moment(f"{name}: partition_date", found.partition_date)
    if found.data_interval is None:
        return RunTimes(None, None, None, run_after, key, date)
    start, end = _interval(name, found.data_interval)
    return RunTimes(start, start, end, run_after, key, date)


def compute_manual_interval(timetable: Timetable, at: int) -> tuple[int, int] | None:
    """The data interval of a manually triggered run, computed by the timetable's code.

    Raises:
        ScheduleError: the result is invalid.
        Exception: any exception of the timetable's code.
    """
    found = timetable.infer_manual_data_interval(run_after=to_pendulum(at))
    return None if found is None else _interval(type(timetable).__qualname__, found)


def _interval(name: str, found: Any) -> tuple[int, int]:
    if not isinstance(found, tuple) or len(found) != 2:
        raise ScheduleError(f"{name} returned the data interval {found!r}; it must be a DataInterval")
    start, end = (
        _moment(f"{name}: the data interval's {which}", one) for which, one in zip(("start", "end"), found, strict=True)
    )
    if end < start:
        raise ScheduleError(f"{name} returned a data interval that ends ({found[1]}) before it starts ({found[0]})")
    return start, end


def _moment(what: str, found: Any) -> int:
    if not isinstance(found, datetime):
        raise ScheduleError(f"{what} is {found!r}, a {type(found).__name__}; it must be a datetime")
    if found.tzinfo is None:
        raise ScheduleError(f"{what} is {found}, which has no time zone; return a timezone-aware datetime")
    return to_micros(found)
