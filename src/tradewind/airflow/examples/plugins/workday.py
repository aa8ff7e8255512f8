"""`airflow.example_dags.plugins.workday`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tradewind.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable

DAY = timedelta(days=1)
SATURDAY = 5


class AfterWorkdayTimetable(Timetable):
    """A run after each day from Monday to Friday, at midnight in UTC; its data interval is that day."""

    description = "after each workday"

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        """The last complete workday."""
        start = _midnight(run_after) - DAY
        while start.weekday() >= SATURDAY:
            start -= DAY
        return DataInterval(start, start + DAY)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The next workday; None after the last date."""
        if last_automated_data_interval is not None:
            start = _midnight(last_automated_data_interval.start) + DAY
        elif restriction.earliest is None:
            return None
        else:
            earliest = restriction.earliest if restriction.catchup else max(restriction.earliest, _midnight(datetime.now(UTC)))
            start = _midnight(earliest)
            if start < earliest:
                start += DAY
        while start.weekday() >= SATURDAY:
            start += DAY
        if restriction.latest is not None and start > restriction.latest:
            return None
        return DagRunInfo.interval(start, start + DAY)


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
