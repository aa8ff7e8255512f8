"""Branching: one task decides which downstream tasks run; the others are skipped.

weigh ─▶ choose ─┬▶ by_bicycle ─┬▶ arrived
                 └▶ by_van     ─┘

tradewind dags trigger branching --conf '{"kilograms": 40}'
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, Param, TriggerRule, task
from tradewind.operators.empty import EmptyOperator


@task
def weigh(params: dict[str, float]) -> float:
    return params["kilograms"]


# A branching task returns the id of the task that runs next (or a list of ids, or None for no task).
# All other direct downstream tasks are skipped.
@task.branch
def choose(kilograms: float) -> str:
    return "by_bicycle" if kilograms < 20 else "by_van"


@task
def by_bicycle() -> None:
    print("off it goes, by bicycle")


@task
def by_van() -> None:
    print("off it goes, by van")


with DAG(
    "branching",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"kilograms": Param(5, type="number", minimum=0)},
    tags=["example"],
):
    # One of the two branches is always skipped, so the default rule ("all upstream tasks succeeded") would never be met here.
    # This rule requires that no upstream task failed and at least one succeeded.
    arrived = EmptyOperator(task_id="arrived", trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)

    choose(weigh()) >> [by_bicycle(), by_van()] >> arrived
