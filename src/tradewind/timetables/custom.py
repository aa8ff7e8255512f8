"""Custom timetables: how they are stored in a definition, and how their methods are called.

Only processes that may run user code call these functions: child processes of the parser, task processes, and `dag.test()`. The
scheduler has only the `CustomSchedule` and sends requests to a child process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tradewind.model.dag_run_type import DagRunType
from tradewind.model.definition import CustomSchedule
from tradewind.model.errors import ScheduleError
from tradewind.model.ids import DAG_FILE_MODULE, check_run_id
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
        names_runs(timetable),
        bool(timetable.periodic),
    )


def names_runs(timetable: Timetable) -> bool:
    """True if the class of the timetable has a `generate_run_id` of its own."""
    return type(timetable).generate_run_id is not Timetable.generate_run_id


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


def compute_next_run(timetable: Timetable, last: RunTimes | None, bounds: Bounds, *, named: bool = False) -> RunTimes | None:
    """The run after `last`, computed by the timetable's code; with `named`, also its run id.

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
    return None if found is None else _times(timetable, "next_dagrun_info", found, DagRunType.SCHEDULED if named else None)


def compute_backfill_runs(timetable: Timetable, start: int, end: int, most: int) -> list[RunTimes]:
    """The runs of a backfill, computed by the timetable's code: those whose logical date, or partition date, is in [start, end].

    Raises:
        ScheduleError: a result is invalid, the runs do not go forward in time, or there are more than `most`.
        Exception: any exception of the timetable's code.
    """
    found: list[RunTimes] = []
    if timetable.partitioned:
        infos = iter(timetable.iter_partition_dagrun_infos(earliest=to_pendulum(start), latest=to_pendulum(end)))
    else:
        infos = _runs_between(timetable, start, end)
    kind = DagRunType.BACKFILL_JOB
    for info in infos:
        found.append(
            _times(timetable, "iter_partition_dagrun_infos" if timetable.partitioned else "next_dagrun_info", info, kind)
        )
        if len(found) > most:
            raise ScheduleError(f"the backfill would have more than {most:,} runs; give a shorter span")
    return found


def _runs_between(timetable: Timetable, start: int, end: int) -> Iterator[DagRunInfo]:
    latest = to_pendulum(end)
    restriction = TimeRestriction(to_pendulum(start), latest, True)
    last: DagRunInfo | None = None
    while (info := timetable.next_dagrun_info_v2(last_dagrun_info=last, restriction=restriction)) is not None:
        if not isinstance(info, DagRunInfo) or info.logical_date is None or info.logical_date > latest:
            return
        if last is not None and last.logical_date is not None and info.logical_date <= last.logical_date:
            name = type(timetable).__qualname__
            raise ScheduleError(
                f"{name} gave the run of {info.logical_date}, which is not after the one of {last.logical_date}"
            )
        yield info
        last = info


def compute_run_id(timetable: Timetable, run_type: DagRunType, times: RunTimes) -> str | None:
    """The id of a run, computed by the timetable's code; None: its class gives no ids.

    Raises:
        ScheduleError: the result is not a text.
        WrongName: the result cannot be a run id.
        Exception: any exception of the timetable's code.
    """
    if not names_runs(timetable):
        return None
    interval = None
    if times.start is not None and times.end is not None:
        interval = DataInterval(to_pendulum(times.start), to_pendulum(times.end))
    more = {} if times.partition_key is None else {"partition_key": times.partition_key}
    found = timetable.generate_run_id(run_type=run_type, run_after=to_pendulum(times.run_after), data_interval=interval, **more)
    if not isinstance(found, str):
        raise ScheduleError(f"generate_run_id() of {type(timetable).__qualname__} returned {found!r}; it must return a text")
    check_run_id(found)
    return found


def _times(timetable: Timetable, method: str, found: Any, run_type: DagRunType | None) -> RunTimes:
    """A `DagRunInfo` as plain values; with a type, also the run id that the timetable gives. Raises ScheduleError."""
    name = type(timetable).__qualname__
    if not isinstance(found, DagRunInfo):
        raise ScheduleError(f"{method}() of {name} returned {found!r}; it must return a DagRunInfo or None")
    run_after = _moment(f"{name}: run_after", found.run_after)
    key, date = found.partition_key, None
    if key is not None and (not isinstance(key, str) or not key.strip() or len(key) > KEY_MAX):
        raise ScheduleError(f"{name} returned the partition key {key!r}; it must be a text with 1 to {KEY_MAX} characters")
    if found.partition_date is not None:
        date = _moment(f"{name}: partition_date", found.partition_date)
    if found.data_interval is None:
        times = RunTimes(None, None, None, run_after, key, date)
    else:
        start, end = _interval(name, found.data_interval)
        times = RunTimes(start, start, end, run_after, key, date)
    return times if run_type is None else times._replace(run_id=compute_run_id(timetable, run_type, times))


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
