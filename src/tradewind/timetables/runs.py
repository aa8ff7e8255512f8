"""Which run comes next: the rules of Airflow 3.3's timetables.

A scheduled run has a logical date, a data interval [start, end] and a time after which it may start. All are microseconds since the
epoch. Nothing here reads a clock: the caller passes `now`.

Without catchup the next run is for the latest time of the schedule. With catchup every time since the start date (or the last run)
gets its run. For clock changes see `ticks`. There are two intentional differences from Airflow:

- a time in the future is never used as the latest time (Airflow does so just after a clock change);
- `@continuous` never repeats a logical date (Airflow does so after an empty first interval, and then cannot create the run).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, assert_never

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    CustomSchedule,
    Delta,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
)
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import MINUTE, from_micros, to_micros
from tradewind.model.partitions import CronPartition
from tradewind.timetables.partition_keys import aware, cron_key
from tradewind.timetables.steps import nominal_length, shift
from tradewind.timetables.ticks import Ticks, ticks
from tradewind.timetables.zones import zone

_JUST_MISSED = 5 * MINUTE
"""With `run_immediately=None` or False, a time that passed at most this long (or a tenth of the interval) ago gets its run."""


class RunTimes(NamedTuple):
    """The dates of one run. `logical_date`, `start` and `end` are None for a run without a data interval."""

    logical_date: int | None
    start: int | None
    end: int | None
    run_after: int
    partition_key: str | None = None
    partition_date: int | None = None
    run_id: str | None = None
    """The id that a custom timetable has given; None: the id follows from the dates."""


class Bounds(NamedTuple):
    """The first and the last date of a DAG's scheduled runs (start date, end date), and whether missed runs are created."""

    earliest: int | None
    latest: int | None
    catchup: bool


def _interval(start: int, end: int) -> RunTimes:
    """A run that starts at the end of its data interval. Its logical date is the start of the interval."""
    return RunTimes(start, start, end, end)


def next_run(schedule: Schedule, last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    """The dates of the scheduled run after `last` (None: there was no run yet). They may be in the future.

    Args:
        schedule: the schedule of the DAG.
        last: the last *scheduled* run, in any state; manually triggered runs do not count.
        bounds: start date, end date and catchup.
        now: the current time.

    Returns:
        None if the schedule has ended or never starts a run.

    Raises:
        ScheduleError: the schedule is a custom timetable, which can run only in a child process.
    """
    match schedule:
        case NoSchedule():
            return None
        case OnceSchedule():
            return _next_once(last, bounds, now)
        case ContinuousSchedule():
            return _next_continuous(last, bounds, now)
        case EventsSchedule():
            return _next_event(schedule, last, bounds, now)
        case CronSchedule(interval_kind="data"):
            return _next_cron_interval(schedule, last, bounds, now)
        case CronSchedule():
            return _next_cron_trigger(schedule, last, bounds, now)
        case DeltaSchedule(interval_kind="data"):
            return _next_delta_interval(schedule, last, bounds, now)
        case DeltaSchedule():
            return _next_delta_trigger(schedule, last, bounds, now)
        case CustomSchedule():
            raise ScheduleError(f"the timetable {schedule.name} is user code, which can run only in a child process")
        case _:
            assert_never(schedule)


def _end_of(last: RunTimes) -> int:
    return last.run_after if last.end is None else last.end


def _too_late(moment: int, bounds: Bounds) -> bool:
    return bounds.latest is not None and moment > bounds.latest


# --- plain schedules ------------------------------------------------------------------------------------------------


def _next_once(last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    if last is not None:
        return None
    moment = now if bounds.earliest is None else bounds.earliest
    return None if _too_late(moment, bounds) else _interval(moment, moment)


def _next_continuous(last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    if last is None:
        start = now if bounds.earliest is None else bounds.earliest
    else:
        start = _end_of(last)
        if last.logical_date is not None:
            start = max(start, last.logical_date + 1)
    end = max(start, now)
    return None if _too_late(end, bounds) else _interval(start, end)


def _next_event(schedule: EventsSchedule, last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    earliest = bounds.earliest
    if not bounds.catchup and (earliest is None or now > earliest):
        earliest = now
    for moment in schedule.dates:
        if earliest is not None and moment < earliest:
            continue
        if last is not None and moment <= _end_of(last):
            continue
        return None if _too_late(moment, bounds) else _interval(moment, moment)
    return None


# --- trigger schedules: a run is at the tick, and its data interval ends there ----------------------------------------


def _next_trigger(
    last: RunTimes | None,
    bounds: Bounds,
    *,
    following: Callable[[int], int | None],
    aligned: Callable[[int], int | None],
    first: Callable[[], int | None],
    latest_tick: Callable[[], int | None],
) -> int | None:
    """The next tick. `following(m)` is the tick after m, `aligned(m)` the first tick at or after m.

    None if a needed tick does not exist, so the schedule has ended.
    """
    if last is not None:
        moment = following(_end_of(last))
    elif bounds.earliest is None:
        moment = first()
    else:
        moment = aligned(bounds.earliest)
    if moment is None:
        return None
    if not bounds.catchup:
        candidates = [moment, latest_tick()]
        if bounds.earliest is not None:
            candidates.append(aligned(bounds.earliest))
        moment = max(candidate for candidate in candidates if candidate is not None)
    return None if _too_late(moment, bounds) else moment


def _next_delta_trigger(schedule: DeltaSchedule, last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    moment = _next_trigger(
        last,
        bounds,
        following=lambda moment: shift(moment, schedule.delta),
        aligned=lambda moment: moment,
        first=lambda: now,
        latest_tick=lambda: now,
    )
    return None if moment is None else _interval(shift(moment, schedule.interval, -1), moment)


def _next_cron_trigger(schedule: CronSchedule, last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    """For several expressions: with catchup the earliest logical date; without, the latest that has passed, else the earliest."""
    moments: list[int] = []
    for expression in schedule.expressions:
        clock = ticks(expression, schedule.timezone)
        moment = _next_trigger(
            last,
            bounds,
            following=clock.after,
            aligned=clock.at_or_after,
            first=lambda clock=clock: _first_tick(schedule, clock, now),  # type: ignore[misc]
            latest_tick=lambda clock=clock: clock.at_or_before(now),  # type: ignore[misc]
        )
        if moment is not None:
            moments.append(moment)
    if not moments:
        return None
    if schedule.partition is not None:
        return partition_run(schedule, schedule.partition, moments[0])
    spans = [(shift(moment, schedule.interval, -1), moment) for moment in moments]
    passed = [] if bounds.catchup else [span for span in spans if span[0] <= now]
    return _interval(*(max(passed) if passed else min(spans)))


def _other_tick(clock: Ticks, tick: int, steps: int) -> int | None:
    """The tick that is so many steps later, or earlier if `steps` is negative. None if it does not exist."""
    found: int | None = tick
    for _ in range(abs(steps)):
        found = None if found is None else clock.after(found) if steps > 0 else clock.before(found)
    return found


def partition_run(schedule: CronSchedule, partition: CronPartition, moment: int) -> RunTimes | None:
    """The run at a tick, with the partition key and date that belong to it. None if the partition's tick does not exist."""
    date = _other_tick(ticks(schedule.expressions[0], schedule.timezone), moment, partition.offset)
    if date is None:
        return None
    local = from_micros(date).astimezone(zone(schedule.timezone).tz)
    return RunTimes(None, None, None, moment, cron_key(local, partition.key_format), date)


def partitions_between(schedule: CronSchedule, partition: CronPartition, start: int, end: int) -> Iterator[RunTimes]:
    """The runs of a backfill: one for each tick whose partition date is in [start, end].

    As in Airflow, the clock times of `start` and `end` in UTC mean the same clock times in the time zone of the schedule, and a run
    starts at its partition date. With a positive offset, it starts at the tick of the scheduled run, which is earlier.
    """
    tz, clock = zone(schedule.timezone).tz, ticks(schedule.expressions[0], schedule.timezone)
    first, last = (to_micros(aware(from_micros(moment).replace(tzinfo=None), tz)) for moment in (start, end))
    date = clock.at_or_after(first)
    while date is not None and date <= last:
        due = _other_tick(clock, date, -partition.offset) if partition.offset > 0 else date
        key = cron_key(from_micros(date).astimezone(tz), partition.key_format)
        yield RunTimes(None, None, None, date if due is None else due, key, date)
        date = clock.after(date)


def _first_tick(schedule: CronSchedule, clock: Ticks, now: int) -> int | None:
    """The first tick of a DAG without a start date: the last one that has passed, or the next one."""
    past, future = clock.at_or_before(now), clock.at_or_after(now)
    if past is None or future is None:
        return future if past is None else past
    wanted = schedule.run_immediately
    if wanted is True:
        return past
    if wanted is False or wanted is None:
        grace = max((future - past) / 10, _JUST_MISSED)
    else:
        grace = wanted
    return past if now - past <= grace else future


# --- data interval schedules: a run is at the end of its data interval ------------------------------------------------


def _next_cron_interval(schedule: CronSchedule, last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    clocks = _Union([ticks(expression, schedule.timezone) for expression in schedule.expressions])
    starts: list[int | None] = []
    if bounds.earliest is not None:
        starts.append(clocks.at_or_after(bounds.earliest))
    if not bounds.catchup:
        # the interval that ends at the latest tick; if `now` is a tick, it ends the interval before it
        end = clocks.at_or_before(now)
        starts.append(None if end is None else clocks.before(end))
    if last is not None:
        # aligned to a tick, because the schedule may have changed since
        starts.append(clocks.at_or_before(_end_of(last)))
    known = [start for start in starts if start is not None]
    if not known:
        return None
    start = max(known)
    if _too_late(start, bounds):
        return None
    end = clocks.after(start)
    return None if end is None else _interval(start, end)


def _next_delta_interval(schedule: DeltaSchedule, last: RunTimes | None, bounds: Bounds, now: int) -> RunTimes | None:
    starts: list[int] = []
    if bounds.earliest is not None:
        starts.append(bounds.earliest)
    if not bounds.catchup:
        anchor = now if bounds.earliest is None else bounds.earliest
        starts.append(shift(_latest_boundary(schedule.delta, anchor, now), schedule.delta, -1))
    if last is not None:
        starts.append(_end_of(last))
    if not starts:
        return None
    start = max(starts)
    return None if _too_late(start, bounds) else _interval(start, shift(start, schedule.delta))


def _latest_boundary(delta: Delta, anchor: int, now: int) -> int:
    """The end of the last data interval that is over; `anchor` if there is none.

    Months and years have no fixed length. They are counted one by one from the anchor, the start date, because the end of a month
    shortens each step (31 January, 28 February, 28 March). Other lengths are counted from the epoch, as in Airflow.
    """
    parts = dict(delta.parts)
    if not (parts.get("months") or parts.get("years")):
        length = nominal_length(delta)
        return now - now % length if length > 0 else now
    boundary, following = anchor, shift(anchor, delta)
    while boundary < following <= now:
        boundary, following = following, shift(following, delta)
    return boundary


class _Union:
    """The matching times of several cron expressions together."""

    def __init__(self, parts: list[Ticks]) -> None:
        self._parts = parts

    def after(self, moment: int) -> int | None:
        return min((found for part in self._parts if (found := part.after(moment)) is not None), default=None)

    def at_or_after(self, moment: int) -> int | None:
        return min((found for part in self._parts if (found := part.at_or_after(moment)) is not None), default=None)

    def before(self, moment: int) -> int | None:
        return max((found for part in self._parts if (found := part.before(moment)) is not None), default=None)

    def at_or_before(self, moment: int) -> int | None:
        return max((found for part in self._parts if (found := part.at_or_before(moment)) is not None), default=None)


# --- manual runs and forecasts ----------------------------------------------------------------------------------------


def manual_interval(schedule: Schedule, at: int, now: int) -> tuple[int, int] | None:
    """The data interval (start, end) of a run that is triggered manually for `at`; None if there is none.

    `now` is an argument because custom timetables may use it; the schedules here do not.

    Raises:
        ScheduleError: the schedule is a custom timetable, which can run only in a child process.
    """
    match schedule:
        case CronSchedule(interval_kind="data"):
            clocks = _Union([ticks(expression, schedule.timezone) for expression in schedule.expressions])
            end = clocks.at_or_before(at)
            start = None if end is None else clocks.before(end)
            return None if start is None or end is None else (start, end)
        case DeltaSchedule(interval_kind="data"):
            return shift(at, schedule.delta, -1), at
        case CronSchedule(partition=CronPartition()):
            return None
        case CronSchedule() | DeltaSchedule():
            return shift(at, schedule.interval, -1), at
        case CustomSchedule():
            raise ScheduleError(f"the timetable {schedule.name} is user code, which can run only in a child process")
        case EventsSchedule(restrict_to_events=True, dates=dates) if dates:
            moment = max((moment for moment in dates if moment <= at), default=dates[0])
            return moment, moment
        case _:
            return at, at


def upcoming(schedule: Schedule, after: int, count: int | None = None) -> Iterator[int]:
    """The times after `after` at which runs become due, at most `count` of them (None: no limit).

    A `DeltaSchedule` counts from `after`, so pass the time of its last run. `@once`, `@continuous` and no schedule give no times.
    """
    left = math.inf if count is None else count
    moment: int | None = after
    while left > 0:
        left -= 1
        moment = following(schedule, after if moment is None else moment)
        if moment is None:
            return
        yield moment


def following(schedule: Schedule, moment: int) -> int | None:
    """The first time of the schedule after `moment`; None if it has no times."""
    match schedule:
        case CronSchedule():
            return _Union([ticks(expression, schedule.timezone) for expression in schedule.expressions]).after(moment)
        case DeltaSchedule():
            return shift(moment, schedule.delta)
        case EventsSchedule():
            return min((date for date in schedule.dates if date > moment), default=None)
        case _:
            return None


def preceding(schedule: Schedule, moment: int) -> int | None:
    """The last time of the schedule before `moment`; None if it has no times."""
    match schedule:
        case CronSchedule():
            return _Union([ticks(expression, schedule.timezone) for expression in schedule.expressions]).before(moment)
        case DeltaSchedule():
            return shift(moment, schedule.delta, -1)
        case EventsSchedule():
            return max((date for date in schedule.dates if date < moment), default=None)
        case _:
            return None
