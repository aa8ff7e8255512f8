"""The times at which a cron expression matches in a time zone.

When the clock changes there are two rules. (They are Airflow's, made consistent, so that searching forward and backward give the
same times; see also vixie cron.)

- The hour field is `*`: every instant whose wall-clock time matches. An hour that occurs twice matches twice, a skipped hour not at
  all.
- Otherwise each wall-clock time matches once: a time that occurs twice at its second occurrence. Of the skipped times, only the
    first matches, later by as much as the clock was moved.
"""

from __future__ import annotations

from functools import lru_cache

from tradewind.timetables.cron import CronExpression, compile_cron
from tradewind.timetables.zones import DAY_SECONDS, OffsetPeriod, Zone, year_of, year_start, zone

_SECOND = 1_000_000
_NEAR = 2 * DAY_SECONDS
"""Beyond this distance a clock change does not matter, because it moves the clock by at most 24 hours."""


class Ticks:
    """The matching times of one expression in one time zone. Arguments and results are microseconds since the epoch, UTC."""

    __slots__ = ("cron", "zone")

    def __init__(self, cron: CronExpression, zone: Zone) -> None:
        self.cron = cron
        self.zone = zone

    def after(self, moment: int) -> int | None:
        """The first matching time after `moment`; None if there is none within 50 years."""
        found = self._forward(moment // _SECOND + 1)
        return None if found is None else found * _SECOND

    def at_or_after(self, moment: int) -> int | None:
        """The first matching time at or after `moment`."""
        found = self._forward(-(-moment // _SECOND))
        return None if found is None else found * _SECOND

    def before(self, moment: int) -> int | None:
        """The last matching time before `moment`; None if there is none within 50 years."""
        found = self._backward(-(-moment // _SECOND) - 1)
        return None if found is None else found * _SECOND

    def at_or_before(self, moment: int) -> int | None:
        """The last matching time at or before `moment`."""
        found = self._backward(moment // _SECOND)
        return None if found is None else found * _SECOND

    def _forward(self, second: int) -> int | None:
        fixed = self.zone.fixed
        if fixed is not None:
            wall = self.cron.at_or_after(second + fixed)
            return None if wall is None else wall - fixed
        while True:
            span = self.zone.period_at(second)
            year_end = year_start(year_of(second) + 1)
            limit = min(span.end, year_end)
            wall = self.cron.at_or_after(second + span.offset)
            best = None
            if wall is not None and wall - span.offset < min(limit, self._own_end(span)):
                best = wall - span.offset
            replacement = self._replacement_of_skipped(span)
            if replacement is not None and second <= replacement < limit and (best is None or replacement < best):
                best = replacement
            if best is not None:
                return best
            far = span.end - second > _NEAR
            if wall is None and far:
                return None
            # nothing matches before `wall`, so years without a match can be skipped
            jump = wall - span.offset - _NEAR if wall is not None and far else limit
            second = max(limit, jump)

    def _backward(self, second: int) -> int | None:
        fixed = self.zone.fixed
        if fixed is not None:
            wall = self.cron.at_or_before(second + fixed)
            return None if wall is None else wall - fixed
        while True:
            span = self.zone.period_at(second)
            limit = max(span.start, year_start(year_of(second)))
            wall = self.cron.at_or_before(min(second, self._own_end(span) - 1) + span.offset)
            best = None
            if wall is not None and wall - span.offset >= limit:
                best = wall - span.offset
            replacement = self._replacement_of_skipped(span)
            if replacement is not None and limit <= replacement <= second and (best is None or replacement > best):
                best = replacement
            if best is not None:
                return best
            far = second - span.start > _NEAR
            if wall is None and far:
                return None
            jump = wall - span.offset + _NEAR if wall is not None and far else limit - 1
            second = min(limit - 1, jump)

    def _own_end(self, span: OffsetPeriod) -> int:
        """The end of the wall-clock times that belong to `span`: times that occur again belong to the next span."""
        if self.cron.hourly or span.after >= span.offset:
            return span.end
        return span.end - (span.offset - span.after)

    def _replacement_of_skipped(self, span: OffsetPeriod) -> int | None:
        """The matching time in `span` that replaces the times skipped at its start; None if there is none."""
        if self.cron.hourly or span.before >= span.offset:
            return None
        wall = self.cron.at_or_after(span.start + span.before)
        if wall is None or wall >= span.start + span.offset:
            return None
        return wall - span.before


@lru_cache(maxsize=8192)
def ticks(expression: str, timezone: str) -> Ticks:
    """The matching times of `expression` in `timezone`.

    Raises:
        ScheduleError: the expression or the time zone is invalid.
    """
    return Ticks(compile_cron(expression), zone(timezone))
