"""Partition mappers under the names of Airflow 3.2: Airflow 3.3 calls them `StartOf…Mapper`."""

from __future__ import annotations

from tradewind.sdk.partitions import (
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StartOfQuarterMapper,
    StartOfWeekMapper,
    StartOfYearMapper,
)

__all__ = [
    "ToDailyMapper",
    "ToHourlyMapper",
    "ToMonthlyMapper",
    "ToQuarterlyMapper",
    "ToWeeklyMapper",
    "ToYearlyMapper",
]

ToHourlyMapper = StartOfHourMapper
ToDailyMapper = StartOfDayMapper
ToWeeklyMapper = StartOfWeekMapper
ToMonthlyMapper = StartOfMonthMapper
ToQuarterlyMapper = StartOfQuarterMapper
ToYearlyMapper = StartOfYearMapper
