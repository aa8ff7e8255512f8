"""Formatting dates with Unicode patterns (CLDR, UTS 35), in the languages that pendulum supports.

`EEEE dd MMMM yyyy` in `fr` gives `mardi 09 juillet 2024`.
"""

from __future__ import annotations

import locale as system_locale
import re
from collections.abc import Callable
from datetime import datetime

from pendulum.locales.locale import Locale

_FIELD = re.compile(r"''|'((?:[^']|'')*)'|(([A-Za-z])\3*)")


def format_pattern(moment: datetime, pattern: str, language: str | None = None) -> str:
    """`moment` as text, formatted with `pattern`.

    Args:
        moment: date and time; its time zone is not part of the text.
        pattern: letters are fields; text in single quotes is copied; two single quotes are one single quote.
        language: `fr`, `fr_FR`, …; None: the language of the environment, otherwise English.

    Raises:
        ValueError: an unknown language or field.
    """
    names = _load(language or system_locale.getlocale()[0] or "en")

    def field(match: re.Match[str]) -> str:
        letters = match.group(2)
        if letters is None:
            return (match.group(1) or "'").replace("''", "'")
        write = _FIELDS.get(letters[0])
        if write is None:
            raise ValueError(
                f"the date pattern {pattern!r} has the unknown field {letters!r}; the fields are "
                f"{', '.join(sorted(_FIELDS))}; put text in single quotes"
            )
        return write(moment, len(letters), names)

    return _FIELD.sub(field, pattern)


def _load(language: str) -> Locale:
    """The names of days and months in a language; `fr_CA` falls back to `fr`."""
    if language in ("C", "POSIX"):
        language = "en"
    wanted = language.partition(".")[0].replace("-", "_").lower()
    for name in (wanted, wanted.partition("_")[0]):
        try:
            return Locale.load(name)
        except ValueError:
            continue
    raise ValueError(f"there are no names of days and months for the language {language!r}")


def _number(value: int, count: int) -> str:
    return f"{value:0{count}d}"


def _year(moment: datetime, count: int, names: Locale) -> str:
    return _number(moment.year % 100, 2) if count == 2 else _number(moment.year, count)


_WIDTHS = {3: "abbreviated", 4: "wide", 5: "narrow"}


def _month(moment: datetime, count: int, names: Locale) -> str:
    if count <= 2:
        return _number(moment.month, count)
    return str(names.translation(f"months.{_WIDTHS.get(count, 'wide')}")[moment.month])


def _weekday(moment: datetime, count: int, names: Locale) -> str:
    return str(names.translation(f"days.{_WIDTHS.get(max(count, 3), 'wide')}")[moment.weekday()])


def _quarter(moment: datetime, count: int, names: Locale) -> str:
    number = (moment.month + 2) // 3
    if count > 2:
        raise ValueError("the date field QQQ (the name of a quarter) is not supported; use Q or QQ")
    return _number(number, count)


def _day_half(moment: datetime, count: int, names: Locale) -> str:
    return str(names.translation(f"day_periods.{'am' if moment.hour < 12 else 'pm'}"))


_FIELDS: dict[str, Callable[[datetime, int, Locale], str]] = {
    "y": _year,
    "Q": _quarter,
    "q": _quarter,
    "M": _month,
    "L": _month,
    "d": lambda moment, count, names: _number(moment.day, count),
    "D": lambda moment, count, names: _number(moment.timetuple().tm_yday, count),
    "E": _weekday,
    "a": _day_half,
    "H": lambda moment, count, names: _number(moment.hour, count),
    "h": lambda moment, count, names: _number((moment.hour + 11) % 12 + 1, count),
    "m": lambda moment, count, names: _number(moment.minute, count),
    "s": lambda moment, count, names: _number(moment.second, count),
}
