"""Branching by the day of the week."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tradewind.operators.branch import BaseBranchOperator, Choice
from tradewind.sdk import open_dags
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.weekday import WeekDay, parse_days

__all__ = ["BranchDayOfWeekOperator", "WeekDay"]


class BranchDayOfWeekOperator(BaseBranchOperator):
    """Chooses one of two branches: is today one of the given days?

    Args:
        follow_task_ids_if_true, follow_task_ids_if_false: ids of direct downstream tasks or task groups.
        week_day: one day or several, as `WeekDay` or as full English name in any case.
        use_task_logical_date: use the day of the run's logical date, in UTC, instead of today in the DAG's time zone.
        use_task_execution_day: Airflow 2's name of `use_task_logical_date`.
    """

    def __init__(
        self,
        *,
        follow_task_ids_if_true: Choice,
        follow_task_ids_if_false: Choice,
        week_day: Any,
        use_task_logical_date: bool = False,
        use_task_execution_day: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.follow_task_ids_if_true = follow_task_ids_if_true
        self.follow_task_ids_if_false = follow_task_ids_if_false
        self.week_day = week_day
        self.days = parse_days(week_day)
        self.use_task_logical_date = use_task_logical_date or warn_renamed_argument(self, use_task_execution_day)

    def choose_branch(self, context: Any) -> Choice:
        today = (
            weekday_of_run(context) if self.use_task_logical_date else WeekDay(datetime.now(self.dag.zone_in_use).isoweekday())
        )
        self.log.info("The day is %s", today.name.capitalize())
        return self.follow_task_ids_if_true if today in self.days else self.follow_task_ids_if_false


def weekday_of_run(context: Any) -> WeekDay:
    """The weekday of the run's logical date (or of `run_after`, if it has none), in UTC."""
    run = context["dag_run"]
    return WeekDay((run.logical_date or run.run_after).astimezone(UTC).isoweekday())


def warn_renamed_argument(operator: BaseOperator, given: bool) -> bool:
    """Warn that the argument was renamed, if it is set. Returns the value."""
    if given:
        open_dags.warn_author(
            f"{operator._name_in_errors()}: use_task_execution_day was renamed to use_task_logical_date in Airflow 3",
            DeprecationWarning,
        )
    return given
