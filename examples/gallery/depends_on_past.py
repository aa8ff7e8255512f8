"""Depends on past: the balance of a day starts with the balance of the day before, so each day waits for the previous one.

A failed day blocks all later days until somebody corrects and clears it. This is the purpose of the argument.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, task

with DAG(
    "depends_on_past",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=True,
    max_active_runs=4,
    tags=["example", "gallery"],
):

    @task
    def count(ds) -> int:
        return int(ds[-2:])

    # A task can also read XComs of earlier runs.
    @task(depends_on_past=True)
    def balance(today: int, ti) -> int:
        before = ti.xcom_pull(task_ids="balance", include_prior_dates=True) or 0
        return before + today

    balance(count())
