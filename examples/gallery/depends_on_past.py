"""Depends on past: a day's balance starts from the balance of the day before, so a day waits for its predecessor.

A day that fails holds up all later ones, until somebody corrects and clears it: that is the point of it.
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

    # Values of earlier runs are there to be read, too.
    @task(depends_on_past=True)
    def balance(today: int, ti) -> int:
        before = ti.xcom_pull(task_ids="balance", include_prior_dates=True) or 0
        return before + today

    balance(count())
