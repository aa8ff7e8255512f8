"""Family C of the golden outcomes: when does a timetable fire? See the format's section 5.

`outcome(spec)` answers one specification, as the program under test would.
"""

from __future__ import annotations

from typing import Any

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    Delta,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
)
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import SECOND, iso, parse_moment
from tradewind.timetables import Bounds, RunTimes, delta_of, from_author, manual_interval, next_run, validate


def _delta(value: dict[str, Any] | None) -> Delta:
    if value is None:
        return Delta()
    if "relativedelta" in value:
        return delta_of(**value["relativedelta"])
    return delta_of(seconds=value["seconds"])


def _author_value(value: Any) -> Any:
    """What the DAG author would have passed as `schedule=`."""
    if not isinstance(value, dict):
        return value
    if "relativedelta" in value:
        from dateutil.relativedelta import relativedelta

        return relativedelta(**value["relativedelta"])
    from datetime import timedelta

    return timedelta(seconds=value["seconds"])


def _run_immediately(value: Any) -> bool | int | None:
    if isinstance(value, dict):
        return int(value["seconds"] * SECOND)
    return None if value is None else bool(value)


def schedule_of(spec: dict[str, Any]) -> Schedule:
    """The schedule a specification describes.

    Raises:
        ScheduleError: it cannot be read.
    """
    table = spec["timetable"]
    match table["type"]:
        case "cron_data_interval":
            return CronSchedule((table["cron"],), table["timezone"], interval_kind="data")
        case "cron_trigger" | "multiple_cron_trigger":
            return CronSchedule(
                tuple(table["crons"]) if "crons" in table else (table["cron"],),
                table["timezone"],
                interval=_delta(table.get("interval")),
                run_immediately=_run_immediately(table.get("run_immediately", False)),
            )
        case "delta_data_interval":
            return DeltaSchedule(_delta(table["delta"]), interval_kind="data")
        case "delta_trigger":
            return DeltaSchedule(_delta(table["delta"]), interval=_delta(table.get("interval")))
        case "events":
            dates = sorted(parse_moment(date["utc"]) for date in table["dates"])
            return EventsSchedule(tuple(dates), restrict_to_events=table.get("restrict_to_events", False))
        case "once":
            return OnceSchedule()
        case "continuous":
            return ContinuousSchedule()
        case "null":
            return NoSchedule()
        case "schedule":
            zone = spec["start_date"]["tz"] if "start_date" in spec else "UTC"
            return from_author(_author_value(table["value"]), timezone=zone, defaults="trigger")
        case other:
            raise ValueError(f"unknown type of timetable: {other}")


def outcome(spec: dict[str, Any]) -> dict[str, Any]:
    """The outcome of one specification of family C."""

    def bound(name: str) -> int | None:
        return parse_moment(spec[name]["utc"]) if name in spec else None

    bounds = Bounds(bound("start_date"), bound("end_date"), spec["catchup"])
    now = clock = parse_moment(spec["now"])
    try:
        schedule = schedule_of(spec)
        validate(schedule, bounds)
    except ScheduleError:
        return {"error": "invalid"}
    runs: list[list[str | None]] = []
    last: RunTimes | None = None
    while len(runs) < spec["count"]:
        last = next_run(schedule, last, bounds, clock)
        if last is None:
            break
        runs.append([iso(moment) for moment in last])
        if "clock" in spec:
            clock = max(clock, last.run_after) + spec["clock"]["follow"] * SECOND
    answer: dict[str, Any] = {"runs": runs}
    if "manual" in spec:
        intervals = [manual_interval(schedule, parse_moment(at), now) for at in spec["manual"]]
        answer["manual"] = [pair and [iso(pair[0]), iso(pair[1])] for pair in intervals]
    return answer
