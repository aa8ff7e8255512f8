"""A schedule as a sentence for people."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    CustomSchedule,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
)
from tradewind.model.moments import iso
from tradewind.timetables.cron import CronExpression, Values, compile_cron
from tradewind.timetables.steps import describe_delta, is_zero

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_ORDINALS = ("last", "first", "second", "third", "fourth", "fifth")

_FEW = 6
"""Up to this many clock times are listed."""


def describe(schedule: Schedule) -> str:
    """One sentence, such as "At 06:00, on Monday to Friday (Europe/Paris).".

    Raises:
        ScheduleError: a cron expression is invalid.
    """
    match schedule:
        case NoSchedule():
            return "Only when it is triggered."
        case OnceSchedule():
            return "Once, at its start date."
        case ContinuousSchedule():
            return "Again as soon as the previous run has ended."
        case CronSchedule():
            texts = [_describe_cron(compile_cron(expression)) for expression in schedule.expressions]
            text = "; ".join([texts[0], *(f"and {other[0].lower()}{other[1:]}" for other in texts[1:])])
            return f"{text} ({schedule.timezone}){_interval(schedule)}."
        case DeltaSchedule():
            return f"Every {describe_delta(schedule.delta).removeprefix('1 ')}{_interval(schedule)}."
        case CustomSchedule():
            return schedule.description or f"As its timetable {schedule.name} decides."
        case EventsSchedule(dates=dates):
            if schedule.description:
                return schedule.description
            if len(dates) < 2:
                return f"Once, at {iso(dates[0])}." if dates else "Never: its list of dates is empty."
            return f"At {len(dates)} listed dates, from {iso(dates[0])} to {iso(dates[-1])}."


def _interval(schedule: CronSchedule | DeltaSchedule) -> str:
    if schedule.interval_kind == "data":
        return ", for the time since the previous one"
    return "" if is_zero(schedule.interval) else f", for the preceding {describe_delta(schedule.interval)}"


def _listed(words: Iterable[str], last: str = "and") -> str:
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _runs(values: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted values as ranges: 1, 2, 3, 7 becomes (1, 3), (7, 7)."""
    found: list[tuple[int, int]] = []
    for value in sorted(values):
        if found and found[-1][1] == value - 1:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    return found


def _spoken(values: Iterable[int], names: tuple[str, ...] | None = None) -> str:
    def name(value: int) -> str:
        return names[value] if names else str(value)

    parts: list[str] = []
    for low, high in _runs(values):
        if high - low > 1:
            parts.append(f"{name(low)} to {name(high)}")
        else:
            parts += [name(value) for value in range(low, high + 1)]
    return _listed(parts)


def _describe_cron(cron: CronExpression) -> str:
    minute, hour, day, month, weekday = cron.fields[:5]
    text = _time(cron.columns, minute, hour)
    if len(cron.fields) > 5:
        second = cron.fields[5]
        if second.star:
            text = f"Every second: {text[0].lower()}{text[1:]}"
        elif second.values != {0}:
            text += f", at second {_spoken(second.values)}"
    days = _days(day, weekday)
    if days:
        text += f", {days}"
    if not month.star:
        text += f", in {_spoken(month.values, _MONTHS)}"
    if len(cron.fields) > 6 and not cron.fields[6].star:
        text += f", in {_spoken(cron.fields[6].values)}"
    return text


def _time(columns: tuple[str, ...], minute: Values, hour: Values) -> str:
    if hour.star:
        if minute.star:
            return "Every minute"
        step = columns[0].removeprefix("*/")
        if columns[0].startswith("*/") and step.isdigit() and 60 % int(step) == 0:
            return f"Every {step} minutes"
        return "Every hour" if minute.values == {0} else f"Every hour at minute {_spoken(minute.values)}"
    if len(hour.values) * len(minute.values) <= _FEW:
        return f"At {_listed(f'{h:02d}:{m:02d}' for h in sorted(hour.values) for m in sorted(minute.values))}"
    hours = f"{_plural('hour', hour.values)} {_spoken(hour.values)}"
    if minute.star:
        return f"Every minute of {hours}"
    if minute.values == {0}:
        return f"On the hour in {hours}"
    return f"At {_plural('minute', minute.values)} {_spoken(minute.values)} of {hours}"


def _plural(word: str, values: Iterable[int]) -> str:
    return word if len(list(values)) == 1 else f"{word}s"


def _days(day: Values, weekday: Values) -> str:
    parts: list[str] = []
    if day.near:
        return f"on the working day nearest to day {day.near} of the month"
    if not day.star and not (weekday.nth and not weekday.star):
        words = [f"{_plural('day', day.values)} {_spoken(day.values)}"] if day.values else []
        words += ["the last day"] if day.last_day else []
        parts.append(f"on {_listed(words)} of the month")
    if weekday.nth:
        named = [f"{_ORDINALS[which]} {_WEEKDAYS[which_day]}" for which_day, which in sorted(weekday.nth)]
        parts.append(f"on the {_listed(named)} of the month")
    elif not weekday.star:
        parts.append(f"on {_spoken(weekday.values, _WEEKDAYS)}")
    if len(parts) == 2 and weekday.nth:
        return f"{parts[0]} if that is {parts[1].removeprefix('on ')}"
    return " or ".join(parts)
