"""Waiting for a task of another DAG, in its run of the same logical date.

Both run every day. The report waits for `load` of the DAG `daily_load` for the same day, and fails at once if `load` has failed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
from tradewind.sensors.external_task import ExternalTaskSensor

START = datetime(2026, 1, 1)

with DAG("daily_load", schedule="@daily", start_date=START, catchup=False, tags=["example", "gallery"]):
    EmptyOperator(task_id="load")

with DAG("waiting_for_another_dag", schedule="@daily", start_date=START, catchup=False, tags=["example", "gallery"]):
    ExternalTaskSensor(
        task_id="loaded",
        external_dag_id="daily_load",
        external_task_id="load",
        failed_states=["failed", "upstream_failed"],
        mode="reschedule",
        poke_interval=timedelta(minutes=1),
        timeout=timedelta(hours=6),
    ) >> EmptyOperator(task_id="report")
