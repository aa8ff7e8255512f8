"""A short circuit: if its condition is false, everything downstream is skipped, and the run still succeeds.

The letters are sent on Mondays. On other days nothing downstream of `is_monday` runs; `always` is not downstream and runs.
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
