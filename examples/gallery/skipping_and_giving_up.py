"""Exceptions with a meaning: one skips the task, one fails it without another try.

Use AirflowFailException if another try cannot help: a wrong password stays wrong.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tradewind import DAG, AirflowFailException, AirflowSkipException, task

with DAG(
    "skipping_and_giving_up",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    default_args={"retries": 3, "retry_delay": timedelta(seconds=1)},
    tags=["example", "gallery"],
):

    @task
    def nothing_new() -> None:
        raise AirflowSkipException("the file is the one of yesterday")

    @task
    def wrong_password() -> None:
        raise AirflowFailException("the server knows nobody of this name")

    @task
    def bad_line(ti) -> str:
        if ti.try_number <= 2:
            raise ConnectionError("the line was cut")
        return f"got through at try {ti.try_number}"

    nothing_new()
    wrong_password()
    bad_line()
