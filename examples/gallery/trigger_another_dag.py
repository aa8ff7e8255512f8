"""A DAG triggers a run of another DAG, passes values to it, and waits for its end.

The `conf` of the new run contains the values.
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
