"""A sensor that waits for a day of the week."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tradewind.model.moments import to_micros
from tradewind.model.waits import NEVER_BY_ITSELF, MomentWait, Wait
from tradewind.operators.weekday import warn_renamed_argument, weekday_of_run
from tradewind.sdk.weekday import WeekDay, parse_days
from tradewind.sensors import base

__all__ = ["DayOfWeekSensor", "WeekDay"]


class DayOfWeekSensor(base.BaseSensorOperator):
    """Waits until it is one of the given days, in UTC.

    Args:
        week_day: one day or several, as `WeekDay` or as full English name in any case.
        use_task_logical_date: use the day of the run's logical date instead of today. That day never changes, so if it is another
            day, the sensor waits until its timeout.
        use_task_execution_day: Airflow 2's name of `use_task_logical_date`.
    """

    def __init__(
        self,
        *,
        week_day: Any,
        use_task_logical_date: bool = False,
        use_task_execution_day: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.week_day = week_day
        self.days = parse_days(week_day)
        self.use_task_logical_date = use_task_logical_date or warn_renamed_argument(self, use_task_execution_day)

    def as_wait(self, context: Any) -> Wait | None:
        if self.use_task_logical_date:
            return MomentWait(NEVER_BY_ITSELF)
        midnight = base.now().replace(hour=0, minute=0, second=0, microsecond=0)
        days = (midnight + timedelta(days=ahead) for ahead in range(1, 8))
        return MomentWait(to_micros(next(day for day in days if WeekDay(day.isoweekday()) in self.days)))

    def poke(self, context: Any) -> bool:
        today = weekday_of_run(context) if self.use_task_logical_date else WeekDay(base.now().isoweekday())
        self.log.info("The day is %s", today.name.capitalize())
        return today in self.days
