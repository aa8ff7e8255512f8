"""TaskFlow: tasks are functions, their results are passed as values, and a mapping becomes several values.

A call of a @task function runs nothing: it adds the task to the DAG and returns an object for its future result.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import dag, task


# With multiple_outputs, each key of the mapping is a separate XCom: made["total"].
@task(multiple_outputs=True)
def summarize(numbers: list[int]) -> dict[str, float]:
    return {"total": sum(numbers), "mean": sum(numbers) / len(numbers)}


@task
def draw() -> list[int]:
    return [3, 1, 4, 1, 5]


@task
def tell(total: float, mean: float) -> str:
    return f"{total} in all, {mean} on average"


@dag(schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"])
def taskflow():
    made = summarize(draw())
    tell(made["total"], made["mean"])


taskflow()
