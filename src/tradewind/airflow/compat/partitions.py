"""Asset partitions of Airflow 3.2 and 3.3. Files with them load; runs and events carry no partition keys yet (a warning says so).

A partitioned schedule counts as the same schedule without partitions.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from tradewind.sdk import open_dags
from tradewind.timetables.simple import NullTimetable
from tradewind.timetables.trigger import CronTriggerTimetable

__all__ = [
    "AllowedKeyMapper",
    "ChainMapper",
    "CronPartitionTimetable",
    "DayWindow",
    "FanOutMapper",
    "FixedKeyMapper",
    "HourWindow",
    "IdentityMapper",
    "MinimumCount",
    "MonthWindow",
    "PartitionMapper",
    "PartitionedAssetTimetable",
    "PartitionedAtRuntime",
    "ProductMapper",
    "QuarterWindow",
    "RollupMapper",
    "SegmentWindow",
    "StartOfDayMapper",
    "StartOfHourMapper",
    "StartOfMonthMapper",
    "StartOfQuarterMapper",
    "StartOfWeekMapper",
    "StartOfYearMapper",
    "WaitForAll",
    "WaitPolicy",
    "WeekWindow",
    "Window",
    "YearWindow",
]


def _warn(name: str) -> None:
    open_dags.warn_author(f"{name}: asset partitions are not supported yet; runs and asset events carry no partition key")


class _Described:
    """Keeps what it is made of."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{type(self).__name__}({', '.join(given)})"


class PartitionMapper(_Described):
    """Base of mappers: which partitions of a consumer a partition of its asset belongs to."""


class IdentityMapper(PartitionMapper):
    """The same key."""


class FixedKeyMapper(PartitionMapper):
    """One key for all."""


class AllowedKeyMapper(PartitionMapper):
    """Only the listed keys."""


class ProductMapper(PartitionMapper):
    """Keys of several parts."""


class ChainMapper(PartitionMapper):
    """Several mappers, one after the other."""


class FanOutMapper(PartitionMapper):
    """Many keys for one."""


class RollupMapper(PartitionMapper):
    """One key for many."""


class StartOfHourMapper(PartitionMapper):
    """The hour of a key."""


class StartOfDayMapper(PartitionMapper):
    """The day of a key."""


class StartOfWeekMapper(PartitionMapper):
    """The week of a key."""


class StartOfMonthMapper(PartitionMapper):
    """The month of a key."""


class StartOfQuarterMapper(PartitionMapper):
    """The quarter of a key."""


class StartOfYearMapper(PartitionMapper):
    """The year of a key."""


class Window(_Described):
    """Base of windows: which keys a rolled-up key stands for."""

    class Direction:
        """Which way a window reaches."""

        FORWARD = "forward"
        BACKWARD = "backward"


class HourWindow(Window):
    """An hour."""


class DayWindow(Window):
    """A day."""


class WeekWindow(Window):
    """A week."""


class MonthWindow(Window):
    """A month."""


class QuarterWindow(Window):
    """A quarter."""


class YearWindow(Window):
    """A year."""


class SegmentWindow(Window):
    """A list of segments."""


class WaitPolicy(_Described):
    """Base of policies: how many partitions a rolled-up one waits for."""


class WaitForAll(WaitPolicy):
    """All of them."""


class MinimumCount(WaitPolicy):
    """Some of them."""


class CronPartitionTimetable(CronTriggerTimetable):
    """Runs at the times of a cron expression, in Airflow with a partition key each."""

    def __init__(self, cron: str, *, timezone: str | tzinfo = "UTC", run_immediately: Any = False, **_kwargs: Any) -> None:
        _warn("CronPartitionTimetable")
        super().__init__(cron, timezone=timezone, run_immediately=run_immediately)


class PartitionedAtRuntime(NullTimetable):
    """No runs by time; in Airflow tasks say the partition keys."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        _warn("PartitionedAtRuntime")


class PartitionedAssetTimetable:
    """A run for the events of assets, in Airflow one for each partition. Calling it gives the assets as a schedule."""

    def __new__(cls, *, assets: Any, **_kwargs: Any) -> Any:
        _warn("PartitionedAssetTimetable")
        return assets
