"""Latest only: a run for a past day loads its data, but sends no mail about it.

Everything downstream of `latest_only` is skipped in all runs except the latest one.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.latest_only import LatestOnlyOperator

with DAG("latest_only", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=True, tags=["example", "gallery"]):
    load = EmptyOperator(task_id="load")
    load >> EmptyOperator(task_id="store")
    load >> LatestOnlyOperator(task_id="latest_only") >> EmptyOperator(task_id="send_mail")
