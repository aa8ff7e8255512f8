"""Task groups: groups of tasks, one inside another.

A dependency to a group goes to its first tasks, and a dependency from a group starts at its last tasks. The id of a task starts
with the ids of its groups: `clean.numbers.parse`.
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

    # The same as a function with arguments. If it returns nothing, its result stands for the group in dependencies.
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
