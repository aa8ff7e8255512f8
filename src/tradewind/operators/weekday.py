"""Branching by the day of the week."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tradewind.operators.branch import BaseBranchOperator, Choice
from tradewind.sdk import open_dags
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.weekday import WeekDay, days_of

__all__ = ["BranchDayOfWeekOperator", "WeekDay"]


class BranchDayOfWeekOperator(BaseBranchOperator):
    """Follows one of two branches: is today one of these days?

    Args:
        follow_task_ids_if_true, follow_task_ids_if_false: ids of tasks or groups directly downstream.
        week_day: one day or several, as `WeekDay` or by full English name in any case.
        use_task_logical_date: the day of the run's logical date, in UTC, instead of today in the DAG's zone.
        use_task_execution_day: Airflow 2's name of that.
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
        self.days = days_of(week_day)
        self.use_task_logical_date = use_task_logical_date or renamed_use_task_execution_day(self, use_task_execution_day)

    def choose_branch(self, context: Any) -> Choice:
        today = day_of_run(context) if self.use_task_logical_date else WeekDay(datetime.now(self.dag.timezone).isoweekday())
        self.log.info("The day is %s", today.name.capitalize())
        return self.follow_task_ids_if_true if today in self.days else self.follow_task_ids_if_false


def day_of_run(context: Any) -> WeekDay:
    """The day of the run's logical date (`run_after`, when it has none), in UTC."""
    run = context["dag_run"]
    return WeekDay((run.logical_date or run.run_after).astimezone(UTC).isoweekday())


def renamed_use_task_execution_day(operator: BaseOperator, given: bool) -> bool:
    """`given`, with a warning that it has another name now."""
    if given:
        open_dags.warn_author(
            f"{operator._name_in_errors()}: use_task_execution_day is called use_task_logical_date since Airflow 3",
            DeprecationWarning,
        )
    return given
