"""The instants at which a cron expression fires in a time zone.

Where the clock is changed there are two rules (Airflow's, made into one set of instants, so that going forward and
going back agree; see also vixie cron):

- the hour is `*`: it fires at every instant whose wall clock matches. An hour that occurs twice fires twice, one that is
  left out does not fire.
- else each wall-clock time fires once: a time that occurs twice at its second occurrence. Times that the change leaves
  out are made up for once: the first of them, as much later as the clock was moved.
"""

from __future__ import annotations

from functools import lru_cache

from tradewind.timetables.cron import CronExpression, compile_cron
from tradewind.timetables.zones import DAY_SECONDS, Span, Zone, year_of, year_start, zone

_SECOND = 1_000_000
_NEAR = 2 * DAY_SECONDS
"""Further away than this a change of the clock does not matter: it moves the clock by at most 24 hours."""


class Ticks:
    """The fire moments of one expression in one zone. Arguments and results are microseconds since the epoch, UTC."""

    __slots__ = ("cron", "zone")

    def __init__(self, cron: CronExpression, zone: Zone) -> None:
        self.cron = cron
        self.zone = zone

    def after(self, moment: int) -> int | None:
        """The first fire moment later than `moment`; None when there is none within 50 years."""
        found = self._forward(moment // _SECOND + 1)
        return None if found is None else found * _SECOND

    def at_or_after(self, moment: int) -> int | None:
        """The first fire moment not earlier than `moment`."""
        found = self._forward(-(-moment // _SECOND))
        return None if found is None else found * _SECOND

    def before(self, moment: int) -> int | None:
        """The last fire moment earlier than `moment`; None when there is none within 50 years."""
        found = self._backward(-(-moment // _SECOND) - 1)
        return None if found is None else found * _SECOND

    def at_or_before(self, moment: int) -> int | None:
        """The last fire moment not later than `moment`."""
        found = self._backward(moment // _SECOND)
        return None if found is None else found * _SECOND

    def _forward(self, second: int) -> int | None:
        fixed = self.zone.fixed
        if fixed is not None:
            wall = self.cron.at_or_after(second + fixed)
            return None if wall is None else wall - fixed
        while True:
            span = self.zone.span_at(second)
            year_end = year_start(year_of(second) + 1)
            limit = min(span.end, year_end)
            wall = self.cron.at_or_after(second + span.offset)
            best = None
            if wall is not None and wall - span.offset < min(limit, self._own_end(span)):
                best = wall - span.offset
            made_up = self._made_up(span)
            if made_up is not None and second <= made_up < limit and (best is None or made_up < best):
                best = made_up
            if best is not None:
                return best
            far = span.end - second > _NEAR
            if wall is None and far:
                return None
            # Nothing matches before `wall`: years without a match need not be walked through.
            jump = wall - span.offset - _NEAR if wall is not None and far else limit
            second = max(limit, jump)

    def _backward(self, second: int) -> int | None:
        fixed = self.zone.fixed
        if fixed is not None:
            wall = self.cron.at_or_before(second + fixed)
            return None if wall is None else wall - fixed
        while True:
            span = self.zone.span_at(second)
            limit = max(span.start, year_start(year_of(second)))
            wall = self.cron.at_or_before(min(second, self._own_end(span) - 1) + span.offset)
            best = None
            if wall is not None and wall - span.offset >= limit:
                best = wall - span.offset
            made_up = self._made_up(span)
            if made_up is not None and limit <= made_up <= second and (best is None or made_up > best):
                best = made_up
            if best is not None:
                return best
            far = second - span.start > _NEAR
            if wall is None and far:
                return None
            jump = wall - span.offset + _NEAR if wall is not None and far else limit - 1
            second = min(limit - 1, jump)

    def _own_end(self, span: Span) -> int:
        """Where the wall-clock times of `span` stop being its own: those that occur again belong to the next span."""
        if self.cron.hourly or span.after >= span.offset:
            return span.end
        return span.end - (span.offset - span.after)

    def _made_up(self, span: Span) -> int | None:
        """The tick that stands in `span` for the times left out when it began."""
        if self.cron.hourly or span.before >= span.offset:
            return None
        wall = self.cron.at_or_after(span.start + span.before)
        if wall is None or wall >= span.start + span.offset:
            return None
        return wall - span.before


@lru_cache(maxsize=8192)
def ticks(expression: str, timezone: str) -> Ticks:
    """The fire moments of `expression` in `timezone`.

    Raises:
        ScheduleError: the expression or the zone cannot be read.
    """
    return Ticks(compile_cron(expression), zone(timezone))
