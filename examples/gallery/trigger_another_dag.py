"""One DAG starts another, tells it what to do, and waits for its end.

The run that is made knows why: its conf holds what was handed over.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, task
from tradewind.operators.trigger_dagrun import TriggerDagRunOperator

with DAG(
    "printing_house", schedule=None, start_date=datetime(2026, 1, 1), params={"title": "untitled"}, tags=["example", "gallery"]
):

    @task
    def print_book(params) -> str:
        return f"printed: {params['title']}"

    print_book()

with DAG("trigger_another_dag", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):
    TriggerDagRunOperator(
        task_id="order_a_book",
        trigger_dag_id="printing_house",
        conf={"title": "The run of {{ ds }}"},
        wait_for_completion=True,
        poke_interval=5,
    )
