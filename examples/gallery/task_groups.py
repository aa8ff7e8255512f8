"""Task groups: boxes around tasks, one inside another. An arrow to a box goes to its first tasks, an arrow from it leaves its last.

The id of a task begins with the ids of its groups: `clean.numbers.parse`.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, TaskGroup, task, task_group
from tradewind.operators.empty import EmptyOperator

with DAG("task_groups", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):
    load = EmptyOperator(task_id="load")

    with TaskGroup("clean", tooltip="from text to tables") as clean:
        with TaskGroup("numbers"):
            EmptyOperator(task_id="parse") >> EmptyOperator(task_id="round")
        EmptyOperator(task_id="names")

    # The same as a function, with values that go in. One that returns nothing stands for its box in arrows.
    @task_group(group_id="report")
    def reporting(pages: int) -> None:
        @task
        def write(pages: int) -> str:
            return f"{pages} pages"

        @task
        def bind(text: str) -> str:
            return f"a book of {text}"

        bind(write(pages))

    load >> clean >> reporting(12)
