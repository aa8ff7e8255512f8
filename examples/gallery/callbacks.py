"""Callbacks: functions that are called when a task succeeds, is tried again, or fails finally. They do not change any state.

They run in the process of the task, after its result was reported, and write to its log.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tradewind import DAG, task


def tell(context) -> None:
    print(f"CALLBACK {context['ti'].task_id}, try {context['ti'].try_number}: {context.get('exception') or 'all is well'}")


with DAG(
    "callbacks",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    default_args={"on_success_callback": tell, "on_retry_callback": tell, "on_failure_callback": tell},
    tags=["example", "gallery"],
):

    @task
    def good() -> None:
        print("working")

    @task(retries=1, retry_delay=timedelta(seconds=2))
    def bad() -> None:
        raise ValueError("the printer is out of paper")

    good() >> bad()
