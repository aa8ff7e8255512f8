"""A schedule in words, for people: as an English sentence, and as a phrase for other languages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

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
from tradewind.model.moments import shown_moment
from tradewind.model.phrases import Argument, Phrase, all_of, english, phrase
from tradewind.timetables.cron import CronExpression, Values, compile_cron
from tradewind.timetables.steps import delta_phrase, is_zero

_WEEKDAYS = tuple(
    phrase(f"weekday_{day}") for day in ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
)
_MONTHS = tuple(
    phrase(f"month_{month}")
    for month in (
        *("january", "february", "march", "april", "may", "june"),
        *("july", "august", "september", "october", "november", "december"),
    )
)
_ORDINALS = ("last", "first", "second", "third", "fourth", "fifth")

_FEW = 6
"""Up to this many clock times are listed."""


def describe(schedule: Schedule) -> str:
    """One sentence, such as "At 06:00, on Monday to Friday (Europe/Paris).".

    Raises:
        ScheduleError: a cron expression is invalid.
    """
    if isinstance(schedule, CustomSchedule | EventsSchedule) and schedule.description:
        return schedule.description
    return f"{english(schedule_phrase(schedule))}."


def schedule_phrase(schedule: Schedule) -> Phrase:
    """The sentence of `describe` as a phrase, without the full stop. A description by the author is not translated.

    Raises:
        ScheduleError: a cron expression is invalid.
    """
    match schedule:
        case NoSchedule():
            return phrase("schedule_none")
        case OnceSchedule():
            return phrase("schedule_once")
        case ContinuousSchedule():
            return phrase("schedule_continuous")
        case CronSchedule():
            times = [_of_cron(compile_cron(expression)) for expression in schedule.expressions]
            joined = reduce(lambda first, second: phrase("cron_also", first=first, second=second), times)
            return _with_interval(schedule, phrase("schedule_in_zone", times=joined, zone=schedule.timezone))
        case DeltaSchedule():
            return _with_interval(schedule, phrase("schedule_every", length=delta_phrase(schedule.delta, every=True)))
        case CustomSchedule():
            return _own_words(schedule.description) or phrase("schedule_custom", timetable=schedule.name)
        case EventsSchedule(dates=dates):
            written = _own_words(schedule.description)
            if written is not None:
                return written
            if len(dates) < 2:
                return phrase("schedule_once_at", at=shown_moment(dates[0])) if dates else phrase("schedule_never")
            first, last = shown_moment(dates[0]), shown_moment(dates[-1])
            return phrase("schedule_dates", count=len(dates), first=first, last=last)


def _own_words(description: str | None) -> Phrase | None:
    return phrase("words", text=description.removesuffix(".")) if description else None


def _with_interval(schedule: CronSchedule | DeltaSchedule, text: Phrase) -> Phrase:
    if schedule.interval_kind == "data":
        return phrase("schedule_since_previous", schedule=text)
    if is_zero(schedule.interval):
        return text
    return phrase("schedule_preceding", schedule=text, length=delta_phrase(schedule.interval))


def _ranges(values: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted values as ranges: 1, 2, 3, 7 becomes (1, 3), (7, 7)."""
    found: list[tuple[int, int]] = []
    for value in sorted(values):
        if found and found[-1][1] == value - 1:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    return found


def _spell(values: Iterable[int], names: tuple[Phrase, ...] | None = None, first: int = 0) -> Argument:
    """Return numbers in words: "1 to 3 and 7".

    Args:
        names: the names of the numbers, from `first` on.
    """

    def name(value: int) -> str | Phrase:
        return names[value - first] if names else str(value)

    parts: list[str | Phrase] = []
    for low, high in _ranges(values):
        if high - low > 1:
            parts.append(phrase("range", low=name(low), high=name(high)))
        else:
            parts += [name(value) for value in range(low, high + 1)]
    return all_of(parts)


def _of_cron(cron: CronExpression) -> Phrase:
    minute, hour, day, month, weekday = cron.fields[:5]
    days = _days(day, weekday, monthly=month.star)
    text = _time(cron.columns, minute, hour, daily=days is None)
    if len(cron.fields) > 5:
        second = cron.fields[5]
        if second.star:
            text = phrase("cron_every_second", time=text)
        elif second.values != {0}:
            text = phrase("cron_second", time=text, seconds=_spell(second.values))
    if days is not None:
        text = phrase("cron_days", time=text, days=days)
    if not month.star:
        text = phrase("cron_months", time=text, months=_spell(month.values, _MONTHS, first=1))
    if len(cron.fields) > 6 and not cron.fields[6].star:
        text = phrase("cron_years", time=text, years=_spell(cron.fields[6].values))
    return text


def _time(columns: tuple[str, ...], minute: Values, hour: Values, *, daily: bool) -> Phrase:
    if hour.star:
        if minute.star:
            return phrase("cron_every_minute")
        step = columns[0].removeprefix("*/")
        if columns[0].startswith("*/") and step.isdigit() and 60 % int(step) == 0:
            return phrase("cron_every_minutes", step=step)
        return (
            phrase("cron_every_hour") if minute.values == {0} else phrase("cron_every_hour_at", minutes=_spell(minute.values))
        )
    if len(hour.values) * len(minute.values) <= _FEW:
        times = all_of(f"{h:02d}:{m:02d}" for h in sorted(hour.values) for m in sorted(minute.values))
        return phrase("cron_at_daily", times=times) if daily else phrase("cron_at", times=times)
    spoken = _spell(hour.values)
    hours = phrase("cron_hour", hours=spoken) if len(hour.values) == 1 else phrase("cron_hours", hours=spoken)
    if minute.star:
        return phrase("cron_every_minute_of", hours=hours)
    if minute.values == {0}:
        return phrase("cron_on_the_hour", hours=hours)
    minutes = _spell(minute.values)
    if len(minute.values) == 1:
        return phrase("cron_minute_of", minutes=minutes, hours=hours)
    return phrase("cron_minutes_of", minutes=minutes, hours=hours)


def _days(day: Values, weekday: Values, *, monthly: bool) -> Phrase | None:
    """Return the days in words; None: every day.

    Args:
        monthly: in each month. Other languages than English say "of each month", which is wrong in front of the names of months.
    """
    if day.near:
        return phrase("cron_working_day", day=day.near)
    by_number: Argument | None = None
    if not day.star and not (weekday.nth and not weekday.star):
        words: list[str | Phrase] = []
        if day.values:
            days = _spell(day.values)
            words.append(phrase("cron_day", days=days) if len(day.values) == 1 else phrase("cron_day_list", days=days))
        words += [phrase("cron_last_day")] if day.last_day else []
        by_number = all_of(words)
    if weekday.nth:
        nth = all_of(
            [phrase(f"nth_{_ORDINALS[which]}", weekday=_WEEKDAYS[which_day]) for which_day, which in sorted(weekday.nth)]
        )
        if by_number is not None:
            return phrase("cron_days_if", days=by_number, weekdays=nth)
        return phrase("cron_nth", days=nth) if monthly else phrase("cron_nth_of_months", days=nth)
    of_month: Phrase | None = None
    if by_number is not None:
        of_month = phrase("cron_days_of_month", days=by_number) if monthly else phrase("cron_days_of_months", days=by_number)
    of_week = None if weekday.star else phrase("cron_weekdays", days=_spell(weekday.values, _WEEKDAYS))
    if of_month is not None and of_week is not None:
        return phrase("cron_days_or", first=of_month, second=of_week)
    return of_month or of_week
