"""A short circuit: where its condition does not hold, everything behind it is skipped, and the run still succeeds.

Monday's letters go out; on other days nothing behind `is_monday` runs, but `always` beside it does.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, task
from tradewind.operators.empty import EmptyOperator

with DAG("short_circuit", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, tags=["example", "gallery"]):

    @task.short_circuit
    def is_monday(logical_date) -> bool:
        return logical_date.weekday() == 0

    is_monday() >> EmptyOperator(task_id="write_letters") >> EmptyOperator(task_id="post_letters")
    EmptyOperator(task_id="always")
