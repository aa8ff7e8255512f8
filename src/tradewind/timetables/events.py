"""A timetable with a list of dates."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tradewind.model.definition import EventsSchedule, Schedule
from tradewind.model.errors import ScheduleError
from tradewind.model.moments import to_micros
from tradewind.timetables.base import Timetable
from tradewind.timetables.builtin import BuiltInTimetable
from tradewind.timetables.zones import zone


class EventsTimetable(BuiltInTimetable):
    """Runs at the listed dates, with data intervals of length zero.

    Args:
        event_dates: the dates. Dates without a time zone are in the DAG's time zone.
        restrict_to_events: a manually triggered run gets the date of the latest event before it, instead of its own date.
        presorted: the dates are already sorted.
        description: a sentence for people.
    """

    def __init__(
        self,
        event_dates: Iterable[datetime],
        restrict_to_events: bool = False,
        presorted: bool = False,
        description: str | None = None,
    ) -> None:
        self.event_dates = list(event_dates)
        self.restrict_to_events = restrict_to_events
        self.presorted = presorted
        self._description = None if description is None else str(description)
        for date in self.event_dates:
            if not isinstance(date, datetime):
                raise ScheduleError(f"event_dates contains {date!r}, a {type(date).__name__}; all elements must be datetimes")

    @property
    def summary(self) -> str:
        return self._description or f"{len(self.event_dates)} events"

    def as_schedule(self, timezone: str = "UTC") -> Schedule:
        tz = zone(timezone).tz
        moments = [to_micros(date if date.tzinfo is not None else date.replace(tzinfo=tz)) for date in self.event_dates]
        if self.presorted and moments != sorted(moments):
            raise ScheduleError(
                "EventsTimetable has presorted=True, but its event_dates are not sorted; sort them, or remove presorted"
            )
        return EventsSchedule(tuple(sorted(moments)), bool(self.restrict_to_events), self._description)

    def serialize(self) -> dict[str, Any]:
        return {
            "event_dates": [date.isoformat() for date in self.event_dates],
            "restrict_to_events": self.restrict_to_events,
            "description": self._description,
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        dates = [datetime.fromisoformat(date) for date in data["event_dates"]]
        return cls(dates, data["restrict_to_events"], description=data.get("description"))
