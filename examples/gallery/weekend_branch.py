"""A branch by weekday: a run rests on weekends and works on other days.

The weekday is that of the logical date, so a later run for last Sunday rests too.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.weekday import BranchDayOfWeekOperator, WeekDay

with DAG("weekend_branch", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, tags=["example", "gallery"]):
    BranchDayOfWeekOperator(
        task_id="weekend",
        week_day={WeekDay.SATURDAY, WeekDay.SUNDAY},
        follow_task_ids_if_true="rest",
        follow_task_ids_if_false="work",
        use_task_logical_date=True,
    ) >> [EmptyOperator(task_id="rest"), EmptyOperator(task_id="work")]
